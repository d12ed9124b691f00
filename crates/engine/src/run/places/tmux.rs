//! tmux. Panes are addressed by their numbers only.

use std::path::PathBuf;

use diagnostics::OrLog;

use super::{Driver, Key, NewPane, Pane, PaneInfo, TerminalProgram, Unit};
use crate::run::Result;

pub(super) struct Tmux;

/// The tmux session that is created for a new window if none exists.
const OWN_SESSION: &str = "tine";

impl Tmux {
    fn call(caller: &TerminalProgram<'_>, server: &str, words: &[&str], input: &str) -> Result<String> {
        let mut all = Vec::new();
        if !server.is_empty() {
            all.extend(["-S", server]);
        }
        all.extend(words);
        caller.call(&all, input, &[])
    }
}

impl Driver for Tmux {
    fn pane_in_environment(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
        let (tmux, pane) = (variable("TMUX")?, variable("TMUX_PANE")?);
        // The socket, the server's process and the session, separated by commas.
        let socket = tmux.rsplitn(3, ',').nth(2)?.to_owned();
        Some((socket, pane))
    }

    fn default_server(&self, _caller: &TerminalProgram<'_>) -> Result<String> {
        // tmux finds its usual one, or starts it.
        Ok(String::new())
    }

    fn open(
        &self,
        caller: &TerminalProgram<'_>,
        server: &str,
        near: Option<&str>,
        unit: Unit,
        order: &NewPane<'_>,
    ) -> Result<String> {
        // tmux expands what follows a `#` as a format, which can run programs.
        let directory = order.directory.to_string_lossy().replace('#', "##");
        let title = order.name.map_or("tine", |name| name.as_str());
        let print = ["-P", "-F", "#{pane_id}", "-c", directory.as_str()];
        // Several words after the options are a command and its arguments; no shell sees them.
        let command: Vec<&str> = order.words.iter().map(String::as_str).collect();
        let quiet: &[&str] = if order.focus { &[] } else { &["-d"] };
        let split = |target: &str| {
            let words = [&["split-window", "-h", "-t", target][..], quiet, &print, &["--"], &command].concat();
            Tmux::call(caller, server, &words, "")
        };
        let window = |target: &str| {
            let words = [&["new-window", "-n", title, "-t", target][..], quiet, &print, &["--"], &command].concat();
            Tmux::call(caller, server, &words, "")
        };
        let session = |name: &str| {
            let size = ["-x", "200", "-y", "50"];
            let words =
                [&["new-session", "-d", "-n", title, "-s", name][..], &size, &print, &["--"], &command].concat();
            Tmux::call(caller, server, &words, "")
        };
        let session_of = |pane: &str| {
            let words = ["display-message", "-p", "-t", pane, "#{session_id}"];
            Ok::<_, crate::run::Error>(format!("{}:", Tmux::call(caller, server, &words, "")?.trim()))
        };
        let made = match (unit, near) {
            (Unit::Pane, Some(near)) => match split(near) {
                // If the window is too small for another pane, open a new window.
                Err(error) if error.to_string().contains("no space") => window(&session_of(near)?),
                made => made,
            },
            (Unit::Tab, Some(near)) => window(&session_of(near)?),
            (Unit::Window, _) => session(title),
            (Unit::Pane | Unit::Tab, None) => {
                let exists = Tmux::call(caller, server, &["has-session", "-t", "=tine"], "").is_ok();
                if exists { window("=tine:") } else { session(OWN_SESSION) }
            }
        };
        let pane = made?.trim().to_owned();
        if !pane.starts_with('%') {
            return Err(caller.failed(format!("unexpected pane id `{pane}`")));
        }
        Ok(pane)
    }

    fn list(&self, caller: &TerminalProgram<'_>, server: &str) -> Result<Vec<PaneInfo>> {
        let format = "#{pane_id}\t#{pane_pid}\t#{pane_tty}\t#{pane_dead}";
        let told = Tmux::call(caller, server, &["list-panes", "-a", "-F", format], "")?;
        let parse = |line: &str| {
            let mut fields = line.split('\t');
            let pane = fields.next()?.to_owned();
            let pid = fields.next()?.parse().ok();
            let tty = fields.next().filter(|tty| !tty.is_empty()).map(PathBuf::from);
            let is_dead = fields.next() == Some("1");
            (!is_dead).then_some(PaneInfo { pane, tty, pid })
        };
        Ok(told.lines().filter_map(parse).collect())
    }

    fn paste(&self, caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()> {
        let buffer = format!("tine-{}", uuid::Uuid::new_v4().simple());
        Tmux::call(caller, &pane.server, &["load-buffer", "-b", &buffer, "-"], text)?;
        let words = ["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &pane.pane];
        Tmux::call(caller, &pane.server, &words, "").map(|_| ())
    }

    fn press(&self, caller: &TerminalProgram<'_>, pane: &Pane, key: Key) -> Result<()> {
        const CLEAR: [&str; 9] = ["C-e", "C-u", "BSpace", "C-u", "BSpace", "C-u", "BSpace", "C-u", "BSpace"];
        let keys: &[&str] = match key {
            Key::Enter => &["Enter"],
            Key::Escape => &["Escape"],
            Key::Q => &["q"],
            Key::Editor => &["C-g"],
            Key::Clear => &CLEAR,
        };
        // In copy mode, keys would be commands.
        let leave = format!("send-keys -t {} -X cancel", pane.pane);
        let scrolled = ["if-shell", "-F", "-t", &pane.pane, "#{pane_in_mode}", &leave, ";"];
        let words = [&scrolled[..], &["send-keys", "-t", &pane.pane], keys].concat();
        Tmux::call(caller, &pane.server, &words, "").map(|_| ())
    }

    fn screen(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<String> {
        Tmux::call(caller, &pane.server, &["capture-pane", "-p", "-t", &pane.pane], "")
    }

    fn focus(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        let target = pane.pane.as_str();
        let words = ["select-window", "-t", target, ";", "select-pane", "-t", target];
        Tmux::call(caller, &pane.server, &words, "")?;
        // Without an attached client there is nothing to bring to the front.
        Tmux::call(caller, &pane.server, &["switch-client", "-t", target], "").or_log("switch the tmux client");
        Ok(())
    }

    fn close(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        Tmux::call(caller, &pane.server, &["kill-pane", "-t", &pane.pane], "").map(|_| ())
    }
}
