//! `tine export`: sessions as Markdown files.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{ExportRequest, Filter, Now, query_time};
use transcript::render::{Tools, to_json_pretty};
use transcript::{Agent, text};

use super::Desk;
use crate::Outcome;
use crate::cli::agent_parser;
use crate::failure::Failure;
use crate::ui::{self, Bar};

/// Write sessions as Markdown files, one for each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each file begins with the session's id, directory and date. Files are written again only when their session changed;
nothing else in the folder is touched. Keys, tokens and passwords of known shapes are masked.

Examples:
  tine export ~/sessions                     every session of every agent
  tine export ~/sessions --since 2w --prune  what is new, and without those that were deleted
  tine export notes --dir . --tools          this project's, with what tools gave back")]
pub(crate) struct Args {
    /// Where the files go
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
    pub agent: Option<Agent>,
    /// Only sessions of this directory, its repository and its worktrees
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only sessions that were written to since: `3d`, `2w`, `2026-11-01`
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// With what tools were given and gave back, thinking, and subagents
    #[arg(long, short)]
    pub tools: bool,
    /// Remove the files of sessions that are gone
    #[arg(long)]
    pub prune: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let context = desk.tine.context();
    let now = Now { time: context.clock.now(), zone: desk.surface.zone.clone() };
    let since = args.since.as_deref().map(|value| query_time(value, &now)).transpose();
    let since = since.map_err(|message| Failure::Other {
        kind: "bad_time",
        message: format!("--since: {}", text::one_line(&message)),
        hint: None,
    })?;
    let request = ExportRequest {
        folder: context.cwd.join(&args.folder),
        filter: Filter { agent: args.agent, directory: args.dir.as_ref().map(|dir| context.cwd.join(dir)) },
        since,
        tools: if args.tools { Tools::Full } else { Tools::Brief },
        prune: args.prune,
    };
    let exported = desk.tine.export(&request, &Bar::new())?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&exported))?;
    } else {
        let mut told = vec![format!("{} written", exported.written), format!("{} unchanged", exported.unchanged)];
        if args.prune {
            told.push(format!("{} removed", exported.removed));
        }
        if exported.masked > 0 {
            told.push(format!("{} masked", ui::count(exported.masked as u64, "secret")));
        }
        writeln!(out, "{}", told.join(", "))?;
        for error in &exported.errors {
            ui::warn(&text::one_line(error));
        }
    }
    out.flush()?;
    Ok(if exported.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
