//! What tools did to files, as the client records it in `toolUseResult` next to each result.
//!
//! What 2.1.197 and 2.1.325 do: `Write` writes its text as it is. `Edit` replaces all line ends by `\n`, edits, and writes the
//! line ends that most lines had before; `originalFile` is what it edited. `newString` is not always what was written (the
//! client adapts quotation marks), but `structuredPatch` is, apart from tabs at the beginning of a line, each of which is two
//! spaces there. `Read` also drops a byte order mark. See docs/formats/claude-code.md.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::words::string;
use crate::acts::{Act, FileEdit, Hunk, Ran, ReplacedText, Sight, Touch};
use crate::fields::Raw;

/// What a tool's result says about files. `command` is what a shell or an unknown tool was asked for.
pub(super) fn of_result(result: Option<Raw<'_>>, command: Option<String>) -> Vec<Act> {
    let Some(result) = result.filter(|result| result.0.starts_with(b"{")) else {
        // A command that failed may have done something before.
        return command.map(|command| ran(command, false)).into_iter().collect();
    };
    if let Some(command) = command {
        let Some(diff) = result.get(b"bashEditDiff") else {
            return vec![ran(command, false)];
        };
        let mut acts = vec![ran(command, true)];
        acts.extend(reported(diff).into_iter().map(Act::Touch));
        return acts;
    }
    touch(result).map(Act::Touch).into_iter().collect()
}

pub(super) fn ran(command: String, is_reported: bool) -> Act {
    Act::Ran(Ran { command, is_reported })
}

fn touch(result: Raw<'_>) -> Option<Touch> {
    if let Some(file) = result.get(b"file") {
        return read(result, file);
    }
    let text = |key: &[u8]| result.get(key).and_then(Raw::string).map(|text| text.into_owned());
    if let Some(path) = text(b"notebook_path") {
        if text(b"error").is_some_and(|error| !error.is_empty()) {
            return None;
        }
        let change = text(b"updated_file")
            .map_or(FileEdit::Unknown, |text| FileEdit::Whole { keeps_ends: text.contains('\n'), text });
        let before = text(b"original_file").map(Sight::Text);
        return Some(Touch { before, ..Touch::new(path.into(), change) });
    }
    let path = PathBuf::from(text(b"filePath")?);
    let hunks = result.get(b"structuredPatch").map(hunks).unwrap_or_default();
    let original = result.get(b"originalFile");
    if let Some(content) = text(b"content") {
        let before = match text(b"originalFile") {
            Some(text) => Some(Sight::Text(text)),
            // Only a new file has this type; an empty one that existed has a text.
            None => (text(b"type").as_deref() == Some("create")).then_some(Sight::Absent),
        };
        return Some(Touch { before, ..Touch::new(path, FileEdit::Whole { text: content, keeps_ends: false }) });
    }
    original?;
    let edits: Vec<ReplacedText> = match result.get(b"edits") {
        Some(edits) => edits.elements().filter_map(replacement).collect(),
        None => replacement(result).into_iter().collect(),
    };
    if edits.is_empty() {
        return None;
    }
    let before = text(b"originalFile");
    // The client says the same of an empty file as of none.
    let sight = before.clone().filter(|text| !text.is_empty()).map(Sight::Text);
    let change = match before.as_deref().and_then(|before| edited(before, &edits)) {
        Some(after) if fits(before.as_deref().unwrap_or_default(), &after, &hunks) => FileEdit::Replaced(edits),
        // What was written differs from what was asked for.
        _ => patched(before.as_deref(), hunks),
    };
    Some(Touch { before: sight, ..Touch::new(path, change) })
}

/// The text after replacements, if each of them is possible.
fn edited(before: &str, edits: &[ReplacedText]) -> Option<String> {
    let mut text = before.to_owned();
    for ReplacedText { old, new, all } in edits {
        if old.is_empty() {
            if !text.is_empty() {
                return None;
            }
            text.clone_from(new);
        } else if !text.contains(old.as_str()) {
            return None;
        } else if *all {
            text = text.replace(old.as_str(), new);
        } else {
            text = text.replacen(old.as_str(), new, 1);
        }
    }
    Some(text)
}

/// Whether a patch makes one text of the other, where it may write tabs as spaces.
fn fits(before: &str, after: &str, hunks: &[Hunk]) -> bool {
    let (before, after) = (untabbed(before), untabbed(after));
    apply(&before, hunks).is_some_and(|patched| patched == after)
}

/// The patch as the change, if nothing that matters is written in another way in it.
fn patched(before: Option<&str>, hunks: Vec<Hunk>) -> FileEdit {
    let mut lines = hunks.iter().flat_map(|hunk| &hunk.new);
    let is_plain = lines.all(|line| !line.starts_with("  ")) && !hunks.is_empty();
    match before {
        Some(before) if is_plain && apply(before, &hunks).is_some() => FileEdit::Hunks(hunks),
        _ => FileEdit::Unknown,
    }
}

