//! `tine start`: a new session with an agent, under a name.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{EmptyClone, LaunchRequest, Opening, Pane, Place, Start};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{Agent, SessionName};

use super::fork::{needed, prompt};
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
    let launch = desk.tine.launch_for(args.agent, &request)?;
    let place = args.place.choice(desk, args.json)?;
    let said = match place {
        Place::Headless => Some(needed(launch.prompt.as_deref())?),
        Place::Here | Place::None | Place::In(_) => None,
    };
    let start = desk.tine.begin(args.agent, args.name.as_ref(), &launch, place == Place::Here)?;
    let answer = said.map(|said| desk.tine.start_headless(&start, said)).transpose()?;
    let view = |pane: Option<&Pane>, answer: Option<&str>| json!(start.view(place, pane, answer));
    tell(desk, &start, place, &args.place, answer.as_deref(), args.json.then_some(&view))
}

/// Opens a clone of a session without messages.
pub(crate) fn open(desk: &Desk, clone: &EmptyClone, operation: i64, options: &super::fork::Options) -> Outcome {
    let start = &clone.start;
    let place = options.place.choice(desk, options.json)?;
    let prompt = options.prompt.as_deref().map(prompt).transpose()?;
    let answer = match (place, &prompt) {
        (Place::Headless, Some(prompt)) => Some(desk.tine.start_headless(start, prompt)?),
        _ => None,
    };
    let view = |pane: Option<&Pane>, answer: Option<&str>| {
        let mut view = clone.view(place, Some(operation));
        view.place = place.view(pane);
        view.answer = answer.map(str::to_owned);
        json!(view)
    };
    tell(desk, start, place, &options.place, answer.as_deref(), options.json.then_some(&view))
}

/// The JSON of what was started, in this pane and with this answer.
type View<'a> = &'a dyn Fn(Option<&Pane>, Option<&str>) -> Value;

/// Prints what was started, as JSON if `view` is given, and becomes the agent if it runs here.
fn tell(
    desk: &Desk,
    start: &Start,
    place: Place,
    options: &PlaceArgs,
    answer: Option<&str>,
    view: Option<View<'_>>,
) -> Outcome {
    let pane = match place {
        Place::In(spot) => {
            let opening = Opening::of_start(start, desk.surface.is_interactive, options.ready_within());
            Some(desk.tine.open_in(spot, &opening)?)
        }
        _ => None,
    };
    let name = Paint(desk.surface.color).name(start.name.as_str());
    let variables = start.profile.variables(Some(&start.name));
    let mut out = ui::out();
    if let Some(view) = view {
        writeln!(out, "{}", to_json_pretty(&view(pane.as_ref(), answer)))?;
    } else if let Some(answer) = answer {
        ui::say(&format!("started {name}"));
        writeln!(out, "{}", transcript::text::clean(answer))?;
    } else if pane.is_some() {
        ui::say(&format!("started {name} in {}", place::told(pane.as_ref())));
    } else if place == Place::None {
        ui::say(&format!("{name} is ready; start it with:"));
        writeln!(out, "{}", show::in_directory(&start.directory, &variables, &start.words))?;
    }
    out.flush()?;
    match place {
        Place::Here => become_program(desk.tine.start_command(start)?),
        _ => Ok(ExitCode::SUCCESS),
    }
}
