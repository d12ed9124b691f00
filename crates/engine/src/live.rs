//! Waiting for a session that is at work.

use std::thread;
use std::time::{Duration, Instant};

use transcript::State;

use crate::Tine;
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
                let is_settled = session.live.is_none() || !session.details.mid_turn;
                if is_settled || waited - idle_since > SETTLES_WITHIN {
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
            thread::sleep(PAUSE);
            session = self.again(&session)?;
        }
    }
}
