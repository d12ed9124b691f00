//! A plugin for Claude Code: the hooks, the MCP server and a command, in a folder that is its own marketplace.
//!
//! Claude Code reads the folder in place, so rewriting it is all that an update takes. Claude Code's own program installs
//! and removes the plugin; it writes the user's settings and several files about plugins.

use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jsonc_parser::ast::Value;
use serde_json::json;

use super::Claude;
use super::setup::HOOKS;
use crate::program::{Program, ProgramError, START_PATIENCE};
use crate::setup::json_hooks::quoted;
use crate::setup::jsonc::{self, Key};
use crate::setup::{Plugin, PluginFiles, PluginTraces, json_server};

/// The name of the plugin and of its marketplace.
const NAME: &str = "tine";
/// The plugin of that marketplace.
const FULL_NAME: &str = "tine@tine";
/// The objects in which Claude Code notes plugins in the settings, with tine's names in them.
const NOTES: [(&str, &str); 2] = [("enabledPlugins", FULL_NAME), ("extraKnownMarketplaces", NAME)];

impl Plugin for Claude {
    fn folder(&self, data: &Path) -> PathBuf {
        data.join("claude-plugin")
    }

    fn files(&self, program: &str) -> PluginFiles {
        files(program)
    }

    fn hook_file(&self, folder: &Path) -> PathBuf {
        folder.join("hooks/hooks.json")
    }

    fn server_file(&self, folder: &Path) -> PathBuf {
        folder.join(".mcp.json")
    }

    fn contents(&self) -> &'static str {
        "hooks, the MCP server, and a command /tine:tine"
    }

    fn is_enabled(&self, settings: &str) -> bool {
        let root = jsonc::parse(settings).ok().flatten();
        let plugins = root.as_ref().and_then(|root| jsonc::member(root, "enabledPlugins"));
        let switch = plugins.and_then(|plugins| jsonc::member(plugins, FULL_NAME));
        switch.and_then(Value::as_boolean_lit).is_some_and(|switch| switch.value)
    }

    fn containers(&self, settings: &str) -> Vec<String> {
        let root = jsonc::parse(settings).ok().flatten();
        let has = |name: &&str| root.as_ref().is_some_and(|root| jsonc::member(root, name).is_some());
        NOTES.map(|(object, _)| object).iter().filter(|name| has(name)).map(|name| (*name).to_owned()).collect()
    }

    fn without_notes(&self, settings: &str, kept: &[String]) -> String {
        without(settings, &NOTES, kept)
    }

    fn install(&self, program: &Program, folder: &Path) -> Result<(), ProgramError> {
        run(program, folder, &["marketplace", "add", &folder.to_string_lossy()])?;
        run(program, folder, &["install", FULL_NAME]).inspect_err(|_| {
            run(program, folder, &["marketplace", "remove", NAME]).or_log("remove the marketplace of the plugin");
        })
    }

    fn remove(&self, program: &Program, directory: &Path) -> Result<(), ProgramError> {
        run(program, directory, &["uninstall", FULL_NAME])?;
        run(program, directory, &["marketplace", "remove", NAME])
    }

    fn traces(&self) -> PluginTraces {
        let plugins = self.config.join("plugins");
        PluginTraces {
            files: vec![
                (plugins.join("installed_plugins.json"), |text| {
                    without(text, &[("plugins", FULL_NAME)], &["plugins".into()])
                }),
                (plugins.join("known_marketplaces.json"), |text| {
                    jsonc::remove(text, &[Key::Name(NAME)]).unwrap_or_else(|| text.to_owned())
                }),
            ],
            folder: plugins.join("cache").join(NAME),
        }
    }
}

fn files(program: &str) -> PluginFiles {
    let about = "Branch conversations: tine names and lists forks made with /branch and /fork";
    let pretty = |value: serde_json::Value| format!("{value:#}\n");
    let version = env!("CARGO_PKG_VERSION");
    vec![
        (
            ".claude-plugin/plugin.json",
            pretty(json!({
                "name": NAME, "version": version, "description": about,
                "author": { "name": "tine" }, "license": "MIT OR Apache-2.0",
            })),
        ),
        (
            ".claude-plugin/marketplace.json",
            pretty(json!({
                "name": NAME, "owner": { "name": "tine" }, "metadata": { "description": "tine's own plugin" },
                "plugins": [{ "name": NAME, "source": "./", "description": about }],
            })),
        ),
        ("hooks/hooks.json", pretty(json!({ "description": about, "hooks": HOOKS.all(program) }))),
        (".mcp.json", pretty(json!({ "mcpServers": { NAME: json_server::server(program) } }))),
        ("commands/tine.md", command(program)),
        ("README.md", README.to_owned()),
    ]
}

const README: &str = "# tine\n\n\
tine branches conversations with coding agents. This plugin tells tine when a Claude Code session starts, ends, works or\n\
waits, so that forks made inside Claude Code are named immediately. It adds the command `/tine:tine`, which lists and forks\n\
sessions, and an MCP server that lets Claude Code search, fork and control them. `tine setup claude --plugin` writes this\n\
folder, and `tine setup claude --uninstall` removes it.\n";

/// The text of `/tine:tine`.
fn command(program: &str) -> String {
    let program = quoted(program);
    let allowed = ["list", "tree", "show", "info", "fork"].map(|word| format!("Bash({program} {word}:*)")).join(", ");
    format!(
        "---\n\
         description: List the sessions of this project, or fork one at a turn\n\
         argument-hint: \"[list | tree | show SESSION | fork [SESSION][@TURN] [NAME]]\"\n\
         allowed-tools: {}\n\
         ---\n\
         The user typed: $ARGUMENTS\n\n\
         Run one of these commands with `{program}` and show its output as it is:\n\n\
         - nothing, or `list`: `{program} list`\n\
         - `tree`: `{program} tree`\n\
         - `show SESSION`: `{program} show SESSION --markdown`\n\
         - `fork`, with a session, a turn or a name if they gave one:\n\
         \x20 `{program} fork SESSION@TURN NAME --now --in none`. Without a session, or with only a turn, fork this one,\n\
         \x20 `${{CLAUDE_SESSION_ID}}`. Then give the user the command that it printed, to continue in another terminal.\n\n\
         A session is a name, an id or an id prefix; `@3` is the point after turn 3, `@-1` leaves out the last turn. If\n\
         the command fails, show its error and its hint, and do nothing else.\n",
        json!(allowed)
    )
}

/// Removes members of a text's objects, and the objects that are empty then and not in `kept`.
fn without(text: &str, members: &[(&str, &str)], kept: &[String]) -> String {
    let mut text = text.to_owned();
    for (object, member) in members {
        let path = [Key::Name(object), Key::Name(member)];
        text = jsonc::remove(&text, &path).unwrap_or(text);
        let root = jsonc::parse(&text).ok().flatten();
        let is_empty = root.as_ref().and_then(|root| jsonc::member(root, object)).is_some_and(jsonc::is_empty);
        if is_empty && !kept.iter().any(|kept| kept == object) {
            text = jsonc::remove(&text, &path[..1]).unwrap_or(text);
        }
    }
    text
}

fn run(program: &Program, directory: &Path, arguments: &[&str]) -> Result<(), ProgramError> {
    let mut command = program.command(directory);
    command.arg("plugin").args(arguments);
    program.run(command, "", START_PATIENCE).map(drop)
}
