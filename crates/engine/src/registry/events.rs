//! Events: what hooks reported and what tine itself did, in order.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

use super::{Lineage, Registry};
use crate::registry::Result;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionEvent {
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
    /// The session that it was forked from, where the event is `forked`.
    pub parent: Option<EventParent>,
}

/// The parent of a session that was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventParent {
    /// The agent.
    pub agent: Agent,
    /// The session's id.
    pub id: SessionId,
    /// Its name at that time.
    pub name: Option<SessionName>,
}

/// Something that happened to a session, before it is recorded.
pub(crate) struct UnrecordedEvent<'a> {
    pub kind: &'a str,
    pub agent: Agent,
    pub id: &'a SessionId,
    pub name: Option<&'a SessionName>,
    /// For a fork: what it was forked from.
    pub parent: Option<&'a Lineage>,
}

impl UnrecordedEvent<'_> {
    /// Records what no hook reports, because tine itself did it.
    pub(crate) fn record(&self, transaction: &Transaction<'_>, now: Timestamp) -> rusqlite::Result<()> {
        let query = "INSERT INTO events (at, hook, kind, agent, id, name, parent_agent, parent_id, parent_name)
                     VALUES (?1, 'tine', ?2, ?3, ?4, ?5, ?6, ?7,
                             (SELECT name FROM sessions WHERE agent = ?6 AND id = ?7 AND name IS NOT NULL))";
        let values = params![
            now.as_millisecond(),
            self.kind,
            self.agent.as_str(),
            self.id.as_str(),
            self.name.map(SessionName::as_str),
            self.parent.map(|parent| parent.agent.as_str()),
            self.parent.map(|parent| parent.id.as_str()),
        ];
        transaction.prepare_cached(query)?.execute(values).map(|_| ())
    }
}

/// What a query for events selects.
const COLUMNS: &str = "number, at, kind, agent, id, name, parent_agent, parent_id, parent_name";

/// How many of the newest events are searched for the last event of a session.
const LATELY: i64 = 2_000;

impl Registry {
    /// The last event of each session with recent events that has not stopped.
    pub(crate) fn still_open(&self) -> Result<Vec<SessionEvent>> {
        let query = format!(
            "SELECT {COLUMNS} FROM (
                 SELECT max(number) AS latest, * FROM events
                 WHERE number > (SELECT max(number) FROM events) - ?1 AND kind IS NOT NULL
                 GROUP BY agent, id)
             WHERE kind NOT IN ('stopped', 'forked') ORDER BY number"
        );
        self.read_events(&query, LATELY)
    }

    /// Records what happened to a session after its last event, unless it has reported another one since.
    pub(crate) fn note_after(&mut self, last: &SessionEvent, kind: &str, now: Timestamp) -> Result<()> {
        self.write(|transaction| {
            let query = "SELECT EXISTS (SELECT 1 FROM events WHERE number > ?1 AND agent = ?2 AND id = ?3
                                                              AND kind IS NOT NULL)";
            let values = params![last.number, last.agent.as_str(), last.id.as_str()];
            match transaction.prepare_cached(query)?.query_row(values, |row| row.get(0))? {
                true => Ok(()),
                false => {
                    let (agent, id, name) = (last.agent, &last.id, last.name.as_ref());
                    UnrecordedEvent { kind, agent, id, name, parent: None }.record(transaction, now)
                }
            }
        })
    }

    /// Records that a busy session is idle, because no agent reports interruptions.
    pub(crate) fn note_interrupted(&mut self, session: &SessionView, now: Timestamp) -> Result<()> {
        let is_its = |event: &SessionEvent| event.agent == session.agent && event.id == session.id;
        let last = self.still_open()?.into_iter().find(is_its);
        match last.filter(|last| matches!(last.event.as_str(), "busy" | "waiting")) {
            Some(last) => self.note_after(&last, "idle", now),
            None => Ok(()),
        }
    }

    /// Records that a session has ended, unless its agent has reported it.
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
                _ => {
                    let (agent, id, name) = (session.agent, &session.id, session.name.as_ref());
                    UnrecordedEvent { kind: "stopped", agent, id, name, parent: None }.record(transaction, now)
                }
            }
        })
    }

    /// The newest events, oldest first.
    pub fn last_events(&self, count: u32) -> Result<Vec<SessionEvent>> {
        let query = format!(
            "SELECT {COLUMNS} FROM (SELECT * FROM events WHERE kind IS NOT NULL ORDER BY number DESC LIMIT ?1)
             ORDER BY number"
        );
        self.read_events(&query, i64::from(count))
    }

    /// The events after a number, oldest first.
    pub fn events_after(&self, number: i64) -> Result<Vec<SessionEvent>> {
        let query = format!("SELECT {COLUMNS} FROM events WHERE number > ?1 AND kind IS NOT NULL ORDER BY number");
        self.read_events(&query, number)
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

    /// When a session asked for a permission, in nanoseconds since 1970, if that was its last event.
    pub(crate) fn asked_at(&self, agent: Agent, id: &SessionId) -> Result<Option<i64>> {
        let last: Option<(String, i64)> = self.ask(|connection| {
            let query = "SELECT kind, at FROM events
                         WHERE number > (SELECT max(number) FROM events) - ?3 AND agent = ?1 AND id = ?2
                               AND kind IS NOT NULL
                         ORDER BY number DESC LIMIT 1";
            let values = params![agent.as_str(), id.as_str(), LATELY];
            connection.prepare_cached(query)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })?;
        Ok(last.filter(|(kind, _)| kind == "waiting").map(|(_, at)| at.saturating_mul(1_000_000)))
    }

    /// The number of the newest event; 0 without events.
    pub fn newest_event(&self) -> Result<i64> {
        self.ask(|connection| connection.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0)))
    }

    pub(crate) fn read_events(&self, query: &str, parameter: i64) -> Result<Vec<SessionEvent>> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![parameter], |row| {
                let (agent, id): (String, String) = (row.get(3)?, row.get(4)?);
                let name = |name: Option<String>| name.and_then(|name| SessionName::new(name).ok());
                let (own_name, parent_name) = (name(row.get(5)?), name(row.get(8)?));
                let parent: (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
                let parent = parent.0.and_then(|agent| agent.parse().ok()).zip(parent.1);
                let parent = parent.and_then(|(agent, id)| {
                    Some(EventParent { agent, id: SessionId::new(id).ok()?, name: parent_name })
                });
                let (number, at, event): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(agent.parse().ok().zip(SessionId::new(id).ok()).map(|(agent, id)| SessionEvent {
                    number,
                    at: Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH),
                    event,
                    agent,
                    id,
                    name: own_name,
                    parent,
                }))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }
}
