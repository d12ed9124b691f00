//! Completing session names in the shell.

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use engine::{Quiet, Tine};

use crate::environment;
use crate::ui;

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "TINE_COMPLETE";

/// The most sessions that are offered.
const MOST: usize = 200;

/// Completes a session: names and the beginnings of ids, with titles.
pub(crate) fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(tine) = environment::context().ok().and_then(|context| Tine::open(context).ok()) else {
            return Vec::new();
        };
        let sessions = tine.all_sessions(&Quiet).unwrap_or_default();
        sessions
            .iter()
            .take(MOST)
            .map(|session| {
                CompletionCandidate::new(ui::label(&session.view)).help(Some(ui::title(&session.view).into()))
            })
            .collect()
    })
}
