//! Where a fork works: the source's directory, another one, or a worktree that is made for it.

use std::fs;
use std::path::{Path, PathBuf};

use transcript::SessionName;

use super::{Plan, Request, Where, Workspace};
use crate::Tine;
use crate::error::{Error, Result};
use crate::git::{Git, Worktree};
use crate::project;

impl Tine {
    pub(super) fn is_dirty(&self, directory: Option<&Path>) -> bool {
        directory.zip(self.git().ok()).is_some_and(|(directory, git)| git.is_dirty(directory))
    }

    pub(crate) fn git(&self) -> Result<Git> {
        self.context().find_program("git").map(Git::new).ok_or(Error::NoGit)
    }

    pub(super) fn workspace(&self, request: &Request, name: &SessionName) -> Result<Workspace> {
        let own = request.source.view.cwd.clone().unwrap_or_else(|| self.context().cwd.clone());
        let (kind, path) = match &request.workspace {
            Where::Same => ("same", own),
            Where::Directory(directory) => ("existing", self.context().cwd.join(directory)),
            Where::Copy(directory) => return Err(Error::InTheWay(directory.clone())),
            Where::Worktree(branch) => return self.worktree(&own, branch.as_deref().unwrap_or(name.as_str())),
        };
        let path = existing(path)?;
        let branch = project::current_branch(&path);
        Ok(Workspace { kind, path, branch, worktree: None })
    }

    /// A worktree beside the repository: `<repository>.worktrees/<branch>`.
    fn worktree(&self, directory: &Path, branch: &str) -> Result<Workspace> {
        let directory = existing(directory.to_owned())?;
        let git = self.git()?;
        let top = git.top(&directory).ok_or_else(|| Error::NoRepository(directory.clone()))?;
        if let Some(what) = git.unfinished(&top) {
            return Err(Error::InTheMiddle { directory: top, what });
        }
        if project::current_branch(&directory).is_none() {
            return Err(Error::Detached(top));
        }
        if !git.is_branch_name(&top, branch) {
            return Err(Error::BadBranch(branch.to_owned()));
        }
        if let Some(tree) = git.checked_out_in(&top, branch) {
            return Err(Error::CheckedOut { branch: branch.to_owned(), tree });
        }
        if git.has_branch(&top, branch) {
            return Err(Error::BranchExists(branch.to_owned()));
        }
        let main = project::main_tree(&top).unwrap_or_else(|| top.clone());
        let mut folder = main.file_name().unwrap_or_default().to_owned();
        folder.push(".worktrees");
        let tree = main.with_file_name(folder).join(branch.replace('/', "-"));
        if tree.symlink_metadata().is_ok() {
            return Err(Error::InTheWay(tree));
        }
        // A source that works below the top goes on there in the worktree.
        let below = directory.strip_prefix(&top).unwrap_or(Path::new(""));
        let base = git.head(&top)?;
        let worktree = Worktree { repository: main, path: tree.clone(), branch: branch.to_owned(), base };
        let path = if below.as_os_str().is_empty() { tree } else { tree.join(below) };
        Ok(Workspace { kind: "worktree", path, branch: Some(branch.to_owned()), worktree: Some(worktree) })
    }

    /// Makes the worktree, or fails and leaves nothing of it: git takes back what it could not finish.
    pub(super) fn make_worktree(&self, plan: &Plan) -> Result<()> {
        let Some(worktree) = &plan.workspace.worktree else {
            return Ok(());
        };
        let git = self.git()?;
        git.add(worktree)?;
        // The source may work in a directory that is not committed.
        let path = &plan.workspace.path;
        fs::create_dir_all(path).map_err(|source| {
            git.remove(worktree);
            Error::CannotWrite { path: path.clone(), source }
        })
    }
}

fn existing(path: PathBuf) -> Result<PathBuf> {
    if !path.is_dir() {
        return Err(Error::NoDirectory(path));
    }
    path.canonicalize().map_err(|source| Error::Unreadable { path, source })
}
