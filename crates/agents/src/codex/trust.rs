//! Codex's trust in hooks, which `config.toml` notes by the hook's file, event, number of the group and number in it.
//!
//! When hooks move because tine's are removed, the trust in other hooks has to follow.

use std::path::PathBuf;

use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::Codex;
use super::app_server::AppServer;
use super::config::{implicit, last_position, parse};
use super::setup::HOOKS;
use crate::program::{Program, ProgramError};
use crate::setup::{HookEntry, HookMoves, HookTrust, Problem, SeenHook, SeenHooks};

impl HookTrust for Codex {
    fn hooks(&self, program: &Program) -> Result<SeenHooks, ProgramError> {
        let directory = self.home.root();
        let mut server = AppServer::start(program, directory)?;
        let answer = server.call("hooks/list", &json!({ "cwds": [directory.to_string_lossy()] }))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (mut hooks, mut complaints) = (Vec::new(), Vec::new());
        for place in list(&answer["data"]) {
            hooks.extend(list(&place["hooks"]).iter().map(|hook| SeenHook {
                key: text(&hook["key"]),
                command: text(&hook["command"]),
                source: PathBuf::from(text(&hook["sourcePath"])),
                hash: text(&hook["currentHash"]),
                is_trusted: matches!(hook["trustStatus"].as_str(), Some("trusted" | "managed")),
                is_enabled: hook["enabled"].as_bool().unwrap_or(true),
            }));
            complaints.extend(list(&place["warnings"]).iter().map(text));
            complaints.extend(list(&place["errors"]).iter().map(|error| match &error["message"] {
                Value::String(message) => message.clone(),
                _ => error.to_string(),
            }));
        }
        Ok(SeenHooks { hooks, complaints })
    }

    fn moves(&self, before: &str, after: &str) -> HookMoves {
        moves(before, after)
    }

    fn follow(&self, settings: &str, files: &[String], moves: &HookMoves, kept: &[String]) -> Result<String, Problem> {
        follow(settings, files, moves, kept)
    }

    fn grant(&self, settings: &str, hooks: &[&SeenHook]) -> Result<String, Problem> {
        grant(settings, hooks)
    }
}

/// How the positions of hooks change from one text of `hooks.json` to another.
fn moves(before: &str, after: &str) -> HookMoves {
    let all = |text: &str| HOOKS.read(text).unwrap_or_default();
    let (before, after) = (all(before), all(after));
    let mut moves = HookMoves::new();
    for entry in before.iter().filter(|entry| entry.program.is_some()) {
        let stays = after.iter().any(|new| new.program.is_some() && place(new) == place(entry));
        if !stays {
            moves.push((place(entry), None));
        }
    }
    let others =
        |all: &[HookEntry]| -> Vec<HookEntry> { all.iter().filter(|entry| entry.program.is_none()).cloned().collect() };
    // Other hooks are never touched, so they are the same in the same order.
    for (old, new) in others(&before).iter().zip(&others(&after)) {
        if place(old) != place(new) {
            moves.push((place(old), Some(place(new))));
        }
    }
    moves
}

/// How Codex's keys end: `session_start:0:0`.
fn place(entry: &HookEntry) -> String {
    let mut event = String::new();
    for c in entry.event.chars() {
        if c.is_ascii_uppercase() && !event.is_empty() {
            event.push('_');
        }
        event.push(c.to_ascii_lowercase());
    }
    format!("{event}:{}:{}", entry.group, entry.hook)
}

/// A configuration in which trust has followed the hooks of a file, by any of the names of that file.
fn follow(text: &str, files: &[String], moves: &HookMoves, kept: &[String]) -> Result<String, Problem> {
    let mut document = parse(text)?;
    let Some(state) = state(&mut document) else {
        return Ok(text.to_owned());
    };
    let mut removed = Vec::new();
    for (old, new) in moves {
        for file in files {
            if let Some(item) = state.remove(&format!("{file}:{old}")) {
                removed.push((new.as_ref().map(|new| format!("{file}:{new}")), item));
            }
        }
    }
    if removed.is_empty() {
        return Ok(text.to_owned());
    }
    for (new, item) in removed {
        if let Some(new) = new {
            state.insert(&new, item);
        }
    }
    let is_empty = state.is_empty();
    let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
    if is_empty && !is_kept("hooks/state") {
        let hooks = document.get_mut("hooks").and_then(Item::as_table_like_mut);
        let is_bare = hooks.is_some_and(|hooks| hooks.remove("state").is_some() && hooks.is_empty());
        if is_bare && !is_kept("hooks") {
            document.remove("hooks");
        }
    }
    Ok(document.to_string())
}

