//! The MCP server in the agents' lists of servers: JSON for Claude Code, TOML for Codex.
//!
//! An entry is tine's own if it is called `tine` and calls a program with `mcp` alone. Any other of that name stays. Only the
//! person has one: Claude Code would run a plugin's and a project's both, and tell everybody in a project who has no tine.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use serde::Serialize;
use serde_json::json;
use toml_edit::{Array, DocumentMut, Item, Table, value};
use transcript::Agent;

use super::file::{self, Edit};
use super::jsonc::{self, Key, Problem};
use super::{Action, Change, Scope, SetupPlan, Step, bad};
use crate::Tine;
use crate::error::Result;

/// The server's name there.
const NAME: &str = "tine";
/// What it is called with.
const ARGUMENTS: [&str; 1] = ["mcp"];
/// Claude Code's object of servers, and Codex's table of them.
const SERVERS: &str = "mcpServers";
pub(super) const TABLE: &str = "mcp_servers";

/// Codex gives a server nothing of its environment but what is named here: where the person's terminal is, where agents and
/// tine keep their files, and what the agents need that a worker is started with.
const VARIABLES: [&str; 34] = [
    "TMUX",
    "TMUX_PANE",
    "WEZTERM_PANE",
    "WEZTERM_UNIX_SOCKET",
    "KITTY_WINDOW_ID",
    "KITTY_LISTEN_ON",
    "ZELLIJ",
    "ZELLIJ_PANE_ID",
    "ZELLIJ_SESSION_NAME",
    "TERM",
    "TERM_PROGRAM",
    "COLORTERM",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "TINE_CONFIG",
    "TINE_REGISTRY",
    "TINE_CACHE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
];

/// How many seconds Codex waits for a call; a minute where nothing is said, which is short for a worker's answer.
const PATIENCE: i64 = 3700;

/// The server in one place.
#[derive(Debug, Serialize)]
pub struct SetupServer {
    /// For whom.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// The program that is called.
    pub program: PathBuf,
    /// Whether it is there and can be run.
    pub exists: bool,
}

/// What is under tine's name.
enum Entry {
    Nothing,
    Ours(String),
    Others,
}

impl Tine {
    /// Decides how the server gets into Claude Code's list of them, or out of it.
    pub(super) fn plan_server(&self, uninstall: bool, plan: &mut SetupPlan) -> Result<()> {
        let path = self.claude_servers();
        let before = file::read(&path)?;
        let (mark, text) = file::split_mark(before.as_deref().unwrap_or_default());
        let entry = json_entry(text).map_err(|problem| bad(&path, problem))?;
        if let (Entry::Others, false) = (&entry, uninstall) {
            let note = format!("{} has a server `{NAME}` that is not tine's, and stays", path.display());
            plan.notes.push((Agent::Claude, note));
        }
        let receipt = self.registry().receipt(&path);
        let kept = receipt.as_ref().map_or_else(|| json_kept(text), |receipt| receipt.kept.clone());
        let program = self.hook_program()?;
        let (after, sign) = match (&entry, uninstall) {
            (Entry::Nothing | Entry::Others, true) | (Entry::Others, false) => return Ok(()),
            (Entry::Ours(known), false) if *known == program => return Ok(()),
            (Entry::Ours(_), false) => (json_without(text, &kept).and_then(|text| json_with(&text, &program)), "~"),
            (Entry::Nothing, false) => (json_with(text, &program), "+"),
            (Entry::Ours(_), true) => (json_without(text, &kept), "-"),
        };
        let Some(after) = after else {
            return Err(bad(&path, Problem { line: 1, message: format!("`{SERVERS}` is not an object") }));
        };
        let mut after = Some(format!("{mark}{after}"));
        if uninstall {
            let was = before.as_deref().and_then(|text| file::as_it_was(&self.registry(), &path, text));
            let is_blank = |text: &str| jsonc::parse(text).ok().flatten().is_none_or(|root| jsonc::is_empty(&root));
            let is_ours = receipt.is_some_and(|receipt| receipt.is_ours);
            after = was.unwrap_or_else(|| after.filter(|after| !(is_ours && is_blank(after))));
        }
        let kept = (!uninstall).then_some(kept);
        let edit = Edit { path: path.clone(), before, after, kept, is_shared: false };
        plan.steps.push(step(Agent::Claude, path, sign, &program, Action::Edit(edit)));
        Ok(())
    }

    /// Where Claude Code lists the person's servers.
    pub(super) fn claude_servers(&self) -> PathBuf {
        let surroundings = &self.context().surroundings;
        surroundings.claude_config_dir.as_ref().unwrap_or(&surroundings.home).join(".claude.json")
    }

