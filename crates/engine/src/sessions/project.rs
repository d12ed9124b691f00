//! Which directories belong together: a directory or, in a git repository, the repository with all its worktrees. git's
//! own files are read, because starting git costs more than a whole listing.

use std::fs;
use std::path::{Path, PathBuf};

/// A set of directories whose sessions are shown together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    roots: Vec<PathBuf>,
}

impl Project {
    /// The project of `directory`.
    pub fn of(directory: &Path) -> Self {
        let resolved = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let mut roots = vec![directory.to_owned()];
        let mut add = |root: PathBuf| {
            if !roots.contains(&root) {
                roots.push(root);
            }
        };
        if let Some((top, common)) = repository(&resolved) {
            add(top);
            if common.file_name().is_some_and(|name| name == ".git")
                && let Some(main) = common.parent()
            {
                add(main.to_owned());
            }
            for worktree in fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten() {
                let link = fs::read_to_string(worktree.path().join("gitdir")).unwrap_or_default();
                if let Some(root) = Path::new(link.trim()).parent().filter(|root| root.is_absolute()) {
                    add(root.to_owned());
                }
            }
        }
        add(resolved);
        Project { roots }
    }

    /// The tops of its working trees.
    pub fn trees(&self) -> Vec<PathBuf> {
        self.roots.iter().filter(|root| root.join(".git").exists()).cloned().collect()
    }

    /// Whether a session that works in `directory` belongs to it.
    pub fn contains(&self, directory: &Path) -> bool {
        self.roots.iter().any(|root| directory.starts_with(root))
    }
}

/// The branch checked out in `directory`; `None` without a repository or a branch.
pub(crate) fn current_branch(directory: &Path) -> Option<String> {
    let folder = git_folder(directory.ancestors().find(|top| top.join(".git").exists())?)?;
    let head = fs::read_to_string(folder.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

/// The commit that is checked out around `directory`, read from git's own files.
pub(crate) fn current_commit(directory: &Path) -> Option<String> {
    let (top, common) = repository(&directory.canonicalize().ok()?)?;
    let head = fs::read_to_string(git_folder(&top)?.join("HEAD")).ok()?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned());
    };
    if let Ok(commit) = fs::read_to_string(common.join(reference)) {
        return Some(commit.trim().to_owned());
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' ').map(str::to_owned))
}

/// The top of the working tree that contains `directory`; `None` without a repository.
pub(crate) fn top(directory: &Path) -> Option<PathBuf> {
    repository(directory).map(|(top, _)| top)
}

/// Whether the repository around `directory` knows of a worktree at `path`.
pub(crate) fn has_worktree(directory: &Path, path: &Path) -> bool {
    let Some((_, common)) = repository(directory) else {
        return false;
    };
    let worktrees = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let mut links = worktrees.filter_map(|worktree| fs::read_to_string(worktree.path().join("gitdir")).ok());
    links.any(|link| Path::new(link.trim()).parent().is_some_and(|root| path.starts_with(root)))
}

/// The main working tree of the repository around `directory`; nothing where the repository has none.
pub(crate) fn main_tree(directory: &Path) -> Option<PathBuf> {
    let (_, common) = repository(directory)?;
    (common.file_name()? == ".git").then(|| common.parent().map(Path::to_owned)).flatten()
}

/// The top of the working tree and the common git folder of the repository around `directory`.
fn repository(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    let top = directory.ancestors().find(|top| top.join(".git").exists())?;
    let folder = git_folder(top)?;
    match fs::read_to_string(folder.join("commondir")) {
        Ok(common) => Some((top.to_owned(), folder.join(common.trim()).canonicalize().ok()?)),
        Err(_) => Some((top.to_owned(), folder)),
    }
}

/// The git folder of the working tree whose top is `top`. A worktree's `.git` is a file that names it.
fn git_folder(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    Some(top.join(fs::read_to_string(&dot_git).ok()?.strip_prefix("gitdir:")?.trim()))
}
