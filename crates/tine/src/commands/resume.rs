//! `tine resume`: continue a session in its directory, with its launch profile.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{OpenAt, Place, Request, ResumeView, RunError, Selection, Session, Target};
use transcript::State;
use transcript::render::to_json_pretty;

use super::fork::{self, prompt};
use super::place::{self, PlaceArgs};
use super::{Desk, become_program};
use crate::Outcome;
use crate::cli::SESSION;
use crate::complete;
use crate::failure::Failure;
use crate::ui::{self, Bar, Busy, plan as show};

/// Resume a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the agent in the session's directory, with the options the session was started with. A fork created with \
`--no-start` receives its transcript first.

Examples:
  tine resume auth-fix
  tine resume . --prompt \"continue\"
  tine resume auth-fix --to ../moved    run it in another directory")]
pub(crate) struct Args {
    #[arg(value_name = "SESSION", help = SESSION, add = complete::sessions())]
    pub session: String,
    /// Run in another directory
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Prompt to start with; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Resume even if the session is open elsewhere
    #[arg(long, short)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// More arguments for the agent
    #[arg(last = true)]
    pub args: Vec<String>,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let sessions = desk.tine.all_sessions(&Bar::new())?;
    let session = desk.select_whole(&sessions, &args.session)?;
    let place = args.place.choice(desk, args.json)?;
    let text = args.prompt.as_deref().map(prompt).transpose()?;
    let launch = desk.tine.launch_of(&session.view, &args.args, text)?;
    launch.check_prompt(place)?;
    let own = session.view.cwd.clone().unwrap_or_else(|| desk.tine.context().cwd.clone());
    let directory = args.to.as_ref().map_or(own, |to| desk.tine.context().cwd.join(to));
    let session = start(desk, session, Some(&directory), args.json)?;
    let runs = place != Place::None;
    if session.view.state != State::Stopped && runs && !args.yes {
        match ask_to_resume(desk, &session)? {
            OpenElsewhereChoice::Resume => {}
            OpenElsewhereChoice::Cancel => return Ok(ExitCode::FAILURE),
            OpenElsewhereChoice::Focus => {
                desk.tine.focus(&session.into())?;
                return Ok(ExitCode::SUCCESS);
            }
            OpenElsewhereChoice::Fork => {
                let (prompt, place) = (args.prompt.clone(), args.place.clone());
                let options =
                    fork::Options { prompt, place, wait: None, now: true, plan: false, yes: false, json: args.json };
                let selection = Selection { session, turns: None };
                return fork::fork(desk, selection, &options, None, |selection| Request::of(selection.session));
            }
        }
    }
    desk.tine.remember_use(&session);
    let (focus, ready_within) = (desk.surface.is_interactive, args.place.ready_within());
    let opened = desk.tine.open_session(&session, &directory, &launch, OpenAt { place, focus, ready_within })?;
    let mut out = ui::out();
    if let Some(answer) = &opened.answer {
        match args.json {
            true => writeln!(out, "{}", to_json_pretty(&ResumeView::new(&session, &launch, place, &opened)))?,
            false => writeln!(out, "{}", transcript::text::clean(answer))?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let variables = launch.profile.variables(session.view.name.as_ref());
    let pane = opened.pane.as_ref();
    if args.json {
        writeln!(out, "{}", to_json_pretty(&ResumeView::new(&session, &launch, place, &opened)))?;
    } else if pane.is_some() {
        ui::print_message(&format!("resumed {} in {}", session.view.label(), place::describe_pane(pane)));
    } else if place != Place::Here {
        let words = show::resume_words(&launch.profile, &opened.command, session.view.label());
        writeln!(out, "{}", show::in_directory(&directory, &variables, &words))?;
    }
    out.flush()?;
    let Some(command) = opened.here else { return Ok(ExitCode::SUCCESS) };
    // They cannot be printed later.
    for warning in desk.tine.take_warnings() {
        ui::warn(&warning);
    }
    become_program(command)
}

/// Starts a fork that has not started; any other session is as it was.
pub(crate) fn start(desk: &Desk, session: Session, directory: Option<&Path>, json: bool) -> Result<Session, Failure> {
    if !session.view.unstarted {
        return Ok(session);
    }
    let agent = session.view.agent.product_name();
    let seed = desk.tine.info(&session, &[])?.seed;
    if let Some(seed) = seed.filter(|_| !json) {
        ui::print_message(&format!("sends the transcript to {agent} now: about {} tokens", seed.tokens));
    }
    let busy = desk.surface.is_interactive.then(|| Busy::new(format!("waiting for {agent} to read the transcript…")));
    let started = desk.tine.start_fork(session, directory)?;
    drop(busy);
    Ok(started)
}

/// What to do about a session that is open elsewhere.
enum OpenElsewhereChoice {
    Focus,
    Fork,
    Resume,
    Cancel,
}

/// A session that is open elsewhere is not locked: two agents would write one history.
fn ask_to_resume(desk: &Desk, session: &Session) -> Result<OpenElsewhereChoice, Failure> {
    let (label, state) = (session.view.label().to_owned(), session.view.state);
    if !desk.surface.is_interactive {
        return Err(Failure::Engine(RunError::OpenElsewhere { session: label, state }.into()));
    }
    let pane = desk.tine.status(&Target::from(session.clone()))?.pane;
    let process = session.live.as_ref().and_then(|live| live.pid).map(|pid| format!(" in process {pid}"));
    let whereabouts = match &pane {
        Some(pane) => format!(" in {}", place::describe_pane(Some(pane))),
        None => process.unwrap_or_default(),
    };
    let mut stderr = io::stderr().lock();
    writeln!(
        stderr,
        "{label} is already open ({}{whereabouts}). Two agents that write to one session can damage its history.",
        state.as_str()
    )?;
    let focus = if pane.is_some() { "[s] show its pane, " } else { "" };
    write!(stderr, "{focus}[f] fork it, [r] resume anyway, [q] cancel: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(match answer.trim() {
        "s" | "S" if pane.is_some() => OpenElsewhereChoice::Focus,
        "f" | "F" => OpenElsewhereChoice::Fork,
        "r" | "R" => OpenElsewhereChoice::Resume,
        _ => OpenElsewhereChoice::Cancel,
    })
}
