//! Places for an agent: this terminal, a new pane, headless, or none.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::context::Context;
use crate::run::places::{Pane, Spot, Terminal, Unit};

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this terminal.
    Here,
    /// Without a terminal, one process per message.
    Headless,
    /// Not at all; the command that starts it is shown instead.
    None,
    /// In a new pane.
    In(Spot),
}

impl Place {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Place::Here => "here",
            Place::Headless => "headless",
            Place::None => "none",
            Place::In(spot) => spot.terminal.map_or("auto", Terminal::as_str),
        }
    }

    /// A place of this size in the terminal that tine runs in, unless that has no panes.
    pub fn beside(context: &Context, unit: Unit) -> Option<Self> {
        let spot = Spot { terminal: None, unit };
        spot.check(context).is_ok().then_some(Place::In(spot))
    }

    /// Its JSON; `pane` is the pane that was opened there.
    pub fn view(self, pane: Option<&Pane>) -> PlaceView {
        match pane {
            Some(pane) => PlaceView::Pane(pane.clone()),
            None => PlaceView::Kind { kind: self.as_str() },
        }
    }
}

/// As people type it: `--in PLACE`.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::In(spot) => write!(formatter, "{}:{}", self.as_str(), spot.unit_word()),
            _ => formatter.write_str(self.as_str()),
        }
    }
}

impl FromStr for Place {
    type Err = UnknownPlace;

    fn from_str(word: &str) -> Result<Self, UnknownPlace> {
        match word {
            "here" => Ok(Place::Here),
            "headless" => Ok(Place::Headless),
            "none" => Ok(Place::None),
            word => Spot::of(word).map(Place::In).ok_or(UnknownPlace),
        }
    }
}

/// A word that names no place. The message lists those that do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use here, auto, tmux, wezterm, kitty, zellij, headless or none, or a unit such as `tmux:window`")]
pub struct UnknownPlace;

/// A place in JSON: the pane that was opened, or the kind of place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PlaceView {
    /// A pane, with its terminal as the kind.
    Pane(Pane),
    /// Any other place.
    Kind {
        /// The word for it.
        kind: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read_again() {
        for word in
            ["here", "none", "headless", "auto", "tmux", "tmux:window", "tmux:session", "kitty:os-window", "zellij:tab"]
        {
            let place: Place = word.parse().unwrap();
            assert_eq!(place.to_string().parse(), Ok(place), "{word}");
        }
        assert_eq!("screen".parse::<Place>(), Err(UnknownPlace));
    }
}
