//! Starts a new session next to another agent: in its own worktree if requested, in a pane or in the background.

use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use transcript::{Agent, SessionId, SessionName};

use crate::context::Context;
use crate::ctx::Ctx;
use crate::fork::{Result, empty};
use crate::jobs;
use crate::naming::start;
use crate::operations::undo;
use crate::run::drive::OpenAt;
use crate::run::place::Place;
use crate::run::places::Pane;
use crate::run::profile::LaunchRequest;
use crate::run::worker::WorkerProcess;
use crate::sessions::catalog::Quiet;
use crate::sessions::survey;

/// A new session, as requested.
#[derive(Debug, Clone)]
pub struct NewWorker {
    /// Its agent.
    pub agent: Agent,
    /// Its name; generated if missing.
    pub name: Option<SessionName>,
    /// How it is launched, and its first prompt.
    pub launch: LaunchRequest,
    /// Where it works, or the repository of its worktree.
    pub directory: PathBuf,
    /// The worktree in which it works.
    pub worktree: Option<NewWorktree>,
}

/// A worktree that does not exist yet.
#[derive(Debug, Clone)]
pub struct NewWorktree {
    /// Its new branch.
    pub branch: String,
    /// Where the branch begins; by default where the directory is.
    pub base: Option<String>,
}

/// A session that was started.
#[derive(Debug, Clone)]
pub struct StartedWorker {
    /// Its name.
    pub name: Option<SessionName>,
    /// Its id, if it is known.
    pub id: Option<SessionId>,
    /// Where it works.
    pub directory: PathBuf,
    /// Its pane; without one, it works in the background.
    pub pane: Option<Pane>,
    /// The background process that waits for its answer.
    pub process: Option<WorkerProcess>,
    /// The operation that made its worktree.
    pub operation: Option<i64>,
}

/// Starts a new session, and returns when it works on its first prompt. If it can't be started, its worktree is removed,
/// unless something works in there.
pub(crate) fn start_worker(ctx: &Ctx, new: &NewWorker, at: OpenAt) -> Result<StartedWorker> {
    let mut directory = new.directory.clone();
    let mut operation = None;
    if let Some(NewWorktree { branch, base }) = &new.worktree {
        let (path, made) = empty::new_worktree(&in_directory(ctx, &directory)?, branch, base.as_deref())?;
        (directory, operation) = (path, Some(made));
    }
    let started = begin(&in_directory(ctx, &directory)?, new, at);
    if let (Err(_), Some(operation)) = (&started, operation)
        && !is_worked_in(ctx, &directory)
    {
        undo::undo(ctx, Some(operation), false).or_log("undo the worktree of a worker");
    }
    Ok(StartedWorker { operation, ..started? })
}

/// The same world in another directory.
fn in_directory(ctx: &Ctx, directory: &Path) -> Result<Ctx> {
    Ok(Ctx::open(Context { cwd: directory.to_owned(), ..ctx.context().clone() })?)
}

fn begin(ctx: &Ctx, new: &NewWorker, at: OpenAt) -> Result<StartedWorker> {
    let (agent, name, directory) = (new.agent, new.name.as_ref(), ctx.context().cwd.clone());
    if !matches!(at.place, Place::In(_)) {
        let jobs::BackgroundStart { session, worker } = jobs::start_in_background(ctx, agent, name, &new.launch)?;
        let (name, id, process) = (session.view.name, Some(session.view.id), Some(worker));
        return Ok(StartedWorker { name, id, directory, pane: None, process, operation: None });
    }
    let start = start::begin(ctx, agent, name, &new.launch, at.place)?;
    let opened = start::open_start(ctx, &start, None, at)?;
    // Some agents choose the id themselves. Then the session is found by its name.
    let found = || Some(survey::resolve(ctx, start.name.as_str(), &Quiet).ok()?.session.view.id);
    let id = start.id.clone().or_else(found);
    Ok(StartedWorker { name: Some(start.name), id, directory, pane: opened.pane, process: None, operation: None })
}

/// Whether a process works in a directory; assumed without `/proc`.
fn is_worked_in(ctx: &Ctx, directory: &Path) -> bool {
    let proc = ctx.context().surroundings.proc.as_deref();
    proc.is_none_or(|proc| !agents::processes_with(proc, Some(directory), directory.as_os_str()).is_empty())
}
