//! Claude Code: sessions in `<config>/projects/`, one JSONL file each. The format: docs/formats/claude-code.md.

mod acts;
mod chat;
mod commands;
mod copy;
mod facts;
mod history;
mod home;
mod index;
mod kept;
mod launch;
mod layout;
mod live;
mod long_record;
mod mentioned;
mod message;
mod notes;
mod options;
mod order;
mod plugin;
mod read;
mod record;
mod scan;
pub(crate) mod setup;
mod side;
mod sidechains;
mod subagents;
mod summaries;
mod title;
mod tool_result;
mod transcripts;
mod translate;
mod windows;
mod words;
mod writer;

use std::path::PathBuf;

pub use home::{project_folder, side_folder};
use transcript::Agent;

use crate::about::{About, McpMeta, NativeFork, Variables};
use crate::{Adapter, AgentEnvironment};

/// What is known about Claude Code.
pub(crate) static ABOUT: About = About {
    open: |surroundings| Box::new(Claude::new(surroundings)),
    oldest_version: "2.1.197",
    options: options::LAUNCH_OPTIONS,
    transcripts: "~/.claude/projects",
    variables: Variables {
        locations: &["CLAUDE_CONFIG_DIR"],
        endpoints: &["ANTHROPIC_BASE_URL"],
        credentials: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        of_running_agent: &[
            "AI_AGENT",
            "CLAUDECODE",
            "CLAUDE_PID",
            "CLAUDE_EFFORT",
            "CLAUDE_ENV_FILE",
            "CLAUDE_PROJECT_DIR",
            "CLAUDE_PLUGIN_ROOT",
            "CLAUDE_PLUGIN_DATA",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_EXECPATH",
            "CLAUDE_CODE_SESSION*",
            "CLAUDE_CODE_CHILD*",
            "CLAUDE_CODE_MESSAGING*",
        ],
        session_id: Some("CLAUDE_CODE_SESSION_ID"),
        project: Some("CLAUDE_PROJECT_DIR"),
        environment_file: Some("CLAUDE_ENV_FILE"),
    },
    mcp: McpMeta { session: &[], call: Some("claudecode/toolUseId") },
    native_fork: NativeFork {
        keeps_compacted: false,
        keeps_gaps: false,
        keeps_times: true,
        may_refer_to_source: false,
    },
    limits: &[],
    // `--fork-session` of a fork keeps the pointer of the fork.
    names_direct_parent: false,
    rows: None,
};

/// Claude Code's files.
#[derive(Debug, Clone)]
pub struct Claude {
    config: PathBuf,
    /// The file that lists the user's MCP servers.
    servers: PathBuf,
    proc: Option<PathBuf>,
    summaries: summaries::Summaries,
}

impl Claude {
    /// Finds the configuration folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub fn new(surroundings: &AgentEnvironment) -> Self {
        let moved = surroundings.moved_home(Agent::Claude);
        let config = moved.cloned().unwrap_or_else(|| surroundings.home.join(".claude"));
        let servers = moved.unwrap_or(&surroundings.home).join(".claude.json");
        Claude { config, servers, proc: surroundings.proc.clone(), summaries: summaries::Summaries::default() }
    }
}

impl Adapter for Claude {
    fn agent(&self) -> Agent {
        Agent::Claude
    }
}

#[cfg(test)]
mod tests;
