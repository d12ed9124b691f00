//! The JSON of workers that were started at once. It is a contract.

use std::path::Path;

use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

use super::view::ForkView;
use super::{Method, StartedWorker};
use crate::reported::ReportedError;
use crate::run::places::Pane;

/// The workers of one request.
#[derive(Debug, Clone, Serialize)]
pub struct SpawnView {
    workers: Vec<WorkerView>,
    started: usize,
    failed: usize,
}

impl SpawnView {
    /// The JSON of all workers, in the order of the request.
    pub fn new(outcomes: Vec<WorkerOutcome>) -> Self {
        let worker =
            |(worker, outcome): (usize, WorkerOutcome)| WorkerView { worker, started: outcome.is_started(), outcome };
        let workers: Vec<WorkerView> = outcomes.into_iter().enumerate().map(worker).collect();
        let started = workers.iter().filter(|worker| worker.started).count();
        SpawnView { started, failed: workers.len() - started, workers }
    }

    /// Whether at least one worker was started.
    pub fn has_started(&self) -> bool {
        self.started > 0
    }
}

/// One worker.
#[derive(Debug, Clone, Serialize)]
struct WorkerView {
    worker: usize,
    started: bool,
    #[serde(flatten)]
    outcome: WorkerOutcome,
}

/// What became of a worker.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum WorkerOutcome {
    /// A fork was started.
    Forked(Box<ForkedWorkerView>),
    /// A new session was started.
    New(Box<NewWorkerView>),
    /// A session was resumed.
    Resumed(Box<ResumedWorkerView>),
    /// It could not be started.
    Failed {
        /// Its name, if one was requested.
        name: Option<String>,
        /// The reason.
        error: ReportedError,
    },
    /// The request was cancelled first.
    Cancelled {
        /// Its name, if one was requested.
        name: Option<String>,
        /// The reason.
        error: CancelledView,
    },
}

impl WorkerOutcome {
    /// The outcome of a worker that a cancelled call did not start.
    pub fn cancelled(name: Option<String>) -> Self {
        let error = CancelledView { kind: "cancelled", message: "the call was cancelled" };
        WorkerOutcome::Cancelled { name, error }
    }

    /// The outcome of resuming a session in a directory.
    pub fn resumed(session: &SessionView, directory: &Path, pane: Option<&Pane>) -> Self {
        WorkerOutcome::Resumed(Box::new(ResumedWorkerView {
            name: session.name.clone(),
            id: session.id.clone(),
            agent: session.agent,
            working_directory: directory.to_string_lossy().into_owned(),
            terminal_id: pane.map(Pane::terminal_id),
        }))
    }

    fn is_started(&self) -> bool {
        match self {
            WorkerOutcome::Forked(_) | WorkerOutcome::New(_) | WorkerOutcome::Resumed(_) => true,
            WorkerOutcome::Failed { .. } | WorkerOutcome::Cancelled { .. } => false,
        }
    }
}

/// A worker that is a fork.
#[derive(Debug, Clone, Serialize)]
pub struct ForkedWorkerView {
    name: Option<SessionName>,
    id: Option<SessionId>,
    agent: Agent,
    working_directory: String,
    branch: Option<String>,
    forked_from: Option<SessionId>,
    method: Method,
    operation: Option<i64>,
    terminal_id: Option<String>,
    warnings: Vec<String>,
}

/// A worker that is a new session.
#[derive(Debug, Clone, Serialize)]
pub struct NewWorkerView {
    name: Option<SessionName>,
    id: Option<SessionId>,
    agent: Agent,
    terminal_id: Option<String>,
    working_directory: String,
    operation: Option<i64>,
}

/// A worker that is a resumed session.
#[derive(Debug, Clone, Serialize)]
pub struct ResumedWorkerView {
    name: Option<SessionName>,
    id: SessionId,
    agent: Agent,
    working_directory: String,
    terminal_id: Option<String>,
}

/// Why a worker was not started, if the call was cancelled.
#[derive(Debug, Clone, Serialize)]
pub struct CancelledView {
    kind: &'static str,
    message: &'static str,
}

impl ForkView {
    /// The JSON of the fork as a worker, which runs in `pane` if there is one.
    pub fn worker(&self, pane: Option<&Pane>) -> WorkerOutcome {
        WorkerOutcome::Forked(Box::new(ForkedWorkerView {
            name: self.session.name().cloned(),
            id: self.session.id().cloned(),
            agent: self.session.agent(),
            working_directory: self.workspace.path.clone(),
            branch: self.workspace.branch.clone(),
            forked_from: self.parent.session.id().cloned(),
            method: self.method,
            operation: self.operation,
            terminal_id: pane.map(Pane::terminal_id),
            warnings: self.warnings.clone(),
        }))
    }
}

impl StartedWorker {
    /// The JSON of the new session.
    pub fn view(&self, agent: Agent) -> WorkerOutcome {
        WorkerOutcome::New(Box::new(NewWorkerView {
            name: self.name.clone(),
            id: self.id.clone(),
            agent,
            terminal_id: self.pane.as_ref().map(Pane::terminal_id),
            working_directory: self.directory.to_string_lossy().into_owned(),
            operation: self.operation,
        }))
    }
}
