//! A front end never imports another one: what two of them need lives in the engine. This test reads the source and fails on
//! an import from one into another.

use std::fs;
use std::path::{Path, PathBuf};

/// The front ends, by the folders and files that each of them has. `main.rs` and `cli.rs` know all of them.
const FRONT_ENDS: [&[&str]; 3] = [&["commands", "ui", "complete", "demo"], &["mcp"], &["workbench"]];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, found),
            path if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// The front end that a folder or file belongs to.
fn front_end(module: &str) -> Option<usize> {
    FRONT_ENDS.iter().position(|modules| modules.contains(&module))
}

/// The first words of all paths after `crate::`.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(|line| line.split("crate::").skip(1)).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        assert!(end > 0 || rest.starts_with(')'), "one path per import of this crate: `crate::{rest}`");
        &rest[..end]
    })
}

#[test]
fn no_front_end_imports_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 50, "{} files in {}", files.len(), root.display());
    let mut wrong = Vec::new();
    for path in files {
        let relative = path.strip_prefix(&root).expect("a source file").to_string_lossy().into_owned();
        let own = relative.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        let Some(own_front_end) = front_end(&own) else { continue };
        let text = fs::read_to_string(&path).expect("a text");
        let others = imports(&text).filter(|used| front_end(used).is_some_and(|other| other != own_front_end));
        wrong.extend(others.map(|used| format!("{relative} imports `{used}`")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found() {
    let text = "use crate::ui::{self, Paint}; // crate::no\nfn x() { crate::mcp::run() }\npub(in crate::mcp) struct A;";
    assert_eq!(imports(text).collect::<Vec<_>>(), ["ui", "mcp", "mcp"]);
}
