//! Terminals with panes. Each is one file: how to open, find, read, write and close a pane.
//!
//! A pane is identified by its server and its number there, never by its position. In a pane that tine opened, `tine pane`
//! records which one it is before it becomes the agent. For any other agent, the environment of its process tells. That is
//! checked against the device of the pane, because an outer terminal leaves its variables in the environment, too.

pub(crate) mod call;
pub(crate) mod kitty;
pub(crate) mod tmux;
pub(crate) mod wezterm;
pub(crate) mod zellij;

use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use serde::{Deserialize, Serialize};
use transcript::SessionName;

use crate::context::Context;
use crate::run::{Error, Result};
pub use crate::terminal::Terminal;
use crate::workspace;

pub(crate) use call::TerminalProgram;

impl Terminal {
    fn driver(self) -> &'static dyn Driver {
        match self {
            Terminal::Tmux => &tmux::Tmux,
            Terminal::Wezterm => &wezterm::Wezterm,
            Terminal::Kitty => &kitty::Kitty,
            Terminal::Zellij => &zellij::Zellij,
        }
    }
}

/// The size of a place.
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

/// A place in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The terminal; by default the one that tine runs in.
    pub terminal: Option<Terminal>,
    /// Its size.
    pub unit: Unit,
}

impl Spot {
    /// Parses `auto`, a terminal, or a terminal and one of its units.
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

    /// Checks that the place exists, before anything is done that needs it.
    pub fn check(self, context: &Context) -> Result<()> {
        find(context, self).map(drop)
    }

    /// Every word for a place in a terminal: `tmux`, `tmux:pane`, `tmux:window` and so on.
    pub fn words() -> Vec<String> {
        let mut words = Vec::new();
        for terminal in Terminal::ALL {
            words.push(terminal.as_str().to_owned());
            for unit in [Unit::Pane, Unit::Tab, Unit::Window] {
                // Zellij has no windows: it opens a tab instead.
                if (terminal, unit) != (Terminal::Zellij, Unit::Window) {
                    let spot = Spot { terminal: Some(terminal), unit };
                    words.push(format!("{}:{}", terminal.as_str(), spot.unit_word()));
                }
            }
        }
        words
    }

    /// The terminal's own word for the size.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pane {
    /// The terminal.
    #[serde(rename = "kind")]
    pub terminal: Terminal,
    /// The server, because a terminal may have several.
    pub server: String,
    /// The pane's number there.
    pub pane: String,
}

impl Pane {
    /// Its name for those who want to find it.
    pub fn terminal_id(&self) -> String {
        format!("{}:{}", self.terminal.as_str(), self.pane)
    }
}

/// What a terminal reports about a pane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PaneInfo {
    pub pane: String,
    /// The terminal device.
    pub tty: Option<PathBuf>,
    /// The process that was started in it.
    pub pid: Option<u32>,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Enter,
    Escape,
    /// The letter, as a command.
    Q,
    /// Makes the agent run its editor.
    Editor,
    /// Empties the agent's input line. What is there would become part of the message.
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
            // Go to the end of the line, delete it, then the line break or the mode sign before it; once per line.
            Key::Clear => "\u{5}\u{15}\u{7f}\u{15}\u{7f}\u{15}\u{7f}\u{15}\u{7f}",
        }
    }
}

/// What runs in a new pane.
#[derive(Debug)]
pub(crate) struct NewPane<'a> {
    pub directory: &'a Path,
    pub words: &'a [String],
    pub name: Option<&'a SessionName>,
    /// Whether to bring it to the front.
    pub focus: bool,
}

