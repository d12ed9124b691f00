//! Zellij, through its actions, which address panes by number since 0.44. Every call names the session, so tine may run
//! inside or outside Zellij.

use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Driver, Key, NewPane, Pane, PaneInfo, TerminalProgram, Unit, bracketed};
use crate::run::{Error, Result};

pub(super) struct Zellij;

/// Text is passed in arguments, whose length is limited.
const LONGEST_ARGUMENT: usize = 32 << 10;

#[derive(Deserialize)]
struct Listed {
    id: u64,
    #[serde(default)]
    is_plugin: bool,
}

/// How long a server may be too busy to report its session.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

impl Zellij {
    /// Zellij first asks every server for its session. A busy one, for instance while it opens a pane, does not answer
    /// (0.45.1), and its session seems missing. Nothing was done yet, so the call is repeated.
    fn action(caller: &TerminalProgram<'_>, server: &str, words: &[&str]) -> Result<String> {
        let all = [&["--session", server, "action"][..], words].concat();
        let begun = Instant::now();
        loop {
            match caller.call(&all, "", &[]) {
                Err(error) if is_missing(&error) && begun.elapsed() < ANSWERS_WITHIN => {
                    thread::sleep(Duration::from_millis(100));
                }
                answer => return answer,
            }
        }
    }

    fn write(caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST_ARGUMENT));
            Zellij::action(caller, &pane.server, &["write-chars", "--pane-id", &pane.pane, "--", piece])?;
            rest = after;
        }
        Ok(())
    }
}

/// Whether Zellij didn't find the session.
fn is_missing(error: &Error) -> bool {
    let message = error.to_string();
    ["There is no active session", "not found. The following sessions are active"]
        .iter()
        .any(|words| message.contains(words))
}

impl Driver for Zellij {
    fn pane_in_environment(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
        Some((variable("ZELLIJ_SESSION_NAME")?, format!("terminal_{}", variable("ZELLIJ_PANE_ID")?)))
    }

    fn default_server(&self, caller: &TerminalProgram<'_>) -> Result<String> {
        let listed = caller.call(&["list-sessions", "--no-formatting"], "", &[]).unwrap_or_default();
        let running = listed.lines().filter(|line| !line.contains("(EXITED"));
        let mut names = running.filter_map(|line| line.split_whitespace().next());
        match (names.next(), names.next()) {
            (Some(name), None) => Ok(name.to_owned()),
            (None, _) => Err(caller.failed("no session is running")),
            (Some(_), Some(_)) => Err(caller.failed("several sessions are running; run tine inside the one you mean")),
        }
    }

    fn open(
        &self,
        caller: &TerminalProgram<'_>,
        server: &str,
        _near: Option<&str>,
        unit: Unit,
        order: &NewPane<'_>,
    ) -> Result<String> {
        let directory = order.directory.to_string_lossy();
        let name = order.name.map_or("tine", |name| name.as_str());
        let kind: &[&str] = match unit {
            Unit::Pane => &["new-pane", "--direction", "right", "--close-on-exit"],
            Unit::Tab | Unit::Window => &["new-tab", "--close-on-exit"],
        };
        let command: Vec<&str> = order.words.iter().map(String::as_str).collect();
        let words = [kind, &["--name", name, "--cwd", directory.as_ref(), "--"], &command].concat();
        let before = self.list(caller, server)?;
        let told = Zellij::action(caller, server, &words)?;
        if let Some(pane) = told.split_whitespace().find(|word| word.starts_with("terminal_")) {
            return Ok(pane.to_owned());
        }
        let is_new = |pane: &PaneInfo| !before.iter().any(|known| known.pane == pane.pane);
        let new = self.list(caller, server)?.into_iter().find(is_new);
        new.map(|pane| pane.pane).ok_or_else(|| caller.failed("no pane was opened"))
    }

    fn list(&self, caller: &TerminalProgram<'_>, server: &str) -> Result<Vec<PaneInfo>> {
        let told = Zellij::action(caller, server, &["list-panes", "--json"])?;
        let all: Vec<Listed> =
            serde_json::from_str(&told).map_err(|error| caller.failed(format!("its list of panes: {error}")))?;
        let info = |pane: Listed| PaneInfo { pane: format!("terminal_{}", pane.id), ..PaneInfo::default() };
        Ok(all.into_iter().filter(|pane| !pane.is_plugin).map(info).collect())
    }

    fn paste(&self, caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()> {
        Zellij::write(caller, pane, &bracketed(text))
    }

    fn press(&self, caller: &TerminalProgram<'_>, pane: &Pane, key: Key) -> Result<()> {
        Zellij::write(caller, pane, key.bytes())
    }

    fn screen(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<String> {
        Zellij::action(caller, &pane.server, &["dump-screen", "--pane-id", &pane.pane])
    }

    fn focus(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        Zellij::action(caller, &pane.server, &["focus-pane-id", &pane.pane]).map(|_| ())
    }

    fn close(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        Zellij::action(caller, &pane.server, &["close-pane", "--pane-id", &pane.pane]).map(|_| ())
    }
}
