//! A plugin for Claude Code: the hooks and a command, in a folder of tine's own that is its own marketplace.
//!
//! Claude Code reads the folder in place, so writing it anew is all that an update takes. Putting the plugin in and taking
//! it out is left to Claude Code's program, which also writes the person's settings; those are put back as they were.

use std::fs;
use std::path::Path;

use jsonc_parser::ast::Value;
use serde_json::json;
use transcript::Agent;

use super::file;
use super::hooks;
use super::jsonc::{self, Key};
use super::server;
use crate::error::{Error, Result};
use crate::{Tine, private};

/// The plugin's name, and that of its marketplace.
const NAME: &str = "tine";

/// The files of the plugin.
pub(super) type Files = Vec<(&'static str, String)>;

/// What the plugin consists of.
pub(super) fn files(program: &str) -> Files {
    let about = "Branch conversations: forks made with /branch and /fork are noticed, named and listed at once";
    let events: serde_json::Map<_, _> = hooks::events(Agent::Claude)
        .iter()
        .map(|event| (hooks::key(*event).to_owned(), json!([hooks::group(program, *event, Agent::Claude)])))
        .collect();
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
        ("hooks/hooks.json", pretty(json!({ "description": about, "hooks": events }))),
        (".mcp.json", pretty(json!({ "mcpServers": { NAME: server::json_server(program) } }))),
        ("commands/tine.md", command(program)),
        ("README.md", README.to_owned()),
    ]
}

const README: &str = "# tine\n\n\
tine branches conversations with coding agents. This plugin tells it when a session of Claude Code begins, ends, works or\n\
waits, so that a fork made inside of Claude Code has a name at once. It adds the command `/tine:tine`, which lists and\n\
forks sessions, and a server by which Claude Code itself searches, forks and drives them. `tine setup claude --plugin` wrote this folder and writes it anew; `tine setup claude --uninstall` removes\n\
it.\n";

/// The text of `/tine:tine`.
fn command(program: &str) -> String {
    let program = hooks::quoted(program);
    let allowed = ["list", "tree", "show", "info", "fork"].map(|word| format!("Bash({program} {word}:*)")).join(", ");
    format!(
        "---\n\
         description: List the sessions of this project, or fork one at a turn\n\
         argument-hint: \"[list | tree | show SESSION | fork [SESSION][@TURN] [NAME]]\"\n\
         allowed-tools: {}\n\
         ---\n\
         The person typed: $ARGUMENTS\n\n\
         Do it with the program `{program}`, by one of these, and show what it prints without retelling it:\n\n\
         - nothing, or `list`: `{program} list`\n\
         - `tree`: `{program} tree`\n\
         - `show SESSION`: `{program} show SESSION --markdown`\n\
         - `fork`, with a session, a turn or a name if they gave one:\n\
         \x20 `{program} fork SESSION@TURN NAME --now --in none`. Without a session, or with a turn alone, it is this one,\n\
         \x20 `${{CLAUDE_SESSION_ID}}`. Then tell the person the command that it printed: they run it in another terminal\n\
         \x20 to go on there.\n\n\
         A session is a name, an id or the beginning of one; `@3` is the point after turn 3, `@-1` leaves out the last\n\
         turn. If it fails, show its error and its hint, and do nothing else.\n",
        json!(allowed)
    )
}

/// Whether settings have the plugin switched on.
pub(super) fn is_enabled(settings: Option<&str>) -> bool {
    let (_, text) = file::split_mark(settings.unwrap_or_default());
    let root = jsonc::parse(text).ok().flatten();
    let plugins = root.as_ref().and_then(|root| jsonc::member(root, "enabledPlugins"));
    let switch = plugins.and_then(|plugins| jsonc::member(plugins, &format!("{NAME}@{NAME}")));
    switch.and_then(Value::as_boolean_lit).is_some_and(|switch| switch.value)
}

/// The objects in which Claude Code notes plugins in settings, with tine's names in them.
const NOTES: [(&str, &str); 2] = [("enabledPlugins", "tine@tine"), ("extraKnownMarketplaces", NAME)];

/// A text without some of the members of its objects, and without the objects where they are empty then and not `kept`.
fn without(text: &str, members: &[(&str, &str)], kept: &[String]) -> String {
    let (mark, text) = file::split_mark(text);
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
    format!("{mark}{text}")
}

