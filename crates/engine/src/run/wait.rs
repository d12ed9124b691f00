//! Waiting for busy sessions.

use std::time::{Duration, Instant};

use transcript::State;

use crate::ctx::Ctx;
use crate::run::drive;
use crate::run::{Error, Result};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;

/// The time between two looks. A turn takes seconds at least.
const PAUSE: Duration = Duration::from_millis(200);
/// How long an agent that reports that it is idle may take to write the end of its turn.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
/// A turn without an answer counts as finished after this time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until all of them can take input or have stopped. Their work may have ended without an answer.
    AllIdle,
    /// Until all of them have finished their work.
    AllDone,
    /// Until one of them has.
    AnyDone,
    /// Until all of them have finished and their answers are in the transcripts.
    AllAnswered,
    /// Until one of them has finished and its answer is in the transcript.
    AnyAnswered,
}

impl Until {
    fn is_any(self) -> bool {
        matches!(self, Until::AnyDone | Until::AnyAnswered)
    }
}

/// Waits for sessions, and returns those that have reached the state that `until` asks for. A session that asks for a
/// permission ends the wait, because only the user can answer it.
pub(crate) fn wait_for(
    ctx: &Ctx,
    watched: Vec<Session>,
    until: Until,
    timeout: Option<Duration>,
    progress: &dyn Fn(&Session, Duration),
) -> Result<Vec<Session>> {
    match until {
        Until::AllIdle => watched.into_iter().map(|session| wait_until_idle(ctx, session, timeout, progress)).collect(),
        Until::AllDone | Until::AnyDone => wait_until_done(ctx, watched, until.is_any(), timeout, progress),
        Until::AllAnswered | Until::AnyAnswered => wait_until_answered(ctx, watched, until.is_any(), timeout, progress),
    }
}

/// A prompt may be in the transcript a moment before the agent reports that it is busy, so finished sessions without an
/// answer are checked again for a while.
fn wait_until_answered(
    ctx: &Ctx,
    mut watched: Vec<Session>,
    any: bool,
    timeout: Option<Duration>,
    progress: &dyn Fn(&Session, Duration),
) -> Result<Vec<Session>> {
    let begun = Instant::now();
    let mut done_since: Option<Instant> = None;
    loop {
        let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        let done = wait_until_done(ctx, watched.clone(), any, left, progress)?;
        let mut answered = 0;
        for session in &done {
            answered += usize::from(drive::has_answer(ctx, session)?);
        }
        let since = *done_since.get_or_insert_with(Instant::now);
        if answered == done.len() || any && answered > 0 || since.elapsed() > ANSWERS_WITHIN {
            return Ok(done);
        }
        ctx.pause(PAUSE)?;
        for session in &mut watched {
            *session = refresh(ctx, session)?;
        }
    }
}

/// Waits until a session is idle or stopped, and returns its state then. `progress` is called after every check.
pub(crate) fn wait_until_idle(
    ctx: &Ctx,
    session: Session,
    timeout: Option<Duration>,
    progress: &dyn Fn(&Session, Duration),
) -> Result<Session> {
    let begun = Instant::now();
    let mut session = session;
    let mut idle_since = None;
    loop {
        let waited = begun.elapsed();
        let is_busy = matches!(session.view.state, State::Busy | State::Waiting);
        if is_busy {
            idle_since = None;
        } else {
            let idle_since = *idle_since.get_or_insert(waited);
            // Claude Code reports that it is idle before the end of the turn is in the file.
            if session.is_settled || waited - idle_since > SETTLES_WITHIN {
                return Ok(session);
            }
        }
        if is_busy && timeout.is_some_and(|timeout| waited >= timeout) {
            return Err(Error::StillAtWork {
                session: session.view.label().to_owned(),
                state: session.view.state,
                seconds: waited.as_secs(),
            });
        }
        progress(&session, waited);
        ctx.pause(PAUSE)?;
        session = refresh(ctx, &session)?;
    }
}

fn wait_until_done(
    ctx: &Ctx,
    mut watched: Vec<Session>,
    any: bool,
    timeout: Option<Duration>,
    progress: &dyn Fn(&Session, Duration),
) -> Result<Vec<Session>> {
    let begun = Instant::now();
    let mut looks = 0_u32;
    loop {
        let (done, busy): (Vec<&Session>, Vec<&Session>) = watched.iter().partition(|one| drive::is_done(ctx, one));
        if busy.is_empty() || any && !done.is_empty() {
            return Ok(done.into_iter().cloned().collect());
        }
        if let Some(asks) = busy.iter().find(|session| session.view.state == State::Waiting) {
            let what = asks.live.as_ref().and_then(|live| live.waiting_for.clone());
            let what = what.unwrap_or_else(|| "a permission".into());
            return Err(Error::Asks { session: asks.view.label().to_owned(), what });
        }
        let waited = begun.elapsed();
        looks += 1;
        // Reading screens is slow, so it happens less often.
        if looks % 8 == 1
            && let Some((session, what)) = busy.iter().find_map(|one| Some((one, drive::asks_in_pane(ctx, one)?)))
        {
            return Err(Error::Asks { session: session.view.label().to_owned(), what });
        }
        if timeout.is_some_and(|timeout| waited >= timeout) {
            let (session, state) = (busy[0].view.label().to_owned(), busy[0].view.state);
            return Err(Error::StillAtWork { session, state, seconds: waited.as_secs() });
        }
        progress(busy[0], waited);
        ctx.pause(PAUSE / 2)?;
        for session in &mut watched {
            *session = refresh(ctx, session)?;
        }
    }
}
