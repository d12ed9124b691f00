//! Forking a session: plan, then apply.
//!
//! A plan is a value that decides everything before anything is touched; `--plan` prints it, tests look at it. Applying it
//! writes everything new beside its final name, reads it back, compares it with the source, and only then puts it in
//! place and registers it, in that order. An operation in the registry names all that is being made, so that a crash
//! at any point leaves something that the next run of tine cleans up. The source is only ever read.

mod apply;
mod compare;
mod copy;
mod empty;
mod launch;
mod method;
mod native;
mod open;
mod plan;
mod seed;
mod tokens;
mod workspace;

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

pub use apply::Forked;
pub use empty::EmptyClone;
pub(crate) use launch::{MARK, oldest_known};
pub use open::Opened;
pub(crate) use plan::new_id;
pub(crate) use seed::Unseeded;
pub use seed::{SeedNote, SeedPlan};
pub use workspace::Preparation;

use crate::directory::DirectoryCopy;
use crate::git::Worktree;
use crate::places::Spot;
use crate::profile::Profile;
use crate::session::Session;

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

/// Where the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this terminal.
    Here,
    /// Without a terminal, one process per message.
    Headless,
    /// Not at all; the command that starts it is told.
    None,
    /// In a pane of its own.
    In(Spot),
}

impl Place {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Place::Here => "here",
            Place::Headless => "headless",
            Place::None => "none",
            Place::In(spot) => spot.terminal.map_or("auto", crate::places::Terminal::as_str),
        }
    }
}

/// As it is typed behind `--in`.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::In(spot) => write!(formatter, "{}:{}", self.as_str(), spot.unit_word()),
            _ => formatter.write_str(self.as_str()),
        }
    }
}

/// How a fork is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// `same`, `existing`, `worktree` or `copy`.
    pub kind: &'static str,
    /// The directory.
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The worktree that is made for it.
    #[serde(skip)]
    pub worktree: Option<Worktree>,
    /// What is done in that worktree before it is handed over.
    #[serde(skip)]
    pub preparation: Option<Preparation>,
    /// The copy of the source's directory that is made for it.
    #[serde(skip)]
    pub copy: Option<DirectoryCopy>,
}

impl Workspace {
    /// Whether nothing is made for it.
    fn is_there(&self) -> bool {
        self.worktree.is_none() && self.copy.is_none()
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
    /// About how many tokens its history is.
    pub tokens: Option<u64>,
    /// The model's window.
    pub context_window: Option<u64>,
    /// What is decided about the seed.
    pub seed: Option<SeedPlan>,
    /// Whether the last turn that it gets was cut off.
    pub unfinished: bool,
    /// Whether the fork holds only what was said since a compaction.
    pub after_compaction: bool,
    /// Whether a part of the source's own history is gone.
    pub lacks_beginning: bool,
    /// What the fork lacks of its source.
    pub losses: Vec<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
}