/// How one terminal is driven, through its own program.
pub(crate) trait Driver {
    /// The server and the pane that a process runs in, by its environment variables.
    fn pane_in_environment(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)>;
    /// The server to use if tine doesn't run in this terminal.
    fn default_server(&self, caller: &TerminalProgram<'_>) -> Result<String>;
    /// Opens a pane; `near` is the one that tine runs in.
    fn open(
        &self,
        caller: &TerminalProgram<'_>,
        server: &str,
        near: Option<&str>,
        unit: Unit,
        order: &NewPane<'_>,
    ) -> Result<String>;
    /// All panes of a server.
    fn list(&self, caller: &TerminalProgram<'_>, server: &str) -> Result<Vec<PaneInfo>>;
    /// Pastes text.
    fn paste(&self, caller: &TerminalProgram<'_>, pane: &Pane, text: &str) -> Result<()>;
    /// Presses a key.
    fn press(&self, caller: &TerminalProgram<'_>, pane: &Pane, key: Key) -> Result<()>;
    /// The visible text.
    fn screen(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<String>;
    /// Brings it to the front.
    fn focus(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()>;
    /// Closes it.
    fn close(&self, caller: &TerminalProgram<'_>, pane: &Pane) -> Result<()>;
}

/// The terminal of a place.
pub(crate) struct FoundTerminal<'a> {
    pub(crate) terminal: Terminal,
    caller: TerminalProgram<'a>,
    server: String,
    /// The pane that tine runs in.
    near: Option<String>,
    unit: Unit,
}

/// Finds the terminal of a place. Nothing is opened.
pub(crate) fn find(context: &Context, spot: Spot) -> Result<FoundTerminal<'_>> {
    let variable = |name: &str| context.variable(name);
    let around = |terminal: Terminal| Some((terminal, terminal.driver().pane_in_environment(&variable)?));
    let (terminal, around) = match spot.terminal {
        Some(terminal) => (terminal, terminal.driver().pane_in_environment(&variable)),
        None => {
            let found = innermost(context, Terminal::ALL.into_iter().filter_map(around).collect());
            let (terminal, around) = found.ok_or(Error::NoTerminal)?;
            (terminal, Some(around))
        }
    };
    let caller = TerminalProgram::new(context, terminal)?;
    let (server, near) = match around {
        Some((server, near)) => (server, Some(near)),
        None => (terminal.driver().default_server(&caller)?, None),
    };
    Ok(FoundTerminal { terminal, caller, server, near, unit: spot.unit })
}

impl FoundTerminal<'_> {
    /// Opens a pane there.
    pub(crate) fn open(self, order: &NewPane<'_>) -> Result<Pane> {
        if !order.directory.is_dir() {
            return Err(workspace::Error::NoDirectory(order.directory.to_owned()).into());
        }
        let driver = self.terminal.driver();
        let pane = driver.open(&self.caller, &self.server, self.near.as_deref(), self.unit, order)?;
        Ok(Pane { terminal: self.terminal, server: self.server, pane })
    }
}

/// The pane of a terminal that this process was started in.
pub(crate) fn own_pane(context: &Context, terminal: Terminal) -> Option<Pane> {
    let (server, pane) = terminal.driver().pane_in_environment(&|name| context.variable(name))?;
    Some(Pane { terminal, server, pane })
}

/// Of several nested terminals, the one whose pane has tine's own device.
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
        let (server, pane) = terminal.driver().pane_in_environment(&variable)?;
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

/// A pane and the program that controls it.
pub(crate) struct OpenPane<'a> {
    caller: TerminalProgram<'a>,
    pane: &'a Pane,
}

impl<'a> OpenPane<'a> {
    pub(crate) fn new(context: &'a Context, pane: &'a Pane) -> Result<Self> {
        Ok(OpenPane { caller: TerminalProgram::new(context, pane.terminal)?, pane })
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

    /// What the terminal reports about it; nothing if it is closed.
    pub(crate) fn info(&self) -> Option<PaneInfo> {
        let panes = self.driver().list(&self.caller, &self.pane.server).or_log("list the panes")?;
        panes.into_iter().find(|info| info.pane == self.pane.pane)
    }
}

/// Brackets text for pasting, for terminals that don't do it themselves. Nothing in it can end the brackets.
fn bracketed(text: &str) -> String {
    let (begin, end) = ("\u{1b}[200~", "\u{1b}[201~");
    let inner = text.replace(begin, "").replace(end, "");
    format!("{begin}{inner}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed() {
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
    fn pasted_text_cannot_end_the_brackets() {
        assert_eq!(bracketed("a\u{1b}[201~rm"), "\u{1b}[200~arm\u{1b}[201~");
    }
}
