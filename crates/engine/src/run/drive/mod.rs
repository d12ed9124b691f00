//! Driving sessions: opening one in a pane, sending it messages, waiting for answers, interrupting and stopping it.
//!
//! An agent's reported state and its transcript show whether it accepts input, is busy with a message or has finished.
//! Its screen is read only if they don't, and to detect open dialogs.

mod answer;
pub(crate) mod awaited;
pub(crate) mod background;
pub(crate) mod control;
pub(crate) mod editor;
mod input;
pub(crate) mod open;
pub(crate) mod pane;
pub(crate) mod queue;
pub(crate) mod send;

use std::time::Duration;

use agents::Screen;
use transcript::seed::is_seed;
use transcript::{Agent, SessionName, State};

pub use editor::{fetch_message, users_editor};
pub use open::{OpenAt, Opened, Opening, pane_command, record_launch_failure};
pub use send::{Delivery, Sent, Target, check_message};

use crate::ctx::Ctx;
use crate::reported::ReportedError;
use crate::run::places::{OpenPane, Pane};
use crate::run::{Error, Result};
use crate::sessions;
use crate::sessions::session::Session;

/// How often a session or a pane is polled.
pub(crate) const PAUSE: Duration = Duration::from_millis(60);
/// How long an agent may take to begin a turn.
pub(crate) const TAKEN_UP_WITHIN: Duration = Duration::from_secs(20);
/// How long a program may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The agent of a session that has no messages yet.
pub(crate) fn agent_of_empty(ctx: &Ctx, name: &SessionName) -> Result<Agent> {
    let row = ctx.registry().named(name)?;
    Ok(row
        .map(|row| row.key.agent)
        .ok_or_else(|| sessions::Error::Unknown { spec: name.to_string(), similar: Vec::new() })?)
}

/// What an agent asks on its screen, if it reports no state.
fn asks_on_screen(ctx: &Ctx, session: &Session, pane: &Pane) -> Option<String> {
    let adapter = ctx.adapter(session.view.agent);
    if adapter.reports_state() {
        return None;
    }
    let screen = OpenPane::new(ctx.context(), pane).and_then(|open| open.screen()).ok()?;
    match adapter.read_screen(&screen) {
        Screen::Asks(what) => Some(what.to_owned()),
        Screen::Ready | Screen::Reading(_) | Screen::Unknown => None,
    }
}

/// What a session that seems busy asks on its screen.
pub(crate) fn asks_in_pane(ctx: &Ctx, session: &Session) -> Option<String> {
    if session.view.state != State::Busy || ctx.adapter(session.view.agent).reports_state() {
        return None;
    }
    asks_on_screen(ctx, session, &pane::pane_of(ctx, session).ok()?)
}

/// Whether a session has finished its work: its reported state and its transcript agree, and no message is queued.
pub(crate) fn is_done(ctx: &Ctx, session: &Session) -> bool {
    match session.view.state {
        State::Busy | State::Waiting => false,
        State::Stopped => !queue::is_awaited(ctx, session),
        State::Idle => session.is_settled && !queue::is_awaited(ctx, session),
    }
}

/// What became of the last prompt of a session.
#[derive(Debug, Clone)]
pub enum LastAnswer {
    /// The agent's answer: what it wrote after its last tool call.
    Answer {
        /// The answer.
        text: String,
        /// Whether the agent has finished. If not, more may follow.
        is_done: bool,
    },
    /// The agent hasn't answered yet.
    Pending,
    /// The session was seeded with a transcript and has no prompt of its own yet.
    NotAsked,
    /// The turn ended without an answer; with the reason if a background process recorded one.
    Failed(Option<ReportedError>),
}

impl LastAnswer {
    /// The answer, if there is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            LastAnswer::Answer { text, .. } => Some(text),
            LastAnswer::Pending | LastAnswer::NotAsked | LastAnswer::Failed(_) => None,
        }
    }

    /// Whether the session has finished its work.
    pub fn is_done(&self) -> bool {
        match self {
            LastAnswer::Answer { is_done, .. } => *is_done,
            LastAnswer::Pending => false,
            LastAnswer::NotAsked | LastAnswer::Failed(_) => true,
        }
    }
}

/// What became of the last prompt of a session.
pub(crate) fn last_answer(ctx: &Ctx, session: &Session) -> Result<LastAnswer> {
    let turn = answer::last_turn(ctx, session)?;
    Ok(match (turn.answer, is_done(ctx, session)) {
        (Some(text), is_done) => LastAnswer::Answer { text, is_done },
        (None, false) => LastAnswer::Pending,
        (None, true) if turn.prompt.as_deref().is_some_and(is_seed) => LastAnswer::NotAsked,
        (None, true) => LastAnswer::Failed(background::last_failure(ctx, session)),
    })
}

/// Whether the last prompt has an answer.
pub(crate) fn has_answer(ctx: &Ctx, session: &Session) -> Result<bool> {
    Ok(answer::last_turn(ctx, session)?.answer.is_some())
}

/// The last prompt, without secrets.
pub(crate) fn last_prompt(ctx: &Ctx, session: &Session) -> Result<Option<String>> {
    if session.view.unstarted {
        return Ok(None);
    }
    let prompt = answer::last_turn(ctx, session)?.prompt;
    Ok(prompt.map(|prompt| transcript::secrets::mask(&prompt).0.into_owned()))
}

/// Whether a session that had this number of turns works on another one, or has finished it.
pub(crate) fn has_begun(session: &Session, turns: u32) -> bool {
    session.view.turns > turns || matches!(session.view.state, State::Busy | State::Waiting)
}

/// The error for a session that waits for the user.
fn asks(session: &Session) -> Error {
    let what = session.live.as_ref().and_then(|live| live.waiting_for.clone());
    let what = what.unwrap_or_else(|| "an answer".into());
    Error::Asks { session: session.view.label().to_owned(), what }
}
