//! How a call's arguments are shown to people: the most telling one on a line, or all of them as plain text.

use serde_json::Value;

use super::to_json_line;
use super::to_json_pretty;
use super::words::short_line;
use crate::text::clean;

/// Arguments that describe a call, most important first: what it runs, writes or reads, what it searches and where, and
/// the task it delegates.
const TELLING: [&str; 11] = [
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "query",
    "url",
    "description",
    "prompt",
    "skill",
];

/// The most important argument of a call, on one line; all of them as JSON if none is.
pub(super) fn main_argument(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => patched_files(text).unwrap_or_else(|| short_line(text)),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Object(fields) => {
            let told = TELLING.iter().filter_map(|name| fields.get(*name)).find_map(in_words);
            told.unwrap_or_else(|| short_line(&to_json_line(input)))
        }
        other => short_line(&to_json_line(other)),
    }
}

/// All arguments as text that reads well: a line for each, longer texts indented below their names.
pub(super) fn all_arguments(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => clean(text),
        Value::Object(fields) => {
            let arguments: Vec<String> = fields.iter().map(|(name, value)| argument(name, value)).collect();
            arguments.join("\n")
        }
        other => to_json_pretty(other),
    }
}

/// Whether the most important argument is the only one.
pub(super) fn telling_is_all(input: &Value) -> bool {
    let whole = |text: &str| short_line(text) == text.trim();
    match input {
        Value::Null => true,
        Value::String(text) => whole(text),
        Value::Object(fields) => match fields.iter().next() {
            None => true,
            Some((name, Value::String(text))) => fields.len() == 1 && TELLING.contains(&name.as_str()) && whole(text),
            Some(_) => false,
        },
        _ => false,
    }
}

fn argument(name: &str, value: &Value) -> String {
    let name = short_line(name);
    let text = match value {
        Value::String(text) => clean(text),
        Value::Array(_) | Value::Object(_) => to_json_pretty(value),
        other => other.to_string(),
    };
    let text = text.trim_end();
    // A text that starts with blanks keeps them visibly, as the old and new lines of an edit must.
    if !text.contains('\n') && !text.starts_with(' ') {
        return format!("{name}: {text}").trim_end().to_owned();
    }
    let mut indented = format!("{name}:");
    for line in text.lines() {
        let line = line.trim_end();
        indented.push_str(if line.is_empty() { "\n" } else { "\n  " });
        indented.push_str(line);
    }
    indented
}

fn in_words(value: &Value) -> Option<String> {
    let line = match value {
        Value::String(text) => short_line(text),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words.as_deref() {
                // A shell around a script is noise: Codex calls `["bash", "-lc", "cargo test"]`.
                Some([shell, "-c" | "-lc", script]) if shell.ends_with("sh") => short_line(script),
                Some(words) => short_line(&words.join(" ")),
                None => short_line(&to_json_line(value)),
            }
        }
        _ => return None,
    };
    (!line.is_empty()).then_some(line)
}

/// The files that a patch in the form of Codex's `apply_patch` changes.
fn patched_files(patch: &str) -> Option<String> {
    if !patch.trim_start().starts_with("*** Begin Patch") {
        return None;
    }
    let headers = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    let files: Vec<&str> =
        patch.lines().filter_map(|line| headers.iter().find_map(|header| line.strip_prefix(header))).collect();
    (!files.is_empty()).then(|| short_line(&files.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_telling_argument_is_chosen() {
        let check = |input: Value, expected: &str| assert_eq!(main_argument(&input), expected);
        check(
            json!({"description": "Run the tests", "command": "cargo test\n  --workspace"}),
            "cargo test --workspace",
        );
        check(json!({"cmd": "ls", "workdir": "/"}), "ls");
        check(json!({"command": ["bash", "-lc", "cargo test"]}), "cargo test");
        check(json!({"command": ["git", "status"]}), "git status");
        check(json!({"command": "", "path": "src"}), "src");
        check(json!({"path": "src", "pattern": "fn main"}), "fn main");
        check(json!({"prompt": "Look around", "description": "Explore"}), "Explore");
        check(json!({"todos": [{"id": 1}]}), r#"{"todos":[{"id":1}]}"#);
        check(json!({"x": "\u{9b}2J"}), r#"{"x":"\u009b2J"}"#);
        check(json!("*** Begin Patch\n*** Update File: a.rs\n@@\n*** Add File: b.rs\n*** End Patch"), "a.rs, b.rs");
        check(json!("plain \u{1b}[1mtext"), "plain text");
        check(json!({}), "");
        check(json!(null), "");
    }

    #[test]
    fn all_arguments_read_as_text() {
        let input = json!({"file_path": "a.rs", "new_string": "fn a() {\n\n\t1\n}\n", "old": "  b", "count": 2, "edits": [{"x": null}]});
        let expected = "file_path: a.rs\nnew_string:\n  fn a() {\n\n      1\n  }\nold:\n    b\ncount: 2\n\
                        edits:\n  [\n    {\n      \"x\": null\n    }\n  ]";
        assert_eq!(all_arguments(&input), expected);
        assert_eq!(all_arguments(&json!("a\u{1b}[0m\nb")), "a\nb");
    }

    #[test]
    fn a_call_with_one_short_argument_is_told_by_it() {
        let check = |input: Value, expected: bool| assert_eq!(telling_is_all(&input), expected, "{input}");
        check(json!({"command": "cargo test"}), true);
        check(json!({"command": "cargo test", "timeout": 1}), false);
        check(json!({"command": "cargo test\ncargo doc"}), false);
        check(json!({"command": "x".repeat(200)}), false);
        check(json!({"other": "x"}), false);
        check(json!({}), true);
    }
}
