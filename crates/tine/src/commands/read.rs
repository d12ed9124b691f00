//! `tine read`: what a session answered last, or what its pane shows.

use std::io::Write;
use std::process::ExitCode;

use engine::{Error, SessionsError};
use serde_json::json;
use transcript::render::to_json_pretty;

use super::Desk;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::failure::Failure;
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
    let session = match desk.select(&args.session) {
        Err(Failure::Engine(Error::Sessions(SessionsError::Unbegun(name)))) if args.screen => {
            let screen = desk.tine.screen_unbegun(&name)?;
            let mut out = ui::out();
            match args.json {
                true => writeln!(out, "{}", to_json_pretty(&json!({"session": {"name": name}, "screen": screen})))?,
                false => writeln!(out, "{}", transcript::text::clean(screen.trim_end()))?,
            }
            out.flush()?;
            return Ok(ExitCode::SUCCESS);
        }
        selection => selection?.session,
    };
    let (what, text) = match args.screen {
        true => ("screen", desk.tine.screen(&session)?),
        false => ("answer", desk.tine.last_answer(&session)?.ok_or_else(|| no_answer(desk, &session))?),
    };
    let mut out = ui::out();
    match args.json {
        true => writeln!(out, "{}", to_json_pretty(&json!({"session": session.view, what: text})))?,
        false => writeln!(out, "{}", transcript::text::clean(text.trim_end()))?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn no_answer(desk: &Desk, session: &engine::Session) -> Failure {
    let label = session.view.label();
    if desk.tine.is_done(session) && desk.tine.is_freshly_seeded(session).unwrap_or_default() {
        return Failure::Other {
            kind: "no_answer",
            message: format!("`{label}` is ready and has no messages yet"),
            hint: Some(format!("`tine send {label} TEXT` sends one")),
        };
    }
    if desk.tine.is_done(session) {
        return Failure::Other {
            kind: "no_answer",
            message: match desk.tine.last_failure(session) {
                Some(failure) => {
                    let why = transcript::text::one_line(&failure.message);
                    format!("the last turn of `{label}` ended without an answer: {why}")
                }
                None => format!("the last turn of `{label}` ended without an answer"),
            },
            hint: Some(format!("`tine show {label}` shows how far it got")),
        };
    }
    Failure::Other {
        kind: "no_answer",
        message: format!("`{label}` has not answered yet"),
        hint: Some(format!("`tine wait {label}` waits for it")),
    }
}
