//! How sure tine is of a file.

use std::path::PathBuf;

use serde::Serialize;
use transcript::text::one_line;

/// How sure a file's content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum FileVerdict {
    /// It was seen with this content before and after the end of the turn.
    Exact,
    /// Every recorded edit applied cleanly, and the result is what was seen later.
    Consistent,
    /// It may have been changed in between.
    Doubtful(Doubt),
    /// Nothing tells what it held.
    Unknown(Doubt),
}

/// Why a file's content is not sure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Doubt {
    /// A command may have changed it.
    Command {
        /// The command.
        command: String,
        /// The turn in which it ran.
        turn: u32,
    },
    /// It is another one than it was after this turn, and the session did not change it.
    ChangedSince {
        /// The turn in which the session last knew it; 0 before the first.
        turn: u32,
    },
    /// Nothing that was recorded later tells whether it stayed as it was after this turn.
    Unconfirmed {
        /// The turn.
        turn: u32,
    },
    /// An edit does not fit what the file should have held.
    Misfit {
        /// The turn in which the session last knew it.
        turn: u32,
    },
    /// It is not committed, and the session did nothing with it.
    Untracked,
    /// It is a symbolic link.
    Link,
}

/// A file at the end of a turn, with how sure that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedFile {
    /// Its path in the working tree.
    pub path: PathBuf,
    /// How sure it is.
    #[serde(flatten)]
    pub verdict: FileVerdict,
}

impl FileVerdict {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            FileVerdict::Exact => "exact",
            FileVerdict::Consistent => "consistent",
            FileVerdict::Doubtful(_) => "doubtful",
            FileVerdict::Unknown(_) => "unknown",
        }
    }

    /// Why it is not sure.
    pub fn doubt(&self) -> Option<&Doubt> {
        match self {
            FileVerdict::Doubtful(doubt) | FileVerdict::Unknown(doubt) => Some(doubt),
            FileVerdict::Exact | FileVerdict::Consistent => None,
        }
    }
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// A command is shown up to this length.
        const SHOWN: usize = 40;
        match self {
            Doubt::Command { command, turn } => {
                let line = one_line(command.trim());
                let short = transcript::text::prefix(&line, SHOWN);
                let dots = if short.len() < line.len() { "…" } else { "" };
                write!(f, "`{short}{dots}` in turn {turn}")
            }
            Doubt::ChangedSince { turn: 0 } => f.write_str("changed outside the session"),
            Doubt::ChangedSince { turn } => write!(f, "changed outside the session after turn {turn}"),
            Doubt::Unconfirmed { turn } => write!(f, "no record after turn {turn} confirms it"),
            Doubt::Misfit { turn } => write!(f, "an edit after turn {turn} doesn't fit"),
            Doubt::Untracked => f.write_str("untracked"),
            Doubt::Link => f.write_str("symbolic link"),
        }
    }
}
