//! `tine send`: say something in a session, wherever it runs.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use engine::{Error, Target};
use serde_json::json;
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui;

/// Say something in a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A session that runs in a pane is told there. One that does not run is told without a terminal,
and its agent ends with the answer. It returns when the agent has begun with it, and with --wait
when it has answered.

Examples:
  tine send auth-fix \"now the tests\"
  tine send auth-fix --wait \"which files did you change?\"
  git diff | tine send review --wait -")]
pub(crate) struct Args {
    /// A name, an id, the beginning of one, a path, `.` or `-`
    #[arg(add = complete::sessions())]
    pub session: String,
    /// What to say; `-` reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: String,
    /// Wait for the answer and print it
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout)]
    pub timeout: Option<Timeout>,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut text = args.text.clone();
    if text == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        text = String::from_utf8(bytes).map_err(|_| Failure::Engine(Error::BadPrompt("is not UTF-8")))?;
    }
    engine::check_words(&text)?;
    let target = match desk.select(&args.session) {
        Err(Failure::Engine(Error::Unbegun(name))) => Target::Unbegun(name),
        selection => {
            let session = selection?.session;
            desk.tine.remember_use(&session);
            Target::Session(Box::new(session))
        }
    };
    if let (Target::Session(session), false) = (&target, args.wait)
        && session.live.is_none()
    {
        return in_the_background(desk, session, &text, args.json);
    }
    let limit = args.timeout.and_then(|timeout| timeout.0);
    let sent = desk.tine.send(&target, &text, args.wait, limit)?;
    let mut out = ui::out();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&json!({"session": sent.session.view, "answer": sent.answer})))?;
    } else if let Some(answer) = sent.answer {
        writeln!(out, "{}", transcript::text::clean(&answer))?;
    } else {
        ui::say(&format!("{} has begun with it", sent.session.view.label()));
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A session that does not run is told by a process that goes on without us.
fn in_the_background(desk: &Desk, session: &engine::Session, text: &str, json: bool) -> Outcome {
    let session = desk.tine.send_in_background(session, text)?;
    let mut out = ui::out();
    let label = session.view.label();
    match json {
        true => writeln!(out, "{}", to_json_pretty(&json!({"session": session.view, "answer": null})))?,
        false => ui::say(&format!("{label} has begun with it, without a terminal; `tine wait {label}` waits for it")),
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
