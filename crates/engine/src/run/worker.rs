//! Work in the background: a detached process of tine that does one job and reports how it went.
//!
//! The front end lends the command that starts such a process ([`Context::worker`](crate::Context::worker)). The process
//! reads its [`Job`] as JSON from standard input, so that prompts never appear on a command line or on disk, and reports
//! on standard output, one JSON value per line: first that it has accepted the job, later that it is done or why it
//! failed. Before it has accepted the job it does nothing, so a worker that doesn't accept can be ended safely.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName};

use crate::ctx::Ctx;
use crate::private;
use crate::reported::ReportedError;
use crate::run::profile::LaunchRequest;
use crate::run::{Error, Result};
use crate::signal::{Signal, signal};

/// How long a worker may take to accept its job.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(20);
/// How long a worker that was cancelled may take to end its agent and itself.
const CANCELS_WITHIN: Duration = Duration::from_secs(15);
/// How long the last report of a worker that has ended may take to arrive.
const REPORT_ARRIVES_WITHIN: Duration = Duration::from_secs(1);
/// How often a worker is checked.
const POLL: Duration = Duration::from_millis(20);

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub(crate) enum Job {
    /// Sends a message to a session that doesn't run in a terminal, when it is its turn, and waits for the answer.
    Send { agent: Agent, id: SessionId, path: PathBuf, text: String },
    /// Starts a session without a terminal, and waits for the answer to its first prompt.
    Start { agent: Agent, name: SessionName, request: LaunchRequest },
}

/// What a worker reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(crate) enum JobReport {
    /// It has read the job and takes care of it from now on.
    Accepted,
    /// The job is done.
    Done,
    /// The job failed.
    Failed(ReportedError),
}

/// A worker process, by its number and the time it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProcess {
    pid: u32,
    start: Option<String>,
}

/// A worker that this process has started.
pub(crate) struct Worker {
    child: Option<Child>,
    process: WorkerProcess,
    reports: Receiver<JobReport>,
}

impl Worker {
    /// Starts a worker, and returns when it has accepted the job. `prepare` gets its process number before the worker gets
    /// the job.
    pub(crate) fn start(ctx: &Ctx, job: &Job, prepare: impl FnOnce(u32)) -> Result<Self> {
        let job = serde_json::to_vec(job).map_err(|error| Error::Background(error.into()))?;
        let mut words = ctx.context().worker.iter();
        let missing = || Error::Background(io::Error::new(io::ErrorKind::Unsupported, "no command to start a worker"));
        let mut command = Command::new(words.next().ok_or_else(missing)?);
        command.args(words).current_dir(&ctx.context().cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C in this terminal is not meant for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(Error::Background)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        prepare(child.id());
        let process = WorkerProcess { pid: child.id(), start: agents::process_start(child.id()) };
        let mut worker = Worker { child: Some(child), process, reports: read_reports(stdout) };
        write_job(stdin, job);
        match worker.wait_until_accepted(ctx) {
            Ok(()) => Ok(worker),
            Err(error) => {
                worker.kill();
                Err(error)
            }
        }
    }

    fn wait_until_accepted(&mut self, ctx: &Ctx) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < ACCEPTS_WITHIN {
            match self.reports.recv_timeout(POLL) {
                Ok(JobReport::Accepted | JobReport::Done) => return Ok(()),
                Ok(JobReport::Failed(failure)) => return Err(Error::Reported(failure)),
                Err(RecvTimeoutError::Timeout) => ctx.pause(Duration::ZERO)?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let how = match self.status() {
            Some(status) => status,
            None => format!("it didn't accept the job within {} seconds", ACCEPTS_WITHIN.as_secs()),
        };
        Err(Error::Background(io::Error::other(how)))
    }

    /// How the job ended; nothing while the worker is at it.
    pub(crate) fn outcome(&mut self) -> Option<Result<()>> {
        loop {
            match self.reports.try_recv() {
                Ok(JobReport::Accepted) => {}
                Ok(JobReport::Done) => return Some(Ok(())),
                Ok(JobReport::Failed(failure)) => return Some(Err(Error::Reported(failure))),
                Err(TryRecvError::Empty) if self.is_running() => return None,
                Err(TryRecvError::Empty) => match self.reports.recv_timeout(REPORT_ARRIVES_WITHIN) {
                    Ok(JobReport::Failed(failure)) => return Some(Err(Error::Reported(failure))),
                    Ok(JobReport::Done) => return Some(Ok(())),
                    Ok(JobReport::Accepted) => {}
                    Err(_) => return Some(Err(self.died())),
                },
                Err(TryRecvError::Disconnected) => return Some(Err(self.died())),
            }
        }
    }

    /// The process, to cancel the job later.
    pub(crate) fn process(&self) -> &WorkerProcess {
        &self.process
    }

    fn died(&mut self) -> Error {
        Error::WorkerDied(self.status().unwrap_or_else(|| "it closed its output".to_owned()))
    }

    fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// How the process ended, if it has.
    fn status(&mut self) -> Option<String> {
        let begun = Instant::now();
        while self.is_running() && begun.elapsed() < REPORT_ARRIVES_WITHIN {
            thread::sleep(POLL);
        }
        let status = self.child.as_mut()?.try_wait().ok()??;
        Some(status.to_string())
    }

    /// Ends a worker that has not begun with its job.
    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().or_log("kill a process");
            child.wait().or_log("wait for a process");
        }
    }
}

