//! The command line as it is typed. Each command's own options stand in the command's file.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use transcript::Agent;

use crate::commands::{
    adopt, clone, completions, control, delete, demo, doctor, editor, events, export, fork, hook, index, info, list,
    log, pane, read, rename, resume, search, send, setup, show, smart_fork, start, status, tree, undo, wait,
};

/// Branch any conversation with a coding agent
#[derive(Debug, Parser)]
#[command(name = "tine", version, max_term_width = 100, propagate_version = true, subcommand_required = true)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,

    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
SESSION is a name, an id, the beginning of one, a path to a transcript,
`.` (the newest of this directory) or `-` (the last one used);
SESSION@3 is the point after turn 3, SESSION@-1 leaves out the last turn.

Examples:
  tine list                   the sessions of this directory and its worktrees
  tine show . --tools         the newest one here, with what its tools did
  tine show 1f3a@4 --html     up to turn 4, as a page to send to somebody
  tine search redirect login  where was that solved?
  tine smart-fork csv export  find what suits that, and fork it
  tine fork auth-fix@4        go on from turn 4 in a new session
  tine demo                   see what this is, in a throw-away home";

/// Reads an agent's word; help and completions know all of them.
pub(crate) fn agent_parser() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::as_str)).try_map(|word| word.parse::<Agent>())
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Even into a file or a pipe
    Always,
    /// Not at all
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "ls")]
    List(list::Args),
    Tree(tree::Args),
    Show(show::Args),
    #[command(alias = "inspect")]
    Info(info::Args),
    Search(search::Args),
    Index(index::Args),
    Export(export::Args),
    Status(status::Args),
    Send(send::Args),
    Read(read::Args),
    Wait(wait::Args),
    Interrupt(control::InterruptArgs),
    Stop(control::StopArgs),
    Focus(control::FocusArgs),
    Events(events::Args),
    #[command(hide = true)]
    Pane(pane::Args),
    #[command(hide = true)]
    Editor(editor::Args),
    Start(start::Args),
    Resume(resume::Args),
    Fork(fork::Args),
    SmartFork(smart_fork::Args),
    Clone(clone::Args),
    Adopt(adopt::Args),
    Rename(rename::Args),
    Delete(delete::Args),
    Undo(undo::Args),
    Log(log::Args),
    #[command(hide = true)]
    Hook(hook::Args),
    Mcp(crate::mcp::Args),
    Setup(setup::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Demo(demo::Args),
}

impl Command {
    /// Whether failures are told as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Command::List(args) => args.json,
            Command::Tree(args) => args.json,
            Command::Show(args) => args.json,
            Command::Info(args) => args.json,
            Command::Search(args) => args.json,
            Command::Index(args) => args.json,
            Command::Export(args) => args.json,
            Command::Status(args) => args.json,
            Command::Send(args) => args.json,
            Command::Read(args) => args.json,
            Command::Wait(args) => args.json,
            Command::Events(args) => args.json,
            Command::Interrupt(args) => args.json,
            Command::Stop(args) => args.json,
            Command::Focus(args) => args.json,
            Command::Start(args) => args.json,
            Command::Resume(args) => args.json,
            Command::Adopt(args) => args.json,
            Command::Fork(args) => args.options.json,
            Command::SmartFork(args) => args.options.json,
            Command::Clone(args) => args.options.json,
            Command::Log(args) => args.json,
            Command::Setup(args) => args.json,
            Command::Doctor(args) => args.json,
            Command::Hook(_)
            | Command::Mcp(_)
            | Command::Pane(_)
            | Command::Editor(_)
            | Command::Rename(_)
            | Command::Delete(_)
            | Command::Undo(_)
            | Command::Completions(_)
            | Command::Demo(_) => false,
        }
    }
}
