//! Opening a pane with an agent in it, and becoming that agent inside of the pane.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents::{Program, Screen};
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName, State};

use super::{ENDS_WITHIN, PAUSE, TAKEN_UP_WITHIN, hand_over, has_begun};
use crate::Tine;
use crate::catalog::Quiet;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::named::Start;
use crate::places::{self, OpenPane, Order, Pane, Spot};
use crate::private;
use crate::profile::Profile;
use crate::registry::Registry;

/// An agent that is to run in a pane.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The agent.
    pub agent: Agent,
    /// Its session, where the id is known.
    pub id: Option<&'a SessionId>,
    /// The session's name.
    pub name: Option<&'a SessionName>,
    /// What people call it.
    pub label: &'a str,
    /// Where it works.
    pub directory: &'a Path,
    /// Its command line.
    pub words: &'a [String],
    /// How it is launched.
    pub profile: &'a Profile,
    /// Whether the person is to be led there.
    pub focus: bool,
    /// How long it may take until it can take input.
    pub ready_within: Duration,
    /// How many turns the session has, where something is said at the start: it is waited until that is taken up.
    pub said_after: Option<u32>,
}

impl<'a> Opening<'a> {
    /// A session that is about to be started.
    pub fn of_start(start: &'a Start, focus: bool, ready_within: Duration) -> Self {
        Opening {
            agent: start.agent,
            id: start.id.as_ref(),
            name: Some(&start.name),
            label: start.name.as_str(),
            directory: &start.directory,
            words: &start.words,
            profile: &start.profile,
            focus,
            ready_within,
            said_after: start.says_something.then_some(0),
        }
    }
}

/// What a new pane runs, in a file that only its owner can read: an environment has secrets in it, and a command line
/// can be read by everybody.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    words: Vec<String>,
    directory: PathBuf,
    environment: Vec<(String, String)>,
    name: Option<SessionName>,
}

impl Tine {
    /// Whether a place is there. What needs it is not begun otherwise.
    pub fn check_place(&self, spot: Spot) -> Result<()> {
        places::check(self.context(), spot)
    }

    /// Opens a pane with an agent in it, and waits until the agent can take input.
    pub fn open_in(&self, spot: Spot, opening: &Opening<'_>) -> Result<Pane> {
        let program = self.program_as(opening.agent, opening.profile, opening.name)?;
        let file = self.write_launch(&program, opening)?;
        let words =
            [self.context().program.to_string_lossy().into_owned(), "pane".into(), file.to_string_lossy().into()];
        let (directory, focus) = (opening.directory, opening.focus);
        let order = Order { unit: spot.unit, directory, words: &words, name: opening.name, focus };
        let opened = places::open(self.context(), spot, &order);
        let ready = opened.and_then(|pane| {
            if let Some(name) = opening.name {
                self.registry().note_pane(name, &pane)?;
            }
            self.wait_until_ready(opening, &pane, &file)?;
            self.wait_until_said(opening)?;
            Ok(pane)
        });
        let _ = fs::remove_file(&file);
        let _ = fs::remove_file(trouble_file(&file));
        let runs = |error: &Error| {
            matches!(error, Error::Asks { .. } | Error::NotReady { .. } | Error::NotTakenUp(_) | Error::Cancelled)
        };
        if let (Err(error), Some(name)) = (&ready, opening.name)
            && !runs(error)
            && self.registry().unbegun(name.as_str())?.is_some()
        {
            // What never ran leaves its name to others.
            self.forget(name)?;
        }
        ready
    }

    fn write_launch(&self, program: &Program, opening: &Opening<'_>) -> Result<PathBuf> {
        let inherited = self.context().environment.texts().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let inherited = inherited.filter(|(name, _)| !program.hidden.contains(name));
        let mut words = opening.words.to_vec();
        if let Some(first) = words.first_mut() {
            *first = program.path.to_string_lossy().into_owned();
        }
        let launch = Launch {
            words,
            directory: opening.directory.to_owned(),
            environment: inherited
                .chain(hand_over::variables(self.context()))
                .chain(program.environment.iter().cloned())
                .collect(),
            name: opening.name.cloned(),
        };
        let folder = self.context().paths.cache.join("panes");
        let file = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
        let failed = |source| Error::CannotWrite { path: file.clone(), source };
        private::create_folder(&folder).map_err(failed)?;
        private::open_file(&file).map_err(failed)?;
        fs::write(&file, serde_json::to_vec(&launch).unwrap_or_default()).map_err(failed)?;
        Ok(file)
    }

