//! What can go wrong with an agent's program.

use agents::ProgramError;
use transcript::{Agent, text::one_line};

use crate::advice::{Advice, Cancelled, wraps};
use crate::config;

/// An error of an agent's program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not installed, or not at the configured path.
    #[error("{} not found", one_line(.program))]
    NoAgent {
        /// The agent.
        agent: Agent,
        /// The program.
        program: String,
    },
    /// It failed, and it is older than the versions that tine supports.
    #[error("{} {version} is too old: {trouble}", .agent.product_name())]
    TooOld {
        /// The agent.
        agent: Agent,
        /// Its version.
        version: String,
        /// How it failed.
        trouble: ProgramError,
    },
    /// It failed.
    #[error(transparent)]
    Failed(#[from] ProgramError),
    /// The configuration names the programs.
    #[error(transparent)]
    Config(config::Error),
}

wraps!(Config);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::NoAgent { agent, .. } => Advice::new(
                "no_agent",
                format!(
                    "install {}, or set its path in the configuration file: `[agents.{agent}] command = \"/path\"`",
                    agent.product_name()
                ),
            ),
            Error::TooOld { agent, .. } => Advice::new(
                "agent_too_old",
                format!(
                    "update {} to {} or newer, or fork for the same agent with `--method copy`",
                    agent.product_name(),
                    agents::about(*agent).oldest_version
                ),
            ),
            Error::Failed(ProgramError::Cancelled { .. }) => Cancelled.advice(),
            Error::Failed(ProgramError::TooSlow { .. }) => Advice::new(
                "agent_failed",
                "run it yourself to check its network connection and login; `tine doctor` checks the installation",
            ),
            Error::Failed(ProgramError::Unable { what, .. }) if what.starts_with("fork") => {
                Advice::new("agent_failed", "update the agent, or fork with `--method copy`")
            }
            Error::Failed(ProgramError::Unable { .. }) => {
                Advice::new("agent_failed", "check for a newer version; `tine doctor` shows the installed one")
            }
            Error::Failed(_) => {
                Advice::new("agent_failed", "run it yourself to see why; `tine doctor` checks the installation")
            }
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    use std::time::Duration;
    let failed = || ProgramError::Failed { program: "codex".into(), message: "unexpected argument 'fork'".into() };
    let not_found = std::io::Error::from_raw_os_error(13);
    crate::advice::samples![
        NoAgent { agent: Agent::Claude, program: "claude".into() },
        TooOld { agent: Agent::Codex, version: "0.98.0".into(), trouble: failed() },
        Failed(ProgramError::NotStarted { program: "/opt/claude".into(), source: not_found }),
        Failed(failed()),
        Failed(ProgramError::TooSlow { program: "codex".into(), patience: Duration::from_secs(60) }),
        Failed(ProgramError::Cancelled { program: "codex".into() }),
        Failed(ProgramError::Unable { program: "codex".into(), what: "fork at a turn" });
        wraps Config
    ]
}
