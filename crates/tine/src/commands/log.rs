//! `tine log`: what tine changed.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use engine::{Effect, LogEntry, Operation, UnreadableOperation};
use jiff::Timestamp;
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
  tine undo 3        undo operation 3")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One effect on one line.
fn describe(desk: &Desk, effect: &Effect<'_>) -> String {
    let path = |path: &Path| ui::path(&desk.surface, path);
    match effect {
        Effect::Session(_, Some(made)) => format!("session {}", path(made)),
        Effect::Session(id, None) => format!("session {id}"),
        Effect::Worktree(tree, branch) => format!("worktree {} on branch {}", path(tree), text::one_line(branch)),
        Effect::Copy(copy) => format!("directory {}", path(copy)),
        Effect::Trash(1, first) => format!("{} in the trash", path(first)),
        Effect::Trash(count, first) => format!("{} and {} more in the trash", path(first), count - 1),
        Effect::Restored(count, directory) => format!("{} in {}", ui::count(*count as u64, "file"), path(directory)),
        Effect::Renamed(Some(name)) => format!("previously {name}"),
        Effect::Renamed(None) => "previously unnamed".to_owned(),
    }
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let log = desk.tine.log()?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&log))?;
    } else if log.is_empty() {
        ui::print_message("no changes yet");
    } else {
        for entry in &log {
            match entry {
                LogEntry::Operation(operation) => print(desk, &mut out, operation)?,
                LogEntry::Unreadable(unreadable) => print_unreadable(desk, &mut out, unreadable)?,
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print(desk: &Desk, out: &mut impl Write, operation: &Operation) -> io::Result<()> {
    let line = line(desk, operation.id, Some(operation.at), operation.state.as_str(), &operation.what);
    let dimmed = if operation.state.is_done() { line } else { Paint(desk.surface.color).dim(&line) };
    writeln!(out, "{dimmed}")?;
    for effect in operation.summary() {
        print_detail(desk, out, &describe(desk, &effect))?;
    }
    // A part that can't be read is missing in what the operation made.
    for part in &operation.parts {
        if let LogEntry::Unreadable(unreadable) = part {
            print_unreadable(desk, out, unreadable)?;
        }
    }
    Ok(())
}

fn print_unreadable(desk: &Desk, out: &mut impl Write, operation: &UnreadableOperation) -> io::Result<()> {
    let line = line(desk, operation.id, operation.at, &text::one_line(&operation.state), &operation.what);
    writeln!(out, "{}", Paint(desk.surface.color).dim(&line))?;
    print_detail(desk, out, &format!("unreadable: {}", text::one_line(&operation.unreadable)))
}

fn line(desk: &Desk, id: i64, at: Option<Timestamp>, state: &str, what: &str) -> String {
    let age = at.map(|at| ui::short_age(at, desk.tine.context().clock.now(), &desk.surface.zone)).unwrap_or_default();
    format!("{id:>4}  {age:>10}  {state:<7}  {}", text::one_line(what))
}

fn print_detail(desk: &Desk, out: &mut impl Write, detail: &str) -> io::Result<()> {
    writeln!(out, "{}", Paint(desk.surface.color).dim(&format!("{:26}{detail}", "")))
}
