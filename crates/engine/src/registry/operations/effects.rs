//! What operations create or change: one variant per kind of operation, with exactly the data of that kind.
//!
//! An undo or a clean-up relies on this record, so everything is recorded before it is created.

use std::path::{Path, PathBuf};

use agents::TitleMark;
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName};

use super::fingerprint::Fingerprint;
use crate::registry::SessionKey;
use crate::workspace::directory::DirectoryCopy;
use crate::workspace::encoded::EncodedPath;
use crate::workspace::git::Worktree;

/// What an operation creates or changes.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "most operations are forks")]
pub enum Effects {
    /// A fork of a session.
    Fork(Forking),
    /// Several forks created together. Each is a separate operation and a part of this one.
    Forks,
    /// A clone of a session without messages.
    Clone(Cloning),
    /// A worktree for a new session.
    Worktree(Created),
    /// A session moved to the trash.
    Delete(Deletion),
    /// A session that got its first name.
    Adopt(Adoption),
    /// A renamed session.
    Rename(Renaming),
    /// Files that were set to what they were at an earlier turn.
    Restore(Restoration),
}

impl Effects {
    /// The name of this kind of operation.
    pub fn kind(&self) -> &'static str {
        match self {
            Effects::Fork(_) => "fork",
            Effects::Forks => "forks",
            Effects::Clone(_) => "clone",
            Effects::Worktree(_) => "worktree",
            Effects::Delete(_) => "delete",
            Effects::Adopt(_) => "adopt",
            Effects::Rename(_) => "rename",
            Effects::Restore(_) => "restore",
        }
    }

    /// What the operation created on disk.
    pub(crate) fn created(&self) -> Option<&Created> {
        match self {
            Effects::Fork(fork) => Some(&fork.created),
            Effects::Clone(clone) => Some(&clone.created),
            Effects::Worktree(created) => Some(created),
            Effects::Forks | Effects::Delete(_) | Effects::Adopt(_) | Effects::Rename(_) | Effects::Restore(_) => None,
        }
    }

    pub(crate) fn created_mut(&mut self) -> Option<&mut Created> {
        match self {
            Effects::Fork(fork) => Some(&mut fork.created),
            Effects::Clone(clone) => Some(&mut clone.created),
            Effects::Worktree(created) => Some(created),
            Effects::Forks | Effects::Delete(_) | Effects::Adopt(_) | Effects::Rename(_) | Effects::Restore(_) => None,
        }
    }

    /// The worktree or copy that it created.
    pub(crate) fn workspace(&self) -> Option<&CreatedWorkspace> {
        self.created().and_then(|created| created.workspace.as_ref())
    }

    /// A name reserved while the operation runs.
    pub(crate) fn reserved_name(&self) -> Option<&SessionName> {
        match self {
            Effects::Fork(fork) => fork.reserves.as_ref(),
            Effects::Clone(clone) => clone.reserves.as_ref(),
            Effects::Forks
            | Effects::Worktree(_)
            | Effects::Delete(_)
            | Effects::Adopt(_)
            | Effects::Rename(_)
            | Effects::Restore(_) => None,
        }
    }

    /// The change of a name.
    pub(crate) fn name_change(&self) -> Option<&NameChange> {
        match self {
            Effects::Adopt(adoption) => Some(&adoption.name),
            Effects::Rename(renaming) => Some(&renaming.name),
            Effects::Fork(_)
            | Effects::Forks
            | Effects::Clone(_)
            | Effects::Worktree(_)
            | Effects::Delete(_)
            | Effects::Restore(_) => None,
        }
    }

    pub(crate) fn name_change_mut(&mut self) -> Option<&mut NameChange> {
        match self {
            Effects::Adopt(adoption) => Some(&mut adoption.name),
            Effects::Rename(renaming) => Some(&mut renaming.name),
            Effects::Fork(_)
            | Effects::Forks
            | Effects::Clone(_)
            | Effects::Worktree(_)
            | Effects::Delete(_)
            | Effects::Restore(_) => None,
        }
    }

    /// Its record. A path that isn't text can't be recorded.
    pub(super) fn to_record(&self) -> serde_json::Result<String> {
        match self {
            Effects::Fork(fork) => serde_json::to_string(fork),
            Effects::Forks => Ok("{}".to_owned()),
            Effects::Clone(clone) => serde_json::to_string(clone),
            Effects::Worktree(created) => serde_json::to_string(created),
            Effects::Delete(deletion) => serde_json::to_string(deletion),
            Effects::Adopt(adoption) => serde_json::to_string(adoption),
            Effects::Rename(renaming) => serde_json::to_string(renaming),
            Effects::Restore(restoration) => serde_json::to_string(restoration),
        }
    }

    /// Parses a record; the error says why it can't be read.
    pub(super) fn from_record(kind: &str, record: &str) -> Result<Self, String> {
        let read = match kind {
            "fork" => serde_json::from_str(record).map(Effects::Fork),
            "forks" => serde_json::from_str(record).map(|_: serde_json::Map<String, serde_json::Value>| Effects::Forks),
            "clone" => serde_json::from_str(record).map(Effects::Clone),
            "worktree" => serde_json::from_str(record).map(Effects::Worktree),
            "delete" => serde_json::from_str(record).map(Effects::Delete),
            "adopt" => serde_json::from_str(record).map(Effects::Adopt),
            "rename" => serde_json::from_str(record).map(Effects::Rename),
            "restore" => serde_json::from_str(record).map(Effects::Restore),
            unknown => return Err(format!("unknown kind `{unknown}`")),
        };
        read.map_err(|error| error.to_string())
    }
}

