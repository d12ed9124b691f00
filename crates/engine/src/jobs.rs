//! What a worker does: the job that another process of tine gave it. See `run/worker.rs` for both ends of the pipe.

use std::io::{Read, Write};
use std::time::Instant;

use diagnostics::OrLog;
use transcript::{Agent, SessionName};

use crate::ctx::Ctx;
use crate::naming::start;
use crate::naming::{Error, Result};
use crate::reported::ReportedError;
use crate::run;
use crate::run::drive::awaited::OpeningSession;
use crate::run::drive::send::{self, Target, check_message};
use crate::run::drive::{OpenAt, PAUSE, TAKEN_UP_WITHIN, has_begun};
use crate::run::place::Place;
use crate::run::profile::{self, LaunchRequest};
use crate::run::worker::{self, Job, JobReport, Worker, WorkerProcess};
use crate::sessions;
use crate::sessions::catalog::Quiet;
use crate::sessions::session::Session;
use crate::sessions::survey;

/// A session that was started in the background.
#[derive(Debug, Clone)]
pub struct BackgroundStart {
    /// The session.
    pub session: Session,
    /// The process that waits for its answer.
    pub worker: WorkerProcess,
}

/// Starts a session without a terminal, by a worker. Returns when its agent works on the first prompt.
pub(crate) fn start_in_background(
    ctx: &Ctx,
    agent: Agent,
    name: Option<&SessionName>,
    request: &LaunchRequest,
) -> Result<BackgroundStart> {
    check_message(request.prompt.as_deref().unwrap_or_default())?;
    let launch = profile::launch_for(ctx, agent, request)?;
    let planned = start::plan_start_in(ctx, &ctx.context().cwd, agent, name.cloned(), launch)?;
    let job = Job::Start { agent, name: planned.name.clone(), request: request.clone() };
    let mut worker = Worker::start(ctx, &job, |_| {})?;
    let started = wait_until_started(ctx, &planned.name, &mut worker);
    if matches!(started, Err(Error::Cancelled(_))) {
        worker::cancel(std::slice::from_ref(worker.process()));
    }
    Ok(BackgroundStart { session: started?, worker: worker.process().clone() })
}

fn wait_until_started(ctx: &Ctx, name: &SessionName, worker: &mut Worker) -> Result<Session> {
    let begun = Instant::now();
    let mut awaited = OpeningSession::new(None, Some(name));
    while begun.elapsed() < TAKEN_UP_WITHIN {
        let outcome = worker.outcome();
        if let Some(session) = awaited.refresh(ctx, || Ok(None))?.filter(|session| has_begun(session, 0)) {
            return Ok(session.clone());
        }
        match outcome {
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(())) => break,
            None => ctx.pause(PAUSE)?,
        }
    }
    Err(run::Error::NotTakenUp(name.to_string()).into())
}

/// Reads a job, does it, and reports on the way. Returns whether it succeeded.
pub(crate) fn run_worker(
    opened: std::result::Result<&Ctx, ReportedError>,
    mut input: impl Read,
    mut output: impl Write,
) -> bool {
    let mut report = |report: &JobReport| {
        // The process that started this one may have ended; the job is done anyway.
        serde_json::to_writer(&mut output, report).or_log("report on the job");
        output.write_all(b"\n").and_then(|()| output.flush()).or_log("report on the job");
    };
    let mut text = Vec::new();
    let read = input.read_to_end(&mut text).and_then(|_| Ok(serde_json::from_slice::<Job>(&text)?));
    let (ctx, job) = match (opened, read.map_err(|error| reported(&run::Error::Background(error).into()))) {
        (Ok(ctx), Ok(job)) => (ctx, job),
        (Err(error), _) | (Ok(_), Err(error)) => {
            report(&JobReport::Failed(error));
            return false;
        }
    };
    report(&JobReport::Accepted);
    match run_job(ctx, &job) {
        Ok(()) => {
            report(&JobReport::Done);
            true
        }
        Err(error) => {
            report(&JobReport::Failed(reported(&error)));
            false
        }
    }
}

/// Does a job.
fn run_job(ctx: &Ctx, job: &Job) -> Result<()> {
    match job {
        Job::Send { agent, id, path, text } => {
            worker::record_failure(ctx, *agent, id, None);
            let sessions = survey::all_sessions(ctx, &Quiet)?;
            let with_id = || sessions.iter().filter(|session| session.view.agent == *agent && session.view.id == *id);
            let session = with_id().find(|session| session.view.path == *path).or_else(|| with_id().next());
            let missing = || sessions::Error::Unknown { spec: id.to_string(), similar: Vec::new() };
            let sent = session.ok_or_else(missing).map_err(Error::from).and_then(|session| {
                Ok(send::send(ctx, &Target::Session(Box::new(session.clone())), text, true, None)?)
            });
            let failure = sent.as_ref().err().map(reported);
            worker::record_failure(ctx, *agent, id, failure.as_ref());
            sent.map(drop)
        }
        Job::Start { agent, name, request } => {
            let started = start::begin(ctx, *agent, Some(name), request, Place::Headless)?;
            let at = OpenAt { place: Place::Headless, focus: false, ready_within: TAKEN_UP_WITHIN };
            start::open_start(ctx, &started, None, at).map(drop)
        }
    }
}

fn reported(error: &Error) -> ReportedError {
    ReportedError::new(error, error.advice())
}
