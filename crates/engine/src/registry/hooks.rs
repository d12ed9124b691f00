//! What hooks read and write: the sessions that their events are about, and which id each running agent had last.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use transcript::{Agent, SessionId, SessionName};

use super::process::{Launcher, Process};
use super::{Registry, is_taken, sqlite_failed};
use crate::registry::Result;

/// How many events are kept.
const EVENTS_KEPT: i64 = 20_000;

/// For how many milliseconds processes are remembered.
const PROCESSES_KEPT: i64 = 30 * 24 * 3600 * 1000;

/// A session as hooks see it.
#[derive(Debug, Clone)]
pub(crate) struct HookedSession {
    pub key: i64,
    pub id: String,
    pub path: String,
    pub name: Option<String>,
    pub profile: Option<String>,
    /// Whether it was started and its agent hasn't chosen its id yet.
    pub is_pending: bool,
}

/// The last event of a process.
#[derive(Debug, Clone)]
pub(crate) struct LastReport {
    /// The session's id.
    pub id: String,
    /// The hook.
    pub hook: String,
}

/// An event of a process, to be recorded.
pub(crate) struct HookReport<'a> {
    pub process: &'a Process,
    pub id: &'a SessionId,
    pub hook: &'a str,
    /// Distinguishes two events of the same kind.
    pub mark: &'a str,
}

/// A reported event, to be recorded.
pub(crate) struct NewEvent<'a> {
    pub hook: &'a str,
    /// What it means for the session, if anything.
    pub kind: Option<&'a str>,
    pub id: &'a SessionId,
    pub name: Option<&'a SessionName>,
    /// The session that it was forked from: its id and its name.
    pub parent: Option<(&'a str, Option<&'a str>)>,
}

impl Registry {
    /// The last event of a process.
    pub(crate) fn last_report(&self, agent: Agent, process: &Process) -> Result<Option<LastReport>> {
        self.ask(|connection| {
            connection
                .prepare_cached("SELECT id, kind FROM processes WHERE agent = ?1 AND pid = ?2 AND start = ?3")?
                .query_row(params![agent.as_str(), process.pid, process.start], |row| {
                    Ok(LastReport { id: row.get(0)?, hook: row.get(1)? })
                })
                .optional()
        })
    }

    /// When a hook last ran, in milliseconds since 1970.
    pub(crate) fn last_hook(&self, agent: Agent, hook: &str) -> Result<Option<i64>> {
        self.ask(|connection| {
            let query = "SELECT max(at) FROM events WHERE agent = ?1 AND hook = ?2";
            connection.query_row(query, [agent.as_str(), hook], |row| row.get(0))
        })
    }

    /// Whether there is a session with this id, or its lineage.
    pub(crate) fn is_known_to_hooks(&self, agent: Agent, id: &SessionId) -> Result<bool> {
        self.ask(|connection| {
            let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE agent = ?1 AND id = ?2)
                             OR EXISTS (SELECT 1 FROM lineage WHERE agent = ?1 AND id = ?2)";
            connection.prepare_cached(query)?.query_row([agent.as_str(), id.as_str()], |row| row.get(0))
        })
    }

    /// Begins the one transaction of a hook.
    pub(crate) fn begin_hook(&mut self, agent: Agent, now: Timestamp) -> Result<HookTables<'_>> {
        let path = &self.path;
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(|error| sqlite_failed(path, &error))?;
        Ok(HookTables { transaction, agent, now, path })
    }
}

/// The transaction of a hook. Nothing is written until it is committed.
pub(crate) struct HookTables<'a> {
    transaction: Transaction<'a>,
    agent: Agent,
    pub(crate) now: Timestamp,
    /// The registry's file.
    path: &'a Path,
}

