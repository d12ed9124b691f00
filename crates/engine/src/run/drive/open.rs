//! Opening a pane with an agent, and becoming that agent inside the pane.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use agents::{Program, Screen};
use diagnostics::OrLog;
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName, SessionView, State};

use super::awaited::OpeningSession;
use super::pane::PaneRecord;
use super::{ENDS_WITHIN, PAUSE, TAKEN_UP_WITHIN, editor, has_begun};
use crate::advice::FileError;
use crate::context::Context;
use crate::ctx::Ctx;
use crate::private;
use crate::registry::Registry;
use crate::run::launch;
use crate::run::place::Place;
use crate::run::places::{self, NewPane, OpenPane, Pane, Spot, Terminal};
use crate::run::profile::Profile;
use crate::run::{Error, Result};

/// Where a session is opened, and how.
#[derive(Debug, Clone, Copy)]
pub struct OpenAt {
    /// Where its agent runs.
    pub place: Place,
    /// Whether to bring a new pane to the front.
    pub focus: bool,
    /// How long the agent may take in a pane until it accepts input.
    pub ready_within: Duration,
}

/// A session whose agent runs where it was asked to. In this terminal, the caller has to become it.
#[derive(Debug, Default)]
pub struct Opened {
    /// The pane that it runs in.
    pub pane: Option<Pane>,
    /// What it answered without a terminal.
    pub answer: Option<String>,
    /// The command line that opens it.
    pub command: Vec<String>,
    /// What to become, if it runs in this terminal.
    pub here: Option<Command>,
    /// The current state of the session, if it was read again.
    pub session: Option<SessionView>,
}

/// An agent that will run in a pane.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The agent.
    pub agent: Agent,
    /// The id of its session, if it is known.
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
    /// Whether to bring the pane to the front.
    pub focus: bool,
    /// How long it may take until it accepts input.
    pub ready_within: Duration,
    /// The number of turns before the first prompt, if it starts with one. Opening waits until the agent works on that.
    pub turns_before_prompt: Option<u32>,
}

/// What a new pane runs. It is passed in a file that only its owner can read, because the environment holds secrets and
/// everybody can read command lines.
#[derive(Debug, Serialize, Deserialize)]
struct PaneLaunch {
    words: Vec<String>,
    directory: PathBuf,
    environment: Vec<(String, String)>,
    name: Option<SessionName>,
    terminal: Terminal,
}

/// Opens a pane with an agent in it, and waits until the agent can take input.
pub(crate) fn open_in(ctx: &Ctx, spot: Spot, opening: &Opening<'_>) -> Result<Pane> {
    let program = launch::program_as(ctx, opening.agent, opening.profile, opening.name)?;
    let found = places::find(ctx.context(), spot)?;
    let file = write_launch(ctx, &program, found.terminal, opening)?;
    let words = [ctx.context().program.to_string_lossy().into_owned(), "pane".into(), file.to_string_lossy().into()];
    let (directory, focus) = (opening.directory, opening.focus);
    let order = NewPane { directory, words: &words, name: opening.name, focus };
    let ready = found.open(&order).and_then(|pane| {
        wait_until_ready(ctx, opening, &pane, &file)?;
        wait_until_prompted(ctx, opening)?;
        Ok(pane)
    });
    fs::remove_file(&file).or_log(format_args!("remove {}", file.display()));
    fs::remove_file(failure_file(&file)).or_log(format_args!("remove {}", failure_file(&file).display()));
    let runs = |error: &Error| {
        matches!(error, Error::Asks { .. } | Error::NotReady { .. } | Error::NotTakenUp(_) | Error::Cancelled(_))
    };
    if let (Err(error), Some(name)) = (&ready, opening.name)
        && !runs(error)
        && ctx.registry().empty_session(name.as_str())?.is_some()
    {
        // The agent never ran, so its name is free again.
        ctx.registry().forget_name(name)?;
    }
    ready
}

fn write_launch(ctx: &Ctx, program: &Program, terminal: Terminal, opening: &Opening<'_>) -> Result<PathBuf> {
    let inherited = ctx.context().environment.texts().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let inherited = inherited.filter(|(name, _)| !program.hidden.contains(name));
    let mut words = opening.words.to_vec();
    if let Some(first) = words.first_mut() {
        *first = program.path.to_string_lossy().into_owned();
    }
    let launch = PaneLaunch {
        words,
        directory: opening.directory.to_owned(),
        environment: inherited
            .chain(editor::editor_variables(ctx.context()))
            .chain(program.environment.iter().cloned())
            .collect(),
        name: opening.name.cloned(),
        terminal,
    };
    let folder = ctx.context().paths.cache.join("panes");
    let file = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
    let failed = |source| FileError::Write { path: file.clone(), source };
    private::create_folder(&folder).map_err(failed)?;
    private::open_file(&file).map_err(failed)?;
    serde_json::to_vec(&launch).map_err(Into::into).and_then(|launch| fs::write(&file, launch)).map_err(failed)?;
    Ok(file)
}

