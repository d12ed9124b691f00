//! What a call changes in files, as lines that were added and removed.

use std::ops::Range;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::words::short_line;
use crate::text::clean;

/// Beyond this, an edit is shown as everything that it removes and everything that it adds.
const MOST_LINES: usize = 2_000;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// The changes to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) file: String,
    pub(super) lines: Vec<ChangedLine>,
}

/// A line of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangedLine {
    /// Lines are left out.
    Gap,
    Same(String),
    Added(String),
    Removed(String),
}

/// The changes that a call makes, if it edits files.
pub(super) fn changes(tool: &str, input: &Value) -> Option<Vec<FileChange>> {
    let found = match input {
        Value::String(text) => patch(text),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let file = text("file_path").or_else(|| text("notebook_path")).or_else(|| text("path")).map(short_line);
            if let Some(patched) = text("patch").or_else(|| text("input")).map(patch).filter(|files| !files.is_empty())
            {
                patched
            } else if let Some(changes) = fields.get("changes").and_then(Value::as_array) {
                changes.iter().filter_map(unified).collect()
            } else if let (Some(file), Some(edits)) = (&file, fields.get("edits").and_then(Value::as_array)) {
                let lines = edits.iter().filter_map(edit).collect::<Vec<_>>().join(&ChangedLine::Gap);
                vec![FileChange { file: file.clone(), lines }]
            } else if let (Some(file), Some(lines)) = (&file, edit(input)) {
                vec![FileChange { file: file.clone(), lines }]
            } else if let (Some(file), Some(content), "Write") = (&file, text("content"), tool) {
                let lines = clean(content).lines().map(|line| ChangedLine::Added(line.to_owned())).collect();
                vec![FileChange { file: file.clone(), lines }]
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    };
    (!found.is_empty()).then_some(found)
}

/// The files that a call changes.
pub fn changed_files(tool: &str, input: &Value) -> Vec<String> {
    changes(tool, input).into_iter().flatten().map(|change| change.file).collect()
}

/// How many lines are added and removed.
pub(super) fn counts(changes: &[FileChange]) -> (usize, usize) {
    let lines = || changes.iter().flat_map(|change| &change.lines);
    let added = lines().filter(|line| matches!(line, ChangedLine::Added(_))).count();
    (added, lines().filter(|line| matches!(line, ChangedLine::Removed(_))).count())
}

/// One replacement of a text.
fn edit(input: &Value) -> Option<Vec<ChangedLine>> {
    let old = input.get("old_string").and_then(Value::as_str)?;
    let new = input.get("new_string").and_then(Value::as_str)?;
    Some(difference(&clean(old), &clean(new)))
}

fn difference(old: &str, new: &str) -> Vec<ChangedLine> {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old_lines.len() + new_lines.len() > MOST_LINES {
        let removed = old_lines.iter().map(|line| ChangedLine::Removed((*line).to_owned()));
        return removed.chain(new_lines.iter().map(|line| ChangedLine::Added((*line).to_owned()))).collect();
    }
    let diff = TextDiff::from_slices(&old_lines, &new_lines);
    let mut lines = Vec::new();
    let mut end = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let range: Range<usize> = group.first().map_or(0..0, |op| op.old_range());
        if range.start > end {
            lines.push(ChangedLine::Gap);
        }
        end = group.last().map_or(end, |op| op.old_range().end);
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = change.value().to_owned();
            lines.push(match change.tag() {
                ChangeTag::Equal => ChangedLine::Same(text),
                ChangeTag::Insert => ChangedLine::Added(text),
                ChangeTag::Delete => ChangedLine::Removed(text),
            });
        }
    }
    if end < old_lines.len() && !lines.is_empty() {
        lines.push(ChangedLine::Gap);
    }
    lines
}

