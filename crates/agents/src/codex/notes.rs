//! Names that people gave to threads, from `session_index.jsonl`.

use std::fs::File;
use std::io;
use std::path::Path;

use transcript::SessionId;

use crate::fields::Raw;
use crate::lines::LineReader;
use crate::{Notes, TitleChange};

/// The file, in Codex's folder.
pub(super) const FILE: &str = "session_index.jsonl";

/// Removes the lines of an undone name, and of the one that Codex got instead. Lines for other threads stay; the last
/// line of a thread counts.
pub(super) fn remove_title(id: &SessionId, taken: &TitleChange<'_>, instead: &str) -> io::Result<()> {
    // Codex 0.166 holds this while it adds a line.
    let lock = File::open(taken.mark.file.with_extension("jsonl.lock"));
    if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err()) {
        return Ok(());
    }
    let is_ours = |line: &[u8]| {
        let entry: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        entry["id"] == id.as_str() && (entry["thread_name"] == taken.title || entry["thread_name"] == instead)
    };
    taken.mark.cut_back(is_ours).map(drop)
}

/// Reads the names. A line is added at each naming, so the last one of a thread counts; an empty name takes it away.
pub(super) fn read(root: &Path) -> Notes {
    let mut notes = Notes::default();
    let Ok(mut lines) = LineReader::open(&root.join(FILE), 0, None) else {
        return notes;
    };
    while let Ok(Some(line)) = lines.next_line() {
        let Some(entry) = line.bytes.map(Raw) else {
            continue;
        };
        let id = entry.get(b"id").and_then(Raw::string).and_then(|id| SessionId::new(id).ok());
        let name = entry.get(b"thread_name").and_then(Raw::string);
        match (id, name) {
            (Some(id), Some(name)) if name.trim().is_empty() => {
                notes.titles.remove(&id);
            }
            (Some(id), Some(name)) => {
                notes.titles.insert(id, name.trim().to_owned());
            }
            _ => {}
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_counts_and_garbage_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let lines = concat!(
            r#"{"id":"a","thread_name":"first","updated_at":"2026-11-15T20:47:02Z"}"#,
            "\ngarbage\n\n{\"id\":7}\n\u{0}\n",
            r#"{"id":"b","thread_name":"my \"name\"","updated_at":""}"#,
            "\r\n",
            r#"{"id":"a","thread_name":"second"}"#,
            "\n",
            r#"{"id":"c","thread_name":"gone"}"#,
            "\n",
            r#"{"id":"c","thread_name":""}"#,
            "\n",
            r#"{"id":"../x","thread_name":"not an id"}"#,
            "\n",
            r#"{"id":"d","thread_na"#,
        );
        std::fs::write(folder.path().join("session_index.jsonl"), lines).unwrap();
        let mut titles: Vec<(String, String)> =
            read(folder.path()).titles.into_iter().map(|(id, title)| (id.to_string(), title)).collect();
        titles.sort();
        let expected = [("a", "second"), ("b", "my \"name\"")].map(|(id, title)| (id.to_owned(), title.to_owned()));
        assert_eq!(titles, expected);
        assert!(read(&folder.path().join("nowhere")).titles.is_empty());
    }
}
