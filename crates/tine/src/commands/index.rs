//! `tine index`: bring the search index up to date.

use std::io::Write;
use std::process::ExitCode;

use engine::{IndexStatus, Missing};
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, Bar, IndexBar};

/// Bring the search index up to date
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`tine search` does this by itself, as far as a few seconds go; this returns when all is in: first the words of what was
said, then those of what tools did, then a vector for each piece of what was said, by which it is found in other words.
The index is a cache: deleted or damaged, it is built anew.

Examples:
  tine index
  tine index --status --json
  tine index --rebuild")]
pub(crate) struct Args {
    /// Words alone
    #[arg(long)]
    pub words: bool,
    /// Tell what is in it, and change nothing
    #[arg(long, conflicts_with = "rebuild")]
    pub status: bool,
    /// Throw it away and build it anew
    #[arg(long)]
    pub rebuild: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What programs are told.
#[derive(serde::Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    status: &'a IndexStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut status = match args.status {
        true => desk.tine.index_status(&Bar::new())?,
        false => {
            let words = desk.tine.update_index(None, args.rebuild, &Bar::new(), &IndexBar::new())?;
            match args.words {
                true => words,
                false => {
                    let mut all = desk.tine.update_vectors(None, args.rebuild, &Bar::new(), &IndexBar::new())?;
                    all.notices.splice(0..0, words.notices);
                    all.notices.dedup();
                    all.failed = words.failed.or(all.failed);
                    all
                }
            }
        }
    };
    let failure = status.failed.take().map(Failure::from);
    let mut out = ui::out();
    if args.json {
        let error = failure.as_ref().map(|failure| failure.as_json()["error"].take());
        writeln!(out, "{}", to_json_pretty(&Told { status: &status, error }))?;
    } else {
        for notice in &status.notices {
            ui::say(&text::one_line(notice));
        }
        let Missing { sessions, tools } = status.missing;
        let missing = match (sessions, tools) {
            (0, 0) if status.left_out > 0 => {
                let lines = ui::count(status.left_out, "line");
                format!("complete but for {lines} of 16 MB and more, too long to be searched")
            }
            (0, 0) if status.unlisted > 0 => {
                let folders = ui::count(status.unlisted as u64, "folder");
                format!("complete but for {folders} that cannot be looked into")
            }
            (0, 0) => "complete".to_owned(),
            (0, tools) => format!("tool text of {} is missing", ui::count(tools as u64, "session")),
            (sessions, _) => format!("{} missing", ui::count(sessions as u64, "session")),
        };
        let sessions = ui::count(status.sessions as u64, "session");
        let path = ui::path(&desk.surface, std::path::Path::new(&status.path));
        writeln!(out, "{sessions}, {}, {missing}", ui::bytes(status.bytes))?;
        if let Some(vectors) = &status.vectors {
            let missing = match vectors.missing {
                0 => "complete".to_owned(),
                missing => format!("those of {} missing", ui::count(missing as u64, "session")),
            };
            let count = ui::count(vectors.vectors as u64, "vector");
            writeln!(out, "{count}, {}, {missing}", ui::bytes(vectors.bytes))?;
        }
        writeln!(out, "{path}{}", if status.is_written { " (being written now)" } else { "" })?;
    }
    out.flush()?;
    match failure {
        None => Ok(ExitCode::SUCCESS),
        // Programs have it with everything else.
        Some(_) if args.json => Ok(ExitCode::FAILURE),
        Some(failure) => Err(failure),
    }
}
