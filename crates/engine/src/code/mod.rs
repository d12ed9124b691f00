//! Code as it was: the files of a session's working tree at the end of a turn.
//!
//! [`code_at`] says which tree that is, and where the knowledge comes from.

pub(crate) mod blame;
pub(crate) mod diff;
pub(crate) mod error;
mod present;
pub(crate) mod rebuild;
pub(crate) mod restore;
pub mod snapshots;
pub(crate) mod then;

use std::path::PathBuf;

pub use error::{Error, Result};
use serde::Serialize;
pub use snapshots::{LeftOut, Reason};

use crate::ctx::Ctx;
use crate::sessions::session::Session;

/// The working tree of a session at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAt {
    /// The top of the working tree.
    pub repository: PathBuf,
    /// A git tree in that repository, with the bytes that were on disk: no filter and no conversion of line endings was
    /// applied.
    pub tree: String,
    /// The commit that was checked out then, if that is known.
    pub head: Option<String>,
    /// Where the tree comes from.
    pub source: CodeSource,
    /// How certain each file is that differs from the commit. A snapshot needs no list: all of its files are exact.
    pub files: Vec<FileVerdict>,
    /// What the tree lacks. Such a file may have existed or not.
    pub left_out: Vec<LeftOut>,
}

/// Where a tree comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CodeSource {
    /// It was recorded at the end of the turn.
    Snapshot,
    /// It was rebuilt from the transcript.
    Reconstruction,
}

/// A file of a tree, and how certain it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVerdict {
    /// Its path in the working tree.
    pub path: PathBuf,
    /// How certain it is.
    pub certainty: Certainty,
    /// The reason, where it needs one: the command that may have changed the file.
    pub why: Option<String>,
}

/// How certain it is that a file was like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Nothing tells what it was.
    Unknown,
    /// A command may have changed it.
    Doubtful,
    /// Every recorded edit could be applied.
    Consistent,
    /// It was recorded, or read in full later.
    Exact,
}

impl CodeAt {
    /// The working tree, or another one of its repository if that is gone.
    pub(crate) fn repository_now(&self, ctx: &Ctx) -> Result<PathBuf> {
        let git = ctx.git()?;
        let has_tree = |directory: &PathBuf| git.tree_of(directory, &self.tree).is_some();
        let places = [self.repository.clone(), ctx.context().cwd.clone()];
        let place = places.into_iter().find(has_tree).and_then(|directory| git.tree_place(&directory));
        place.map(|place| place.top).ok_or_else(|| Error::NoRepository(self.repository.clone()))
    }
}

impl Certainty {
    /// The least certain first.
    pub(crate) const ALL: [Certainty; 4] =
        [Certainty::Unknown, Certainty::Doubtful, Certainty::Consistent, Certainty::Exact];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Certainty::Unknown => "unknown",
            Certainty::Doubtful => "doubtful",
            Certainty::Consistent => "consistent",
            Certainty::Exact => "exact",
        }
    }
}

/// The working tree of a session at the end of a turn, as a tree in its repository. The tree is written, but no ref points to
/// it.
pub(crate) fn code_at(ctx: &Ctx, session: &Session, turn: u32) -> Result<CodeAt> {
    if let Some(found) = snapshots::find(ctx, session, turn)? {
        let snapshots::Snapshot { repository, tree, head, left_out, .. } = found;
        return Ok(CodeAt { repository, tree, head, source: CodeSource::Snapshot, files: Vec::new(), left_out });
    }
    rebuild::rebuild(ctx, session, turn)?.write(ctx, session, turn)
}