/// Files that were set to what they were at an earlier turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restoration {
    /// The directory that they are in.
    pub directory: EncodedPath,
    /// The folder in the trash for what they replaced.
    pub trash: PathBuf,
    /// The files, in the order in which they were changed.
    pub files: Vec<RestoredFile>,
    /// The folders that did not exist, relative to the directory, which may be one of them.
    pub folders: Vec<EncodedPath>,
}

/// A file of a restoration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFile {
    /// Relative to the directory.
    pub path: EncodedPath,
    /// What was there, in short; `None` if nothing was.
    pub before: Option<String>,
    /// What is there now.
    pub after: Option<String>,
}

/// What an operation created on disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Created {
    /// The session, once its id is known.
    pub session: Option<SessionId>,
    /// Files and folders that belong only to the session. The first is the transcript of a complete session.
    pub files: Vec<PathBuf>,
    /// Copied notes of a project. Other sessions keep notes there too, so a note is removed only if it is unchanged.
    pub notes: Vec<Note>,
    /// Folders of an agent that didn't exist before, deepest first. They are removed once they are empty.
    pub folders: Vec<PathBuf>,
    /// A worktree or a copy of a directory.
    pub workspace: Option<CreatedWorkspace>,
}

impl Created {
    /// Adds a created file or folder.
    pub(crate) fn add(&mut self, path: &Path) {
        if !self.files.iter().any(|known| known == path) {
            self.files.push(path.to_owned());
        }
    }

    /// The transcript of a complete session.
    pub(crate) fn transcript(&self) -> Option<&PathBuf> {
        self.files.first()
    }

    pub(crate) fn worktree(&self) -> Option<&Worktree> {
        match &self.workspace {
            Some(CreatedWorkspace::Worktree(worktree)) => Some(worktree),
            Some(CreatedWorkspace::Copy(_)) | None => None,
        }
    }

    pub(crate) fn copy(&self) -> Option<&DirectoryCopy> {
        match &self.workspace {
            Some(CreatedWorkspace::Copy(copy)) => Some(copy),
            Some(CreatedWorkspace::Worktree(_)) | None => None,
        }
    }
}

/// A note copied with a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its path.
    pub path: PathBuf,
    /// A fingerprint of its content.
    pub digest: String,
}

