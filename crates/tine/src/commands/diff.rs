//! `tine diff`: what changed between two turns, or since a turn.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use engine::{CodeAt, CodeDiff, DiffForm};
use transcript::render::to_json_pretty;

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, code, pager};

/// Show how the code has changed since a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SESSION@3 is the code at the end of turn 3; without `@`, it is the last turn. With one point, the code is compared with \
the working tree. Colours and the pager are those of git.

Examples:
  tine diff auth-fix@3                    what changed since turn 3
  tine diff auth-fix@3 auth-fix@4         what turn 4 changed
  tine diff auth-fix@3 --stat -- src      only line counts, in one folder
  tine diff auth-fix@3 auth-try > x.patch")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION@N", help = code::POINT, add = complete::sessions())]
    pub from: String,
    #[arg(value_name = "SESSION@M", help = "The other point [default: the working tree]", add = complete::sessions())]
    pub to: Option<String>,
    /// Show only how many lines changed in which file
    #[arg(long)]
    pub stat: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Files and folders to compare
    #[arg(last = true, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let from = desk.select_among(&sessions, &args.from)?;
    let from = CodeAt::of(&desk.tine, &from.session, from.turns)?;
    let to = match &args.to {
        Some(spec) => {
            let to = desk.select_among(&sessions, spec)?;
            Some(CodeAt::of(&desk.tine, &to.session, to.turns)?)
        }
        None => None,
    };
    let paths = code::inner_paths(desk, &from.repository, &args.paths);
    let diff = CodeDiff::of(&desk.tine, from, to)?;
    if args.json {
        let mut out = ui::out();
        writeln!(out, "{}", to_json_pretty(&diff.view(&paths)?))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    code::mention_left_out(diff.left_out(), "not compared");
    let form = if args.stat { DiffForm::Stat } else { DiffForm::Patch };
    let command = diff.command(form, desk.surface.color, desk.surface.width, &paths);
    show(desk, command)
}

/// Runs a command whose output people read, through their pager.
fn show(desk: &Desk, mut command: Command) -> Outcome {
    let failed = |error: io::Error| Failure::Other {
        kind: "git",
        message: format!("cannot compare: {error}"),
        hint: Some("`tine doctor` checks git".into()),
    };
    let mut pager = desk.surface.is_terminal.then(|| pager::start(desk)).flatten();
    if let Some(pager) = &mut pager {
        command.stdout(pager.stdin.take().map_or_else(Stdio::inherit, Stdio::from));
    } else {
        command.stdout(Stdio::inherit());
    }
    let status = command.stdin(Stdio::null()).stderr(Stdio::inherit()).status().map_err(failed)?;
    // The pager reads until the last end of the pipe is closed.
    drop(command);
    if let Some(mut pager) = pager {
        pager.wait().map_err(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
