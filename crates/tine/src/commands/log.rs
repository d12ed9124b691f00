//! `tine log`: what tine changed.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use engine::Effect;
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

/// One effect on one line.
fn told(desk: &Desk, effect: &Effect<'_>) -> String {
    let path = |path: &Path| ui::path(&desk.surface, path);
    match effect {
        Effect::Session(_, Some(made)) => format!("session {}", path(made)),
        Effect::Session(id, None) => format!("session {id}"),
        Effect::Worktree(tree, branch) => format!("worktree {} on branch {}", path(tree), text::one_line(branch)),
        Effect::Copy(copy) => format!("directory {}", path(copy)),
        Effect::Trash(1, first) => format!("{} in the trash", path(first)),
        Effect::Trash(count, first) => format!("{} and {} more in the trash", path(first), count - 1),
        Effect::Renamed(Some(name)) => format!("was called {name}"),
        Effect::Renamed(None) => "had no name".to_owned(),
    }
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
            for effect in operation.told() {
                let line = format!("{:26}{}", "", told(desk, &effect));
                writeln!(out, "{}", Paint(desk.surface.color).dim(&line))?;
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
