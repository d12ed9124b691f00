//! The terminals that have panes.

use serde::{Deserialize, Serialize};

/// A program that has panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// All of them, those that run inside others first.
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
}
