//! Titles, which the client keeps as the `summary` of a session.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::history::is_old;
use crate::TitleChange;

/// Appends a title to a chat file, as the client itself does; the last one counts.
pub(super) fn set_title(path: &Path, title: &str) -> io::Result<()> {
    if is_old(path) {
        let message = "the session is in the format of an old version; resume it once to convert it";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let record = json!({ "$set": { "summary": title } });
    let mut file = fs::OpenOptions::new().append(true).read(true).open(path)?;
    // A truncated last line must not swallow the title. A single write, because the client may be writing, too.
    let begins = if ends_with_line_break(&mut file)? { "" } else { "\n" };
    file.write_all(format!("{begins}{record}\n").as_bytes())
}

/// Removes the title if nothing was written after it. Otherwise appends the previous title, or an empty one, which the
/// client treats as none.
pub(super) fn restore_title(path: &Path, change: &TitleChange<'_>) -> io::Result<()> {
    let is_ours = |line: &[u8]| {
        let record: Value = serde_json::from_slice(line).unwrap_or_default();
        record == json!({ "$set": { "summary": change.title } })
    };
    if change.mark.file == path && !change.is_open && change.mark.cut_back(is_ours)? {
        return Ok(());
    }
    set_title(path, change.old.unwrap_or_default())
}

fn ends_with_line_break(file: &mut fs::File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
