//! Controlling a running session: read its screen, focus it, interrupt it, stop it.

use std::thread;
use std::time::{Duration, Instant};

use agents::Holder;
use transcript::{SessionName, State};

use super::{ENDS_WITHIN, PAUSE, Target};
use crate::ctx::Ctx;
use crate::run::drive::pane;
use crate::run::places::{Key, OpenPane, Pane};
use crate::run::{Error, Result};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;
use crate::signal::{Signal, signal};

/// What a session's pane shows.
pub(crate) fn screen(ctx: &Ctx, target: &Target) -> Result<String> {
    OpenPane::new(ctx.context(), &pane_of_target(ctx, target)?)?.screen()
}

/// Brings a session's pane to the front.
pub(crate) fn focus(ctx: &Ctx, target: &Target) -> Result<()> {
    OpenPane::new(ctx.context(), &pane_of_target(ctx, target)?)?.focus()
}

fn pane_of_target(ctx: &Ctx, target: &Target) -> Result<Pane> {
    match target {
        Target::Session(session) => pane::pane_of(ctx, session),
        Target::EmptySession(name) => Ok(pane::agent_pane_of_empty(ctx, name)?.pane),
    }
}

/// Ends the agent of a session, if it runs. The name of a session without messages is free after that.
pub(crate) fn stop(ctx: &Ctx, target: &Target) -> Result<()> {
    match target {
        Target::Session(session) => stop_session(ctx, session),
        Target::EmptySession(name) => stop_empty(ctx, name),
    }
}

/// Ends a session without messages, and frees its name.
fn stop_empty(ctx: &Ctx, name: &SessionName) -> Result<()> {
    match (pane::agent_pane_of_empty(ctx, name), pane::process_of_empty(ctx, name)?) {
        (Ok(held), _) => OpenPane::new(ctx.context(), &held.pane)?.close()?,
        (Err(_), Some(pid)) if end_process(pid) => {}
        (Err(error), _) => return Err(error),
    }
    Ok(ctx.registry().forget_name(name)?)
}

/// Interrupts what a session is doing, and waits until it is idle.
pub(crate) fn interrupt(ctx: &Ctx, session: &Session) -> Result<Session> {
    if !session.is_open() {
        return Err(Error::NoPane { session: session.view.label().to_owned(), runs: false });
    }
    match pane::pane_of(ctx, session) {
        Ok(pane) => OpenPane::new(ctx.context(), &pane)?.press(Key::Escape)?,
        Err(error) => match session.live.as_ref().and_then(|live| live.pid) {
            // An agent without a terminal stops on a signal.
            Some(pid) if session.holder() == Some(Holder::Agent) => signal(pid, Signal::Interrupt),
            _ => return Err(error),
        },
    }
    let begun = Instant::now();
    let mut now = refresh(ctx, session)?;
    // The state that it reports counts here: an interrupted turn looks unfinished in the transcript for a while.
    let is_busy = |now: &Session| match now.live.as_ref().map(|live| live.state) {
        Some(Some(state)) => state != State::Idle,
        Some(None) => now.view.state == State::Busy,
        None => false,
    };
    while is_busy(&now) && begun.elapsed() < ENDS_WITHIN {
        ctx.pause(PAUSE)?;
        now = refresh(ctx, &now)?;
    }
    if let Some(state) = now.live.as_ref().and_then(|live| live.state) {
        now.view.state = state;
    }
    if now.view.state == State::Idle {
        ctx.registry().note_interrupted(&now.view, ctx.context().clock.now())?;
    }
    Ok(now)
}

/// Ends the agent of a session, if it runs: with SIGTERM, then with SIGKILL.
fn stop_session(ctx: &Ctx, session: &Session) -> Result<()> {
    if !session.is_open() {
        return Ok(());
    }
    let label = || session.view.label().to_owned();
    let Some(pid) = session.live.as_ref().and_then(|live| live.pid) else {
        return Err(Error::NoPane { session: label(), runs: true });
    };
    if session.holder() != Some(Holder::Agent) {
        return stop_in_daemon(ctx, session);
    }
    if end_process(pid) {
        return Ok(ctx.registry().note_stopped(&session.view, ctx.context().clock.now())?);
    }
    Err(Error::StillAtWork { session: label(), state: session.view.state, seconds: 2 * ENDS_WITHIN.as_secs() })
}

/// Interrupts a session in a daemon and closes the terminal that shows it. The daemon itself works for other sessions, too.
fn stop_in_daemon(ctx: &Ctx, session: &Session) -> Result<()> {
    let pane = pane::pane_of(ctx, session)?;
    if matches!(session.view.state, State::Busy | State::Waiting) {
        interrupt(ctx, session)?;
    }
    OpenPane::new(ctx.context(), &pane)?.close()?;
    let begun = Instant::now();
    let mut now = refresh(ctx, session)?;
    while now.is_open() && begun.elapsed() < ENDS_WITHIN {
        ctx.pause(PAUSE)?;
        now = refresh(ctx, &now)?;
    }
    Ok(ctx.registry().note_stopped(&session.view, ctx.context().clock.now())?)
}

/// Ends a process, by force if necessary. Returns false if it still runs.
fn end_process(pid: u32) -> bool {
    let start = agents::process_start(pid);
    let runs = || agents::process_start(pid) == start && start.is_some();
    for how in [Signal::End, Signal::Kill] {
        signal(pid, how);
        let begun = Instant::now();
        while runs() && begun.elapsed() < ENDS_WITHIN {
            thread::sleep(Duration::from_millis(20));
        }
        if !runs() {
            return true;
        }
    }
    false
}