/// A text with hunks applied, exactly where they say.
fn apply(text: &str, hunks: &[Hunk]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for Hunk { start, old, new } in hunks {
        let from = if old.is_empty() { (*start).min(lines.len()) } else { start.checked_sub(1)? };
        let to = from + old.len();
        if from < at || lines.get(from..to)?.iter().zip(old).any(|(line, old)| line != old) {
            return None;
        }
        result.extend(lines[at..from].iter().copied());
        result.extend(new.iter().map(String::as_str));
        at = to;
    }
    result.extend(lines[at..].iter().copied());
    Some(result)
}

/// Tabs at the beginning of lines as the client writes them in a patch.
fn untabbed(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches('\t');
        plain.extend(std::iter::repeat_n("  ", line.len() - rest.len()));
        plain.push_str(rest);
    }
    plain
}

fn replacement(edit: Raw<'_>) -> Option<ReplacedText> {
    let either = |one: &[u8], other: &[u8]| string(edit.get(one).or_else(|| edit.get(other)));
    let all = edit.get(b"replaceAll").or_else(|| edit.get(b"replace_all")).is_some_and(Raw::is_true);
    Some(ReplacedText { old: either(b"oldString", b"old_string")?, new: either(b"newString", b"new_string")?, all })
}

/// A whole file that was read.
fn read(result: Raw<'_>, file: Raw<'_>) -> Option<Touch> {
    if result.get(b"type").and_then(Raw::plain) != Some(b"text") {
        return None;
    }
    let number = |key: &[u8]| file.get(key).and_then(Raw::number);
    let is_whole = number(b"startLine") == Some(1) && number(b"numLines") == number(b"totalLines");
    let text = file.get(b"content").and_then(Raw::string).filter(|_| is_whole)?.into_owned();
    let lines = text.matches('\n').count() as u64 + 1;
    // Before 2.1 the last line break was left out.
    let sight = match number(b"totalLines") {
        Some(total) if total == lines => Sight::Text(text),
        _ => Sight::Unended(text),
    };
    let path = string(file.get(b"filePath"))?;
    Some(Touch { before: Some(sight), ..Touch::new(path.into(), FileEdit::Nothing) })
}

fn hunks(patch: Raw<'_>) -> Vec<Hunk> {
    patch.elements().filter_map(hunk).collect()
}

fn hunk(hunk: Raw<'_>) -> Option<Hunk> {
    let start = usize::try_from(hunk.get(b"oldStart")?.number()?).ok()?;
    let lines: Vec<String> = hunk.get(b"lines")?.parse()?;
    Some(Hunk::of_lines(start, lines.iter().map(String::as_str)))
}

/// The files that a command changed, according to the client: git repositories only, without ignored files, the first five
/// with their differences.
fn reported(diff: Raw<'_>) -> Vec<Touch> {
    let mut touches: Vec<Touch> = Vec::new();
    for file in diff.get(b"files").into_iter().flat_map(Raw::elements) {
        let Some(path) = string(file.get(b"filePath")).map(PathBuf::from) else { continue };
        let hunks = file.get(b"hunks").map(hunks).unwrap_or_default();
        let is = |key: &[u8]| file.get(key).is_some_and(Raw::is_true);
        let change = if is(b"deleted") {
            FileEdit::Deleted
        } else if is(b"created") && !hunks.is_empty() {
            // Its line ends and tabs are not to be relied on.
            FileEdit::Hunks(hunks)
        } else if hunks.is_empty() || hunks.iter().flat_map(|hunk| &hunk.new).any(|line| line.starts_with("  ")) {
            FileEdit::Unknown
        } else {
            FileEdit::Hunks(hunks)
        };
        let before = is(b"created").then_some(Sight::Absent);
        touches.push(Touch { before, ..Touch::new(path, change) });
    }
    for path in diff.get(b"changedFiles").into_iter().flat_map(Raw::elements).filter_map(|path| string(Some(path))) {
        if !touches.iter().any(|touch| touch.path == Path::new(&path)) {
            touches.push(Touch::new(path.into(), FileEdit::Unknown));
        }
    }
    touches
}

/// What a call asks a shell for, or any other tool that may write files and doesn't record how.
pub(super) fn command_of(name: &str, input: &Value) -> Option<String> {
    match name {
        "Bash" | "PowerShell" => Some(input["command"].as_str().unwrap_or_default().to_owned()),
        _ if name.starts_with("mcp__") => Some(format!("{name} {input}")),
        _ => None,
    }
}

/// The files that the client had backed up when a prompt came, with their backups: whole copies, from before the prompt.
pub(super) fn backups(snapshot: Raw<'_>, folder: &Path) -> Vec<Touch> {
    let files = snapshot.get(b"trackedFileBackups").into_iter().flat_map(Raw::fields);
    let touches = files.filter_map(|(path, backup)| {
        let path: String = Raw(&[b"\"", path, b"\""].concat()).string()?.into_owned();
        let sight = match string(backup.get(b"backupFileName")) {
            None => Sight::Absent,
            Some(name) => Sight::Copy(folder.join(is_plain(&name).then_some(name)?)),
        };
        Some(Touch { before: Some(sight), ..Touch::new(path.into(), FileEdit::Nothing) })
    });
    touches.collect()
}

