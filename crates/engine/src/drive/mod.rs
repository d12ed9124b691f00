//! Sessions in panes: opening one, saying something in it, interrupting and ending it.
//!
//! Whether an agent can take input, has taken something up or is done is told by its own state and its transcript; its
//! screen is looked at only where neither can tell yet, and for dialogs that stand in the way.

mod control;
pub(crate) mod hand_over;
mod open;
mod say;

use std::path::PathBuf;
use std::time::Duration;

use agents::Screen;
use rusqlite::{OptionalExtension, params};
use transcript::{Agent, SessionName, State};

pub use control::Unbegun;
pub use hand_over::{fetch, own_editor};
pub use open::{Opening, note_trouble, pane_command};
pub use say::{Sent, Target, check_words};

use crate::Tine;
use crate::catalog::Quiet;
use crate::error::{Error, Result};
use crate::places::{self, OpenPane, Pane};
use crate::profile::NAME_VARIABLE;
use crate::registry::Registry;
use crate::session::Session;

/// How often a pane is looked at.
const PAUSE: Duration = Duration::from_millis(60);
/// A turn that has not begun by then was not taken up.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(20);
/// How long a program gets to end by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

impl Tine {
    /// The pane that a session runs in.
    pub fn pane_of(&self, session: &Session) -> Result<Pane> {
        let runs = session.is_open();
        if !runs && self.context().surroundings.proc.is_some() {
            return Err(Error::NoPane { session: session.view.label().to_owned(), runs });
        }
        let by_process = session.live.as_ref().and_then(|live| live.pid);
        let found = by_process.and_then(|pid| places::pane_of(self.context(), pid));
        let found = found.or_else(|| {
            let noted = self.registry().pane(session.view.name.as_ref()?).ok()??;
            self.is_its_pane(session.view.name.as_ref(), &noted).then_some(noted)
        });
        found.ok_or_else(|| Error::NoPane { session: session.view.label().to_owned(), runs })
    }

    /// Whether a pane is still the one that was opened for a session.
    fn is_its_pane(&self, name: Option<&SessionName>, pane: &Pane) -> bool {
        let info = OpenPane::new(self.context(), pane).ok().and_then(|open| open.info());
        info.is_some_and(|info| match (info.mark, info.pid, name) {
            (Some(mark), _, Some(name)) if mark == name.as_str() => true,
            (_, Some(pid), Some(name)) => self.context().surroundings.proc.as_deref().is_some_and(|proc| {
                agents::processes_marked(proc, NAME_VARIABLE, name.as_str())
                    .into_iter()
                    .any(|process| agents::is_below(proc, process, pid))
            }),
            _ => false,
        })
    }

    /// The pane of a session that was opened and in which nothing was said.
    fn unbegun_pane(&self, name: &SessionName) -> Result<Pane> {
        let noted = self.registry().pane(name)?.filter(|pane| self.is_its_pane(Some(name), pane));
        noted.ok_or_else(|| Error::NoPane { session: name.to_string(), runs: false })
    }

    /// The agent of a session in which nothing was said yet.
    fn agent_of_unbegun(&self, name: &SessionName) -> Result<Agent> {
        Ok(self.registry().named(name)?.map_or(Agent::Codex, |row| row.key.agent))
    }

    /// What the screen of an agent asks that says nothing of its state.
    fn asks_on_screen(&self, session: &Session, pane: &Pane) -> Option<String> {
        let store = self.store(session.view.agent);
        if store.tells_its_state() {
            return None;
        }
        let screen = OpenPane::new(self.context(), pane).and_then(|open| open.screen()).ok()?;
        match store.screen(&screen) {
            Screen::Asks(what) => Some(what.to_owned()),
            Screen::Ready | Screen::Reading(_) | Screen::Unknown => None,
        }
    }

    /// What a session waits for that looks busy, as its pane shows it.
    pub fn asks_in_pane(&self, session: &Session) -> Option<String> {
        if session.view.state != State::Busy || self.store(session.view.agent).tells_its_state() {
            return None;
        }
        self.asks_on_screen(session, &self.pane_of(session).ok()?)
    }

    /// Whether a session is done with what it was told: what it says of itself and what is written down agree.
    pub fn is_done(&self, session: &Session) -> bool {
        match session.view.state {
            State::Busy | State::Waiting => false,
            State::Stopped => true,
            State::Idle => session.is_settled,
        }
    }

    /// A session as it is now.
    pub fn again(&self, session: &Session) -> Result<Session> {
        let key = session.key();
        let found = self.all_sessions(&Quiet)?.into_iter().find(|other| {
            let other = other.key();
            // `/cd` moves a transcript while it is open.
            other == key || other.agent == key.agent && other.id == key.id && !key.path.exists()
        });
        found.ok_or_else(|| Error::UnknownSession { spec: key.id.to_string(), similar: Vec::new() })
    }

    /// The last thing that the agent answered: what it said since its last call of a tool.
    pub fn last_answer(&self, session: &Session) -> Result<Option<String>> {
        Ok(self.last_exchange(session)?.answer)
    }
}

/// Whether a session that had so many turns works on another one, or is done with it.
fn has_begun(session: &Session, turns: u32) -> bool {
    session.view.turns > turns || matches!(session.view.state, State::Busy | State::Waiting)
}

/// That a session waits for a person, and for what.
fn asks(session: &Session) -> Error {
    let what = session.live.as_ref().and_then(|live| live.waiting_for.clone());
    let what = what.unwrap_or_else(|| "an answer".into());
    Error::Asks { session: session.view.label().to_owned(), what }
}

impl Registry {
    /// Notes in which pane a session was opened.
    fn note_pane(&mut self, name: &SessionName, pane: &Pane) -> Result<()> {
        let pane = serde_json::to_string(pane).unwrap_or_default();
        let query = "UPDATE sessions SET pane = ?2 WHERE name = ?1";
        self.write(|transaction| transaction.execute(query, params![name.as_str(), pane])).map(|_| ())
    }

    /// The pane in which a session was opened last.
    fn pane(&self, name: &SessionName) -> Result<Option<Pane>> {
        let pane: Option<Option<String>> = self.ask(|connection| {
            let query = "SELECT pane FROM sessions WHERE name = ?1";
            connection.query_row(query, [name.as_str()], |row| row.get(0)).optional()
        })?;
        Ok(pane.flatten().and_then(|pane| serde_json::from_str(&pane).ok()))
    }

    /// The sessions that were opened in a pane and have no conversation yet, with their directories.
    fn all_unbegun(&self) -> Result<Vec<(SessionName, Agent, Option<PathBuf>)>> {
        let rows: Vec<(String, String, Option<String>)> = self.ask(|connection| {
            let query = "SELECT name, agent, cwd FROM sessions
                         WHERE launch IS NOT NULL AND pane IS NOT NULL AND name IS NOT NULL ORDER BY created DESC";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect()
        })?;
        let read = |(name, agent, cwd): (String, String, Option<String>)| {
            Some((SessionName::new(name).ok()?, agent.parse().ok()?, cwd.map(PathBuf::from)))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// Notes which process is the agent of a session that was started.
    fn note_launch(&mut self, name: &SessionName, process: &str) -> Result<()> {
        let query = "UPDATE sessions SET launch = ?2 WHERE name = ?1 AND launch IS NOT NULL";
        self.write(|transaction| transaction.execute(query, [name.as_str(), process])).map(|_| ())
    }
}