/// Waits until an agent accepts input, or works on its first prompt.
fn wait_until_ready(ctx: &Ctx, opening: &Opening<'_>, pane: &Pane, launch: &Path) -> Result<()> {
    let begun = Instant::now();
    let session = || opening.label.to_owned();
    let adapter = ctx.adapter(opening.agent);
    let open = OpenPane::new(ctx.context(), pane)?;
    let mut saw = None;
    let mut last = String::new();
    while begun.elapsed() < opening.ready_within {
        let live = opening.id.and_then(|id| adapter.live_session(id));
        // An agent that has a session open has read it.
        let is_loaded = opening.id.is_none() || live.is_some();
        if let Ok(screen) = open.screen() {
            match adapter.read_screen(&screen) {
                Screen::Asks(what) => return Err(Error::Asks { session: session(), what: what.to_owned() }),
                // While the screen still changes, keys may be lost.
                Screen::Ready if !adapter.reports_state() && is_loaded && screen == last => return Ok(()),
                Screen::Ready | Screen::Reading(_) | Screen::Unknown => {}
            }
            saw = Some(last_lines(&screen)).filter(|saw| !saw.is_empty());
            last = screen;
        } else if open.info().is_none() {
            let said = fs::read_to_string(failure_file(launch)).ok().or(saw);
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
        ctx.pause(PAUSE)?;
    }
    Err(Error::NotReady { session: session(), seconds: opening.ready_within.as_secs(), saw })
}

/// Waits until the agent works on its first prompt, or has answered it.
fn wait_until_prompted(ctx: &Ctx, opening: &Opening<'_>) -> Result<()> {
    let Some(before) = opening.turns_before_prompt else {
        return Ok(());
    };
    if opening.id.is_none() && opening.name.is_none() {
        return Ok(());
    }
    let begun = Instant::now();
    let mut awaited = OpeningSession::new(opening.id, opening.name);
    while begun.elapsed() < TAKEN_UP_WITHIN {
        if let Some(session) = awaited.refresh(ctx, || Ok(None))?
            && session.live.is_some()
            && has_begun(session, before)
        {
            return Ok(());
        }
        ctx.pause(PAUSE)?;
    }
    Err(Error::NotTakenUp(opening.label.to_owned()))
}

/// The command that a pane runs. The terminal's own variables are those of the pane; all others are those of the process
/// that opened it.
pub fn pane_command(context: &Context, file: &Path) -> Result<Command> {
    let unreadable = |source| FileError::Read { path: file.to_owned(), source };
    let text = fs::read(file).map_err(unreadable)?;
    fs::remove_file(file).or_log(format_args!("remove {}", file.display()));
    let launch: PaneLaunch = serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))?;
    let mut words = launch.words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(&launch.directory).env_clear();
    command.envs(launch.environment.into_iter().filter(|(name, _)| !is_of_a_terminal(name)));
    let of_pane = context.environment.texts().filter(|(name, _)| is_of_a_terminal(name));
    command.envs(of_pane.filter(|(name, _)| !is_of_another_multiplexer(launch.terminal, name)));
    if let (Some(name), Some(pane)) = (&launch.name, places::own_pane(context, launch.terminal)) {
        // From here on this process is the agent.
        let pid = std::process::id();
        let record = PaneRecord { pane, pid, start: agents::process_start(pid) };
        // Without a record, the agent still runs, and its environment names its pane.
        Registry::open_within(&context.paths.registry, ENDS_WITHIN)
            .and_then(|mut registry| registry.record_pane(name, &record, record.process()))
            .or_log("record the pane");
    }
    Ok(command)
}

/// Records why a pane's program did not start, for the process that opened the pane.
pub fn record_launch_failure(file: &Path, failure: &str) {
    fs::write(failure_file(file), failure).or_log("report why the pane did not start");
}

fn failure_file(file: &Path) -> PathBuf {
    file.with_extension("failure")
}

fn is_of_a_terminal(variable: &str) -> bool {
    const EXACT: [&str; 8] =
        ["TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "WINDOWID", "LINES", "COLUMNS", "TERMINFO"];
    const BEGINNINGS: [&str; 5] = ["TMUX", "WEZTERM_", "KITTY_", "ZELLIJ", "VTE_"];
    EXACT.contains(&variable) || BEGINNINGS.iter().any(|beginning| variable.starts_with(beginning))
}

/// Whether a variable belongs to a multiplexer that the pane is not in. Some terminals, such as WezTerm, pass on the
/// environment of the process that opened the pane.
fn is_of_another_multiplexer(terminal: Terminal, variable: &str) -> bool {
    let of = |multiplexer: Terminal, beginning: &str| terminal != multiplexer && variable.starts_with(beginning);
    of(Terminal::Tmux, "TMUX") || of(Terminal::Zellij, "ZELLIJ")
}

/// The last lines of a screen, joined to one.
fn last_lines(screen: &str) -> String {
    let lines: Vec<&str> = screen.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" ⏎ ");
    transcript::text::clip(&transcript::text::one_line(&last), 200)
}
