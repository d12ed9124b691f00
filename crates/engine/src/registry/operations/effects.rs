//! What operations make or change: one variant for each kind of operation, which holds exactly what that kind makes.
//!
//! An operation that is undone, or that was cut off, is put right by what stands here, so everything is recorded before it
//! is made.

use std::path::{Path, PathBuf};

use agents::TitleMark;
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName};

use super::fingerprint::Fingerprint;
use crate::registry::SessionKey;
use crate::workspace::directory::DirectoryCopy;
use crate::workspace::git::Worktree;

/// What an operation makes or changes.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "most operations are forks")]
pub enum Effects {
    /// A fork of a session.
    Fork(Forking),
    /// Several forks that are made together. Each of them is an operation of its own and a part of this one.
    Forks,
    /// A clone of a session in which nothing was said yet.
    Clone(Cloning),
    /// A worktree for a session that is about to begin.
    Worktree(Created),
    /// A session that was moved into the trash.
    Delete(Deletion),
    /// A session that got its first name.
    Adopt(Adoption),
    /// A session that got another name.
    Rename(Renaming),
}

impl Effects {
    /// The word for this kind of operation.
    pub fn kind(&self) -> &'static str {
        match self {
            Effects::Fork(_) => "fork",
            Effects::Forks => "forks",
            Effects::Clone(_) => "clone",
            Effects::Worktree(_) => "worktree",
            Effects::Delete(_) => "delete",
            Effects::Adopt(_) => "adopt",
            Effects::Rename(_) => "rename",
        }
    }

    /// What the operation created on disk.
    pub(crate) fn created(&self) -> Option<&Created> {
        match self {
            Effects::Fork(fork) => Some(&fork.created),
            Effects::Clone(clone) => Some(&clone.created),
            Effects::Worktree(created) => Some(created),
            Effects::Forks | Effects::Delete(_) | Effects::Adopt(_) | Effects::Rename(_) => None,
        }
    }

    pub(crate) fn created_mut(&mut self) -> Option<&mut Created> {
        match self {
            Effects::Fork(fork) => Some(&mut fork.created),
            Effects::Clone(clone) => Some(&mut clone.created),
            Effects::Worktree(created) => Some(created),
            Effects::Forks | Effects::Delete(_) | Effects::Adopt(_) | Effects::Rename(_) => None,
        }
    }

    /// The worktree or the copy of a directory that it created.
    pub(crate) fn workspace(&self) -> Option<&CreatedWorkspace> {
        self.created().and_then(|created| created.workspace.as_ref())
    }

    /// The name that no other session gets while the operation runs.
    pub(crate) fn reserved_name(&self) -> Option<&SessionName> {
        match self {
            Effects::Fork(fork) => fork.reserves.as_ref(),
            Effects::Clone(clone) => clone.reserves.as_ref(),
            Effects::Forks | Effects::Worktree(_) | Effects::Delete(_) | Effects::Adopt(_) | Effects::Rename(_) => None,
        }
    }

    /// The change of a name.
    pub(crate) fn name_change(&self) -> Option<&NameChange> {
        match self {
            Effects::Adopt(adoption) => Some(&adoption.name),
            Effects::Rename(renaming) => Some(&renaming.name),
            Effects::Fork(_) | Effects::Forks | Effects::Clone(_) | Effects::Worktree(_) | Effects::Delete(_) => None,
        }
    }

    pub(crate) fn name_change_mut(&mut self) -> Option<&mut NameChange> {
        match self {
            Effects::Adopt(adoption) => Some(&mut adoption.name),
            Effects::Rename(renaming) => Some(&mut renaming.name),
            Effects::Fork(_) | Effects::Forks | Effects::Clone(_) | Effects::Worktree(_) | Effects::Delete(_) => None,
        }
    }

    /// The record of it. A path that isn't text can't be recorded.
    pub(super) fn to_record(&self) -> serde_json::Result<String> {
        match self {
            Effects::Fork(fork) => serde_json::to_string(fork),
            Effects::Forks => Ok("{}".to_owned()),
            Effects::Clone(clone) => serde_json::to_string(clone),
            Effects::Worktree(created) => serde_json::to_string(created),
            Effects::Delete(deletion) => serde_json::to_string(deletion),
            Effects::Adopt(adoption) => serde_json::to_string(adoption),
            Effects::Rename(renaming) => serde_json::to_string(renaming),
        }
    }

    /// Reads a record, or says why it can't be read.
    pub(super) fn from_record(kind: &str, record: &str) -> Result<Self, String> {
        let read = match kind {
            "fork" => serde_json::from_str(record).map(Effects::Fork),
            "forks" => serde_json::from_str(record).map(|_: serde_json::Map<String, serde_json::Value>| Effects::Forks),
            "clone" => serde_json::from_str(record).map(Effects::Clone),
            "worktree" => serde_json::from_str(record).map(Effects::Worktree),
            "delete" => serde_json::from_str(record).map(Effects::Delete),
            "adopt" => serde_json::from_str(record).map(Effects::Adopt),
            "rename" => serde_json::from_str(record).map(Effects::Rename),
            unknown => return Err(format!("unknown kind `{unknown}`")),
        };
        read.map_err(|error| error.to_string())
    }
}

