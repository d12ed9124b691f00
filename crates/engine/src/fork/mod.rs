//! Forking a session: plan, then apply.
//!
//! A plan is a value that decides everything before anything is touched; `--plan` prints it, tests look at it. Applying it
//! writes everything new beside its final name, reads it back, compares it with the source, and only then puts it in
//! place and registers it, in that order. An operation in the registry names all that is being made, so that a crash
//! at any point leaves something that the next run of tine cleans up. The source is only ever read.

pub(crate) mod apply;
pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod empty;
pub(crate) mod error;
pub(crate) mod launch;
pub(crate) mod method;
pub(crate) mod native;
pub(crate) mod new_worker;
pub(crate) mod open;
pub(crate) mod plan;
pub(crate) mod seed;
pub(crate) mod several;
pub(crate) mod tokens;
pub(crate) mod unstarted;
pub(crate) mod view;
pub(crate) mod window;
pub(crate) mod workspace;

pub use error::{Error, Result};

use std::path::PathBuf;

use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

pub use crate::registry::SeedNote;
pub use crate::registry::operations::KeptSeed;
pub use apply::Forked;
pub use empty::EmptyClone;
pub use new_worker::{NewWorker, NewWorktree, StartedWorker};
pub use seed::SeedPlan;
pub use several::Part;
pub use view::{ForkParent, ForkSession, ForkView, PlannedSession, WorkspaceView};
pub use window::WindowSource;
pub use workspace::Preparation;

use crate::registry::operations::CreatedWorkspace;
use crate::run::place::Place;
use crate::run::profile::Profile;
use crate::sessions::session::Session;

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The session to fork.
    pub source: Session,
    /// How many of its turns are kept; all where nothing is said.
    pub turns: Option<u32>,
    /// The fork's name; one is found where nothing is said.
    pub name: Option<SessionName>,
    /// The agent that goes on; the source's where nothing is said.
    pub agent: Option<Agent>,
    /// How the fork is made; decided by what is asked for where nothing is said.
    pub method: Option<Method>,
    /// Where the fork works.
    pub workspace: Where,
    /// Whether changes that are not committed come along into a worktree.
    pub carry: bool,
    /// Where the agent runs.
    pub place: Place,
    /// What the fork is told first.
    pub prompt: Option<String>,
    /// Whether a source that is at work is forked at its last complete turn, instead of refused.
    pub now: bool,
    /// Whether the source is at work and the fork is planned as it would be made once that is over.
    pub waits: bool,
    /// Whether secrets stay in a transcript that is given to another agent.
    pub keep_secrets: bool,
    /// Whether the fork's agent asks for permissions even if the source's doesn't.
    pub asks_permission: bool,
    /// Whether nothing is sent to a model: a seed is kept until the fork is resumed. Other methods send nothing anyway.
    pub no_start: bool,
}

impl Request {
    /// A fork of the whole of `source`, where it is, without a start of the agent.
    pub fn of(source: Session) -> Self {
        Request {
            source,
            turns: None,
            name: None,
            agent: None,
            method: None,
            workspace: Where::Same,
            carry: false,
            place: Place::None,
            prompt: None,
            now: false,
            waits: false,
            keep_secrets: false,
            asks_permission: false,
            no_start: false,
        }
    }
}

/// Where a fork is to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// Where the source works.
    Same,
    /// In another directory.
    Directory(PathBuf),
    /// In a new worktree of the source's repository.
    Worktree {
        /// Its new branch; the fork's own name where none is said.
        branch: Option<String>,
        /// The commit that the branch begins at; where the source works where none is said.
        base: Option<String>,
    },
    /// In a copy of the source's directory, which is made at this place.
    Copy(PathBuf),
}

/// What was asked for of a workspace, so that it can be planned anew under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Where the source works.
    pub own: PathBuf,
    /// Where the fork is to work.
    pub workspace: Where,
    /// Whether changes that are not committed come along into a worktree.
    pub carry: bool,
}

impl Asked {
    /// Whether the workspace is called as the fork is.
    pub(crate) fn follows_name(&self) -> bool {
        match &self.workspace {
            Where::Worktree { branch, .. } => branch.is_none(),
            Where::Copy(directory) => directory.as_os_str().is_empty(),
            Where::Same | Where::Directory(_) => false,
        }
    }
}

