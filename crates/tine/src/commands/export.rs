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

/// Export sessions as Markdown files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes one file per session and rewrites it only when the session has changed. Other files in DIR are left alone. Keys, \
tokens and passwords that tine recognizes are redacted.

Examples:
  tine export ~/sessions                     all sessions of all agents
  tine export ~/sessions --since 2w --prune  recent ones; delete stale files
  tine export notes --dir . --tools          this project, with tool output")]
pub(crate) struct Args {
    /// Directory to write to
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT", value_parser = agent_parser())]
    pub agent: Option<Agent>,
    /// Only sessions of this directory, its repository and its worktrees
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only sessions updated since TIME, such as 3d, 2w or 2026-11-01
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Include tool calls and results, thinking and subagents
    #[arg(long, short)]
    pub tools: bool,
    /// Don't redact secrets
    #[arg(long)]
    pub keep_secrets: bool,
    /// Delete the files of sessions that no longer exist
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
        keep_secrets: args.keep_secrets,
        prune: args.prune,
    };
    let exported = desk.tine.export(&request, &Bar::new())?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&exported))?;
    } else {
        let mut parts = vec![format!("{} written", exported.written), format!("{} unchanged", exported.unchanged)];
        if args.prune {
            parts.push(format!("{} removed", exported.removed));
        }
        if exported.masked > 0 {
            parts.push(format!("{} redacted", ui::count(exported.masked as u64, "secret")));
        }
        writeln!(out, "{}", parts.join(", "))?;
        for error in &exported.errors {
            ui::warn(&text::one_line(error));
        }
    }
    out.flush()?;
    Ok(if exported.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
