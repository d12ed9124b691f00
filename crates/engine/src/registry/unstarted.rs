//! Forks that have not started: tine keeps the transcript that their agents will be handed.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, params};
use transcript::SessionId;

use super::{Registry, SessionKey, session_key};
use crate::registry::Result;
use crate::registry::operations::{self, Operation};

/// A fork that has not started. Its path is the transcript that tine keeps.
#[derive(Debug, Clone)]
pub(crate) struct UnstartedFork {
    pub key: SessionKey,
    /// Where it will work.
    pub cwd: Option<PathBuf>,
    /// When it was made, in milliseconds since 1970.
    pub at: i64,
}

/// A fork that has just started.
pub(crate) struct Started<'a> {
    pub session: &'a SessionKey,
    /// Where it works.
    pub directory: &'a Path,
    /// Whether the agent answered as asked.
    pub is_acknowledged: bool,
    /// The operation that created the fork, with its effects so far.
    pub operation: &'a Operation,
}

impl Registry {
    /// Every fork that has not started.
    pub(crate) fn unstarted_forks(&self) -> Result<Vec<UnstartedFork>> {
        self.ask(|connection| {
            let query = "SELECT agent, id, path, cwd, created FROM sessions WHERE unstarted IS NOT NULL";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let key = session_key(&row.get::<_, String>(0)?, row.get(1)?, row.get(2)?);
                let (cwd, at): (Option<String>, i64) = (row.get(3)?, row.get(4)?);
                Ok(key.map(|key| UnstartedFork { key, cwd: cwd.map(PathBuf::from), at }))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    /// The fork whose transcript tine keeps at `path`.
    pub(crate) fn unstarted_at(&self, path: &Path) -> Result<Option<SessionKey>> {
        let found = self.ask(|connection| {
            let query = "SELECT agent, id, path FROM sessions WHERE unstarted IS NOT NULL AND path = ?1";
            let row = connection.query_row(query, [path.to_string_lossy()], |row| {
                Ok(session_key(&row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
            });
            row.optional()
        })?;
        Ok(found.flatten())
    }

    /// The operation that made a fork which has not started.
    pub(crate) fn operation_of_unstarted(&self, key: &SessionKey) -> Result<Option<Operation>> {
        let number: Option<i64> = self.ask(|connection| {
            let query = "SELECT unstarted FROM sessions
                         WHERE agent = ?1 AND id = ?2 AND path = ?3 AND unstarted IS NOT NULL";
            let values = params![key.agent.as_str(), key.id.as_str(), key.path.to_string_lossy()];
            connection.query_row(query, values, |row| row.get(0)).optional()
        })?;
        let Some(number) = number else { return Ok(None) };
        self.operation(number)
    }

    /// Registers the session of a fork that has started, in one transaction: its name, profile and lineage stay.
    /// Returns false if it was deleted meanwhile.
    pub(crate) fn register_started(&mut self, kept: &SessionKey, started: &Started<'_>) -> Result<bool> {
        let Started { session, directory, is_acknowledged, operation } = started;
        self.check_writable()?;
        let (agent, path) = (session.agent.as_str(), session.path.to_string_lossy());
        let (old, new): (&SessionId, &SessionId) = (&kept.id, &session.id);
        self.write_durably(|transaction| {
            // The process that first noticed the new transcript may have registered it.
            transaction.execute(
                "DELETE FROM sessions WHERE agent = ?1 AND id = ?2 AND path = ?3",
                params![agent, new.as_str(), path],
            )?;
            let moved = transaction.execute(
                "UPDATE sessions SET id = ?4, path = ?5, cwd = ?7, turns = 1, unstarted = NULL
                 WHERE agent = ?1 AND id = ?2 AND path = ?3 AND unstarted = ?6",
                params![
                    agent,
                    old.as_str(),
                    kept.path.to_string_lossy(),
                    new.as_str(),
                    path,
                    operation.id,
                    directory.to_string_lossy()
                ],
            )?;
            if moved == 0 {
                return Ok(false);
            }
            let ids = params![agent, old.as_str(), new.as_str()];
            transaction.execute("UPDATE OR REPLACE lineage SET id = ?3 WHERE agent = ?1 AND id = ?2", ids)?;
            transaction.execute("UPDATE lineage SET parent_id = ?3 WHERE parent_agent = ?1 AND parent_id = ?2", ids)?;
            transaction.execute(
                "UPDATE OR REPLACE seeds SET id = ?3, hidden = ?4 WHERE agent = ?1 AND id = ?2",
                params![agent, old.as_str(), new.as_str(), is_acknowledged],
            )?;
            // Names that it was given before are still its own.
            for mut named in operations::mentioning(transaction, old.as_str())? {
                if let Some(change) = named.effects.name_change_mut().filter(|change| change.session.id == *old) {
                    change.session = (*session).clone();
                    operations::update_effects(transaction, &named)?;
                }
            }
            operations::update_effects(transaction, operation)?;
            Ok(true)
        })
    }
}
