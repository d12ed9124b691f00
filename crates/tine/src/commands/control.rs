//! `tine interrupt`, `tine stop` and `tine focus`: what is done to a session that runs.

use std::process::ExitCode;

use engine::{Target, TargetView};
use transcript::State;

use super::Desk;
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::failure::{self, Failure};
use crate::ui;

/// Interrupt a busy session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine interrupt auth-fix")]
pub(crate) struct InterruptArgs {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Stop a session's agent and keep the conversation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine stop auth-fix
  tine stop try-1 try-2")]
pub(crate) struct StopArgs {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions(), required = true)]
    pub sessions: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Focus a session's pane
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tine focus auth-fix")]
pub(crate) struct FocusArgs {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn interrupt(desk: &Desk, args: &InterruptArgs) -> Outcome {
    let session = desk.select(&args.session)?.session;
    let now = desk.tine.interrupt(&session)?;
    match args.json {
        true => ui::print_json(&now.view)?,
        false => ui::print_message(&format!("{} is {}", now.view.label(), now.view.state.as_str())),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn stop(desk: &Desk, args: &StopArgs) -> Outcome {
    let all = desk.tine.all_sessions(&ui::Bar::new())?;
    let mut targets = Vec::new();
    for spec in &args.sessions {
        targets.push(desk.target(&all, spec)?);
    }
    // That one cannot be ended is no reason to let the others run.
    let mut failed = None;
    let mut stopped: Vec<TargetView> = Vec::new();
    for target in &targets {
        match end(desk, target) {
            Ok((label, view)) => {
                if !args.json {
                    ui::print_message(&format!("{label} is stopped"));
                }
                stopped.push(view);
            }
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    if args.json {
        ui::print_json(&stopped)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops one, and returns its label.
fn end(desk: &Desk, target: &Target) -> Result<(String, TargetView), Failure> {
    desk.tine.stop(target)?;
    let (label, now) = match target {
        Target::EmptySession(name) => (name.to_string(), target.clone()),
        Target::Session(session) => {
            let now = desk.tine.refresh(session)?;
            (now.view.label().to_owned(), now.into())
        }
    };
    Ok((label, now.view(State::Stopped)))
}

pub(crate) fn focus(desk: &Desk, args: &FocusArgs) -> Outcome {
    let target = failure::target(desk.select(&args.session).map(|selection| selection.session))?;
    desk.tine.focus(&target)?;
    if let Target::Session(session) = &target {
        desk.tine.remember_use(session);
    }
    if args.json {
        let state = desk.tine.status(&target)?.state();
        ui::print_json(&target.view(state))?;
    }
    Ok(ExitCode::SUCCESS)
}
