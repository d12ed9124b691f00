//! What the agents' hooks told, in the order in which they told it.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

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

impl Registry {
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
                             WHERE number > (SELECT max(number) FROM events) - 2000 AND kind IS NOT NULL
                             GROUP BY agent, id)
                         WHERE kind = 'waiting'";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
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
        let events: Vec<HeardEvent> = self.ask(|connection| {
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
        })?;
        // An agent that has answered is idle again: one word of its own, two things that happened.
        let mut told = Vec::with_capacity(events.len());
        for event in events {
            if event.event == "idle" {
                told.push(HeardEvent { event: "answered".into(), ..event.clone() });
            }
            told.push(event);
        }
        Ok(told)
    }
}
