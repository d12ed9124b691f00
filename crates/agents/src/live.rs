//! Running agents: which sessions are open, what they are doing, what their screens show, and how to type into them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use transcript::{SessionId, State};

use crate::process::Terminal;

/// Finds out from outside what a running agent is doing.
pub trait LiveState {
    /// The sessions that a process has open now.
    fn live(&self) -> Live;
    /// The process that has one session open now. Its cost doesn't grow with the number of sessions.
    fn live_session(&self, id: &SessionId) -> Option<LiveSession> {
        self.live().sessions.remove(id)
    }
    /// Whether a running agent reports when it accepts input.
    fn reports_state(&self) -> bool {
        true
    }
    /// Interprets what the agent's terminal shows.
    fn read_screen(&self, _screen: &str) -> Screen {
        Screen::Unknown
    }
    /// Prepares a text for pasting into the agent's input line, so that it is sent and not treated as a command.
    fn as_plain_input(&self, text: &str) -> String {
        text.to_owned()
    }
    /// The terminals in which the agent runs, each with the value of an environment variable. Only for agents whose
    /// daemon does not report its terminals.
    fn terminals(&self, _variable: &str) -> Vec<Terminal> {
        Vec::new()
    }
    /// The value of that variable in a directory's only terminal.
    fn variable_of_only_terminal(&self, directory: &Path, variable: &str) -> Option<String> {
        let terminals = self.terminals(variable);
        let directory = terminals.first().and_then(|_| directory.canonicalize().ok())?;
        let mut here = terminals.into_iter().filter(|terminal| terminal.directory == directory);
        match (here.next()?, here.next()) {
            (only, None) => only.mark,
            _ => None,
        }
    }
}

/// The sessions that a process has open.
#[derive(Debug, Default)]
pub struct Live {
    /// The open sessions by id.
    pub sessions: HashMap<SessionId, LiveSession>,
    /// Set if this system cannot tell for sure, so that "stopped" means "not known to run".
    pub weak: Option<&'static str>,
}

/// A session that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// The process, if known.
    pub pid: Option<u32>,
    /// What kind of process it is.
    pub holder: Holder,
    /// The state that the agent reports; `None` if only the transcript shows it.
    pub state: Option<State>,
    /// When it reported the state, or else when its process started; in nanoseconds since 1970.
    pub since: Option<i64>,
    /// What it is waiting for.
    pub waiting_for: Option<String>,
    /// The directory of the process's project, where two sessions may have the same id.
    pub cwd: Option<PathBuf>,
    /// The names of the folders in which that project's transcripts may be.
    pub folders: Vec<String>,
}

impl LiveSession {
    /// Whether this process has that session open. Two projects may hold sessions with the same id; the process belongs
    /// to the one whose directory it is in.
    pub fn is_of_project(&self, transcript: &Path, cwd: Option<&Path>) -> bool {
        let folder = transcript.parent().and_then(Path::file_name).unwrap_or_default();
        self.cwd.is_none() || self.folders.iter().any(|own| own.as_str() == folder) || self.cwd.as_deref() == cwd
    }
}

/// What kind of process has a session open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Holder {
    /// The agent itself.
    #[default]
    Agent,
    /// A server that works for another program, such as an editor.
    Server,
    /// A daemon that keeps sessions open even after their terminals have closed.
    Daemon,
}

/// What an agent's terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// It can take input.
    Ready,
    /// It asks something that only the user can answer.
    Asks(&'static str),
    /// It shows the transcript, where keys have other meanings; this key leads back.
    Reading(ExitKey),
    /// Anything else.
    Unknown,
}

/// The key that leads back to the input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKey {
    /// Escape.
    Escape,
    /// The letter q.
    Q,
}

/// Whether a screen has a list of numbered choices with a cursor on one of them. A quoted list has no cursor.
pub(crate) fn has_choices(screen: &str, cursor: char) -> bool {
    let mut chosen = screen.lines().filter_map(|line| line.trim_start_matches(['│', ' ']).strip_prefix(cursor));
    chosen.any(|choice| choice.trim_start().starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether one of the last two lines of a screen contains these words.
pub(crate) fn ends_with_line(screen: &str, words: &str) -> bool {
    screen.lines().rev().filter(|line| !line.trim().is_empty()).take(2).any(|line| line.contains(words))
}

/// Ends a text so that Enter sends it. After an `@` a list of files would stay open and take the key, and so would a
/// backslash at the end. Input lines strip the space that is added.
pub(crate) fn with_closed_end(text: &str) -> String {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    if last.contains('@') || text.ends_with('\\') { format!("{text} ") } else { text.to_owned() }
}