/// How a fork is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The agent's own fork.
    Native,
    /// tine writes the new session file.
    Copy,
    /// The transcript is a first prompt.
    Seed,
}

/// Where a fork works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// What sort of directory it is.
    pub kind: WorkspaceKind,
    /// The directory.
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The worktree or the copy of the source's directory that is created for it.
    #[serde(skip)]
    pub(crate) creates: Option<CreatedWorkspace>,
    /// What is done in a worktree before it is handed over.
    #[serde(skip)]
    pub preparation: Option<Preparation>,
}

/// What sort of directory a fork works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceKind {
    /// The source's own.
    Same,
    /// Another one that exists.
    Existing,
    /// A worktree that is created for it.
    Worktree,
    /// A copy of the source's that is created for it.
    Copy,
}

impl Plan {
    /// Whether the fork's agent acts without asking for permissions.
    pub fn skips_permissions(&self) -> bool {
        !agents::about(self.agent).options.split_by_permission(&self.profile.args).1.is_empty()
    }
}

impl Workspace {
    /// Whether nothing is made for it.
    fn is_there(&self) -> bool {
        self.creates.is_none()
    }
}

/// Everything about a fork, decided before anything is touched.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The session to fork.
    pub source: SessionView,
    /// What a scan found of its file, where that is its own history in its own order.
    pub(crate) known: Option<agents::Known>,
    /// How many turns the fork gets.
    pub turns: u32,
    /// Whether that is all of them.
    pub whole: bool,
    /// The agent that goes on.
    pub agent: Agent,
    /// How it is made.
    pub method: Method,
    /// Whether somebody chose the method; otherwise another one may take its place where it fails.
    pub method_is_chosen: bool,
    /// Why so, in one sentence.
    pub why: String,
    /// Where it works.
    pub workspace: Workspace,
    /// What was asked for of that.
    pub(crate) asked: Asked,
    /// How it is launched; its source's.
    pub profile: Profile,
    /// How its source's agent was launched besides, which the fork doesn't inherit.
    pub(crate) not_inherited: Vec<String>,
    /// Where the agent runs.
    pub place: Place,
    /// What it is told first.
    pub prompt: Option<String>,
    /// Its id; where the agent makes up ids, what it would be.
    pub id: SessionId,
    /// Whether `id` and `target` are what the fork will have. Some agents make up ids themselves.
    pub id_is_chosen: bool,
    /// Its name.
    pub name: SessionName,
    /// Whether somebody chose the name; otherwise it is the first that is free.
    pub name_is_chosen: bool,
    /// Its transcript.
    pub target: PathBuf,
    /// The command that resumes it.
    pub command: Vec<String>,
    /// The model that goes on, as far as it is known.
    pub model: Option<String>,
    /// About how many tokens its history is.
    pub tokens: Option<u64>,
    /// The model's window.
    pub context_window: Option<u64>,
    /// How that is known.
    pub window_source: Option<WindowSource>,
    /// What is decided about the seed.
    pub seed: Option<SeedPlan>,
    /// Whether the seed is kept until the fork is resumed.
    pub keeps_seed: bool,
    /// Whether the last turn that it gets was cut off.
    pub unfinished: bool,
    /// Whether the fork holds only what was said since a compaction.
    pub after_compaction: bool,
    /// Whether a part of the source's own history is gone.
    pub lacks_beginning: bool,
    /// The last record of the branch that is forked, where that is not the source's history.
    pub(crate) tip: Option<u64>,
    /// Whether records of the source name a parent that is missing; a copy links them to the record that they follow.
    pub(crate) relinks: bool,
    /// How many such records the fork gets.
    pub relinked: usize,
    /// Model requests that are sent while the fork is made or opened.
    pub requests: Vec<String>,
    /// Model requests that are sent when it is resumed for the first time.
    pub later_requests: Vec<String>,
    /// What the fork lacks of its source.
    pub losses: Vec<String>,
    /// What a person should know before or after the fork is made.
    pub warnings: Vec<String>,
    /// Whether uncommitted changes stay behind in the source's directory. Nothing else needs to be confirmed: a fork
    /// changes nothing that is there, and `undo` takes it back, but someone who works in the new tree without half of
    /// the code may not notice.
    pub leaves_changes: bool,
}
