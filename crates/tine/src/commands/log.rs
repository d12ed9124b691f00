//! `tine log`: what tine changed.

use std::io::Write;
use std::process::ExitCode;

use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::ui::{self, Paint};

/// List the changes that tine made, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine log
  tine undo 3        take back operation 3")]
pub(crate) struct Args {
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let operations = desk.tine.registry().operations()?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&operations))?;
    } else if operations.is_empty() {
        ui::say("tine has changed nothing yet");
    } else {
        let now = desk.tine.context().clock.now();
        for operation in &operations {
            let age = ui::short_age(operation.at, now, &desk.surface.zone);
            let what = text::one_line(&operation.what);
            let line = format!("{:>4}  {age:>10}  {:<7}  {what}", operation.id, operation.state);
            let dimmed = if operation.state == "done" { line } else { Paint(desk.surface.color).dim(&line) };
            writeln!(out, "{dimmed}")?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
