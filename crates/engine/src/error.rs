//! What can go wrong, in words that a person can act on. Each error has a kind for programs and, where there is one,
//! a hint for people.

use std::io;
use std::path::PathBuf;

use crate::places::Terminal;
use transcript::{Agent, NameError, PointError, SessionId, SessionName, SessionView, State};

/// The result of anything in the engine.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A query that makes no sense.
    #[error("{message}\n  {shown}\n  {marks}")]
    BadQuery {
        /// What is wrong.
        message: String,
        /// The query, or the part of it around the place.
        shown: String,
        /// Marks below the place.
        marks: String,
    },
    /// A query without a word.
    #[error("there is no word in the query")]
    EmptyQuery,
    /// A query of words that are everywhere.
    #[error("the words of `{}` are in nearly every session", transcript::text::clip(.0, 60))]
    OnlyCommonWords(String),
    /// A search by meaning in a build that has none.
    #[error("the engine `hybrid` is not in this build of tine")]
    NoMeaning,
    /// A query that nobody typed.
    #[error("the query is too long: {bytes} bytes, and at most {most} or 64 words are looked for")]
    QueryTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The index cannot be kept or read.
    #[error("the search index {trouble} in {}: {message}", .folder.display())]
    Index {
        /// Where.
        folder: PathBuf,
        /// Why.
        message: String,
        /// What kind of trouble it is.
        trouble: IndexTrouble,
    },
    /// A file of an export cannot be written.
    #[error("cannot export to {}: {source}", .folder.display())]
    Export {
        /// Where to.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No session is known by that.
    #[error("no session `{}`", transcript::text::one_line(.spec))]
    UnknownSession {
        /// What was asked for.
        spec: String,
        /// Names that are close to it.
        similar: Vec<String>,
    },
    /// Several sessions are meant by that.
    #[error("`{}` could be any of {} sessions", transcript::text::one_line(.spec), .matches.len())]
    Ambiguous {
        /// What was asked for.
        spec: String,
        /// All that match, newest first.
        matches: Vec<SessionView>,
    },
    /// `.` in a directory in which nobody talked to an agent.
    #[error("no session in {}", .0.display())]
    NoSessionHere(PathBuf),
    /// `-` before any session was used.
    #[error("no session was used yet")]
    NoLastSession,
    /// A turn that the session does not have.
    #[error("session `{session}` has no turn {}", asked(.source))]
    NoTurn {
        /// The session.
        session: String,
        /// What was asked for.
        source: PointError,
    },
    /// What stands behind `@` is no turn.
    #[error(transparent)]
    BadPoint(PointError),
    /// A name that breaks the rule.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// The session's file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that is no session of any agent.
    #[error("{} is not a session of an agent that tine knows", .0.display())]
    NotASession(PathBuf),
    /// The name belongs to another session.
    #[error("the name `{0}` is taken")]
    NameTaken(SessionName),
    /// A hundred forks of one session have names already.
    #[error("no name is left for another fork")]
    NoNameLeft,
    /// The source is at work.
    #[error("session `{session}` is {}", .state.as_str())]
    AtWork {
        /// The session.
        session: String,
        /// Busy, or waiting for a permission.
        state: State,
    },
    /// Nothing was asked in the source.
    #[error("session `{0}` has no complete turn to fork at")]
    NothingToFork(String),
    /// A directory that is not there.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// The directory of a session is gone.
    #[error("the session's directory {} is gone", .path.display())]
    DirectoryGone {
        /// The session.
        session: String,
        /// Where it was.
        path: PathBuf,
        /// Where its repository is now.
        now: Option<PathBuf>,
    },
    /// git is not installed.
    #[error("git was not found")]
    NoGit,
    /// git refused.
    #[error("git in {}: {message}", .directory.display())]
    Git {
        /// Where it ran.
        directory: PathBuf,
        /// What it said.
        message: String,
    },
    /// A worktree needs a repository.
    #[error("{} is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository is in the middle of something.
    #[error("{} is in the middle of {what}", .directory.display())]
    InTheMiddle {
        /// The working tree.
        directory: PathBuf,
        /// Of what.
        what: &'static str,
    },
    /// No branch is checked out.
    #[error("no branch is checked out in {}", .0.display())]
    Detached(PathBuf),
    /// A word that means no commit.
    #[error("there is no commit `{}`", transcript::text::one_line(.0))]
    NoCommit(String),
    /// A text that git does not take for a branch.
    #[error("`{}` cannot be the name of a branch", transcript::text::one_line(.0))]
    BadBranch(String),
    /// There is such a branch already.
    #[error("there is a branch `{0}` already")]
    BranchExists(String),
    /// The branch is checked out in another working tree.
    #[error("the branch `{branch}` is checked out in {}", .tree.display())]
    CheckedOut {
        /// The branch.
        branch: String,
        /// Where.
        tree: PathBuf,
    },
    /// An agent's program is not there.
    #[error("{} was not found", transcript::text::one_line(.program))]
    NoAgent {
        /// The agent.
        agent: Agent,
        /// What was looked for.
        program: String,
    },
    /// An agent's program did not do what was asked of it.
    #[error(transparent)]
    Program(#[from] agents::ProgramError),
    /// An agent cannot go on in another agent's session file.
    #[error("{} cannot go on in a session of {} by {method}", .to.product_name(), .from.product_name())]
    OtherAgent {
        /// Whose session it is.
        from: Agent,
        /// Who is to go on.
        to: Agent,
        /// The method that was asked for.
        method: &'static str,
    },
    /// An agent's own fork is not what was asked for.
    #[error("{what}")]
    NativeDiffers {
        /// The agent.
        agent: Agent,
        /// In what.
        what: String,
    },
    /// A session cannot be told without us.
    #[error("cannot start in the background: {0}")]
    Background(io::Error),
    /// A turn ended without an answer.
    #[error("`{session}` {} before it had answered", if *.runs { "ended its turn" } else { "was ended" })]
    Unanswered {
        /// The session.
        session: String,
        /// Whether its agent still runs.
        runs: bool,
    },
    /// Nobody waits for it any more.
    #[error("it was cancelled")]
    Cancelled,
    /// A fork was made, and its agent did not come to run.
    #[error("{source}")]
    NotOpened {
        /// The fork.
        fork: String,
        /// The operation that made it.
        operation: i64,
        /// What went wrong.
        source: Box<Error>,
    },
    /// The source did not become idle in time.
    #[error("session `{session}` is still {} after {seconds} seconds", .state.as_str())]
    StillAtWork {
        /// The session.
        session: String,
        /// Busy, or waiting for a permission.
        state: State,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A profile that the configuration does not have.
    #[error("there is no profile `{}`", transcript::text::one_line(.name))]
    NoProfile {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
        /// The configuration file.
        file: PathBuf,
    },
    /// A profile for another agent.
    #[error("the profile `{name}` is for {}", .agent.product_name())]
    ProfileOfOther {
        /// The profile.
        name: String,
        /// Its agent.
        agent: Agent,
    },
    /// A file that a session is to be launched with.
    #[error("cannot read {}: {source}", .path.display())]
    NoLaunchFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A word that is neither an option nor what is said first.
    #[error("`{}` is not an option of {}", transcript::text::one_line(.word), .agent.product_name())]
    NotAnOption {
        /// The agent.
        agent: Agent,
        /// The word.
        word: String,
    },
    /// A method that needs a format which the agent does not read any more.
    #[error("{} does not read the format of this session any more", .0.product_name())]
    OldFormat(Agent),
    /// More than an agent takes at once.
    #[error("{} takes {most} characters at once, and this is {length}", .agent.product_name())]
    PromptTooLong {
        /// The agent.
        agent: Agent,
        /// How many characters it is.
        length: usize,
        /// How many it may be.
        most: usize,
    },
    /// A daemon has a session open that was interrupted, and takes nothing without a terminal.
    #[error("`{0}` was interrupted, and Codex's daemon takes nothing for it until it is opened again")]
    HeldBack(String),
    /// Something could not be said in a session, by a process that did it without us.
    #[error("`{session}` was not told: {trouble}")]
    NotSaid {
        /// The session.
        session: String,
        /// What that process said.
        trouble: String,
    },
    /// An agent did not answer what was said to it.
    #[error("{source}")]
    NotAnswered {
        /// The session, if it is there all the same.
        session: Option<String>,
        /// What happened.
        source: agents::ProgramError,
    },
    /// Something that an agent's command line does not take.
    #[error("{} takes no {}", .agent.product_name(), .what.trim_start_matches("a "))]
    NoSuchOption {
        /// The agent.
        agent: Agent,
        /// What was given.
        what: &'static str,
    },
    /// The session is known to tine already.
    #[error("{id} is known already, as `{name}`")]
    Tracked {
        /// The id.
        id: SessionId,
        /// The session that has it, or had it.
        name: String,
    },
    /// A parent that descends from its child.
    #[error("`{session}` cannot be a fork of `{parent}`, which comes from it")]
    OwnAncestor {
        /// The child.
        session: String,
        /// The parent.
        parent: String,
    },
    /// It has that name.
    #[error("it is called `{0}` already")]
    SameName(SessionName),
    /// Nothing was said in it.
    #[error("`{0}` was started, and nothing was said in it yet")]
    Unbegun(SessionName),
    /// A session without a transcript.
    #[error("the transcript of `{name}` is gone: {}", path.display())]
    TranscriptGone {
        /// The session.
        name: SessionName,
        /// Where it was.
        path: PathBuf,
    },
    /// No terminal with panes is around.
    #[error("no tmux, WezTerm, kitty or Zellij is around")]
    NoTerminal,
    /// A terminal's program is missing.
    #[error("`{}` is not installed", .0.as_str())]
    NoTerminalProgram(Terminal),
    /// A terminal did not do what it was asked.
    #[error("{}: {message}", terminal.as_str())]
    Terminal {
        /// Which.
        terminal: Terminal,
        /// What it said.
        message: String,
    },
    /// Nobody knows where a session runs.
    #[error("`{session}` {}", if *runs { "runs in no pane that tine can reach" } else { "is not running" })]
    NoPane {
        /// The session.
        session: String,
        /// Whether it runs at all.
        runs: bool,
    },
    /// An agent did not get ready.
    #[error("`{session}` was not ready for input after {seconds} seconds{}", .saw.as_ref().map(|saw| format!("; it shows: {saw}")).unwrap_or_default())]
    NotReady {
        /// The session.
        session: String,
        /// How long was waited.
        seconds: u64,
        /// What its pane shows.
        saw: Option<String>,
    },
    /// An agent asks something that only a person can answer.
    #[error("`{session}` waits for {what}")]
    Asks {
        /// The session.
        session: String,
        /// What it asks for.
        what: String,
    },
    /// A pane was closed before its agent was ready.
    #[error("the pane of `{session}` closed before the agent was ready{}", .said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    PaneClosed {
        /// The session.
        session: String,
        /// What went wrong.
        said: Option<String>,
    },
    /// Words that an agent did not take up.
    #[error("`{0}` did not take up what was sent")]
    NotTakenUp(String),
    /// A prompt that cannot be handed over.
    #[error("the prompt {0}")]
    BadPrompt(&'static str),
    /// A session that a process has open.
    #[error("session `{session}` is open ({})", .state.as_str())]
    IsOpen {
        /// The session.
        session: String,
        /// What it does.
        state: State,
    },
    /// A session that a process has open, and that another one was to go on in.
    #[error("session `{session}` is open elsewhere ({})", .state.as_str())]
    OpenElsewhere {
        /// The session.
        session: String,
        /// What it does.
        state: State,
    },
    /// Other sessions have a part of their history in this one's file.
    #[error("session `{session}` holds a part of the history of `{by}`{}", if *.count > 1 { format!(" and {} more", .count - 1) } else { String::new() })]
    StillNeeded {
        /// The session.
        session: String,
        /// One that needs it.
        by: String,
        /// How many need it.
        count: usize,
    },
    /// Something is where the worktree belongs.
    #[error("{} is in the way", .0.display())]
    InTheWay(PathBuf),
    /// A directory cannot be copied into itself.
    #[error("{} is inside of {}, which is to be copied", .target.display(), .directory.display())]
    IntoItself {
        /// What was to be copied.
        directory: PathBuf,
        /// Where to.
        target: PathBuf,
    },
    /// Something is where a copy belongs.
    #[error("{} is there already, and is not an empty directory", .0.display())]
    TargetExists(PathBuf),
    /// A place that cannot be written down.
    #[error("{} cannot be the place of a copy or a worktree: it is not text", .0.display())]
    BadTarget(PathBuf),
    /// Something in a directory cannot be copied.
    #[error("cannot copy {}: {source}", .path.display())]
    NotCopied {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A copy would share its repository with the source.
    #[error("{} leads to a repository that cannot be copied along", .0.display())]
    SharedRepository(PathBuf),
    /// A file waits for somebody to decide between two versions.
    #[error("`{}` in {} is not merged yet", transcript::text::one_line(&.path.to_string_lossy()), .directory.display())]
    Unmerged {
        /// The working tree.
        directory: PathBuf,
        /// The file in it.
        path: PathBuf,
    },
    /// What is to run in every new worktree failed.
    #[error("`{}` failed in the new worktree: {how}", transcript::text::one_line(.command))]
    SetupFailed {
        /// What ran.
        command: String,
        /// How it ended.
        how: String,
    },
    /// The configuration file says something that cannot be meant.
    #[error("{}, line {line}: {}", .path.display(), transcript::text::one_line(.message))]
    BadConfig {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// Something was changed in the fork's copy of a directory.
    #[error("something was changed in {}, which operation {id} made", .path.display())]
    WorkedInCopy {
        /// The operation.
        id: i64,
        /// The copy.
        path: PathBuf,
    },
    /// Something was changed in the fork's worktree.
    #[error("something was changed in the worktree that operation {id} made")]
    WorkedIn {
        /// The operation.
        id: i64,
    },
    /// Something could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    CannotWrite {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A copy that is not like its source.
    #[error("the copy is not like its source: {what}")]
    CopyDiffers {
        /// In what it differs.
        what: String,
    },
    /// There is no such operation, or none at all.
    #[error("{}", match .0 { Some(id) => format!("there is no operation {id}"), None => "there is nothing to undo".into() })]
    NothingToUndo(Option<i64>),
    /// An operation that cannot be taken back.
    #[error("operation {id} is {state}, not done")]
    NotUndoable {
        /// Its number.
        id: i64,
        /// What became of it.
        state: String,
    },
    /// Somebody went on in the fork.
    #[error("the session that operation {id} made has grown since")]
    HasGrown {
        /// Its number.
        id: i64,
    },
    /// The fork was moved since.
    #[error("the session that operation {id} made is now {}", .path.display())]
    HasMoved {
        /// Its number.
        id: i64,
        /// Where it is.
        path: PathBuf,
    },
    /// Something could not be removed.
    #[error("cannot remove {}", .0.display())]
    NotRemoved(PathBuf),
    /// A person's or an agent's file in which hooks belong cannot be understood.
    #[error("{}, line {line}: {}", .path.display(), transcript::text::one_line(.message))]
    BadSettings {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Something could not be installed or taken out.
    #[error("cannot change {}: {source}", .path.display())]
    NotSetUp {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// An agent's program did not install or take out what it was asked to.
    #[error(transparent)]
    SetupProgram(agents::ProgramError),
    /// An agent that cannot be asked for its hooks.
    #[error("{} cannot be asked for its hooks: {source}", .agent.product_name())]
    NoHooks {
        /// The agent.
        agent: Agent,
        /// What happened.
        source: agents::ProgramError,
    },
    /// A file is not what it was when a person agreed to its change.
    #[error("{} was changed meanwhile", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// An agent that has no such place for hooks.
    #[error("the hooks of {} are installed for a person, not {scope}", .agent.product_name())]
    NoSuchScope {
        /// The agent.
        agent: Agent,
        /// What was asked for.
        scope: &'static str,
    },
    /// The registry cannot be opened or used.
    #[error("cannot use the registry {}: {message}", .path.display())]
    Registry {
        /// Its file.
        path: PathBuf,
        /// What SQLite or the system says.
        message: String,
    },
    /// The registry was written by a newer tine.
    #[error("the registry {} was written by a newer tine (format {found}, this one knows {known})", .path.display())]
    NewerRegistry {
        /// Its file.
        path: PathBuf,
        /// The format found.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
}

/// What is wrong with an index, as far as it decides what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexTrouble {
    /// There is no room for it.
    Full,
    /// Nothing can be written there.
    ReadOnly,
    /// Another process writes it.
    Busy,
    /// It is not as it was written.
    Damaged,
    /// Anything else.
    Other,
}

impl IndexTrouble {
    /// What an error of the file system means.
    pub(crate) fn of(error: &std::io::Error) -> IndexTrouble {
        use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => IndexTrouble::Full,
            ReadOnlyFilesystem | PermissionDenied => IndexTrouble::ReadOnly,
            _ => IndexTrouble::Other,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            IndexTrouble::Full => "the disk is full: make room there, or name another folder with TINE_CACHE",
            IndexTrouble::ReadOnly => "nothing can be written there; TINE_CACHE names another folder",
            IndexTrouble::Busy => "try again when the other tine is done",
            IndexTrouble::Damaged => "`tine index --rebuild` builds it anew",
            IndexTrouble::Other => "is the disk full, or the folder read-only? TINE_CACHE names another",
        }
    }
}

impl std::fmt::Display for IndexTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IndexTrouble::Full | IndexTrouble::ReadOnly | IndexTrouble::Other => "cannot be kept",
            IndexTrouble::Busy => "cannot be written now",
            IndexTrouble::Damaged => "cannot be read",
        })
    }
}

impl Error {
    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::UnknownSession { .. } => "unknown_session",
            Error::Ambiguous { .. } => "ambiguous_session",
            Error::NoSessionHere(_) => "no_session_here",
            Error::NoLastSession => "no_last_session",
            Error::BadQuery { .. } => "bad_query",
            Error::EmptyQuery => "empty_query",
            Error::OnlyCommonWords(_) => "only_common_words",
            Error::NoMeaning => "no_such_engine",
            Error::QueryTooLong { .. } => "query_too_long",
            Error::Index { .. } => "index",
            Error::Export { .. } => "export",
            Error::NoTurn { .. } => "no_such_turn",
            Error::BadPoint(_) => "bad_turn",
            Error::BadName(_) => "bad_name",
            Error::Unreadable { .. } => "unreadable",
            Error::NotASession(_) => "not_a_session",
            Error::NameTaken(_) => "name_taken",
            Error::NoNameLeft => "no_name_left",
            Error::AtWork { .. } => "at_work",
            Error::NothingToFork(_) => "nothing_to_fork",
            Error::NoDirectory(_) => "no_directory",
            Error::DirectoryGone { .. } => "directory_gone",
            Error::NoGit => "no_git",
            Error::Git { .. } => "git",
            Error::NoRepository(_) => "no_repository",
            Error::InTheMiddle { .. } => "in_the_middle",
            Error::Detached(_) => "detached_head",
            Error::NoCommit(_) => "no_commit",
            Error::BadBranch(_) => "bad_branch",
            Error::BranchExists(_) => "branch_exists",
            Error::CheckedOut { .. } => "branch_checked_out",
            Error::NoAgent { .. } => "no_agent",
            Error::Program(_) => "agent_failed",
            Error::OtherAgent { .. } => "other_agent",
            Error::NativeDiffers { .. } => "native_differs",
            Error::StillAtWork { .. } => "still_at_work",
            Error::Background(_) => "agent_failed",
            Error::Unanswered { .. } => "unanswered",
            Error::Cancelled => "cancelled",
            Error::NotOpened { source, .. } => source.kind(),
            Error::NoProfile { .. } => "no_profile",
            Error::ProfileOfOther { .. } => "profile_of_other",
            Error::NoLaunchFile { .. } => "unreadable",
            Error::NotAnOption { .. } => "not_an_option",
            Error::HeldBack(_) => "held_back",
            Error::OldFormat(_) => "old_format",
            Error::PromptTooLong { .. } => "bad_prompt",
            Error::NotAnswered { .. } | Error::NotSaid { .. } => "agent_failed",
            Error::NoSuchOption { .. } => "no_such_option",
            Error::Tracked { .. } => "tracked",
            Error::NoTerminal => "no_terminal",
            Error::NoTerminalProgram(_) => "no_terminal_program",
            Error::Terminal { .. } => "terminal",
            Error::NoPane { .. } => "no_pane",
            Error::NotReady { .. } => "not_ready",
            Error::Asks { .. } => "waiting",
            Error::PaneClosed { .. } => "pane_closed",
            Error::NotTakenUp(_) => "not_taken_up",
            Error::OwnAncestor { .. } => "own_ancestor",
            Error::SameName(_) => "same_name",
            Error::Unbegun(_) => "unbegun",
            Error::TranscriptGone { .. } => "transcript_gone",
            Error::BadPrompt(_) => "bad_prompt",
            Error::IsOpen { .. } => "is_open",
            Error::OpenElsewhere { .. } => "open_elsewhere",
            Error::StillNeeded { .. } => "still_needed",
            Error::InTheWay(_) => "in_the_way",
            Error::IntoItself { .. } => "into_itself",
            Error::TargetExists(_) => "target_exists",
            Error::BadTarget(_) => "bad_target",
            Error::NotCopied { .. } => "not_copied",
            Error::SharedRepository(_) => "shared_repository",
            Error::Unmerged { .. } => "unmerged",
            Error::SetupFailed { .. } => "setup_failed",
            Error::BadConfig { .. } => "bad_config",
            Error::WorkedInCopy { .. } => "worked_in",
            Error::WorkedIn { .. } => "worked_in",
            Error::CannotWrite { .. } => "cannot_write",
            Error::CopyDiffers { .. } => "copy_differs",
            Error::NothingToUndo(_) => "nothing_to_undo",
            Error::NotUndoable { .. } => "not_undoable",
            Error::HasGrown { .. } => "has_grown",
            Error::HasMoved { .. } => "has_moved",
            Error::NotRemoved(_) => "not_removed",
            Error::BadSettings { .. } => "bad_settings",
            Error::NotSetUp { .. } => "cannot_write",
            Error::SetupProgram(_) => "agent_failed",
            Error::NoHooks { .. } => "no_hooks",
            Error::ChangedMeanwhile(_) => "changed_meanwhile",
            Error::NoSuchScope { .. } => "no_such_scope",
            Error::Registry { .. } => "registry",
            Error::NewerRegistry { .. } => "newer_registry",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::UnknownSession { similar, .. } if similar.is_empty() => {
                Some("`tine list --all` shows every session; a name, an id, its beginning or a path will do".into())
            }
            Error::UnknownSession { similar, .. } => Some(format!("did you mean {}?", similar.join(" or "))),
            Error::Ambiguous { matches, .. } => {
                let lines: Vec<String> = matches.iter().take(10).map(describe).collect();
                let more = matches.len().saturating_sub(10);
                let rest = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
                Some(format!("say more of the id, or give the path:\n{}{rest}", lines.join("\n")))
            }
            Error::NoSessionHere(_) => Some("`tine list --all` shows the sessions of every directory".into()),
            Error::BadQuery { .. } | Error::EmptyQuery => {
                Some("words, \"a phrase\", -without, and filters: agent:codex file:src/auth.rs since:2w".into())
            }
            Error::NoMeaning => Some("`--engine words` is; `hybrid` needs the cargo feature `semantic`".into()),
            Error::OnlyCommonWords(_) => Some("add a word that is not, or put it in quotes: \"to be or not\"".into()),
            Error::QueryTooLong { .. } => Some("say it in a sentence".into()),
            Error::Export { .. } => Some("is the disk full, or the folder somebody else's?".into()),
            Error::Index { trouble, .. } => Some(trouble.hint().into()),
            Error::NoLastSession => Some("name one; `tine list` shows them".into()),
            Error::NoTurn { source: PointError::OutOfRange { turns, .. }, session } => Some(match turns {
                0 => "nothing was asked in it yet".into(),
                turns => format!("it ends at turn {turns}; `tine show {session}` lists them"),
            }),
            Error::NoTurn { .. } | Error::BadPoint(_) => {
                Some("`SESSION@3` is the point after turn 3, `SESSION@-1` leaves out the last turn".into())
            }
            Error::BadName(_) => Some("for example `auth-fix`".into()),
            Error::NewerRegistry { .. } => Some("update tine, or set TINE_REGISTRY to another file".into()),
            Error::Registry { .. } => Some("is the disk full, or the folder read-only? `tine doctor` looks".into()),
            Error::NameTaken(_) | Error::NoNameLeft => {
                Some("give it another one; `tine list --all` shows those in use".into())
            }
            Error::AtWork { state: State::Waiting, .. } => Some(
                "it waits for a permission: answer it, wait with `--wait`, or say `--now` to fork at its last \
                 complete turn"
                    .into(),
            ),
            Error::AtWork { .. } => Some("wait with `--wait`, or say `--now` to fork at its last complete turn".into()),
            Error::NothingToFork(_) => Some("say something in it first".into()),
            Error::NoDirectory(_) => Some("make it first, or fork to another one with `--to DIR`".into()),
            Error::DirectoryGone { now: Some(now), session, .. } => {
                let now = now.display();
                Some(format!("its repository is at {now} now: `tine resume {session} --to {now}` goes on there"))
            }
            Error::DirectoryGone { now: None, session, .. } => {
                Some(format!("its repository was not found; `tine resume {session} --to DIR` goes on in another place"))
            }
            Error::NoGit => Some("install git, or fork without a worktree".into()),
            Error::Git { .. } => None,
            Error::NoRepository(_) => Some("`git init` makes one; `--to DIR` needs none".into()),
            Error::InTheMiddle { .. } => Some("finish or abort that first".into()),
            Error::Detached(_) => {
                Some("`git switch BRANCH` first; the worktree begins at the branch that the source works on".into())
            }
            Error::NoCommit(_) => Some("for example `main`, a tag or a hash".into()),
            Error::BadBranch(_) => Some("for example `try/cookies`".into()),
            Error::BranchExists(_) => Some("give another name: `--worktree NAME`".into()),
            Error::CheckedOut { tree, .. } => {
                Some(format!("work there with `--to {}`, or give another name", tree.display()))
            }
            Error::NoAgent { agent, .. } => Some(format!(
                "install {}, or say in the configuration where it is: `[agents.{agent}] command = \"/path\"`",
                agent.product_name()
            )),
            Error::Program(_) => {
                Some("nothing of the fork is left; `--method copy` needs no start of the agent".into())
            }
            Error::OtherAgent { .. } => Some("`--method seed` tells it what was said".into()),
            Error::NativeDiffers { .. } => {
                Some("nothing of the fork is left; the agent cannot do it: `--method copy` can".into())
            }
            Error::Unanswered { session, .. } => Some(format!("it was interrupted or failed; `tine show {session}` shows how it ended")),
            Error::Cancelled => None,
            Error::Background(_) => Some("say it with `--wait`".into()),
            Error::NotOpened { fork, operation, source } => {
                let hint = source.hint().map(|hint| format!("{hint}; ")).unwrap_or_default();
                Some(format!(
                    "{hint}the fork {fork} was made: `tine resume {fork}` goes on, `tine undo {operation}` takes it back"
                ))
            }
            Error::StillAtWork { state: State::Waiting, .. } => {
                Some("it waits for a person: `tine focus` leads there; to fork it at its last complete turn, say `--now`".into())
            }
            Error::StillAtWork { session, .. } => {
                Some(format!("`tine wait {session}` waits for it; to fork it at its last complete turn, say `--now`"))
            }
            Error::NoProfile { known, file, .. } if known.is_empty() => {
                Some(format!("`[profiles.NAME]` in {} makes one", file.display()))
            }
            Error::NoProfile { known, file, .. } => Some(format!("{} has {}", file.display(), known.join(", "))),
            Error::NoLaunchFile { .. } => {
                Some("it was named on the command line, or by the profile in the configuration file".into())
            }
            Error::NotAnOption { .. } => {
                Some("one text may be said first: behind `--` in quotation marks, or with `--prompt`".into())
            }
            Error::NotAnswered { session: Some(session), .. } => Some(format!(
                "the session is there: `tine show {session}` tells how far it came, `tine resume {session}` goes on"
            )),
            Error::OldFormat(_) => Some("`tine fork` with `--method seed` tells it what was said".into()),
            Error::PromptTooLong { .. } => Some("write it into a file, and tell the agent to read that".into()),
            Error::HeldBack(session) => Some(format!("`tine resume {session} --in tmux` opens it")),
            Error::NotSaid { session, .. } => Some(format!("`tine send {session} --wait` says more")),
            Error::NotAnswered { session: None, .. } => Some("no session was begun, and the name is free again".into()),
            Error::ProfileOfOther { agent, .. } => Some(format!("say `--agent {agent}`")),
            Error::NoSuchOption { .. } => Some("give its own options behind `--`".into()),
            Error::Tracked { .. } => Some("`tine rename` gives it another name".into()),
            Error::NoTerminal => Some("say which, as `--in tmux`, or `--in headless` for none".into()),
            Error::NoTerminalProgram(_) => Some("install it, or say another place with `--in`".into()),
            Error::Terminal { .. } => {
                Some("is that terminal still there? `--in` names another place, `--in none` only prints the command".into())
            }
            Error::NoPane { runs: true, .. } => {
                Some("`tine resume` tells how it can be opened; stop it where it runs first".into())
            }
            Error::NoPane { session, .. } => Some(format!("`tine resume {session} --in tmux` opens it")),
            Error::NotReady { .. } => {
                Some("`tine focus` leads there; `--ready-timeout` waits longer".into())
            }
            Error::Asks { session, .. } => {
                Some(format!("`tine focus {session}` leads there; tine answers no such questions"))
            }
            Error::PaneClosed { .. } => Some("run it with `--in here` to see why".into()),
            Error::NotTakenUp(_) => Some("`tine read --screen` shows what it does; `tine focus` leads there".into()),
            Error::OwnAncestor { .. } => Some("`tine tree` shows who comes from whom".into()),
            Error::SameName(_) => None,
            Error::Unbegun(name) => Some(format!("`tine delete {name}` gives the name up")),
            Error::TranscriptGone { name, .. } => {
                Some(format!("`tine delete {name}` gives the name up; a new session may take it as well"))
            }
            Error::BadPrompt("is too long for a command line") => {
                Some("`--in headless` gives it by standard input".into())
            }
            Error::BadPrompt(_) => Some("say something that is text".into()),
            Error::IsOpen { .. } => Some("end the agent first".into()),
            Error::OpenElsewhere { session, .. } => {
                Some(format!("agents do not lock: `tine fork {session}` is safe, `--yes` goes on all the same"))
            }
            Error::StillNeeded { .. } => {
                Some("delete those first; a fork by `--method copy` needs nothing of its source".into())
            }
            Error::InTheWay(_) => Some("remove it, or give another name: `--worktree NAME`".into()),
            Error::IntoItself { .. } => Some("choose a place beside it".into()),
            Error::TargetExists(_) => Some("choose another place, or empty it first".into()),
            Error::BadTarget(_) => Some("choose a path in UTF-8".into()),
            Error::NotCopied { .. } => {
                Some("nothing of the fork is left; `--worktree` and `--to DIR` do without a copy of everything".into())
            }
            Error::SharedRepository(_) => Some("fork into a worktree instead: `--worktree`".into()),
            Error::Unmerged { .. } => {
                Some("decide and `git add` it, or fork without `--carry`, which leaves changes where they are".into())
            }
            Error::SetupFailed { .. } => {
                Some("nothing of the fork is left; `worktree.setup` in the configuration file says what runs".into())
            }
            Error::BadConfig { .. } => Some("put it right, or take it out: everything has a default".into()),
            Error::WorkedInCopy { .. } => {
                Some("keep what you need of it elsewhere; `tine undo --force` removes it all the same".into())
            }
            Error::WorkedIn { .. } => {
                Some("commit or take away what is there; `tine undo --force` removes it all the same".into())
            }
            Error::CannotWrite { .. } => {
                Some("nothing of the fork is left; is the disk full, or the folder read-only?".into())
            }
            Error::CopyDiffers { .. } => Some(
                "nothing of the fork is left; `--method seed` tells the agent what was said instead; please report this"
                    .into(),
            ),
            Error::NothingToUndo(_) | Error::NotUndoable { .. } => Some("`tine log` lists operations".into()),
            Error::HasMoved { .. } => Some("`tine delete` moves it into the trash".into()),
            Error::NotRemoved(_) => Some("is the folder read-only? Nothing was forgotten; try again".into()),
            Error::HasGrown { .. } => Some("`tine undo --force` removes it all the same".into()),
            Error::BadSettings { .. } => {
                Some("nothing was changed; put it right first, the agent cannot read it either".into())
            }
            Error::NotSetUp { .. } => {
                Some("the file is as it was; is it or its folder read-only, or the disk full?".into())
            }
            Error::SetupProgram(_) => Some("`tine setup --status` tells how things stand".into()),
            Error::NoHooks { .. } => Some(
                "none were installed; older versions have none, and without them tine notices forks when it next looks"
                    .into(),
            ),
            Error::ChangedMeanwhile(_) => Some("run it again to see what is to be done now".into()),
            Error::NoSuchScope { .. } => Some("leave that out: its hooks are for all projects".into()),
            Error::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("a name or an id has no `/`; a path leads to a transcript".into())
            }
            Error::Unreadable { .. } => None,
            Error::NotASession(_) => {
                Some("transcripts are the .jsonl files below ~/.claude/projects and ~/.codex".into())
            }
        }
    }
}

fn asked(error: &PointError) -> String {
    match error {
        PointError::NotATurn(text) => transcript::text::one_line(text),
        PointError::OutOfRange { asked, .. } => asked.clone(),
    }
}

fn describe(session: &SessionView) -> String {
    let title = transcript::text::one_line(session.title.as_deref().unwrap_or("untitled"));
    let path = transcript::text::one_line(&session.path.to_string_lossy());
    format!("  {:<6} {}  {}  {path}", session.agent, session.id, transcript::text::clip(&title, 40))
}
