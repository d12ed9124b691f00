//! Registering a fork that is complete.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::params;
use transcript::SessionName;
use transcript::translate::Receipt;

use super::Effects;
use crate::registry::events::UnrecordedEvent;
use crate::registry::translations::record_receipt;
use crate::registry::{Lineage, Profile, Registry, Result, SeedNote, SessionKey};

/// A complete fork, to be registered.
pub(crate) struct NewFork<'a> {
    pub key: SessionKey,
    pub name: &'a SessionName,
    pub parent: Lineage,
    /// What is remembered of the transcript that it began with.
    pub seed: Option<&'a SeedNote>,
    /// What became of the parts of the conversation that it was translated from.
    pub receipt: Option<&'a Receipt>,
    /// Whether it begins as its parent does, which may have begun with a transcript.
    pub begins_alike: bool,
    pub profile: &'a Profile,
    /// Where it works.
    pub directory: &'a Path,
    /// How many turns it has.
    pub turns: u32,
    /// Whether its agent has not been handed the transcript yet.
    pub is_unstarted: bool,
    pub effects: Effects,
}

impl Registry {
    /// Names a fork, records its parent and ends its operation, in one transaction. Returns false if the name is taken.
    pub(crate) fn register_fork(&mut self, fork: &NewFork<'_>, operation: i64, now: Timestamp) -> Result<bool> {
        let NewFork {
            key,
            name,
            parent,
            seed,
            receipt,
            begins_alike,
            profile,
            directory,
            turns,
            is_unstarted,
            effects,
        } = fork;
        let unstarted = is_unstarted.then_some(operation);
        let profile = (!profile.is_empty()).then(|| self.encode(profile)).transpose()?;
        let effects = self.record_of(effects)?;
        self.write_durably(|transaction| {
            let path = key.path.to_string_lossy();
            let is_held: bool = transaction.query_row(
                "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1
                                AND NOT (agent = ?2 AND id = ?3 AND path = ?4))",
                params![name.as_str(), key.agent.as_str(), key.id.as_str(), path],
                |row| row.get(0),
            )?;
            if is_held {
                return Ok(false);
            }
            // The process that first noticed the new transcript may have registered it.
            transaction.execute(
                "INSERT INTO sessions (agent, id, path, name, created, profile, cwd, forked, turns, unstarted)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?5, ?8, ?9)
                 ON CONFLICT (agent, id, path) DO UPDATE SET
                    name = excluded.name, created = excluded.created, profile = excluded.profile, cwd = excluded.cwd,
                    forked = excluded.forked, turns = excluded.turns, is_start = 0, id_is_pending = 0",
                params![
                    key.agent.as_str(),
                    key.id.as_str(),
                    path,
                    name.as_str(),
                    now.as_millisecond(),
                    profile,
                    directory.to_string_lossy(),
                    turns,
                    unstarted
                ],
            )?;
            transaction.execute(
                "INSERT OR REPLACE INTO lineage (agent, id, parent_agent, parent_id, parent_turn, source, noted)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'tine', ?6)",
                params![
                    key.agent.as_str(),
                    key.id.as_str(),
                    parent.agent.as_str(),
                    parent.id.as_str(),
                    parent.turn,
                    now.as_millisecond()
                ],
            )?;
            let event = UnrecordedEvent { kind: "forked", agent: key.agent, id: &key.id, name: Some(name), parent: Some(parent) };
            event.record(transaction, now)?;
            if *begins_alike {
                transaction.execute(
                    "INSERT OR REPLACE INTO seeds (agent, id, parent_agent, parent_id, turn, hash, tokens, window, hidden)
                     SELECT ?1, ?2, parent_agent, parent_id, turn, hash, tokens, window, hidden FROM seeds
                     WHERE agent = ?3 AND id = ?4",
                    params![key.agent.as_str(), key.id.as_str(), parent.agent.as_str(), parent.id.as_str()],
                )?;
            }
            if let Some(seed) = seed {
                transaction.execute(
                    "INSERT OR REPLACE INTO seeds (agent, id, parent_agent, parent_id, turn, hash, tokens, window, hidden)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![
                        key.agent.as_str(),
                        key.id.as_str(),
                        seed.parent_agent.as_str(),
                        seed.parent,
                        seed.turn,
                        seed.hash,
                        i64::try_from(seed.tokens).unwrap_or(i64::MAX),
                        seed.window.and_then(|window| i64::try_from(window).ok()),
                        seed.hidden
                    ],
                )?;
            }
            if let Some(receipt) = receipt {
                record_receipt(transaction, key.agent, &key.id, receipt)?;
            }
            transaction.execute(
                "UPDATE operations SET state = 'done', effects = ?2 WHERE id = ?1",
                params![operation, effects],
            )?;
            Ok(true)
        })
    }
}
