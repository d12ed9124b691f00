//! The log of changes made by tine.
//!
//! An operation is recorded before anything is written and completed when everything is in place. If its process no
//! longer runs, it was interrupted, and the next run of tine removes its results. An undo reopens the operation first,
//! so that the next run can finish an interrupted undo.
//!
//! The start and the end of an operation reach the disk before anything else happens: after a power cut, the log knows
//! what was in progress, and completed operations are complete.

mod effects;
mod fingerprint;
mod legacy;
mod log;
mod register;
mod state;

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};
use transcript::{SessionId, SessionName};

pub use effects::{
    Adoption, Cloning, Created, CreatedWorkspace, DeletedBranch, Deletion, Effects, Expected, Forking, KeptSeed, Moved,
    NameChange, Note, Renaming, Restoration, RestoredFile, Stage,
};
pub use fingerprint::Fingerprint;
pub(crate) use fingerprint::{content_of, stamp_of};
pub(super) use legacy::type_operations;
use log::LogRow;
pub use log::{Effect, LogEntry, Operation, UnreadableOperation};
pub(crate) use register::NewFork;
pub use state::{OperationState, Undoing};

use super::process::{Owner, namespace};
use super::{Error, Registry, Result, is_taken};

/// No operation takes longer than this, in milliseconds: for systems that don't list processes.
const LONGEST: i64 = 3_600_000;

impl Registry {
    /// Records what is about to be created.
    pub(crate) fn begin_operation(
        &mut self,
        what: &str,
        effects: &Effects,
        part_of: Option<i64>,
        now: Timestamp,
    ) -> Result<i64> {
        self.check_writable()?;
        let (record, owner) = (self.record_of(effects)?, Owner::current());
        self.write_durably(|transaction| {
            // Two concurrent forks to the same worktree or copy would each treat it as their own.
            if let Some(path) = effects.workspace().map(CreatedWorkspace::path) {
                let is_there = |other: &Operation| other.effects.workspace().is_some_and(|other| other.path() == path);
                if under_way(transaction)?.iter().any(is_there) {
                    return Ok(Err(Error::PathReserved(path.to_owned())));
                }
            }
            if let Some(name) = effects.reserved_name()
                && is_taken(transaction, name.as_str())?
            {
                return Ok(Err(Error::NameTaken(name.clone())));
            }
            transaction.execute(
                "INSERT INTO operations (kind, what, at, state, process, effects, part_of)
                 VALUES (?1, ?2, ?3, 'started', ?4, ?5, ?6)",
                params![effects.kind(), what, now.as_millisecond(), owner.as_str(), record, part_of],
            )?;
            Ok(Ok(transaction.last_insert_rowid()))
        })?
    }

    /// Records what an operation has created so far.
    pub(crate) fn record_effects(&mut self, id: i64, effects: &Effects) -> Result<()> {
        let record = self.record_of(effects)?;
        let query = "UPDATE operations SET effects = ?2 WHERE id = ?1";
        self.write_durably(|transaction| transaction.execute(query, params![id, record])).map(drop)
    }

    /// Records the state of an operation and, if they have changed, its effects.
    pub(crate) fn set_state(&mut self, id: i64, state: &OperationState, effects: Option<&Effects>) -> Result<()> {
        let record = effects.map(|effects| self.record_of(effects)).transpose()?;
        let undo = self.undo_record_of(state)?;
        let query = "UPDATE operations SET state = ?2, undo = ?3, effects = coalesce(?4, effects) WHERE id = ?1";
        let values = params![id, state.as_str(), undo, record];
        self.write_durably(|transaction| transaction.execute(query, values)).map(drop)
    }

    /// Reopens a complete operation, to undo it or to start its fork. Returns false if another process was quicker.
    pub(crate) fn reopen(&mut self, operation: &Operation) -> Result<bool> {
        self.check_writable()?;
        let (record, undo) = (self.record_of(&operation.effects)?, self.undo_record_of(&operation.state)?);
        let (owner, state) = (Owner::current(), operation.state.as_str());
        let query = "UPDATE operations SET state = ?2, undo = ?3, process = ?4, effects = ?5
                     WHERE id = ?1 AND state = 'done'";
        let values = params![operation.id, state, undo, owner.as_str(), record];
        self.write_durably(|transaction| transaction.execute(query, values)).map(|count| count > 0)
    }

    /// Whether an operation is complete and has not been reopened.
    pub(crate) fn is_done(&self, id: i64) -> Result<bool> {
        let query = "SELECT EXISTS (SELECT 1 FROM operations WHERE id = ?1 AND state = 'done')";
        self.ask(|connection| connection.query_row(query, [id], |row| row.get(0)))
    }

