//! Sending a message to a session: into its pane, through the agent's daemon, or without a terminal.

use std::time::{Duration, Instant};

use agents::Holder;
use transcript::{SessionName, State};

use super::answer::{self, Message};
use super::background;
use super::{asks, input, pane, queue};
use crate::ctx::Ctx;
use crate::program;
use crate::run::drive;
use crate::run::headless;
use crate::run::profile;
use crate::run::wait;
use crate::run::worker::WorkerProcess;
use crate::run::{Error, Result};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;

/// A message that was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The current session.
    pub session: Session,
    /// The answer, if it was waited for.
    pub answer: Option<String>,
    /// How the message reaches the session.
    pub delivery: Delivery,
    /// The background process that sends it, if there is one.
    pub worker: Option<WorkerProcess>,
}

/// How a message reaches its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The running agent is working on it.
    Running,
    /// An agent without a terminal answers it, and ends then.
    Headless,
    /// The same, when the session has finished its current work.
    Queued,
}

/// The receiver of a message.
#[derive(Debug, Clone)]
pub enum Target {
    /// A session with a transcript.
    Session(Box<Session>),
    /// A session that runs in a pane and has no messages yet.
    EmptySession(SessionName),
}

impl From<Session> for Target {
    fn from(session: Session) -> Self {
        Target::Session(Box::new(session))
    }
}

impl Target {
    /// Its name, or the beginning of its id.
    pub(super) fn label(&self) -> String {
        match self {
            Target::Session(session) => session.view.label().to_owned(),
            Target::EmptySession(name) => name.to_string(),
        }
    }
}

/// Sends a message to a session and waits until its agent starts on it; with `wait`, until it has answered. A session
/// that isn't running in a terminal gets it headless.
pub(crate) fn send(ctx: &Ctx, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
    check_message(text)?;
    // The answer changes the session, and its worker has to record how that went.
    ctx.registry().check_writable()?;
    check_length(ctx, target, text)?;
    let begun = Instant::now();
    if let (Target::Session(session), false) = (target, wait) {
        let session = refresh(ctx, session)?;
        if session.live.is_none() || queue::is_headless(ctx, &session) {
            return background::send_in_background(ctx, &session, text);
        }
    }
    // Messages from several processes are sent one after the other.
    let lock = queue::lock_for(ctx, target, timeout)?;
    let (label, agent, before, held) = match target {
        Target::Session(session) => {
            // Another process may have sent something before we got the lock.
            let session = refresh(ctx, session)?;
            if session.live.is_none() {
                return send_headless(ctx, &session, text);
            }
            // Only the user can end this wait.
            if session.view.state == State::Waiting {
                return Err(asks(&session));
            }
            if let Some(what) = drive::asks_in_pane(ctx, &session) {
                return Err(Error::Asks { session: session.view.label().to_owned(), what });
            }
            let session = wait::wait_until_idle(ctx, session, timeout, &|_, _| {})?;
            let session = queue::wait_for_end_of_headless(ctx, session)?;
            if session.live.is_none() && wait {
                return send_headless(ctx, &session, text);
            }
            if session.live.is_none() {
                drop(lock);
                return background::send_in_background(ctx, &session, text);
            }
            if session.view.state == State::Waiting {
                return Err(asks(&session));
            }
            let held = match pane::agent_pane(ctx, &session) {
                Ok(held) => Some(held),
                Err(_) if session.holder() == Some(Holder::Daemon) => None,
                Err(error) => return Err(error),
            };
            (session.view.label().to_owned(), session.view.agent, Some(session), held)
        }
        Target::EmptySession(name) => {
            (name.to_string(), drive::agent_of_empty(ctx, name)?, None, Some(pane::agent_pane_of_empty(ctx, name)?))
        }
    };
    match (&held, &before) {
        (Some(held), _) => input::type_message(ctx, &label, agent, held, text)?,
        (None, Some(session)) => {
            // After an interrupted turn the daemon keeps messages back, and sends them later, unexpectedly.
            if answer::last_turn(ctx, session)?.is_interrupted {
                return Err(Error::HeldBack { agent, session: label });
            }
            ctx.adapter(agent).queue(&program::program(ctx, agent)?, &session.view.id, text)?;
        }
        (None, None) => return Err(Error::NoPane { session: label, runs: false }),
    }
    let pane = held.as_ref().map(|held| &held.pane);
    let session = input::wait_until_taken_up(ctx, target, before.as_ref(), pane, text)?;
    drop(lock);
    if !wait {
        return Ok(Sent { session, answer: None, delivery: Delivery::Running, worker: None });
    }
    let (turns, size) = before.as_ref().map_or((0, 0), |before| (before.view.turns, before.size));
    let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
    let message = Message { text, turns, size, pane };
    let (session, answer) = answer::wait_for_answer(ctx, session, &message, left)?;
    Ok(Sent { session, answer: Some(answer), delivery: Delivery::Running, worker: None })
}

/// Refuses a message that is longer than the agent accepts.
pub(crate) fn check_length(ctx: &Ctx, target: &Target, text: &str) -> Result<()> {
    let agent = match target {
        Target::Session(session) => session.view.agent,
        Target::EmptySession(name) => drive::agent_of_empty(ctx, name)?,
    };
    let (length, most) = (text.chars().count(), ctx.adapter(agent).input_limit().unwrap_or(usize::MAX));
    if length > most { Err(Error::PromptTooLong { agent, length, most }) } else { Ok(()) }
}

/// Refuses a message that no agent accepts.
pub fn check_message(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::EmptyPrompt);
    }
    if text.contains('\0') {
        return Err(Error::BadPrompt("contains a NUL character"));
    }
    Ok(())
}

/// Sends a message to a session that doesn't run, and waits for the answer.
fn send_headless(ctx: &Ctx, session: &Session, text: &str) -> Result<Sent> {
    let directory = session.view.cwd.clone().unwrap_or_else(|| ctx.context().cwd.clone());
    let launch = profile::launch_of(ctx, &session.view, &[], None)?;
    let answer = headless::resume_headless(ctx, session, &directory, &launch, text)?;
    let session = refresh(ctx, session)?;
    Ok(Sent { session, answer: Some(answer), delivery: Delivery::Headless, worker: None })
}
