//! What tine does: it keeps a catalog of sessions, a registry of names and lineage, and answers questions about them.
//!
//! Front ends see one façade, [`Tine`]. What is true of one agent only lives in `agents`; what a conversation is lives
//! in `transcript`.

mod advice;
mod code;
mod config;
mod context;
mod ctx;
mod error;
mod fork;
mod hook;
mod jobs;
#[cfg(test)]
mod messages_tests;
mod names;
mod naming;
mod operations;
mod private;
mod program;
mod progress;
mod registry;
mod reported;
mod run;
#[cfg_attr(not(feature = "semantic"), allow(dead_code, reason = "what only search by meaning uses"))]
mod search;
mod sessions;
mod setup;
mod signal;
mod terminal;
#[cfg(test)]
mod test_world;
mod tine;
mod workspace;

pub use advice::{Advice, Cancelled, FileError};
pub use agents::chat;
pub use agents::{Cancel, HookEvent, Scope, Stamp, session_stamp};
pub use code::blame::{Blame, BlamedLine, LineAuthor};
pub use code::diff::{ChangedFile, CodeDiff, DiffForm, DiffView};
pub use code::error::Error as CodeError;
pub use code::restore::{PlannedFile, RestoreChange, RestorePlan, RestoreView};
pub use code::snapshots::{
    Kept, LeftOut, Moment, Reason, Snapshot, SnapshotList, SnapshotRequest, SnapshotView, are_snapshots_wanted,
    record_snapshot,
};
pub use code::{Certainty, CodeAt, CodeSource, FileVerdict};
pub use config::error::Error as ConfigError;
pub use config::{
    AgentsConfig, Config, InnerPath, McpConfig, MouseLevel, Permission, Program, SnapshotsConfig, Template,
    WorkbenchConfig, WorktreeConfig, keys as config_keys,
};
pub use config::{enable_snapshots, notes_for};
pub use context::MARK as FORK_MARK;
pub use context::{Clock, Context, Environment, Paths};
pub use error::{Error, Result};
pub use fork::error::Error as ForkError;
pub use fork::{
    CacheOutlook, CacheState, CodeChoice, CodeFile, CodeView, EmptyClone, ForkParent, ForkSession, ForkView, Forked,
    Method, NewWorker, NewWorktree, Part, Plan, PlannedCode, PlannedSession, Preparation, Request, SeedNote, SeedPlan,
    SpawnView, StartedWorker, TranslationPlan, Where, WindowSource, WorkerOutcome, Workspace, WorkspaceKind,
    WorkspaceView,
};
pub use hook::{HookCaller, HookPayload, HookResult, record_hook, write_name};
pub use naming::adopt::AdoptedView;
pub use naming::chat::{ChatRequest, OpenChat, TabRecord};
pub use naming::error::Error as NamingError;
pub use naming::start::{ResumeView, Start, StartView};
pub use operations::delete::DeletionPlan;
pub use operations::error::Error as OperationsError;
pub use operations::leftovers::OwnWorkspace;
pub use program::error::Error as AgentProgramError;
pub use registry::error::{Error as RegistryError, RegistryProblem};
pub use registry::events::{EventParent, SessionEvent};
pub use registry::operations::{
    DeletedBranch, Effect, Effects, LogEntry, Operation, OperationState, UnreadableOperation,
};
pub use registry::{Lineage, Registry, SessionKey};
pub use reported::ReportedError;
pub use run::drive::{
    Delivery, LastAnswer, OpenAt, Opened, Sent, Target, check_message, fetch_message, pane_command,
    record_launch_failure, users_editor,
};
pub use run::error::Error as RunError;
pub use run::events::EventCursor;
pub use run::info::Info;
pub use run::place::{Place, PlaceView, UnknownPlace};
pub use run::places::{Pane, Spot, Terminal, Unit};
pub use run::profile::{KeptFile, Launch, LaunchRequest, Profile, launch_variables, shown_variables};
pub use run::status::{StartedSession, Status, StatusSession};
pub use run::view::{AnswerView, OutcomeView, OverviewView, ReadText, ReadView, SentView, TargetView};
pub use run::wait::Until;
pub use run::worker::WorkerProcess;
pub use search::error::{Error as SearchError, IndexProblem};
#[cfg(feature = "semantic")]
pub use search::index::embeddings::vectors::path as vectors_file;
pub use search::index::upkeep::{IndexPart, IndexRequest, IndexView};
pub use search::smart::{CanFork, Choice, Intent, Refusal, Suggestions};
pub use search::{
    Answer, BriefSession, BriefSuggestions, Correction, DEFAULT_COLLECTION, EMBEDDING, Engine, EngineError, FILTERS,
    Found, Grounds, IndexProgress, IndexStatus, Limits, Missing, Now, Query, RECENT, ResultView, SearchRequest,
    SearchView, SmartForkView, Snippet, SuggestionsView, VectorStatus, is_panic_caught, query_time,
    require_index_check, rounded, without_line,
};
pub use sessions::branches::BranchView;
pub use sessions::catalog::{Progress, Quiet};
pub use sessions::error::Error as SessionsError;
pub use sessions::export::{ExportRequest, Exported};
pub use sessions::listing::Listing;
pub use sessions::outline::TurnSummary;
pub use sessions::pages::{Extent, Pages};
pub use sessions::project::Project;
pub use sessions::resolve::{Selection, newest_in};
pub use sessions::session::{Details, Session};
pub use sessions::tree::{Known, Node, Trees};
pub use sessions::view::{BriefNode, OutlineView, TurnsView};
pub use sessions::watch::SessionWatch;
pub use setup::doctor::{Check, Report, Verdict};
pub use setup::error::Error as SetupError;
pub use setup::{Change, SetupEvent, SetupPlace, SetupPlan, SetupRequest, SetupServer, SetupStatus, SetupView, Step};
pub use workspace::directory::{CopyProgress, DirectoryCopy, size_of};
pub use workspace::error::Error as WorkspaceError;
pub use workspace::git::Worktree;

pub use sessions::survey::{Filter, SeedText};
pub use tine::{Tine, run_worker};
