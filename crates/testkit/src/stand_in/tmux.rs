//! `tmux`: panes have the numbers `%1`, `%2` and so on; the list names process and device.

use std::path::Path;

use super::pane::Server;
use super::{Terminal, Words, bracketed, input, runtime};

pub(super) fn run(words: &[String]) -> Result<String, String> {
    let mut words = Words::of(words);
    let (mut socket, mut command) = (runtime().join("tmux-default").display().to_string(), words.next());
    if command == Some("-S") {
        socket = words.value("-S")?.to_owned();
        command = words.next();
    }
    let server = Server::of(&runtime(), Terminal::Tmux, &socket);
    let command = command.ok_or("no command")?;
    if !server.runs() {
        if command != "new-session" {
            return Err(format!("no server running on {socket}"));
        }
        server.create();
    }
    let mut output = String::new();
    let mut rest = words.rest();
    // Several commands stand on one line, with semicolons between them.
    rest.insert(0, command.to_owned());
    for one in rest.split(|word| word == ";") {
        if let [command, words @ ..] = one {
            output.push_str(&one_command(&server, command, &mut Words::of(words))?);
        }
    }
    Ok(output)
}

fn one_command(server: &Server, command: &str, words: &mut Words<'_>) -> Result<String, String> {
    let (mut target, mut directory, mut buffer, mut format, mut plain) = (None, "/", "", "", Vec::new());
    let mut quiet = false;
    while let Some(word) = words.next() {
        match word {
            "-t" => target = Some(words.value(word)?),
            "-c" => directory = words.value(word)?,
            "-b" => buffer = words.value(word)?,
            "-F" if command == "if-shell" => {}
            "-F" => format = words.value(word)?,
            "-n" | "-s" | "-x" | "-y" => drop(words.value(word)?),
            "-d" => quiet = true,
            "-h" | "-P" | "-p" | "-a" => {}
            "--" => plain.extend(words.rest()),
            word => plain.push(word.to_owned()),
        }
    }
    let pane = || {
        let found = target.and_then(|target| target.strip_prefix('%')?.parse().ok());
        found.filter(|pane| server.is_open(*pane)).ok_or_else(|| format!("can't find pane: {}", target.unwrap_or("")))
    };
    match command {
        "split-window" | "new-window" | "new-session" => {
            let pane = server.open(Path::new(directory), &plain)?;
            if !quiet {
                server.focus(pane);
            }
            return Ok(format!("%{pane}\n"));
        }
        "list-panes" => {
            let line = |pane: u32| {
                let process = server.process(pane).unwrap_or_default().to_string();
                let line = format.replace("#{pane_id}", &format!("%{pane}")).replace("#{pane_pid}", &process);
                line.replace("#{pane_tty}", &server.device(pane)).replace("#{pane_dead}", "0") + "\n"
            };
            return Ok(server.panes().into_iter().map(line).collect());
        }
        "display-message" => return pane().map(|_| "$0\n".to_owned()),
        "has-session" => {}
        "load-buffer" => super::write_at_once(&server.note(buffer), &input()),
        "paste-buffer" => {
            let text = std::fs::read_to_string(server.note(buffer)).map_err(|_| format!("no buffer {buffer}"))?;
            let _ = std::fs::remove_file(server.note(buffer));
            server.write(pane()?, &bracketed(&text));
        }
        "send-keys" => {
            let pane = pane()?;
            let keys: String = plain.iter().map(|key| key_bytes(key)).collect();
            server.write(pane, &keys);
        }
        // Nobody scrolls back here.
        "if-shell" => drop(pane()?),
        "capture-pane" => return Ok(server.screen(pane()?)),
        "select-window" | "select-pane" => server.focus(pane()?),
        "switch-client" => return Err("no current client".to_owned()),
        "kill-pane" => server.close(pane()?),
        other => return Err(format!("unknown command: {other}")),
    }
    Ok(String::new())
}

fn key_bytes(key: &str) -> String {
    match key {
        "Enter" => "\r".to_owned(),
        "Escape" => "\u{1b}".to_owned(),
        "BSpace" => "\u{7f}".to_owned(),
        key => match key.strip_prefix("C-").and_then(|letter| letter.bytes().next()) {
            Some(letter) => char::from(letter & 0x1f).to_string(),
            None => key.to_owned(),
        },
    }
}
