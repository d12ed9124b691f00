//! The registry: what tine itself knows of sessions. One SQLite file, the only store of tine.
//!
//! Invariants, enforced here: the file is readable by its owner alone; every write is one immediate transaction that
//! waits for others instead of failing; the format only grows; where the file can't be written, nothing is changed.

pub(crate) mod backup;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod forks;
mod hooks;
mod names;
pub(crate) mod operations;
mod panes;
mod process;
mod profiles;
pub(crate) mod schema;
pub(crate) mod seeds;
mod starts;
pub(crate) mod translations;
pub(crate) mod unstarted;
mod windows;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use backup::{Source, backups, rebuild};
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
pub(crate) use seeds::Seeded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use transcript::{Agent, ParentSource, SessionId, SessionName};

use crate::private;
use schema::Migration;

pub use error::{Error, RegistryProblem, Result};
pub(crate) use forks::{CompletedFork, is_taken};
pub(crate) use hooks::{HookReport, HookTables, HookedSession, LastReport, NewEvent};
pub(crate) use names::NameRow;
pub(crate) use process::{Launcher, Process};
pub use profiles::{KeptFile, Profile};
pub use seeds::SeedNote;
pub(crate) use starts::{EmptySession, NewStart, StartedRow};
pub(crate) use unstarted::{Started, UnstartedFork};

/// How long a writer waits for its turn. Hooks give up long before; everybody else rather waits than fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Enough for a hundred others that come first, and not so much that a listing seems to hang.
const HURRY: Duration = Duration::from_secs(2);

/// An open registry.
#[derive(Debug)]
pub struct Registry {
    path: PathBuf,
    connection: Connection,
    /// Why this is only a copy in memory of what could be read; nothing for a registry that is kept.
    unusable: Option<(String, RegistryProblem)>,
    /// Whether nothing could be read of it, not even names.
    is_unread: bool,
}

/// The session of a row. The path distinguishes sessions with the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// The agent.
    pub agent: Agent,
    /// The agent's id.
    pub id: SessionId,
    /// The transcript.
    pub path: PathBuf,
}

/// Where a session comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The parent's agent.
    pub agent: Agent,
    /// The parent's id.
    pub id: SessionId,
    /// After which of the parent's turns the fork was made.
    pub turn: Option<u32>,
    /// How it is known.
    pub source: ParentSource,
}

