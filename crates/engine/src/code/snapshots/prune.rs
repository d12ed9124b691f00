//! Deletes old snapshots. Only refs are deleted; `git gc` removes the objects that nothing else needs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use diagnostics::OrLog;
use jiff::{SignedDuration, Timestamp};

use super::refs::{self, SnapshotRef};
use crate::code::Result;
use crate::config::SnapshotsConfig;
use crate::private;
use crate::workspace::git::Git;

/// How often snapshots are pruned without being asked to.
const PRUNED_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Which snapshots are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// No older ones.
    pub days: u32,
    /// No more than this in one repository.
    pub count: usize,
}

impl Kept {
    pub(crate) fn of(settings: &SnapshotsConfig) -> Self {
        Kept { days: settings.keep_days, count: settings.keep }
    }

    /// The time before which nothing is kept.
    pub(super) fn oldest(self, now: Timestamp) -> Timestamp {
        now.checked_sub(SignedDuration::from_hours(24 * i64::from(self.days))).unwrap_or(Timestamp::MIN)
    }

    /// The snapshots that are not kept, of all of a repository.
    fn expired(self, mut all: Vec<SnapshotRef>, now: Timestamp) -> Vec<SnapshotRef> {
        all.sort_by_key(|found| std::cmp::Reverse(found.committed()));
        let oldest = self.oldest(now).as_second();
        let is_kept = |(at, found): &(usize, SnapshotRef)| *at < self.count && found.committed() >= oldest;
        all.into_iter().enumerate().filter(|found| !is_kept(found)).map(|(_, found)| found).collect()
    }
}

/// Deletes the snapshots of a repository that are not kept. Returns how many that were.
pub(super) fn prune(git: &Git, directory: &Path, kept: Kept, now: Timestamp) -> Result<usize> {
    let expired = kept.expired(refs::all(git, directory)?, now);
    let names: Vec<String> = expired.iter().map(|found| found.name.to_ref()).collect();
    delete(git, directory, &names)?;
    Ok(names.len())
}

/// Deletes refs of snapshots.
pub(super) fn delete(git: &Git, directory: &Path, names: &[String]) -> Result<()> {
    if names.is_empty() { Ok(()) } else { Ok(git.delete_refs(directory, names)?) }
}

/// The same once a day.
pub(super) fn prune_now_and_then(
    git: &Git,
    directory: &Path,
    folder: &Path,
    settings: &SnapshotsConfig,
    now: Timestamp,
) {
    let mark = folder.join("pruned");
    let age = fs::metadata(&mark).and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age < PRUNED_EVERY) {
        return;
    }
    if prune(git, directory, Kept::of(settings), now).or_log("prune snapshots").is_some() {
        fs::remove_file(&mark).or_log("forget when snapshots were pruned");
        private::new_file(&mark).or_log("remember when snapshots were pruned");
    }
}
