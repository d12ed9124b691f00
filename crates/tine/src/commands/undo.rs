//! `tine undo`: take a change back.

use std::process::ExitCode;

use super::Desk;
use crate::Outcome;
use crate::ui;

/// Take back a change that tine made: the last one, or the one that is named
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A fork in which somebody went on or works is not removed, unless forced; notes of a project that were changed stay.

Examples:
  tine undo
  tine undo 3        the operation with this number in `tine log`")]
pub(crate) struct Args {
    /// The number of the operation
    #[arg(value_name = "OPERATION")]
    pub operation: Option<i64>,
    /// Remove what it made even if somebody went on with it, works in it or locked it
    #[arg(long)]
    pub force: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let undone = desk.tine.undo(args.operation, args.force)?;
    ui::say(&format!("undone: {}", undone.what));
    Ok(ExitCode::SUCCESS)
}
