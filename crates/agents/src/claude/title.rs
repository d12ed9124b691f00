//! Titles given by users, as `custom-title` records in the transcript.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use transcript::SessionId;

use crate::TitleChange;

/// Appends a title to a transcript, as the client itself does; the last one counts.
pub(super) fn set_title(id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
    let record = serde_json::json!({ "type": "custom-title", "customTitle": title, "sessionId": id });
    let mut file = fs::OpenOptions::new().append(true).read(true).open(path)?;
    // A truncated last line must not swallow the title. A single write, because the client may be writing, too.
    let begins = if ends_with_line_break(&mut file)? { "" } else { "\n" };
    file.write_all(format!("{begins}{record}\n").as_bytes())
}

/// Removes the title if nothing was written after it. Otherwise appends the previous title, or an empty one, which Claude
/// Code treats as none (2.1.197 and 2.1.325).
pub(super) fn restore_title(id: &SessionId, path: &Path, change: &TitleChange<'_>) -> io::Result<()> {
    let is_ours = |line: &[u8]| {
        let record: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        record["type"] == "custom-title" && record["customTitle"] == change.title && record["sessionId"] == id.as_str()
    };
    if change.mark.file == path && !change.is_open && change.mark.cut_back(is_ours)? {
        return Ok(());
    }
    set_title(id, path, change.old.unwrap_or_default())
}

fn ends_with_line_break(file: &mut fs::File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
