//! Conventions of the product's source that the compiler doesn't check.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that are linked into tine.
const CRATES: [&str; 6] = ["agents", "diagnostics", "engine", "meaning", "tine", "transcript"];

/// Every source file of the product with its lines, as far as they are no tests.
fn sources() -> Vec<(PathBuf, Vec<String>)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates");
    let mut files = Vec::new();
    for name in CRATES {
        collect(&crates.join(name).join("src"), &mut files);
    }
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source file");
        let lines = text.lines().take_while(|line| line.trim() != "mod tests {").map(str::to_owned).collect();
        (path.strip_prefix(crates).expect("a path below the crates").to_owned(), lines)
    };
    files.into_iter().map(source).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // Modules that are compiled for tests only have it in their name.
        match name.contains("test") {
            true => {}
            false if path.is_dir() => collect(&path, files),
            false if name.ends_with(".rs") => files.push(path),
            false => {}
        }
    }
}

#[track_caller]
fn assert_none(what: &str, is_wrong: impl Fn(&Path, &str) -> bool) {
    let mut wrong = Vec::new();
    let sources = sources();
    assert!(sources.len() > 100, "too few source files to be true");
    for (path, lines) in &sources {
        let found = lines.iter().zip(1..).filter(|(line, _)| is_wrong(path, line));
        wrong.extend(found.map(|(line, number)| format!("{}:{number}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn ignored_errors_are_logged() {
    // Formatting into a string cannot fail, and a channel whose other end is gone has nobody to tell.
    const HARMLESS: [&str; 6] = ["write!(", "writeln!(", "write_fmt(", ".send(", ".join()", ".set("];
    assert_none("use `or_log` instead of `let _ =`", |_, line| {
        line.trim_start().starts_with("let _ =") && !HARMLESS.iter().any(|harmless| line.contains(harmless))
    });
}

#[test]
fn only_one_file_reads_the_environment() {
    assert_none("ask `environment.rs`, or take a context", |path, line| {
        let reads = line.contains("std::env") || line.contains("env::var") || line.contains("env::current");
        reads && !line.trim_start().starts_with("//") && path != Path::new("tine/src/environment.rs")
    });
}
