//! What a thread did to files: the patches that Codex applied, and the commands that ran.
//!
//! Codex records each patch with the differences that it made, byte for byte: as an item (paginated) or as the event
//! `patch_apply_end` (legacy), whether the model called the tool or gave the patch to a shell. Threads of 2025 have only the
//! patch itself, which says less: where its lines were is not recorded.

use std::path::PathBuf;

use serde_json::Value;

use super::record::Record;
use crate::acts::{Act, FileEdit, Hunk, Ran, ReplacedText, Sight, Touch};
use crate::fields::Raw;

const BEGIN: &str = "*** Begin Patch";

/// A call whose output is still to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    /// The command line, or the tool and its arguments.
    pub command: String,
    /// Where it runs, if the call says so.
    pub directory: Option<PathBuf>,
}

impl Running {
    /// What a call runs, if that may change files.
    pub(super) fn of(name: &str, input: &Value) -> Option<Self> {
        let words = |value: &Value| match value {
            Value::String(line) => line.clone(),
            Value::Array(words) => shell_line(words),
            _ => String::new(),
        };
        let command = match name {
            "exec_command" => words(&input["cmd"]),
            "shell" | "shell_command" | "container.exec" | "local_shell" => words(&input["command"]),
            "apply_patch" => input.as_str().or_else(|| input["input"].as_str()).unwrap_or_default().to_owned(),
            // What is typed into a program that runs.
            "write_stdin" => words(&input["chars"]),
            _ if name.starts_with("mcp__") => format!("{name} {input}"),
            _ => return None,
        };
        let directory = input["workdir"].as_str().or_else(|| input["working_directory"].as_str());
        (!command.is_empty()).then(|| Running { command, directory: directory.map(PathBuf::from) })
    }

    /// What it did, judged by its output. `patched`: Codex has recorded what its patch did.
    pub(super) fn acts(self, output: &str, failed: bool, patched: bool) -> Vec<Act> {
        if self.command.contains(BEGIN) {
            if patched || failed {
                // Codex checks a patch before it changes anything.
                return Vec::new();
            }
            let touches = of_patch(&self.command);
            if !touches.is_empty() && output.contains("Success. Updated the following files") {
                return touches.into_iter().map(Act::Touch).collect();
            }
        }
        if let Some(path) = whole_file(&self.command).filter(|_| !failed && is_whole(output)) {
            let before = Some(Sight::Text(output.to_owned()));
            return vec![Act::Touch(Touch { before, ..Touch::new(path, FileEdit::Nothing) })];
        }
        vec![Act::Ran(Ran { command: self.command, is_reported: false })]
    }
}

/// A command as a line: a shell's own script, or the words.
fn shell_line(words: &[Value]) -> String {
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [shell, option, script] if shell.ends_with("sh") && option.starts_with('-') => (*script).to_owned(),
        words => words.join(" "),
    }
}

/// The file that a command prints in full.
fn whole_file(command: &str) -> Option<PathBuf> {
    let path = command.trim().strip_prefix("cat ")?.trim();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    (!path.starts_with('-') && path.chars().all(is_plain)).then(|| path.into())
}

/// Whether nothing of an output was left out, in any of the ways in which Codex does that.
fn is_whole(output: &str) -> bool {
    !output.contains("truncated") && !output.contains("omitted") && !output.contains('\u{fffd}')
}

/// The call whose patch a record tells of, and the files that it changed.
pub(super) fn of_record(record: &Record<'_>) -> Option<(String, Vec<Touch>)> {
    let text = |value: Option<Raw<'_>>| value.and_then(Raw::string).map(|text| text.into_owned());
    let (source, call, done) = match record.get(b"item") {
        Some(item) if item.get(b"type").and_then(Raw::plain) == Some(b"FileChange") => {
            (item, text(item.get(b"id"))?, item.get(b"status").and_then(Raw::plain) == Some(b"completed"))
        }
        Some(_) => return None,
        None if record.subtype() == b"patch_apply_end" => {
            (Raw(record.payload()), text(record.get(b"call_id"))?, record.get(b"success").is_some_and(Raw::is_true))
        }
        None => return None,
    };
    let changes = source.get(b"changes").into_iter().flat_map(Raw::fields).filter(|_| done);
    let touches = changes.filter_map(|(path, change)| {
        let path: String = Raw(&[b"\"", path, b"\""].concat()).string()?.into_owned();
        touch(path.into(), change)
    });
    // What a failed patch did is not recorded: part of it may have been applied.
    Some((call, touches.collect()))
}

fn touch(path: PathBuf, change: Raw<'_>) -> Option<Touch> {
    let text = |key: &[u8]| change.get(key).and_then(Raw::string).map(|text| text.into_owned());
    let moved_to = text(b"move_path").map(PathBuf::from);
    Some(match change.get(b"type").and_then(Raw::plain)? {
        b"add" => Touch::new(path, FileEdit::Whole { text: text(b"content")?, keeps_ends: false }),
        b"delete" => Touch { before: text(b"content").map(Sight::Text), ..Touch::new(path, FileEdit::Deleted) },
        _ => Touch { moved_to, ..Touch::new(path, FileEdit::Hunks(hunks(&text(b"unified_diff")?))) },
    })
}

/// The hunks of a unified diff.
fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<(usize, Vec<&str>)> = Vec::new();
    for line in diff.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)) {
        if let Some(header) = line.strip_prefix("@@ -") {
            let digits = header.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            hunks.push((digits.parse().unwrap_or(0), Vec::new()));
        } else if let Some((_, lines)) = hunks.last_mut() {
            lines.push(line);
        }
    }
    hunks.into_iter().map(|(start, lines)| Hunk::of_lines(start, lines.into_iter())).collect()
}

