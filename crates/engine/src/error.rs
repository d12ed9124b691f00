//! The engine's errors. Each folder has its own errors in its `error.rs`, with message, kind and hint side by side.
//! This type only passes them on to the front ends.

use agents::ProgramError;
use transcript::NameError;

use crate::advice::{Advice, Cancelled, FileError, lift};
use crate::{code, config, fork, naming, operations, program, registry, run, search, sessions, setup, workspace};

/// The result of anything in the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller no longer waits.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// A directory, a repository, a worktree or a copy.
    #[error(transparent)]
    Workspace(workspace::Error),
    /// The registry.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// An agent's program.
    #[error(transparent)]
    Program(program::Error),
    /// A session.
    #[error(transparent)]
    Sessions(sessions::Error),
    /// An operation.
    #[error(transparent)]
    Operations(operations::Error),
    /// The code of an earlier turn.
    #[error(transparent)]
    Code(code::Error),
    /// A running agent.
    #[error(transparent)]
    Run(run::Error),
    /// A name.
    #[error(transparent)]
    Naming(naming::Error),
    /// A fork.
    #[error(transparent)]
    Fork(fork::Error),
    /// A search.
    #[error(transparent)]
    Search(search::Error),
    /// Setup.
    #[error(transparent)]
    Setup(setup::Error),
}

lift!(workspace as Workspace, passes File);
lift!(program as Program, passes Config);
lift!(sessions as Sessions, passes File, Config, Workspace, Registry);
lift!(operations as Operations, passes File, Config, Workspace, Registry, Program, Sessions);
lift!(code as Code, passes File, Config, Workspace, Registry, Operations);
lift!(run as Run, passes Cancelled, File, Config, Workspace, Registry, Program, Sessions);
lift!(naming as Naming, passes Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run);
lift!(fork as Fork, passes Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming);
lift!(
    search as Search,
    passes Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Run, Naming, Fork
);
lift!(setup as Setup, passes File, Config, Workspace, Registry, Program, Sessions, Operations, Search);

impl From<ProgramError> for Error {
    fn from(error: ProgramError) -> Self {
        Error::Program(error.into())
    }
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Self {
        Error::Sessions(error.into())
    }
}

impl Error {
    /// A word for programs. It is part of the JSON contract: a kind that was released keeps its spelling.
    pub fn kind(&self) -> &'static str {
        self.advice().kind
    }

    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        self.advice().hint
    }

    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Cancelled(error) => error.advice(),
            Error::File(error) => error.advice(),
            Error::Config(error) => error.advice(),
            Error::Workspace(error) => error.advice(),
            Error::Registry(error) => error.advice(),
            Error::Program(error) => error.advice(),
            Error::Sessions(error) => error.advice(),
            Error::Operations(error) => error.advice(),
            Error::Code(error) => error.advice(),
            Error::Run(error) => error.advice(),
            Error::Naming(error) => error.advice(),
            Error::Fork(error) => error.advice(),
            Error::Search(error) => error.advice(),
            Error::Setup(error) => error.advice(),
        }
    }
}
