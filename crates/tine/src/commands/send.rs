//! `tine send`: say something in a session, wherever it runs.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use engine::{Delivery, Target};
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork::{Timeout, timeout};
use super::resume;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::failure::{self, Failure};
use crate::ui;

/// Send a message to a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A session that is open in a pane receives the message there. Otherwise tine runs the agent headless until it has \
answered. Messages to a busy headless session are queued.

Examples:
  tine send auth-fix \"now the tests\"
  tine send auth-fix --wait \"which files did you change?\"
  git diff | tine send review --wait -")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Message to send; `-` reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: String,
    /// Wait for the answer and print it
    #[arg(long)]
    pub wait: bool,
    /// Maximum time to wait, such as 30s or 5m
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout)]
    pub timeout: Option<Timeout>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let mut text = args.text.clone();
    if text == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        text = String::from_utf8(bytes)
            .map_err(|_| Failure::Engine(engine::RunError::BadPrompt("is not UTF-8").into()))?;
    }
    engine::check_message(&text)?;
    let mut target = failure::target(desk.select(&args.session).map(|selection| selection.session))?;
    if let Target::Session(session) = &mut target {
        **session = resume::start(desk, (**session).clone(), None, args.json)?;
        desk.tine.remember_use(session);
    }
    let limit = args.timeout.and_then(|timeout| timeout.0);
    let sent = desk.tine.send(&target, &text, args.wait, limit)?;
    let mut out = ui::out();
    let label = sent.session.view.label();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&sent.view()))?;
    } else if let Some(answer) = &sent.answer {
        writeln!(out, "{}", transcript::text::clean(answer))?;
    } else {
        let waits = format!("`tine wait {label}` waits for the answer");
        ui::print_message(&match sent.delivery {
            Delivery::Running => format!("sent to {label}"),
            Delivery::Headless => format!("sent to {label} (headless); {waits}"),
            Delivery::Queued => format!("queued for {label}, which is busy; {waits}"),
        });
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
