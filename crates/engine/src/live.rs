//! Waiting for a session that is at work.

use std::time::{Duration, Instant};

use transcript::State;

use crate::Tine;
use crate::catalog::Quiet;
use crate::error::{Error, Result};
use crate::session::Session;

/// How long to look away. A turn takes seconds at least, and a look costs a few milliseconds.
const PAUSE: Duration = Duration::from_millis(200);
/// How long an agent that says that it is idle may take to write down what it said.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

impl Tine {
    /// Waits until a session is idle or stopped, and returns it as it is then. `tell` hears of every look.
    pub fn wait_until_idle(
        &self,
        session: Session,
        timeout: Option<Duration>,
        tell: &dyn Fn(&Session, Duration),
    ) -> Result<Session> {
        let begun = Instant::now();
        let mut session = session;
        let mut idle_since = None;
        loop {
            let waited = begun.elapsed();
            let at_work = matches!(session.view.state, State::Busy | State::Waiting);
            if at_work {
                idle_since = None;
            } else {
                let idle_since = *idle_since.get_or_insert(waited);
                // Claude Code says that it is idle before the end of the turn is in the file.
                if session.is_settled || waited - idle_since > SETTLES_WITHIN {
                    return Ok(session);
                }
            }
            if at_work && timeout.is_some_and(|timeout| waited >= timeout) {
                return Err(Error::StillAtWork {
                    session: session.view.label().to_owned(),
                    state: session.view.state,
                    seconds: waited.as_secs(),
                });
            }
            tell(&session, waited);
            self.pause(PAUSE)?;
            session = self.again(&session)?;
        }
    }

    /// Waits until all of `watched` are done with what they were told, or one of them where `any` says so, and returns
    /// those that are. One that asks for a permission ends the waiting: nobody but a person can answer.
    pub fn wait_for(
        &self,
        mut watched: Vec<Session>,
        any: bool,
        timeout: Option<Duration>,
        tell: &dyn Fn(&Session, Duration),
    ) -> Result<Vec<Session>> {
        let begun = Instant::now();
        let mut looks = 0_u32;
        loop {
            let (done, busy): (Vec<&Session>, Vec<&Session>) = watched.iter().partition(|one| self.is_done(one));
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
            // Now and then is enough for what only a screen tells.
            if looks % 8 == 1
                && let Some((session, what)) = busy.iter().find_map(|one| Some((one, self.asks_in_pane(one)?)))
            {
                return Err(Error::Asks { session: session.view.label().to_owned(), what });
            }
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let (session, state) = (busy[0].view.label().to_owned(), busy[0].view.state);
                return Err(Error::StillAtWork { session, state, seconds: waited.as_secs() });
            }
            tell(busy[0], waited);
            self.pause(PAUSE / 2)?;
            let now = self.all_sessions(&Quiet)?;
            for session in &mut watched {
                let key = session.key();
                if let Some(new) = now.iter().find(|other| other.view.agent == key.agent && other.view.id == key.id) {
                    *session = new.clone();
                }
            }
        }
    }
}
