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

    fn hazard(&self) -> Option<(&'static str, &'static str)> {
        let text = std::fs::read_to_string(self.home.settings()).unwrap_or_default();
        (self.home.root().is_dir() && !keeps_sessions(&text)).then_some((
            "Gemini CLI deletes old sessions when it starts, and in rare cases one that was resumed headless",
            "set `general.sessionRetention.enabled` to false in ~/.gemini/settings.json to keep all of them",
        ))
    }
}

/// Whether the clean-up at the start of the client is switched off. It is on by default.
fn keeps_sessions(text: &str) -> bool {
    let root = jsonc::parse(text).ok().flatten();
    let path = ["general", "sessionRetention", "enabled"];
    let setting = root.as_ref().and_then(|root| path.iter().try_fold(root, |object, key| jsonc::member(object, key)));
    setting.and_then(Value::as_boolean_lit).is_some_and(|enabled| !enabled.value)
}

fn disables_hooks(text: &str) -> bool {
    let root = jsonc::parse(text).ok().flatten();
    let settings = root.as_ref().and_then(|root| jsonc::member(root, "hooksConfig"));
    let switch = settings.and_then(|settings| jsonc::member(settings, "enabled"));
    switch.and_then(Value::as_boolean_lit).is_some_and(|switch| !switch.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_understood_with_comments() {
        let check = |text: &str, keeps: bool, disables: bool| {
            assert_eq!((keeps_sessions(text), disables_hooks(text)), (keeps, disables), "{text}");
        };
        check("", false, false);
        check("{\"general\": {\"sessionRetention\": {\"enabled\": true}}}", false, false);
        check("// mine\n{\"general\": {\"sessionRetention\": {\"enabled\": false,},},}", true, false);
        check("{\"hooksConfig\": {\"enabled\": false}}", false, true);
    }

    #[test]
    fn hooks_and_server_are_added_and_removed_without_a_trace() {
        for before in ["{}\n", "// mine\n{\n  \"general\": {}, // yes\n  \"hooks\": {\"AfterAgent\": []}\n}\n"] {
            let folder = tempfile::tempdir().unwrap();
            let environment = crate::AgentEnvironment { home: folder.path().to_owned(), ..Default::default() };
            let gemini = Gemini::new(&environment);
            let (hooks, servers) = (gemini.hook_containers(before), gemini.server_containers(before));
            let with = gemini.add_server(&gemini.add_hooks(before, "/bin/tine").unwrap().text, "/bin/tine").unwrap();
            for event in ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "Notification"] {
                assert!(gemini.hooks_in(&with).unwrap().iter().any(|hook| hook.event == event), "{event}: {with}");
            }
            assert!(with.contains("\"timeout\": 3000"), "{with}");
            assert_eq!(gemini.server_in(&with).unwrap(), ServerEntry::Ours("/bin/tine".into()));
            let without = gemini.remove_server(&gemini.remove_hooks(&with, &hooks).unwrap().text, &servers).unwrap();
            assert_eq!(without, before);
        }
    }
}