/// What an operation created on disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Created {
    /// The session, once its id is known.
    pub session: Option<SessionId>,
    /// Files and folders that belong to the session alone. The transcript of a complete session is the first.
    pub files: Vec<PathBuf>,
    /// Notes of a project that came along. Others keep notes there as well, so a note is removed only if it is as it was.
    pub notes: Vec<Note>,
    /// Folders of an agent that didn't exist before, the deepest first. They are removed once they are empty.
    pub folders: Vec<PathBuf>,
    /// A worktree or a copy of a directory.
    pub workspace: Option<CreatedWorkspace>,
}

impl Created {
    /// Adds a file or folder that was made.
    pub(crate) fn add(&mut self, path: &Path) {
        if !self.files.iter().any(|known| known == path) {
            self.files.push(path.to_owned());
        }
    }

    /// The transcript of a session that is complete.
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

/// A note that came along with a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Where it is.
    pub path: PathBuf,
    /// A fingerprint of its content.
    pub digest: String,
}

/// A directory that was created for a session to work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CreatedWorkspace {
    /// A worktree and its branch.
    Worktree(Worktree),
    /// A copy of a directory.
    Copy(DirectoryCopy),
}

impl CreatedWorkspace {
    /// Where it is.
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
    /// What was created on disk.
    pub created: Created,
    /// The name that the fork will have, until it is complete.
    pub reserves: Option<SessionName>,
    /// What the agents that work for the fork have in their environment, until it is complete. They are found by it if
    /// nobody waits for them any more.
    pub mark: Option<String>,
    /// The session that the agent makes under an id of its own, until it is complete.
    pub expects: Option<Expected>,
    /// What the transcript was when it was complete.
    pub fingerprint: Fingerprint,
    /// The transcript that tine keeps for a fork that has not started.
    pub kept: Option<KeptSeed>,
}

/// A session that an agent is about to make under an id that it makes up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Expected {
    /// The agent.
    pub agent: Agent,
    /// A text in its first prompt, or nothing for a fork of `parent`.
    pub mark: Option<String>,
    /// The session that it is a fork of.
    pub parent: SessionId,
    /// Since when, in milliseconds.
    pub since: i64,
}

/// The transcript that tine keeps for a fork that has not started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptSeed {
    /// Where it is.
    pub file: PathBuf,
    /// The mark of its lines.
    pub nonce: String,
    /// How far the start of the fork is.
    pub stage: Stage,
}

impl KeptSeed {
    /// Whether the start of the fork was begun.
    pub(crate) fn is_starting(&self) -> bool {
        !matches!(self.stage, Stage::Waiting)
    }

    /// Since when the transcript is being sent to the agent, in milliseconds.
    pub(crate) fn sending_since(&self) -> Option<i64> {
        match self.stage {
            Stage::Sending { since, .. } => Some(since),
            Stage::Waiting | Stage::Sent => None,
        }
    }
}

/// How far the start of a fork is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Nobody has asked for it.
    Waiting,
    /// The transcript is being sent to the agent.
    Sending {
        /// Since when, in milliseconds.
        since: i64,
        /// Where the agent keeps its session, if tine chooses the place.
        target: Option<PathBuf>,
    },
    /// The session is registered, and the transcript is still to be removed.
    Sent,
}

/// A clone of a session in which nothing was said yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cloning {
    /// What was created on disk.
    pub created: Created,
    /// The name that the clone will have, until it is complete.
    pub reserves: Option<SessionName>,
}

/// A session that was moved into the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deletion {
    /// The session.
    pub session: Option<SessionId>,
    /// What was moved into the trash, the transcript first.
    pub moved: Vec<Moved>,
    /// The branch that was deleted with a worktree.
    #[serde(default)]
    pub branch: Option<DeletedBranch>,
    /// The name that the session had.
    #[serde(default)]
    pub name: Option<SessionName>,
}

/// A file or folder that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Where it was.
    pub from: PathBuf,
    /// Where it is.
    pub to: PathBuf,
}

/// A branch that was deleted with its worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeletedBranch {
    /// The repository, as the top of one of its working trees.
    pub repository: PathBuf,
    /// Its name.
    pub name: String,
    /// The commit that it was at.
    pub commit: String,
}

/// The change of a session's name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NameChange {
    /// The session.
    pub session: SessionKey,
    /// The name that it had.
    pub old: Option<SessionName>,
    /// The name that it got. Early versions didn't record it.
    pub new: Option<SessionName>,
}

/// A session that got its first name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Adoption {
    /// The change of its name.
    pub name: NameChange,
    /// Whether its parent was recorded, too.
    pub has_parent: bool,
}

/// A session that got another name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Renaming {
    /// The change of its name.
    pub name: NameChange,
    /// The title that the agent's own list showed before.
    pub old_title: Option<String>,
    /// Where the title was added that shows the new name in the agent's own list.
    pub title: Option<TitleMark>,
}
