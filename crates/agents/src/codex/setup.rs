//! Hooks and the MCP server of Codex: hooks in `hooks.json`, servers and the trust in hooks in `config.toml`.

use std::path::{Path, PathBuf};

use transcript::Agent;

use super::{Codex, config};
use crate::setup::json_hooks::{self, JsonHooks};
use crate::setup::{EditedHooks, HookEntry, HookEvent, HookSwitch, HookTrust, Problem, ServerEntry, Setup, jsonc};

/// The hooks of Codex.
pub(crate) static HOOKS: JsonHooks = JsonHooks {
    agent: Agent::Codex,
    events: &[
        (HookEvent::SessionStart, "SessionStart"),
        (HookEvent::SessionEnd, "SessionEnd"),
        (HookEvent::UserPromptSubmit, "UserPromptSubmit"),
        (HookEvent::Stop, "Stop"),
        (HookEvent::PermissionRequest, "PermissionRequest"),
    ],
    timeout: json_hooks::SECONDS,
    own_hooks: None,
};

impl Setup for Codex {
    fn hook_events(&self) -> &'static [(HookEvent, &'static str)] {
        HOOKS.events
    }

    fn hook_file(&self) -> PathBuf {
        self.home.root().join("hooks.json")
    }

    fn hooks_in(&self, text: &str) -> Result<Vec<HookEntry>, Problem> {
        HOOKS.read(text)
    }

    fn add_hooks(&self, text: &str, program: &str) -> Result<EditedHooks, Problem> {
        HOOKS.add(text, program)
    }

    fn remove_hooks(&self, text: &str, kept: &[String]) -> Result<EditedHooks, Problem> {
        HOOKS.remove(text, kept)
    }

    fn hook_containers(&self, text: &str) -> Vec<String> {
        json_hooks::containers(text)
    }

    fn refused_line(&self, text: &str) -> Option<usize> {
        jsonc::first_json_extension(text)
    }

    fn hook_switch(&self, _hook_file: &Path) -> HookSwitch {
        let is_off = |text: &str| Ok(!config::has_hooks_enabled(&config::parse(text)?));
        HookSwitch { path: self.server_file(), key: "features.hooks", is_off }
    }

    fn server_file(&self) -> PathBuf {
        self.home.root().join("config.toml")
    }

    fn server_in(&self, text: &str) -> Result<ServerEntry, Problem> {
        Ok(config::find_server(&config::parse(text)?))
    }

    fn add_server(&self, text: &str, program: &str) -> Result<String, Problem> {
        config::add_server(text, program)
    }

    fn remove_server(&self, text: &str, kept: &[String]) -> Result<String, Problem> {
        config::remove_server(text, kept)
    }

    fn server_containers(&self, text: &str) -> Vec<String> {
        config::containers(text)
    }

    fn is_blank(&self, text: &str) -> bool {
        text.trim().is_empty()
    }

    fn trust(&self) -> Option<&dyn HookTrust> {
        Some(self)
    }
}
