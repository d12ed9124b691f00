//! Codex: threads in `<home>/sessions/`, one or more JSONL files each. The format: docs/formats/codex.md.

mod acts;
mod app_server;
mod chain;
mod chat;
mod config;
mod copy;
mod home;
mod launch;
mod live;
mod message;
mod meta;
mod notes;
mod options;
mod read;
mod record;
mod scan;
mod settings;
pub(crate) mod setup;
mod source;
mod subagents;
mod title;
mod tools;
mod transcripts;
mod translate;
mod trust;
mod turns;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use transcript::{Agent, SessionId};

use self::home::Home;
use crate::about::{About, Feature, McpMeta, NativeFork, Variables};
use crate::{Adapter, AgentEnvironment};

/// What is known about Codex.
pub(crate) static ABOUT: About = About {
    open: |surroundings| Box::new(Codex::new(surroundings)),
    oldest_version: "0.140.0",
    options: options::LAUNCH_OPTIONS,
    transcripts: "~/.codex/sessions",
    variables: Variables {
        locations: &["CODEX_HOME"],
        endpoints: &["OPENAI_BASE_URL"],
        credentials: &["OPENAI_API_KEY"],
        of_running_agent: &[
            "CODEX_THREAD_ID",
            "CODEX_SESSION_ID",
            "CODEX_TOOL_CALL_ID",
            "CODEX_VERSION",
            "CODEX_SANDBOX*",
        ],
        // Its MCP calls contain the thread, so the environment is not needed.
        session_id: None,
        project: None,
        environment_file: None,
    },
    mcp: McpMeta { session: &["threadId", "sessionId"], call: None },
    native_fork: NativeFork { keeps_compacted: true, keeps_gaps: true, keeps_times: false, may_refer_to_source: true },
    limits: &[
        (Feature::ChosenId, "it makes up the id of a new session"),
        (Feature::ReportedState, "tine reads it from the transcript"),
        (Feature::ProjectHooks, "tine installs its hooks for the user"),
        (Feature::Plugin, "it has no plugins that bring hooks and servers along"),
    ],
    names_direct_parent: true,
    rows: None,
};

/// Codex's files.
#[derive(Debug, Clone)]
pub struct Codex {
    home: Home,
    proc: Option<PathBuf>,
}

impl Codex {
    /// Finds the folder: `CODEX_HOME`, else `~/.codex`.
    pub fn new(surroundings: &AgentEnvironment) -> Self {
        let root = surroundings.moved_home(Agent::Codex).cloned().unwrap_or_else(|| surroundings.home.join(".codex"));
        Codex { home: Home::new(root), proc: surroundings.proc.clone() }
    }

    /// The threads of the helpers that a thread started, with their files, oldest first.
    ///
    /// Looks at the beginning of every thread that is younger than the parent.
    pub fn subagents_of(&self, parent: &SessionId) -> Vec<(SessionId, PathBuf)> {
        subagents::of(&self.home, parent)
    }
}

impl Adapter for Codex {
    fn agent(&self) -> Agent {
        Agent::Codex
    }
}
