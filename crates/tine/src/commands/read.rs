//! `tine read`: what a session answered last, or what its pane shows.

use std::io::Write;
use std::process::ExitCode;

use engine::{LastAnswer, ReadText, Target};
use transcript::render::to_json_pretty;

use super::Desk;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::failure::{self, Failure};
use crate::ui;

/// Print a session's last answer or its screen
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine read auth-fix             the last answer, from the transcript
  tine read auth-fix --screen    what its pane shows now")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Print the last answer (the default)
    #[arg(long, conflicts_with = "screen")]
    pub last: bool,
    /// Print what the pane shows
    #[arg(long)]
    pub screen: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let selected = desk.select(&args.session).map(|selection| selection.session);
    let target = if args.screen { failure::target(selected)? } else { selected?.into() };
    let read = match &target {
        Target::Session(session) if !args.screen => match desk.tine.last_answer(session)? {
            LastAnswer::Answer { text, .. } => ReadText::Answer(text),
            other => return Err(no_answer(session, &other)),
        },
        target => ReadText::Screen(desk.tine.screen(target)?),
    };
    let mut out = ui::out();
    match args.json {
        true => writeln!(out, "{}", to_json_pretty(&read.view(&target)))?,
        false => writeln!(out, "{}", transcript::text::clean(read.as_str().trim_end()))?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn no_answer(session: &engine::Session, answer: &LastAnswer) -> Failure {
    let label = session.view.label();
    let (message, hint) = match answer {
        LastAnswer::NotAsked => {
            (format!("`{label}` is ready and has no messages yet"), format!("`tine send {label} TEXT` sends one"))
        }
        LastAnswer::Failed(failure) => {
            let why = failure.as_ref().map(|failure| format!(": {}", transcript::text::one_line(&failure.message)));
            (
                format!("the last turn of `{label}` ended without an answer{}", why.unwrap_or_default()),
                format!("`tine show {label}` shows how far it got"),
            )
        }
        LastAnswer::Pending | LastAnswer::Answer { .. } => {
            (format!("`{label}` has not answered yet"), format!("`tine wait {label}` waits for it"))
        }
    };
    Failure::Other { kind: "no_answer", message, hint: Some(hint) }
}