/// A configuration that trusts these hooks.
fn grant(text: &str, hooks: &[&SeenHook]) -> Result<String, Problem> {
    let mut document = parse(text)?;
    let trusted = |document: &mut DocumentMut, hook: &SeenHook| {
        let entry = state(document).and_then(|state| state.get(&hook.key));
        entry.and_then(|entry| entry.get("trusted_hash")).and_then(Item::as_str) == Some(&hook.hash)
    };
    for hook in hooks {
        if trusted(&mut document, hook) {
            continue;
        }
        // At the end of the file, where Codex itself would put it.
        let position = last_position(document.as_table()) + 1;
        let refused = |name: &str| Problem { line: 1, message: format!("`{name}` is not a table") };
        let table = document.as_table_mut();
        if !table.contains_key("hooks") {
            table.insert("hooks", Item::Table(implicit()));
        }
        let all = table.get_mut("hooks").and_then(Item::as_table_like_mut).ok_or_else(|| refused("hooks"))?;
        if !all.contains_key("state") {
            all.insert("state", Item::Table(implicit()));
        }
        let state = all.get_mut("state").and_then(Item::as_table_like_mut).ok_or_else(|| refused("hooks.state"))?;
        match state.get_mut(&hook.key).and_then(Item::as_table_like_mut) {
            Some(entry) => drop(entry.insert("trusted_hash", value(&hook.hash))),
            None => {
                let mut entry = Table::new();
                entry.set_position(Some(position));
                entry.insert("trusted_hash", value(&hook.hash));
                entry.decor_mut().set_prefix("\n");
                state.insert(&hook.key, Item::Table(entry));
            }
        }
    }
    Ok(document.to_string())
}

fn state(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    document.get_mut("hooks")?.as_table_like_mut()?.get_mut("state")?.as_table_like_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/nowhere/.codex/hooks.json";

    fn hook(place: &str) -> SeenHook {
        SeenHook {
            key: format!("{FILE}:{place}"),
            command: String::new(),
            source: FILE.into(),
            hash: format!("sha256:{place}"),
            is_trusted: false,
            is_enabled: true,
        }
    }

    #[test]
    fn trust_comes_and_goes_and_leaves_the_rest_alone() {
        for text in [
            "",
            "# a comment\nmodel = \"m\"   # odd\n\n[features]\nhooks   =  true\n",
            "[projects.\"/a\"]\ntrust_level = \"trusted\"\n[model_providers.x]\nname = 'x'\n[projects.\"/b\"]\nt = 1 # end\n# the end\n",
            "[hooks]\n# mine\n[[hooks.Stop]]\nhooks = []\n",
            "[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\nenabled = false\n",
            "hooks = { state = {} }\n",
        ] {
            let known = [hook("session_start:0:0"), hook("stop:1:0")];
            let with = grant(text, &known.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(grant(&with, &known.iter().collect::<Vec<_>>()).unwrap(), with);
            let mut read = parse(&with).unwrap_or_else(|error| panic!("{error:?}: {with}"));
            for hook in &known {
                assert_eq!(
                    state(&mut read).unwrap().get(&hook.key).unwrap()["trusted_hash"].as_str(),
                    Some(&*hook.hash)
                );
            }
            let other = SeenHook { hash: "sha256:other".into(), ..hook("stop:1:0") };
            let changed = grant(&with, &[&other]).unwrap();
            assert_eq!(changed, with.replace("sha256:stop:1:0", "sha256:other"));
            let gone: HookMoves = vec![("session_start:0:0".into(), None), ("stop:1:0".into(), None)];
            let without = follow(&with, &[FILE.into()], &gone, &super::super::config::containers(text)).unwrap();
            assert_eq!(without, text, "from {with}");
        }
    }

    #[test]
    fn trust_in_others_moves_with_their_hooks() {
        let group = |command: &str| format!("{{\"hooks\":[{{\"command\":\"{command}\"}}]}}");
        let ours = group("/opt/tine hook stop --agent codex");
        let text = |groups: &[&str]| format!("{{\"hooks\":{{\"Stop\":[{}]}}}}", groups.join(","));
        let (first, second) = (group("first"), group("second"));
        let moves = moves(&text(&[&first, &ours, &second]), &text(&[&first, &second]));
        assert_eq!(moves, [("stop:1:0".into(), None), ("stop:2:0".into(), Some("stop:1:0".into()))]);
        let known = [hook("stop:0:0"), hook("stop:1:0"), hook("stop:2:0")];
        let before = grant("", &known.iter().collect::<Vec<_>>()).unwrap();
        let after = follow(&before, &[FILE.into()], &moves, &[]).unwrap();
        let table = parse(&after).unwrap();
        let hash = |place: &str| {
            table["hooks"]["state"][&format!("{FILE}:{place}")]["trusted_hash"].as_str().unwrap().to_owned()
        };
        assert_eq!((hash("stop:0:0"), hash("stop:1:0")), ("sha256:stop:0:0".into(), "sha256:stop:2:0".into()));
        assert_eq!(table["hooks"]["state"].as_table_like().unwrap().len(), 2);
    }
}
