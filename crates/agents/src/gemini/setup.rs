//! Hooks and the MCP server of Gemini CLI, both in `settings.json`, which may contain comments.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use transcript::Agent;

use super::Gemini;
use crate::setup::json_hooks::{self, JsonHooks};
use crate::setup::{EditedHooks, HookEntry, HookEvent, HookSwitch, Problem, ServerEntry, Setup, json_server, jsonc};

/// The hooks of Gemini CLI.
pub(crate) static HOOKS: JsonHooks = JsonHooks {
    agent: Agent::Gemini,
    events: &[
        (HookEvent::SessionStart, "SessionStart"),
        (HookEvent::SessionEnd, "SessionEnd"),
        (HookEvent::UserPromptSubmit, "BeforeAgent"),
        (HookEvent::Stop, "AfterAgent"),
        (HookEvent::Notification, "Notification"),
    ],
    // Milliseconds, unlike those of the others.
    timeout: 3_000,
    own_hooks: None,
};

impl Setup for Gemini {
    fn hook_events(&self) -> &'static [(HookEvent, &'static str)] {
        HOOKS.events
    }

    fn hook_file(&self) -> PathBuf {
        self.home.settings()
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

    fn refused_line(&self, _text: &str) -> Option<usize> {
        // It strips comments and trailing commas before it parses the file.
        None
    }

    fn hook_switch(&self, hook_file: &Path) -> HookSwitch {
        let is_off = |text: &str| Ok(disables_hooks(text));
        HookSwitch { path: hook_file.to_owned(), key: "hooksConfig.enabled", is_off }
    }

    fn server_file(&self) -> PathBuf {
        self.home.settings()
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
}

fn disables_hooks(text: &str) -> bool {
    let root = jsonc::parse(text).ok().flatten();
    let settings = root.as_ref().and_then(|root| jsonc::member(root, "hooksConfig"));
    let switch = settings.and_then(|settings| jsonc::member(settings, "enabled"));
    switch.and_then(Value::as_boolean_lit).is_some_and(|switch| !switch.value)
}
