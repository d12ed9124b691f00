//! Reading the log, and how it is shown.
//!
//! An unreadable record is a separate entry: it is shown, it can't be undone, and it doesn't affect other entries.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use transcript::{SessionId, SessionName};

use super::effects::{
    Adoption, Cloning, Created, DeletedBranch, Deletion, Effects, Expected, Forking, KeptSeed, Moved, NameChange,
    Renaming, Restoration, RestoredFile,
};
use super::state::{OperationState, Undoing};
use crate::registry::SessionKey;
use crate::workspace::directory::DirectoryCopy;
use crate::workspace::git::Worktree;

/// One change that tine made.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its number.
    pub id: i64,
    /// What it did, in words.
    pub what: String,
    /// When.
    pub at: Timestamp,
    /// How far it is.
    pub state: OperationState,
    /// What it made.
    pub effects: Effects,
    /// The operation that it is a part of.
    pub part_of: Option<i64>,
    /// The operations that it consists of, the newest first.
    pub parts: Vec<LogEntry>,
}

/// An operation whose record can't be read: it is damaged, or written by another version of tine.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableOperation {
    /// Its number.
    pub id: i64,
    /// The kind of change, as recorded.
    pub kind: String,
    /// What it did, in words.
    pub what: String,
    /// When.
    pub at: Option<Timestamp>,
    /// The state, as recorded.
    pub state: String,
    /// Always nothing.
    effects: (),
    /// Why it can't be read.
    pub unreadable: String,
    /// The operation that it is a part of.
    #[serde(skip)]
    pub(crate) part_of: Option<i64>,
}

/// One entry of the log.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum LogEntry {
    /// An operation.
    Operation(Box<Operation>),
    /// An operation whose record can't be read.
    Unreadable(UnreadableOperation),
}

impl LogEntry {
    /// The operation, if it can be read.
    pub fn operation(&self) -> Option<&Operation> {
        match self {
            LogEntry::Operation(operation) => Some(operation.as_ref()),
            LogEntry::Unreadable(_) => None,
        }
    }

    /// The operation, if it can be read.
    pub fn into_operation(self) -> Option<Operation> {
        match self {
            LogEntry::Operation(operation) => Some(*operation),
            LogEntry::Unreadable(_) => None,
        }
    }

    pub(crate) fn id(&self) -> i64 {
        match self {
            LogEntry::Operation(operation) => operation.id,
            LogEntry::Unreadable(unreadable) => unreadable.id,
        }
    }

    pub(crate) fn part_of(&self) -> Option<i64> {
        match self {
            LogEntry::Operation(operation) => operation.part_of,
            LogEntry::Unreadable(unreadable) => unreadable.part_of,
        }
    }
}

/// A row of the log.
pub(super) struct LogRow {
    pub id: i64,
    pub kind: String,
    pub what: String,
    pub at: i64,
    pub state: String,
    pub effects: String,
    pub part_of: Option<i64>,
    pub undo: Option<String>,
}

impl LogRow {
    pub(super) fn parse(self) -> LogEntry {
        let at = Timestamp::from_millisecond(self.at).map_err(|error| error.to_string());
        let state = OperationState::from_record(&self.state, self.undo.as_deref());
        let read = state.and_then(|state| Ok((state, Effects::from_record(&self.kind, &self.effects)?, at.clone()?)));
        let LogRow { id, kind, what, state, part_of, .. } = self;
        match read {
            Ok((state, effects, at)) => {
                let operation = Operation { id, what, at, state, effects, part_of, parts: Vec::new() };
                LogEntry::Operation(Box::new(operation))
            }
            Err(unreadable) => {
                let (effects, at) = ((), at.ok());
                LogEntry::Unreadable(UnreadableOperation { id, kind, what, at, state, effects, unreadable, part_of })
            }
        }
    }
}

/// Puts the parts of operations below what they are parts of.
pub(super) fn with_parts(entries: Vec<LogEntry>) -> Vec<LogEntry> {
    let (parts, mut log): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.part_of().is_some());
    for part in parts {
        let whole = log.iter_mut().find_map(|entry| match entry {
            LogEntry::Operation(whole) if Some(whole.id) == part.part_of() => Some(whole),
            _ => None,
        });
        match whole {
            Some(whole) => whole.parts.push(part),
            // What it is a part of can't be read.
            None => log.push(part),
        }
    }
    log.sort_by_key(|entry| std::cmp::Reverse(entry.id()));
    log
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
    /// Files in a directory that were set to what they were, and how many.
    Restored(usize, &'a Path),
    /// Another name in the place of this one.
    Renamed(Option<&'a SessionName>),
}

impl Operation {
    /// The operation itself and its parts.
    pub(crate) fn with_parts(&self) -> impl Iterator<Item = &Operation> {
        std::iter::once(self).chain(self.parts.iter().filter_map(LogEntry::operation))
    }

    /// What it created or changed, the most important first. Empty for an operation that failed or was interrupted, and
    /// restored files are no longer in the trash.
    pub fn summary(&self) -> Vec<Effect<'_>> {
        match (&self.state, &self.effects) {
            (OperationState::Failed | OperationState::Cleaned, _) => Vec::new(),
            (_, Effects::Forks) => {
                self.parts.iter().rev().filter_map(LogEntry::operation).flat_map(Operation::summary).collect()
            }
            (OperationState::Done, Effects::Delete(deletion)) => {
                let trash = deletion.moved.first().map(|first| Effect::Trash(deletion.moved.len(), &first.from));
                trash.into_iter().collect()
            }
            (_, Effects::Delete(_)) => Vec::new(),
            (_, Effects::Restore(Restoration { directory, files, .. })) => {
                vec![Effect::Restored(files.len(), &directory.0)]
            }
            (_, Effects::Fork(Forking { created, .. }))
            | (_, Effects::Clone(Cloning { created, .. }))
            | (_, Effects::Worktree(created)) => created.summary(),
            (_, Effects::Adopt(Adoption { name, .. })) | (_, Effects::Rename(Renaming { name, .. })) => {
                vec![Effect::Renamed(name.old.as_ref())]
            }
        }
    }
}

