//! Worktrees that tine creates: adding them, detecting work in them, and removing them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diagnostics::OrLog;
use serde::{Deserialize, Serialize};

use super::status::{Kind, to_path};
use super::{Git, finish};
use crate::advice::FileError;
use crate::workspace::directory::{self, Digest};
use crate::workspace::{Error, Result};

/// How many processes write the files of a worktree. Making files waits for the file system more than it computes, so
/// even few cores serve several.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).clamp(4, 16)
}

/// For how long git may hold the lock of a branch.
const LOCKED_FOR: Duration = Duration::from_secs(2);

/// A worktree that tine made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The repository, as the top directory of one of its working trees.
    pub repository: PathBuf,
    /// Where it is.
    pub path: PathBuf,
    /// Its branch, which was made for it.
    pub branch: String,
    /// The commit that it began at.
    pub base: String,
    /// The directories above that were made for it, the deepest first.
    #[serde(default)]
    pub parents: Vec<PathBuf>,
    /// Files that git ignores and that were brought along, relative to it.
    #[serde(default)]
    pub brought: Vec<PathBuf>,
    /// Whether more than git's own files are put into it before it is handed over.
    #[serde(default)]
    pub fills: bool,
    /// The changes in it when it was finished; `None` if there were none.
    #[serde(default)]
    pub state: Option<String>,
    /// When the newest of the files that git ignores was changed before it was handed over, in nanoseconds; what is
    /// newer is somebody's work.
    #[serde(default)]
    pub newest_ignored: Option<i64>,
}

impl Worktree {
    /// Removes empty parents of a removed worktree: the folder of all worktrees with the last of them, other folders
    /// only if they were created for this one.
    pub(crate) fn remove_empty_parents(&self) {
        let is_ours = |folder: &&Path| folder.as_os_str().as_encoded_bytes().ends_with(b".worktrees");
        let folder = self.path.parent().filter(is_ours);
        for folder in self.parents.iter().map(PathBuf::as_path).chain(folder) {
            std::fs::remove_dir(folder).or_log(format_args!("remove {}", folder.display()));
        }
    }
}

impl Git {
    /// Makes a branch and a worktree for it. Where git fails with [`Error::NotAdded`], it leaves the branch, and where a
    /// hook failed, everything.
    pub(crate) fn add(&self, worktree: &Worktree) -> Result<()> {
        // What has appeared there since it was planned is not removed.
        if worktree.path.symlink_metadata().is_ok() {
            return Err(Error::InTheWay(worktree.path.clone()));
        }
        if self.has_branch(&worktree.repository, &worktree.branch) {
            return Err(Error::BranchExists(worktree.branch.clone()));
        }
        // By default, git writes one file after another.
        let workers = match self.setting(&worktree.repository, "checkout.workers") {
            Some(_) => Vec::new(),
            None => vec!["-c".to_owned(), format!("checkout.workers={}", workers())],
        };
        let words = ["worktree", "add", "--quiet", "-b", &worktree.branch].map(OsStr::new);
        let words = workers.iter().map(OsStr::new).chain(words);
        let arguments = words.chain([worktree.path.as_os_str(), worktree.base.as_ref()]);
        let added = self.change(&worktree.repository, arguments);
        added.map(drop).map_err(|message| Error::NotAdded { path: worktree.path.clone(), message })
    }

    /// Whether nothing was changed in a worktree since it was handed over.
    pub(crate) fn is_untouched(&self, worktree: &Worktree) -> bool {
        if !worktree.path.exists() {
            return true;
        }
        let is_as_before = match &worktree.state {
            None => !self.is_dirty(&worktree.path),
            Some(state) => self.state(worktree).is_ok_and(|now| now == *state),
        };
        is_as_before
            && self.head(&worktree.path).is_ok_and(|head| head == worktree.base)
            && worktree.newest_ignored.is_none_or(|newest| self.newest_ignored(worktree).is_ok_and(|now| now <= newest))
    }

    /// Whether a worktree that was just made may hold something else than its commit. Looking at all of its files takes as
    /// long as a tenth of making it.
    pub(crate) fn may_differ(&self, worktree: &Worktree) -> bool {
        let has = |name: &str| worktree.path.join(name).exists();
        // Asked as for a change, which alone knows where the repository's hooks are.
        let hook = self.change(&worktree.path, ["rev-parse", "--git-path", "hooks/post-checkout"]);
        let has_hook = hook.is_ok_and(|told| worktree.path.join(told).exists());
        worktree.fills || has_hook || has(".gitmodules") || has(".gitattributes")
    }

