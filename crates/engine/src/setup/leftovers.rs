//! Worktrees that tine created and no session uses.

use std::path::Path;

use crate::ctx::Ctx;
use crate::operations::leftovers::{own_worktrees, process_in};
use crate::progress::Quiet;
use crate::setup::Result;
use crate::setup::doctor::{Check, Verdict};
use crate::workspace::git::Worktree;

/// Worktrees without a session.
pub(crate) fn leftover_checks(ctx: &Ctx) -> Result<Vec<Check>> {
    let worktrees = own_worktrees(ctx)?;
    if worktrees.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = crate::sessions::survey::all_sessions(ctx, &Quiet)?;
    let is_used = |path: &Path| {
        let mut directories = sessions.iter().filter_map(|session| session.view.cwd.as_ref());
        directories.any(|cwd| cwd.starts_with(path)) || process_in(ctx, path).is_some()
    };
    let left = worktrees.into_iter().filter(|(_, worktree)| !is_used(&worktree.path));
    let check = |(what, worktree): (String, Worktree)| {
        let (repository, path) = (worktree.repository.display(), worktree.path.display());
        let branch = worktree.branch;
        Check {
            subject: "worktree".into(),
            verdict: Verdict::Note,
            found: format!("{path} (branch `{branch}`), created by `{what}`, is no longer used by a session"),
            hint: Some(format!(
                "`git -C {repository} worktree remove {path}` and `git -C {repository} branch -d {branch}` remove it"
            )),
        }
    };
    Ok(left.map(check).collect())
}
