//! `tine wait`: until sessions have finished their work.

use std::io::Write;
use std::process::ExitCode;

use engine::{Session, Target, Until};
use serde_json::Value;
use transcript::State;
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::ui::{self, Bar, Waiting};

/// Wait until sessions are idle
#[derive(Debug, clap::Args)]
#[command(after_help = "\
If a session asks for permission, the command fails: only you can answer.

Examples:
  tine wait auth-fix
  tine wait try-1 try-2 try-3 --any    until the first one is idle
  tine wait --all --timeout 10m        until all open sessions are idle")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions(), required_unless_present = "all")]
    pub sessions: Vec<String>,
    /// Return as soon as one session is idle
    #[arg(long)]
    pub any: bool,
    /// Wait for all open sessions
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,
    /// Maximum time to wait, such as 30s or 5m
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout)]
    pub timeout: Option<Timeout>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let all = desk.tine.all_sessions(&Bar::new())?;
    let mut watched: Vec<Session> = Vec::new();
    if args.all {
        watched.extend(all.iter().filter(|session| session.view.state != State::Stopped).cloned());
    }
    for spec in &args.sessions {
        match desk.target(&all, spec)? {
            // There is nothing to be waited for.
            target @ Target::EmptySession(_) => {
                let status = desk.tine.status(&target)?;
                ui::print_message(&format!(
                    "{} has no messages yet; it is {}",
                    status.label(),
                    status.state().as_str()
                ));
            }
            Target::Session(session) => watched.push(*session),
        }
    }
    let waiting = Waiting::new();
    let timeout = args.timeout.and_then(|timeout| timeout.0);
    let until = if args.any { Until::AnyDone } else { Until::AllDone };
    let done = desk.tine.wait_for(watched, until, timeout, &|busy, waited| waiting.show(&busy.view, waited))?;
    drop(waiting);
    let mut out = ui::out();
    if args.json {
        let views: Vec<Value> = done.iter().filter_map(|session| serde_json::to_value(&session.view).ok()).collect();
        writeln!(out, "{}", to_json_pretty(&views))?;
    } else {
        for session in &done {
            writeln!(out, "{} {}", session.view.label(), session.view.state.as_str())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
