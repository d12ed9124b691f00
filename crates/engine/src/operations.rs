//! The log of changes that tine made, what each one made on disk, and how it is taken back.
//!
//! An operation is begun before anything is written and ended when all is in place. One that was begun by a process that
//! no longer runs was cut off; what it made is removed by whichever tine looks next.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{SessionId, SessionName};

use crate::Tine;
use crate::error::{Error, Result};
use crate::git::Worktree;
use crate::registry::{Lineage, Registry, SessionKey};

/// What an operation makes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Effects {
    /// The session that it is about.
    pub session: Option<SessionId>,
    /// Files and folders.
    pub made: Vec<PathBuf>,
    /// A worktree and its branch.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    /// Size and time of the transcript when it was complete; tells whether it has grown since.
    pub stamp: Option<(u64, i64)>,
}

/// One change that tine made.
#[derive(Debug, Clone, Serialize)]
pub struct Operation {
    /// Its number.
    pub id: i64,
    /// What sort of change.
    pub kind: String,
    /// What it did, in words.
    pub what: String,
    /// When.
    pub at: Timestamp,
    /// `done`, `failed`, `undone`, `started`, or `cleaned` where it was cut off and its remains were removed.
    pub state: String,
    /// What it made.
    #[serde(skip)]
    pub effects: Effects,
}

impl Registry {
    /// Notes that something is about to be made.
    pub(crate) fn begin_operation(&mut self, kind: &str, what: &str, effects: &Effects, now: Timestamp) -> Result<i64> {
        let tree = effects.worktree.as_ref().map(|worktree| worktree.path.clone());
        let effects = serde_json::to_string(effects).unwrap_or_default();
        let process =
            format!("{} {}", std::process::id(), agents::process_start(std::process::id()).unwrap_or_default());
        let begun = self.write(|transaction| {
            // Two forks that make the same worktree at once would take each other's for their own.
            let reserved: Option<i64> = transaction
                .query_row(
                    "SELECT id FROM operations WHERE state = 'started' AND json_extract(effects, '$.worktree.path') = ?1",
                    [tree.as_deref().map(Path::to_string_lossy)],
                    |row| row.get(0),
                )
                .optional()?;
            if reserved.is_some() {
                return Ok(None);
            }
            transaction.execute(
                "INSERT INTO operations (kind, what, at, state, process, effects) VALUES (?1, ?2, ?3, 'started', ?4, ?5)",
                params![kind, what, now.as_millisecond(), process, effects],
            )?;
            Ok(Some(transaction.last_insert_rowid()))
        })?;
        begun.ok_or_else(|| Error::InTheWay(tree.unwrap_or_default()))
    }

    /// Notes how an operation ended.
    pub(crate) fn end_operation(&mut self, id: i64, state: &str, effects: Option<&Effects>) -> Result<()> {
        let effects = effects.and_then(|effects| serde_json::to_string(effects).ok());
        self.write(|transaction| {
            transaction.execute(
                "UPDATE operations SET state = ?2, effects = coalesce(?3, effects) WHERE id = ?1",
                params![id, state, effects],
            )
        })
        .map(|_| ())
    }