    /// Removes the session that an operation created, with its lineage, and records the progress of the undo. Name
    /// changes of the session can no longer be undone.
    pub(crate) fn decide_undo(&mut self, operation: &Operation) -> Result<()> {
        let (record, undo) = (self.record_of(&operation.effects)?, self.undo_record_of(&operation.state)?);
        self.write_durably(|transaction| {
            let query = "UPDATE operations SET undo = ?2, effects = ?3 WHERE id = ?1";
            transaction.execute(query, params![operation.id, undo, record])?;
            let Some(id) = operation.effects.created().and_then(|created| created.session.as_ref()) else {
                return Ok(());
            };
            for named in mentioning(transaction, id.as_str())? {
                let is_its = named.effects.name_change().is_some_and(|change| change.session.id == *id);
                if is_its && named.state.is_done() {
                    transaction.execute("UPDATE operations SET state = 'undone' WHERE id = ?1", [named.id])?;
                }
            }
            transaction.execute("DELETE FROM sessions WHERE id = ?1", [id.as_str()])?;
            // Forks of it have the history of its parent too.
            transaction.execute(
                "UPDATE lineage SET parent_agent = gone.parent_agent, parent_id = gone.parent_id,
                     parent_turn = min(coalesce(lineage.parent_turn, gone.parent_turn), gone.parent_turn)
                 FROM lineage AS gone
                 WHERE gone.id = ?1 AND lineage.parent_id = ?1 AND lineage.parent_agent = gone.agent",
                [id.as_str()],
            )?;
            transaction.execute("DELETE FROM lineage WHERE id = ?1", [id.as_str()])?;
            transaction.execute("DELETE FROM seeds WHERE id = ?1", [id.as_str()])?;
            transaction.execute("DELETE FROM translations WHERE id = ?1", [id.as_str()])?;
            Ok(())
        })
    }

    /// Updates the fingerprint of a fork after tine has written to its transcript.
    pub(crate) fn move_stamp(&mut self, id: &SessionId, before: (u64, i64), transcript: &Path) -> Result<()> {
        let Some(after) = stamp_of(transcript).filter(|after| *after != before) else {
            return Ok(());
        };
        self.write(|transaction| {
            for mut operation in mentioning(transaction, id.as_str())? {
                if let (OperationState::Done, Effects::Fork(fork)) = (&operation.state, &mut operation.effects)
                    && (fork.created.session.as_ref(), fork.fingerprint.stamp) == (Some(id), Some(before))
                {
                    fork.fingerprint.stamp = Some(after);
                    fork.fingerprint.content = content_of(transcript);
                    update_effects(transaction, &operation)?;
                }
            }
            Ok(())
        })
    }

    /// Makes a part a separate operation.
    pub(crate) fn detach(&mut self, part: i64) -> Result<()> {
        let query = "UPDATE operations SET part_of = NULL WHERE id = ?1";
        self.write(|transaction| transaction.execute(query, [part])).map(drop)
    }

    /// Names in use, and names reserved by running operations.
    pub(crate) fn taken_names(&self) -> Result<HashSet<String>> {
        // Reservations first: the name of a fork that completes in between is in one of the two results.
        let under_way = self.ask(under_way)?;
        let reserved = under_way.iter().filter_map(|operation| operation.effects.reserved_name());
        let mut taken: HashSet<String> = reserved.map(SessionName::to_string).collect();
        taken.extend(self.names()?.into_values().map(|name| name.to_string()));
        Ok(taken)
    }

