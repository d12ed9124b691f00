//! `wezterm cli`: the list names the device of each pane, and no process.

use std::path::Path;

use serde_json::json;

use super::pane::Server;
use super::{Terminal, Words, bracketed, input, runtime};

pub(super) fn run(words: &[String]) -> Result<String, String> {
    let mut words = Words::of(words);
    if [words.next(), words.next(), words.next()] != [Some("-n"), Some("cli"), Some("--no-auto-start")] {
        return Err("a real one would run the person's configuration, or start a server".to_owned());
    }
    let socket = std::env::var("WEZTERM_UNIX_SOCKET").unwrap_or_default();
    let server = Server::of(&runtime(), Terminal::Wezterm, &socket);
    if !server.runs() {
        return Err(format!("failed to connect to Socket({socket:?}): connecting to {socket}; terminating"));
    }
    let command = words.next().ok_or("no command")?;
    let (mut target, mut directory, mut pastes, mut plain) = (None, "/", true, Vec::new());
    while let Some(word) = words.next() {
        match word {
            "--pane-id" | "--window-id" => target = Some(words.value(word)?),
            "--cwd" => directory = words.value(word)?,
            "--no-paste" => pastes = false,
            "--format" | "--start-line" | "--end-line" => drop(words.value(word)?),
            "--new-window" | "--right" | "--bottom" => {}
            "--" => plain.extend(words.rest()),
            word => plain.push(word.to_owned()),
        }
    }
    let pane = || {
        let found = target.and_then(|target| target.parse().ok()).filter(|pane| server.is_open(*pane));
        found.ok_or_else(|| format!("no such pane {}", target.unwrap_or("")))
    };
    match command {
        "list" => {
            let listed = server.panes().into_iter().map(|pane| {
                json!({
                    "window_id": 0, "tab_id": pane, "pane_id": pane, "workspace": "default",
                    "size": {"rows": 50, "cols": 160}, "title": "✳ a title of the agent's own", "cwd": "",
                    "is_active": true, "tty_name": server.device(pane),
                })
            });
            return Ok(json!(listed.collect::<Vec<_>>()).to_string());
        }
        "spawn" | "split-pane" => return Ok(format!("{}\n", server.open(Path::new(directory), &plain)?)),
        "send-text" => {
            let text = input();
            server.write(pane()?, &if pastes { bracketed(&text) } else { text });
        }
        "get-text" => return Ok(server.screen(pane()?)),
        "activate-pane" => server.focus(pane()?),
        "set-tab-title" => drop(pane()?),
        "kill-pane" => server.close(pane()?),
        other => return Err(format!("unrecognized subcommand '{other}'")),
    }
    Ok(String::new())
}
