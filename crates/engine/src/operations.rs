//! The log of changes that tine made, what each one made on disk, and how it is taken back.
//!
//! An operation is begun before anything is written and ended when all is in place. One that was begun by a process that
//! no longer runs was cut off; what it made is removed by whichever tine looks next. Likewise, an operation that is taken
//! back is begun again, with a note of that, and whichever tine looks next goes on with it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName};

use crate::delete::Moved;
use crate::directory::DirectoryCopy;
use crate::error::{Error, Result};
use crate::fork::SeedNote;
use crate::git::Worktree;
use crate::profile::Profile;
use crate::registry::{Lineage, Registry, SessionKey};

/// Transcripts of up to so many bytes are compared by what they hold; reading that takes a millisecond or two.
const READ_AGAIN: u64 = 4 << 20;

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
    /// Notes of a project that came along, each with a fingerprint of what it held. Others keep notes there as well, so
    /// only what is as it was is taken away again.
    #[serde(default)]
    pub notes: Vec<(PathBuf, String)>,
    /// Folders of an agent that were not there before, the deepest first. They go when nothing is left in them.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// What was moved into the trash.
    #[serde(default)]
    pub moved: Vec<Moved>,
    /// The name that a deleted session had.
    #[serde(default)]
    pub name: Option<SessionName>,
    /// The name that the session will have; nobody else gets it meanwhile.
    #[serde(default)]
    pub reserves: Option<SessionName>,
    /// A session that the agent makes under an id of its own, and how it will be known.
    #[serde(default)]
    pub expects: Option<Expected>,
    /// What the agents that work for it have in their environment, so that they are found when nobody waits for them
    /// any more.
    #[serde(default)]
    pub mark: Option<String>,
    /// A session that got another name, and the one that it had.
    #[serde(default)]
    pub named: Option<(NamedKey, Option<SessionName>)>,
    /// The name that it has got by that.
    #[serde(default)]
    pub new_name: Option<SessionName>,
    /// The title that the agent's own list showed before.
    #[serde(default)]
    pub old_title: Option<String>,
    /// Whether its parent was noted, too.
    #[serde(default)]
    pub noted_parent: bool,
    /// Size and time of the transcript when it was complete; tells whether it has grown since.
    pub stamp: Option<(u64, i64)>,
    /// A fingerprint of what the transcript held then, where it was not too long to be read for that.
    #[serde(default)]
    pub content: Option<String>,
    /// A fingerprint of the files that lay beside it then.
    #[serde(default)]
    pub beside: Option<String>,
    /// How far it is with taking all of that back, where somebody is at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoing: Option<Undoing>,
}

/// What an operation is called while it is being undone. For the registry it is one that was begun and not ended, so
/// that what holds for those holds for it.
pub(crate) const UNDOING: &str = "undoing";

/// An undo that was begun.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Undoing {
    /// Since when, in milliseconds.
    pub since: i64,
    /// Whether what somebody went on with is removed as well.
    pub force: bool,
    /// What gets another name before it is removed.
    pub aside: Vec<Moved>,
    /// Whether all of that has its other name and is forgotten, so that only removing it is left.
    pub is_decided: bool,
}

impl Undoing {
    /// Whether there is something to go on with.
    pub(crate) fn is_under_way(&self) -> bool {
        let is_aside = |moved: &Moved| moved.to != moved.from && moved.to.symlink_metadata().is_ok();
        self.is_decided || self.aside.iter().any(is_aside)
    }
}

/// How an operation is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reversal {
    /// What it moved into the trash is brought back.
    Restore,
    /// A session gets its old name.
    Rename,
    /// What it made is removed.
    Remove,
}

/// A session that an agent is about to make under an id that it makes up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Expected {
    /// The agent.
    pub agent: Agent,
    /// What its first prompt holds, or nothing for a fork of `parent`.
    pub mark: Option<String>,
    /// The session that it is a fork of.
    pub parent: SessionId,
    /// Since when, in milliseconds.
    pub since: i64,
}

