//! Installing tine in an agent: hooks that report what happens, the MCP server, and a plugin where the agent has them.
//!
//! Everything here turns one text into another or names files. Reading, backing up and writing the files, and asking the
//! user, is up to the engine.

pub(crate) mod json_hooks;
pub(crate) mod json_server;
pub(crate) mod jsonc;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::program::{Program, ProgramError};

/// How tine is installed in an agent.
pub trait Setup {
    /// The events for which tine registers hooks, with the agent's names for them.
    fn hook_events(&self) -> &'static [(HookEvent, &'static str)];
    /// The user's file with hooks.
    fn hook_file(&self) -> PathBuf;
    /// The file with the hooks of a project, if the agent has one.
    fn project_hook_file(&self, _project: &Path) -> Option<PathBuf> {
        None
    }
    /// The hooks in a file, tine's and others.
    fn hooks_in(&self, text: &str) -> Result<Vec<HookEntry>, Problem>;
    /// Adds the hooks that are missing and corrects those of an older tine. `program` is [`BY_NAME`] in a project.
    fn add_hooks(&self, text: &str, program: &str) -> Result<EditedHooks, Problem>;
    /// Removes tine's hooks, and the containers that are empty then unless they are in `kept`.
    fn remove_hooks(&self, text: &str, kept: &[String]) -> Result<EditedHooks, Problem>;
    /// The containers of hooks in a text, which stay even if they are empty.
    fn hook_containers(&self, text: &str) -> Vec<String>;
    /// The first line that makes the agent refuse a whole file of hooks, though tine can read it.
    fn refused_line(&self, text: &str) -> Option<usize>;
    /// The setting that switches the hooks of a file off.
    fn hook_switch(&self, hook_file: &Path) -> HookSwitch;
    /// What the user should know about the agent once the hooks are installed, if anything.
    fn hook_caution(&self) -> Option<String> {
        None
    }

    /// The file that lists the user's MCP servers.
    fn server_file(&self) -> PathBuf;
    /// What that file has under tine's name.
    fn server_in(&self, text: &str) -> Result<ServerEntry, Problem>;
    /// Adds the server, or corrects the program that it calls.
    fn add_server(&self, text: &str, program: &str) -> Result<String, Problem>;
    /// Removes the server, and the containers that are empty then unless they are in `kept`.
    fn remove_server(&self, text: &str, kept: &[String]) -> Result<String, Problem>;
    /// The containers in that file that tine adds to, which stay even if they are empty.
    fn server_containers(&self, text: &str) -> Vec<String>;
    /// Whether that file has no settings.
    fn is_blank(&self, text: &str) -> bool;

    /// Whether tine can be installed there.
    fn has_scope(&self, scope: Scope) -> bool {
        match scope {
            Scope::User => true,
            Scope::Project => self.project_hook_file(Path::new("/")).is_some(),
            Scope::Plugin => self.plugin().is_some(),
        }
    }
    /// The plugin, for agents that have plugins.
    fn plugin(&self) -> Option<&dyn Plugin> {
        None
    }
    /// A setting of the agent by which sessions can get lost, and what to do about it.
    fn hazard(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// For agents that only run hooks that the user trusts.
    fn trust(&self) -> Option<&dyn HookTrust> {
        None
    }
}

/// A plugin that brings hooks and server along. The agent's own program installs it and notes it in the user's file with
/// hooks.
pub trait Plugin {
    /// The folder of the plugin, in the folder where tine keeps its data.
    fn folder(&self, data: &Path) -> PathBuf;
    /// The files of the plugin.
    fn files(&self, program: &str) -> PluginFiles;
    /// The file with the plugin's hooks.
    fn hook_file(&self, folder: &Path) -> PathBuf;
    /// The file with the plugin's server.
    fn server_file(&self, folder: &Path) -> PathBuf;
    /// What the plugin contains, for the user.
    fn contents(&self) -> &'static str;
    /// Whether the user's settings enable it.
    fn is_enabled(&self, settings: &str) -> bool;
    /// The objects in the settings in which the agent notes plugins, which stay even if they are empty.
    fn containers(&self, settings: &str) -> Vec<String>;
    /// The settings without the agent's notes about the plugin.
    fn without_notes(&self, settings: &str, kept: &[String]) -> String;
    /// Has the agent install the plugin from its folder.
    fn install(&self, program: &Program, folder: &Path) -> Result<(), ProgramError>;
    /// Has the agent remove the plugin.
    fn remove(&self, program: &Program, directory: &Path) -> Result<(), ProgramError>;
    /// What the agent keeps about the plugin elsewhere, in case its program no longer exists and can't remove it.
    fn traces(&self) -> PluginTraces;
}