impl Drop for Worker {
    /// The worker continues. In a long-running process, it must not become a zombie when it ends.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take()
            && matches!(child.try_wait(), Ok(None))
        {
            thread::spawn(move || child.wait());
        }
    }
}

impl WorkerProcess {
    /// Cancels jobs, as the process that asked for them can do.
    pub fn cancel_all(workers: &[WorkerProcess]) {
        cancel(workers);
    }
}

/// Cancels jobs: their workers end the agents that they started, and then themselves.
pub(crate) fn cancel(workers: &[WorkerProcess]) {
    let is_running =
        |worker: &&WorkerProcess| worker.start.is_some() && agents::process_start(worker.pid) == worker.start;
    for worker in workers.iter().filter(is_running) {
        signal(worker.pid, Signal::End);
    }
    let begun = Instant::now();
    while workers.iter().any(|worker| is_running(&worker)) && begun.elapsed() < CANCELS_WITHIN {
        thread::sleep(POLL);
    }
    for worker in workers.iter().filter(is_running) {
        signal(worker.pid, Signal::Kill);
    }
}

/// Writes the job from a separate thread: a worker that doesn't read must not block us, however long the prompt is.
fn write_job(stdin: Option<ChildStdin>, job: Vec<u8>) {
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&job)));
}

fn read_reports(stdout: Option<ChildStdout>) -> Receiver<JobReport> {
    let (sender, reports) = channel();
    thread::spawn(move || {
        for line in stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let report = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            // Any other output ends the conversation; the exit status explains why.
            if report.is_none_or(|report| sender.send(report).is_err()) {
                break;
            }
        }
    });
    reports
}

/// The file that keeps why the last message in the background wasn't answered.
fn failure_file(ctx: &Ctx, agent: Agent, id: &SessionId) -> PathBuf {
    ctx.context().paths.cache.join("background").join(format!("{agent}-{id}.json"))
}

/// Keeps why a message in the background wasn't answered, or forgets what was kept.
pub(crate) fn record_failure(ctx: &Ctx, agent: Agent, id: &SessionId, failure: Option<&ReportedError>) {
    let file = failure_file(ctx, agent, id);
    // A waiting process receives the failure through the pipe; if it can't be recorded, only `tine read` can't report
    // it later.
    let recorded = match failure {
        None => fs::remove_file(&file),
        Some(failure) => file.parent().map_or(Ok(()), private::create_folder).and_then(|()| {
            let opened = private::open_file(&file)?;
            opened.set_len(0)?;
            Ok(serde_json::to_writer(opened, failure)?)
        }),
    };
    recorded.or_log("record how the message in the background ended");
}

