//! Worktrees and copies of directories that tine created for sessions: removes one together with its session, and finds
//! those that no session uses.

use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::operations::{Error, Result};
use crate::registry::operations::{CreatedWorkspace, DeletedBranch, Operation};
use crate::sessions::catalog::Quiet;
use crate::sessions::session::Session;
use crate::workspace::git::{Worktree, WorktreeState};

/// The worktree or the copy of a directory in which a session works and that tine made.
#[derive(Debug, Clone)]
pub struct OwnWorkspace {
    made: CreatedWorkspace,
    /// Why it can't be removed with the session.
    pub obstacle: Option<String>,
    /// Whether its branch has commits that are on no other one. Then it stays when the worktree is removed.
    pub has_commits: bool,
}

impl OwnWorkspace {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.made.path()
    }

    /// The branch of a worktree, and the repository, as the top of one of its working trees; nothing for a copy.
    pub fn branch(&self) -> Option<(&str, &Path)> {
        match &self.made {
            CreatedWorkspace::Worktree(worktree) => Some((&worktree.branch, &worktree.repository)),
            CreatedWorkspace::Copy(_) => None,
        }
    }

    pub(crate) fn remove_empty_parents(&self) {
        match &self.made {
            CreatedWorkspace::Worktree(worktree) => worktree.remove_empty_parents(),
            CreatedWorkspace::Copy(copy) => copy.remove_empty_parents(),
        }
    }
}

/// The worktree or the copy in which a session works, if tine made it and it is still there.
pub(crate) fn workspace_of(ctx: &Ctx, session: &Session) -> Result<Option<OwnWorkspace>> {
    let Some(cwd) = &session.view.cwd else { return Ok(None) };
    let found = own_workspaces(ctx)?.into_iter().find(|(_, made)| cwd.starts_with(made.path()));
    let Some((_, made)) = found else { return Ok(None) };
    let obstacle = reason_to_keep(ctx, &made, session)?;
    let has_commits = match &made {
        CreatedWorkspace::Worktree(worktree) => !ctx.git()?.is_on_another_branch(worktree),
        CreatedWorkspace::Copy(_) => false,
    };
    Ok(Some(OwnWorkspace { made, obstacle, has_commits }))
}

/// Worktrees that tine created and that are still on their branches, and existing copies, each with its operation, newest
/// first.
pub(crate) fn own_workspaces(ctx: &Ctx) -> Result<Vec<(String, CreatedWorkspace)>> {
    let operations = ctx.registry().operations()?;
    let made = |operation: Operation| match operation.effects.workspace() {
        Some(made) if operation.state.is_done() => Some((operation.what.clone(), made.clone())),
        _ => None,
    };
    let made = operations.into_iter().filter_map(made).filter(|(_, made)| made.path().exists());
    let git = ctx.git().ok();
    let is_ours = |made: &CreatedWorkspace| match made {
        CreatedWorkspace::Worktree(tree) => {
            git.as_ref().is_some_and(|git| git.worktree_state(tree) == WorktreeState::Itself)
        }
        CreatedWorkspace::Copy(copy) => copy.is_in_place(),
    };
    let mut all: Vec<(String, CreatedWorkspace)> = Vec::new();
    for (what, made) in made {
        // Of several that were made at one place, the last one is there.
        if all.iter().all(|(_, other)| other.path() != made.path()) && is_ours(&made) {
            all.push((what, made));
        }
    }
    Ok(all)
}

fn reason_to_keep(ctx: &Ctx, made: &CreatedWorkspace, session: &Session) -> Result<Option<String>> {
    match made {
        CreatedWorkspace::Worktree(worktree) => {
            let git = ctx.git()?;
            if git.is_dirty(&worktree.path) {
                return Ok(Some("it has uncommitted changes".into()));
            }
            if git.is_locked(worktree) {
                return Ok(Some("it is locked".into()));
            }
        }
        CreatedWorkspace::Copy(copy) => {
            if !copy.is_untouched() {
                return Ok(Some("it has changed since it was copied".into()));
            }
        }
    }
    let works_there = |other: &&Session| {
        other.view.path != session.view.path && other.view.cwd.as_ref().is_some_and(|cwd| cwd.starts_with(made.path()))
    };
    if let Some(other) = crate::sessions::survey::all_sessions(ctx, &Quiet)?.iter().find(works_there) {
        return Ok(Some(format!("`{}` also works there", other.view.label())));
    }
    Ok(process_in(ctx, made.path()).map(|process| format!("process {process} runs there")))
}

pub(crate) fn process_in(ctx: &Ctx, path: &Path) -> Option<u32> {
    let proc = ctx.context().surroundings.proc.as_deref()?;
    agents::processes_in(proc, path).first().copied()
}

/// Everything that must be moved to remove a worktree or a copy, and its branch if that is removed too.
pub(crate) fn parts_of_workspace(
    ctx: &Ctx,
    own: &OwnWorkspace,
    session: &Session,
) -> Result<(Vec<PathBuf>, Option<DeletedBranch>)> {
    // It may be in use since the question was asked.
    if let Some(why) = reason_to_keep(ctx, &own.made, session)? {
        return Err(Error::KeepsWorkspace { path: own.path().to_owned(), why });
    }
    match &own.made {
        CreatedWorkspace::Worktree(worktree) => parts_of_worktree(ctx, worktree, own.has_commits),
        CreatedWorkspace::Copy(copy) => Ok((vec![copy.path.clone()], None)),
    }
}

fn parts_of_worktree(
    ctx: &Ctx,
    worktree: &Worktree,
    has_commits: bool,
) -> Result<(Vec<PathBuf>, Option<DeletedBranch>)> {
    let git = ctx.git()?;
    let parts = vec![worktree.path.clone(), git.own_folder(&worktree.path)?];
    let commit = git.commit(&worktree.repository, &format!("refs/heads/{}", worktree.branch));
    let branch = commit.filter(|_| !has_commits).map(|commit| DeletedBranch {
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
