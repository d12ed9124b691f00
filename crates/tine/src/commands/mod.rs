//! One file per command: its options, and what it does with them.

pub(crate) mod adopt;
pub(crate) mod blame;
pub(crate) mod clone;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod editor;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod hook;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod pane;
pub(crate) mod place;
pub(crate) mod read;
pub(crate) mod rename;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod search;
pub(crate) mod send;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod smart_fork;
mod smart_fork_dialog;
pub(crate) mod snapshots;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod times;
pub(crate) mod tree;
pub(crate) mod undo;
pub(crate) mod wait;
pub(crate) mod worker;

use engine::{Error, Place, Selection, Session, SessionsError, Target, Tine};

use transcript::text;

use crate::Outcome;
use crate::cli::{Cli, Command};
use crate::environment::{self, Streams};
use crate::failure::{self, Failure};
use crate::ui::{Bar, picker};

/// What every command gets: the engine and the user interface.
pub(crate) struct Desk {
    pub tine: Tine,
    pub surface: Streams,
}

/// Runs the command.
pub(crate) fn run(cli: Cli) -> Outcome {
    let surface = environment::surface(cli.color);
    // These two need no registry, and must work if none can be opened.
    let command = match cli.command {
        Command::Completions(args) => return completions::run(&args),
        Command::Demo(args) => return demo::run(&args, &surface),
        Command::Hook(args) => return hook::run(&args),
        Command::Pane(args) => return pane::run(&args),
        Command::Worker(args) => return worker::run(&args),
        Command::Editor(args) => return editor::run(&args),
        command => command,
    };
    let desk = Desk { tine: Tine::open(environment::context()?)?, surface };
    let outcome = at_desk(&desk, command);
    for warning in desk.tine.take_warnings() {
        crate::ui::warn(&warning);
    }
    outcome
}

/// Runs a command that works on sessions.
pub(crate) fn at_desk(desk: &Desk, command: Command) -> Outcome {
    match command {
        Command::List(args) => list::run(desk, &args),
        Command::Tree(args) => tree::run(desk, &args),
        Command::Blame(args) => blame::run(desk, &args),
        Command::Show(args) => show::run(desk, &args),
        Command::Info(args) => info::run(desk, &args),
        Command::Search(args) => search::run(desk, &args),
        Command::Index(args) => index::run(desk, &args),
        Command::Export(args) => export::run(desk, &args),
        Command::Status(args) => status::run(desk, &args),
        Command::Send(args) => send::run(desk, &args),
        Command::Read(args) => read::run(desk, &args),
        Command::Wait(args) => wait::run(desk, &args),
        Command::Interrupt(args) => control::interrupt(desk, &args),
        Command::Stop(args) => control::stop(desk, &args),
        Command::Focus(args) => control::focus(desk, &args),
        Command::Events(args) => events::run(desk, &args),
        Command::Start(args) => start::run(desk, &args),
        Command::Resume(args) => resume::run(desk, &args),
        Command::Fork(args) => fork::run(desk, &args),
        Command::SmartFork(args) => smart_fork::run(desk, &args),
        Command::Clone(args) => clone::run(desk, &args),
        Command::Adopt(args) => adopt::run(desk, &args),
        Command::Rename(args) => rename::run(desk, &args),
        Command::Delete(args) => delete::run(desk, &args),
        Command::Undo(args) => undo::run(desk, &args),
        Command::Log(args) => log::run(desk, &args),
        Command::Diff(args) => diff::run(desk, &args),
        Command::Restore(args) => restore::run(desk, &args),
        Command::Snapshots(args) => snapshots::run(desk, &args),
        Command::Doctor(args) => doctor::run(desk, &args),
        Command::Config(args) => config::run(desk, &args),
        Command::Setup(args) => setup::run(desk, &args),
        Command::Completions(_)
        | Command::Demo(_)
        | Command::Editor(_)
        | Command::Hook(_)
        | Command::Mcp(_)
        | Command::Pane(_)
        | Command::Worker(_) => unreachable!("these run without a desk"),
    }
}

/// Replaces this process with another program. It only returns on failure.
fn become_program(mut command: std::process::Command) -> Outcome {
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let error = match command.status() {
        Ok(status) => {
            return Ok(if status.success() {
                std::process::ExitCode::SUCCESS
            } else {
                std::process::ExitCode::FAILURE
            });
        }
        Err(error) => error,
    };
    Err(Failure::Other {
        kind: "agent_failed",
        message: format!("cannot start {}: {error}", command.get_program().to_string_lossy()),
        hint: Some("`tine doctor` checks the agents".into()),
    })
}

impl Desk {
    /// The default place for an agent: this terminal, if it is one.
    pub(crate) fn default_place(&self, json: bool) -> Place {
        match self.surface.is_interactive && self.surface.is_terminal && !json {
            true => Place::Here,
            false => Place::None,
        }
    }

    /// Finds the session that `spec` refers to; if several match, the user is asked.
    pub(crate) fn select(&self, spec: &str) -> Result<Selection, Failure> {
        let sessions = self.tine.all_sessions(&Bar::new())?;
        self.select_among(&sessions, spec)
    }

    /// The same for a command that takes no turn.
    pub(crate) fn select_whole(&self, sessions: &[Session], spec: &str) -> Result<Session, Failure> {
        let selection = self.select_among(sessions, spec)?;
        match selection.turns {
            None => Ok(selection.session),
            Some(_) => Err(Failure::Other {
                kind: "no_point_here",
                message: format!("`{}` names a turn, but this command works on whole sessions", text::one_line(spec)),
                hint: Some("leave out the `@` and what follows it".into()),
            }),
        }
    }

    /// The whole session that `spec` means, or one that was started and has no transcript yet.
    pub(crate) fn target(&self, sessions: &[Session], spec: &str) -> Result<Target, Failure> {
        failure::target(self.select_whole(sessions, spec))
    }

    pub(crate) fn select_among(&self, sessions: &[Session], spec: &str) -> Result<Selection, Failure> {
        match self.tine.resolve_among(sessions, spec) {
            Err(Error::Sessions(SessionsError::Ambiguous { spec: word, matches })) if self.surface.is_interactive => {
                let Some(chosen) = picker::choose(&self.surface, &word, &matches, self.tine.context().clock.now())?
                else {
                    return Err(SessionsError::Ambiguous { spec: word, matches }.into());
                };
                let point = spec.strip_prefix(&word).unwrap_or_default();
                let exact = format!("{}{point}", chosen.path.display());
                Ok(self.tine.resolve_among(sessions, &exact)?)
            }
            other => Ok(other?),
        }
    }
}
