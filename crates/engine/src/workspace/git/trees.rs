//! The working trees of a repository, as git lists them: which of them has which branch, and who must not be touched.

use std::path::{Path, PathBuf};

use super::status::to_path;
use super::{Git, Worktree};

/// A working tree that a repository knows, the main one included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WorkingTree {
    path: PathBuf,
    /// The branch that is checked out in it, if one is.
    branch: Option<String>,
    is_locked: bool,
    /// Whether git would drop what it knows of it, because it is not there.
    is_gone: bool,
}

/// What is at the path of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorktreeState {
    /// The worktree, on its branch.
    Itself,
    /// Nothing.
    Nothing,
    /// Something else, with this branch checked out, if it is a working tree of the same repository.
    Other(Option<String>),
}

impl Git {
    pub(super) fn working_trees(&self, directory: &Path) -> Vec<WorkingTree> {
        let words = ["worktree", "list", "--porcelain", "-z"];
        match self.output(directory, words) {
            Ok(list) => parse(list.split(|byte| *byte == 0)),
            // Before 2.36, git ended its lines in one way only.
            Err(_) => {
                let list = self.output(directory, &words[..3]).unwrap_or_default();
                parse(list.split(|byte| *byte == b'\n'))
            }
        }
    }

    /// The working tree in which a branch is checked out.
    pub(crate) fn checked_out_in(&self, directory: &Path, branch: &str) -> Option<PathBuf> {
        let trees = self.working_trees(directory);
        trees.into_iter().find(|tree| tree.branch.as_deref() == Some(branch)).map(|tree| tree.path)
    }

    /// Another working tree in which the branch of a worktree is checked out.
    pub(crate) fn elsewhere(&self, worktree: &Worktree) -> Option<PathBuf> {
        let is_meant =
            |tree: &WorkingTree| tree.path != worktree.path && tree.branch.as_ref() == Some(&worktree.branch);
        self.working_trees(&worktree.repository).into_iter().find(is_meant).map(|tree| tree.path)
    }

    /// Whether a worktree was locked with `git worktree lock`.
    pub(crate) fn is_locked(&self, worktree: &Worktree) -> bool {
        self.working_trees(&worktree.repository).iter().any(|tree| tree.path == worktree.path && tree.is_locked)
    }

    /// Whether the repository has a worktree with another branch at the same place.
    pub(super) fn is_anothers(&self, worktree: &Worktree) -> bool {
        let has_other = |tree: &WorkingTree| tree.branch.as_ref().is_some_and(|branch| *branch != worktree.branch);
        let trees = self.working_trees(&worktree.repository);
        trees.iter().any(|tree| tree.path == worktree.path && has_other(tree))
    }

    /// What is at the path of a finished worktree: it may have been replaced since.
    pub(crate) fn worktree_state(&self, worktree: &Worktree) -> WorktreeState {
        if worktree.path.symlink_metadata().is_err() {
            return WorktreeState::Nothing;
        }
        let trees = self.working_trees(&worktree.repository);
        let there = trees.into_iter().find(|tree| tree.path == worktree.path && !tree.is_gone);
        match there.and_then(|tree| tree.branch) {
            Some(branch) if branch == worktree.branch => WorktreeState::Itself,
            other => WorktreeState::Other(other),
        }
    }
}

fn parse<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<WorkingTree> {
    let mut trees: Vec<WorkingTree> = Vec::new();
    for line in lines {
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let (label, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if label == b"worktree" {
            trees.push(WorkingTree { path: to_path(value), ..WorkingTree::default() });
        }
        let Some(tree) = trees.last_mut() else { continue };
        match label {
            b"branch" => {
                let name = value.strip_prefix(b"refs/heads/").unwrap_or(value);
                tree.branch = Some(String::from_utf8_lossy(name).into_owned());
            }
            b"locked" => tree.is_locked = true,
            b"prunable" => tree.is_gone = true,
            _ => {}
        }
    }
    trees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_told_apart() {
        let list = b"worktree /r\0HEAD 1\0branch refs/heads/main\0\0worktree /r.worktrees/a b\0HEAD 1\0branch \
                     refs/heads/x/y\0locked with a reason\0\0worktree /gone\0HEAD 1\0detached\0prunable why\0\0";
        let trees = parse(list.split(|byte| *byte == 0));
        let tree = |path: &str, branch: Option<&str>, is_locked, is_gone| WorkingTree {
            path: path.into(),
            branch: branch.map(str::to_owned),
            is_locked,
            is_gone,
        };
        let expected = [
            tree("/r", Some("main"), false, false),
            tree("/r.worktrees/a b", Some("x/y"), true, false),
            tree("/gone", None, false, true),
        ];
        assert_eq!(trees, expected);
    }
}
