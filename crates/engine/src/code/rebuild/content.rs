//! What a file holds, and how changes and records of it apply to that.

use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use agents::{FileEdit, Hunk, ReplacedText, Sight};

/// The largest file that is rebuilt. Agents edit text.
const LARGEST: u64 = 64 << 20;

/// What is believed about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::code) enum Content {
    /// The file does not exist.
    Absent,
    /// Its bytes.
    Bytes(Rc<[u8]>),
    /// It is not known.
    Unknown,
}

impl Content {
    pub(in crate::code) fn of(bytes: Vec<u8>) -> Self {
        Content::Bytes(bytes.into())
    }

    /// What is at a path now. A symbolic link and whatever else is no file is not known.
    pub(in crate::code) fn at(path: &Path) -> Self {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Content::Absent;
            }
            Err(_) => return Content::Unknown,
        };
        if !metadata.is_file() {
            // What was a file may be a folder now.
            return if metadata.is_dir() { Content::Absent } else { Content::Unknown };
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
        match read {
            Ok(count) if count as u64 <= LARGEST => Content::of(bytes),
            _ => Content::Unknown,
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Content::Bytes(bytes) => Some(bytes),
            Content::Absent | Content::Unknown => None,
        }
    }

    /// Whether its lines end as Windows ends them: all, some or none.
    pub(in crate::code) fn line_ends(&self) -> Option<Ends> {
        let bytes = self.bytes()?;
        let all = memchr::memchr_iter(b'\n', bytes).count();
        let windows = memchr::memmem::find_iter(bytes, b"\r\n").count();
        Some(match (windows, all) {
            (0, _) => Ends::Unix,
            (windows, all) if windows == all => Ends::Windows,
            _ => Ends::Mixed,
        })
    }

    /// Whether a record of the file agrees; nothing if the record can't tell.
    pub(in crate::code) fn agrees(&self, sight: &Sight) -> Option<bool> {
        match (self, sight) {
            (Content::Unknown, _) => None,
            (_, Sight::Absent) => Some(*self == Content::Absent),
            (_, Sight::Copy(path)) => match Content::at(path) {
                // The copy was deleted.
                Content::Absent | Content::Unknown => None,
                copy => Some(*self == copy),
            },
            (_, Sight::Text(text) | Sight::Unended(text)) if text.contains('\u{fffd}') => None,
            (Content::Absent, _) => Some(false),
            (Content::Bytes(bytes), Sight::Text(text)) => Some(is_same_text(bytes, text)),
            (Content::Bytes(bytes), Sight::Unended(text)) => {
                let unended =
                    bytes.strip_suffix(b"\n").map_or(&bytes[..], |rest| rest.strip_suffix(b"\r").unwrap_or(rest));
                Some(is_same_text(unended, text) || is_same_text(bytes, text))
            }
        }
    }

    /// What a record says that the file held, with the line ends that it is believed to have.
    pub(in crate::code) fn seen(&self, sight: &Sight) -> Content {
        match sight {
            Sight::Absent => Content::Absent,
            Sight::Copy(path) => match Content::at(path) {
                Content::Absent => Content::Unknown,
                copy => copy,
            },
            Sight::Text(text) if text.contains('\u{fffd}') => Content::Unknown,
            Sight::Text(text) if self.line_ends() == Some(Ends::Windows) => Content::of(to_windows(text).into_bytes()),
            Sight::Text(text) => Content::of(text.clone().into_bytes()),
            // Whether the last line ends is not known.
            Sight::Unended(_) => Content::Unknown,
        }
    }

    /// What a change makes of it.
    pub(in crate::code) fn changed(&self, change: &FileEdit) -> Content {
        let result = match change {
            FileEdit::Nothing => return self.clone(),
            FileEdit::Deleted => return Content::Absent,
            FileEdit::Unknown => None,
            FileEdit::Whole { text, keeps_ends } => Some(match self.line_ends() {
                Some(Ends::Windows) if *keeps_ends => to_windows(text).into_bytes(),
                _ => text.clone().into_bytes(),
            }),
            FileEdit::Replaced(pieces) => self.replaced(pieces),
            FileEdit::Hunks(hunks) => self.patched(hunks),
        };
        result.map_or(Content::Unknown, Content::of)
    }

    /// As Claude Code edits: with `\n` at the ends of all lines, and afterwards the line ends that most of them had.
    fn replaced(&self, pieces: &[ReplacedText]) -> Option<Vec<u8>> {
        let bytes = match self {
            Content::Absent => &[][..],
            Content::Bytes(bytes) => bytes,
            Content::Unknown => return None,
        };
        let whole = std::str::from_utf8(bytes).ok()?;
        let lines = memchr::memchr_iter(b'\n', bytes).count();
        let windows = memchr::memmem::find_iter(bytes, b"\r\n").count();
        let mut text = whole.replace("\r\n", "\n");
        for ReplacedText { old, new, all } in pieces {
            let new = new.replace("\r\n", "\n");
            if old.is_empty() {
                if !text.is_empty() {
                    return None;
                }
                text = new;
            } else if *all {
                text = text.contains(old.as_str()).then(|| text.replace(old.as_str(), &new))?;
            } else {
                let at = text.find(old.as_str())?;
                text.replace_range(at..at + old.len(), &new);
            }
        }
        Some(if windows > lines - windows { to_windows(&text) } else { text }.into_bytes())
    }

    /// The hunks, exactly where they say. Their lines may have other line ends than the file's.
    fn patched(&self, hunks: &[Hunk]) -> Option<Vec<u8>> {
        let bytes = match self {
            Content::Absent => &[][..],
            Content::Bytes(bytes) => bytes,
            Content::Unknown => return None,
        };
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mut result = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for Hunk { start, old, new } in hunks {
            let from = if old.is_empty() { (*start).min(lines.len()) } else { start.checked_sub(1)? };
            let here = lines.get(from..from + old.len()).filter(|_| from >= at)?;
            let is_exact = here.iter().zip(old).all(|(line, old)| *line == old.as_bytes());
            let adapts = !is_exact && self.line_ends() == Some(Ends::Windows);
            let fits = |(line, old): (&&[u8], &String)| {
                line.strip_suffix(b"\r\n") == old.strip_suffix('\n').map(str::as_bytes)
            };
            let fits_all = is_exact || (adapts && here.iter().zip(old).all(fits));
            if !fits_all {
                return None;
            }
            result.extend(lines[at..from].iter().flat_map(|line| line.iter().copied()));
            for line in new {
                let line = if adapts { to_windows(line) } else { line.clone() };
                result.extend(line.into_bytes());
            }
            at = from + old.len();
        }
        result.extend(lines[at..].iter().flat_map(|line| line.iter().copied()));
        Some(result)
    }

    /// What it was before a change, if the change tells.
    pub(in crate::code) fn before(&self, change: &FileEdit) -> Content {
        let FileEdit::Hunks(hunks) = change else { return Content::Unknown };
        let mut moved = 0isize;
        let back = hunks.iter().map(|Hunk { start, old, new }| {
            let first = if old.is_empty() { *start + 1 } else { *start };
            let first = usize::try_from(first as isize + moved).unwrap_or(0);
            moved += new.len() as isize - old.len() as isize;
            Hunk {
                start: if new.is_empty() { first.saturating_sub(1) } else { first },
                old: new.clone(),
                new: old.clone(),
            }
        });
        let back: Vec<Hunk> = back.collect();
        self.patched(&back).map_or(Content::Unknown, Content::of)
    }
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::code) enum Ends {
    Unix,
    Windows,
    Mixed,
}

