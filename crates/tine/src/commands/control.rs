//! `tine interrupt`, `tine stop` and `tine focus`: what is done to a session that runs.

use std::process::ExitCode;

use engine::{Error, Target};

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
}

/// End the agent of a session; the conversation stays
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    /// Names, ids, beginnings of ids, paths, `.` or `-`
    #[arg(value_name = "SESSION", add = complete::sessions(), required = true)]
    pub sessions: Vec<String>,
}

/// Bring the pane of a session to front
#[derive(Debug, clap::Args)]
pub(crate) struct FocusArgs {
    /// A name, an id, the beginning of one, a path, `.` or `-`
    #[arg(add = complete::sessions())]
    pub session: String,
}

pub(crate) fn interrupt(desk: &Desk, args: &InterruptArgs) -> Outcome {
    let session = desk.select(&args.session)?.session;
    let now = desk.tine.interrupt(&session)?;
    ui::say(&format!("{} is {}", now.view.label(), now.view.state.as_str()));
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
    for target in &targets {
        let label = match target {
            Target::Unbegun(name) => {
                desk.tine.stop_unbegun(name)?;
                name.to_string()
            }
            Target::Session(session) => {
                desk.tine.stop(session)?;
                session.view.label().to_owned()
            }
        };
        ui::say(&format!("{label} is stopped"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn focus(desk: &Desk, args: &FocusArgs) -> Outcome {
    match desk.select(&args.session) {
        Err(Failure::Engine(Error::Unbegun(name))) => desk.tine.focus_unbegun(&name)?,
        selection => {
            let session = selection?.session;
            desk.tine.focus(&session)?;
            desk.tine.remember_use(&session);
        }
    }
    Ok(ExitCode::SUCCESS)
}
