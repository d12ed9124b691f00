//! kitty, through its remote control. kitty calls its panes windows.

use serde::Deserialize;

use super::{Driver, Key, NewPane, Pane, PaneInfo, TerminalProgram, Unit, bracketed};
use crate::run::Result;

pub(super) struct Kitty;

#[derive(Deserialize)]
struct OsWindow {
    tabs: Vec<Tab>,
}

#[derive(Deserialize)]
struct Tab {
    windows: Vec<Window>,
}

#[derive(Deserialize)]
struct Window {
    id: u64,
    pid: Option<u32>,
}

impl Kitty {
    fn call(caller: &TerminalProgram<'_>, server: &str, words: &[&str], input: &str) -> Result<String> {
        let mut all = vec!["@"];
        if !server.is_empty() {
            all.extend(["--to", server]);
        }
        all.extend(words);
        caller.call(&all, input, &[])
    }

    fn send(caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()> {
        let own = format!("id:{}", pane.pane);
        Kitty::call(caller, &pane.server, &["send-text", "--match", &own, "--stdin"], text).map(|_| ())
    }
}

impl Driver for Kitty {
    fn pane_in_environment(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
        let window = variable("KITTY_WINDOW_ID")?;
        // Without a socket, kitty is reached through the terminal itself.
        Some((variable("KITTY_LISTEN_ON").unwrap_or_default(), window))
    }

    fn default_server(&self, caller: &TerminalProgram<'_>) -> Result<String> {
        let server = caller.context().variable("KITTY_LISTEN_ON");
        server
            .ok_or_else(|| caller.failed("not inside kitty; to reach one from outside, set `listen_on` in kitty.conf"))
    }

    fn open(
        &self,
        caller: &TerminalProgram<'_>,
        server: &str,
        near: Option<&str>,
        unit: Unit,
        order: &NewPane<'_>,
    ) -> Result<String> {
        let kind = match unit {
            Unit::Pane => "--type=window",
            Unit::Tab => "--type=tab",
            Unit::Window => "--type=os-window",
        };
        let directory = format!("--cwd={}", order.directory.to_string_lossy());
        let title = order.name.map(|name| format!("--title={name}"));
        let own = near.map(|near| format!("--match=window_id:{near}"));
        let mut words = vec!["launch", kind, &directory];
        words.extend(title.as_deref());
        words.extend(own.as_deref().filter(|_| unit == Unit::Pane));
        if !order.focus {
            words.push("--keep-focus");
        }
        words.extend(order.words.iter().map(String::as_str));
        Ok(Kitty::call(caller, server, &words, "")?.trim().to_owned())
    }

    fn list(&self, caller: &TerminalProgram<'_>, server: &str) -> Result<Vec<PaneInfo>> {
        let told = Kitty::call(caller, server, &["ls"], "")?;
        let all: Vec<OsWindow> =
            serde_json::from_str(&told).map_err(|error| caller.failed(format!("its list of windows: {error}")))?;
        let windows = all.into_iter().flat_map(|window| window.tabs).flat_map(|tab| tab.windows);
        let info = |window: Window| PaneInfo { pane: window.id.to_string(), tty: None, pid: window.pid };
        Ok(windows.map(info).collect())
    }

    fn paste(&self, caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()> {
        Kitty::send(caller, pane, &bracketed(text))
    }

    fn press(&self, caller: &TerminalProgram<'_>, pane: &Pane, key: Key) -> Result<()> {
        Kitty::send(caller, pane, key.bytes())
    }

    fn screen(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<String> {
        let own = format!("id:{}", pane.pane);
        Kitty::call(caller, &pane.server, &["get-text", "--match", &own], "")
    }

    fn focus(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        let own = format!("id:{}", pane.pane);
        Kitty::call(caller, &pane.server, &["focus-window", "--match", &own], "").map(|_| ())
    }

    fn close(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()> {
        let own = format!("id:{}", pane.pane);
        Kitty::call(caller, &pane.server, &["close-window", "--match", &own], "").map(|_| ())
    }
}
