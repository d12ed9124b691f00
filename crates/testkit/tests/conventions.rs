//! Conventions of the product's source that the compiler doesn't check.

use std::collections::BTreeMap;
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

/// Names that several types of a crate may have: each folder has its own `Error` and `Result`, each command its `Args`.
const SHARED_NAMES: [&str; 3] = ["Args", "Error", "Result"];

/// The folders of agents.
const AGENTS: [&str; 4] = ["agents/src/claude", "agents/src/codex", "agents/src/gemini", "agents/src/opencode"];

/// Types that are private to their files may share a name. In `agents`, the folders mirror each other, and in `engine`,
/// `words_only` stands in for `hybrid` where the language model isn't compiled in.
#[test]
fn no_two_types_of_a_crate_have_the_same_name() {
    let mut types: BTreeMap<(String, String), Vec<(PathBuf, bool)>> = BTreeMap::new();
    for (path, lines) in sources().into_iter().filter(|(path, _)| !path.ends_with("search/rank/words_only.rs")) {
        let name_of_crate = path.iter().next().expect("a crate").to_string_lossy().into_owned();
        for (name, is_visible) in lines.iter().filter_map(|line| defined_type(line)) {
            types.entry((name_of_crate.clone(), name.to_owned())).or_default().push((path.clone(), is_visible));
        }
    }
    assert!(types.len() > 500, "{} types", types.len());
    let is_wrong = |name: &str, places: &[(PathBuf, bool)]| {
        let is_in = |folder: &str| places.iter().filter(|(path, _)| path.starts_with(folder)).count();
        let are_twins = AGENTS.iter().map(|folder| is_in(folder)).sum::<usize>() == places.len()
            && AGENTS.iter().all(|folder| is_in(folder) <= 1);
        let is_visible = places.iter().any(|(_, is_visible)| *is_visible);
        places.len() > 1 && is_visible && !are_twins && !SHARED_NAMES.contains(&name)
    };
    let wrong: Vec<String> = types
        .iter()
        .filter(|((_, name), places)| is_wrong(name, places))
        .map(|((_, name), places)| {
            let files: Vec<String> = places.iter().map(|(path, _)| path.display().to_string()).collect();
            format!("{name}: {}", files.join(", "))
        })
        .collect();
    assert!(wrong.is_empty(), "types with the same name:\n{}", wrong.join("\n"));
}

/// The type that a line defines outside functions and modules, and whether other files can see it.
fn defined_type(line: &str) -> Option<(&str, bool)> {
    let is_visible = line.starts_with("pub");
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
    let is_type = matches!(words.next(), Some("struct" | "enum" | "trait" | "type" | "union"));
    let name = words.next().filter(|_| is_type && !line.starts_with(' '))?;
    Some((name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default(), is_visible))
}

#[test]
fn types_are_recognized() {
    let check = |line: &str, expected| assert_eq!(defined_type(line), expected, "{line}");
    check("pub struct Plan {", Some(("Plan", true)));
    check("pub(in crate::mcp) enum Layout {", Some(("Layout", true)));
    check("type Answer<'a> = Option<&'a str>;", Some(("Answer", false)));
    check("    struct Inner;", None);
    check("pub fn plan() {", None);
}