/// Whether bytes are a text, apart from line ends and a byte order mark.
fn is_same_text(bytes: &[u8], text: &str) -> bool {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let plain = |bytes: &[u8]| -> Vec<u8> {
        let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
        let mut plain = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
            plain.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
        }
        plain.extend_from_slice(rest);
        plain
    };
    bytes == text.as_bytes() || plain(bytes) == plain(text.as_bytes())
}

fn to_windows(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        Content::of(text.as_bytes().to_vec())
    }

    fn piece(old: &str, new: &str, all: bool) -> FileEdit {
        FileEdit::Replaced(vec![ReplacedText { old: old.into(), new: new.into(), all }])
    }

    fn hunk(start: usize, old: &[&str], new: &[&str]) -> Hunk {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Hunk { start, old: lines(old), new: lines(new) }
    }

    #[test]
    fn edits_keep_the_line_ends_of_most_lines() {
        let check = |before: &str, change: &FileEdit, after: &str| {
            assert_eq!(content(before).changed(change), content(after), "{before:?} {change:?}");
        };
        check("one\r\ntwo\r\n", &piece("two", "TWO\nx", false), "one\r\nTWO\r\nx\r\n");
        check("one\r\ntwo\nthree\nfour\r\n", &piece("two", "TWO", false), "one\nTWO\nthree\nfour\n");
        check("\u{feff}a a", &piece("a", "b", true), "\u{feff}b b");
        check("", &piece("", "new\n", false), "new\n");
        assert_eq!(content("x").changed(&piece("y", "z", false)), Content::Unknown);
        assert_eq!(Content::Absent.changed(&piece("", "new\n", false)), content("new\n"));
    }

    #[test]
    fn hunks_apply_where_they_say_and_back() {
        let check = |before: &str, hunks: &[Hunk], after: &str| {
            let change = FileEdit::Hunks(hunks.to_vec());
            assert_eq!(content(before).changed(&change), content(after), "{before:?} {hunks:?}");
            assert_eq!(content(after).before(&change), content(before), "{after:?} {hunks:?}");
        };
        check("a\nb\nc\n", &[hunk(2, &["b\n"], &["B\n", "x\n"])], "a\nB\nx\nc\n");
        check("a\nb\nc", &[hunk(1, &["a\n"], &[]), hunk(3, &["c"], &["c\n", "d"])], "b\nc\nd");
        check("a\n", &[hunk(1, &[], &["b\n"])], "a\nb\n");
        check("a\nb\n", &[hunk(0, &[], &["0\n"]), hunk(2, &["b\n"], &["B\n"])], "0\na\nB\n");
        let wrong = FileEdit::Hunks(vec![hunk(1, &["b\n"], &["c\n"])]);
        assert_eq!(content("a\nb\n").changed(&wrong), Content::Unknown);
    }

    #[test]
    fn records_agree_apart_from_what_the_client_leaves_out() {
        let text = |text: &str| Sight::Text(text.into());
        let check = |content: &Content, sight: &Sight, expected: Option<bool>| {
            assert_eq!(content.agrees(sight), expected, "{content:?} {sight:?}");
        };
        check(&content("a\r\nb\r\n"), &text("a\nb\n"), Some(true));
        check(&content("\u{feff}a\n"), &text("a\n"), Some(true));
        check(&content("a\nb"), &text("a\nb\n"), Some(false));
        check(&content("a\nb\n"), &Sight::Unended("a\nb".into()), Some(true));
        check(&content("caf\u{e9}"), &text("caf\u{fffd}"), None);
        check(&Content::Absent, &Sight::Absent, Some(true));
        check(&Content::Unknown, &Sight::Absent, None);
        check(&content(""), &Sight::Absent, Some(false));
    }
}
