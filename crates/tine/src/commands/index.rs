//! `tine index`: bring the search index up to date.

use std::io::Write;
use std::process::ExitCode;

use engine::{IndexPart, IndexRequest, Missing};
use transcript::render::to_json_pretty;
use transcript::text;

use super::Desk;
use crate::Outcome;
use crate::failure::Failure;
use crate::ui::{self, Bar, IndexBar};

/// Update the search index
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`tine search` updates the index too, but only for a few seconds. This command returns when the index is complete. The \
index is a cache that you can delete at any time.

Examples:
  tine index
  tine index --status --json
  tine index --rebuild")]
pub(crate) struct Args {
    /// Index keywords only, without embeddings
    #[arg(long)]
    pub words: bool,
    /// Show the state of the index without updating it
    #[arg(long, conflicts_with = "rebuild")]
    pub status: bool,
    /// Delete the index and build it again
    #[arg(long)]
    pub rebuild: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut status = match args.status {
        true => desk.tine.index_status(&Bar::new())?,
        false => {
            let update = |part| {
                let request = IndexRequest { part, time: None, rebuild: args.rebuild };
                desk.tine.update_index(request, &Bar::new(), &IndexBar::new())
            };
            let words = update(IndexPart::Words)?;
            match args.words {
                true => words,
                false => {
                    let mut all = update(IndexPart::Vectors)?;
                    all.notices.splice(0..0, words.notices);
                    all.notices.dedup();
                    all.failed = words.failed.or(all.failed);
                    all
                }
            }
        }
    };
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&status.view()))?;
    } else {
        for notice in &status.notices {
            ui::print_message(&text::one_line(notice));
        }
        let Missing { sessions, tools } = status.missing;
        let missing = match (sessions, tools) {
            (0, 0) if status.left_out > 0 => {
                let lines = ui::count(status.left_out, "line");
                format!("complete except for {lines} longer than 16 MB")
            }
            (0, 0) if status.unlisted > 0 => {
                let folders = ui::count(status.unlisted as u64, "folder");
                format!("complete except for {folders} that can't be read")
            }
            (0, 0) => "complete".to_owned(),
            (0, tools) => format!("tool output of {} not indexed yet", ui::count(tools as u64, "session")),
            (sessions, _) => format!("{} not indexed yet", ui::count(sessions as u64, "session")),
        };
        let sessions = ui::count(status.sessions as u64, "session");
        let path = ui::path(&desk.surface, std::path::Path::new(&status.path));
        writeln!(out, "{sessions}, {}, {missing}", ui::bytes(status.bytes))?;
        if let Some(vectors) = &status.vectors {
            let missing = match vectors.missing {
                0 => "complete".to_owned(),
                missing => format!("{} not embedded yet", ui::count(missing as u64, "session")),
            };
            let count = ui::count(vectors.vectors as u64, "vector");
            writeln!(out, "{count}, {}, {missing}", ui::bytes(vectors.bytes))?;
        }
        writeln!(out, "{path}{}", if status.is_written { " (update in progress)" } else { "" })?;
    }
    out.flush()?;
    match status.failed.take().map(Failure::from) {
        None => Ok(ExitCode::SUCCESS),
        // Programs have it with everything else.
        Some(_) if args.json => Ok(ExitCode::FAILURE),
        Some(failure) => Err(failure),
    }
}
