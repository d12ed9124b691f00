//! `tine interrupt`, `tine stop` and `tine focus`: what is done to a session that runs.

use std::process::ExitCode;

use engine::{Error, Target};
use serde_json::{Value, json};
use transcript::State;

use super::Desk;
use crate::Outcome;
use crate::complete;
use crate::failure::Failure;
use crate::ui;

/// Interrupt what a session is doing
#[derive(Debug, clap::Args)]
pub(crate) struct InterruptArgs {
    /// A name, an id, the beginning of one, a path, `.` or `-`
    #[arg(add = complete::sessions())]
    pub session: String,
    /// Print a JSON object: the session
    #[arg(long)]
    pub json: bool,
}

/// End the agent of a session; the conversation stays
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    /// Names, ids, beginnings of ids, paths, `.` or `-`
    #[arg(value_name = "SESSION", add = complete::sessions(), required = true)]
    pub sessions: Vec<String>,
    /// Print a JSON array of the sessions
    #[arg(long)]
    pub json: bool,
}

/// Bring the pane of a session to front
#[derive(Debug, clap::Args)]
pub(crate) struct FocusArgs {
    /// A name, an id, the beginning of one, a path, `.` or `-`
    #[arg(add = complete::sessions())]
    pub session: String,
    /// Print a JSON object: the session
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn interrupt(desk: &Desk, args: &InterruptArgs) -> Outcome {
    let session = desk.select(&args.session)?.session;
    let now = desk.tine.interrupt(&session)?;
    match args.json {
        true => ui::print_json(&json!(now.view))?,
        false => ui::say(&format!("{} is {}", now.view.label(), now.view.state.as_str())),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn stop(desk: &Desk, args: &StopArgs) -> Outcome {
    let all = desk.tine.all_sessions(&ui::Bar::new())?;
    let mut targets = Vec::new();
    for spec in &args.sessions {
        targets.push(match desk.select_whole(&all, spec) {
            Err(Failure::Engine(Error::Unbegun(name))) => Target::Unbegun(name),
            session => Target::Session(Box::new(session?)),
        });
    }
    // That one cannot be ended is no reason to let the others run.
    let mut failed = None;
    let mut stopped: Vec<Value> = Vec::new();
    for target in &targets {
        match end(desk, target) {
            Ok((label, told)) => {
                if !args.json {
                    ui::say(&format!("{label} is stopped"));
                }
                stopped.push(told);
            }
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    if args.json {
        ui::print_json(&json!(stopped))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends one, and says who it was.
fn end(desk: &Desk, target: &Target) -> Result<(String, Value), Failure> {
    match target {
        Target::Unbegun(name) => {
            desk.tine.stop_unbegun(name)?;
            Ok((name.to_string(), json!({"name": name, "state": State::Stopped, "turns": 0})))
        }
        Target::Session(session) => {
            desk.tine.stop(session)?;
            let now = desk.tine.again(session)?;
            Ok((now.view.label().to_owned(), json!(now.view)))
        }
    }
}

pub(crate) fn focus(desk: &Desk, args: &FocusArgs) -> Outcome {
    match desk.select(&args.session) {
        Err(Failure::Engine(Error::Unbegun(name))) => {
            desk.tine.focus_unbegun(&name)?;
            if args.json {
                let state = desk.tine.state_unbegun(&name)?;
                ui::print_json(&json!({"name": name, "state": state, "turns": 0}))?;
            }
        }
        selection => {
            let session = selection?.session;
            desk.tine.focus(&session)?;
            desk.tine.remember_use(&session);
            if args.json {
                ui::print_json(&json!(session.view))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
