//! What can go wrong with a running agent: its profile, its terminal, and messages to it.

use std::io;
use std::path::PathBuf;

use agents::ProgramError;
use transcript::text::one_line;
use transcript::{Agent, State};

use crate::advice::{Advice, Cancelled, FileError, in_words, wraps};
use crate::reported::ReportedError;
use crate::terminal::Terminal;
use crate::{config, program, registry, sessions, workspace};

/// The result of anything about running agents.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about a running agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The agent of a fork has not received the transcript yet.
    #[error("`{0}` has not started")]
    NotStarted(String),
    /// The session did not become idle in time.
    #[error("session `{session}` is still {} after {seconds} seconds", in_words(*.state))]
    StillAtWork {
        /// The session.
        session: String,
        /// Busy, or waiting for the user.
        state: State,
        /// How long tine waited.
        seconds: u64,
    },
    /// The background process could not be started, or did not accept its job.
    #[error("cannot start a background process: {0}")]
    Background(io::Error),
    /// The background process ended without a report.
    #[error("the background process ended unexpectedly: {0}")]
    WorkerDied(String),
    /// The background process failed.
    #[error(transparent)]
    Reported(ReportedError),
    /// A turn ended without an answer.
    #[error("`{session}` {} without an answer", if *.runs { "ended its turn" } else { "was stopped" })]
    Unanswered {
        /// The session.
        session: String,
        /// Whether its agent still runs.
        runs: bool,
    },
    /// An agent's daemon holds messages for an interrupted session back until it is opened.
    #[error("the last turn of `{session}` was interrupted; {} accepts no messages until you open the session", .agent.product_name())]
    HeldBack {
        /// The agent.
        agent: Agent,
        /// The session.
        session: String,
    },
    /// The agent failed to answer.
    #[error("{source}")]
    NotAnswered {
        /// The session, if it exists anyway.
        session: Option<String>,
        /// What happened.
        source: ProgramError,
    },
    /// The message is longer than the agent accepts.
    #[error("the message has {length} characters; the limit of {} is {most}", .agent.product_name())]
    PromptTooLong {
        /// The agent.
        agent: Agent,
        /// The length of the message.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// The message is longer than a command line may be.
    #[error("the prompt is too long for a command line")]
    PromptTooLongHere,
    /// A headless agent ends after its answer, so it needs a prompt.
    #[error("a headless session needs a prompt")]
    NoPrompt,
    /// The message is empty.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The message is not text.
    #[error("the prompt {0}")]
    BadPrompt(&'static str),
    /// The agent has no option for it.
    #[error("{} does not support {what}", .agent.product_name())]
    NoSuchOption {
        /// The agent.
        agent: Agent,
        /// What was given, with its article.
        what: &'static str,
    },
    /// A word that is neither an option nor the first message.
    #[error("`{}` is not an option of {}", one_line(.word), .agent.product_name())]
    NotAnOption {
        /// The agent.
        agent: Agent,
        /// The word.
        word: String,
    },
    /// An option after `--` that chooses a session, which is tine's task.
    #[error("`{}` cannot be passed to the agent: tine chooses the session", one_line(.option))]
    SessionOption {
        /// The option.
        option: String,
        /// What to do instead.
        instead: String,
    },
    /// The agent does not accept the id for a new session.
    #[error("invalid session id `{}`: {} requires a UUID", one_line(.id), .agent.product_name())]
    BadSessionId {
        /// The agent.
        agent: Agent,
        /// The id.
        id: String,
    },
    /// The profile is for another agent.
    #[error("profile `{name}` is for {}", .agent.product_name())]
    ProfileOfOther {
        /// The profile.
        name: String,
        /// Its agent.
        agent: Agent,
    },
    /// A settings or prompt file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    NoLaunchFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The agent no longer reads the session's format.
    #[error("{} no longer reads the format of this session", .0.product_name())]
    OldFormat(Agent),
    /// The same, and the session has no turn that could be handed over.
    #[error("session `{session}` has no messages, and {} no longer reads its format", .agent.product_name())]
    EmptyOldFormat {
        /// The session.
        session: String,
        /// The agent.
        agent: Agent,
    },
    /// `--in auto` outside a terminal with panes.
    #[error("not running inside tmux, WezTerm, kitty or Zellij")]
    NoTerminal,
    /// The terminal's program is not installed.
    #[error("`{}` is not installed", .0.as_str())]
    NoTerminalProgram(Terminal),
    /// The terminal's program failed.
    #[error("{} failed: {message}", terminal.as_str())]
    Terminal {
        /// The terminal.
        terminal: Terminal,
        /// Its output.
        message: String,
    },
    /// The session is in no pane that tine can reach.
    #[error("`{session}` {}", if *runs { "is not running in a pane that tine can reach" } else { "is not running" })]
    NoPane {
        /// The session.
        session: String,
        /// Whether it runs at all.
        runs: bool,
    },
    /// The agent did not become ready in time.
    #[error("`{session}` was not ready for input after {seconds} seconds{}", shows(.saw))]
    NotReady {
        /// The session.
        session: String,
        /// How long tine waited.
        seconds: u64,
        /// What its pane shows.
        saw: Option<String>,
    },
    /// The agent asks something that only the user can answer.
    #[error("`{session}` is waiting for {what}")]
    Asks {
        /// The session.
        session: String,
        /// What it asks for.
        what: String,
    },
    /// The pane closed before the agent was ready.
    #[error("the pane of `{session}` closed before the agent was ready{}", because(.said))]
    PaneClosed {
        /// The session.
        session: String,
        /// What went wrong.
        said: Option<String>,
    },
    /// The agent ignored a message.
    #[error("`{0}` did not accept the message")]
    NotTakenUp(String),
    /// The session is open in another place.
    #[error("session `{session}` is already open ({})", .state.as_str())]
    OpenElsewhere {
        /// The session.
        session: String,
        /// What it does.
        state: State,
    },
    /// The caller no longer waits.
    #[error(transparent)]
    Cancelled(Cancelled),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// A directory or a repository.
    #[error(transparent)]
    Workspace(workspace::Error),
    /// The registry.
    #[error(transparent)]
    Registry(registry::Error),
    /// An agent's program.
    #[error(transparent)]
    Program(program::Error),
    /// A session.
    #[error(transparent)]
    Sessions(sessions::Error),
}

wraps!(Reported, Cancelled, File, Config, Workspace, Registry, Program, Sessions);

impl From<ProgramError> for Error {
    fn from(error: ProgramError) -> Self {
        Error::Program(error.into())
    }
}

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::NotStarted(session) => Advice::new("not_started", format!("start it with `tine resume {session}`")),
            Error::StillAtWork { state: State::Waiting, session, .. } => Advice::new(
                "still_at_work",
                format!("`tine focus {session}` shows what it waits for; to fork its last complete turn, pass `--now`"),
            ),
            Error::StillAtWork { session, .. } => Advice::new(
                "still_at_work",
                format!("`tine wait {session}` waits for it; to fork its last complete turn, pass `--now`"),
            ),
            Error::Background(_) => {
                Advice::new("agent_failed", "nothing was sent; `--wait` sends it from this process")
            }
            Error::WorkerDied(_) => Advice::new("agent_failed", "`tine show` shows whether the message arrived"),
            passed_on!() => self.passed_on(),
            Error::Unanswered { session, .. } => Advice::new(
                "unanswered",
                format!("it was interrupted or failed; `tine show {session}` shows how it ended"),
            ),
            Error::HeldBack { session, .. } => {
                Advice::new("held_back", format!("`tine resume {session} --in tmux` opens it"))
            }
            Error::NotAnswered { session: Some(session), .. } => Advice::new(
                "agent_failed",
                format!(
                    "the session exists: `tine show {session}` shows how far it got, `tine resume {session}` continues it"
                ),
            ),
            Error::NotAnswered { session: None, .. } => {
                Advice::new("agent_failed", "no session was created, and the name is free again")
            }
            Error::PromptTooLong { .. } => {
                Advice::new("bad_prompt", "write it to a file and tell the agent to read the file")
            }
            Error::PromptTooLongHere => {
                Advice::new("bad_prompt", "use `--in headless`, which sends it on standard input")
            }
            Error::NoPrompt => Advice::new("no_prompt", "pass one with `--prompt`"),
            Error::EmptyPrompt => Advice::new("bad_prompt", "write a message"),
            Error::BadPrompt(_) => Advice::new("bad_prompt", "use plain text in UTF-8"),
            Error::NoSuchOption { .. } => Advice::new("no_such_option", "pass the agent's own options after `--`"),
            Error::NotAnOption { .. } => Advice::new(
                "not_an_option",
                "to send a first message, quote it as one word after `--` or use `--prompt`",
            ),
            Error::SessionOption { instead, .. } => Advice::new("session_option", instead.as_str()),
            Error::BadSessionId { .. } => {
                Advice::new("bad_session_id", "leave out `--session-id` to let tine create an id")
            }
            Error::ProfileOfOther { agent, .. } => Advice::new("profile_of_other", format!("pass `--agent {agent}`")),
            Error::NoLaunchFile { .. } => {
                Advice::new("unreadable", "check the path on the command line or in the profile")
            }
            Error::OldFormat(_) => Advice::new("old_format", "`tine fork --method seed` gives it the transcript"),
            Error::EmptyOldFormat { .. } => Advice::new("old_format", "start a new session with `tine start`"),
            Error::NoTerminal => {
                Advice::new("no_terminal", "choose one with `--in tmux`, or run without a terminal: `--in headless`")
            }
            Error::NoTerminalProgram(_) => {
                Advice::new("no_terminal_program", "install it, or choose another place with `--in`")
            }
            Error::Terminal { .. } => Advice::new(
                "terminal",
                "check that the terminal is open; `--in` chooses another place, and `--in none` only prints the command",
            ),
            Error::NoPane { runs: true, session } => {
                Advice::new("no_pane", format!("stop it where it runs, then run `tine resume {session}`"))
            }
            Error::NoPane { session, .. } => {
                Advice::new("no_pane", format!("`tine resume {session} --in tmux` opens it"))
            }
            Error::NotReady { session, .. } => {
                Advice::new("not_ready", format!("`tine focus {session}` shows it; `--ready-timeout` waits longer"))
            }
            Error::Asks { session, .. } => {
                Advice::new("waiting", format!("`tine focus {session}` opens it; tine never answers for you"))
            }
            Error::PaneClosed { .. } => Advice::new("pane_closed", "run it with `--in here` to see why"),
            Error::NotTakenUp(session) => Advice::new(
                "not_taken_up",
                format!("`tine read {session} --screen` shows its screen, and `tine focus {session}` opens it"),
            ),
            Error::OpenElsewhere { session, .. } => Advice::new(
                "open_elsewhere",
                format!("agents don't lock sessions: `tine fork {session}` is safe, and `--yes` resumes it anyway"),
            ),
        }
    }
}

