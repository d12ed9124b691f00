//! `tine start`: a new session with an agent, under a name.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{LaunchRequest, Opening, Pane, Place, Start};
use serde_json::{Value, json};
use transcript::render::to_json_pretty;
use transcript::{Agent, SessionName};

use super::fork::{needed, prompt};
use super::place::{self, PlaceArgs};
use super::{Desk, become_program};
use crate::Outcome;
use crate::cli::agent_parser;
use crate::ui::{self, Paint, plan as show};

/// Start a session under a name
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a name it is called after the git branch. If nothing is said in it, nothing of it is left.

Examples:
  tine start auth-fix                     Claude Code, in this directory
  tine start --agent codex -- --search    with Codex's own options, which it keeps
  tine start auth-fix -- \"Look here\"      what is no option is said first, once
  tine start auth-fix --profile careful   with a set of options from the configuration file")]
pub(crate) struct Args {
    /// The session's name
    #[arg(value_parser = clap::value_parser!(SessionName))]
    pub name: Option<SessionName>,
    /// The agent
    #[arg(long, value_parser = agent_parser(), default_value = "claude")]
    pub agent: Agent,
    /// A set of options from the configuration file
    #[arg(long)]
    pub profile: Option<String>,
    /// The model
    #[arg(long)]
    pub model: Option<String>,
    /// A file of settings
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// A file with the system prompt
    #[arg(long, value_name = "FILE")]
    pub system_prompt: Option<PathBuf>,
    /// What to say first; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
    /// The agent's own options
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
    tell(desk, &start, place, &args.place, answer.as_deref(), args.json.then_some(&|told| told))
}

/// Opens a clone of a session in which nothing was said.
pub(crate) fn open(
    desk: &Desk,
    start: &Start,
    options: &super::fork::Options,
    wrap: &dyn Fn(Value) -> Value,
) -> Outcome {
    let place = options.place.choice(desk, options.json)?;
    let prompt = options.prompt.as_deref().map(prompt).transpose()?;
    let answer = match (place, &prompt) {
        (Place::Headless, Some(prompt)) => Some(desk.tine.start_headless(start, prompt)?),
        _ => None,
    };
    tell(desk, start, place, &options.place, answer.as_deref(), options.json.then_some(wrap))
}

/// What programs are told of a session that was started.
pub(crate) fn as_json(start: &Start, place: Place, pane: Option<&Pane>, answer: Option<&str>) -> Value {
    json!({
        "agent": start.agent, "id": start.id, "name": start.name, "cwd": start.directory.to_string_lossy(),
        "profile": start.profile.shown(), "place": place::as_json(place, pane), "command": start.words,
        "environment": show::shown(&start.profile.variables(Some(&start.name))), "answer": answer,
    })
}

/// Says what was started, and becomes the agent where it is to run here. Programs are told what `wrap` makes of it.
fn tell(
    desk: &Desk,
    start: &Start,
    place: Place,
    options: &PlaceArgs,
    answer: Option<&str>,
    wrap: Option<&dyn Fn(Value) -> Value>,
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
    if let Some(wrap) = wrap {
        let told = as_json(start, place, pane.as_ref(), answer);
        writeln!(out, "{}", to_json_pretty(&wrap(told)))?;
    } else if let Some(answer) = answer {
        ui::say(&format!("started {name}"));
        writeln!(out, "{}", transcript::text::clean(answer))?;
    } else if pane.is_some() {
        ui::say(&format!("started {name} in {}", place::told(pane.as_ref())));
    } else if place == Place::None {
        ui::say(&format!("{name} is ready; start it with"));
        writeln!(out, "{}", show::in_directory(&start.directory, &variables, &start.words))?;
    }
    out.flush()?;
    match place {
        Place::Here => become_program(desk.tine.start_command(start)?),
        _ => Ok(ExitCode::SUCCESS),
    }
}