impl HookTables<'_> {
    pub(crate) fn commit(self) -> Result<()> {
        let path = self.path;
        self.transaction.commit().map_err(|error| sqlite_failed(path, &error))
    }

    fn run<T>(&self, query: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        query(&self.transaction).map_err(|error| sqlite_failed(self.path, &error))
    }

    /// The sessions with an id: two projects may have sessions with the same one.
    pub(crate) fn sessions_with_id(&self, id: &str) -> Result<Vec<HookedSession>> {
        self.run(|transaction| {
            let query = "SELECT key, id, path, name, profile, id_is_pending FROM sessions WHERE agent = ?1 AND id = ?2";
            let mut statement = transaction.prepare_cached(query)?;
            let rows = statement.query_map(params![self.agent.as_str(), id], read_row)?;
            rows.collect()
        })
    }

    /// The session with a name.
    pub(crate) fn session_with_name(&self, name: &str) -> Result<Option<HookedSession>> {
        self.run(|transaction| {
            let query =
                "SELECT key, id, path, name, profile, id_is_pending FROM sessions WHERE agent = ?1 AND name = ?2";
            transaction.prepare_cached(query)?.query_row(params![self.agent.as_str(), name], read_row).optional()
        })
    }

    /// The session that had an id before it was cleared.
    pub(crate) fn session_that_had(&self, id: &str) -> Result<Option<HookedSession>> {
        self.run(|transaction| {
            let query = "SELECT s.key, s.id, s.path, s.name, s.profile, s.id_is_pending
                         FROM previous_ids p JOIN sessions s ON s.key = p.key WHERE p.agent = ?1 AND p.id = ?2";
            transaction.prepare_cached(query)?.query_row(params![self.agent.as_str(), id], read_row).optional()
        })
    }

    /// Whether a session had this id before it was cleared.
    pub(crate) fn is_previous_id(&self, id: &SessionId) -> Result<bool> {
        self.run(|transaction| {
            transaction
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM previous_ids WHERE agent = ?1 AND id = ?2)")?
                .query_row(params![self.agent.as_str(), id.as_str()], |row| row.get(0))
        })
    }

    /// The id that reported last among the session with a name, what it was before it was cleared, and the forks that
    /// were made inside its agent.
    pub(crate) fn last_reported_in_family(&self, name: &str) -> Result<Option<String>> {
        self.run(|transaction| {
            let query = "WITH RECURSIVE family(id) AS (
                             SELECT id FROM sessions WHERE agent = ?1 AND name = ?2
                             UNION SELECT p.id FROM previous_ids p JOIN sessions s ON s.key = p.key
                                   WHERE s.agent = ?1 AND s.name = ?2
                             UNION SELECT l.id FROM lineage l JOIN family f ON l.parent_id = f.id
                                   WHERE l.agent = ?1 AND l.parent_agent = ?1 AND l.source = 'agent')
                         SELECT e.id FROM events e JOIN family f ON e.id = f.id WHERE e.agent = ?1
                         ORDER BY e.number DESC LIMIT 1";
            let values = params![self.agent.as_str(), name];
            transaction.prepare_cached(query)?.query_row(values, |row| row.get(0)).optional()
        })
    }

    /// The last session that was started in a directory until `latest`, whose id is not known yet and whose process runs.
    pub(crate) fn start_without_id(&self, cwd: Option<&Path>, latest: i64) -> Result<Option<String>> {
        let starts: Vec<(String, Launcher)> = self.run(|transaction| {
            let query = "SELECT name, launch_pid, launch_start FROM sessions WHERE agent = ?1 AND cwd = ?2 AND is_start
                         AND id_is_pending AND created <= ?3 ORDER BY created DESC";
            let mut statement = transaction.prepare_cached(query)?;
            let values = params![self.agent.as_str(), cwd.map(Path::to_string_lossy), latest];
            let rows =
                statement.query_map(values, |row| Ok((row.get(0)?, Launcher::recorded(row.get(1)?, row.get(2)?))))?;
            rows.collect()
        })?;
        Ok(starts.into_iter().find(|(_, launcher)| launcher.may_begin()).map(|(name, _)| name))
    }

    pub(crate) fn is_name_taken(&self, name: &str) -> bool {
        is_taken(&self.transaction, name).unwrap_or(true)
    }

    /// Remembers the id that a session had before it was cleared. What it has now is a fork of the same session.
    pub(crate) fn keep_previous_id(&self, session: &HookedSession, new: &SessionId) -> Result<()> {
        self.run(|transaction| {
            let query = "INSERT OR REPLACE INTO previous_ids (agent, id, path, key, since) VALUES (?1, ?2, ?3, ?4, ?5)";
            let values = params![self.agent.as_str(), session.id, session.path, session.key, self.now.as_millisecond()];
            transaction.prepare_cached(query)?.execute(values)?;
            let query = "INSERT OR IGNORE INTO lineage (agent, id, parent_agent, parent_id, parent_turn, source, noted)
                         SELECT agent, ?3, parent_agent, parent_id, parent_turn, source, noted FROM lineage
                         WHERE agent = ?1 AND id = ?2";
            transaction.prepare_cached(query)?.execute(params![self.agent.as_str(), session.id, new.as_str()]).map(drop)
        })
    }

    /// Gives a session another id and transcript.
    pub(crate) fn set_identity(&self, key: i64, id: &SessionId, path: &str) -> Result<()> {
        self.run(|transaction| {
            let query =
                "UPDATE OR IGNORE sessions SET id = ?2, path = ?3, id_is_pending = 0, forked = NULL, turns = NULL
                         WHERE key = ?1";
            transaction.prepare_cached(query)?.execute(params![key, id.as_str(), path]).map(drop)
        })
    }

    /// Follows a transcript that the agent moved.
    pub(crate) fn set_path(&self, key: i64, path: &str) -> Result<()> {
        self.run(|transaction| {
            let query = "UPDATE OR IGNORE sessions SET path = ?2 WHERE key = ?1";
            transaction.prepare_cached(query)?.execute(params![key, path]).map(drop)
        })
    }

    /// Records the parent of a fork that was made inside the agent.
    pub(crate) fn record_parent(&self, id: &SessionId, parent: &str) -> Result<()> {
        self.run(|transaction| {
            let query = "INSERT OR IGNORE INTO lineage (agent, id, parent_agent, parent_id, parent_turn, source, noted)
                         VALUES (?1, ?2, ?1, ?3, NULL, 'agent', ?4)";
            let values = params![self.agent.as_str(), id.as_str(), parent, self.now.as_millisecond()];
            transaction.prepare_cached(query)?.execute(values).map(drop)
        })
    }

    /// Registers a fork that was made inside the agent under a name, and returns its key.
    pub(crate) fn register_fork(
        &self,
        id: &SessionId,
        path: &str,
        name: &SessionName,
        cwd: Option<&Path>,
        profile: Option<&str>,
    ) -> Result<i64> {
        let (now, cwd) = (self.now.as_millisecond(), cwd.map(Path::to_string_lossy));
        self.run(|transaction| {
            let query = "INSERT INTO sessions (agent, id, path, name, created, cwd, profile)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                         ON CONFLICT (agent, id, path) DO UPDATE SET name = coalesce(sessions.name, excluded.name)";
            let values = params![self.agent.as_str(), id.as_str(), path, name.as_str(), now, cwd, profile];
            transaction.prepare_cached(query)?.execute(values)?;
            Ok(transaction.last_insert_rowid())
        })
    }

    /// When the same was reported before, in milliseconds since 1970.
    pub(crate) fn reported_at(&self, report: &HookReport<'_>) -> Result<Option<i64>> {
        self.run(|transaction| {
            let query = "SELECT at FROM processes
                         WHERE agent = ?1 AND pid = ?2 AND start = ?3 AND id = ?4 AND kind = ?5 AND mark = ?6";
            let HookReport { process, id, hook, mark } = report;
            let values = params![self.agent.as_str(), process.pid, process.start, id.as_str(), hook, mark];
            transaction.prepare_cached(query)?.query_row(values, |row| row.get(0)).optional()
        })
    }

    /// Remembers which session a process had last.
    pub(crate) fn record_report(&self, report: &HookReport<'_>) -> Result<()> {
        self.run(|transaction| {
            let query = "INSERT OR REPLACE INTO processes (agent, pid, start, id, kind, mark, at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let HookReport { process, id, hook, mark } = report;
            let at = self.now.as_millisecond();
            let values = params![self.agent.as_str(), process.pid, process.start, id.as_str(), hook, mark, at];
            transaction.prepare_cached(query)?.execute(values).map(drop)
        })
    }

    /// Records an event, and forgets old ones from time to time.
    pub(crate) fn record_event(&self, event: &NewEvent<'_>) -> Result<()> {
        let now = self.now.as_millisecond();
        self.run(|transaction| {
            let query = "INSERT INTO events (at, hook, kind, agent, id, name, parent_agent, parent_id, parent_name)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
            let values = params![
                now,
                event.hook,
                event.kind,
                self.agent.as_str(),
                event.id.as_str(),
                event.name.map(SessionName::as_str),
                event.parent.map(|_| self.agent.as_str()),
                event.parent.map(|(id, _)| id),
                event.parent.and_then(|(_, name)| name),
            ];
            transaction.prepare_cached(query)?.execute(values)?;
            let number = transaction.last_insert_rowid();
            if number % 1_000 == 0 {
                transaction.execute("DELETE FROM events WHERE number <= ?1", [number - EVENTS_KEPT])?;
                transaction.execute("DELETE FROM processes WHERE at < ?1", [now - PROCESSES_KEPT])?;
            }
            Ok(())
        })
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<HookedSession> {
    Ok(HookedSession {
        key: row.get(0)?,
        id: row.get(1)?,
        path: row.get(2)?,
        name: row.get(3)?,
        profile: row.get(4)?,
        is_pending: row.get(5)?,
    })
}
