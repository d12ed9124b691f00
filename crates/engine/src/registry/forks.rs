//! What the registry knows of forks: those that tine is making, and when, where and from how many turns it made the others.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};
use transcript::{Agent, SessionId};

use super::{Registry, SessionKey, session_key};
use crate::registry::Result;
use crate::registry::operations::{self, Effects, Forking, Operation};

/// A fork as it was when it was made.
#[derive(Debug, Clone)]
pub(crate) struct CompletedFork {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The directory that it was made to work in.
    pub cwd: Option<PathBuf>,
    /// How many turns it had. Later turns show its current directory.
    pub turns: Option<u32>,
    /// Its place in the order of registration.
    pub number: i64,
}

/// Forks that are being made by processes of tine.
#[derive(Debug, Default)]
pub(crate) struct OngoingForks(Vec<Forking>);

impl OngoingForks {
    /// Whether a session is one of them, or the agent's own fork that one of them waits for. The process that creates
    /// it also names it.
    pub(crate) fn includes(&self, agent: Agent, id: &SessionId, parent: &SessionId) -> bool {
        self.0.iter().any(|fork| {
            let is_awaited = fork.expects.as_ref().is_some_and(|expected| {
                expected.agent == agent && expected.mark.is_none() && expected.parent == *parent
            });
            is_awaited || fork.created.session.as_ref() == Some(id)
        })
    }
}

/// Whether a session has a name, or an operation in progress will give it to one.
pub(crate) fn is_taken(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1)";
    let has_session: bool = connection.prepare_cached(query)?.query_row([name], |row| row.get(0))?;
    let reserves = |operation: &Operation| operation.effects.reserved_name().is_some_and(|own| own.as_str() == name);
    Ok(has_session || operations::under_way(connection)?.iter().any(reserves))
}

impl Registry {
    /// The forks that are being created now.
    pub(crate) fn ongoing_forks(&self) -> Result<OngoingForks> {
        let fork = |operation: Operation| match operation.effects {
            Effects::Fork(fork) => Some(fork),
            _ => None,
        };
        Ok(OngoingForks(self.ask(operations::under_way)?.into_iter().filter_map(fork).collect()))
    }

    /// Whether an operation started the agents that have this mark in their environment. A complete fork gives up its
    /// mark, so that an agent which outlives the operation is like any other.
    pub(crate) fn is_mark_of_operation(&self, mark: &str) -> Result<bool> {
        let has_mark = |operation: &Operation| match &operation.effects {
            Effects::Fork(fork) => fork.mark.as_deref() == Some(mark),
            _ => false,
        };
        Ok(self.ask(|connection| operations::mentioning(connection, mark))?.iter().any(has_mark))
    }

    /// Forgets sessions whose transcripts an operation made and removed again.
    pub(crate) fn forget_made(&mut self, made: &[PathBuf]) -> Result<()> {
        if made.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            for path in made {
                let path = path.to_string_lossy();
                transaction.execute(
                    "DELETE FROM lineage WHERE (agent, id) IN (SELECT agent, id FROM sessions WHERE path = ?1)",
                    [&path],
                )?;
                transaction.execute("DELETE FROM sessions WHERE path = ?1", [&path])?;
            }
            Ok(())
        })
    }

    /// Every fork whose making is known.
    pub(crate) fn completed_forks(&self) -> Result<HashMap<SessionKey, CompletedFork>> {
        self.ask(|connection| {
            let query = "SELECT forked, cwd, turns, key, agent, id, path FROM sessions WHERE forked IS NOT NULL";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![], |row| {
                let key = session_key(&row.get::<_, String>(4)?, row.get(5)?, row.get(6)?);
                Ok(key.zip(Some(read_made(row)?)))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    /// How a fork was made, if that is known.
    pub(crate) fn made_fork(&self, key: &SessionKey) -> Result<Option<CompletedFork>> {
        self.ask(|connection| {
            let query = "SELECT forked, cwd, turns, key FROM sessions
                         WHERE forked IS NOT NULL AND agent = ?1 AND id = ?2 AND path = ?3";
            let values = params![key.agent.as_str(), key.id.as_str(), key.path.to_string_lossy()];
            connection.prepare_cached(query)?.query_row(values, read_made).optional()
        })
    }
}

fn read_made(row: &Row<'_>) -> rusqlite::Result<CompletedFork> {
    let cwd: Option<String> = row.get(1)?;
    Ok(CompletedFork { at: row.get(0)?, cwd: cwd.map(PathBuf::from), turns: row.get(2)?, number: row.get(3)? })
}