/// A session, as it stands in the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedKey {
    agent: Agent,
    id: SessionId,
    path: PathBuf,
}

impl From<NamedKey> for SessionKey {
    fn from(key: NamedKey) -> Self {
        SessionKey { agent: key.agent, id: key.id, path: key.path }
    }
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

    /// How they are taken back.
    pub(crate) fn reversal(&self) -> Reversal {
        match (self.moved.is_empty(), &self.named) {
            (false, _) => Reversal::Restore,
            (true, Some(_)) => Reversal::Rename,
            (true, None) => Reversal::Remove,
        }
    }

    /// Where it made a worktree or a copy of a directory.
    pub(crate) fn workspace(&self) -> Option<&Path> {
        let tree = self.worktree.as_ref().map(|worktree| worktree.path.as_path());
        tree.or(self.copy.as_ref().map(|copy| copy.path.as_path()))
    }
}

/// What an operation made or changed, one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a> {
    /// A session, and where its transcript is.
    Session(&'a SessionId, Option<&'a Path>),
    /// A worktree, and its branch.
    Worktree(&'a Path, &'a str),
    /// A copy of a directory.
    Copy(&'a Path),
    /// Files or folders in the trash, and where the first of them was.
    Trash(usize, &'a Path),
    /// Another name in the place of this one.
    Renamed(Option<&'a SessionName>),
}

impl Operation {
    /// What it made or changed, in the order of importance to a person.
    pub fn told(&self) -> Vec<Effect<'_>> {
        let effects = &self.effects;
        // Nothing is left of what failed or was cut off, nor is anything in the trash that was brought back.
        if matches!(self.state.as_str(), "failed" | "cleaned") || self.state != "done" && !effects.moved.is_empty() {
            return Vec::new();
        }
        let trash = effects.moved.first().map(|first| Effect::Trash(effects.moved.len(), &first.from));
        let made = effects.made.first().map(PathBuf::as_path);
        let session = effects.session.as_ref().filter(|_| trash.is_none()).map(|id| Effect::Session(id, made));
        let worktree = effects.worktree.as_ref().map(|worktree| Effect::Worktree(&worktree.path, &worktree.branch));
        let copy = effects.copy.as_ref().map(|copy| Effect::Copy(&copy.path));
        let renamed = effects.named.as_ref().map(|(_, name)| Effect::Renamed(name.as_ref()));
        [session, worktree, copy, trash, renamed].into_iter().flatten().collect()
    }
}

/// A fork that is complete, as it is registered.
pub(crate) struct NewFork<'a> {
    pub key: SessionKey,
    pub name: &'a SessionName,
    pub parent: Lineage,
    /// What is remembered of the transcript that it began with.
    pub seed: Option<&'a SeedNote>,
    /// Whether it begins as its parent does, which may have begun with a transcript.
    pub begins_alike: bool,
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
    /// `done`, `failed`, `undoing`, `undone`, `started`, `cleaned` where it was cut off and its remains were removed, or `purged`
    /// where what it moved into the trash is gone for good.
    pub state: String,
    /// What it made.
    pub effects: Effects,
}