/// Whether it is the bare name of a file, so that no transcript makes tine read another one.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(result: &str) -> Touch {
        match of_result(Some(Raw(result.as_bytes())), None).pop() {
            Some(Act::Touch(touch)) => touch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_edit_is_what_the_patch_says_if_quotation_marks_were_adapted() {
        let plain = only(
            r#"{"filePath":"/a","oldString":"two","newString":"TWO\nx","originalFile":"\tone\n\ttwo\nlast","structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":4,"lines":["   one","-  two","+  TWO","+x"," last","\\ No newline at end of file"]}],"userModified":false,"replaceAll":false}"#,
        );
        assert_eq!(plain.before, Some(Sight::Text("\tone\n\ttwo\nlast".into())));
        assert!(matches!(&plain.change, FileEdit::Replaced(edits) if edits.len() == 1), "{plain:?}");
        assert_eq!(plain.lines(), (2, 1));
        let adapted = only(
            r#"{"filePath":"/a","oldString":"say “hi”","newString":"say \"ho\"","originalFile":"say “hi”\n","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-say “hi”","+say “ho”"]}]}"#,
        );
        let expected = Hunk { start: 1, old: vec!["say “hi”\n".into()], new: vec!["say “ho”\n".into()] };
        assert_eq!(adapted.change, FileEdit::Hunks(vec![expected]));
        let unclear = only(
            r#"{"filePath":"/a","oldString":"x “hi”","newString":"\t\"ho\"","originalFile":"x “hi”\n","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-x “hi”","+  “ho”"]}]}"#,
        );
        assert_eq!(unclear.change, FileEdit::Unknown, "a tab or two spaces");
    }

    #[test]
    fn whole_files_are_seen_and_parts_are_not() {
        let read = |lines: u32, total: u32, content: &str| {
            format!(
                r#"{{"type":"text","file":{{"filePath":"/a","content":"{content}","numLines":{lines},"startLine":1,"totalLines":{total}}}}}"#
            )
        };
        assert_eq!(only(&read(3, 3, "a\\nb\\n")).before, Some(Sight::Text("a\nb\n".into())));
        assert_eq!(only(&read(2, 2, "a\\nb")).before, Some(Sight::Text("a\nb".into())));
        assert!(of_result(Some(Raw(read(2, 3, "a\\nb").as_bytes())), None).is_empty());
        let unchanged = br#"{"type":"file_unchanged","file":{"filePath":"/a"}}"#;
        assert!(of_result(Some(Raw(unchanged)), None).is_empty());
        let created =
            only(r#"{"type":"create","filePath":"/a","content":"x","structuredPatch":[],"originalFile":null}"#);
        assert_eq!(created.before, Some(Sight::Absent));
        let empty = only(
            r#"{"filePath":"/a","oldString":"","newString":"x\n","originalFile":"","structuredPatch":[{"oldStart":1,"oldLines":0,"newStart":1,"newLines":1,"lines":["+x"]}]}"#,
        );
        assert!(empty.before.is_none() && matches!(empty.change, FileEdit::Replaced(_)), "{empty:?}");
        assert!(of_result(Some(Raw(br#""Error: no""#)), None).is_empty());
    }

    #[test]
    fn commands_are_kept_with_what_the_client_noticed() {
        let acts = of_result(
            Some(Raw(
                br#"{"stdout":"","bashEditDiff":{"files":[{"filePath":"/r/a","hunks":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-a","+b"]}]},{"filePath":"/r/b","hunks":[],"deleted":true}],"moreFiles":1,"changedFiles":["/r/a","/r/b","/r/c"]}}"#,
            )),
            Some("sed -i s/a/b/ a".into()),
        );
        let touches: Vec<(&str, bool)> = acts
            .iter()
            .filter_map(|act| match act {
                Act::Touch(touch) => Some((touch.path.to_str().unwrap(), touch.change == FileEdit::Unknown)),
                Act::Ran(ran) => {
                    assert!(ran.is_reported);
                    None
                }
            })
            .collect();
        assert_eq!(touches, [("/r/a", false), ("/r/b", false), ("/r/c", true)]);
        let failed = of_result(Some(Raw(br#""Error: Exit code 3""#)), Some("false".into()));
        assert_eq!(failed, [ran("false".into(), false)]);
    }

    #[test]
    fn backups_are_only_in_the_sessions_own_folder() {
        let snapshot = br#"{"trackedFileBackups":{"a \"b\".txt":{"backupFileName":"75f2@v1"},"new.txt":{"backupFileName":null},"evil":{"backupFileName":"../x"}}}"#;
        let found = backups(Raw(snapshot), Path::new("/history"));
        let found: Vec<(&str, &Sight)> =
            found.iter().map(|touch| (touch.path.to_str().unwrap(), touch.before.as_ref().unwrap())).collect();
        assert_eq!(found, [("a \"b\".txt", &Sight::Copy("/history/75f2@v1".into())), ("new.txt", &Sight::Absent)]);
    }
}
