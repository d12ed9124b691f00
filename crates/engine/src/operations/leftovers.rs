//! Worktrees that tine created for sessions: removes one together with its session, and finds those that no session
//! uses.

use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::operations::{Error, Result};
use crate::registry::operations::{CreatedWorkspace, DeletedBranch, Operation};
use crate::sessions::catalog::Quiet;
use crate::sessions::session::Session;
use crate::workspace::git::{Standing, Worktree};

/// The worktree in which a session works and that tine made.
#[derive(Debug, Clone)]
pub struct OwnWorktree {
    worktree: Worktree,
    /// Why it can't be removed with the session.
    pub obstacle: Option<String>,
    /// Whether its branch has commits that are on no other one. Then it stays when the worktree is removed.
    pub has_commits: bool,
}

impl OwnWorktree {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.worktree.path
    }

    /// Its branch.
    pub fn branch(&self) -> &str {
        &self.worktree.branch
    }

    /// The repository, as the top of one of its working trees.
    pub fn repository(&self) -> &Path {
        &self.worktree.repository
    }

    pub(crate) fn remove_empty_parents(&self) {
        self.worktree.remove_empty_parents();
    }
}

/// The worktree in which a session works, if tine made it and it is still there.
pub(crate) fn worktree_of(ctx: &Ctx, session: &Session) -> Result<Option<OwnWorktree>> {
    let Some(cwd) = &session.view.cwd else { return Ok(None) };
    let found = own_worktrees(ctx)?.into_iter().find(|(_, worktree)| cwd.starts_with(&worktree.path));
    let Some((_, worktree)) = found else { return Ok(None) };
    let git = ctx.git()?;
    let obstacle = why_kept(ctx, &worktree, session)?;
    let has_commits = !git.is_on_another_branch(&worktree);
    Ok(Some(OwnWorktree { worktree, obstacle, has_commits }))
}

/// Worktrees that tine created and that are still on their branches, each with its operation, newest first.
pub(crate) fn own_worktrees(ctx: &Ctx) -> Result<Vec<(String, Worktree)>> {
    let operations = ctx.registry().operations()?;
    let worktree = |operation: Operation| match operation.effects.workspace() {
        Some(CreatedWorkspace::Worktree(worktree)) if operation.state.is_done() => {
            Some((operation.what, worktree.clone()))
        }
        _ => None,
    };
    let made = operations.into_iter().filter_map(worktree);
    let made = made.filter(|(_, worktree)| worktree.path.exists());
    let Ok(git) = ctx.git() else { return Ok(Vec::new()) };
    Ok(made.filter(|(_, worktree)| git.standing(worktree) == Standing::Itself).collect())
}

fn why_kept(ctx: &Ctx, worktree: &Worktree, session: &Session) -> Result<Option<String>> {
    let git = ctx.git()?;
    if git.is_dirty(&worktree.path) {
        return Ok(Some("it has uncommitted changes".into()));
    }
    if git.is_locked(worktree) {
        return Ok(Some("it is locked".into()));
    }
    let works_there = |other: &&Session| {
        other.view.path != session.view.path
            && other.view.cwd.as_ref().is_some_and(|cwd| cwd.starts_with(&worktree.path))
    };
    if let Some(other) = crate::sessions::survey::all_sessions(ctx, &Quiet)?.iter().find(works_there) {
        return Ok(Some(format!("`{}` also works there", other.view.label())));
    }
    Ok(process_in(ctx, &worktree.path).map(|process| format!("process {process} runs there")))
}

pub(crate) fn process_in(ctx: &Ctx, path: &Path) -> Option<u32> {
    let proc = ctx.context().surroundings.proc.as_deref()?;
    agents::processes_in(proc, path).first().copied()
}

/// Everything that has to be moved to remove a worktree, and its branch if that is removed too.
pub(crate) fn parts_of_worktree(
    ctx: &Ctx,
    own: &OwnWorktree,
    session: &Session,
) -> Result<(Vec<PathBuf>, Option<DeletedBranch>)> {
    let worktree = &own.worktree;
    // It may be in use since the question was asked.
    if let Some(why) = why_kept(ctx, worktree, session)? {
        return Err(Error::KeepsWorktree { path: worktree.path.clone(), why });
    }
    let git = ctx.git()?;
    let parts = vec![worktree.path.clone(), git.own_folder(&worktree.path)?];
    let commit = git.commit(&worktree.repository, &format!("refs/heads/{}", worktree.branch));
    let branch = commit.filter(|_| !own.has_commits).map(|commit| DeletedBranch {
        repository: worktree.repository.clone(),
        name: worktree.branch.clone(),
        commit,
    });
    Ok((parts, branch))
}

/// Deletes the branch of a worktree that was moved into the trash. The deletion counts whether that works or not.
pub(crate) fn drop_branch(ctx: &Ctx, branch: &DeletedBranch) {
    let dropped = ctx.git().and_then(|git| git.delete_branch_at(&branch.repository, &branch.name, &branch.commit));
    if let Err(error) = dropped {
        ctx.warn(error.to_string());
    }
}

/// Makes a branch again that went with its worktree.
pub(crate) fn restore_branch(ctx: &Ctx, branch: &DeletedBranch) -> Result<()> {
    let DeletedBranch { repository, name, commit } = branch;
    let git = ctx.git()?;
    match git.commit(repository, &format!("refs/heads/{name}")) {
        None => Ok(git.make_branch(repository, name, commit)?),
        Some(now) if now == *commit => Ok(()),
        Some(_) => {
            ctx.warn(format!("branch `{name}` was created again in the meantime; the restored worktree uses it"));
            Ok(())
        }
    }
}