/// Why the last message in the background wasn't answered.
pub(crate) fn last_failure(ctx: &Ctx, agent: Agent, id: &SessionId) -> Option<ReportedError> {
    serde_json::from_slice(&fs::read(failure_file(ctx, agent, id)).ok()?).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::test_world::World;

    /// A worker that is this script.
    fn start(script: &str, text: &str) -> Result<Worker> {
        let world = World::new();
        let mut tine = world.tine();
        tine.ctx.context.worker = ["sh", "-c", script].map(Into::into).to_vec();
        let path = world.repository.join("session.jsonl");
        let job = Job::Send { agent: Agent::Claude, id: "one".parse().expect("an id"), path, text: text.to_owned() };
        Worker::start(&tine.ctx, &job, |_| {})
    }

    fn finish(script: &str) -> Result<()> {
        let mut worker = start(script, "hello").expect("accepted");
        let begun = Instant::now();
        loop {
            match worker.outcome() {
                Some(outcome) => return outcome,
                None if begun.elapsed() > Duration::from_secs(20) => panic!("no outcome of {script}"),
                None => thread::sleep(POLL),
            }
        }
    }

    const ACCEPTED: &str = r#"echo '{"report":"accepted"}'"#;

    #[test]
    fn a_failure_keeps_its_kind_and_hint() {
        let failed = r#"echo '{"report":"failed","kind":"name_taken","message":"it is taken","hint":"rename it"}'"#;
        for script in [failed.to_owned(), format!("cat >/dev/null; {failed}; exit 1")] {
            let error = start(&script, "hello").err().expect("a failure");
            let told = (error.advice().kind, error.to_string(), error.advice().hint);
            assert_eq!(told, ("name_taken", "it is taken".to_owned(), Some("rename it".to_owned())));
        }
        let error = finish(&format!("cat >/dev/null; {ACCEPTED}; sleep 0.1; {failed}")).expect_err("a failure");
        assert_eq!((error.advice().kind, error.advice().hint.as_deref()), ("name_taken", Some("rename it")));
    }

    #[test]
    fn a_worker_that_dies_is_noticed() {
        let error = start("kill -9 $$", "hello").err().expect("a failure");
        assert!(error.to_string().contains("SIGKILL"), "{error}");
        let error = start("echo what; sleep 60", "hello").err().expect("a failure");
        assert_eq!(error.advice().kind, "agent_failed", "{error}");
        let error = finish(&format!("cat >/dev/null; {ACCEPTED}; kill -9 $$")).expect_err("a failure");
        assert!(matches!(&error, Error::WorkerDied(how) if how.contains("SIGKILL")), "{error}");
        // One that it started and that has the pipe open must not hide that.
        let error = finish(&format!("cat >/dev/null; {ACCEPTED}; sleep 30 & kill -9 $$")).expect_err("a failure");
        assert!(matches!(error, Error::WorkerDied(_)), "{error}");
    }

    #[test]
    fn a_job_is_handed_over_whole_and_not_on_the_command_line() {
        let text = "a long prompt ".repeat(400_000);
        let size = r#"length=$(wc -c); test $length -gt 5600000 || exit 3; echo '{"report":"accepted"}'; echo '{"report":"done"}'"#;
        let mut worker = start(size, &text).expect("accepted");
        while worker.outcome().is_none() {
            thread::sleep(POLL);
        }
        // A worker that reads nothing does not block us.
        start(r#"echo '{"report":"accepted"}'; exec 0<&-; sleep 0.2"#, &text).expect("accepted");
    }

    #[test]
    fn a_cancelled_worker_may_end_its_agent_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ended");
        let script = format!(
            "trap 'echo yes > {}; exit 0' TERM; cat >/dev/null; {ACCEPTED}; while :; do sleep 0.05; done",
            file.display()
        );
        let worker = start(&script, "hello").expect("accepted");
        cancel(std::slice::from_ref(worker.process()));
        assert_eq!(fs::read_to_string(file).expect("it ended in order"), "yes\n");
        // A process that has the same number now is left alone.
        let other = WorkerProcess { pid: std::process::id(), start: Some("1".to_owned()) };
        cancel(&[other]);
    }
}