    /// Names a fork, notes its parent and ends its operation, all at once. False where the name is taken.
    pub(crate) fn register_fork(
        &mut self,
        key: &SessionKey,
        name: &SessionName,
        parent: &Lineage,
        operation: i64,
        effects: &Effects,
        now: Timestamp,
    ) -> Result<bool> {
        let effects = serde_json::to_string(effects).unwrap_or_default();
        self.write(|transaction| {
            let holder: Option<i64> = transaction
                .query_row("SELECT key FROM sessions WHERE name = ?1", [name.as_str()], |row| row.get(0))
                .optional()?;
            if holder.is_some() {
                return Ok(false);
            }
            transaction.execute(
                "INSERT INTO sessions (agent, id, path, name, created) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    key.agent.as_str(),
                    key.id.as_str(),
                    key.path.to_string_lossy(),
                    name.as_str(),
                    now.as_millisecond()
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
            transaction.execute(
                "UPDATE operations SET state = 'done', effects = ?2 WHERE id = ?1",
                params![operation, effects],
            )?;
            Ok(true)
        })
    }

    /// Forgets a session and where it came from.
    fn forget(&mut self, id: &SessionId, operation: i64) -> Result<()> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM sessions WHERE id = ?1", [id.as_str()])?;
            transaction.execute("DELETE FROM lineage WHERE id = ?1", [id.as_str()])?;
            transaction.execute("UPDATE operations SET state = 'undone' WHERE id = ?1", [operation])
        })
        .map(|_| ())
    }

    /// Every operation, the newest first.
    pub fn operations(&self) -> Result<Vec<Operation>> {
        self.read_operations("SELECT id, kind, what, at, state, effects FROM operations ORDER BY id DESC")
    }

    /// Operations that were begun by processes that no longer run.
    fn cut_off(&self, now: Timestamp) -> Result<Vec<Operation>> {
        let processes = self.started_processes()?;
        if processes.is_empty() {
            return Ok(Vec::new());
        }
        if agents::process_start(std::process::id()).is_none() {
            // This system does not tell who runs. No fork takes an hour.
            let old = |operation: &Operation| now.as_second() - operation.at.as_second() > 3600;
            let started = self.operations()?.into_iter().filter(|operation| operation.state == "started");
            return Ok(started.filter(old).collect());
        }
        let dead: Vec<i64> = processes
            .into_iter()
            .filter(|(_, process)| {
                let (pid, start) = process.split_once(' ').unwrap_or((process, ""));
                let pid = pid.parse().unwrap_or(0);
                agents::process_start(pid).is_none_or(|now| now != start)
            })
            .map(|(id, _)| id)
            .collect();
        if dead.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.operations()?.into_iter().filter(|operation| dead.contains(&operation.id)).collect())
    }
}

impl Tine {
    /// Removes what operations left behind that were cut off.
    pub(crate) fn clean_up(&self) -> Result<()> {
        let cut_off = self.registry().cut_off(self.context().clock.now())?;
        for operation in cut_off {
            self.remove_effects(&operation.effects);
            self.registry().end_operation(operation.id, "cleaned", None)?;
            self.warn(format!("`{}` was cut off; what it had made is removed", operation.what));
        }
        Ok(())
    }

    /// Takes back an operation: the one that is named, or the last that can be.
    pub fn undo(&self, id: Option<i64>, force: bool) -> Result<Operation> {
        let operations = self.registry().operations()?;
        let found = match id {
            Some(id) => operations.into_iter().find(|operation| operation.id == id),
            None => operations.into_iter().find(|operation| operation.state == "done"),
        };
        let operation = found.ok_or(Error::NothingToUndo(id))?;
        if operation.state != "done" {
            return Err(Error::NotUndoable { id: operation.id, state: operation.state });
        }
        if !force && has_grown(&operation.effects) {
            return Err(Error::HasGrown { id: operation.id });
        }
        if !force && self.was_worked_in(&operation.effects) {
            return Err(Error::WorkedIn { id: operation.id });
        }
        self.remove_effects(&operation.effects);
        if let Some(session) = &operation.effects.session {
            self.registry().forget(session, operation.id)?;
        }
        Ok(operation)
    }
}

impl Tine {
    /// Removes what an operation made.
    pub(crate) fn remove_effects(&self, effects: &Effects) {
        remove_all(&effects.made);
        if let (Some(worktree), Ok(git)) = (&effects.worktree, self.git()) {
            git.remove(worktree);
        }
    }

    /// Whether something was changed in the worktree that an operation made.
    fn was_worked_in(&self, effects: &Effects) -> bool {
        let worktree = effects.worktree.as_ref();
        worktree.is_some_and(|worktree| !self.git().is_ok_and(|git| git.is_untouched(worktree)))
    }
}

/// Whether somebody went on in the session since it was made.
fn has_grown(effects: &Effects) -> bool {
    let Some((size, modified)) = effects.stamp else {
        return false;
    };
    let transcript = effects.made.first().and_then(|path| fs::metadata(path).ok());
    transcript.is_some_and(|metadata| (metadata.len(), agents::stamp(&metadata).modified) != (size, modified))
}

/// Removes files and folders that an operation made. What is not there is as it should be.
fn remove_all(paths: &[PathBuf]) {
    for path in paths {
        remove(path);
    }
}

fn remove(path: &Path) {
    let _ = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
}
