//! Sessions that were started and have no messages yet.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use transcript::{Agent, SessionId, SessionName};

use super::process::Launcher;
use super::{Profile, Registry, SessionKey, agent_and_id, is_taken, json_column};
use crate::names;
use crate::registry::Result;

/// A session that is about to be started.
pub(crate) struct NewStart<'a> {
    pub agent: Agent,
    pub key: &'a SessionKey,
    /// Whether the agent chooses another id when it starts.
    pub id_is_pending: bool,
    pub name: &'a SessionName,
    pub directory: &'a Path,
    pub profile: &'a Profile,
}

/// The id of a session that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartId {
    /// tine chose it, or the agent has.
    Known(SessionId),
    /// The agent chooses its ids and hasn't done so yet; this is a placeholder.
    Pending(SessionId),
}

impl StartId {
    /// The id as stored in the registry.
    fn recorded_as(id: SessionId, is_pending: bool) -> Self {
        if is_pending { StartId::Pending(id) } else { StartId::Known(id) }
    }

    pub(crate) fn known(&self) -> Option<&SessionId> {
        match self {
            StartId::Known(id) => Some(id),
            StartId::Pending(_) => None,
        }
    }

    /// The id by which the registry knows the session.
    pub(crate) fn recorded(&self) -> &SessionId {
        match self {
            StartId::Known(id) | StartId::Pending(id) => id,
        }
    }
}

/// How long an abandoned start keeps its name if no process shows that it was abandoned.
const UNBEGUN_SECONDS: i64 = 24 * 60 * 60;

/// A session that was started and has no messages yet, as the user names it.
#[derive(Debug, Clone)]
pub(crate) struct EmptySession {
    pub(crate) agent: Agent,
    pub(crate) id: StartId,
    pub(crate) directory: PathBuf,
    pub(crate) profile: Profile,
}

/// A session that was started and has not been seen since.
#[derive(Debug, Clone)]
pub(crate) struct StartedRow {
    pub(crate) key: i64,
    pub(crate) agent: Agent,
    pub(crate) id: StartId,
    pub(crate) cwd: Option<String>,
    pub(crate) created: i64,
    pub(crate) launcher: Launcher,
}

impl StartedRow {
    /// Whether the start has been abandoned.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        match &self.launcher {
            Launcher::Process(process) => !process.is_running(),
            Launcher::Anybody => now.as_millisecond() - self.created > UNBEGUN_SECONDS * 1000,
        }
    }
}