/// The files of a plugin: relative path and text.
pub type PluginFiles = Vec<(&'static str, String)>;

/// Turns the text of a file into another one.
pub type TextEdit = fn(&str) -> String;

/// What an agent keeps about a plugin outside its settings.
#[derive(Debug)]
pub struct PluginTraces {
    /// Files that mention it, with the edit that removes it.
    pub files: Vec<(PathBuf, TextEdit)>,
    /// A folder with a copy of it.
    pub folder: PathBuf,
}

/// Trust in hooks, which an agent notes in [`Setup::server_file`] by the hook's file and position.
pub trait HookTrust {
    /// Asks the agent which hooks it sees. A version without hooks fails.
    fn hooks(&self, program: &Program) -> Result<SeenHooks, ProgramError>;
    /// How the positions of hooks change from one text of the hook file to another.
    fn moves(&self, before: &str, after: &str) -> HookMoves;
    /// The settings in which trust has followed the hooks. `files` are the names under which the hook file is recorded.
    fn follow(&self, settings: &str, files: &[String], moves: &HookMoves, kept: &[String]) -> Result<String, Problem>;
    /// The settings with trust in these hooks.
    fn grant(&self, settings: &str, hooks: &[&SeenHook]) -> Result<String, Problem>;
}

/// Old and new positions of hooks; no new one for those that are removed.
pub type HookMoves = Vec<(String, Option<String>)>;

/// The hooks that an agent sees.
#[derive(Debug)]
pub struct SeenHooks {
    /// The hooks.
    pub hooks: Vec<SeenHook>,
    /// What the agent complains about.
    pub complaints: Vec<String>,
}

/// A hook as the agent sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenHook {
    /// The key under which the agent notes trust in it.
    pub key: String,
    /// The command that it runs.
    pub command: String,
    /// The file that contains it.
    pub source: PathBuf,
    /// The hash that the settings must contain for the agent to run it.
    pub hash: String,
    /// Whether they contain it. The agent silently skips hooks that aren't trusted.
    pub is_trusted: bool,
    /// Whether it is switched on.
    pub is_enabled: bool,
}

/// Something that happens in an agent and is reported by a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// A session began, was resumed, forked, cleared or compacted.
    SessionStart,
    /// A session ended.
    SessionEnd,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// The agent has answered.
    Stop,
    /// The agent wants attention.
    Notification,
    /// The agent asks for a permission.
    PermissionRequest,
}

impl HookEvent {
    /// Every event that tine listens to.
    pub const ALL: [HookEvent; 6] = [
        HookEvent::SessionStart,
        HookEvent::SessionEnd,
        HookEvent::UserPromptSubmit,
        HookEvent::Stop,
        HookEvent::Notification,
        HookEvent::PermissionRequest,
    ];

    /// The name of the event on tine's command line.
    pub fn as_str(self) -> &'static str {
        match self {
            HookEvent::SessionStart => "session-start",
            HookEvent::SessionEnd => "session-end",
            HookEvent::UserPromptSubmit => "user-prompt-submit",
            HookEvent::Stop => "stop",
            HookEvent::Notification => "notification",
            HookEvent::PermissionRequest => "permission-request",
        }
    }

    /// The event with this name.
    pub fn from_name(name: &str) -> Option<HookEvent> {
        HookEvent::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

/// For whom something is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The user, in all projects.
    User,
    /// Everybody who works in this project.
    Project,
    /// The user, as a plugin of the agent.
    Plugin,
}

impl Scope {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Plugin => "plugin",
        }
    }
}

/// The program in the hooks of a project: everybody has their own.
pub const BY_NAME: &str = "tine";

/// A hook in a file, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEntry {
    /// The agent's name for the event.
    pub event: String,
    /// The number of its group.
    pub group: usize,
    /// Its number in the group.
    pub hook: usize,
    /// The command that it runs.
    pub command: String,
    /// The program that it calls, if it is one of tine's.
    pub program: Option<PathBuf>,
}

/// A text whose hooks were edited, and what changed. Events have the agent's names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EditedHooks {
    /// The new text.
    pub text: String,
    /// Events that got a hook.
    pub added: Vec<&'static str>,
    /// Events whose hook was corrected.
    pub updated: Vec<String>,
    /// Events whose hook was removed.
    pub removed: Vec<String>,
    /// Events for which the user has a custom call of tine.
    pub left: Vec<&'static str>,
}

/// A setting that switches hooks off.
#[derive(Debug)]
pub struct HookSwitch {
    /// The file that contains it.
    pub path: PathBuf,
    /// Its name.
    pub key: &'static str,
    /// Whether a text of that file switches hooks off.
    pub is_off: fn(&str) -> Result<bool, Problem>,
}

/// What a list of MCP servers has under tine's name.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEntry {
    /// Nothing.
    Missing,
    /// tine's server, which calls this program.
    Ours(String),
    /// A server that isn't tine's.
    Foreign,
}

/// The name of the server.
pub(crate) const SERVER_NAME: &str = "tine";
/// The arguments of the program that serves.
pub(crate) const SERVER_ARGUMENTS: [&str; 1] = ["mcp"];

/// Why a text can't be edited.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}
