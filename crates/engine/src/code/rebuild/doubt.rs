//! Why a file may have been different.

use transcript::text::one_line;

/// Why a file's content is not sure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
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