fn shows(screen: &Option<String>) -> String {
    screen.as_ref().map_or_else(String::new, |screen| format!("; it shows: {screen}"))
}

fn because(said: &Option<String>) -> String {
    said.as_ref().map_or_else(String::new, |said| format!(": {said}"))
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let session = || "auth-fix".to_owned();
    let failed = || ProgramError::Failed { program: "claude".into(), message: "API Error: 401".into() };
    crate::advice::samples![
        NotStarted(session()),
        StillAtWork { session: session(), state: State::Busy, seconds: 60 },
        StillAtWork { session: session(), state: State::Waiting, seconds: 60 },
        Background(io::Error::from_raw_os_error(12)),
        Unanswered { session: session(), runs: true },
        Unanswered { session: session(), runs: false },
        HeldBack { agent: Agent::Codex, session: session() },
        WorkerDied("signal: 9 (SIGKILL)".into()),
        NotAnswered { session: Some(session()), source: failed() },
        NotAnswered { session: None, source: failed() },
        PromptTooLong { agent: Agent::Codex, length: 2_000_000, most: 1_048_576 },
        PromptTooLongHere,
        NoPrompt,
        EmptyPrompt,
        BadPrompt("contains a NUL character"),
        NoSuchOption { agent: Agent::Codex, what: "a settings file" },
        NotAnOption { agent: Agent::Claude, word: "fast".into() },
        SessionOption { option: "--resume 1f3a".into(), instead: "run `tine resume 1f3a`".into() },
        BadSessionId { agent: Agent::Claude, id: "mine".into() },
        ProfileOfOther { name: "fast".into(), agent: Agent::Codex },
        NoLaunchFile { path: "settings.json".into(), source: io::Error::from_raw_os_error(2) },
        OldFormat(Agent::Codex),
        EmptyOldFormat { session: session(), agent: Agent::Codex },
        NoTerminal,
        NoTerminalProgram(Terminal::Tmux),
        Terminal { terminal: Terminal::Tmux, message: "no server running on /tmp/tmux-1000/default".into() },
        NoPane { session: session(), runs: true },
        NoPane { session: session(), runs: false },
        NotReady { session: session(), seconds: 30, saw: Some("Welcome".into()) },
        Asks { session: session(), what: "a permission".into() },
        PaneClosed { session: session(), said: Some("claude: command not found".into()) },
        NotTakenUp(session()),
        OpenElsewhere { session: session(), state: State::Idle };
        wraps Reported, Cancelled, File, Config, Workspace, Registry, Program, Sessions
    ]
}
