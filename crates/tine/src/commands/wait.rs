//! `tine wait`: until sessions are done with what they were told.

use std::io::Write;
use std::process::ExitCode;

use engine::{Error, Session};
use serde_json::Value;
use transcript::State;
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, Waiting};

/// Wait until sessions are idle
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A session that waits for a permission ends the waiting with an error: nobody but a person can answer.

Examples:
  tine wait auth-fix
  tine wait try-1 try-2 try-3 --any    until the first of them is done
  tine wait --all --timeout 10m        every session that is open")]
pub(crate) struct Args {
    /// Names, ids, beginnings of ids, paths, `.` or `-`
    #[arg(value_name = "SESSION", add = complete::sessions(), required_unless_present = "all")]
    pub sessions: Vec<String>,
    /// Until one of them is idle
    #[arg(long)]
    pub any: bool,
    /// Every session that is open
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,
    /// How long at most
    #[arg(long, value_name = "TIMEOUT", value_parser = timeout)]
    pub timeout: Option<Timeout>,
    /// Print a JSON array of the sessions that are done
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
        match desk.select_whole(&all, spec) {
            // There is nothing to be waited for.
            Err(Failure::Engine(Error::Unbegun(name))) => {
                ui::say(&format!("nothing was said in {name} yet; it is {}", desk.tine.state_unbegun(&name)?.as_str()));
            }
            session => watched.push(session?),
        }
    }
    let waiting = Waiting::new();
    let timeout = args.timeout.and_then(|timeout| timeout.0);
    let done = desk.tine.wait_for(watched, args.any, timeout, &|busy, waited| waiting.tell(&busy.view, waited))?;
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
