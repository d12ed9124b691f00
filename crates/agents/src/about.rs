//! What is known about an agent without looking at its files.

use transcript::Agent;

use crate::adapter::{Adapter, AgentEnvironment};
use crate::options::LaunchOptions;
use crate::storage::RowStorage;
use crate::{claude, codex, gemini, opencode};

/// The facts about an agent that hold on every machine.
#[derive(Debug)]
pub struct About {
    /// Opens the agent's files.
    pub(crate) open: fn(&AgentEnvironment) -> Box<dyn Adapter>,
    /// The oldest version that tine is known to work with.
    pub oldest_version: &'static str,
    /// The agent's command line.
    pub options: LaunchOptions,
    /// Where it keeps its transcripts unless its settings say otherwise, in plain words.
    pub transcripts: &'static str,
    /// The environment variables that concern the agent.
    pub variables: Variables,
    /// How it identifies itself to an MCP server.
    pub mcp: McpMeta,
    /// How its own fork differs from a copy.
    pub native_fork: NativeFork,
    /// What it can't do, with the reason as a sentence. What isn't in the list, it can.
    pub limits: &'static [(Feature, &'static str)],
    /// Whether the parent that a session names is always the direct one. Otherwise a fork of a fork may have inherited
    /// the name of an earlier ancestor.
    pub names_direct_parent: bool,
    /// How its sessions are stored, if they are rows of a database and not files.
    pub rows: Option<&'static RowStorage>,
}

impl About {
    /// Why the agent can't do something; nothing if it can.
    pub fn limit(&self, feature: Feature) -> Option<&'static str> {
        self.limits.iter().find(|(limited, _)| *limited == feature).map(|(_, why)| *why)
    }
}

/// What tine does with agents, but not with each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// A fork by the agent's own program.
    NativeFork,
    /// A new session whose id is known before its agent runs.
    ChosenId,
    /// Whether a session is busy or waiting, from the agent itself.
    ReportedState,
    /// Hooks for everybody who works in a project.
    ProjectHooks,
    /// Hooks and the MCP server as a plugin.
    Plugin,
    /// The files at the end of a turn, from what the transcript says about edits.
    RebuiltCode,
}

impl Feature {
    /// Every feature, in the order in which they are listed.
    pub const ALL: [Feature; 6] = [
        Feature::NativeFork,
        Feature::ChosenId,
        Feature::ReportedState,
        Feature::ProjectHooks,
        Feature::Plugin,
        Feature::RebuiltCode,
    ];

    /// What it is, for a table.
    pub fn describe(self) -> &'static str {
        match self {
            Feature::NativeFork => "Fork with the agent's own fork",
            Feature::ChosenId => "Know the id of a new session before it starts",
            Feature::ReportedState => "Learn from the agent itself whether it is busy",
            Feature::ProjectHooks => "Install hooks for a project",
            Feature::Plugin => "Install a plugin",
            Feature::RebuiltCode => "Rebuild the code of a turn without a snapshot",
        }
    }
}

/// The environment variables that concern an agent.
#[derive(Debug)]
pub struct Variables {
    /// Those that decide where the agent keeps its files. The first one moves its home.
    pub locations: &'static [&'static str],
    /// Those with the address of its model, which are part of how a session is launched.
    pub endpoints: &'static [&'static str],
    /// Those with the credentials for its model.
    pub credentials: &'static [&'static str],
    /// Those that a running agent sets for the programs it starts. A `*` at the end matches any rest.
    pub of_running_agent: &'static [&'static str],
    /// The one in which a running agent passes on the id of its session.
    pub session_id: Option<&'static str>,
    /// The one in which it passes on the directory of its project.
    pub project: Option<&'static str>,
    /// The one that names a file from which it reads variables for later commands; hooks have it.
    pub environment_file: Option<&'static str>,
}

/// How an agent identifies itself to an MCP server, in the `_meta` of a tool call.
#[derive(Debug)]
pub struct McpMeta {
    /// The keys that may hold the id of the session, best first.
    pub session: &'static [&'static str],
    /// The key that holds the id of the call, which the transcript contains.
    pub call: Option<&'static str>,
}

/// How an agent's own fork differs from a copy.
#[derive(Debug)]
pub struct NativeFork {
    /// Whether it keeps the turns before a compaction.
    pub keeps_compacted: bool,
    /// Whether it keeps what precedes a record whose parent is missing.
    pub keeps_gaps: bool,
    /// Whether its records keep the times of the source, so that only the file shows when the fork was made.
    pub keeps_times: bool,
    /// Whether it may refer to the source's file instead of copying it.
    pub may_refer_to_source: bool,
}

/// The facts about an agent. This is the list of agents: a new one gets a line here.
pub fn about(agent: Agent) -> &'static About {
    match agent {
        Agent::Claude => &claude::ABOUT,
        Agent::Codex => &codex::ABOUT,
        Agent::OpenCode => &opencode::ABOUT,
        Agent::Gemini => &gemini::ABOUT,
    }
}

/// The environment variables that decide where the agents keep their files.
pub fn location_variables() -> impl Iterator<Item = &'static str> {
    Agent::ALL.into_iter().flat_map(|agent| about(agent).variables.locations).copied()
}

/// Whether a running agent sets this variable for the programs it starts.
pub fn is_set_by_running_agent(variable: &str) -> bool {
    let matches = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => variable.starts_with(start),
        None => variable == *pattern,
    };
    Agent::ALL.into_iter().any(|agent| about(agent).variables.of_running_agent.iter().any(matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_code() {
        for agent in Agent::ALL {
            let adapter = crate::open(agent, &AgentEnvironment::default());
            let check = |feature: Feature, can: bool| {
                assert_eq!(about(agent).limit(feature).is_none(), can, "{agent}: {feature:?}");
            };
            check(Feature::ChosenId, adapter.accepts_ids());
            check(Feature::ReportedState, adapter.reports_state());
            check(Feature::ProjectHooks, adapter.has_scope(crate::Scope::Project));
            check(Feature::Plugin, adapter.has_scope(crate::Scope::Plugin));
            check(Feature::RebuiltCode, adapter.records_acts());
        }
    }

    #[test]
    fn variables_of_a_running_agent_are_recognized_and_its_configuration_is_not() {
        let check = |variable: &str, expected: bool| {
            assert_eq!(is_set_by_running_agent(variable), expected, "{variable}");
        };
        check("CLAUDECODE", true);
        check("CLAUDE_CODE_SESSION_ID", true);
        check("CLAUDE_CODE_CHILD_SESSION", true);
        check("CLAUDE_CODE_MESSAGING_TOKEN", true);
        check("CODEX_THREAD_ID", true);
        check("CLAUDE_CONFIG_DIR", false);
        check("CODEX_HOME", false);
        check("OPENCODE", true);
        check("OPENCODE_PID", true);
        check("OPENCODE_DB", false);
        check("XDG_DATA_HOME", false);
        check("CLAUDE_CODE_TMPDIR", false);
        check("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", false);
        check("CLAUDE_CODE_MAX_OUTPUT_TOKENS", false);
        check("CLAUDE_CODE_USE_BEDROCK", false);
        check("ANTHROPIC_BASE_URL", false);
        check("PATH", false);
    }
}
