//! Forking a session: plan, then apply.
//!
//! A plan decides everything before anything is touched; `--plan` prints it, and tests compare it. Applying it writes
//! each new file next to its final name, reads it back, compares it with the source, and only then renames and
//! registers it. An operation in the registry lists everything that is being created, so that the next run of tine can
//! clean up after a crash. The source is only read.

pub(crate) mod apply;
pub(crate) mod cache;
pub(crate) mod code;
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
pub(crate) mod spawn_view;
pub(crate) mod tokens;
pub(crate) mod translate;
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
pub use cache::{CacheOutlook, CacheState};
pub use code::{CodeChoice, CodeFile, CodeView, PlannedCode};
pub use empty::EmptyClone;
pub use new_worker::{NewWorker, NewWorktree, StartedWorker};
pub use seed::SeedPlan;
pub use several::Part;
pub use spawn_view::{SpawnView, WorkerOutcome};
pub use translate::TranslationPlan;
pub use view::{ForkParent, ForkSession, ForkView, PlannedSession, WorkspaceView};
pub use window::WindowSource;
pub use workspace::Preparation;

use crate::registry::operations::CreatedWorkspace;
use crate::run::place::Place;
use crate::run::profile::Profile;
use crate::sessions::session::Session;

/// A request for a fork.
#[derive(Debug, Clone)]
pub struct Request {
    /// The session to fork.
    pub source: Session,
    /// The number of turns to keep; `None` keeps all.
    pub turns: Option<u32>,
    /// The fork's name; `None` lets tine choose one.
    pub name: Option<SessionName>,
    /// The agent for the fork; `None` keeps the source's.
    pub agent: Option<Agent>,
    /// The model for the fork; `None` keeps the one that the session is launched with.
    pub model: Option<String>,
    /// The method; `None` lets tine choose one for the request.
    pub method: Option<Method>,
    /// The workspace of the fork.
    pub workspace: Where,
    /// Whether uncommitted changes are copied to a worktree.
    pub carry: bool,
    /// Which files a worktree begins with.
    pub code: CodeChoice,
    /// Where to run the agent.
    pub place: Place,
    /// The first prompt for the fork.
    pub prompt: Option<String>,
    /// Whether to fork a busy source after its last complete turn instead of refusing.
    pub now: bool,
    /// Whether the source is busy and the plan is for the time when it is idle.
    pub waits: bool,
    /// Whether secrets are kept in a transcript for another agent.
    pub keep_secrets: bool,
    /// Whether a translation keeps the agent's thinking as text.
    pub keep_thinking: bool,
    /// Whether the fork's agent asks for permissions even if the source's does not.
    pub asks_permission: bool,
    /// Whether nothing is sent to a model: a seed is kept until the fork is resumed. Other methods never send anything.
    pub no_start: bool,
}

impl Request {
    /// A fork of the whole `source`, in its directory, without starting the agent.
    pub fn of(source: Session) -> Self {
        Request {
            source,
            turns: None,
            name: None,
            agent: None,
            model: None,
            method: None,
            workspace: Where::Same,
            carry: false,
            code: CodeChoice::Auto,
            place: Place::None,
            prompt: None,
            now: false,
            waits: false,
            keep_secrets: false,
            keep_thinking: false,
            asks_permission: false,
            no_start: false,
        }
    }
}

/// The directory of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// In the source's directory.
    Same,
    /// In another directory.
    Directory(PathBuf),
    /// In a new worktree of the source's repository.
    Worktree {
        /// The new branch; by default, the fork's name.
        branch: Option<String>,
        /// The commit that the branch starts from; by default, the source's HEAD.
        base: Option<String>,
    },
    /// In a copy of the source's directory, created at this path.
    Copy(PathBuf),
}

/// The requested workspace, kept so that it can be planned again under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedWorkspace {
    /// The source's directory.
    pub own: PathBuf,
    /// The requested workspace.
    pub workspace: Where,
    /// Whether uncommitted changes are copied to a worktree.
    pub carry: bool,
    /// The files that a worktree begins with, if not those of now.
    pub code: Option<PlannedCode>,
}

impl RequestedWorkspace {
    /// Whether the workspace is named after the fork.
    pub(crate) fn follows_name(&self) -> bool {
        match &self.workspace {
            Where::Worktree { branch, .. } => branch.is_none(),
            Where::Copy(directory) => directory.as_os_str().is_empty(),
            Where::Same | Where::Directory(_) => false,
        }
    }
}

/// A fork method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The agent's own fork.
    Native,
    /// tine writes the new session file.
    Copy,
    /// tine writes the conversation in another agent's own format.
    Translate,
    /// The transcript becomes the first prompt.
    Seed,
}

