//! Which sessions began with the transcript of another one.

use transcript::{Agent, SessionId};

use super::Registry;
use crate::registry::Result;

use serde::Serialize;

/// What is remembered of a seed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeedNote {
    /// The agent whose transcript it was.
    pub parent_agent: Agent,
    /// The session whose transcript it was.
    pub parent: String,
    /// Up to which turn.
    pub turn: u32,
    /// A hash of the text.
    pub hash: String,
    /// About how many tokens it is.
    pub tokens: u64,
    /// The window that it was made for.
    pub window: Option<u64>,
    /// Whether the agent gave the expected answer, so that it can be hidden.
    pub hidden: bool,
}

/// A session that began with the transcript of another one.
#[derive(Debug, Clone)]
pub(crate) struct Seeded {
    pub agent: Agent,
    pub id: SessionId,
    pub parent_agent: Agent,
    pub parent: SessionId,
    /// The last turn that was handed over.
    pub turn: u32,
}

impl Registry {
    /// The sessions that began with the transcript of another one.
    pub(crate) fn seeds(&self) -> Result<Vec<Seeded>> {
        let read = || -> rusqlite::Result<Vec<Seeded>> {
            let mut statement =
                self.connection.prepare("SELECT agent, id, parent_agent, parent_id, turn FROM seeds")?;
            let rows = statement.query_map([], |row| {
                let texts: [String; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
                Ok((texts, row.get(4)?))
            })?;
            let seeded = |([agent, id, parent_agent, parent], turn): ([String; 4], u32)| {
                Some(Seeded {
                    agent: agent.parse().ok()?,
                    id: SessionId::new(id).ok()?,
                    parent_agent: parent_agent.parse().ok()?,
                    parent: SessionId::new(parent).ok()?,
                    turn,
                })
            };
            rows.map(|row| row.map(seeded)).filter_map(rusqlite::Result::transpose).collect()
        };
        read().map_err(|error| self.failed(&error))
    }
}
