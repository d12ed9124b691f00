//! What an agent passes to a hook, and which process calls.

use std::path::PathBuf;

use agents::Runner;
use serde::Deserialize;
use transcript::Agent;

use crate::registry::Process;

/// What an agent sends with an event. Unknown fields are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HookPayload {
    /// The agent's id of the session.
    pub session_id: String,
    pub(crate) transcript_path: Option<PathBuf>,
    pub(crate) cwd: Option<PathBuf>,
    pub(super) source: Option<String>,
    pub(super) prompt_id: Option<String>,
    pub(super) turn_id: Option<String>,
    pub(super) notification_type: Option<String>,
}

/// The process that calls a hook, and its environment.
#[derive(Debug, Clone, Default)]
pub struct HookCaller {
    /// The name under which the agent was started (`TINE_SESSION`).
    pub name: Option<String>,
    /// The file from which the agent reads variables for later commands .
    pub env_file: Option<PathBuf>,
    /// The mark of the operation that started the agent (`TINE_FORK`), if one did.
    pub mark: Option<String>,
    /// The agent's process.
    pub runner: Runner,
}

impl HookCaller {
    /// The agent's process, and when it began.
    pub(super) fn process(&self) -> Option<Process> {
        match &self.runner {
            Runner::Agent { pid, start, .. } => Some(Process { pid: *pid, start: start.clone() }),
            Runner::Daemon | Runner::Unknown => None,
        }
    }

    /// The same caller, whose process counts only if it is this agent. A test or a wrapper may call hooks for many
    /// sessions.
    pub(super) fn checked(&self, agent: Agent) -> Self {
        let mut caller = self.clone();
        if let Runner::Agent { words, .. } = &self.runner
            // Options of Node.js may stand before the agent's script.
            && !words.iter().filter(|word| !word.starts_with('-')).take(2).any(|word| word.contains(agent.as_str()))
        {
            caller.runner = Runner::Unknown;
        }
        caller
    }
}