    /// The text of Codex's configuration with the server in it, and what was done to it.
    pub(super) fn with_codex_server(&self, toml: &str) -> std::result::Result<Option<(String, &'static str)>, Problem> {
        let program = self.hook_program().map_err(|error| Problem { line: 1, message: error.to_string() })?;
        let mut document: DocumentMut = super::codex::parse(toml)?;
        let sign = match toml_entry(&document) {
            Entry::Others => return Ok(None),
            Entry::Ours(known) if known == program => return Ok(None),
            Entry::Ours(_) => "~",
            Entry::Nothing => "+",
        };
        let variables = variables(&document);
        let position = super::codex::last_position(document.as_table()) + 1;
        if !document.contains_key(TABLE) {
            document.insert(TABLE, Item::Table(super::codex::implicit()));
        }
        let refused = || Problem { line: 1, message: format!("`{TABLE}` is not a table") };
        let servers = document.get_mut(TABLE).and_then(Item::as_table_like_mut).ok_or_else(refused)?;
        match servers.get_mut(NAME).and_then(Item::as_table_like_mut) {
            Some(entry) => drop(entry.insert("command", value(&program))),
            None => {
                let mut entry = Table::new();
                entry.set_position(Some(position));
                entry.decor_mut().set_prefix("\n");
                entry.insert("command", value(&program));
                entry.insert("args", value(ARGUMENTS.into_iter().collect::<Array>()));
                entry.insert("env_vars", value(variables.iter().map(String::as_str).collect::<Array>()));
                entry.insert("tool_timeout_sec", value(PATIENCE));
                servers.insert(NAME, Item::Table(entry));
            }
        }
        Ok(Some((document.to_string(), sign)))
    }

    /// A step that puts the server into Codex's configuration. What is written is decided when it is done: trust in hooks
    /// is noted in the same file before.
    pub(super) fn plan_codex_server(&self, config: &Path, toml: Option<&str>, plan: &mut SetupPlan) -> Result<()> {
        let with = self.with_codex_server(toml.unwrap_or_default()).map_err(|problem| bad(config, problem))?;
        if let Some((_, sign)) = with {
            let action = Action::CodexServer;
            plan.steps.push(step(Agent::Codex, config.to_owned(), sign, &self.hook_program()?, action));
        }
        Ok(())
    }

    pub(super) fn add_codex_server(&self, config: &Path) -> Result<()> {
        let before = file::read(config)?;
        let text = before.as_deref().unwrap_or_default();
        let Some((after, _)) = self.with_codex_server(text).map_err(|problem| bad(config, problem))? else {
            return Ok(());
        };
        let mut kept = match self.registry().receipt(config) {
            Some(receipt) => receipt.kept,
            None => super::codex::containers(text),
        };
        let is_there = super::codex::parse(text).is_ok_and(|document| document.contains_key(TABLE));
        kept.extend(is_there.then(|| TABLE.to_owned()).filter(|table| !kept.contains(table)));
        let edit = Edit { path: config.to_owned(), before, after: Some(after), kept: Some(kept), is_shared: false };
        file::apply(&mut self.registry(), &edit, self.context().clock.now())
    }

    /// Where an agent has the server.
    pub(super) fn servers(&self, agent: Agent) -> Result<Vec<SetupServer>> {
        let mut found = Vec::new();
        let mut add = |scope: Scope, path: PathBuf, entry: Entry| {
            if let Entry::Ours(program) = entry {
                let program = PathBuf::from(program);
                let exists = program.is_absolute() && crate::context::is_executable(&program);
                found.push(SetupServer { scope, path, program, exists });
            }
        };
        let json = |path: &Path| -> Result<Entry> {
            let text = file::read(path)?.unwrap_or_default();
            json_entry(file::split_mark(&text).1).map_err(|problem| bad(path, problem))
        };
        match agent {
            Agent::Claude => {
                let path = self.claude_servers();
                add(Scope::User, path.clone(), json(&path)?);
                if super::plugin::is_enabled(file::read(&self.claude_settings())?.as_deref()) {
                    let path = self.plugin_folder().join(".mcp.json");
                    add(Scope::Plugin, path.clone(), json(&path)?);
                }
            }
            Agent::Codex => {
                let path = self.store(agent).home().join("config.toml");
                let text = file::read(&path)?.unwrap_or_default();
                let document = super::codex::parse(&text).map_err(|problem| bad(&path, problem))?;
                add(Scope::User, path, toml_entry(&document));
            }
        }
        Ok(found)
    }
}

fn step(agent: Agent, path: PathBuf, sign: &str, program: &str, action: Action) -> Step {
    let what = match sign {
        "-" => "- the MCP server".to_owned(),
        sign => format!("{sign} the MCP server calls {program}"),
    };
    Step { change: Change { agent, scope: Scope::User, path, what: vec![what] }, action }
}

/// The server as Claude Code's files have it.
pub(super) fn json_server(program: &str) -> serde_json::Value {
    json!({ "type": "stdio", "command": program, "args": ARGUMENTS, "env": {} })
}

