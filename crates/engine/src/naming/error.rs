//! What can go wrong while a session is started, adopted or renamed.

use transcript::{SessionId, SessionName};

use crate::advice::{Advice, Cancelled, FileError, wraps};
use crate::{config, operations, program, registry, run, sessions, workspace};

/// The result of anything about names.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about a name.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of a new session belongs to one that can be resumed.
    #[error("the name `{0}` is taken")]
    AlreadyStarted(SessionName),
    /// All names that tine would choose are taken.
    #[error("no free name left")]
    NoNameLeft,
    /// The id of a new session belongs to another one.
    #[error("session id {0} is already in use")]
    IdTaken(SessionId),
    /// The session is registered.
    #[error("session {id} is already registered as `{name}`")]
    Tracked {
        /// Its id.
        id: SessionId,
        /// The session that has the id, or had it.
        name: String,
    },
    /// The parent descends from the child.
    #[error("`{session}` cannot be a fork of its own descendant `{parent}`")]
    OwnAncestor {
        /// The child.
        session: String,
        /// The parent.
        parent: String,
    },
    /// The session has that name.
    #[error("the session is already named `{0}`")]
    SameName(SessionName),
    /// The caller no longer waits.
    #[error(transparent)]
    Cancelled(Cancelled),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// A directory or a repository.
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
    /// An operation.
    #[error(transparent)]
    Operations(operations::Error),
    /// A running agent.
    #[error(transparent)]
    Run(run::Error),
}

wraps!(Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::AlreadyStarted(name) => Advice::new(
                "name_taken",
                format!("`tine resume {name}` continues that session; choose another name for a new one"),
            ),
            Error::NoNameLeft => Advice::new("no_name_left", "choose one; `tine list --all` shows the names in use"),
            Error::IdTaken(id) => Advice::new("id_taken", format!("`tine resume {id}` continues that session")),
            Error::Tracked { .. } => Advice::new("tracked", "`tine rename` gives it another name"),
            Error::OwnAncestor { .. } => Advice::new("own_ancestor", "`tine tree` shows the lineage"),
            Error::SameName(_) => Advice::without_hint("same_name"),
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let name = || SessionName::new("auth-fix".to_owned()).expect("a name");
    let id = || SessionId::new("0198c1f2-7d44-7d2e-9a01-8f1e2b3c4d5e".to_owned()).expect("an id");
    crate::advice::samples![
        AlreadyStarted(name()),
        NoNameLeft,
        IdTaken(id()),
        Tracked { id: id(), name: "auth-fix".into() },
        OwnAncestor { session: "auth-fix".into(), parent: "auth-fix-fork-1".into() },
        SameName(name());
        wraps Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run
    ]
}