impl Created {
    fn summary(&self) -> Vec<Effect<'_>> {
        let transcript = self.transcript().map(PathBuf::as_path);
        let session = self.session.as_ref().map(|id| Effect::Session(id, transcript));
        let worktree = self.worktree().map(|worktree| Effect::Worktree(&worktree.path, &worktree.branch));
        let copy = self.copy().map(|copy| Effect::Copy(&copy.path));
        [session, worktree, copy].into_iter().flatten().collect()
    }
}

/// An operation as `tine log --json` prints it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LoggedOperation<'a> {
    id: i64,
    kind: &'a str,
    what: &'a str,
    at: Timestamp,
    state: &'a str,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    effects: LoggedEffects<'a>,
    #[serde(skip_serializing_if = "<[LogEntry]>::is_empty")]
    parts: &'a [LogEntry],
}

/// Effects as `tine log --json` prints them: the same fields for every kind of operation.
#[derive(Default, Serialize)]
struct LoggedEffects<'a> {
    session: Option<&'a SessionId>,
    made: &'a [PathBuf],
    worktree: Option<&'a Worktree>,
    copy: Option<&'a DirectoryCopy>,
    notes: Vec<(&'a Path, &'a str)>,
    folders: &'a [PathBuf],
    moved: &'a [Moved],
    branch: Option<&'a DeletedBranch>,
    name: Option<&'a SessionName>,
    reserves: Option<&'a SessionName>,
    expects: Option<&'a Expected>,
    mark: Option<&'a str>,
    named: Option<(&'a SessionKey, Option<&'a SessionName>)>,
    new_name: Option<&'a SessionName>,
    old_title: Option<&'a str>,
    titled: Option<&'a agents::TitleMark>,
    noted_parent: bool,
    stamp: Option<(u64, i64)>,
    content: Option<&'a str>,
    beside: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<&'a KeptSeed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<(&'a Path, &'a [RestoredFile])>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part_of: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undoing: Option<&'a Undoing>,
}

impl<'a> LoggedEffects<'a> {
    fn of(effects: &'a Effects) -> Self {
        match effects {
            Effects::Forks => Self::default(),
            Effects::Fork(Forking { created, reserves, mark, expects, fingerprint, kept }) => LoggedEffects {
                reserves: reserves.as_ref(),
                mark: mark.as_deref(),
                expects: expects.as_ref(),
                stamp: fingerprint.stamp,
                content: fingerprint.content.as_deref(),
                beside: fingerprint.beside.as_deref(),
                kept: kept.as_ref(),
                ..Self::of_created(created)
            },
            Effects::Clone(Cloning { created, reserves }) => {
                LoggedEffects { reserves: reserves.as_ref(), ..Self::of_created(created) }
            }
            Effects::Worktree(created) => Self::of_created(created),
            Effects::Delete(Deletion { session, moved, branch, name }) => LoggedEffects {
                session: session.as_ref(),
                moved,
                branch: branch.as_ref(),
                name: name.as_ref(),
                ..Self::default()
            },
            Effects::Restore(Restoration { directory, files, .. }) => {
                LoggedEffects { restored: Some((&directory.0, files)), ..Self::default() }
            }
            Effects::Adopt(Adoption { name, has_parent }) => {
                LoggedEffects { noted_parent: *has_parent, ..Self::of_name_change(name) }
            }
            Effects::Rename(Renaming { name, old_title, title }) => {
                LoggedEffects { old_title: old_title.as_deref(), titled: title.as_ref(), ..Self::of_name_change(name) }
            }
        }
    }

    fn of_created(created: &'a Created) -> Self {
        LoggedEffects {
            session: created.session.as_ref(),
            made: &created.files,
            worktree: created.worktree(),
            copy: created.copy(),
            notes: created.notes.iter().map(|note| (note.path.as_path(), note.digest.as_str())).collect(),
            folders: &created.folders,
            ..Self::default()
        }
    }

    fn of_name_change(change: &'a NameChange) -> Self {
        LoggedEffects {
            named: Some((&change.session, change.old.as_ref())),
            new_name: change.new.as_ref(),
            ..Self::default()
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Operation {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Operation".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        LoggedOperation::json_schema(generator)
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let effects =
            LoggedEffects { part_of: self.part_of, undoing: self.state.undoing(), ..LoggedEffects::of(&self.effects) };
        let Operation { id, what, at, state, parts, .. } = self;
        let (kind, state) = (self.effects.kind(), state.as_str());
        LoggedOperation { id: *id, kind, what, at: *at, state, effects, parts }.serialize(serializer)
    }
}
