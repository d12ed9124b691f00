//! `tine wait`: until sessions are done with what they were told.

use std::io::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Error, Session};
use serde_json::Value;
use transcript::State;
use transcript::render::to_json_pretty;

use super::Desk;
use super::fork::{Timeout, timeout};
use crate::Outcome;
use crate::complete;
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

/// A turn takes seconds at least.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let all = desk.tine.all_sessions(&Bar::new())?;
    let mut watched: Vec<Session> = match args.all {
        true => all.iter().filter(|session| session.view.state != State::Stopped).cloned().collect(),
        false => args.sessions.iter().map(|spec| desk.select_whole(&all, spec)).collect::<Result<_, _>>()?,
    };
    let begun = Instant::now();
    let waiting = Waiting::new();
    let done = loop {
        let is_done = |session: &&Session| desk.tine.is_done(session);
        let done: Vec<Session> = watched.iter().filter(is_done).cloned().collect();
        if done.len() == watched.len() || args.any && !done.is_empty() {
            break done;
        }
        if let Some(asks) = watched.iter().find(|session| session.view.state == State::Waiting) {
            let what = asks.live.as_ref().and_then(|live| live.waiting_for.clone());
            let what = what.unwrap_or_else(|| "a permission".into());
            return Err(Error::Asks { session: asks.view.label().to_owned(), what }.into());
        }
        let waited = begun.elapsed();
        let busy = watched.iter().find(|session| !desk.tine.is_done(session)).expect("one that is not done");
        if args.timeout.and_then(|timeout| timeout.0).is_some_and(|timeout| waited >= timeout) {
            let (session, state) = (busy.view.label().to_owned(), busy.view.state);
            return Err(Error::StillAtWork { session, state, seconds: waited.as_secs() }.into());
        }
        waiting.tell(&busy.view, waited);
        thread::sleep(PAUSE);
        let now = desk.tine.all_sessions(&engine::Quiet)?;
        for session in &mut watched {
            let key = session.key();
            if let Some(new) = now.iter().find(|other| other.view.agent == key.agent && other.view.id == key.id) {
                *session = new.clone();
            }
        }
    };
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
