//! `tine snapshots`: lists the snapshots of a repository and measures their space.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use transcript::{Agent, SessionId};

use super::prune::{self, Kept};
use super::refs::{self, Moment, ROOT, SnapshotRef};
use super::trailers::{LeftOut, Trailers};
use crate::code::Result;
use crate::ctx::Ctx;
use crate::sessions::session::Session;
use crate::workspace::git::Git;

/// The snapshots of a repository, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotList {
    /// The top of the working tree.
    pub repository: PathBuf,
    /// Whether new ones are taken there.
    pub enabled: bool,
    /// The space that only they need, in bytes.
    pub bytes: u64,
    /// The snapshots.
    pub snapshots: Vec<SnapshotView>,
    #[serde(skip)]
    git: Git,
}

/// One snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotView {
    /// The agent.
    pub agent: Agent,
    /// The session.
    pub session: SessionId,
    /// The session's name, if it has one.
    pub name: Option<String>,
    /// The turn.
    pub turn: u32,
    /// Whether it was taken when the turn ended, or only before the next one began.
    pub moment: Moment,
    /// When this tree was first seen.
    pub taken: Timestamp,
    /// The commit that holds the tree.
    pub commit: String,
    /// What the tree lacks.
    pub left_out: Vec<LeftOut>,
    /// The name of its ref.
    pub reference: String,
}

/// The snapshots of the repository around a directory. `session` limits them to one.
pub(crate) fn list(ctx: &Ctx, directory: &Path, session: Option<&Session>) -> Result<SnapshotList> {
    let git = ctx.git()?;
    let place = git.tree_place(directory).ok_or_else(|| git.no_working_tree(directory))?;
    let mut found = refs::all(&git, &place.top)?;
    let bytes = if found.is_empty() { 0 } else { git.disk_usage(&place.top, ROOT)? };
    found.retain(|found| session.is_none_or(|session| found.name.session == session.view.id));
    found.sort_by_key(|found| std::cmp::Reverse((found.committed(), found.name.turn)));
    let names = ctx.registry().names().unwrap_or_default();
    let names: BTreeMap<(Agent, String), String> =
        names.into_iter().map(|(key, name)| ((key.agent, key.id.to_string()), name.to_string())).collect();
    let enabled = ctx.config()?.snapshots.is_enabled_for(&place.top, &ctx.context().surroundings.home);
    let snapshots = found.iter().map(|found| view(found, &names)).collect();
    Ok(SnapshotList { repository: place.top, enabled, bytes, snapshots, git })
}

fn view(found: &SnapshotRef, names: &BTreeMap<(Agent, String), String>) -> SnapshotView {
    let refs::Name { agent, session, turn, moment, .. } = found.name.clone();
    SnapshotView {
        name: names.get(&(agent, session.to_string())).cloned(),
        agent,
        session,
        turn,
        moment,
        taken: Timestamp::from_second(found.committed()).unwrap_or_default(),
        commit: found.commit().to_owned(),
        left_out: Trailers::read(found.message()).map(|trailers| trailers.left_out).unwrap_or_default(),
        reference: found.name.to_ref(),
    }
}

impl SnapshotList {
    /// The snapshots that `kept` does not keep. Of a session's list, only those of the session.
    pub fn expired(&self, kept: Kept, now: Timestamp) -> Vec<&SnapshotView> {
        let oldest = kept.oldest(now);
        let is_kept = |(at, found): &(usize, &SnapshotView)| *at < kept.count && found.taken >= oldest;
        self.snapshots.iter().enumerate().filter(|found| !is_kept(found)).map(|(_, found)| found).collect()
    }

    /// Deletes snapshots. `git gc` frees their space.
    pub fn delete(&self, snapshots: &[&SnapshotView]) -> Result<()> {
        let names: Vec<String> = snapshots.iter().map(|snapshot| snapshot.reference.clone()).collect();
        prune::delete(&self.git, &self.repository, &names)
    }
}
