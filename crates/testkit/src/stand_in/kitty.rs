//! `kitty @`: the list names the process of each window, and no device.

use std::path::Path;

use serde_json::json;

use super::pane::Server;
use super::{Terminal, Words, input, runtime};

pub(super) fn run(words: &[String]) -> Result<String, String> {
    let mut words = Words::of(words);
    if [words.next(), words.next()] != [Some("@"), Some("--to")] {
        return Err("a real one would talk to the terminal that it runs in".to_owned());
    }
    let socket = words.value("--to")?;
    let server = Server::of(&runtime(), Terminal::Kitty, socket);
    if !server.runs() {
        return Err(format!("Error: Could not connect to {socket}"));
    }
    let command = words.next().ok_or("no command")?;
    let (mut target, mut directory, mut keeps_focus, mut plain) = (None, "/", false, Vec::new());
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("--cwd", value)) => directory = value,
            Some(("--type" | "--title" | "--match", _)) => {}
            _ if word == "--match" => target = words.value(word)?.strip_prefix("id:"),
            _ if word == "--stdin" => {}
            _ if word == "--keep-focus" => keeps_focus = true,
            _ => {
                plain.push(word.to_owned());
                plain.extend(words.rest());
            }
        }
    }
    let pane = || {
        let found = target.and_then(|target| target.parse().ok()).filter(|pane| server.is_open(*pane));
        found.ok_or_else(|| format!("Error: No matching windows for expression: id:{}", target.unwrap_or("")))
    };
    match command {
        "ls" => {
            let window = |pane: u32| json!({"id": pane, "pid": server.process(pane), "title": "✳ its own title"});
            let windows: Vec<_> = server.panes().into_iter().map(window).collect();
            return Ok(json!([{"id": 1, "tabs": [{"id": 1, "windows": windows}]}]).to_string());
        }
        "launch" => {
            let pane = server.open(Path::new(directory), &plain)?;
            if !keeps_focus {
                server.focus(pane);
            }
            return Ok(format!("{pane}\n"));
        }
        "send-text" => server.write(pane()?, &input()),
        "get-text" => return Ok(server.screen(pane()?)),
        "focus-window" => server.focus(pane()?),
        "close-window" => server.close(pane()?),
        other => return Err(format!("Error: {other} is not a known subcommand for kitty")),
    }
    Ok(String::new())
}
