//! `tine delete`: move a session into the trash.

use std::process::ExitCode;

use engine::{Error, OwnWorkspace, Session, SessionsError};
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, confirm};

/// Delete a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The session moves to tine's trash, where it stays for a month. `tine undo` restores it. A worktree with uncommitted \
changes is never removed, nor is a branch with new commits or a copied directory that has changed.

Examples:
  tine delete auth-try
  tine delete auth-try --worktree
  tine delete 1f3a --yes")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Also remove the worktree and branch, or the copied directory, that tine created for it
    #[arg(long, short)]
    pub worktree: bool,
    /// Skip confirmation prompts
    #[arg(long, short)]
    pub yes: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = match desk.select_whole(&sessions, &args.session) {
        // The name has no conversation, so nothing can be lost.
        Err(Failure::Engine(Error::Sessions(
            SessionsError::EmptySession(name) | SessionsError::TranscriptGone { name, .. },
        ))) => {
            desk.tine.forget(&name)?;
            ui::print_message(&format!("removed the name {name}; it had no conversation"));
            return Ok(ExitCode::SUCCESS);
        }
        session => session?,
    };
    let label = ui::label(&session.view).to_owned();
    let plan = desk.tine.plan_deletion(&session)?;
    let before = match plan.previous as u64 {
        0 => String::new(),
        count => format!(" and {} from before `/clear`", ui::count(count, "conversation")),
    };
    let workspace = plan.workspace;
    let along = match &workspace {
        Some(workspace) if args.worktree => format!(" with its {} {}", kind_of(workspace), workspace.path().display()),
        _ => String::new(),
    };
    if !args.yes && !is_wanted(desk, &session, &format!("{before}{along}"))? {
        ui::print_message("cancelled");
        return Ok(ExitCode::FAILURE);
    }
    let goes_along = match &workspace {
        Some(workspace) if !args.worktree && !args.yes && workspace.obstacle.is_none() => {
            let (kind, path, branch) = (kind_of(workspace), workspace.path().display(), branch_of(workspace));
            confirm::confirmed(&format!("Also remove its {kind} {path}{branch}?"))?
        }
        _ => args.worktree,
    };
    let operation = desk.tine.delete(&session, workspace.as_ref().filter(|_| goes_along))?;
    ui::print_message(&format!("deleted {label}{before}; `tine undo {operation}` restores it"));
    if let Some(workspace) = &workspace {
        ui::print_message(&text::clean(&workspace_outcome(workspace, goes_along)));
    }
    Ok(ExitCode::SUCCESS)
}

fn kind_of(workspace: &OwnWorkspace) -> &'static str {
    if workspace.branch().is_some() { "worktree" } else { "copied directory" }
}

/// The branch that goes with a worktree, if it does.
fn branch_of(workspace: &OwnWorkspace) -> String {
    match workspace.branch() {
        Some((branch, _)) if !workspace.has_commits => format!(" and the branch `{branch}`"),
        _ => String::new(),
    }
}

/// The outcome for the worktree or the copied directory of a deleted session.
fn workspace_outcome(workspace: &OwnWorkspace, is_gone: bool) -> String {
    let (kind, path) = (kind_of(workspace), workspace.path().display());
    let branch = workspace.branch();
    let and_branch = branch.map(|(branch, _)| format!(" and the branch `{branch}`")).unwrap_or_default();
    match (is_gone, &workspace.obstacle, branch) {
        (true, _, Some((branch, _))) if workspace.has_commits => {
            format!("removed its {kind} {path}; kept the branch `{branch}`, which has new commits")
        }
        (true, ..) => format!("removed its {kind} {path}{and_branch}"),
        (false, Some(why), _) => format!("kept its {kind} {path}{and_branch}: {why}"),
        (false, None, Some((_, repository))) => format!(
            "kept its {kind} {path}{and_branch}; to remove it, run `git -C {} worktree remove {path}`",
            repository.display()
        ),
        (false, None, None) => format!("kept its {kind} {path}; to remove it, run `rm -r {path}`"),
    }
}

fn is_wanted(desk: &Desk, session: &Session, before: &str) -> Result<bool, Failure> {
    let label = ui::label(&session.view);
    confirm::require_terminal(&desk.surface, false, &format!("did not delete `{label}`"), "pass `--yes` to delete it")?;
    let turns = ui::turns(&session.view);
    Ok(confirm::confirmed(&format!("Delete {label} ({turns}, {}){before}?", ui::title(&session.view)))?)
}
