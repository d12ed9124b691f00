//! `--in PLACE`: where an agent runs.

use std::time::Duration;

use engine::{Pane, Place, Spot};

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::failure::Failure;

/// How long an agent may take to get ready. A large history is read before anything else.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The options that say so.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Where the agent runs: here, auto (the terminal around us), tmux[:pane|window|session], wezterm[:pane|tab|window],
    /// kitty[:window|tab|os-window], zellij[:pane|tab], headless or none (default: here on a terminal, otherwise none)
    #[arg(long = "in", value_name = "PLACE", value_parser = parse)]
    pub place: Option<Place>,
    /// How long the agent may take to get ready in its pane
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout)]
    pub ready_timeout: Option<Timeout>,
}

impl PlaceArgs {
    /// What was said, or what is usual; a terminal that is not there is told before anything is done.
    pub(crate) fn choice(&self, desk: &Desk, json: bool) -> Result<Place, Failure> {
        let place = self.place.unwrap_or_else(|| desk.default_place(json));
        if let Place::In(spot) = place {
            desk.tine.check_place(spot)?;
        }
        Ok(place)
    }

    /// How long an agent may take to get ready.
    pub(crate) fn ready_within(&self) -> Duration {
        self.ready_timeout.and_then(|timeout| timeout.0).unwrap_or(READY_WITHIN)
    }
}

fn parse(word: &str) -> Result<Place, String> {
    match word {
        "here" => Ok(Place::Here),
        "headless" => Ok(Place::Headless),
        "none" => Ok(Place::None),
        word => Spot::of(word).map(Place::In).ok_or_else(|| {
            "here, auto, tmux, wezterm, kitty, zellij, headless or none; for example `tmux:window`".to_owned()
        }),
    }
}

/// A pane in words.
pub(crate) fn told(pane: Option<&Pane>) -> String {
    pane.map(|pane| format!("pane {} of {}", pane.pane, pane.terminal.as_str())).unwrap_or_default()
}

/// A place for programs.
pub(crate) fn as_json(place: Place, pane: Option<&Pane>) -> serde_json::Value {
    match pane {
        Some(pane) => serde_json::to_value(pane).unwrap_or_default(),
        None => serde_json::json!({"kind": place.as_str()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read_again() {
        for word in
            ["here", "none", "headless", "auto", "tmux", "tmux:window", "tmux:session", "kitty:os-window", "zellij:tab"]
        {
            let place = parse(word).unwrap();
            assert_eq!(parse(&place.to_string()), Ok(place), "{word}");
        }
    }
}