    /// When the newest of the files that git ignores was changed; those that were brought along are compared by what
    /// they hold.
    pub(crate) fn newest_ignored(&self, worktree: &Worktree) -> Result<i64> {
        let tree = &worktree.path;
        let brought: Vec<PathBuf> = worktree.brought.iter().map(|path| tree.join(path)).collect();
        let words = ["status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=normal"];
        let told = self.output(tree, words).map_err(Self::failed(tree))?;
        let ignored = told.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"!! "));
        Ok(ignored.map(|entry| directory::newest(&tree.join(to_path(entry)), &brought)).max().unwrap_or(0))
    }

    /// A fingerprint of all that is not committed in a worktree, and of the files that were brought along.
    pub(crate) fn state(&self, worktree: &Worktree) -> Result<String> {
        let mut digest = Digest::new();
        self.add_state(&worktree.path, &mut digest)?;
        for path in worktree.brought.iter().map(|path| worktree.path.join(path)) {
            digest.add_content(&path).map_err(|source| FileError::Read { path: path.clone(), source })?;
        }
        Ok(digest.finish())
    }

    fn add_state(&self, tree: &Path, digest: &mut Digest) -> Result<()> {
        for change in self.changes(tree)? {
            digest.add(&change.record);
            let path = tree.join(&change.path);
            if change.kind == Kind::Submodule {
                digest.add(self.head(&path).unwrap_or_default().as_bytes());
                self.add_state(&path, digest)?;
            } else {
                digest.add_content(&path).map_err(|source| FileError::Read { path: path.clone(), source })?;
            }
        }
        Ok(())
    }

    /// Removes a worktree that was made and not handed over, or what there is of it, and its branch.
    pub(crate) fn remove(&self, worktree: &Worktree) -> Result<()> {
        // Another branch was checked out there later.
        if !self.is_anothers(worktree) {
            self.remove_entry(worktree);
            // git did not know it yet, or no longer.
            directory::remove_tree(&worktree.path).map_err(|_| Error::StillThere(worktree.path.clone()))?;
        }
        self.forget(worktree)
    }

    /// Makes a repository forget a removed worktree and its branch, unless the branch has new commits or is checked
    /// out.
    pub(crate) fn forget(&self, worktree: &Worktree) -> Result<()> {
        if worktree.path.symlink_metadata().is_err() && !self.is_anothers(worktree) {
            // Not by `git worktree prune`: that forgets others as well, on a disk that is not there now.
            self.remove_entry(worktree);
        }
        let deleted = self.delete_branch(worktree);
        worktree.remove_empty_parents();
        deleted
    }

    fn delete_branch(&self, worktree: &Worktree) -> Result<()> {
        self.remove_stale_lock(&worktree.repository, &format!("refs/heads/{}", worktree.branch));
        self.delete_branch_at(&worktree.repository, &worktree.branch, &worktree.base)
    }

    /// Deletes a branch that is at this commit, unless it is checked out.
    pub(crate) fn delete_branch_at(&self, repository: &Path, branch: &str, commit: &str) -> Result<()> {
        let reference = format!("refs/heads/{branch}");
        let is_as_made = || self.commit(repository, &reference).is_some_and(|now| now == commit);
        if !is_as_made() {
            return Ok(());
        }
        // Unlike `update-ref`, this refuses where the branch is checked out, be it in the middle of a rebase.
        let mut command = self.command(repository);
        command.env("LC_ALL", "C").args(["branch", "--quiet", "-D", "--", branch]);
        match finish(&mut command) {
            Err(said)
                if is_as_made() && !["checked out at", "used by worktree at"].iter().any(|why| said.contains(why)) =>
            {
                let message = said.lines().next().unwrap_or_default().to_owned();
                Err(Error::BranchStays { branch: branch.to_owned(), message })
            }
            _ => Ok(()),
        }
    }

    /// Makes a branch that isn't there.
    pub(crate) fn make_branch(&self, repository: &Path, branch: &str, commit: &str) -> Result<()> {
        let reference = format!("refs/heads/{branch}");
        self.change(repository, ["update-ref", &reference, commit, ""]).map(drop).map_err(Self::failed(repository))
    }

    /// Whether all commits of a worktree's branch are on another branch, too, here or on a remote.
    pub(crate) fn is_on_another_branch(&self, worktree: &Worktree) -> bool {
        let own = format!("refs/heads/{}", worktree.branch);
        let words = ["for-each-ref", "--format=%(refname)", "--contains", &own, "refs/heads", "refs/remotes"];
        self.run(&worktree.repository, words).is_ok_and(|told| told.lines().any(|reference| reference != own))
    }

    /// Removes the lock that a killed git leaves on the branch it was about to create. A git that runs holds it for
    /// milliseconds, so a lock that stays for [`LOCKED_FOR`] is nobody's.
    pub(super) fn remove_stale_lock(&self, repository: &Path, reference: &str) {
        let Ok(lock) = self.run(repository, ["rev-parse", "--git-path", &format!("{reference}.lock")]) else { return };
        let lock = repository.join(lock);
        while let Ok(Ok(age)) = lock.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed()) {
            if age > LOCKED_FOR {
                std::fs::remove_file(&lock).or_log(format_args!("remove {}", lock.display()));
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn remove_entry(&self, worktree: &Worktree) {
        let words = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        if self.change(&worktree.repository, words.into_iter().chain([worktree.path.as_os_str()])).is_err() {
            self.remove_unlinked_entry(worktree);
        }
    }
}
