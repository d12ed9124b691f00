//! `tine start`: a new session with an agent, under a name.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{EmptyClone, LaunchRequest, OpenAt, Opened, Place, Start};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{Agent, SessionName};

use super::fork::prompt;
use super::place::{self, PlaceArgs};
use super::{Desk, become_program};
use crate::Outcome;
use crate::cli::agent_parser;
use crate::ui::{self, Paint, plan as show};

/// Start a named session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
tine remembers the options and uses them again when you resume or fork the session. Sessions without messages are not \
saved.

Examples:
  tine start auth-fix                     Claude Code, in this directory
  tine start --agent codex -- --search    pass an option to Codex
  tine start auth-fix -- \"Look here\"      start with a prompt
  tine start auth-fix --profile careful   use a profile from the configuration")]
pub(crate) struct Args {
    /// Name of the session [default: the git branch]
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    /// Agent to start
    #[arg(long, value_parser = agent_parser(), default_value_t)]
    pub agent: Agent,
    /// Launch profile from the configuration file
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Model to use
    #[arg(long)]
    pub model: Option<String>,
    /// Settings file for the agent
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// File that contains the system prompt
    #[arg(long, value_name = "FILE")]
    pub system_prompt: Option<PathBuf>,
    /// First prompt; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Arguments for the agent
    #[arg(last = true)]
    pub args: Vec<String>,
}

pub(crate) fn run(desk: &Desk, args: &Args) -> Outcome {
    let request = LaunchRequest {
        profile: args.profile.clone(),
        model: args.model.clone(),
        settings: args.settings.clone(),
        system_prompt: args.system_prompt.clone(),
        prompt: args.prompt.as_deref().map(prompt).transpose()?,
        args: args.args.clone(),
    };
    let place = args.place.choice(desk, args.json)?;
    let start = desk.tine.begin(args.agent, args.name.as_ref(), &request, place)?;
    let opened = desk.tine.open_start(&start, None, open_at(desk, place, &args.place))?;
    let view = args.json.then(|| json!(start.view(place, &opened)));
    print_started(desk, &start, place, opened, view.as_ref())
}

/// Opens a clone of a session without messages.
pub(crate) fn open(desk: &Desk, clone: &EmptyClone, operation: i64, options: &super::fork::Options) -> Outcome {
    let start = &clone.start;
    let place = options.place.choice(desk, options.json)?;
    let prompt = options.prompt.as_deref().map(prompt).transpose()?;
    let opened = desk.tine.open_start(start, prompt.as_deref(), open_at(desk, place, &options.place))?;
    let view = options.json.then(|| {
        let mut view = clone.view(place, Some(operation));
        view.place = place.view(opened.pane.as_ref());
        view.answer.clone_from(&opened.answer);
        json!(view)
    });
    print_started(desk, start, place, opened, view.as_ref())
}

fn open_at(desk: &Desk, place: Place, args: &PlaceArgs) -> OpenAt {
    OpenAt { place, focus: desk.surface.is_interactive, ready_within: args.ready_within() }
}

/// Prints what was started, as JSON if `view` is given, and becomes the agent if it runs here.
fn print_started(desk: &Desk, start: &Start, place: Place, opened: Opened, view: Option<&Value>) -> Outcome {
    let name = Paint(desk.surface.color).name(start.name.as_str());
    let variables = start.profile.variables(Some(&start.name));
    let mut out = ui::out();
    if let Some(view) = view {
        writeln!(out, "{}", to_json_pretty(view))?;
    } else if let Some(answer) = &opened.answer {
        ui::print_message(&format!("started {name}"));
        writeln!(out, "{}", transcript::text::clean(answer))?;
    } else if opened.pane.is_some() {
        ui::print_message(&format!("started {name} in {}", place::describe_pane(opened.pane.as_ref())));
    } else if place == Place::None {
        ui::print_message(&format!("{name} is ready; start it with:"));
        writeln!(out, "{}", show::in_directory(&start.directory, &variables, &start.words))?;
    }
    out.flush()?;
    match opened.here {
        Some(command) => become_program(command),
        None => Ok(ExitCode::SUCCESS),
    }
}
