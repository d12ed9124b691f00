//! Terminals in whose panes agents run. Each is one file: how a pane is opened, found, written to, read and closed.
//!
//! A pane is known by its server and its number there, never by its position. Which pane a session is in is told by the
//! environment of its process and checked against the terminal the pane has; a terminal that surrounds another one
//! leaves its variables in there, too, but its pane has another device.

mod call;
mod kitty;
mod tmux;
mod wezterm;
mod zellij;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript::SessionName;

use crate::context::Context;
use crate::error::{Error, Result};

pub(crate) use call::Caller;

/// A program that has panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Terminal {
    /// tmux.
    Tmux,
    /// WezTerm.
    Wezterm,
    /// kitty.
    Kitty,
    /// Zellij.
    Zellij,
}

impl Terminal {
    /// Every one, the ones that run inside of others first.
    pub const ALL: [Terminal; 4] = [Terminal::Tmux, Terminal::Zellij, Terminal::Kitty, Terminal::Wezterm];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Terminal::Tmux => "tmux",
            Terminal::Wezterm => "wezterm",
            Terminal::Kitty => "kitty",
            Terminal::Zellij => "zellij",
        }
    }

    fn driver(self) -> &'static dyn Driver {
        match self {
            Terminal::Tmux => &tmux::Tmux,
            Terminal::Wezterm => &wezterm::Wezterm,
            Terminal::Kitty => &kitty::Kitty,
            Terminal::Zellij => &zellij::Zellij,
        }
    }
}

/// How large a place is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A part of the current tab.
    #[default]
    Pane,
    /// A tab; tmux calls it a window.
    Tab,
    /// A window; in tmux a session.
    Window,
}

/// A place to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// In which terminal; the one around us where nothing is said.
    pub terminal: Option<Terminal>,
    /// How large.
    pub unit: Unit,
}

impl Spot {
    /// The place that a word means: `auto`, a terminal, or a terminal and a unit of it.
    pub fn of(word: &str) -> Option<Spot> {
        let (terminal, unit) = word.split_once(':').unwrap_or((word, "pane"));
        let terminal = match terminal {
            "auto" => None,
            word => Some(Terminal::ALL.into_iter().find(|terminal| terminal.as_str() == word)?),
        };
        let unit = match (terminal, unit) {
            (Some(Terminal::Kitty), "window") | (_, "pane") => Unit::Pane,
            (Some(Terminal::Tmux), "window") | (_, "tab") => Unit::Tab,
            (Some(Terminal::Tmux), "session") | (Some(Terminal::Kitty), "os-window") | (_, "window") => Unit::Window,
            _ => return None,
        };
        Some(Spot { terminal, unit })
    }

    /// The word of its terminal for how large it is.
    pub(crate) fn unit_word(self) -> &'static str {
        match (self.terminal, self.unit) {
            (Some(Terminal::Kitty), Unit::Pane) => "window",
            (_, Unit::Pane) => "pane",
            (Some(Terminal::Tmux), Unit::Tab) => "window",
            (_, Unit::Tab) => "tab",
            (Some(Terminal::Tmux), Unit::Window) => "session",
            (Some(Terminal::Kitty), Unit::Window) => "os-window",
            (_, Unit::Window) => "window",
        }
    }
}

/// One pane of one running terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pane {
    /// The terminal.
    #[serde(rename = "kind")]
    pub terminal: Terminal,
    /// Which of its servers.
    pub server: String,
    /// The pane's own name there.
    pub pane: String,
}

/// What is known of a pane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PaneInfo {
    pub pane: String,
    /// The terminal device.
    pub tty: Option<PathBuf>,
    /// The process that was started in it.
    pub pid: Option<u32>,
    /// The session that tine opened it for.
    pub mark: Option<String>,
}

/// A key that means something of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Enter,
    Escape,
    /// The letter, where it is no part of a text.
    Q,
    /// Lets the agent run its editor.
    Editor,
    /// Empties the agent's input line: whatever stands there would become part of what is said.
    Clear,
}

