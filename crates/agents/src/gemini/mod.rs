//! Gemini CLI: sessions in `<home>/tmp/<project>/chats/`, one JSONL file each. The format: docs/formats/gemini.md.

mod chat;
mod copy;
mod elements;
mod history;
mod home;
mod launch;
mod live;
mod message;
mod meta;
mod options;
mod read;
mod scan;
pub(crate) mod setup;
mod sha256;
mod subagents;
mod title;
mod transcripts;
mod translate;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use transcript::Agent;

use self::home::Home;
use crate::about::{About, Feature, McpMeta, NativeFork, Variables};
use crate::{Adapter, AgentEnvironment};

/// What is known about Gemini CLI.
pub(crate) static ABOUT: About = About {
    open: |surroundings| Box::new(Gemini::new(surroundings)),
    oldest_version: "0.61.0",
    options: options::LAUNCH_OPTIONS,
    transcripts: "~/.gemini/tmp/PROJECT/chats",
    variables: Variables {
        locations: &["GEMINI_CLI_HOME"],
        endpoints: &["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"],
        credentials: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        of_running_agent: &[
            "GEMINI_CLI",
            "GEMINI_SESSION_ID",
            "GEMINI_PROJECT_DIR",
            "GEMINI_CWD",
            "GEMINI_PLANS_DIR",
            "GEMINI_CLI_NO_RELAUNCH",
        ],
        // Only hooks get the id; tools don't.
        session_id: Some("GEMINI_SESSION_ID"),
        project: Some("GEMINI_PROJECT_DIR"),
        environment_file: None,
    },
    mcp: McpMeta { session: &[], call: None },
    native_fork: NativeFork { keeps_compacted: true, keeps_gaps: true, keeps_times: false, may_refer_to_source: false },
    limits: &[
        (Feature::NativeFork, "it forks only together with a prompt, and then sends each result of a tool twice"),
        (Feature::ReportedState, "it keeps nothing that shows it; its hooks report it"),
        (Feature::ProjectHooks, "tine installs its hooks for the user"),
        (Feature::Plugin, "it has no plugins that bring hooks and servers along"),
        (Feature::RebuiltCode, "tine doesn't read its edits yet"),
    ],
    names_direct_parent: true,
    rows: None,
};

/// Gemini CLI's files.
#[derive(Debug, Clone)]
pub struct Gemini {
    home: Home,
    proc: Option<PathBuf>,
}

impl Gemini {
    /// Finds the folder: `.gemini` in `GEMINI_CLI_HOME`, else in the home directory.
    pub fn new(surroundings: &AgentEnvironment) -> Self {
        let parent = surroundings.moved_home(Agent::Gemini).unwrap_or(&surroundings.home);
        Gemini { home: Home::new(parent.join(".gemini")), proc: surroundings.proc.clone() }
    }
}

impl Adapter for Gemini {
    fn agent(&self) -> Agent {
        Agent::Gemini
    }
}
