//! Names of sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, params};
use transcript::{Agent, SessionId, SessionName};

use super::{Registry, SessionKey};
use crate::registry::Result;

/// The owner of a name.
#[derive(Debug, Clone)]
pub(crate) struct NameRow {
    pub key: SessionKey,
    pub(crate) created: i64,
    /// Whether it was started and has not reported anything since.
    pub(crate) is_unbegun: bool,
}

impl Registry {
    /// The session with a name.
    pub(crate) fn named(&self, name: &SessionName) -> Result<Option<NameRow>> {
        let row: Option<(String, String, String, i64, bool)> = self.ask(|connection| {
            let query = "SELECT agent, id, path, created, is_start FROM sessions WHERE name = ?1";
            connection
                .query_row(query, [name.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                })
                .optional()
        })?;
        Ok(row.and_then(|(agent, id, path, created, is_unbegun)| {
            let key = SessionKey { agent: agent.parse().ok()?, id: SessionId::new(id).ok()?, path: path.into() };
            Some(NameRow { key, created, is_unbegun })
        }))
    }

    /// The name of a session.
    pub(crate) fn name_of(&self, key: &SessionKey) -> Result<Option<SessionName>> {
        let name: Option<Option<String>> = self.ask(|connection| {
            let query = "SELECT name FROM sessions WHERE agent = ?1 AND id = ?2 AND path = ?3";
            let values = params![key.agent.as_str(), key.id.as_str(), key.path.to_string_lossy()];
            connection.prepare_cached(query)?.query_row(values, |row| row.get(0)).optional()
        })?;
        Ok(name.flatten().and_then(|name| SessionName::new(name).ok()))
    }

    pub(crate) fn forget_name(&mut self, name: &SessionName) -> Result<()> {
        self.check_writable()?;
        self.write(|transaction| {
            transaction.execute("DELETE FROM sessions WHERE name = ?1 AND is_start", [name.as_str()])?;
            transaction.execute("UPDATE sessions SET name = NULL WHERE name = ?1", [name.as_str()])
        })
        .map(|_| ())
    }

    /// Removes a parent given by the user; the parent in the files is used again.
    pub(crate) fn forget_parent(&mut self, agent: Agent, id: &SessionId) -> Result<()> {
        self.write(|transaction| {
            let query = "DELETE FROM lineage WHERE agent = ?1 AND id = ?2 AND source = 'tine'";
            transaction.execute(query, [agent.as_str(), id.as_str()])?;
            transaction.execute("DELETE FROM memory WHERE key = 'catalog'", [])
        })
        .map(|_| ())
    }

    /// The session that has an id, or had it before it was cleared, by its name.
    pub(crate) fn holder(&self, agent: Agent, id: &SessionId, path: &Path) -> Result<Option<String>> {
        self.ask(|connection| {
            let query = "SELECT name FROM sessions WHERE agent = ?1 AND id = ?2 AND path = ?3 AND name IS NOT NULL
                         UNION ALL
                         SELECT s.name FROM previous_ids p JOIN sessions s ON s.key = p.key
                         WHERE p.agent = ?1 AND p.id = ?2 AND p.path = ?3 AND s.name IS NOT NULL";
            let path = path.to_string_lossy();
            connection.query_row(query, params![agent.as_str(), id.as_str(), path], |row| row.get(0)).optional()
        })
    }

    /// The ids that a session had before it was cleared, with their transcripts and the time, in milliseconds.
    pub fn previous_ids(&self, key: &SessionKey) -> Result<Vec<(SessionId, PathBuf, i64)>> {
        self.ask(|connection| {
            let query = "SELECT p.id, p.path, p.since FROM previous_ids p JOIN sessions s ON s.key = p.key
                         WHERE s.agent = ?1 AND s.id = ?2 AND s.path = ?3 ORDER BY p.since";
            let mut statement = connection.prepare_cached(query)?;
            let values = params![key.agent.as_str(), key.id.as_str(), key.path.to_string_lossy()];
            let rows = statement.query_map(values, |row| {
                let (id, path): (String, String) = (row.get(0)?, row.get(1)?);
                let since = row.get(2)?;
                Ok(SessionId::new(id).ok().map(|id| (id, PathBuf::from(path), since)))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    /// Every id that a session had before it was cleared, with the one that it has now.
    pub fn holders(&self) -> Result<HashMap<(Agent, SessionId), SessionId>> {
        self.ask(|connection| {
            let query = "SELECT p.agent, p.id, s.id FROM previous_ids p JOIN sessions s ON s.key = p.key";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let (agent, id, now): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let before = agent.parse().ok().zip(SessionId::new(id).ok());
                Ok(before.zip(SessionId::new(now).ok()))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }
}