    /// The whole log, newest first, with the parts of operations below them.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        let entries = self.ask(|connection| read(connection, "ORDER BY id DESC", &[]))?;
        Ok(log::with_parts(entries))
    }

    /// Every readable operation and its parts, newest first.
    pub(crate) fn operations(&self) -> Result<Vec<Operation>> {
        let entries = self.ask(|connection| read(connection, "ORDER BY id DESC", &[]))?;
        Ok(entries.into_iter().filter_map(LogEntry::into_operation).collect())
    }

    /// The complete parts of an operation, newest first. Fails if one of them can't be read.
    pub(crate) fn parts_of(&self, id: i64) -> Result<Vec<Operation>> {
        let parts =
            self.ask(|connection| read(connection, "WHERE part_of = ?1 AND state = 'done' ORDER BY id DESC", &[&id]))?;
        parts.into_iter().map(readable).collect()
    }

    /// One operation. Fails if it can't be read.
    pub(crate) fn operation(&self, id: i64) -> Result<Option<Operation>> {
        let found = self.ask(|connection| read(connection, "WHERE id = ?1", &[&id]))?;
        found.into_iter().next().map(readable).transpose()
    }

    /// Operations of processes that no longer run, with these processes. Unreadable ones are skipped, because their
    /// effects are unknown.
    pub(crate) fn cut_off(&self, now: Timestamp) -> Result<Vec<(Operation, Owner)>> {
        let mut owners = self.owners()?;
        if owners.is_empty() {
            return Ok(Vec::new());
        }
        let can_tell = agents::process_start(std::process::id()).is_some();
        if can_tell {
            let here = namespace();
            owners.retain(|(_, owner)| owner.has_ended(&here));
        }
        let began = |operation: &Operation| {
            let starting = match &operation.effects {
                Effects::Fork(fork) => fork.kept.as_ref().and_then(KeptSeed::sending_since),
                _ => None,
            };
            let undoing = operation.state.undoing().map(|undoing| undoing.since);
            undoing.or(starting).unwrap_or(operation.at.as_millisecond())
        };
        let is_over = |operation: &Operation| can_tell || now.as_millisecond() - began(operation) > LONGEST;
        let mut under_way = self.ask(under_way)?;
        under_way.retain(is_over);
        let of = |operation: Operation| {
            let owner = owners.iter().find(|(id, _)| *id == operation.id)?.1.clone();
            Some((operation, owner))
        };
        Ok(under_way.into_iter().filter_map(of).collect())
    }

    /// Takes over an operation of a process that has ended. Returns false if another process was quicker.
    pub(crate) fn claim(&mut self, id: i64, owner: &Owner) -> Result<bool> {
        let query = "UPDATE operations SET process = ?3
                     WHERE id = ?1 AND state IN ('started', 'undoing') AND process = ?2";
        let own = Owner::current();
        let values = params![id, owner.as_str(), own.as_str()];
        self.write(|transaction| transaction.execute(query, values)).map(|count| count > 0)
    }

    /// Leaves an operation to the next run.
    pub(crate) fn release(&mut self, id: i64, owner: &Owner) -> Result<()> {
        let query = "UPDATE operations SET process = ?2 WHERE id = ?1";
        self.write(|transaction| transaction.execute(query, params![id, owner.as_str()])).map(drop)
    }

    /// The running operations, with their processes.
    fn owners(&self) -> Result<Vec<(i64, Owner)>> {
        self.ask(|connection| {
            let query = "SELECT id, process FROM operations WHERE state IN ('started', 'undoing')";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, Owner::recorded(row.get(1)?))))?;
            rows.collect()
        })
    }

    fn record_of(&self, effects: &Effects) -> Result<String> {
        effects.to_record().map_err(|error| self.not_recordable(&error))
    }

    fn undo_record_of(&self, state: &OperationState) -> Result<Option<String>> {
        state.undo_record().map_err(|error| self.not_recordable(&error))
    }
}

/// The running operations, newest first.
pub(super) fn under_way(connection: &Connection) -> rusqlite::Result<Vec<Operation>> {
    let entries = read(connection, "WHERE state IN ('started', 'undoing') ORDER BY id DESC", &[])?;
    Ok(entries.into_iter().filter_map(LogEntry::into_operation).collect())
}

/// The operations whose effects contain a text, newest first.
pub(super) fn mentioning(connection: &Connection, text: &str) -> rusqlite::Result<Vec<Operation>> {
    let entries = read(connection, "WHERE instr(effects, ?1) > 0 ORDER BY id DESC", &[&text])?;
    Ok(entries.into_iter().filter_map(LogEntry::into_operation).collect())
}

/// Writes the changed effects of an operation.
pub(super) fn update_effects(transaction: &Transaction<'_>, operation: &Operation) -> rusqlite::Result<()> {
    let record = operation.effects.to_record();
    let record = record.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let query = "UPDATE operations SET effects = ?2 WHERE id = ?1";
    transaction.execute(query, params![operation.id, record]).map(drop)
}

fn read(connection: &Connection, which: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<LogEntry>> {
    let query = format!("SELECT id, kind, what, at, state, effects, part_of, undo FROM operations {which}");
    let mut statement = connection.prepare_cached(&query)?;
    let rows = statement.query_map(values, |row| {
        let row = LogRow {
            id: row.get(0)?,
            kind: row.get(1)?,
            what: row.get(2)?,
            at: row.get(3)?,
            state: row.get(4)?,
            effects: row.get(5)?,
            part_of: row.get(6)?,
            undo: row.get(7)?,
        };
        Ok(row.parse())
    })?;
    rows.collect()
}

fn readable(entry: LogEntry) -> Result<Operation> {
    match entry {
        LogEntry::Operation(operation) => Ok(*operation),
        LogEntry::Unreadable(unreadable) => Err(unreadable.into()),
    }
}

impl From<UnreadableOperation> for Error {
    fn from(operation: UnreadableOperation) -> Self {
        let UnreadableOperation { id, what, unreadable, .. } = operation;
        Error::UnreadableOperation { id, what, why: unreadable }
    }
}

#[cfg(test)]
mod migration_tests;
