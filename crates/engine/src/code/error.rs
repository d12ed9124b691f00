//! What can go wrong with the code of an earlier turn.

use std::path::PathBuf;

use transcript::text::one_line;

use crate::advice::{Advice, FileError, wraps};
use crate::{config, operations, program, registry, sessions, workspace};

/// The result of anything about the code of an earlier turn.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about the code of an earlier turn.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The commit of a snapshot was not made by tine, or by a newer one.
    #[error("the snapshot `{}` has an unknown format", one_line(.0))]
    UnknownSnapshot(String),
    /// The working tree at the end of a turn was not recorded.
    #[error("the code of `{session}` at turn {turn} was not recorded")]
    NoCode {
        /// The session.
        session: String,
        /// The turn.
        turn: u32,
    },
    /// A file could not be made what it was.
    #[error("cannot restore `{}`", one_line(&.0.to_string_lossy()))]
    NotRestored(std::path::PathBuf),
    /// The repository that a snapshot was taken in is gone.
    #[error("repository {} not found", .0.display())]
    NoRepository(PathBuf),
    /// An object of a snapshot is gone.
    #[error("object {0} is missing from the repository")]
    ObjectGone(String),
    /// The code of two turns is in different repositories.
    #[error("cannot compare {} with {}: they are different repositories", .one.display(), .other.display())]
    OtherRepository {
        /// One of them.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// The tree has no such path.
    #[error("`{}` did not exist at that turn", one_line(&.0.to_string_lossy()))]
    NoSuchPath(PathBuf),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// The repository.
    #[error(transparent)]
    Workspace(workspace::Error),
    /// The registry.
    #[error(transparent)]
    Registry(registry::Error),
    /// An agent's program.
    #[error(transparent)]
    Program(program::Error),
    /// A session.
    #[error(transparent)]
    Sessions(sessions::Error),
    /// Undoing and the trash.
    #[error(transparent)]
    Operations(operations::Error),
}

wraps!(File, Config, Workspace, Registry, Program, Sessions, Operations);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::UnknownSnapshot(name) => Advice::new(
                "unknown_snapshot",
                format!(
                    "update tine; to delete the snapshot, run `git update-ref -d {}` in its repository",
                    one_line(name)
                ),
            ),
            Error::NoCode { .. } => Advice::new(
                "no_code",
                "`snapshots.enabled = true` in the configuration file records the code of future turns",
            ),
            Error::NotRestored(_) => {
                Advice::new("not_restored", "`--code now` or `--code none` begins with the files as they are now")
            }
            Error::NoRepository(_) => Advice::new("no_repository", "if you moved it, run the command there"),
            Error::ObjectGone(_) => Advice::new("object_gone", "run `git fsck` in the repository"),
            Error::OtherRepository { .. } => {
                Advice::new("other_repository", "restore both with `tine restore --to DIR` and compare the directories")
            }
            Error::NoSuchPath(_) => {
                Advice::new("no_such_path", "check the path; it is relative to the current directory or the repository")
            }
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    crate::advice::samples![
        NotRestored("src/auth.rs".into()),
        UnknownSnapshot("refs/tine/snapshots/claude/0198c3a4-5e6f-7a8b-9c0d-1e2f3a4b5c6d/7-end-00f3".into()),
        NoRepository("/work/app".into()),
        ObjectGone("4b825dc642cb6eb9a060e54bf8d69288fbee4904".into()),
        OtherRepository { one: "/work/app".into(), other: "/work/shop".into() },
        NoSuchPath("src/mian.rs".into()),
        NoCode { session: "auth-fix".into(), turn: 7 };
        wraps File, Config, Workspace, Registry, Program, Sessions, Operations
    ]
}
