//! The log of changes that tine made, what each one made on disk, and how it is taken back.
//!
//! An operation is begun before anything is written and ended when all is in place. One that was begun by a process that
//! no longer runs was cut off; what it made is removed by whichever tine looks next.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName};

use crate::Tine;
use crate::delete::{self, Moved};
use crate::directory::{self, DirectoryCopy};
use crate::error::{Error, Result};
use crate::fork::SeedNote;
use crate::git::Worktree;
use crate::profile::Profile;
use crate::registry::{Lineage, Registry, SessionKey};

/// How long a process is waited for whose tine is gone.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(60);

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
    /// A copy of a directory.
    #[serde(default)]
    pub copy: Option<DirectoryCopy>,
    /// What was moved into the trash.
    #[serde(default)]
    pub moved: Vec<Moved>,
    /// The name that a deleted session had.
    #[serde(default)]
    pub name: Option<SessionName>,
    /// A session that got another name, and the one that it had.
    #[serde(default)]
    pub named: Option<(NamedKey, Option<SessionName>)>,
    /// Size and time of the transcript when it was complete; tells whether it has grown since.
    pub stamp: Option<(u64, i64)>,
}

/// A session, as it stands in the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedKey {
    agent: Agent,
    id: SessionId,
    path: PathBuf,
}

impl From<SessionKey> for NamedKey {
    fn from(key: SessionKey) -> Self {
        NamedKey { agent: key.agent, id: key.id, path: key.path }
    }
}

impl Effects {
    /// Notes a file or folder that was made.
    pub(crate) fn note(&mut self, path: &Path) {
        if !self.made.iter().any(|known| known == path) {
            self.made.push(path.to_owned());
        }
    }
}

/// A fork that is complete, as it is registered.
pub(crate) struct NewFork<'a> {
    pub key: SessionKey,
    pub name: &'a SessionName,
    pub parent: Lineage,
    /// What is remembered of the transcript that it began with.
    pub seed: Option<&'a SeedNote>,
    pub profile: &'a Profile,
    pub effects: Effects,
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
    /// `done`, `failed`, `undone`, `started`, `cleaned` where it was cut off and its remains were removed, or `purged`
    /// where what it moved into the trash is gone for good.
    pub state: String,
    /// What it made.
    #[serde(skip)]
    pub effects: Effects,
}