fn json_entry(text: &str) -> std::result::Result<Entry, Problem> {
    let root = jsonc::parse(text)?;
    let servers = root.as_ref().and_then(|root| jsonc::member(root, SERVERS));
    let Some(entry) = servers.and_then(|servers| jsonc::member(servers, NAME)) else {
        return Ok(Entry::Nothing);
    };
    let word = |value: &Value<'_>| value.as_string_lit().map(|word| word.value.to_string());
    let arguments: Vec<Option<String>> =
        jsonc::member(entry, "args").map(|args| jsonc::elements(args).iter().map(word).collect()).unwrap_or_default();
    let is_ours = arguments.iter().map(Option::as_deref).eq(ARGUMENTS.map(Some));
    let program = jsonc::member(entry, "command").and_then(word);
    Ok(program.filter(|_| is_ours).map_or(Entry::Others, Entry::Ours))
}

/// What of a text may be empty and stays all the same.
fn json_kept(text: &str) -> Vec<String> {
    let root = jsonc::parse(text).ok().flatten();
    let has = root.as_ref().is_some_and(|root| jsonc::member(root, SERVERS).is_some());
    has.then(|| SERVERS.to_owned()).into_iter().collect()
}

fn json_with(text: &str, program: &str) -> Option<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = jsonc::parse(text).ok().flatten();
    let has = root.as_ref().is_some_and(|root| jsonc::member(root, SERVERS).is_some());
    match has {
        true => jsonc::insert(text, &[Key::Name(SERVERS)], Some(NAME), &json_server(program)),
        false => jsonc::insert(text, &[], Some(SERVERS), &json!({ NAME: json_server(program) })),
    }
}

fn json_without(text: &str, kept: &[String]) -> Option<String> {
    let text = jsonc::remove(text, &[Key::Name(SERVERS), Key::Name(NAME)])?;
    let root = jsonc::parse(&text).ok().flatten();
    let is_empty = root.as_ref().and_then(|root| jsonc::member(root, SERVERS)).is_some_and(jsonc::is_empty);
    match is_empty && !kept.iter().any(|kept| kept == SERVERS) {
        true => jsonc::remove(&text, &[Key::Name(SERVERS)]),
        false => Some(text),
    }
}

/// The variables that the server gets: the usual ones, and the keys that this configuration's providers are read from.
fn variables(document: &DocumentMut) -> Vec<String> {
    let mut variables: Vec<String> = VARIABLES.iter().map(|name| (*name).to_owned()).collect();
    let providers = document.get("model_providers").and_then(Item::as_table_like);
    for (_, provider) in providers.into_iter().flat_map(|providers| providers.iter()) {
        let key = provider.get("env_key").and_then(Item::as_str).map(str::to_owned);
        variables.extend(key.filter(|key| !variables.contains(key)));
    }
    variables
}

fn toml_entry(document: &DocumentMut) -> Entry {
    let Some(entry) = document.get(TABLE).and_then(|servers| servers.get(NAME)) else {
        return Entry::Nothing;
    };
    let arguments = entry.get("args").and_then(Item::as_array);
    let words = arguments.map(|words| words.iter().map(toml_edit::Value::as_str).collect::<Vec<_>>());
    let is_ours = words.is_some_and(|words| words == ARGUMENTS.map(Some));
    let program = entry.get("command").and_then(Item::as_str);
    program.filter(|_| is_ours).map_or(Entry::Others, |program| Entry::Ours(program.to_owned()))
}

/// A configuration of Codex's without the server.
pub(super) fn without_codex_server(text: &str, kept: &[String]) -> std::result::Result<String, Problem> {
    let mut document = super::codex::parse(text)?;
    if !matches!(toml_entry(&document), Entry::Ours(_)) {
        return Ok(text.to_owned());
    }
    if let Some(servers) = document.get_mut(TABLE).and_then(Item::as_table_like_mut) {
        servers.remove(NAME);
        if servers.is_empty() && !kept.iter().any(|kept| kept == TABLE) {
            document.remove(TABLE);
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_goes_in_and_out_of_json() {
        for before in
            ["{\n  \"a\": 1\n}\n", "{\"mcpServers\": {\"x\": {\"command\": \"y\"}}}", "{\n  \"mcpServers\": {}\n}\n"]
        {
            let kept = json_kept(before);
            let with = json_with(before, "/bin/tine").unwrap();
            assert!(matches!(json_entry(&with).unwrap(), Entry::Ours(program) if program == "/bin/tine"), "{with}");
            assert_eq!(json_without(&with, &kept).unwrap(), before);
        }
        let own = r#"{"mcpServers": {"tine": {"command": "other", "args": ["serve"]}}}"#;
        assert!(matches!(json_entry(own).unwrap(), Entry::Others));
        assert!(json_with(r#"{"mcpServers": 3}"#, "tine").is_none());
    }
}
