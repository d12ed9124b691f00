//! `--in PLACE`: where an agent runs.

use std::time::Duration;

use engine::{Pane, Place};

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::cli::RUNNING;
use crate::complete;
use crate::failure::Failure;

/// How long an agent may take to get ready. A large history is read before anything else.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Where and how long an agent is started.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Where to run the agent: here, auto, headless, none, tmux, wezterm, kitty or zellij; tmux:window opens a window
    /// [default: here on a terminal, otherwise none]
    #[arg(long = "in", value_name = "PLACE", value_parser = clap::value_parser!(Place), add = complete::places(), help_heading = RUNNING)]
    pub place: Option<Place>,
    /// Maximum time for the agent to start in a pane [default: 60s]
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout, help_heading = RUNNING)]
    pub ready_timeout: Option<Timeout>,
}

impl PlaceArgs {
    /// The given place or the default; a missing terminal is reported before anything is done.
    pub(crate) fn choice(&self, desk: &Desk, json: bool) -> Result<Place, Failure> {
        let place = self.place.unwrap_or_else(|| desk.default_place(json));
        if let Place::In(spot) = place {
            spot.check(desk.tine.context())?;
        }
        Ok(place)
    }

    /// How long an agent may take to get ready.
    pub(crate) fn ready_within(&self) -> Duration {
        self.ready_timeout.and_then(|timeout| timeout.0).unwrap_or(READY_WITHIN)
    }
}

/// A pane in words.
pub(crate) fn describe_pane(pane: Option<&Pane>) -> String {
    pane.map(|pane| format!("{} pane {}", pane.terminal.as_str(), pane.pane)).unwrap_or_default()
}