/// Which of the objects that hold notes of plugins a text has.
fn kept_in(text: &str) -> Vec<String> {
    let root = jsonc::parse(file::split_mark(text).1).ok().flatten();
    let has = |name: &&str| root.as_ref().is_some_and(|root| jsonc::member(root, name).is_some());
    NOTES.map(|(object, _)| object).iter().filter(|name| has(name)).map(|name| (*name).to_owned()).collect()
}

/// Whether the folder holds just these files.
pub(super) fn is_written(folder: &Path, files: &Files) -> bool {
    files.iter().all(|(name, text)| fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text))
}

impl Tine {
    pub(super) fn install_plugin(&self, files: &Files, is_known: bool) -> Result<()> {
        let folder = self.plugin_folder();
        for (name, text) in files {
            let path = folder.join(name);
            let written = private::create_folder(path.parent().unwrap_or(&folder))
                .and_then(|()| file::put(&path, text, None, false));
            written.map_err(|source| Error::NotSetUp { path, source })?;
        }
        if is_known {
            return Ok(());
        }
        let remove = |error: Error| {
            let _ = fs::remove_dir_all(&folder);
            error
        };
        let program = self.program(Agent::Claude).map_err(remove)?;
        let settings = self.claude_settings();
        let kept = kept_in(&file::read(&settings)?.unwrap_or_default());
        let before = match file::read(&settings)? {
            Some(text) => {
                let backup = file::back_up(&file::real(&settings), self.context().clock.now());
                Some((text, backup.map_err(|source| Error::NotSetUp { path: settings.clone(), source })?))
            }
            None => None,
        };
        let installed = agents::claude::install_plugin(&program, &folder, NAME, NAME);
        if let Err(error) = installed {
            self.put_back(&settings, before)?;
            return Err(remove(Error::SetupProgram(error)));
        }
        file::note_change(&mut self.registry(), &settings, before, kept)
    }

    pub(super) fn remove_plugin(&self) -> Result<()> {
        let (folder, settings) = (self.plugin_folder(), self.claude_settings());
        file::check_writable(&settings)?;
        let now = file::read(&settings)?.unwrap_or_default();
        let was = file::as_it_was(&self.registry(), &settings, &now);
        let receipt = self.registry().receipt(&settings).unwrap_or_default();
        match self.program(Agent::Claude) {
            Ok(program) => {
                let home = self.context().surroundings.home.clone();
                agents::claude::remove_plugin(&program, &home, NAME, NAME).map_err(Error::SetupProgram)?;
            }
            Err(_) => self.forget_plugin()?,
        }
        // Claude Code leaves traces of plugins that are gone. Where nobody else has changed the file, it is put back.
        match was {
            Some(was) => self.put_back(&settings, was.zip(receipt.backup))?,
            None => take_out(&settings, &NOTES, &receipt.kept)?,
        }
        self.registry().keep_receipt(&settings, None)?;
        match fs::remove_dir_all(&folder) {
            Err(source) if folder.exists() => Err(Error::NotSetUp { path: folder, source }),
            _ => Ok(()),
        }
    }

    /// Takes the plugin out of Claude Code's own notes, where its program is not there to do so.
    fn forget_plugin(&self) -> Result<()> {
        let plugins = self.store(Agent::Claude).home().join("plugins");
        take_out(&plugins.join("installed_plugins.json"), &[("plugins", "tine@tine")], &["plugins".into()])?;
        let markets = plugins.join("known_marketplaces.json");
        if let Some(text) = file::read(&markets)? {
            let text = jsonc::remove(&text, &[Key::Name(NAME)]).unwrap_or(text);
            file::put_again(&markets, &text)?;
        }
        let _ = fs::remove_dir_all(plugins.join("cache").join(NAME));
        Ok(())
    }

    /// Makes the settings what they were; the backup is then not needed any more.
    fn put_back(&self, settings: &Path, was: Option<(String, std::path::PathBuf)>) -> Result<()> {
        let path = file::real(settings);
        let failed = |source| Error::NotSetUp { path: settings.to_owned(), source };
        match was {
            Some((text, backup)) => {
                let mode = fs::metadata(&backup).map(|metadata| metadata.permissions()).ok();
                file::put(&path, &text, mode.as_ref(), false).map_err(failed)?;
                let _ = fs::remove_file(backup);
            }
            None if path.exists() => fs::remove_file(&path).map_err(failed)?,
            None => {}
        }
        Ok(())
    }
}

/// Takes members out of the objects in a file, if there is one.
fn take_out(path: &Path, members: &[(&str, &str)], kept: &[String]) -> Result<()> {
    let Some(text) = file::read(path)? else {
        return Ok(());
    };
    file::put_again(path, &without(&text, members, kept))
}
