//! The message of a snapshot's commit: a line for people, and trailers for tine.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::workspace::encoded::{decode, encode};

/// A file or folder that a snapshot lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Its path in the working tree.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why a snapshot lacks a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
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
    /// It is a submodule, of which only the commit is known.
    Submodule,
    /// It is outside the working tree.
    Outside,
    /// What it held is not known.
    Unknown,
}

impl Reason {
    const ALL: [Reason; 8] = [
        Reason::Large,
        Reason::Secret,
        Reason::Repository,
        Reason::Unreadable,
        Reason::Name,
        Reason::Submodule,
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
            Reason::Submodule => "submodule",
        }
    }
}

/// A path in JSON is for people.
fn as_text<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn to_path(bytes: &[u8]) -> PathBuf {
        String::from_utf8(bytes.to_vec())
            .map_or_else(|_| decode("%ff%fe:%20x%0a%0aTine-Head:%201").expect("a path"), PathBuf::from)
    }

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
