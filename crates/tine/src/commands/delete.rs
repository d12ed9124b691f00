//! `tine delete`: move a session into the trash.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use engine::{Error, Session};

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar};

/// Delete a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Everything that belongs to the session moves into a trash, for a month; `tine undo` brings it back.

Examples:
  tine delete auth-try
  tine delete 1f3a --yes    without a question")]
pub(crate) struct Args {
    /// A name, an id, the beginning of one, a path, `.` or `-`
    #[arg(add = complete::sessions())]
    pub session: String,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = match desk.select_whole(&sessions, &args.session) {
        // There is no conversation behind the name, so there is nothing to lose.
        Err(Failure::Engine(Error::Unbegun(name) | Error::TranscriptGone { name, .. })) => {
            desk.tine.forget(&name)?;
            ui::say(&format!("forgot {name}; there was no conversation behind it"));
            return Ok(ExitCode::SUCCESS);
        }
        session => session?,
    };
    let label = ui::label(&session.view).to_owned();
    let before = desk.tine.goes_along(&session)?.len() as u64;
    let before = match before {
        0 => String::new(),
        count => format!(" and {} from before it was cleared", ui::count(count, "conversation")),
    };
    if !args.yes && !is_wanted(desk, &session, &before)? {
        ui::say("nothing was done");
        return Ok(ExitCode::FAILURE);
    }
    let operation = desk.tine.delete(&session)?;
    ui::say(&format!("deleted {label}{before}; `tine undo {operation}` brings it back"));
    Ok(ExitCode::SUCCESS)
}

fn is_wanted(desk: &Desk, session: &Session, before: &str) -> Result<bool, Failure> {
    let label = ui::label(&session.view);
    if !desk.surface.is_interactive {
        return Err(Failure::Other {
            kind: "not_confirmed",
            message: format!("`{label}` was not deleted, because nobody can be asked"),
            hint: Some("say `--yes`".into()),
        });
    }
    let mut stderr = io::stderr().lock();
    let turns = ui::count(u64::from(session.view.turns), "turn");
    write!(stderr, "delete {label} ({turns}, {}){before}? [y/N] ", ui::title(&session.view))?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
