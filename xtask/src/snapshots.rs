//! Accepts what tests print as their new snapshots.
//!
//! insta writes snapshots that are files itself. For those in the source it leaves a file with the new text and the line of
//! the assertion, which its own tool would apply.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Outcome, cargo, root, run};

const PENDING: &str = ".pending-snap";

pub(crate) fn accept(tests: &[String]) -> Outcome {
    let mut command = cargo(["test", "--workspace", "--no-fail-fast", "--"]);
    let tested = run(command.args(tests).envs([("INSTA_UPDATE", "always"), ("INSTA_FORCE_PASS", "1")]));
    let mut pending = Vec::new();
    find_pending(&root().join("crates"), &mut pending);
    for file in &pending {
        let source = apply(file)?;
        println!("updated {}", source.strip_prefix(root()).unwrap_or(&source).display());
    }
    tested?;
    println!("review the changes before you commit them: git diff");
    Ok(())
}

fn find_pending(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_pending(&path, found);
        } else if path.to_string_lossy().ends_with(PENDING) {
            found.push(path);
        }
    }
}

/// Puts the new snapshots of a file into its source, and returns that.
fn apply(pending: &Path) -> Result<PathBuf, String> {
    let name = pending.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(PENDING));
    let name = name.and_then(|name| name.strip_prefix('.')).ok_or("a pending snapshot has an unexpected name")?;
    let source = pending.with_file_name(name);
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let text = replace(&read(&source)?, &new_texts(&read(pending)?))?;
    fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    fs::remove_file(pending).map_err(|error| format!("{}: {error}", pending.display()))?;
    Ok(source)
}

/// The new text for each line that has an assertion. Later runs replace earlier ones; one that passed has no new text.
fn new_texts(pending: &str) -> BTreeMap<usize, String> {
    let mut texts = BTreeMap::new();
    for entry in pending.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(line) = entry["line"].as_u64().and_then(|line| usize::try_from(line).ok()) else {
            continue;
        };
        match entry["new"]["snapshot"].as_str() {
            Some(text) => texts.insert(line, text.to_owned()),
            None => texts.remove(&line),
        };
    }
    texts
}

fn replace(source: &str, texts: &BTreeMap<usize, String>) -> Result<String, String> {
    let mut source = source.to_owned();
    // From the end, so that the lines before stay where they are.
    for (line, text) in texts.iter().rev() {
        let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let indent = source[start..].chars().take_while(|c| *c == ' ').count();
        let missing = || format!("no inline snapshot follows line {line}");
        let at = start + source[start..].find('@').ok_or_else(missing)? + 1;
        let length = literal_length(&source[at..]).ok_or_else(missing)?;
        source.replace_range(at..at + length, &literal(text, indent));
    }
    Ok(source)
}

/// How long the string literal is that a text begins with.
fn literal_length(text: &str) -> Option<usize> {
    if let Some(rest) = text.strip_prefix('r') {
        let hashes = rest.chars().take_while(|c| *c == '#').count();
        let start = 1 + hashes + rest[hashes..].strip_prefix('"').map(|_| 1)?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(start + text[start..].find(&end)? + end.len());
    }
    let mut escaped = false;
    let body = text.strip_prefix('"')?;
    for (at, c) in body.char_indices() {
        match c {
            '"' if !escaped => return Some(at + 2),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}

/// A string literal as rustfmt and insta like it: several lines are indented like their assertion.
fn literal(text: &str, indent: usize) -> String {
    let text = text.trim_matches('\n');
    let longest = (0..9).find(|count| !text.contains(&format!("\"{}", "#".repeat(*count)))).unwrap_or(9);
    let (hashes, indent) = ("#".repeat(longest), " ".repeat(indent));
    if text.contains('\n') {
        let lines = text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("{indent}{line}\n") });
        return format!("r{hashes}\"\n{}{indent}\"{hashes}", lines.collect::<String>());
    }
    match text.contains(['"', '\\']) {
        true => format!("r{hashes}\"{text}\"{hashes}"),
        false => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_texts_replace_the_literals_after_their_lines() {
        let source = "fn a() {\n    check!(one(\"x\"), @\"old \\\" one\");\n    check!(two(), @r#\"\n    old \"two\"\n    \"#);\n}\n";
        let texts = BTreeMap::from([(2, "new".to_owned()), (3, "say \"hi\"\n\nbye".to_owned())]);
        let expected = "fn a() {\n    check!(one(\"x\"), @\"new\");\n    check!(two(), @r#\"\n    say \"hi\"\n\n    bye\n    \"#);\n}\n";
        assert_eq!(replace(source, &texts).expect("a source"), expected);
        assert!(replace("nothing here", &BTreeMap::from([(1, String::new())])).is_err());
    }

    #[test]
    fn the_last_run_counts() {
        let pending = "{\"line\":4,\"new\":{\"snapshot\":\"a\"}}\n{\"line\":4,\"new\":{\"snapshot\":\"b\"}}\n\
                       {\"line\":9,\"new\":{\"snapshot\":\"c\"}}\n{\"line\":9,\"new\":null}\n";
        assert_eq!(new_texts(pending), BTreeMap::from([(4, "b".to_owned())]));
    }

    #[test]
    fn a_pending_file_is_applied_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, pending) = (folder.path().join("x.rs"), folder.path().join(".x.rs.pending-snap"));
        fs::write(&source, "check!(@\"\");\n").expect("a source");
        fs::write(&pending, "{\"line\":1,\"new\":{\"snapshot\":\"it\"}}\n").expect("a snapshot");
        assert_eq!(apply(&pending).expect("a source"), source);
        assert_eq!(fs::read_to_string(&source).expect("a source"), "check!(@\"it\");\n");
        assert!(!pending.exists());
    }
}
