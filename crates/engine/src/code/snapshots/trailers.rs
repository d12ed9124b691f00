//! The message of a snapshot's commit: a line for people, and trailers for tine.
//!
//! Paths are bytes, and a trailer is one line of text, so all but the plain characters of a path are percent-encoded.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A file or folder that a snapshot lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path in the working tree.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why a snapshot lacks a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is larger than `snapshots.max_file_size`.
    Large,
    /// Its name says that it holds a secret.
    Secret,
    /// It is a repository of its own, but not a submodule.
    Repository,
    /// It could not be read.
    Unreadable,
    /// git refuses its name.
    Name,
    /// It is outside the working tree.
    Outside,
    /// What it held is not known.
    Unknown,
}

impl Reason {
    const ALL: [Reason; 7] = [
        Reason::Large,
        Reason::Secret,
        Reason::Repository,
        Reason::Unreadable,
        Reason::Name,
        Reason::Outside,
        Reason::Unknown,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Large => "large",
            Reason::Secret => "secret",
            Reason::Repository => "repository",
            Reason::Unreadable => "unreadable",
            Reason::Name => "name",
            Reason::Outside => "outside",
            Reason::Unknown => "unknown",
        }
    }
}

/// What a snapshot's commit says besides its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trailers {
    /// The top of the working tree.
    pub worktree: PathBuf,
    /// The commit that was checked out.
    pub head: Option<String>,
    pub left_out: Vec<LeftOut>,
}

const WORKTREE: &str = "Tine-Worktree";
const HEAD: &str = "Tine-Head";
const LEFT_OUT: &str = "Tine-Left-Out";

impl Trailers {
    /// The message, below `subject`.
    pub(super) fn write(&self, subject: &str) -> String {
        let mut text = format!("{subject}\n\n{WORKTREE}: {}\n", encode(&self.worktree));
        if let Some(head) = &self.head {
            writeln!(text, "{HEAD}: {head}").expect("text grows");
        }
        for LeftOut { path, reason } in &self.left_out {
            writeln!(text, "{LEFT_OUT}: {} {}", reason.as_str(), encode(path)).expect("text grows");
        }
        text
    }

    /// The message in `text`; `None` if tine didn't write it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (_, trailers) = text.split_once("\n\n")?;
        let (mut worktree, mut head, mut left_out) = (None, None, Vec::new());
        for line in trailers.lines() {
            let (label, value) = line.split_once(": ")?;
            match label {
                WORKTREE => worktree = Some(decode(value)?),
                HEAD => head = Some(value.to_owned()),
                LEFT_OUT => {
                    let (word, path) = value.split_once(' ')?;
                    let reason = Reason::ALL.into_iter().find(|reason| reason.as_str() == word)?;
                    left_out.push(LeftOut { path: decode(path)?, reason });
                }
                // A newer tine may say more.
                _ => {}
            }
        }
        Some(Trailers { worktree: worktree?, head, left_out })
    }
}

/// A path as plain text without spaces.
fn encode(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
    path.as_os_str().as_encoded_bytes().iter().fold(String::new(), |mut text, byte| {
        match is_plain(*byte) {
            true => text.push(*byte as char),
            false => write!(text, "%{byte:02x}").expect("text grows"),
        }
        text
    })
}

fn decode(text: &str) -> Option<PathBuf> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    Some(to_path(&bytes))
}

#[cfg(unix)]
fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn to_path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let left_out = |path: &[u8], reason| LeftOut { path: to_path(path), reason };
        let message = Trailers {
            worktree: "/work/a b/100%\nof it".into(),
            head: Some("0123".into()),
            left_out: vec![
                left_out(b".env", Reason::Secret),
                left_out(b"\xff\xfe: x\n\nTine-Head: 1", Reason::Name),
                left_out("größe".as_bytes(), Reason::Large),
            ],
        };
        let text = message.write("End of turn 3");
        assert_eq!(Trailers::read(&text), Some(message), "{text}");
        let message = Trailers { worktree: "/work".into(), head: None, left_out: Vec::new() };
        assert_eq!(message.write("x"), "x\n\nTine-Worktree: /work\n");
        assert_eq!(Trailers::read("x\n\nTine-Worktree: /work\nTine-Later: what\n"), Some(message));
        for foreign in ["", "x", "x\n\nTine-Head: 1\n", "x\n\nno trailer", "x\n\nTine-Worktree: %zz\n"] {
            assert_eq!(Trailers::read(foreign), None, "{foreign:?}");
        }
    }
}