impl Registry {
    /// Opens the registry at `path`, creating or migrating it where needed.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, PATIENCE)
    }

    /// The same, but never waits longer than this for other processes, now and later.
    pub fn open_within(path: &Path, patience: Duration) -> Result<Self> {
        let failed = |error: rusqlite::Error| sqlite_failed(path, &error);
        let io_failed = |error: std::io::Error| {
            let (message, trouble) = (error.to_string(), RegistryProblem::of_io(&error));
            Error::Unusable { path: path.to_owned(), message, trouble }
        };
        if let Some(folder) = path.parent() {
            private::create_folder(folder).map_err(io_failed)?;
        }
        private::open_file(path).map_err(io_failed)?;
        let connection = Connection::open(path).map_err(failed)?;
        // Folding the log into the file at every exit would flush the disk, and wait for all that others wrote to it, such
        // as a worktree that was just made. The log is folded in when it has grown.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
        let mut registry = Registry { path: path.to_owned(), connection, unusable: None, is_unread: false };
        registry.prepare(patience)?;
        Ok(registry)
    }

    /// A registry that lives as long as the process, for tests.
    pub fn in_memory() -> Result<Self> {
        Self::empty(Path::new(":memory:"), None)
    }

    /// Replaces a registry that can't be used: an in-memory copy of what is readable, so that reading still works.
    /// Changes are refused.
    pub(crate) fn stand_in(path: &Path, error: &Error) -> Result<Self> {
        let unusable = match error {
            Error::Unusable { message, trouble, .. } => (message.clone(), *trouble),
            other => (other.to_string(), RegistryProblem::Other),
        };
        let mut registry = Self::empty(path, Some(unusable.clone()))?;
        if registry.copy_from(path).is_ok() && registry.is_sound() && registry.migrate().is_ok() {
            return Ok(registry);
        }
        Ok(Registry { is_unread: true, ..Self::empty(path, Some(unusable))? })
    }

    fn empty(path: &Path, unusable: Option<(String, RegistryProblem)>) -> Result<Self> {
        let connection = Connection::open_in_memory().map_err(|error| sqlite_failed(path, &error))?;
        let mut registry = Registry { path: path.to_owned(), connection, unusable, is_unread: false };
        registry.migrate()?;
        Ok(registry)
    }

    /// Copies a file page by page, without writing to it.
    fn copy_from(&mut self, path: &Path) -> rusqlite::Result<()> {
        let source = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        source.busy_timeout(HURRY)?;
        let copy = rusqlite::backup::Backup::new(&source, &mut self.connection)?;
        match copy.step(-1)? {
            rusqlite::backup::StepResult::Done => Ok(()),
            _ => Err(rusqlite::Error::InvalidQuery),
        }
    }

    /// Whether it is kept on disk.
    pub fn is_kept(&self) -> bool {
        self.unusable.is_none()
    }

    /// Whether nothing is known of names, because the registry can't be read.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Refuses to begin a change that couldn't be recorded.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.unusable.clone() {
            None => Ok(()),
            Some((message, trouble)) => Err(Error::NotRecordable { path: self.path.clone(), message, trouble }),
        }
    }

    fn prepare(&mut self, patience: Duration) -> Result<()> {
        self.connection.busy_timeout(patience).map_err(|error| self.failed(&error))?;
        let format = self.format()?;
        if format < schema::MIGRATIONS.len() as i64 {
            // Enabling the write-ahead log fails immediately if another process is doing the same, so a lock file
            // guards the first opening.
            let lock = self.lock_file()?;
            let begun = Instant::now();
            while let Err(error) = lock.try_lock() {
                if begun.elapsed() > patience {
                    let (path, message) = (self.path.clone(), error.to_string());
                    return Err(Error::Unusable { path, message, trouble: RegistryProblem::Busy });
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            self.connection.pragma_update(None, "journal_mode", "wal").map_err(|error| self.failed(&error))?;
            self.migrate()?;
        } else if format > schema::MIGRATIONS.len() as i64 {
            let known = schema::MIGRATIONS.len() as i64;
            return Err(Error::Newer { path: self.path.clone(), found: format, known });
        }
        // The first process that opens the registry reads the whole log, so it is kept short.
        self.connection.pragma_update(None, "wal_autocheckpoint", 100).map_err(|error| self.failed(&error))?;
        // Most of what is written is known from elsewhere, too. What isn't is written durably.
        self.set_synchronous("normal")
    }

    fn format(&self) -> Result<i64> {
        self.connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|error| self.failed(&error))
    }

    fn migrate(&mut self) -> Result<()> {
        self.write(|transaction| {
            let format: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
            let done = usize::try_from(format).unwrap_or(0);
            for migration in schema::MIGRATIONS.iter().skip(done) {
                match migration {
                    Migration::Sql(sql) => transaction.execute_batch(sql)?,
                    Migration::Rows(rewrite) => rewrite(transaction)?,
                }
            }
            let format = schema::MIGRATIONS.len().max(done) as i64;
            transaction.pragma_update(None, "user_version", format)
        })
    }

    /// Runs `change` in one transaction that queues for the write lock immediately.
    pub(super) fn write<T>(&mut self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| sqlite_failed(&path, &error);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let value = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(value)
    }

    /// The same for what must not be lost: it has reached the disk when this returns, and all that was written before it.
    pub(super) fn write_durably<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.set_synchronous("full")?;
        let written = self.write(change);
        self.set_synchronous("normal")?;
        written
    }

    fn set_synchronous(&self, how: &str) -> Result<()> {
        self.connection.pragma_update(None, "synchronous", how).map_err(|error| self.failed(&error))
    }

    /// Turns a value into what the registry holds. A path that isn't text can't be recorded.
    pub(super) fn encode<T: Serialize>(&self, value: &T) -> Result<String> {
        serde_json::to_string(value).map_err(|error| self.not_recordable(&error))
    }

    fn not_recordable(&self, error: &serde_json::Error) -> Error {
        let (path, message) = (self.path.clone(), error.to_string());
        Error::NotRecordable { path, message, trouble: RegistryProblem::Other }
    }

    /// Asks something.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        question(&self.connection).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        sqlite_failed(&self.path, error)
    }

    fn lock_file(&self) -> Result<std::fs::File> {
        private::open_file(&self.path.with_extension("lock")).map_err(|error| {
            let (message, trouble) = (error.to_string(), RegistryProblem::of_io(&error));
            Error::Unusable { path: self.path.clone(), message, trouble }
        })
    }

    /// Every name that is in use.
    pub fn names(&self) -> Result<HashMap<SessionKey, SessionName>> {
        let read = || -> rusqlite::Result<HashMap<SessionKey, SessionName>> {
            let mut statement =
                self.connection.prepare("SELECT agent, id, path, name FROM sessions WHERE name IS NOT NULL")?;
            let rows = statement.query_map([], |row| {
                let key = session_key(&row.get::<_, String>(0)?, row.get(1)?, row.get::<_, String>(2)?);
                let name = SessionName::new(row.get::<_, String>(3)?).ok();
                Ok(key.zip(name))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Gives a session a name, or takes it away. False where another session has the name.
    pub fn set_name(&mut self, key: &SessionKey, name: Option<&SessionName>, now: Timestamp) -> Result<bool> {
        self.write(|transaction| {
            if let Some(name) = name {
                let holder: Option<(String, String, String)> = transaction
                    .query_row("SELECT agent, id, path FROM sessions WHERE name = ?1", [name.as_str()], |row| {
                        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                    })
                    .optional()?;
                let own = (key.agent.as_str().to_owned(), key.id.to_string(), key.path.to_string_lossy().into_owned());
                if holder.is_some_and(|holder| holder != own) {
                    return Ok(false);
                }
            }
            if name.is_some() {
                // A named transcript before a `/clear` becomes a separate session again.
                transaction.execute(
                    "DELETE FROM previous_ids WHERE agent = ?1 AND id = ?2 AND path = ?3",
                    params![key.agent.as_str(), key.id.as_str(), key.path.to_string_lossy()],
                )?;
            }
            transaction.execute(
                "INSERT INTO sessions (agent, id, path, name, created) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (agent, id, path) DO UPDATE SET name = excluded.name",
                params![
                    key.agent.as_str(),
                    key.id.as_str(),
                    key.path.to_string_lossy(),
                    name.map(SessionName::as_str),
                    now.as_millisecond()
                ],
            )?;
            Ok(true)
        })
    }

    /// Follows a transcript that the agent moved, as `/cd` does.
    pub fn move_session(&mut self, from: &SessionKey, to: &Path) -> Result<()> {
        self.write(|transaction| {
            transaction.execute(
                "UPDATE OR IGNORE sessions SET path = ?4 WHERE agent = ?1 AND id = ?2 AND path = ?3",
                params![from.agent.as_str(), from.id.as_str(), from.path.to_string_lossy(), to.to_string_lossy()],
            )
        })
        .map(|_| ())
    }

    /// Every known parent.
    pub fn lineage(&self) -> Result<HashMap<(Agent, SessionId), Lineage>> {
        let read = || -> rusqlite::Result<HashMap<(Agent, SessionId), Lineage>> {
            let mut statement = self
                .connection
                .prepare("SELECT agent, id, parent_agent, parent_id, parent_turn, source FROM lineage")?;
            let rows = statement.query_map([], |row| {
                let child = agent_and_id(&row.get::<_, String>(0)?, row.get(1)?);
                let parent = agent_and_id(&row.get::<_, String>(2)?, row.get(3)?);
                let turn = row.get(4)?;
                let source = parent_source(row, 5)?;
                Ok(child.zip(parent).map(|(child, (agent, id))| (child, Lineage { agent, id, turn, source })))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Notes parents. What is known from a more trustworthy source stays.
    pub fn note_lineage(&mut self, noted: &[((Agent, SessionId), Lineage)], now: Timestamp) -> Result<()> {
        if noted.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            let mut statement = transaction.prepare(
                "INSERT INTO lineage (agent, id, parent_agent, parent_id, parent_turn, source, noted)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (agent, id) DO UPDATE SET
                    parent_agent = excluded.parent_agent, parent_id = excluded.parent_id,
                    parent_turn = excluded.parent_turn, source = excluded.source, noted = excluded.noted
                 WHERE lineage.source <> 'tine' OR excluded.source = 'tine'",
            )?;
            for ((agent, id), parent) in noted {
                statement.execute(params![
                    agent.as_str(),
                    id.as_str(),
                    parent.agent.as_str(),
                    parent.id.as_str(),
                    parent.turn,
                    parent.source.as_str(),
                    now.as_millisecond()
                ])?;
            }
            Ok(())
        })
    }

    /// Notes after which turns forks were made, of which only the parent was known.
    pub(crate) fn note_turns(&mut self, noted: &[((Agent, SessionId), Lineage)]) -> Result<()> {
        if noted.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            let query = "UPDATE lineage SET parent_turn = ?3 WHERE agent = ?1 AND id = ?2 AND parent_turn IS NULL";
            let mut statement = transaction.prepare(query)?;
            for ((agent, id), parent) in noted {
                statement.execute(params![agent.as_str(), id.as_str(), parent.turn])?;
            }
            Ok(())
        })
    }

    /// What is remembered of the transcript that a session began with.
    pub fn seed(&self, agent: Agent, id: &SessionId) -> Result<Option<SeedNote>> {
        let query = "SELECT parent_agent, parent_id, turn, hash, tokens, window, hidden FROM seeds WHERE agent = ?1 AND id = ?2";
        let row = self
            .connection
            .query_row(query, [agent.as_str(), id.as_str()], |row| {
                let parent_agent: String = row.get(0)?;
                Ok(SeedNote {
                    parent_agent: parent_agent.parse().map_err(|error| bad_column(0, Type::Text, error))?,
                    parent: row.get(1)?,
                    turn: row.get(2)?,
                    hash: row.get(3)?,
                    tokens: count(row.get(4)?, 4)?,
                    window: row.get::<_, Option<i64>>(5)?.map(|window| count(window, 5)).transpose()?,
                    hidden: row.get(6)?,
                })
            })
            .optional();
        row.map_err(|error| self.failed(&error))
    }

    /// Runs `change` without waiting long for other writers: for what is not worth a person's time.
    pub fn in_a_hurry<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let set =
            |registry: &Self, time| registry.connection.busy_timeout(time).map_err(|error| registry.failed(&error));
        set(self, HURRY)?;
        let result = change(self);
        set(self, PATIENCE)?;
        result
    }

    /// Reads one thing that tine was asked to remember.
    pub fn recall(&self, key: &str) -> Result<Option<String>> {
        self.connection
            .query_row("SELECT value FROM memory WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map_err(|error| self.failed(&error))
    }

    /// Reads a stored JSON value.
    pub(crate) fn recall_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let value = self.ask(|connection| {
            let query = "SELECT value FROM memory WHERE key = ?1";
            connection.query_row(query, [key], |row| json_column(row, 0)).optional()
        })?;
        Ok(value.flatten())
    }

    /// Remembers one thing as JSON.
    pub(crate) fn remember_value<T: Serialize>(&mut self, key: &str, value: &T) -> Result<()> {
        let value = self.encode(value)?;
        self.remember(key, &value)
    }

    /// Everything that tine was asked to remember under keys with this prefix.
    pub(crate) fn recall_all(&self, prefix: &str) -> Result<Vec<(String, String)>> {
        let read = || {
            let query = "SELECT key, value FROM memory WHERE key >= ?1 AND key < ?1 || char(1114111)";
            let mut statement = self.connection.prepare(query)?;
            let rows = statement.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Remembers one thing.
    pub fn remember(&mut self, key: &str, value: &str) -> Result<()> {
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO memory (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value",
                params![key, value],
            )
        })
        .map(|_| ())
    }
}

fn sqlite_failed(path: &Path, error: &rusqlite::Error) -> Error {
    let trouble = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => RegistryProblem::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => RegistryProblem::ReadOnly,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RegistryProblem::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => RegistryProblem::Damaged,
        _ => RegistryProblem::Other,
    };
    Error::Unusable { path: path.to_owned(), message: error.to_string(), trouble }
}

fn session_key(agent: &str, id: String, path: String) -> Option<SessionKey> {
    let (agent, id) = agent_and_id(agent, id)?;
    Some(SessionKey { agent, id, path: PathBuf::from(path) })
}

fn agent_and_id(agent: &str, id: String) -> Option<(Agent, SessionId)> {
    // A row of an agent that only a newer tine knows is passed over, not an error.
    Some((agent.parse().ok()?, SessionId::new(id).ok()?))
}

fn parent_source(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<ParentSource> {
    let word: String = row.get(column)?;
    match word.as_str() {
        "tine" => Ok(ParentSource::Tine),
        "agent" => Ok(ParentSource::Agent),
        "inferred" => Ok(ParentSource::Inferred),
        _ => Err(bad_column(column, Type::Text, format!("`{word}` is not the source of a parent"))),
    }
}

/// A number that is never negative.
fn count(value: i64, column: usize) -> rusqlite::Result<u64> {
    u64::try_from(value).map_err(|error| bad_column(column, Type::Integer, error))
}

/// A value that is recorded as JSON. One that can't be read is an error: to continue without it could start an agent with
/// other options than the user chose.
fn json_column<T: DeserializeOwned>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| bad_column(column, Type::Text, error))).transpose()
}

fn bad_column(column: usize, of: Type, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, of, error.into())
}

#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
