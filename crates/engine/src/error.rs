//! The engine's errors. Each folder has its own errors in its `error.rs`, with message, kind and hint side by side.
//! This type only passes them on to the front ends.

use agents::ProgramError;
use transcript::NameError;

use crate::advice::{Advice, Cancelled, FileError, wraps};
use crate::{code, config, fork, naming, operations, program, registry, run, search, sessions, setup, workspace};

/// The result of anything in the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller no longer waits.
    #[error(transparent)]
    Cancelled(Cancelled),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// A directory, a repository, a worktree or a copy.
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

wraps!(
    Cancelled, File, Config, Workspace, Registry, Program, Sessions, Operations, Code, Run, Naming, Fork, Search, Setup
);

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
            passed_on!() => self.passed_on(),
        }
    }
}