/// A directory created for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CreatedWorkspace {
    /// A worktree and its branch.
    Worktree(Worktree),
    /// A copy of a directory.
    Copy(DirectoryCopy),
}

impl CreatedWorkspace {
    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        match self {
            CreatedWorkspace::Worktree(worktree) => &worktree.path,
            CreatedWorkspace::Copy(copy) => &copy.path,
        }
    }
}

/// A fork of a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Forking {
    /// What it created on disk.
    pub created: Created,
    /// The reserved name of the fork, until it is complete.
    pub reserves: Option<SessionName>,
    /// A marker in the environment of agents that work for the fork, until it is complete. It identifies them if tine
    /// is killed.
    pub mark: Option<String>,
    /// The session that the agent creates under its own id, until it is complete.
    pub expects: Option<Expected>,
    /// The fingerprint of the complete transcript.
    pub fingerprint: Fingerprint,
    /// The transcript kept for a fork that has not started.
    pub kept: Option<KeptSeed>,
}

/// A session that an agent is about to create under an id that it chooses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Expected {
    /// The agent.
    pub agent: Agent,
    /// A text in its first prompt, or `None` for a fork of `parent`.
    pub mark: Option<String>,
    /// The session that it is forked from.
    pub parent: SessionId,
    /// The start, in milliseconds.
    pub since: i64,
}

/// The transcript kept for a fork that has not started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptSeed {
    /// Its path.
    pub file: PathBuf,
    /// The marker of its lines.
    pub nonce: String,
    /// The progress of starting the fork.
    pub stage: Stage,
}

impl KeptSeed {
    /// Whether starting the fork has begun.
    pub(crate) fn is_starting(&self) -> bool {
        !matches!(self.stage, Stage::Waiting)
    }

    /// When tine began to send the transcript to the agent, in milliseconds.
    pub(crate) fn sending_since(&self) -> Option<i64> {
        match self.stage {
            Stage::Sending { since, .. } => Some(since),
            Stage::Waiting | Stage::Sent => None,
        }
    }
}

/// The progress of starting a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Not started.
    Waiting,
    /// The transcript is being sent to the agent.
    Sending {
        /// The start, in milliseconds.
        since: i64,
        /// The path of the agent's session file, if tine chooses it.
        target: Option<PathBuf>,
    },
    /// The session is registered; the kept transcript still has to be removed.
    Sent,
}

/// A clone of a session without messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cloning {
    /// What it created on disk.
    pub created: Created,
    /// The reserved name of the clone, until it is complete.
    pub reserves: Option<SessionName>,
}

/// A session moved to the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deletion {
    /// The session.
    pub session: Option<SessionId>,
    /// What was moved to the trash, the transcript first.
    pub moved: Vec<Moved>,
    /// The branch that was deleted with a worktree.
    #[serde(default)]
    pub branch: Option<DeletedBranch>,
    /// The name that the session had.
    #[serde(default)]
    pub name: Option<SessionName>,
}

/// A moved file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Its old path.
    pub from: PathBuf,
    /// Its new path.
    pub to: PathBuf,
}

/// A branch that was deleted with its worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeletedBranch {
    /// The repository, as the top directory of one of its working trees.
    pub repository: PathBuf,
    /// Its name.
    pub name: String,
    /// Its commit.
    pub commit: String,
}

/// The change of a session's name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NameChange {
    /// The session.
    pub session: SessionKey,
    /// The old name.
    pub old: Option<SessionName>,
    /// The new name. Early versions didn't record it.
    pub new: Option<SessionName>,
}

/// A session that got its first name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Adoption {
    /// The change of its name.
    pub name: NameChange,
    /// Whether its parent was recorded too.
    pub has_parent: bool,
}

/// A renamed session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Renaming {
    /// The change of its name.
    pub name: NameChange,
    /// The previous title in the agent's own list.
    pub old_title: Option<String>,
    /// Where the new title was added for the agent's own list.
    pub title: Option<TitleMark>,
}
