//! Installing tine in OpenCode: a plugin, which is a file in the folder for plugins, and the MCP server in the settings.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use serde_json::json;

use super::{OpenCode, plugin};
use crate::setup::jsonc::{self, Key};
use crate::setup::{
    EditedHooks, HookEntry, HookEvent, HookSwitch, Problem, SERVER_ARGUMENTS, SERVER_NAME, ServerEntry, Setup,
};

/// The list of servers in the settings.
const SERVERS: &str = "mcp";

/// The events that the plugin reports, with OpenCode's names for them.
const EVENTS: &[(HookEvent, &str)] = &[
    (HookEvent::SessionStart, "session.created"),
    (HookEvent::UserPromptSubmit, "chat.message"),
    (HookEvent::Stop, "session.idle"),
    (HookEvent::PermissionRequest, "permission.asked"),
    (HookEvent::SessionEnd, "dispose"),
];

impl Setup for OpenCode {
    fn hook_events(&self) -> &'static [(HookEvent, &'static str)] {
        EVENTS
    }

    fn hook_file(&self) -> PathBuf {
        self.home.config.join("plugin/tine.js")
    }

    fn hooks_in(&self, text: &str) -> Result<Vec<HookEntry>, Problem> {
        let Some(program) = plugin::program_in(text) else { return Ok(Vec::new()) };
        let entry = |event: &str| HookEntry {
            event: event.to_owned(),
            group: 0,
            hook: 0,
            command: format!("{program} hook"),
            program: Some(PathBuf::from(&program)),
        };
        Ok(EVENTS.iter().map(|(_, event)| entry(event)).collect())
    }

    fn add_hooks(&self, text: &str, program: &str) -> Result<EditedHooks, Problem> {
        let names = || EVENTS.iter().map(|(_, event)| *event);
        let wanted = plugin::text(program);
        let mut edited = EditedHooks { text: text.to_owned(), ..EditedHooks::default() };
        match plugin::program_in(text) {
            Some(_) if text == wanted => {}
            Some(_) => edited.updated = names().map(str::to_owned).collect(),
            None if text.trim().is_empty() => edited.added = names().collect(),
            // A plugin of the user's under the same name.
            None => {
                edited.left = names().collect();
                return Ok(edited);
            }
        }
        edited.text = wanted;
        Ok(edited)
    }

    fn remove_hooks(&self, text: &str, _kept: &[String]) -> Result<EditedHooks, Problem> {
        let mut edited = EditedHooks { text: text.to_owned(), ..EditedHooks::default() };
        if plugin::program_in(text).is_some() {
            edited.text.clear();
            edited.removed = EVENTS.iter().map(|(_, event)| (*event).to_owned()).collect();
        }
        Ok(edited)
    }

    fn hook_containers(&self, _text: &str) -> Vec<String> {
        Vec::new()
    }

    fn refused_line(&self, _text: &str) -> Option<usize> {
        None
    }

    /// Only an option switches plugins off, and it does so for one run.
    fn hook_switch(&self, _hook_file: &Path) -> HookSwitch {
        HookSwitch { path: self.server_file(), key: "plugin", is_off: |_| Ok(false) }
    }

    /// It waits for npm at each start if there is a plugin, until this package is there.
    fn hook_caution(&self) -> Option<String> {
        const PACKAGE: &str = "@opencode-ai/plugin";
        let lock = std::fs::read_to_string(self.home.config.join("package-lock.json")).unwrap_or_default();
        let is_installed = self.home.config.join("node_modules").is_dir() && lock.contains(PACKAGE);
        let folder = self.home.config.display();
        (!is_installed).then(|| {
            format!(
                "OpenCode installs {PACKAGE} from npm into {folder} when it next starts; without a network, each start takes \
                 up to two minutes"
            )
        })
    }

    fn server_file(&self) -> PathBuf {
        if let Some(file) = &self.home.config_file {
            return file.clone();
        }
        let named = |name: &str| self.home.config.join(name);
        // OpenCode reads both, and writes an almost empty `opencode.jsonc` when it first starts.
        let there = ["opencode.json", "opencode.jsonc"].map(named).into_iter().find(|file| file.exists());
        there.unwrap_or_else(|| named("opencode.json"))
    }

    fn server_in(&self, text: &str) -> Result<ServerEntry, Problem> {
        let root = jsonc::parse(text)?;
        let servers = root.as_ref().and_then(|root| jsonc::member(root, SERVERS));
        let Some(entry) = servers.and_then(|servers| jsonc::member(servers, SERVER_NAME)) else {
            return Ok(ServerEntry::Missing);
        };
        let word = |value: &Value<'_>| value.as_string_lit().map(|word| word.value.to_string());
        let words = jsonc::member(entry, "command").map(jsonc::elements).unwrap_or_default();
        let words: Option<Vec<String>> = words.iter().map(word).collect();
        let (program, arguments) = match words.as_deref() {
            Some([program, arguments @ ..]) => (program.clone(), arguments),
            _ => return Ok(ServerEntry::Foreign),
        };
        Ok(if arguments == SERVER_ARGUMENTS { ServerEntry::Ours(program) } else { ServerEntry::Foreign })
    }

    fn add_server(&self, text: &str, program: &str) -> Result<String, Problem> {
        let refused = || Problem { line: 1, message: format!("`{SERVERS}` is not an object") };
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let path = [Key::Name(SERVERS), Key::Name(SERVER_NAME)];
        let text = jsonc::remove(text, &path).unwrap_or_else(|| text.to_owned());
        let command: Vec<&str> = std::iter::once(program).chain(SERVER_ARGUMENTS).collect();
        let server = json!({ "type": "local", "command": command, "enabled": true });
        let added = match self.server_containers(&text).is_empty() {
            true => jsonc::insert(&text, &[], Some(SERVERS), &json!({ SERVER_NAME: server })),
            false => jsonc::insert(&text, &path[..1], Some(SERVER_NAME), &server),
        };
        added.ok_or_else(refused)
    }

    fn remove_server(&self, text: &str, kept: &[String]) -> Result<String, Problem> {
        let path = [Key::Name(SERVERS), Key::Name(SERVER_NAME)];
        let text = jsonc::remove(text, &path).unwrap_or_else(|| text.to_owned());
        let root = jsonc::parse(&text).ok().flatten();
        let is_empty = root.as_ref().and_then(|root| jsonc::member(root, SERVERS)).is_some_and(jsonc::is_empty);
        Ok(match is_empty && !kept.iter().any(|kept| kept == SERVERS) {
            true => jsonc::remove(&text, &path[..1]).unwrap_or(text),
            false => text,
        })
    }

    fn server_containers(&self, text: &str) -> Vec<String> {
        let root = jsonc::parse(text).ok().flatten();
        let has = root.as_ref().is_some_and(|root| jsonc::member(root, SERVERS).is_some());
        has.then(|| SERVERS.to_owned()).into_iter().collect()
    }

    fn is_blank(&self, text: &str) -> bool {
        jsonc::parse(text).ok().flatten().is_none_or(|root| jsonc::is_empty(&root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEnvironment;

    fn opencode() -> OpenCode {
        OpenCode::new(&AgentEnvironment::default())
    }

    #[test]
    fn a_server_is_added_beside_comments_and_removed_without_a_trace() {
        let opencode = opencode();
        for before in [
            "{\n  // my model\n  \"model\": \"p/m\",\n}\n",
            "{\"mcp\": {\"x\": {\"type\": \"local\", \"command\": [\"y\"]}}}",
            "{\n  \"mcp\": {}\n}\n",
        ] {
            let kept = opencode.server_containers(before);
            let with = opencode.add_server(before, "/bin/tine").unwrap();
            assert_eq!(opencode.server_in(&with).unwrap(), ServerEntry::Ours("/bin/tine".into()), "{with}");
            let twice = opencode.add_server(&opencode.add_server(before, "/old/tine").unwrap(), "/bin/tine").unwrap();
            assert_eq!(twice, with);
            assert_eq!(opencode.remove_server(&with, &kept).unwrap(), before);
        }
        let own = r#"{"mcp": {"tine": {"type": "remote", "url": "http://x"}}}"#;
        assert_eq!(opencode.server_in(own).unwrap(), ServerEntry::Foreign);
        assert!(opencode.add_server(r#"{"mcp": 3}"#, "tine").is_err());
    }

    #[test]
    fn the_plugin_is_written_corrected_and_removed() {
        let opencode = opencode();
        let added = opencode.add_hooks("", "/bin/tine").unwrap();
        assert_eq!((added.added.len(), added.updated.len()), (EVENTS.len(), 0));
        assert_eq!(opencode.add_hooks(&added.text, "/bin/tine").unwrap().text, added.text);
        assert_eq!(opencode.add_hooks(&added.text, "/new/tine").unwrap().updated.len(), EVENTS.len());
        assert_eq!(opencode.hooks_in(&added.text).unwrap().len(), EVENTS.len());
        assert_eq!(opencode.remove_hooks(&added.text, &[]).unwrap().text, "");
        let own = "export const Mine = async () => ({})\n";
        let left = opencode.add_hooks(own, "/bin/tine").unwrap();
        assert_eq!((left.text.as_str(), left.left.len()), (own, EVENTS.len()));
        assert_eq!(opencode.remove_hooks(own, &[]).unwrap().text, own);
    }
}