impl Registry {
    pub(crate) fn register_start(&mut self, start: &NewStart<'_>, launcher: &Launcher, now: Timestamp) -> Result<bool> {
        self.check_writable()?;
        let profile = self.encode(start.profile)?;
        self.write(|transaction| {
            let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1)";
            if transaction.query_row(query, [start.name.as_str()], |row| row.get(0))? {
                return Ok(false);
            }
            let query = "INSERT INTO sessions (agent, id, path, name, created, cwd, profile, is_start, id_is_pending,
                                               launch_pid, launch_start)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10)";
            let process = launcher.process();
            transaction.execute(
                query,
                params![
                    start.agent.as_str(),
                    start.key.id.as_str(),
                    start.key.path.to_string_lossy(),
                    start.name.as_str(),
                    now.as_millisecond(),
                    start.directory.to_string_lossy(),
                    profile,
                    start.id_is_pending,
                    process.map(|process| process.pid),
                    process.map(|process| &process.start)
                ],
            )?;
            Ok(true)
        })
    }

    /// A session that was started and has no messages yet.
    pub(crate) fn empty_session(&self, name: &str) -> Result<Option<EmptySession>> {
        let row = self.ask(|connection| {
            let query = "SELECT agent, id, id_is_pending, cwd, profile FROM sessions WHERE name = ?1 AND is_start";
            let read = |row: &rusqlite::Row<'_>| {
                let session = agent_and_id(&row.get::<_, String>(0)?, row.get(1)?);
                let (is_pending, directory): (bool, Option<String>) = (row.get(2)?, row.get(3)?);
                let profile = json_column::<Profile>(row, 4)?.unwrap_or_default();
                Ok(session.zip(directory).map(|((agent, id), directory)| EmptySession {
                    agent,
                    id: StartId::recorded_as(id, is_pending),
                    directory: PathBuf::from(directory),
                    profile,
                }))
            };
            connection.query_row(query, [name], read).optional()
        })?;
        Ok(row.flatten())
    }

    /// The sessions that were started and have no conversation yet, with their directories, the newest first.
    pub(crate) fn all_empty(&self) -> Result<Vec<(SessionName, Agent, Option<PathBuf>)>> {
        let rows: Vec<(String, String, Option<String>)> = self.ask(|connection| {
            let query = "SELECT name, agent, cwd FROM sessions
                         WHERE is_start AND name IS NOT NULL ORDER BY created DESC";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect()
        })?;
        let read = |(name, agent, cwd): (String, String, Option<String>)| {
            Some((SessionName::new(name).ok()?, agent.parse().ok()?, cwd.map(PathBuf::from)))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// Forgets a session that was registered as started and came to nothing.
    pub(crate) fn forget_empty(&mut self, id: &SessionId) -> Result<()> {
        let query = "DELETE FROM sessions WHERE id = ?1 AND is_start";
        self.write(|transaction| transaction.execute(query, [id.as_str()])).map(drop)
    }

    pub(crate) fn forget_start(&mut self, key: &SessionKey) -> Result<()> {
        let query = "DELETE FROM sessions WHERE agent = ?1 AND id = ?2 AND is_start";
        self.write(|transaction| transaction.execute(query, [key.agent.as_str(), key.id.as_str()])).map(|_| ())
    }

    pub(crate) fn record_transcript(&mut self, key: &SessionKey, id: &SessionId, path: &Path) -> Result<()> {
        let query = "UPDATE OR IGNORE sessions SET id = ?3, path = ?4, is_start = 0, id_is_pending = 0
                     WHERE agent = ?1 AND id = ?2";
        let path = path.to_string_lossy();
        self.write(|transaction| {
            transaction.execute(query, params![key.agent.as_str(), key.id.as_str(), id.as_str(), path])
        })
        .map(|_| ())
    }

    pub(crate) fn starts(&self) -> Result<Vec<StartedRow>> {
        self.ask(|connection| {
            let query = "SELECT key, agent, id, cwd, created, id_is_pending, launch_pid, launch_start FROM sessions
                         WHERE is_start";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let session = agent_and_id(&row.get::<_, String>(1)?, row.get(2)?);
                let (is_pending, launcher) = (row.get(5)?, Launcher::recorded(row.get(6)?, row.get(7)?));
                let (key, cwd, created) = (row.get(0)?, row.get(3)?, row.get(4)?);
                Ok(session.map(|(agent, id)| StartedRow {
                    key,
                    agent,
                    id: StartId::recorded_as(id, is_pending),
                    cwd,
                    created,
                    launcher,
                }))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    pub(crate) fn settle(&mut self, key: i64, id: &SessionId, path: &Path) -> Result<()> {
        let query = "UPDATE OR IGNORE sessions SET id = ?2, path = ?3, is_start = 0, id_is_pending = 0 WHERE key = ?1";
        self.write(|transaction| transaction.execute(query, params![key, id.as_str(), path.to_string_lossy()]))
            .map(|_| ())
    }

    /// Settles a start of which is known what became of it.
    pub(crate) fn settle_named(&mut self, name: &SessionName, session: &SessionKey) -> Result<()> {
        let query = "UPDATE OR IGNORE sessions SET id = ?2, path = ?3, is_start = 0, id_is_pending = 0
                     WHERE name = ?1 AND is_start";
        let values = params![name.as_str(), session.id.as_str(), session.path.to_string_lossy()];
        self.write(|transaction| transaction.execute(query, values)).map(|_| ())
    }

    pub(crate) fn remove_row(&mut self, key: i64) -> Result<()> {
        self.write(|transaction| transaction.execute("DELETE FROM sessions WHERE key = ?1", [key])).map(|_| ())
    }

    /// Every name, with the time since when, in milliseconds.
    pub(crate) fn names_with_times(&self) -> Result<Vec<(SessionKey, SessionName, i64)>> {
        self.ask(|connection| {
            let query = "SELECT agent, id, path, name, created FROM sessions WHERE name IS NOT NULL";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let (agent, id): (String, String) = (row.get(0)?, row.get(1)?);
                let (path, name): (String, String) = (row.get(2)?, row.get(3)?);
                let created: i64 = row.get(4)?;
                let key = agent.parse().ok().zip(SessionId::new(id).ok());
                let key = key.map(|(agent, id)| SessionKey { agent, id, path: PathBuf::from(path) });
                Ok(key.zip(SessionName::new(name).ok()).map(|(key, name)| (key, name, created)))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    /// Names a fork after its parent; `None` if it has got a name meanwhile.
    pub(crate) fn name_fork(
        &mut self,
        key: &SessionKey,
        parent: &SessionName,
        profile: &Profile,
        now: Timestamp,
    ) -> Result<Option<SessionName>> {
        let profile = (!profile.is_empty()).then(|| self.encode(profile)).transpose()?;
        self.write(|transaction| {
            let is_used = |name: &str| is_taken(transaction, name).unwrap_or(true);
            let Some(name) = names::for_fork(parent.as_str(), is_used) else {
                return Ok(None);
            };
            let query = "INSERT INTO sessions (agent, id, path, name, created, profile) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                         ON CONFLICT (agent, id, path) DO UPDATE SET name = excluded.name WHERE name IS NULL";
            let path = key.path.to_string_lossy();
            let values =
                params![key.agent.as_str(), key.id.as_str(), path, name.as_str(), now.as_millisecond(), profile];
            Ok((transaction.execute(query, values)? > 0).then_some(name))
        })
    }
}