impl Key {
    /// What a terminal sends for it.
    fn bytes(self) -> &'static str {
        match self {
            Key::Enter => "\r",
            Key::Escape => "\u{1b}",
            Key::Q => "q",
            Key::Editor => "\u{7}",
            // To the end of the line, all of it, and the line break or the sign of a mode before it; once per line.
            Key::Clear => "\u{5}\u{15}\u{7f}\u{15}\u{7f}\u{15}\u{7f}\u{15}\u{7f}",
        }
    }
}

/// What is to run in a new pane.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub unit: Unit,
    pub directory: &'a Path,
    pub words: &'a [String],
    pub name: Option<&'a SessionName>,
    /// Whether the person is to be led there.
    pub focus: bool,
}

/// How one terminal is driven, through its own program.
pub(crate) trait Driver {
    /// The server around a process, and the pane in it, by the process's variables.
    fn around(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)>;
    /// The server to use where there is none around us.
    fn default_server(&self, caller: &Caller<'_>) -> Result<String>;
    /// Opens a pane; `near` is the one that we are in.
    fn open(&self, caller: &Caller<'_>, server: &str, near: Option<&str>, order: &Order<'_>) -> Result<String>;
    /// All panes of a server.
    fn list(&self, caller: &Caller<'_>, server: &str) -> Result<Vec<PaneInfo>>;
    /// Hands over text as if it was pasted.
    fn paste(&self, caller: &Caller<'_>, pane: &Pane, text: &str) -> Result<()>;
    /// Presses a key.
    fn press(&self, caller: &Caller<'_>, pane: &Pane, key: Key) -> Result<()>;
    /// What can be seen.
    fn screen(&self, caller: &Caller<'_>, pane: &Pane) -> Result<String>;
    /// Brings it to front.
    fn focus(&self, caller: &Caller<'_>, pane: &Pane) -> Result<()>;
    /// Closes it.
    fn close(&self, caller: &Caller<'_>, pane: &Pane) -> Result<()>;
}

/// The server of a place and the pane of it that we are in, or why there is none.
fn find<'a>(context: &'a Context, spot: Spot) -> Result<(Terminal, Caller<'a>, String, Option<String>)> {
    let variable = |name: &str| context.variable(name);
    let around = |terminal: Terminal| Some((terminal, terminal.driver().around(&variable)?));
    let (terminal, around) = match spot.terminal {
        Some(terminal) => (terminal, terminal.driver().around(&variable)),
        None => {
            let found = innermost(context, Terminal::ALL.into_iter().filter_map(around).collect());
            let (terminal, around) = found.ok_or(Error::NoTerminal)?;
            (terminal, Some(around))
        }
    };
    let caller = Caller::new(context, terminal)?;
    let (server, near) = match around {
        Some((server, near)) => (server, Some(near)),
        None => (terminal.driver().default_server(&caller)?, None),
    };
    Ok((terminal, caller, server, near))
}

/// Whether a place is there; nothing is opened.
pub(crate) fn check(context: &Context, spot: Spot) -> Result<()> {
    find(context, spot).map(|_| ())
}

/// Opens a place.
pub(crate) fn open(context: &Context, spot: Spot, order: &Order<'_>) -> Result<Pane> {
    let (terminal, caller, server, near) = find(context, spot)?;
    if !order.directory.is_dir() {
        return Err(Error::NoDirectory(order.directory.to_owned()));
    }
    let pane = terminal.driver().open(&caller, &server, near.as_deref(), order)?;
    Ok(Pane { terminal, server, pane })
}

/// Of several terminals around us, the one whose pane has the device that we are on.
fn innermost(context: &Context, around: Vec<(Terminal, (String, String))>) -> Option<(Terminal, (String, String))> {
    if around.len() > 1
        && let Some(tty) = tty_of(context, std::process::id())
    {
        let is_ours = |(terminal, (server, pane)): &&(Terminal, (String, String))| {
            let pane = Pane { terminal: *terminal, server: server.clone(), pane: pane.clone() };
            let info = OpenPane::new(context, &pane).ok().and_then(|open| open.info());
            info.is_some_and(|info| info.tty.as_deref() == Some(&tty))
        };
        if let Some(found) = around.iter().find(is_ours) {
            return Some(found.clone());
        }
    }
    around.into_iter().next()
}

/// The pane that a process runs in.
pub(crate) fn pane_of(context: &Context, pid: u32) -> Option<Pane> {
    let proc = context.surroundings.proc.as_deref()?;
    let environment = std::fs::read(proc.join(pid.to_string()).join("environ")).ok()?;
    let environment: Vec<String> =
        environment.split(|byte| *byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect();
    let variable = |name: &str| {
        let value = environment.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))?;
        Some(value.to_owned()).filter(|value| !value.is_empty())
    };
    let tty = tty_of(context, pid);
    Terminal::ALL.into_iter().find_map(|terminal| {
        let (server, pane) = terminal.driver().around(&variable)?;
        let pane = Pane { terminal, server, pane };
        let info = OpenPane::new(context, &pane).ok()?.info()?;
        let is_it = match (&info.tty, info.pid) {
            (Some(own), _) => Some(own) == tty.as_ref(),
            (None, Some(own)) => agents::is_below(proc, pid, own),
            (None, None) => true,
        };
        is_it.then_some(pane)
    })
}

/// The terminal that a process runs on.
fn tty_of(context: &Context, pid: u32) -> Option<PathBuf> {
    agents::tty_of(context.surroundings.proc.as_deref()?, pid)
}

/// A pane with what drives it.
pub(crate) struct OpenPane<'a> {
    caller: Caller<'a>,
    pane: &'a Pane,
}

impl<'a> OpenPane<'a> {
    pub(crate) fn new(context: &'a Context, pane: &'a Pane) -> Result<Self> {
        Ok(OpenPane { caller: Caller::new(context, pane.terminal)?, pane })
    }

    fn driver(&self) -> &'static dyn Driver {
        self.pane.terminal.driver()
    }

    pub(crate) fn paste(&self, text: &str) -> Result<()> {
        self.driver().paste(&self.caller, self.pane, text)
    }

    pub(crate) fn press(&self, key: Key) -> Result<()> {
        self.driver().press(&self.caller, self.pane, key)
    }

    pub(crate) fn screen(&self) -> Result<String> {
        self.driver().screen(&self.caller, self.pane)
    }

    pub(crate) fn focus(&self) -> Result<()> {
        self.driver().focus(&self.caller, self.pane)
    }

    pub(crate) fn close(&self) -> Result<()> {
        self.driver().close(&self.caller, self.pane)
    }

    /// What is known of it; nothing where it is closed.
    pub(crate) fn info(&self) -> Option<PaneInfo> {
        let panes = self.driver().list(&self.caller, &self.pane.server).ok()?;
        panes.into_iter().find(|info| info.pane == self.pane.pane)
    }
}

/// Text that is pasted where the terminal's own program does not bracket it: nothing in it can end the brackets.
fn bracketed(text: &str) -> String {
    let (begin, end) = ("\u{1b}[200~", "\u{1b}[201~");
    let inner = text.replace(begin, "").replace(end, "");
    format!("{begin}{inner}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_places() {
        let spot = |terminal, unit| Some(Spot { terminal, unit });
        assert_eq!(Spot::of("auto"), spot(None, Unit::Pane));
        assert_eq!(Spot::of("tmux"), spot(Some(Terminal::Tmux), Unit::Pane));
        assert_eq!(Spot::of("tmux:window"), spot(Some(Terminal::Tmux), Unit::Tab));
        assert_eq!(Spot::of("tmux:session"), spot(Some(Terminal::Tmux), Unit::Window));
        assert_eq!(Spot::of("wezterm:tab"), spot(Some(Terminal::Wezterm), Unit::Tab));
        assert_eq!(Spot::of("wezterm:window"), spot(Some(Terminal::Wezterm), Unit::Window));
        assert_eq!(Spot::of("kitty:window"), spot(Some(Terminal::Kitty), Unit::Pane));
        assert_eq!(Spot::of("kitty:os-window"), spot(Some(Terminal::Kitty), Unit::Window));
        for wrong in ["", "tmux:", "tmux:tree", "screen", "auto:no", "wezterm:session"] {
            assert_eq!(Spot::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_in_a_paste_ends_it() {
        assert_eq!(bracketed("a\u{1b}[201~rm"), "\u{1b}[200~arm\u{1b}[201~");
    }
}