/// A patch in the form of Codex's `apply_patch`.
fn patch(text: &str) -> Vec<FileChange> {
    let mut files: Vec<FileChange> = Vec::new();
    let text = clean(text);
    let Some(begun) = text.find("*** Begin Patch") else { return files };
    for line in text[begun..].lines().skip(1) {
        let headers = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
        if let Some(file) = headers.iter().find_map(|header| line.strip_prefix(header)) {
            files.push(FileChange { file: short_line(file), lines: Vec::new() });
        } else if line.starts_with("*** End Patch") {
            break;
        } else if let Some(file) = files.last_mut().filter(|_| !line.starts_with("*** ")) {
            file.lines.extend(line_of_patch(line, file.lines.is_empty()));
        }
    }
    files
}

/// A file of a patch as Codex's app-server reports it.
fn unified(change: &Value) -> Option<FileChange> {
    let file = short_line(change.get("path")?.as_str()?);
    let diff = clean(change.get("diff")?.as_str()?);
    let mut lines = Vec::new();
    for line in diff.lines().filter(|line| !line.starts_with("--- ") && !line.starts_with("+++ ")) {
        lines.extend(line_of_patch(line, lines.is_empty()));
    }
    Some(FileChange { file, lines })
}

fn line_of_patch(line: &str, is_first: bool) -> Option<ChangedLine> {
    let text = |mark: char| line.strip_prefix(mark).map(str::to_owned);
    if line.starts_with("@@") {
        return (!is_first).then_some(ChangedLine::Gap);
    }
    let removed = || text('-').map(ChangedLine::Removed);
    let same = || Some(ChangedLine::Same(text(' ').unwrap_or_else(|| line.to_owned())));
    text('+').map(ChangedLine::Added).or_else(removed).or_else(same)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(tool: &str, input: &Value, expected: &[&str]) {
        let mut told = Vec::new();
        for change in changes(tool, input).unwrap_or_default() {
            told.push(change.file);
            told.extend(change.lines.into_iter().map(|line| match line {
                ChangedLine::Gap => "⋮".to_owned(),
                ChangedLine::Same(text) => format!(" {text}"),
                ChangedLine::Added(text) => format!("+{text}"),
                ChangedLine::Removed(text) => format!("-{text}"),
            }));
        }
        assert_eq!(told, expected, "{input}");
    }

    #[test]
    fn edits_of_every_form_are_shown_as_lines() {
        let edit = json!({"file_path": "a.rs", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree\n"});
        check("Edit", &edit, &["a.rs", " one", "-two", "+2", " three"]);
        let edits = json!({"file_path": "a.rs", "edits": [
            {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]});
        check("MultiEdit", &edits, &["a.rs", "-a", "+b", "⋮", "-c"]);
        check("Write", &json!({"file_path": "a", "content": "x\n\u{1b}[1my\n"}), &["a", "+x", "+y"]);
        check("Read", &json!({"file_path": "a", "content": "x"}), &[]);
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@ fn a()\n-old\n+new\n same\n@@\n+more\n\
                     *** Add File: b.rs\n+first\n*** End Patch\n";
        let lines = ["a.rs", "-old", "+new", " same", "⋮", "+more", "b.rs", "+first"];
        check("apply_patch", &json!(patch), &lines);
        check("shell", &json!({"input": patch}), &lines);
        let reported = json!({"changes": [{"path": "c.rs", "diff": "@@ -1,2 +1,2 @@\n-x\n+y\n z\n"}]});
        check("apply_patch", &reported, &["c.rs", "-x", "+y", " z"]);
        check("Bash", &json!({"command": "ls"}), &[]);
    }

    #[test]
    fn only_what_changed_and_a_little_around_it_is_shown() {
        let old: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let mut new = old.clone();
        new[50] = "fifty".to_owned();
        let input = json!({"file_path": "a", "old_string": old.join("\n"), "new_string": new.join("\n")});
        check("Edit", &input, &["a", "⋮", " 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53", "⋮"]);
        assert_eq!(counts(&changes("Edit", &input).unwrap()), (1, 1));
    }

    #[test]
    fn an_enormous_edit_is_shown_without_a_comparison() {
        let long = |word: &str| vec![word; 3000].join("\n");
        let input = json!({"file_path": "a", "old_string": long("a"), "new_string": long("b")});
        assert_eq!(counts(&changes("Edit", &input).unwrap()), (3000, 3000));
    }
}
