//! The real git, for what changes a repository: worktrees and branches.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A git that can be run.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: PathBuf,
}

/// A worktree that tine made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The repository, as the top of one of its working trees.
    pub repository: PathBuf,
    /// Where it is.
    pub path: PathBuf,
    /// Its branch, which was made for it.
    pub branch: String,
    /// The commit that it began at.
    pub base: String,
}

impl Git {
    pub(crate) fn new(program: PathBuf) -> Self {
        Git { program }
    }

    /// Runs git in `directory`. Arguments are passed as they are; no shell sees them.
    fn run(&self, directory: &Path, arguments: &[&str]) -> std::result::Result<String, String> {
        let mut command = Command::new(&self.program);
        command.arg("-C").arg(directory).args(arguments).stdin(Stdio::null());
        // A hook of git's may have started us; its repository is not the one that is meant.
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"] {
            command.env_remove(variable);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    fn failed(directory: &Path) -> impl Fn(String) -> Error + '_ {
        move |message| Error::Git { directory: directory.to_owned(), message }
    }

    /// The top of the working tree around `directory`.
    pub(crate) fn top(&self, directory: &Path) -> Option<PathBuf> {
        self.run(directory, &["rev-parse", "--show-toplevel"]).ok().map(PathBuf::from)
    }

    /// The commit that is checked out.
    pub(crate) fn head(&self, directory: &Path) -> Result<String> {
        self.run(directory, &["rev-parse", "--verify", "HEAD^{commit}"]).map_err(Self::failed(directory))
    }

    /// What the repository is in the middle of, such as a merge.
    pub(crate) fn unfinished(&self, directory: &Path) -> Option<&'static str> {
        const MARKS: [(&str, &str); 5] = [
            ("MERGE_HEAD", "a merge"),
            ("rebase-merge", "a rebase"),
            ("rebase-apply", "a rebase"),
            ("CHERRY_PICK_HEAD", "a cherry-pick"),
            ("REVERT_HEAD", "a revert"),
        ];
        let folder = PathBuf::from(self.run(directory, &["rev-parse", "--absolute-git-dir"]).ok()?);
        MARKS.iter().find(|(mark, _)| folder.join(mark).exists()).map(|(_, what)| *what)
    }

    /// Whether there are changes that are not committed.
    pub(crate) fn is_dirty(&self, directory: &Path) -> bool {
        self.run(directory, &["status", "--porcelain", "--ignore-submodules=none"])
            .is_ok_and(|changes| !changes.is_empty())
    }

    /// Whether a text can be the name of a branch.
    pub(crate) fn is_branch_name(&self, directory: &Path, name: &str) -> bool {
        !name.starts_with('-') && self.run(directory, &["check-ref-format", "--branch", name]).is_ok()
    }

    pub(crate) fn has_branch(&self, directory: &Path, name: &str) -> bool {
        self.run(directory, &["show-ref", "--verify", "--quiet", &format!("refs/heads/{name}")]).is_ok()
    }

    /// The working tree in which a branch is checked out.
    pub(crate) fn checked_out_in(&self, directory: &Path, branch: &str) -> Option<PathBuf> {
        let list = self.run(directory, &["worktree", "list", "--porcelain"]).ok()?;
        let wanted = format!("branch refs/heads/{branch}");
        let mut tree = None;
        for line in list.lines() {
            if let Some(path) = line.strip_prefix("worktree ") {
                tree = Some(PathBuf::from(path));
            } else if line == wanted {
                return tree;
            }
        }
        None
    }

    /// Makes a branch and a worktree for it.
    pub(crate) fn add(&self, worktree: &Worktree) -> Result<()> {
        let path = worktree.path.to_string_lossy();
        let arguments = ["worktree", "add", "--quiet", "-b", &worktree.branch, &path, &worktree.base];
        self.run(&worktree.repository, &arguments).map(|_| ()).map_err(Self::failed(&worktree.repository))
    }

    /// Whether nothing was changed in a worktree since it was made.
    pub(crate) fn is_untouched(&self, worktree: &Worktree) -> bool {
        !worktree.path.exists()
            || (!self.is_dirty(&worktree.path) && self.head(&worktree.path).is_ok_and(|head| head == worktree.base))
    }

    /// Removes a worktree, and its branch unless something was committed to it.
    pub(crate) fn remove(&self, worktree: &Worktree) {
        let path = worktree.path.to_string_lossy();
        let _ = self.run(&worktree.repository, &["worktree", "remove", "--force", "--force", &path]);
        if worktree.path.exists() {
            // git did not know it yet, or no longer.
            let _ = std::fs::remove_dir_all(&worktree.path);
            let _ = self.run(&worktree.repository, &["worktree", "prune"]);
        }
        let reference = format!("refs/heads/{}", worktree.branch);
        let _ = self.run(&worktree.repository, &["update-ref", "-d", &reference, &worktree.base]);
        // The folder of all worktrees goes with the last of them.
        if let Some(folder) = worktree.path.parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}
