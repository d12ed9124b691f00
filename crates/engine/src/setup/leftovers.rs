//! Worktrees and copies of directories that tine created and no session uses.

use std::path::Path;

use crate::ctx::Ctx;
use crate::operations::leftovers::{own_workspaces, process_in};
use crate::progress::Quiet;
use crate::registry::operations::CreatedWorkspace;
use crate::setup::Result;
use crate::setup::doctor::{Check, Verdict};

/// Worktrees and copies without a session.
pub(crate) fn leftover_checks(ctx: &Ctx) -> Result<Vec<Check>> {
    let made = own_workspaces(ctx)?;
    if made.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = crate::sessions::survey::all_sessions(ctx, &Quiet)?;
    let is_used = |path: &Path| {
        let mut directories = sessions.iter().filter_map(|session| session.view.cwd.as_ref());
        directories.any(|cwd| cwd.starts_with(path)) || process_in(ctx, path).is_some()
    };
    let left = made.into_iter().filter(|(_, made)| !is_used(made.path()));
    Ok(left.map(|(what, made)| check(&what, &made)).collect())
}

fn check(what: &str, made: &CreatedWorkspace) -> Check {
    let path = made.path().display();
    let (subject, found, hint) = match made {
        CreatedWorkspace::Worktree(worktree) => {
            let (repository, branch) = (worktree.repository.display(), &worktree.branch);
            let hint = format!(
                "`git -C {repository} worktree remove {path}` and `git -C {repository} branch -d {branch}` remove it"
            );
            ("worktree", format!("{path} (branch `{branch}`), created by `{what}`"), hint)
        }
        CreatedWorkspace::Copy(copy) => {
            let hint = match copy.is_untouched() {
                true => format!("it has not changed since it was copied; `rm -r {path}` removes it"),
                false => "it has changed since it was copied; save what you need before you remove it".into(),
            };
            ("copy", format!("{path} (copy of {}), created by `{what}`", copy.source.display()), hint)
        }
    };
    let found = format!("{found}, is no longer used by a session");
    Check { subject: subject.into(), verdict: Verdict::Note, found, hint: Some(hint) }
}
