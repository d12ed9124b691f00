//! WezTerm, through `wezterm cli`. It never starts a server, and every pane is checked first: an unknown one would open a
//! window somewhere.

use std::path::PathBuf;

use diagnostics::OrLog;
use serde::Deserialize;

use super::{Driver, Key, NewPane, Pane, PaneInfo, TerminalProgram, Unit};
use crate::run::Result;

pub(super) struct Wezterm;

/// A narrower pane is not split, because WezTerm would start the program and have no room for it.
const NARROWEST: u64 = 60;
const LOWEST: u64 = 12;

#[derive(Deserialize)]
struct Listed {
    window_id: u64,
    pane_id: u64,
    size: Size,
    tty_name: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Size {
    rows: u64,
    cols: u64,
}

impl Wezterm {
    fn call(caller: &TerminalProgram<'_>, server: &str, words: &[&str], input: &str) -> Result<String> {
        // The person's configuration is a program, which need not run for every call.
        let all = [&["-n", "cli", "--no-auto-start"][..], words].concat();
        caller.call(&all, input, &[("WEZTERM_UNIX_SOCKET", server)])
    }

    fn listed(caller: &TerminalProgram<'_>, server: &str) -> Result<Vec<Listed>> {
        let told = Wezterm::call(caller, server, &["list", "--format", "json"], "")?;
        serde_json::from_str(&told).map_err(|error| caller.failed(format!("its list of panes: {error}")))
    }
}

impl Driver for Wezterm {
    fn pane_in_environment(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
        Some((variable("WEZTERM_UNIX_SOCKET")?, variable("WEZTERM_PANE")?))
    }

    fn default_server(&self, caller: &TerminalProgram<'_>) -> Result<String> {
        let runtime = caller.context().variable("XDG_RUNTIME_DIR");
        let socket = runtime.map(|folder| PathBuf::from(folder).join("wezterm/sock"));
        let socket = socket.filter(|socket| socket.exists());
        socket
            .map(|socket| socket.to_string_lossy().into_owned())
            .ok_or_else(|| caller.failed("WezTerm is not running"))
    }

    fn open(
        &self,
        caller: &TerminalProgram<'_>,
        server: &str,
        near: Option<&str>,
        unit: Unit,
        order: &NewPane<'_>,
    ) -> Result<String> {
        let all = Wezterm::listed(caller, server)?;
        let near = near.and_then(|near| all.iter().find(|pane| pane.pane_id.to_string() == near));
        let directory = order.directory.to_string_lossy();
        let command: Vec<&str> = order.words.iter().map(String::as_str).collect();
        let rest = [&["--cwd", directory.as_ref(), "--"][..], &command].concat();
        let has_room = |pane: &Listed| pane.size.cols >= NARROWEST || pane.size.rows >= LOWEST;
        let made = match (unit, near) {
            (Unit::Pane, Some(near)) if has_room(near) => {
                let id = near.pane_id.to_string();
                let side = if near.size.cols >= NARROWEST { "--right" } else { "--bottom" };
                Wezterm::call(caller, server, &[&["split-pane", "--pane-id", &id, side][..], &rest].concat(), "")
            }
            (Unit::Pane | Unit::Tab, Some(near)) => {
                let window = near.window_id.to_string();
                Wezterm::call(caller, server, &[&["spawn", "--window-id", &window][..], &rest].concat(), "")
            }
            _ => Wezterm::call(caller, server, &[&["spawn", "--new-window"][..], &rest].concat(), ""),
        };
        let id = made?.trim().to_owned();
        let pane = Pane { terminal: super::Terminal::Wezterm, server: server.to_owned(), pane: id.clone() };
        // A program that can't be started leaves a dead pane and no error.
        let is_alive = Wezterm::listed(caller, server)?
            .iter()
            .any(|pane| pane.pane_id.to_string() == id && pane.tty_name.is_some());
        if !is_alive {
            self.close(caller, &pane).or_log("close the pane");
            return Err(caller.failed("the program did not start in the new pane"));
        }
        if let (Some(name), Unit::Tab | Unit::Window) = (order.name, unit) {
            Wezterm::call(caller, server, &["set-tab-title", "--pane-id", &id, name.as_str()], "")
                .or_log("set the title of the tab");
        }
        if order.focus {
            self.focus(caller, &pane).or_log("focus the pane");
        }
        Ok(id)
    }

    fn list(&self, caller: &TerminalProgram<'_>, server: &str) -> Result<Vec<PaneInfo>> {
        let all = Wezterm::listed(caller, server)?.into_iter();
        let info =
            |pane: Listed| PaneInfo { pane: pane.pane_id.to_string(), tty: pane.tty_name, ..PaneInfo::default() };
        Ok(all.map(info).collect())
    }

    fn paste(&self, caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()> {
        // WezTerm brackets it itself. A paste never blocks its server, as plain text would.
        Wezterm::call(caller, &pane.server, &["send-text", "--pane-id", &pane.pane], text).map(|_| ())
    }

    fn press(&self, caller: &TerminalProgram<'_>, pane: &Pane, key: Key) -> Result<()> {
        let words = ["send-text", "--no-paste", "--pane-id", &pane.pane];
        Wezterm::call(caller, &pane.server, &words, key.bytes()).map(|_| ())
    }

    fn screen(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<String> {
        let all = Wezterm::listed(caller, &pane.server)?;
        let own = all.iter().find(|listed| listed.pane_id.to_string() == pane.pane);
        let last = own.map_or(23, |own| own.size.rows.saturating_sub(1)).to_string();
        let words = ["get-text", "--pane-id", &pane.pane, "--start-line", "0", "--end-line", &last];
        Wezterm::call(caller, &pane.server, &words, "")
    }

    fn focus(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        Wezterm::call(caller, &pane.server, &["activate-pane", "--pane-id", &pane.pane], "").map(|_| ())
    }

    fn close(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        Wezterm::call(caller, &pane.server, &["kill-pane", "--pane-id", &pane.pane], "").map(|_| ())
    }
}
