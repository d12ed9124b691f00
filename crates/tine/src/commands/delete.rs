//! `tine delete`: move a session into the trash.

use std::process::ExitCode;

use engine::{Error, OwnWorktree, Session, SessionsError};
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
changes is never removed, nor is a branch with commits of its own.

Examples:
  tine delete auth-try
  tine delete auth-try --worktree
  tine delete 1f3a --yes")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Also remove the worktree and branch that tine created for it
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
            SessionsError::Unbegun(name) | SessionsError::TranscriptGone { name, .. },
        ))) => {
            desk.tine.forget(&name)?;
            ui::say(&format!("removed the name {name}; it had no conversation"));
            return Ok(ExitCode::SUCCESS);
        }
        session => session?,
    };
    let label = ui::label(&session.view).to_owned();
    let before = desk.tine.goes_along(&session)?.len() as u64;
    let before = match before {
        0 => String::new(),
        count => format!(" and {} from before `/clear`", ui::count(count, "conversation")),
    };
    let worktree = desk.tine.worktree_of(&session)?;
    let along = match &worktree {
        Some(worktree) if args.worktree => format!(" with its worktree {}", worktree.path().display()),
        _ => String::new(),
    };
    if !args.yes && !is_wanted(desk, &session, &format!("{before}{along}"))? {
        ui::say("cancelled");
        return Ok(ExitCode::FAILURE);
    }
    let goes_along = match &worktree {
        Some(worktree) if !args.worktree && !args.yes && worktree.obstacle.is_none() => {
            let (path, branch) = (worktree.path().display(), branch_of(worktree));
            confirm::confirmed(&format!("Also remove its worktree {path}{branch}?"))?
        }
        _ => args.worktree,
    };
    let operation = desk.tine.delete(&session, worktree.as_ref().filter(|_| goes_along))?;
    ui::say(&format!("deleted {label}{before}; `tine undo {operation}` restores it"));
    if let Some(worktree) = &worktree {
        ui::say(&text::clean(&fate_of(worktree, goes_along)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The branch that goes with a worktree, if it does.
fn branch_of(worktree: &OwnWorktree) -> String {
    match worktree.has_commits {
        true => String::new(),
        false => format!(" and the branch `{}`", worktree.branch()),
    }
}

/// What became of the worktree of a session that was deleted.
fn fate_of(worktree: &OwnWorktree, is_gone: bool) -> String {
    let (path, branch, repository) = (worktree.path().display(), worktree.branch(), worktree.repository().display());
    match (is_gone, &worktree.obstacle) {
        (true, _) if worktree.has_commits => {
            format!("removed its worktree {path}; kept the branch `{branch}`, which has new commits")
        }
        (true, _) => format!("removed its worktree {path} and the branch `{branch}`"),
        (false, Some(why)) => format!("kept its worktree {path} and the branch `{branch}`: {why}"),
        (false, None) => format!(
            "kept its worktree {path} and the branch `{branch}`; to remove it, run `git -C {repository} worktree remove {path}`"
        ),
    }
}

fn is_wanted(desk: &Desk, session: &Session, before: &str) -> Result<bool, Failure> {
    let label = ui::label(&session.view);
    confirm::require_terminal(&desk.surface, false, &format!("did not delete `{label}`"), "pass `--yes` to delete it")?;
    let turns = ui::turns(&session.view);
    Ok(confirm::confirmed(&format!("Delete {label} ({turns}, {}){before}?", ui::title(&session.view)))?)
}
