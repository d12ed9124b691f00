//! What can go wrong, in words that a person can act on. Each error has a kind for programs and, where there is one,
//! a hint for people, which stand in files of their own.

mod hint;
mod kind;

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
    /// An intent without a word.
    #[error("there is no word in what you want")]
    EmptyIntent,
    /// An intent of words that are everywhere.
    #[error("the words of `{}` are in nearly every session", transcript::text::clip(.0, 60))]
    CommonIntent(String),
    /// A time that ends before it begins.
    #[error("there is no time since {since} and before {until}")]
    NoSuchTime {
        /// When it begins.
        since: jiff::Timestamp,
        /// When it ends.
        until: jiff::Timestamp,
    },
    /// A search by meaning in a build that has none.
    #[error("the engine `hybrid` is not in this build of tine")]
    NoMeaning,
    /// A query that nobody typed.
    #[error("the query is too long: {bytes} bytes, and at most {most} are read")]
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
    /// git could not make a worktree.
    #[error("git cannot make the worktree {}: {message}", .path.display())]
    NotAdded {
        /// Where it was to be.
        path: PathBuf,
        /// What git said.
        message: String,
    },
    /// A worktree's place is below something that is no directory.
    #[error("there can be no worktree at {}: {} is not a directory", .path.display(), .file.display())]
    BadPlace {
        /// Where it was to be.
        path: PathBuf,
        /// What is no directory.
        file: PathBuf,
    },
    /// A worktree begins at a commit.
    #[error("nothing is committed yet in {}", .0.display())]
    NothingCommitted(PathBuf),
    /// A bare repository, or the inside of one.
    #[error("no files are checked out in {}", .0.display())]
    NoWorkingTree(PathBuf),
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
    /// There is a branch whose name is a part of it, or the other way round.
    #[error("there cannot be a branch `{branch}` beside the branch `{other}`")]
    BranchRival {
        /// The branch.
        branch: String,
        /// The one that is there.
        other: String,
    },
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
    /// An agent's program failed, and is older than those that tine knows.
    #[error("{} {version} is too old: {trouble}", .agent.product_name())]
    TooOld {
        /// The agent.
        agent: Agent,
        /// Its version.
        version: String,
        /// How it failed.
        trouble: agents::ProgramError,
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
    #[error("{} cannot be where a fork works: it is not text", .0.display())]
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
    /// An operation that somebody else is taking back.
    #[error("operation {0} is being undone")]
    BeingUndone(i64),
    /// Somebody went on in the fork.
    #[error("the session that operation {id} made has grown since")]
    HasGrown {
        /// Its number.
        id: i64,
    },
    /// The fork was deleted since.
    #[error("the session that operation {id} made is in the trash")]
    InTrash {
        /// Its number.
        id: i64,
        /// The operation that deleted it.
        deleted_by: i64,
    },
    /// Another session works in the fork's workspace.
    #[error("session `{session}` works in {}, which operation {id} made", .path.display())]
    WorksThere {
        /// The operation.
        id: i64,
        /// The session.
        session: String,
        /// The workspace.
        path: PathBuf,
    },
    /// A process works in the fork's workspace.
    #[error("process {process} works in {}, which operation {id} made", .path.display())]
    RunsThere {
        /// The operation.
        id: i64,
        /// The process.
        process: u32,
        /// The workspace.
        path: PathBuf,
    },
    /// Somebody locked the fork's worktree.
    #[error("the worktree {}, which operation {id} made, is locked", .path.display())]
    Locked {
        /// The operation.
        id: i64,
        /// The worktree.
        path: PathBuf,
    },
    /// The fork's branch is checked out in another working tree.
    #[error("the branch `{branch}`, which operation {id} made, is checked out in {}", .tree.display())]
    BranchInUse {
        /// The operation.
        id: i64,
        /// The branch.
        branch: String,
        /// Where.
        tree: PathBuf,
    },
    /// Something else is where the fork's worktree was.
    #[error("{} is not the worktree any more that operation {id} made{}", .path.display(), match .branch { Some(branch) => format!(": it is on the branch `{branch}`"), None => String::new() })]
    OtherTree {
        /// The operation.
        id: i64,
        /// Where the worktree was.
        path: PathBuf,
        /// The branch that is checked out there now, if it is a working tree of the same repository.
        branch: Option<String>,
    },
    /// What was deleted is not in the trash any more.
    #[error("what operation {0} deleted is not in the trash any more")]
    TrashGone(i64),
    /// Something is where a deleted file belongs.
    #[error("{} is in the way", .path.display())]
    ThereAgain {
        /// The operation that deleted it.
        id: i64,
        /// Where it belongs.
        path: PathBuf,
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

fn asked(error: &PointError) -> String {
    match error {
        PointError::NotATurn(text) => transcript::text::one_line(text),
        PointError::OutOfRange { asked, .. } => asked.clone(),
    }
}