/// The directory of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// The kind of directory.
    pub kind: WorkspaceKind,
    /// The directory.
    pub path: PathBuf,
    /// The branch checked out there.
    pub branch: Option<String>,
    /// The worktree or the copy to create.
    #[serde(skip)]
    pub(crate) creates: Option<CreatedWorkspace>,
    /// What to do in a worktree before it is used.
    #[serde(skip)]
    pub preparation: Option<Preparation>,
}

/// The kind of directory a fork works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceKind {
    /// The source's directory.
    Same,
    /// Another existing directory.
    Existing,
    /// A new worktree.
    Worktree,
    /// A new copy of the source's directory.
    Copy,
}

impl Plan {
    /// Whether the user has to confirm it: because uncommitted changes stay behind, or because it is not certain what the
    /// files were.
    pub fn needs_confirmation(&self) -> bool {
        self.leaves_changes || self.code.as_ref().is_some_and(PlannedCode::asks)
    }

    /// Whether the fork's agent skips permission prompts.
    pub fn skips_permissions(&self) -> bool {
        !agents::about(self.agent).options.split_by_permission(&self.profile.args).1.is_empty()
    }
}

impl Workspace {
    /// Whether the directory already exists.
    fn is_there(&self) -> bool {
        self.creates.is_none()
    }
}

/// Everything about a fork, decided before anything is touched.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The session to fork.
    pub source: SessionView,
    /// What a scan found in its file, if the file is in history order.
    pub(crate) known: Option<agents::PlainScan>,
    /// The number of turns in the fork.
    pub turns: u32,
    /// Whether these are all turns.
    pub whole: bool,
    /// The agent of the fork.
    pub agent: Agent,
    /// The method.
    pub method: Method,
    /// Whether the user chose the method. Otherwise tine may fall back to another one.
    pub method_is_chosen: bool,
    /// The reason for the method, in one sentence.
    pub why: String,
    /// The workspace.
    pub workspace: Workspace,
    /// The requested workspace.
    pub(crate) asked: RequestedWorkspace,
    /// The launch profile, inherited from the source.
    pub profile: Profile,
    /// Launch options of the source's agent that the fork does not inherit.
    pub(crate) not_inherited: Vec<String>,
    /// Where to run the agent.
    pub place: Place,
    /// The first prompt.
    pub prompt: Option<String>,
    /// The fork's id. If the agent chooses its ids, only a placeholder.
    pub id: SessionId,
    /// Whether `id` and `target` are final. Some agents choose ids themselves.
    pub id_is_chosen: bool,
    /// The fork's name.
    pub name: SessionName,
    /// Whether the user chose the name. Otherwise it is the first free one.
    pub name_is_chosen: bool,
    /// The path of the transcript.
    pub target: PathBuf,
    /// The command that resumes it.
    pub command: Vec<String>,
    /// The model of the fork, if known.
    pub model: Option<String>,
    /// The approximate number of tokens in the history.
    pub tokens: Option<u64>,
    /// Whether the provider still has the history in its cache.
    pub cache: CacheOutlook,
    /// The model's context window.
    pub context_window: Option<u64>,
    /// Where the size of the window comes from.
    pub window_source: Option<WindowSource>,
    /// The plan for the translation.
    pub translation: Option<TranslationPlan>,
    /// The request, for another method if the chosen one fails.
    pub(crate) retry: Option<Box<Request>>,
    /// The plan for the seed.
    pub seed: Option<SeedPlan>,
    /// Whether the seed is kept until the fork is resumed.
    pub keeps_seed: bool,
    /// Whether the fork's last turn is unfinished.
    pub unfinished: bool,
    /// Whether the fork contains only the history since a compaction.
    pub after_compaction: bool,
    /// Whether part of the source's history is missing.
    pub lacks_beginning: bool,
    /// The last record of the forked branch, if that is not the source's main history.
    pub(crate) tip: Option<u64>,
    /// Whether records of the source have a missing parent; a copy links them to the preceding record.
    pub(crate) relinks: bool,
    /// The number of such records in the fork.
    pub relinked: usize,
    /// Model requests sent while the fork is created or opened.
    pub requests: Vec<String>,
    /// Model requests sent when it is first resumed.
    pub later_requests: Vec<String>,
    /// What the fork loses compared with its source.
    pub losses: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Whether uncommitted changes stay in the source's directory. Only this needs confirmation: a fork changes nothing
    /// that exists and can be undone, but someone who works in a new worktree without half of the code may not notice.
    pub leaves_changes: bool,
    /// The files that the fork begins with, if they are those of its last turn.
    pub code: Option<PlannedCode>,
}