    /// Waits until an agent can take input, or works on what it was told at its start.
    fn wait_until_ready(&self, opening: &Opening<'_>, pane: &Pane, launch: &Path) -> Result<()> {
        let begun = Instant::now();
        let session = || opening.label.to_owned();
        let store = self.store(opening.agent);
        let open = OpenPane::new(self.context(), pane)?;
        let mut saw = None;
        let mut last = String::new();
        while begun.elapsed() < opening.ready_within {
            let live = opening.id.and_then(|id| store.live().sessions.remove(id));
            // An agent that has a session's file open has read it.
            let is_loaded = opening.id.is_none() || live.is_some();
            if let Ok(screen) = open.screen() {
                match store.screen(&screen) {
                    Screen::Asks(what) => return Err(Error::Asks { session: session(), what: what.to_owned() }),
                    // What is still being drawn does not listen yet.
                    Screen::Ready if !store.tells_its_state() && is_loaded && screen == last => return Ok(()),
                    Screen::Ready | Screen::Reading(_) | Screen::Unknown => {}
                }
                saw = Some(last_lines(&screen)).filter(|saw| !saw.is_empty());
                last = screen;
            } else if open.info().is_none() {
                let said = fs::read_to_string(trouble_file(launch)).ok().or(saw);
                return Err(Error::PaneClosed { session: session(), said });
            }
            match live.as_ref().and_then(|live| live.state) {
                Some(State::Idle | State::Busy) => return Ok(()),
                Some(State::Waiting) => {
                    let what = live.and_then(|live| live.waiting_for).unwrap_or_else(|| "an answer".into());
                    return Err(Error::Asks { session: session(), what });
                }
                Some(State::Stopped) | None => {}
            }
            self.pause(PAUSE)?;
        }
        Err(Error::NotReady { session: session(), seconds: opening.ready_within.as_secs(), saw })
    }

    /// Waits until what was said at the start is being worked on, or is done already.
    fn wait_until_said(&self, opening: &Opening<'_>) -> Result<()> {
        let Some(before) = opening.said_after else {
            return Ok(());
        };
        let begun = Instant::now();
        while begun.elapsed() < TAKEN_UP_WITHIN {
            let found = match (opening.id, opening.name) {
                (Some(id), _) => self.resolve(id.as_str(), &Quiet),
                (None, Some(name)) => self.resolve(name.as_str(), &Quiet),
                (None, None) => return Ok(()),
            };
            if let Ok(found) = found {
                let session = found.session;
                if session.live.is_some() && has_begun(&session, before) {
                    return Ok(());
                }
            }
            self.pause(PAUSE)?;
        }
        Err(Error::NotTakenUp(opening.label.to_owned()))
    }
}

/// Reads what a pane is to run, and makes its command. The terminal's own variables are the pane's, everything else is
/// as it was where the pane was opened.
pub fn pane_command(context: &Context, file: &Path) -> Result<std::process::Command> {
    let unreadable = |source| Error::Unreadable { path: file.to_owned(), source };
    let text = fs::read(file).map_err(unreadable)?;
    let _ = fs::remove_file(file);
    let launch: Launch = serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))?;
    let mut words = launch.words.into_iter();
    let mut command = std::process::Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(&launch.directory).env_clear();
    command.envs(launch.environment.into_iter().filter(|(name, _)| !is_of_a_terminal(name)));
    command.envs(context.environment.texts().filter(|(name, _)| is_of_a_terminal(name)));
    if let Some(name) = &launch.name {
        // From here on this process is the agent.
        let pid = std::process::id();
        let process = agents::process_start(pid).map(|start| format!("{pid} {start}"));
        if let (Some(process), Ok(mut registry)) =
            (process, Registry::open_within(&context.paths.registry, ENDS_WITHIN))
        {
            let _ = registry.note_launch(name, &process);
        }
    }
    Ok(command)
}

/// Leaves word of why a pane's program did not start, for whoever opened the pane.
pub fn note_trouble(file: &Path, trouble: &str) {
    let _ = fs::write(trouble_file(file), trouble);
}

fn trouble_file(file: &Path) -> PathBuf {
    file.with_extension("trouble")
}

fn is_of_a_terminal(variable: &str) -> bool {
    const EXACT: [&str; 8] =
        ["TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "WINDOWID", "LINES", "COLUMNS", "TERMINFO"];
    const BEGINNINGS: [&str; 5] = ["TMUX", "WEZTERM_", "KITTY_", "ZELLIJ", "VTE_"];
    EXACT.contains(&variable) || BEGINNINGS.iter().any(|beginning| variable.starts_with(beginning))
}

/// The end of what a pane shows, on one line.
fn last_lines(screen: &str) -> String {
    let lines: Vec<&str> = screen.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" ⏎ ");
    transcript::text::clip(&transcript::text::one_line(&last), 200)
}
