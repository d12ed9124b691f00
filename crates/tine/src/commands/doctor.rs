//! `tine doctor`: is everything as it should be?

use std::io::Write;
use std::process::ExitCode;

use engine::Verdict;
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::ui::{self, Bar, Paint};

/// Check agents, files, registry and cache
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exits with status 1 if something is broken.

Examples:
  tine doctor
  tine doctor --repair    restore a damaged registry from its backup
  tine doctor --json | jq '.checks[] | select(.verdict == \"bad\")'")]
pub(crate) struct Args {
    /// Restore a damaged or lost registry, and the records of deletions that are in the trash
    #[arg(long)]
    pub repair: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let report = desk.tine.doctor(args.repair, &Bar::new())?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&report))?;
    } else {
        let paint = Paint(desk.surface.color);
        if report.repaired.as_ref().is_some_and(Vec::is_empty) {
            ui::print_message("nothing to repair");
        }
        for sentence in report.repaired.iter().flatten() {
            ui::print_message(&text::clean(sentence));
        }
        for check in &report.checks {
            let mark = match check.verdict {
                Verdict::Good => paint.good("ok  "),
                Verdict::Note => paint.note("note"),
                Verdict::Bad => paint.bad("bad "),
            };
            writeln!(out, "{mark}  {}  {}", text::pad(&check.subject, 15), text::clean(&check.found))?;
            if let Some(hint) = &check.hint {
                writeln!(out, "      {}  {}", text::pad("", 15), paint.dim(&text::clean(hint)))?;
            }
        }
    }
    out.flush()?;
    Ok(if report.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
