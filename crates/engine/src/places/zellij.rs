//! Zellij, by its actions. They address panes by number since 0.44.

use serde::Deserialize;

use super::{Caller, Driver, Key, Order, Pane, PaneInfo, Unit, bracketed};
use crate::error::Result;

pub(super) struct Zellij;

/// Text goes by arguments, which have a limit.
const LONGEST_ARGUMENT: usize = 32 << 10;

#[derive(Deserialize)]
struct Listed {
    id: u64,
    #[serde(default)]
    is_plugin: bool,
    #[serde(default)]
    title: String,
}

impl Zellij {
    fn action(caller: &Caller<'_>, server: &str, words: &[&str]) -> Result<String> {
        caller.call(&[&["--session", server, "action"][..], words].concat(), "", &[])
    }

    fn write(caller: &Caller<'_>, pane: &Pane, text: &str) -> Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST_ARGUMENT));
            Zellij::action(caller, &pane.server, &["write-chars", "--pane-id", &pane.pane, "--", piece])?;
            rest = after;
        }
        Ok(())
    }
}

impl Driver for Zellij {
    fn around(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
        Some((variable("ZELLIJ_SESSION_NAME")?, format!("terminal_{}", variable("ZELLIJ_PANE_ID")?)))
    }

    fn default_server(&self, caller: &Caller<'_>) -> Result<String> {
        Err(caller.failed("no Zellij is around"))
    }

    fn open(&self, caller: &Caller<'_>, server: &str, _near: Option<&str>, order: &Order<'_>) -> Result<String> {
        let directory = order.directory.to_string_lossy();
        let name = order.name.map_or("tine", |name| name.as_str());
        let kind: &[&str] = match order.unit {
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
        new.map(|pane| pane.pane).ok_or_else(|| caller.failed("it opened no pane"))
    }

    fn list(&self, caller: &Caller<'_>, server: &str) -> Result<Vec<PaneInfo>> {
        let told = Zellij::action(caller, server, &["list-panes", "--json"])?;
        let all: Vec<Listed> =
            serde_json::from_str(&told).map_err(|error| caller.failed(format!("its list of panes: {error}")))?;
        let info = |pane: Listed| PaneInfo {
            pane: format!("terminal_{}", pane.id),
            mark: Some(pane.title),
            ..PaneInfo::default()
        };
        Ok(all.into_iter().filter(|pane| !pane.is_plugin).map(info).collect())
    }

    fn paste(&self, caller: &Caller<'_>, pane: &Pane, text: &str) -> Result<()> {
        Zellij::write(caller, pane, &bracketed(text))
    }

    fn press(&self, caller: &Caller<'_>, pane: &Pane, key: Key) -> Result<()> {
        Zellij::write(caller, pane, key.bytes())
    }

    fn screen(&self, caller: &Caller<'_>, pane: &Pane) -> Result<String> {
        Zellij::action(caller, &pane.server, &["dump-screen", "--pane-id", &pane.pane])
    }

    fn focus(&self, caller: &Caller<'_>, pane: &Pane) -> Result<()> {
        Zellij::action(caller, &pane.server, &["focus-pane-id", &pane.pane]).map(|_| ())
    }

    fn close(&self, caller: &Caller<'_>, pane: &Pane) -> Result<()> {
        Zellij::action(caller, &pane.server, &["close-pane", "--pane-id", &pane.pane]).map(|_| ())
    }
}
