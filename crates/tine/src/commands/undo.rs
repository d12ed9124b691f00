//! `tine undo`: take a change back.

use std::process::ExitCode;

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::ui;

/// Undo a change that tine made
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A fork that has new messages or is in use is kept unless you pass --force.

Examples:
  tine undo          undo the last change
  tine undo 3        undo operation 3 of `tine log`")]
pub(crate) struct Args {
    /// Number of the operation in `tine log` [default: the last one]
    #[arg(value_name = "OPERATION", add = complete::operations())]
    pub operation: Option<i64>,
    /// Undo even if a fork has new messages, is in use or is locked
    #[arg(long)]
    pub force: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let undone = desk.tine.undo(args.operation, args.force)?;
    ui::print_message(&format!("undone: {}", undone.what));
    Ok(ExitCode::SUCCESS)
}
