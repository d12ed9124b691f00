//! What happened in the agents, in the order in which their hooks told it; what no hook tells is noticed by looking.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView, State};

use crate::Tine;
use crate::catalog::Quiet;
use crate::error::Result;
use crate::registry::Registry;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeardEvent {
    /// Its number; later ones have larger numbers.
    pub number: i64,
    /// When.
    pub at: Timestamp,
    /// `session_started`, `forked`, `busy`, `answered`, `idle`, `waiting` or `stopped`.
    pub event: String,
    /// The agent.
    pub agent: Agent,
    /// The session's id.
    pub id: SessionId,
    /// Its name at that time.
    pub name: Option<SessionName>,
}

/// Notes something that no hook tells, because tine itself did it.
pub(crate) fn note(
    transaction: &Transaction<'_>,
    kind: &str,
    agent: Agent,
    id: &SessionId,
    name: Option<&SessionName>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let query = "INSERT INTO events (at, hook, kind, agent, id, name) VALUES (?1, 'tine', ?2, ?3, ?4, ?5)";
    let name = name.map(SessionName::as_str);
    let values = params![now.as_millisecond(), kind, agent.as_str(), id.as_str(), name];
    transaction.prepare_cached(query)?.execute(values).map(|_| ())
}

/// How many of the newest events tell what was heard of a session last.
const LATELY: i64 = 2_000;
/// What is heard within so many milliseconds need not be noticed.
const HEARD_WITHIN: i64 = 3_000;

impl Tine {
    /// Notes what no hook tells: one that was killed has stopped, and one that was interrupted is idle.
    pub fn note_unheard(&self) -> Result<()> {
        let now = self.context().clock.now();
        let is_over = |at: Timestamp| now.as_millisecond() - at.as_millisecond() > HEARD_WITHIN;
        let mut open = self.registry().still_open()?;
        open.retain(|event| is_over(event.at));
        if open.is_empty() {
            return Ok(());
        }
        let sessions = self.all_sessions(&Quiet)?;
        let live: HashMap<Agent, agents::Live> =
            self.stores().iter().map(|store| (store.agent(), store.live())).collect();
        for event in open {
            let found = sessions.iter().find(|one| one.view.agent == event.agent && one.view.id == event.id);
            let Some(live) = live.get(&event.agent) else { continue };
            let state = match found {
                Some(session) if is_over(session.updated()) => session.view.state,
                None if !live.sessions.contains_key(&event.id) => State::Stopped,
                _ => continue,
            };
            let kind = match (state, event.event.as_str()) {
                (State::Stopped, _) if live.weak.is_none() => "stopped",
                (State::Idle, "busy" | "waiting") => "idle",
                _ => continue,
            };
            self.registry().note_after(&event, kind, now)?;
        }
        Ok(())
    }
}

impl Registry {
    /// The last event of each session that was heard of lately and has not stopped.
    fn still_open(&self) -> Result<Vec<HeardEvent>> {
        let query = "SELECT number, at, kind, agent, id, name FROM (
                         SELECT max(number) AS number, at, kind, agent, id, name FROM events
                         WHERE number > (SELECT max(number) FROM events) - ?1 AND kind IS NOT NULL
                         GROUP BY agent, id)
                     WHERE kind NOT IN ('stopped', 'forked') ORDER BY number";
        self.read_events(query, LATELY)
    }

    /// Notes what happened to a session behind its last event, unless something was heard of it since.
    fn note_after(&mut self, last: &HeardEvent, kind: &str, now: Timestamp) -> Result<()> {
        self.write(|transaction| {
            let query = "SELECT EXISTS (SELECT 1 FROM events WHERE number > ?1 AND agent = ?2 AND id = ?3
                                                              AND kind IS NOT NULL)";
            let values = params![last.number, last.agent.as_str(), last.id.as_str()];
            match transaction.prepare_cached(query)?.query_row(values, |row| row.get(0))? {
                true => Ok(()),
                false => note(transaction, kind, last.agent, &last.id, last.name.as_ref(), now),
            }
        })
    }

    /// Notes that a session that was at work is idle, as no agent tells when it was interrupted.
    pub(crate) fn note_interrupted(&mut self, session: &SessionView, now: Timestamp) -> Result<()> {
        let is_its = |event: &HeardEvent| event.agent == session.agent && event.id == session.id;
        let last = self.still_open()?.into_iter().find(is_its);
        match last.filter(|last| matches!(last.event.as_str(), "busy" | "waiting")) {
            Some(last) => self.note_after(&last, "idle", now),
            None => Ok(()),
        }
    }

    /// Notes that a session was ended, unless its agent has told so.
    pub(crate) fn note_stopped(&mut self, session: &SessionView, now: Timestamp) -> Result<()> {
        self.write(|transaction| {
            let query = "SELECT kind FROM events WHERE agent = ?1 AND id = ?2 AND kind IS NOT NULL
                         ORDER BY number DESC LIMIT 1";
            let last: Option<String> = transaction
                .prepare_cached(query)?
                .query_row([session.agent.as_str(), session.id.as_str()], |row| row.get(0))
                .optional()?;
            match last.as_deref() {
                Some("stopped") => Ok(()),
                _ => note(transaction, "stopped", session.agent, &session.id, session.name.as_ref(), now),
            }
        })
    }

    /// The newest events, oldest first.
    pub fn last_events(&self, count: u32) -> Result<Vec<HeardEvent>> {
        let query = "SELECT number, at, kind, agent, id, name FROM
                         (SELECT * FROM events WHERE kind IS NOT NULL ORDER BY number DESC LIMIT ?1)
                     ORDER BY number";
        self.read_events(query, i64::from(count))
    }

    /// The events behind one, oldest first.
    pub fn events_after(&self, number: i64) -> Result<Vec<HeardEvent>> {
        let query = "SELECT number, at, kind, agent, id, name FROM events
                     WHERE number > ?1 AND kind IS NOT NULL ORDER BY number";
        self.read_events(query, number)
    }

    /// The sessions of which was heard last that they wait, and when, in nanoseconds since 1970; of what was heard lately.
    pub(crate) fn last_asked(&self) -> Result<HashMap<(Agent, SessionId), i64>> {
        let rows: Vec<(String, String, i64)> = self.ask(|connection| {
            let query = "SELECT agent, id, at FROM (
                             SELECT agent, id, kind, at, max(number) FROM events
                             WHERE number > (SELECT max(number) FROM events) - ?1 AND kind IS NOT NULL
                             GROUP BY agent, id)
                         WHERE kind = 'waiting'";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([LATELY], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect()
        })?;
        let read = |(agent, id, at): (String, String, i64)| {
            Some(((agent.parse().ok()?, SessionId::new(id).ok()?), at.saturating_mul(1_000_000)))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// The number of the newest event; 0 where there is none.
    pub fn newest_event(&self) -> Result<i64> {
        self.ask(|connection| connection.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0)))
    }

    fn read_events(&self, query: &str, parameter: i64) -> Result<Vec<HeardEvent>> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![parameter], |row| {
                let (agent, id): (String, String) = (row.get(3)?, row.get(4)?);
                let name: Option<String> = row.get(5)?;
                let (number, at, event): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(agent.parse().ok().zip(SessionId::new(id).ok()).map(|(agent, id)| HeardEvent {
                    number,
                    at: Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH),
                    event,
                    agent,
                    id,
                    name: name.and_then(|name| SessionName::new(name).ok()),
                }))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }
}