impl Registry {
    /// Notes that something is about to be made.
    pub(crate) fn begin_operation(&mut self, kind: &str, what: &str, effects: &Effects, now: Timestamp) -> Result<i64> {
        let worktree = effects.worktree.as_ref().map(|worktree| worktree.path.clone());
        let tree = worktree.or(effects.copy.as_ref().map(|copy| copy.path.clone()));
        let effects = serde_json::to_string(effects).unwrap_or_default();
        let process =
            format!("{} {}", std::process::id(), agents::process_start(std::process::id()).unwrap_or_default());
        let begun = self.write(|transaction| {
            // Two forks that make the same worktree or copy at once would take each other's for their own.
            let reserved: Option<i64> = transaction
                .query_row(
                    "SELECT id FROM operations WHERE state = 'started' AND ?1 IN
                         (json_extract(effects, '$.worktree.path'), json_extract(effects, '$.copy.path'))",
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

    /// Notes what an operation has made so far.
    pub(crate) fn note_effects(&mut self, id: i64, effects: &Effects) -> Result<()> {
        self.end_operation(id, "started", Some(effects))
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
    pub(crate) fn register_fork(&mut self, fork: &NewFork<'_>, operation: i64, now: Timestamp) -> Result<bool> {
        let NewFork { key, name, parent, seed, profile, effects } = fork;
        let profile =
            Some(profile).filter(|profile| !profile.is_empty()).and_then(|profile| serde_json::to_string(profile).ok());
        let effects = serde_json::to_string(effects).unwrap_or_default();
        self.write(|transaction| {
            let holder: Option<i64> = transaction
                .query_row("SELECT key FROM sessions WHERE name = ?1", [name.as_str()], |row| row.get(0))
                .optional()?;
            if holder.is_some() {
                return Ok(false);
            }
            transaction.execute(
                "INSERT INTO sessions (agent, id, path, name, created, profile) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    key.agent.as_str(),
                    key.id.as_str(),
                    key.path.to_string_lossy(),
                    name.as_str(),
                    now.as_millisecond(),
                    profile
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
            transaction.execute("DELETE FROM seeds WHERE id = ?1", [id.as_str()])?;
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
            self.wait_for_orphans(&operation.effects);
            // A deletion that was cut off did not happen.
            delete::put_back(&operation.effects.moved);
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
        if !operation.effects.moved.is_empty() {
            self.restore(&operation)?;
            return Ok(operation);
        }
        if let Some((key, name)) = &operation.effects.named {
            let key = SessionKey { agent: key.agent, id: key.id.clone(), path: key.path.clone() };
            if !self.registry().set_name(&key, name.as_ref(), self.context().clock.now())? {
                return Err(name.clone().map_or(Error::NoNameLeft, Error::NameTaken));
            }
            self.registry().end_operation(operation.id, "undone", None)?;
            return Ok(operation);
        }
        if !force && has_grown(&operation.effects) {
            return Err(Error::HasGrown { id: operation.id });
        }
        if !force && self.was_worked_in(&operation.effects) {
            return Err(Error::WorkedIn { id: operation.id });
        }
        if let Some(copy) = operation.effects.copy.as_ref().filter(|copy| !force && !copy.is_untouched()) {
            return Err(Error::WorkedInCopy { id: operation.id, path: copy.path.clone() });
        }
        self.remove_effects(&operation.effects);
        if let Some(session) = &operation.effects.session {
            self.registry().forget(session, operation.id)?;
        }
        Ok(operation)
    }
}

impl Tine {
    /// What a killed tine had started goes on without it. A git would make its worktree after that was removed, so it is
    /// waited for; an agent that works on the fork is ended.
    fn wait_for_orphans(&self, effects: &Effects) {
        let Some(proc) = &self.context().surroundings.proc else {
            return;
        };
        let begun = Instant::now();
        let waits = || begun.elapsed() < ORPHANS_END_WITHIN;
        if let Some(id) = &effects.session {
            for process in agents::processes_with(proc, None, OsStr::new(id.as_str())) {
                end(process);
            }
            while waits() && !agents::processes_with(proc, None, OsStr::new(id.as_str())).is_empty() {
                thread::sleep(Duration::from_millis(20));
            }
        }
        if let Some(worktree) = &effects.worktree {
            let tree = &worktree.path;
            while waits() && !agents::processes_with(proc, Some(tree), tree.as_os_str()).is_empty() {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Removes what an operation made.
    pub(crate) fn remove_effects(&self, effects: &Effects) {
        remove_all(&effects.made);
        if let (Some(id), Some(transcript)) = (&effects.session, effects.made.first()) {
            for store in self.stores() {
                let _ = store.delist(id, transcript);
            }
        }
        if let (Some(worktree), Ok(git)) = (&effects.worktree, self.git()) {
            git.remove(worktree);
        }
        if let Some(copy) = &effects.copy {
            copy.remove();
        }
    }

    /// Whether something was changed in the worktree that an operation made.
    fn was_worked_in(&self, effects: &Effects) -> bool {
        let worktree = effects.worktree.as_ref();
        worktree.is_some_and(|worktree| !self.git().is_ok_and(|git| git.is_untouched(worktree)))
    }
}

/// Ends a process that was started for an operation; its number was found by the operation's own id.
fn end(process: u32) {
    #[cfg(unix)]
    if let Some(process) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
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
        let _ = directory::remove_tree(path);
    }
}
