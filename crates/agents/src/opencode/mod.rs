//! OpenCode: sessions as rows of one SQLite database. The format: docs/formats/opencode.md.

mod chat;
mod copy;
mod database;
mod home;
mod http;
mod ids;
mod launch;
mod live;
mod message;
mod options;
mod plugin;
mod project;
mod read;
mod row;
mod scan;
pub(crate) mod setup;
mod sha1;
mod source;
mod storage;
mod title;
mod transcripts;
mod translate;
mod windows;
mod writer;

use std::path::PathBuf;

use transcript::Agent;

use self::home::OpenCodeFolders;
use crate::about::{About, Feature, McpMeta, NativeFork, Variables};
use crate::{Adapter, AgentEnvironment};

/// What is known about OpenCode.
pub(crate) static ABOUT: About = About {
    open: |surroundings| Box::new(OpenCode::new(surroundings)),
    oldest_version: "1.18.0",
    options: options::LAUNCH_OPTIONS,
    transcripts: "~/.local/share/opencode/opencode.db",
    variables: Variables {
        locations: &[
            "XDG_DATA_HOME",
            "OPENCODE_DB",
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
        ],
        endpoints: &[],
        credentials: &[],
        of_running_agent: &["OPENCODE", "OPENCODE_PID", "OPENCODE_RUN_ID", plugin::SESSION_VARIABLE, plugin::NAME_FILE],
        session_id: Some(plugin::SESSION_VARIABLE),
        project: None,
        environment_file: Some(plugin::NAME_FILE),
    },
    mcp: McpMeta { session: &[], call: None },
    native_fork: NativeFork { keeps_compacted: true, keeps_gaps: true, keeps_times: false, may_refer_to_source: false },
    limits: &[
        (Feature::ChosenId, "it makes up the id of a new session"),
        (Feature::ReportedState, "tine reads it from the database"),
        (Feature::ProjectHooks, "tine installs its hooks for the user"),
        (Feature::Plugin, "it has no plugins that bring hooks and servers along"),
        (Feature::RebuiltCode, "tine doesn't read its edits yet"),
    ],
    names_direct_parent: false,
    rows: Some(&storage::ROWS),
};

/// OpenCode's files.
#[derive(Debug, Clone)]
pub struct OpenCode {
    home: OpenCodeFolders,
    proc: Option<PathBuf>,
}

impl OpenCode {
    /// Finds the database and the folders: by OpenCode's variables, else by those of XDG, else below the home directory.
    pub fn new(surroundings: &AgentEnvironment) -> Self {
        OpenCode { home: OpenCodeFolders::new(surroundings), proc: surroundings.proc.clone() }
    }
}

impl Adapter for OpenCode {
    fn agent(&self) -> Agent {
        Agent::OpenCode
    }
}