/// The files that a patch is about, in the model's own format.
fn of_patch(command: &str) -> Vec<Touch> {
    let Some((_, patch)) = command.split_once(BEGIN) else { return Vec::new() };
    let mut touches: Vec<Touch> = Vec::new();
    for line in patch.lines() {
        let named = |label: &str| line.strip_prefix(label).map(|path| PathBuf::from(path.trim()));
        if line.starts_with("*** End Patch") {
            break;
        } else if let Some(path) = named("*** Add File: ") {
            touches.push(Touch::new(path, FileEdit::Whole { text: String::new(), keeps_ends: false }));
        } else if let Some(path) = named("*** Delete File: ") {
            touches.push(Touch::new(path, FileEdit::Deleted));
        } else if let Some(path) = named("*** Update File: ") {
            touches.push(Touch::new(path, FileEdit::Replaced(Vec::new())));
        } else if let Some(touch) = touches.last_mut() {
            if let Some(path) = named("*** Move to: ") {
                touch.moved_to = Some(path);
                continue;
            }
            match &mut touch.change {
                FileEdit::Whole { text, .. } => {
                    text.push_str(line.strip_prefix('+').unwrap_or_default());
                    text.push('\n');
                }
                FileEdit::Replaced(pieces) => add_line(pieces, line),
                _ => {}
            }
        }
    }
    touches
}

fn add_line(pieces: &mut Vec<ReplacedText>, line: &str) {
    if line.starts_with("@@") || line.starts_with("***") || pieces.is_empty() {
        pieces.push(ReplacedText { old: String::new(), new: String::new(), all: false });
    }
    let Some(piece) = pieces.last_mut().filter(|_| !line.starts_with("@@") && !line.starts_with("***")) else { return };
    let text = line.get(1..).unwrap_or_default();
    if !line.starts_with('+') {
        piece.old.extend([text, "\n"]);
    }
    if !line.starts_with('-') {
        piece.new.extend([text, "\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(payload: &str) -> (String, Vec<Touch>) {
        let line = format!(r#"{{"timestamp":"x","type":"event_msg","payload":{payload}}}"#);
        of_record(&Record::of(line.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn patches_are_read_in_both_dialects() {
        let changes = r#"{"/r/a":{"type":"update","unified_diff":"@@ -2,3 +2,2 @@\n one\r\n-two\n-no newline\n\\ No newline at end of file\n+TWO\n","move_path":"/r/b"},"/r/new":{"type":"add","content":"x\n"},"/r/gone":{"type":"delete","content":"y"}}"#;
        let item = record(&format!(
            r#"{{"type":"item_completed","turn_id":"t","item":{{"type":"FileChange","id":"c1","changes":{changes},"status":"completed"}}}}"#
        ));
        let event =
            record(&format!(r#"{{"type":"patch_apply_end","call_id":"c1","success":true,"changes":{changes}}}"#));
        assert_eq!(item, event);
        let (call, touches) = item;
        assert_eq!((call.as_str(), touches.len()), ("c1", 3));
        let hunk = Hunk {
            start: 2,
            old: vec!["one\r\n".into(), "two\n".into(), "no newline".into()],
            new: vec!["one\r\n".into(), "TWO\n".into()],
        };
        assert_eq!(touches[0].change, FileEdit::Hunks(vec![hunk]));
        assert_eq!(touches[0].moved_to.as_deref(), Some("/r/b".as_ref()));
        assert_eq!(touches[1].change, FileEdit::Whole { text: "x\n".into(), keeps_ends: false });
        assert_eq!((&touches[2].before, &touches[2].change), (&Some(Sight::Text("y".into())), &FileEdit::Deleted));
        let failed = record(r#"{"type":"patch_apply_end","call_id":"c2","success":false,"changes":{}}"#);
        assert_eq!(failed, ("c2".into(), Vec::new()));
    }

    #[test]
    fn a_command_is_a_change_a_reading_or_a_suspect() {
        let run = |name: &str, input: Value| Running::of(name, &input).unwrap();
        let script = run("shell", json!({"command": ["bash", "-lc", "cat src/a.rs"], "workdir": "/r"}));
        assert_eq!(script.directory.as_deref(), Some("/r".as_ref()));
        let seen = script.clone().acts("fn a() {}\n", false, false);
        assert!(matches!(&seen[..], [Act::Touch(touch)] if touch.before == Some(Sight::Text("fn a() {}\n".into()))));
        assert!(matches!(&script.acts("a\n…12 tokens truncated…\nb", false, false)[..], [Act::Ran(_)]));
        for command in ["cat a b", "cat -n a", "cat $X", "cat a > b"] {
            assert!(whole_file(command).is_none(), "{command}");
        }
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n+\n*** Update File: b\n*** Move to: c\n@@ fn\n-1\n+2\n 3\n*** Delete File: d\n*** End Patch\n";
        let old = run("apply_patch", json!(patch));
        let acts = old.clone().acts("Success. Updated the following files:\nA a\n", false, false);
        let touches: Vec<&Touch> =
            acts.iter().map(|act| if let Act::Touch(touch) = act { touch } else { panic!() }).collect();
        assert_eq!(touches[0].change, FileEdit::Whole { text: "x\n\n".into(), keeps_ends: false });
        let piece = ReplacedText { old: "1\n3\n".into(), new: "2\n3\n".into(), all: false };
        assert_eq!(touches[1].change, FileEdit::Replaced(vec![piece]));
        assert_eq!((touches[1].moved_to.as_deref(), &touches[2].change), (Some("c".as_ref()), &FileEdit::Deleted));
        assert!(old.acts("verification failed", true, false).is_empty());
        assert!(Running::of("update_plan", &json!({})).is_none());
    }
}
