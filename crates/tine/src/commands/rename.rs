//! `tine rename`: another name for a session, in tine and in the agent's own list.

use std::process::ExitCode;

use transcript::SessionName;

use super::Desk;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::ui::{self, Bar, Paint};

/// Rename a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The agent's own session list shows the new name too. `tine undo` restores the old name.

Examples:
  tine rename auth-fix auth-cookies
  tine rename . auth-fix")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// New name
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: SessionName,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = desk.select_whole(&sessions, &args.session)?;
    desk.tine.rename(&session, &args.name)?;
    let name = Paint(desk.surface.color).name(args.name.as_str());
    ui::print_message(&format!("renamed {} to {name}", session.view.label()));
    Ok(ExitCode::SUCCESS)
}