impl Registry {
    /// Notes that something is about to be made.
    pub(crate) fn begin_operation(&mut self, kind: &str, what: &str, effects: &Effects, now: Timestamp) -> Result<i64> {
        let tree = effects.workspace().map(Path::to_owned);
        let reserves = effects.reserves.clone();
        let effects = serde_json::to_string(effects).unwrap_or_default();
        let process = own_process();
        self.write(|transaction| {
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
                return Ok(Err(Error::InTheWay(tree.clone().unwrap_or_default())));
            }
            if let Some(name) = &reserves {
                let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1)
                                 OR EXISTS (SELECT 1 FROM operations WHERE state = 'started'
                                            AND json_extract(effects, '$.reserves') = ?1)";
                if transaction.query_row(query, [name.as_str()], |row| row.get(0))? {
                    return Ok(Err(Error::NameTaken(name.clone())));
                }
            }
            transaction.execute(
                "INSERT INTO operations (kind, what, at, state, process, effects) VALUES (?1, ?2, ?3, 'started', ?4, ?5)",
                params![kind, what, now.as_millisecond(), process, effects],
            )?;
            Ok(Ok(transaction.last_insert_rowid()))
        })?
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
        let NewFork { key, name, parent, seed, begins_alike, profile, effects } = fork;
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
            crate::events::note(transaction, "forked", key.agent, &key.id, Some(name), now)?;
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
            transaction.execute(
                "UPDATE operations SET state = 'done', effects = ?2 WHERE id = ?1",
                params![operation, effects],
            )?;
            Ok(true)
        })
    }

    /// Moves on what tells whether a fork has grown, where only tine itself has written to its transcript.
    pub(crate) fn move_stamp(&mut self, id: &SessionId, before: (u64, i64), transcript: &Path) -> Result<()> {
        let Some(after) = stamp_of(transcript).filter(|after| *after != before) else {
            return Ok(());
        };
        let text = |stamp: (u64, i64)| format!("[{},{}]", stamp.0, stamp.1);
        let query = "UPDATE operations SET effects = json_set(effects, '$.stamp', json(?3), '$.content', ?4)
                         WHERE state = 'done'
                         AND json_extract(effects, '$.session') = ?1 AND json_extract(effects, '$.stamp') = ?2";
        let values = params![id.as_str(), text(before), text(after), content_of(transcript)];
        self.write(|transaction| transaction.execute(query, values)).map(drop)
    }

    /// Notes that an operation is about to be undone. False where somebody else was quicker.
    pub(crate) fn begin_undo(&mut self, operation: &Operation) -> Result<bool> {
        let effects = serde_json::to_string(&operation.effects).unwrap_or_default();
        let query =
            "UPDATE operations SET state = 'started', process = ?2, effects = ?3 WHERE id = ?1 AND state = 'done'";
        let begun = self.write(|transaction| transaction.execute(query, params![operation.id, own_process(), effects]));
        begun.map(|count| count > 0)
    }

    /// Notes that an operation was not undone after all.
    pub(crate) fn give_up_undo(&mut self, id: i64) -> Result<()> {
        let query = "UPDATE operations SET state = 'done', effects = json_remove(effects, '$.undoing') WHERE id = ?1";
        self.write(|transaction| transaction.execute(query, [id])).map(drop)
    }

    /// Forgets the session that an operation made, and where it came from, and notes how far its undo is. Names that it was
    /// given are not to be taken back any more.
    pub(crate) fn decide_undo(&mut self, operation: &Operation) -> Result<()> {
        let effects = serde_json::to_string(&operation.effects).unwrap_or_default();
        self.write(|transaction| {
            transaction.execute("UPDATE operations SET effects = ?2 WHERE id = ?1", params![operation.id, effects])?;
            let Some(id) = &operation.effects.session else {
                return Ok(());
            };
            transaction.execute(
                "UPDATE operations SET state = 'undone'
                     WHERE state = 'done' AND json_extract(effects, '$.named[0].id') = ?1",
                [id.as_str()],
            )?;
            transaction.execute("DELETE FROM sessions WHERE id = ?1", [id.as_str()])?;
            // What was forked from it has the history of its parent, too.
            transaction.execute(
                "UPDATE lineage SET parent_agent = gone.parent_agent, parent_id = gone.parent_id,
                     parent_turn = min(coalesce(lineage.parent_turn, gone.parent_turn), gone.parent_turn)
                 FROM lineage AS gone
                 WHERE gone.id = ?1 AND lineage.parent_id = ?1 AND lineage.parent_agent = gone.agent",
                [id.as_str()],
            )?;
            transaction.execute("DELETE FROM lineage WHERE id = ?1", [id.as_str()])?;
            transaction.execute("DELETE FROM seeds WHERE id = ?1", [id.as_str()])?;
            Ok(())
        })
    }

    /// Names that are taken, and those that somebody is about to take.
    pub(crate) fn taken_names(&self) -> Result<HashSet<String>> {
        let mut taken: HashSet<String> = self.names()?.into_values().map(|name| name.to_string()).collect();
        if !self.started_processes()?.is_empty() {
            let started = self.operations()?.into_iter().filter(|operation| operation.state == "started");
            taken.extend(started.filter_map(|operation| operation.effects.reserves).map(|name| name.to_string()));
        }
        Ok(taken)
    }

    /// Every operation, the newest first.
    pub fn operations(&self) -> Result<Vec<Operation>> {
        self.read_operations("SELECT id, kind, what, at, state, effects FROM operations ORDER BY id DESC")
    }

    /// Operations that were begun by processes that no longer run, and what was noted of those.
    pub(crate) fn cut_off(&self, now: Timestamp) -> Result<Vec<(Operation, String)>> {
        let mut processes = self.started_processes()?;
        if processes.is_empty() {
            return Ok(Vec::new());
        }
        let can_tell = agents::process_start(std::process::id()).is_some();
        if can_tell {
            let here = namespace();
            processes.retain(|(_, process)| {
                let mut words = process.splitn(3, ' ');
                let pid = words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
                let start = words.next().unwrap_or_default();
                // A process of another container cannot be seen from here, whatever its number.
                let is_ours = words.next().is_none_or(|namespace| namespace == here);
                is_ours && agents::process_start(pid).is_none_or(|now| now != start)
            });
        }
        if processes.is_empty() {
            return Ok(Vec::new());
        }
        // Where a system does not tell who runs: no fork takes an hour.
        let began = |operation: &Operation| {
            let undoing = operation.effects.undoing.as_ref();
            undoing.map_or(operation.at.as_millisecond(), |undoing| undoing.since)
        };
        let is_old = |operation: &Operation| now.as_millisecond() - began(operation) > 3_600_000;
        let of = |operation: Operation| {
            let (_, process) = processes.iter().find(|(id, _)| *id == operation.id)?;
            (can_tell || is_old(&operation)).then(|| (operation, process.clone()))
        };
        Ok(self.operations()?.into_iter().filter_map(of).collect())
    }

    /// Makes an operation of a process that is gone this one's own. False where another was quicker.
    pub(crate) fn take_over(&mut self, id: i64, process: &str) -> Result<bool> {
        let query = "UPDATE operations SET process = ?3 WHERE id = ?1 AND state = 'started' AND process = ?2";
        self.write(|transaction| transaction.execute(query, params![id, process, own_process()])).map(|count| count > 0)
    }

    /// Leaves an operation that was taken over to the next who looks.
    pub(crate) fn give_back(&mut self, id: i64, process: &str) -> Result<()> {
        let query = "UPDATE operations SET process = ?2 WHERE id = ?1";
        self.write(|transaction| transaction.execute(query, params![id, process])).map(drop)
    }
}

/// Size and time of a transcript, which tell whether somebody has gone on in it.
pub(crate) fn stamp_of(path: &Path) -> Option<(u64, i64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.len(), agents::stamp(&metadata).modified))
}

/// A fingerprint of what a transcript holds. A long one is not read for that: no fork should take longer by it.
pub(crate) fn content_of(path: &Path) -> Option<String> {
    let is_short = fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= READ_AGAIN);
    let content = is_short.then(|| fs::read(path).ok()).flatten()?;
    Some(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&content)))
}

/// This process, as it can be recognised later: its number, when it began, and the namespace that numbers it.
fn own_process() -> String {
    let pid = std::process::id();
    format!("{pid} {} {}", agents::process_start(pid).unwrap_or_default(), namespace())
}

fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}
