//! `--in PLACE`: where an agent runs.

use std::time::Duration;

use engine::{Pane, Spot};

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::failure::Failure;

/// How long an agent may take to get ready. A large history is read before anything else.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceChoice {
    /// In this terminal.
    Here,
    /// Without a terminal: the prompt is said and the answer printed.
    Headless,
    /// Not at all: the command that resumes it is printed.
    None,
    /// In a pane.
    In(Spot),
}

/// The options that say so.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Where the agent runs: here, auto (the terminal around us), tmux[:pane|window|session], wezterm[:pane|tab|window],
    /// kitty[:window|tab|os-window], zellij[:pane|tab], headless or none (default: here on a terminal, otherwise none)
    #[arg(long = "in", value_name = "PLACE", value_parser = parse)]
    pub place: Option<PlaceChoice>,
    /// How long the agent may take to get ready in its pane
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout)]
    pub ready_timeout: Option<Timeout>,
}

impl PlaceArgs {
    /// What was said, or what is usual; a terminal that is not there is told before anything is done.
    pub(crate) fn choice(&self, desk: &Desk, json: bool) -> Result<PlaceChoice, Failure> {
        let place = self.place.unwrap_or_else(|| desk.default_place(json));
        if let PlaceChoice::In(spot) = place {
            desk.tine.check_place(spot)?;
        }
        Ok(place)
    }

    /// How long an agent may take to get ready.
    pub(crate) fn ready_within(&self) -> Duration {
        self.ready_timeout.and_then(|timeout| timeout.0).unwrap_or(READY_WITHIN)
    }
}

fn parse(word: &str) -> Result<PlaceChoice, String> {
    match word {
        "here" => Ok(PlaceChoice::Here),
        "headless" => Ok(PlaceChoice::Headless),
        "none" => Ok(PlaceChoice::None),
        word => Spot::of(word).map(PlaceChoice::In).ok_or_else(|| {
            "here, auto, tmux, wezterm, kitty, zellij, headless or none; for example `tmux:window`".to_owned()
        }),
    }
}

impl PlaceChoice {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            PlaceChoice::Here => "here",
            PlaceChoice::Headless => "headless",
            PlaceChoice::None => "none",
            PlaceChoice::In(spot) => spot.terminal.map_or("auto", engine::Terminal::as_str),
        }
    }
}

/// A pane in words.
pub(crate) fn told(pane: Option<&Pane>) -> String {
    pane.map(|pane| format!("pane {} of {}", pane.pane, pane.terminal.as_str())).unwrap_or_default()
}

/// A place for programs.
pub(crate) fn as_json(place: PlaceChoice, pane: Option<&Pane>) -> serde_json::Value {
    match pane {
        Some(pane) => serde_json::to_value(pane).unwrap_or_default(),
        None => serde_json::json!({"kind": place.as_str()}),
    }
}
