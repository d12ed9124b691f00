//! `tine restore`: set files to what they were at a turn.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{CodeAt, RestoreChange, RestorePlan};
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::ui::{self, Bar, code, confirm};

/// Restore files to their state at a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In the working tree itself, files that did not exist at that turn are removed; elsewhere, files are only added or \
replaced. Ignored files, secrets and large files stay as they are. tine asks before it changes existing files, and \
`tine undo` puts everything back.

Examples:
  tine restore auth-fix@3 --to .            the whole working tree
  tine restore auth-fix@3 src/main.rs --to .
  tine restore auth-fix@3 --to /tmp/then    in a new directory
  tine restore auth-fix@3 --to . --plan     only show what would change")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION@N", help = code::POINT, add = complete::sessions())]
    pub point: String,
    /// Files and folders to restore [default: all]
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Directory to restore to
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub to: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub plan: bool,
    /// Skip confirmation prompts
    #[arg(long, short)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How many files a question lists.
const LISTED: usize = 10;

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let point = desk.select_among(&sessions, &args.point)?;
    let turn = point.turns.unwrap_or(point.session.view.turns);
    let then = CodeAt::of(&desk.tine, &point.session, point.turns)?;
    let what = format!("{}@{turn}", ui::label(&point.session.view));
    let paths = code::inner_paths(desk, &then.repository, &args.paths);
    let directory = desk.tine.context().cwd.join(&args.to);
    let plan = RestorePlan::of(&desk.tine, &then, &what, &paths, &directory)?;
    code::mention_doubts(&then);
    if args.plan || plan.files.is_empty() {
        return print(desk, args, &plan, None);
    }
    if plan.touches_existing() && !args.yes {
        let (replaced, removed) = (plan.count(RestoreChange::Replace), plan.count(RestoreChange::Remove));
        let place = ui::path(&desk.surface, &plan.directory);
        let hint = "pass `--yes` to change existing files; `tine undo` puts them back";
        confirm::require_terminal(&desk.surface, args.json, &format!("did not restore {what}"), hint)?;
        for file in plan.files.iter().filter(|file| file.change != RestoreChange::Create).take(LISTED) {
            ui::print_message(&format!(
                "  {:<8}{}",
                file.change.as_str(),
                text::one_line(&file.path.to_string_lossy())
            ));
        }
        if replaced + removed > LISTED {
            ui::print_message(&format!("  and {} more", replaced + removed - LISTED));
        }
        let (replaced, removed) = (ui::count(replaced as u64, "file"), ui::count(removed as u64, "file"));
        if !confirm::confirmed(&format!("Replace {replaced} and remove {removed} in {place}?"))? {
            ui::print_message("cancelled");
            return Ok(ExitCode::FAILURE);
        }
    }
    let operation = plan.apply(&desk.tine)?;
    print(desk, args, &plan, Some(operation))
}

fn print(desk: &Desk, args: &Args, plan: &RestorePlan, operation: Option<i64>) -> Outcome {
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&plan.view(operation)))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let place = ui::path(&desk.surface, &plan.directory);
    if operation.is_none() {
        for file in &plan.files {
            writeln!(out, "{:<8}{}", file.change.as_str(), text::one_line(&file.path.to_string_lossy()))?;
        }
        out.flush()?;
    }
    code::mention_left_out(plan.left_out.iter().map(|left| left.path.as_path()), "left as they are");
    let counts =
        [(RestoreChange::Create, "created"), (RestoreChange::Replace, "replaced"), (RestoreChange::Remove, "removed")];
    let counts = counts.map(|(change, word)| (plan.count(change), word));
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    match (operation, counts.is_empty()) {
        (_, true) => ui::print_message(&format!("{place} is already in the state of {}", plan.what)),
        (None, false) => ui::print_message(&format!("would restore {} in {place}: {}", plan.what, counts.join(", "))),
        (Some(operation), false) => ui::print_message(&format!(
            "restored {} in {place}: {}; `tine undo {operation}` puts it back",
            plan.what,
            counts.join(", ")
        )),
    }
    Ok(ExitCode::SUCCESS)
}
