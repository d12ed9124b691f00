//! What can go wrong with the registry.

use std::io;
use std::path::PathBuf;

use transcript::SessionName;

use crate::advice::Advice;

/// The result of anything in the registry.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the registry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened or used.
    #[error("cannot use the registry {}: {message}", .path.display())]
    Unusable {
        /// Its file.
        path: PathBuf,
        /// The message from SQLite or the system.
        message: String,
        /// Why.
        trouble: RegistryProblem,
    },
    /// A change was refused before it began, because it could not be recorded.
    #[error("nothing was changed, because the registry {} cannot be written: {message}", .path.display())]
    NotRecordable {
        /// Its file.
        path: PathBuf,
        /// The message from SQLite or the system.
        message: String,
        /// Why.
        trouble: RegistryProblem,
    },
    /// It could not be rebuilt.
    #[error("cannot repair the registry {}: {source}", .path.display())]
    NotRepaired {
        /// Its file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// Where its old files are, if they were moved before the repair failed.
        moved_to: Option<PathBuf>,
    },
    /// A newer version of tine wrote it.
    #[error("the registry {} was written by a newer tine (format {found}; this version supports {known})", .path.display())]
    Newer {
        /// Its file.
        path: PathBuf,
        /// The format found.
        found: i64,
        /// The newest format that this version supports.
        known: i64,
    },
    /// The name belongs to another session.
    #[error("the name `{0}` is taken")]
    NameTaken(SessionName),
    /// Another operation is creating a worktree or a copy there.
    #[error("another fork is creating {}", .0.display())]
    PathReserved(PathBuf),
    /// The record of an operation is damaged, or another version wrote it.
    #[error("cannot read the record of operation {id} (`{what}`): {why}")]
    UnreadableOperation {
        /// Its number.
        id: i64,
        /// What it did, in words.
        what: String,
        /// What is wrong with the record.
        why: String,
    },
}

/// Why the registry cannot be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryProblem {
    /// The disk is full.
    Full,
    /// The file or its folder is not writable.
    ReadOnly,
    /// Another process locks it for too long.
    Busy,
    /// The file is damaged.
    Damaged,
    /// Anything else.
    Other,
}

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Unusable { trouble, .. } | Error::NotRecordable { trouble, .. } => {
                Advice::new("registry", trouble.hint())
            }
            Error::NotRepaired { moved_to: None, .. } => {
                Advice::new("registry", "the registry was not replaced; check its folder and the disk")
            }
            Error::NotRepaired { moved_to: Some(moved_to), .. } => Advice::new(
                "registry",
                format!("its old files are at {}; check the folder and the disk", moved_to.display()),
            ),
            Error::Newer { .. } => Advice::new("newer_registry", "update tine, or set TINE_REGISTRY to another file"),
            Error::NameTaken(_) => {
                Advice::new("name_taken", "choose another name; `tine list --all` shows the names in use")
            }
            Error::UnreadableOperation { .. } => Advice::new(
                "unreadable_operation",
                "nothing was changed; to undo another operation, pass its number from `tine log`",
            ),
            Error::PathReserved(_) => {
                Advice::new("in_the_way", "try again when it is done, or choose another name: `--worktree NAME`")
            }
        }
    }
}

impl RegistryProblem {
    pub(crate) fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => RegistryProblem::Full,
            ReadOnlyFilesystem | PermissionDenied => RegistryProblem::ReadOnly,
            _ => RegistryProblem::Other,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            RegistryProblem::Full => "the disk is full: free some space there, or set TINE_REGISTRY to another file",
            RegistryProblem::ReadOnly => "make the file and its folder writable, or set TINE_REGISTRY to another file",
            RegistryProblem::Busy => "another process is writing to it; try again in a moment",
            RegistryProblem::Damaged => "`tine doctor --repair` rebuilds it, from a backup if necessary",
            RegistryProblem::Other => "`tine doctor` checks it; to use another file, set TINE_REGISTRY",
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let path = || PathBuf::from("/home/kim/.local/share/tine/registry.db");
    let unusable = |message: &str, trouble| Error::Unusable { path: path(), message: message.to_owned(), trouble };
    let full = || io::Error::from_raw_os_error(28);
    let mut samples = crate::advice::samples![
        Unusable { path: path(), message: "database or disk is full".into(), trouble: RegistryProblem::Full },
        NotRecordable {
            path: path(),
            message: "attempt to write a readonly database".into(),
            trouble: RegistryProblem::ReadOnly
        },
        NotRepaired { path: path(), source: full(), moved_to: None },
        NotRepaired { path: path(), source: full(), moved_to: Some(path().with_extension("db.replaced-20260701")) },
        Newer { path: path(), found: 12, known: 9 },
        NameTaken(SessionName::new("auth-fix".to_owned()).expect("a name")),
        PathReserved("/work/app.worktrees/try".into()),
        UnreadableOperation {
            id: 7,
            what: "fork auth-fix after turn 3 as auth-fix-fork-1".into(),
            why: "EOF while parsing a value at line 1 column 0".into()
        };
        wraps
    ];
    samples.push(unusable("database is locked", RegistryProblem::Busy));
    samples.push(unusable("file is not a database", RegistryProblem::Damaged));
    samples.push(unusable("disk I/O error", RegistryProblem::Other));
    samples
}
