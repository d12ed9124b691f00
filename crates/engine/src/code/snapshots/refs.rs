//! The refs of snapshots, and the commits that they point to.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use transcript::{Agent, SessionId};

use super::Snapshot;
use super::trailers::Trailers;
use crate::code::{Error, Result};
use crate::workspace::git::Git;
use crate::workspace::git::refs::CommitRef;

/// Where all snapshots are. A plain `git push` or `git fetch` doesn't transfer them.
pub(super) const ROOT: &str = "refs/tine/snapshots/";

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Moment {
    /// Before the next turn began. Whatever changed after the turn is part of it.
    #[serde(rename = "next")]
    BeforeNext,
    /// When the turn ended.
    #[serde(rename = "end")]
    End,
}

impl Moment {
    const ALL: [Moment; 2] = [Moment::BeforeNext, Moment::End];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Moment::BeforeNext => "next",
            Moment::End => "end",
        }
    }
}

/// The name of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub agent: Agent,
    pub session: SessionId,
    /// The turn's number in that session.
    pub turn: u32,
    pub moment: Moment,
    /// The turn's fingerprint.
    pub key: u64,
}

impl Name {
    /// The name of its ref.
    pub(super) fn to_ref(&self) -> String {
        let Name { agent, session, turn, moment, key } = self;
        format!("{ROOT}{agent}/{session}/{turn}-{}-{key:016x}", moment.as_str())
    }

    /// The name in a ref.
    pub(super) fn of_ref(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(ROOT)?.split('/');
        let (agent, session, point) = (parts.next()?, parts.next()?, parts.next()?);
        let mut words = point.split('-');
        let (turn, moment, key) = (words.next()?, words.next()?, words.next()?);
        let name = Name {
            agent: agent.parse().ok()?,
            session: session.parse().ok()?,
            turn: turn.parse().ok()?,
            moment: Moment::ALL.into_iter().find(|known| known.as_str() == moment)?,
            key: u64::from_str_radix(key, 16).ok()?,
        };
        (parts.next().is_none() && words.next().is_none()).then_some(name)
    }
}

/// A snapshot in a repository.
#[derive(Debug, Clone)]
pub(super) struct SnapshotRef {
    pub name: Name,
    at: CommitRef,
}

impl SnapshotRef {
    /// When the tree was first seen, in seconds since 1970.
    pub(super) fn committed(&self) -> i64 {
        self.at.committed
    }

    /// The commit.
    pub(super) fn commit(&self) -> &str {
        &self.at.commit
    }

    /// The message of the commit.
    pub(super) fn message(&self) -> &str {
        &self.at.message
    }

    /// Everything about it.
    pub(super) fn read(&self) -> Result<Snapshot> {
        let unknown = || Error::UnknownSnapshot(self.at.name.clone());
        let Trailers { worktree, head, left_out } = Trailers::read(&self.at.message).ok_or_else(unknown)?;
        Ok(Snapshot {
            repository: worktree,
            tree: self.at.tree.clone(),
            commit: self.at.commit.clone(),
            head,
            turn: self.name.turn,
            moment: self.name.moment,
            taken: Timestamp::from_second(self.at.committed).map_err(|_| unknown())?,
            left_out,
        })
    }
}

/// The snapshots of a turn, in all sessions that contain it.
pub(super) fn of_turn(git: &Git, directory: &Path, agent: Agent, key: u64) -> Result<Vec<SnapshotRef>> {
    found(git, directory, &format!("{ROOT}{agent}/*/*-{key:016x}"))
}

/// Every snapshot of a repository.
pub(super) fn all(git: &Git, directory: &Path) -> Result<Vec<SnapshotRef>> {
    found(git, directory, ROOT)
}

/// The snapshots whose refs match a pattern. Other refs are none of ours.
fn found(git: &Git, directory: &Path, pattern: &str) -> Result<Vec<SnapshotRef>> {
    let refs = git.commit_refs(directory, pattern)?.into_iter();
    Ok(refs.filter_map(|at| Some(SnapshotRef { name: Name::of_ref(&at.name)?, at })).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let session: SessionId = "0198c3a4-5e6f-7a8b-9c0d-1e2f3a4b5c6d".parse().unwrap();
        let name = Name { agent: Agent::Codex, session, turn: 12, moment: Moment::End, key: 0xf3 };
        let text = "refs/tine/snapshots/codex/0198c3a4-5e6f-7a8b-9c0d-1e2f3a4b5c6d/12-end-00000000000000f3";
        assert_eq!((name.to_ref().as_str(), Name::of_ref(text)), (text, Some(name)));
        for other in ["refs/heads/main", "refs/tine/snapshots/claude/a/1-end", "refs/tine/snapshots/claude/a/1-end-0/b"]
        {
            assert_eq!(Name::of_ref(other), None, "{other}");
        }
    }
}
