//! The command line. The options of each command are in the command's file.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use transcript::Agent;

use crate::commands::{
    adopt, blame, clone, completions, config, control, delete, demo, diff, doctor, editor, events, export, fork, hook,
    index, info, list, log, pane, read, rename, restore, resume, search, send, setup, show, smart_fork, snapshots,
    start, status, tree, undo, wait, worker,
};

/// Branch any conversation with a coding agent
#[derive(Debug, Parser)]
#[command(name = "tine", version, max_term_width = 100, propagate_version = true, subcommand_required = true)]
#[command(arg_required_else_help = true, disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL)]
    pub color: ColorChoice,
    /// Print help
    #[arg(long, short, global = true, action = ArgAction::Help, help_heading = GLOBAL)]
    help: Option<bool>,
    /// Print version
    #[arg(long, short = 'V', global = true, action = ArgAction::Version, help_heading = GLOBAL)]
    version: Option<bool>,

    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Without a command, tine opens the workbench: all sessions on one screen, to read, search and fork.

SESSION is a name, an id or an id prefix, a path to a transcript, `.` for the newest session in this directory or `-` \
for the last one used. SESSION@3 stops after turn 3; SESSION@-1 leaves out the last turn.

Examples:
  tine list                   sessions in this directory and its worktrees
  tine search redirect login  find where you solved something
  tine show . --tools         read the newest session, with tool output
  tine fork auth-fix@4        continue from turn 4 in a new session
  tine smart-fork csv export  find a session that fits a task, and fork it
  tine demo                   take a tour with sample sessions";

/// Headings for groups of options.
pub(crate) const FILTERS: &str = "Filters";
pub(crate) const MATCHES: &str = "Choosing a session";
pub(crate) const RUNNING: &str = "Running the agent";
pub(crate) const WORKSPACE: &str = "Workspace";
pub(crate) const GLOBAL: &str = "Global options";

/// Help for an argument that takes a session.
pub(crate) const SESSION: &str = "Name, id, id prefix or path; `.` is the newest here, `-` the last one used";
/// Help for an argument that takes a session and a point in it.
pub(crate) const POINT: &str = "Name, id, id prefix or path; `.` is the newest here, `-` the last one used; add `@4` to end \
                               after turn 4, `@1f3a5c60` for another branch";

/// Reads an agent's word; help and completions know all of them.
pub(crate) fn agent_parser() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::as_str)).try_map(|word| word.parse::<Agent>())
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "ls")]
    List(list::Args),
    Search(search::Args),
    Show(show::Args),
    Tree(tree::Args),
    #[command(alias = "inspect")]
    Info(info::Args),
    Blame(blame::Args),
    Status(status::Args),
    Fork(fork::Args),
    SmartFork(smart_fork::Args),
    Clone(clone::Args),
    Start(start::Args),
    Resume(resume::Args),
    Adopt(adopt::Args),
    Rename(rename::Args),
    Delete(delete::Args),
    Undo(undo::Args),
    Log(log::Args),
    Diff(diff::Args),
    Restore(restore::Args),
    Snapshots(snapshots::Args),
    Send(send::Args),
    Read(read::Args),
    Wait(wait::Args),
    Interrupt(control::InterruptArgs),
    Stop(control::StopArgs),
    Focus(control::FocusArgs),
    Events(events::Args),
    Index(index::Args),
    Export(export::Args),
    Setup(setup::Args),
    Mcp(crate::mcp::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    Completions(completions::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    Hook(hook::Args),
    #[command(hide = true)]
    Pane(pane::Args),
    #[command(hide = true)]
    Editor(editor::Args),
    #[command(hide = true)]
    Worker(worker::Args),
}

impl Command {
    /// Whether errors are printed as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Command::List(args) => args.json,
            Command::Tree(args) => args.json,
            Command::Show(args) => args.json,
            Command::Info(args) => args.json,
            Command::Blame(args) => args.json,
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
            Command::Diff(args) => args.json,
            Command::Restore(args) => args.json,
            Command::Snapshots(args) => args.json,
            Command::Setup(args) => args.json,
            Command::Doctor(args) => args.json,
            Command::Hook(_)
            | Command::Config(_)
            | Command::Mcp(_)
            | Command::Pane(_)
            | Command::Editor(_)
            | Command::Worker(_)
            | Command::Rename(_)
            | Command::Delete(_)
            | Command::Undo(_)
            | Command::Completions(_)
            | Command::Demo(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The command and those below it, each with its name.
    fn all(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
        let mut found = vec![(name.to_owned(), command.clone())];
        for command in command.get_subcommands() {
            found.extend(all(command, &format!("{name} {}", command.get_name())));
        }
        found
    }

    #[test]
    fn help_is_wrapped_once() {
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        for width in [60, 80, 120] {
            for (name, command) in all(&Cli::command().term_width(width), "tine") {
                let help = command.term_width(width).render_long_help().to_string();
                let lines: Vec<&str> = help.lines().collect();
                for pair in lines.windows(2).filter(|pair| is_text(pair[0]) && is_text(pair[1])) {
                    let first_word = pair[1].split(' ').next().unwrap_or_default();
                    let would_take = pair[0].chars().count() + 1 + first_word.chars().count();
                    assert!(would_take > width, "{name} at {width}: {:?} is broken too early", pair[0]);
                }
            }
        }
    }

    #[test]
    fn help_begins_with_an_imperative_and_ends_with_examples() {
        for (name, command) in all(&Cli::command(), "tine").iter().filter(|(_, command)| !command.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.starts_with(char::is_uppercase) && !about.ends_with('.'), "{name}: {about}");
            let epilogue = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let last = epilogue.split("\n\n").last().unwrap_or_default();
            assert!(last.starts_with("Examples:\n  tine "), "{name}: {epilogue}");
        }
    }

    #[test]
    fn examples_fit_the_terminal() {
        for (name, command) in all(&Cli::command(), "tine") {
            let epilogue = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in epilogue.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{name}: {line:?}");
            }
        }
    }
}
