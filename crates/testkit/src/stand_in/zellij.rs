//! `zellij action`: the list names neither process nor device, and titles are whatever the programs make of them.
//!
//! While a server is busy with a new pane, Zellij 0.45.1 says that there is no session at all.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::pane::Server;
use super::{Terminal, Words, runtime};

pub(super) fn run(words: &[String]) -> Result<String, String> {
    let mut words = Words::of(words);
    let first = words.next();
    if first == Some("list-sessions") {
        let names = Server::names(&runtime(), Terminal::Zellij);
        return Ok(names.iter().map(|name| format!("{name} [Created 1s ago]\n")).collect());
    }
    if first != Some("--session") {
        return Err("There is no active session!".to_owned());
    }
    let session = words.value("--session")?;
    let server = Server::of(&runtime(), Terminal::Zellij, session);
    if !server.runs() {
        return Err(format!("Session '{session}' not found. The following sessions are active:"));
    }
    if fs::remove_file(server.note("busy")).is_ok() {
        return Err("There is no active session!".to_owned());
    }
    if words.next() != Some("action") {
        return Err("only actions are known here".to_owned());
    }
    let command = words.next().ok_or("no action")?;
    let (mut target, mut directory, mut plain) = (None, "/", Vec::new());
    while let Some(word) = words.next() {
        match word {
            "--pane-id" => target = Some(words.value(word)?),
            "--cwd" => directory = words.value(word)?,
            "--name" | "--direction" => drop(words.value(word)?),
            "--close-on-exit" | "--json" => {}
            "--" => plain.extend(words.rest()),
            word => plain.push(word.to_owned()),
        }
    }
    let named = target.or(plain.first().map(String::as_str));
    let pane = || {
        let found = named.and_then(|target| target.strip_prefix("terminal_")?.parse().ok());
        found.filter(|pane| server.is_open(*pane)).ok_or_else(|| format!("Pane {} not found", named.unwrap_or("")))
    };
    match command {
        "list-panes" => {
            let listed = server.panes().into_iter().map(|pane| {
                json!({"id": pane, "is_plugin": false, "title": "✳ a title of the agent's own", "exited": false})
            });
            let plugin = json!({"id": 0, "is_plugin": true, "title": "tab-bar"});
            return Ok(json!(listed.chain([plugin]).collect::<Vec<_>>()).to_string());
        }
        "new-pane" | "new-tab" => {
            let pane = server.open(Path::new(directory), &plain)?;
            super::write_at_once(&server.note("busy"), "");
            server.focus(pane);
            return Ok(if command == "new-pane" { format!("terminal_{pane}\n") } else { "1\n".to_owned() });
        }
        "write-chars" => server.write(pane()?, plain.last().map_or("", String::as_str)),
        "dump-screen" => return Ok(server.screen(pane()?)),
        "focus-pane-id" => server.focus(pane()?),
        "close-pane" => server.close(pane()?),
        other => return Err(format!("error: unrecognized subcommand '{other}'")),
    }
    Ok(String::new())
}
