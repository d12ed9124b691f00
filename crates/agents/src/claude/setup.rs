//! Hooks and the MCP server of Claude Code: hooks in the settings of the user or a project, servers in `.claude.json`.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use transcript::Agent;

use super::Claude;
use crate::setup::json_hooks::{self, JsonHooks, OwnHooks};
use crate::setup::{
    EditedHooks, HookEntry, HookEvent, HookSwitch, Plugin, Problem, ServerEntry, Setup, json_server, jsonc,
};

/// The hooks of Claude Code.
pub(crate) static HOOKS: JsonHooks = JsonHooks {
    agent: Agent::Claude,
    events: &[
        (HookEvent::SessionStart, "SessionStart"),
        (HookEvent::SessionEnd, "SessionEnd"),
        (HookEvent::UserPromptSubmit, "UserPromptSubmit"),
        (HookEvent::Stop, "Stop"),
        (HookEvent::Notification, "Notification"),
        (HookEvent::PermissionRequest, "PermissionRequest"),
    ],
    timeout: json_hooks::SECONDS,
    own_hooks: Some(OwnHooks {
        settings: r#""${CLAUDE_CONFIG_DIR:-$HOME/.claude}/settings.json""#,
        plugin: r#""tine@tine": *true"#,
    }),
};

impl Setup for Claude {
    fn hook_events(&self) -> &'static [(HookEvent, &'static str)] {
        HOOKS.events
    }

    fn hook_file(&self) -> PathBuf {
        self.config.join("settings.json")
    }

    fn project_hook_file(&self, project: &Path) -> Option<PathBuf> {
        Some(project.join(".claude/settings.json"))
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

    fn hook_switch(&self, hook_file: &Path) -> HookSwitch {
        HookSwitch { path: hook_file.to_owned(), key: "disableAllHooks", is_off: |text| Ok(disables_all_hooks(text)) }
    }

    fn server_file(&self) -> PathBuf {
        self.servers.clone()
    }

    fn server_in(&self, text: &str) -> Result<ServerEntry, Problem> {
        json_server::find(text)
    }

    fn add_server(&self, text: &str, program: &str) -> Result<String, Problem> {
        json_server::add(text, program)
    }

    fn remove_server(&self, text: &str, kept: &[String]) -> Result<String, Problem> {
        Ok(json_server::remove(text, kept))
    }

    fn server_containers(&self, text: &str) -> Vec<String> {
        json_server::containers(text)
    }

    fn is_blank(&self, text: &str) -> bool {
        jsonc::parse(text).ok().flatten().is_none_or(|root| jsonc::is_empty(&root))
    }

    fn plugin(&self) -> Option<&dyn Plugin> {
        Some(self)
    }
}

fn disables_all_hooks(text: &str) -> bool {
    let root = jsonc::parse(text).ok().flatten();
    let switch = root.as_ref().and_then(|root| jsonc::member(root, "disableAllHooks"));
    switch.and_then(Value::as_boolean_lit).is_some_and(|switch| switch.value)
}
