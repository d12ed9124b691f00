//! Adds titles to an agent's files, and removes them without a trace.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// If more than this follows, it is not searched for titles: the session has been continued since.
const LONGEST_TAIL: u64 = 64 << 10;

/// Where the file ended to which an agent adds titles, before tine added one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleMark {
    /// The file.
    pub file: PathBuf,
    /// Its size and modification time in nanoseconds. `None` if it didn't exist.
    pub end: Option<(u64, i64)>,
}

/// A title to remove.
#[derive(Debug, Clone, Copy)]
pub struct TitleChange<'a> {
    /// How the file stood before.
    pub mark: &'a TitleMark,
    /// The title that was added.
    pub title: &'a str,
    /// The previous title, if the session had one.
    pub old: Option<&'a str>,
    /// Whether an agent has the session open, so that its file must not become shorter.
    pub is_open: bool,
}

impl TitleMark {
    /// Records the state of a file.
    pub fn of(file: PathBuf) -> Self {
        let end = fs::metadata(&file).ok().map(|metadata| (metadata.len(), crate::files::stamp(&metadata).modified));
        TitleMark { file, end }
    }

    /// Makes the file what it was, if every line that was added since is one of ours. False where others have added
    /// something: then nothing is touched.
    pub(crate) fn cut_back(&self, is_ours: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        let mut file = match OpenOptions::new().read(true).write(true).open(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            other => other?,
        };
        let (end, modified) = self.end.unwrap_or_default();
        let size = file.metadata()?.len();
        if size < end || size - end > LONGEST_TAIL {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(end))?;
        let mut tail = Vec::new();
        file.by_ref().take(LONGEST_TAIL + 1).read_to_end(&mut tail)?;
        let mut lines = tail.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        if !lines.all(is_ours) || file.metadata()?.len() != end + tail.len() as u64 {
            return Ok(false);
        }
        if self.end.is_none() {
            return fs::remove_file(&self.file).map(|()| true);
        }
        if !tail.is_empty() {
            file.set_len(end)?;
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(u64::try_from(modified).unwrap_or(0)))?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_what_was_added_by_us_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let check = |before: Option<&str>, after: &str, expected: bool| {
            let _ = fs::remove_file(&path);
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            let mark = TitleMark::of(path.clone());
            let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
            file.write_all(after.as_bytes()).unwrap();
            assert_eq!(mark.cut_back(|line| line == b"ours").unwrap(), expected, "{before:?} {after:?}");
            if expected {
                assert_eq!(fs::read_to_string(&path).ok().as_deref(), before);
                assert_eq!(TitleMark::of(path.clone()), mark);
            } else {
                assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}{after}", before.unwrap_or_default()));
            }
        };
        check(Some("one\n"), "ours\n", true);
        check(Some("cut o"), "\nours\n", true);
        check(Some("one\n"), "", true);
        check(None, "ours\nours\n", true);
        check(Some("one\n"), "ours\ntwo\n", false);
        check(Some("one\n"), "two\nours\n", false);
        check(None, "two\n", false);
    }
}
