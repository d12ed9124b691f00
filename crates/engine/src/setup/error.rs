//! What can go wrong while hooks and the MCP server are installed or removed.

use std::io;
use std::path::PathBuf;

use agents::ProgramError;
use transcript::{Agent, text::one_line};

use crate::advice::{Advice, FileError, wraps};
use crate::{config, operations, program, registry, search, sessions, workspace};

/// The result of anything about setup.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about setup.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A settings file cannot be parsed.
    #[error("{}, line {line}: {}", .path.display(), one_line(.message))]
    BadSettings {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A settings file cannot be changed.
    #[error("cannot change {}: {source}", .path.display())]
    NotSetUp {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The agents' settings are text, and so are the paths in them.
    #[error("the path of tine itself is not valid UTF-8: {}", .0.display())]
    OwnPath(PathBuf),
    /// The agent's program could not install or remove something.
    #[error(transparent)]
    SetupProgram(ProgramError),
    /// None is installed, and none was named.
    #[error("no agent found")]
    NoAgent,
    /// The agent does not report its hooks.
    #[error("cannot ask {} for its hooks: {source}", .agent.product_name())]
    NoHooks {
        /// The agent.
        agent: Agent,
        /// What happened.
        source: ProgramError,
    },
    /// A file changed after the user agreed to the change.
    #[error("{} was changed in the meantime", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// The agent does not have hooks of that kind.
    #[error("{} does not support hooks {scope}", .agent.product_name())]
    NoSuchScope {
        /// The agent.
        agent: Agent,
        /// The requested scope.
        scope: &'static str,
    },
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
    /// The search index.
    #[error(transparent)]
    Search(#[from] search::Error),
}

wraps!(File, Config, Workspace, Registry, Program, Sessions, Operations);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::BadSettings { .. } => {
                Advice::new("bad_settings", "correct the file first; the agent cannot read it either")
            }
            Error::NotSetUp { .. } => {
                Advice::new("cannot_write", "check that the file and its folder are writable and the disk has space")
            }
            Error::OwnPath(_) => Advice::new("cannot_write", "install tine in another directory"),
            Error::SetupProgram(_) => Advice::new("agent_failed", "`tine setup --status` shows what is installed"),
            Error::NoAgent => Advice::new("no_agent", "install an agent, or name it: `tine setup claude`"),
            Error::NoHooks { .. } => Advice::new(
                "no_hooks",
                "older versions have no hooks; without them, tine notices forks when it next lists the sessions",
            ),
            Error::ChangedMeanwhile(_) => {
                Advice::new("changed_meanwhile", "run the command again to review the change")
            }
            Error::NoSuchScope { .. } => {
                Advice::new("no_such_scope", "leave out the option: its hooks apply to all projects")
            }
            passed_on!() => self.passed_on(),
            Error::Search(error) => error.advice(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let settings = || PathBuf::from("/home/kim/.claude/settings.json");
    let failed = || ProgramError::Failed { program: "claude".into(), message: "unknown command 'plugin'".into() };
    crate::advice::samples![
        BadSettings { path: settings(), line: 7, message: "expected a comma".into() },
        NotSetUp { path: settings(), source: io::Error::from_raw_os_error(13) },
        OwnPath("/opt/caf\u{fffd}/tine".into()),
        SetupProgram(failed()),
        NoAgent,
        NoHooks {
            agent: Agent::Codex,
            source: ProgramError::TooSlow { program: "codex".into(), patience: std::time::Duration::from_secs(60) },
        },
        ChangedMeanwhile(settings()),
        NoSuchScope { agent: Agent::Codex, scope: "for a project" };
        wraps File, Config, Workspace, Registry, Program, Sessions, Operations, Search
    ]
}
