//! Controls sessions: sends messages, waits, reads answers, stops sessions.

use std::thread;
use std::time::Duration;

use engine::{AnswerView, LastAnswer, OutcomeView, Sent, Session, Target, Tine, Until, WorkerProcess};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::look::chosen;
use crate::failure;
use crate::mcp::tool::{Arguments, Call, CallError, QUOTED, ToolEffect, quoted, seconds};

/// What to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::mcp) enum WaitWord {
    #[default]
    None,
    Any,
    All,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SendMessage {
    /// Sessions to send to: names, ids, id prefixes or paths
    #[schemars(example = ["try-1", "try-2"])]
    sessions: Vec<String>,
    /// Message to send
    #[schemars(example = "Now run the tests and tell me what fails")]
    message: String,
    /// When to return: `none` once the sessions have started on it, `any` after the first answer, `all` after every
    /// answer
    #[serde(default)]
    wait: WaitWord,
    /// Maximum time to wait, in seconds
    #[serde(default = "ten_minutes")]
    timeout: f64,
}

fn ten_minutes() -> f64 {
    600.0
}

impl Arguments for SendMessage {
    const NAME: &'static str = "send_message";
    const TITLE: &'static str = "Send a message to sessions";
    const DESCRIPTION: &'static str = "Sends the same message to one or more sessions: in their panes if they run in \
        one, otherwise headless. With wait `any` or `all`, returns the answers. With `none`, returns once the \
        sessions have started; use wait_sessions and read_answer to collect the answers. \
        Example: {\"sessions\": [\"auth-cookie\"], \"message\": \"Now the tests\", \"wait\": \"all\"}";
    const TOUCH: ToolEffect = ToolEffect::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        engine::check_message(&self.message).map_err(|error| CallError::argument("message", error.to_string()))?;
        let timeout = seconds("timeout", self.timeout)?;
        let all = call.sessions()?;
        let mut targets = Vec::new();
        for (at, word) in self.sessions.iter().enumerate() {
            targets.push(target(call, &all, &format!("sessions[{at}]"), word)?);
        }
        if !(1..=16).contains(&targets.len()) {
            return Err(CallError::argument("sessions", "must have 1 to 16 sessions"));
        }
        let me = call.own_session(&all).map(|me| me.key());
        for (at, target) in targets.iter().enumerate() {
            match target {
                Target::Session(session) if Some(session.key()) == me => {
                    let field = format!("sessions[{at}]");
                    return Err(CallError::argument(&field, "is your own session, which is busy with this call"));
                }
                Target::Session(session) => {
                    let directory = session.view.cwd.as_deref().unwrap_or(&call.tine.context().cwd);
                    call.policy.check_start(directory, &format!("send messages to {}", session.view.label()))?;
                }
                Target::EmptySession(name) => match call.tine.status(target)?.directory() {
                    Some(directory) => call.policy.check_start(directory, &format!("send messages to {name}"))?,
                    None => call.policy.check_start_somewhere(&format!("send messages to {name}"))?,
                },
            }
        }
        call.check_wanted()?;
        let context = call.tine.context();
        // Each has its own engine, so that none waits for another.
        let sent: Vec<Result<Sent, CallError>> = thread::scope(|scope| {
            let threads: Vec<_> =
                targets.iter().map(|target| scope.spawn(|| send(context, target, &self.message, timeout))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(died()))).collect()
        });
        let workers: Vec<WorkerProcess> = sent.iter().filter_map(|sent| sent.as_ref().ok()?.worker.clone()).collect();
        let sent = sent.into_iter().map(|sent| sent.map(|sent| sent.session)).collect();
        let told = self.after(call, sent);
        if call.cancel.is_cancelled() {
            // Agents that were already running continue: another process started them.
            WorkerProcess::cancel_all(&workers);
        }
        told
    }
}

impl SendMessage {
    /// Waits for the answers if requested, and returns them.
    fn after(&self, call: &Call<'_>, sent: Vec<Result<Session, CallError>>) -> Result<Value, CallError> {
        let timeout = seconds("timeout", self.timeout)?;
        let begun: Vec<Session> = sent.iter().filter_map(|sent| sent.as_ref().ok().cloned()).collect();
        let done = match (self.wait, begun.is_empty()) {
            (WaitWord::None, _) | (_, true) => Vec::new(),
            (WaitWord::Any, false) => call.tine.wait_for(begun, Until::AnyAnswered, Some(timeout), &|_, _| {})?,
            (WaitWord::All, false) => call.tine.wait_for(begun, Until::AllAnswered, Some(timeout), &|_, _| {})?,
        };
        let now = call.sessions()?;
        let mut results = Vec::new();
        for (word, sent) in self.sessions.iter().zip(sent) {
            results.push(match sent {
                Ok(session) => {
                    let session = now.iter().find(|other| other.key() == session.key()).unwrap_or(&session);
                    let is_done = done.iter().any(|done| done.key() == session.key());
                    let answer = is_done.then(|| call.tine.last_answer(session)).transpose()?;
                    json!(view(session, answer.as_ref()))
                }
                Err(failed) => json!(OutcomeView::failed(word, failed.reported())),
            });
        }
        match results.iter().all(|result| result.get("error").is_some()) {
            true => Err(CallError::Told(json!({"results": results, "error": results[0]["error"]}))),
            false => Ok(json!({"results": results, "note": QUOTED})),
        }
    }
}

/// The target of a word: a session, or a started one without messages.
fn target(call: &Call<'_>, all: &[Session], field: &str, word: &str) -> Result<Target, CallError> {
    match call.select_whole(all, field, word) {
        Err(CallError::Failed(failed)) => Ok(failure::target(Err(failed))?),
        selected => Ok(selected?.into()),
    }
}

fn died() -> CallError {
    CallError::Failed(crate::failure::Failure::Other {
        kind: "bug",
        message: "internal error: a thread panicked".into(),
        hint: None,
    })
}

/// Sends the message; returns when the agent has started on it or it is queued.
fn send(context: &engine::Context, target: &Target, message: &str, timeout: Duration) -> Result<Sent, CallError> {
    let tine = Tine::open(context.clone())?;
    Ok(tine.send(target, message, false, Some(timeout))?)
}

/// The current state of a session, with its answer if it has one.
fn view(session: &Session, answer: Option<&LastAnswer>) -> AnswerView {
    AnswerView::new(session, answer, |answer| quoted(&session.view.id, answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct WaitSessions {
    /// Sessions: names, ids, id prefixes or paths
    #[schemars(example = ["try-1", "try-2"])]
    sessions: Vec<String>,
    /// Wait for `any` session or for `all`
    #[serde(default)]
    wait_for: AnyOrAll,
    /// Maximum time to wait, in seconds
    #[serde(default = "ten_minutes")]
    timeout: f64,
}

/// How many of the sessions to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::mcp) enum AnyOrAll {
    Any,
    #[default]
    All,
}

impl Arguments for WaitSessions {
    const NAME: &'static str = "wait_sessions";
    const TITLE: &'static str = "Wait for sessions";
    const DESCRIPTION: &'static str = "Waits until sessions have finished their current work, and returns their \
        answers. Fails if a session asks the user for permission. After the timeout, `timed_out` is true and the \
        result has the current states. Example: {\"sessions\": [\"try-1\", \"try-2\"], \"wait_for\": \"any\"}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let timeout = seconds("timeout", self.timeout)?;
        let watched = chosen(call, &call.sessions()?, &self.sessions)?;
        let until = match self.wait_for {
            AnyOrAll::Any => Until::AnyAnswered,
            AnyOrAll::All => Until::AllAnswered,
        };
        let waited = call.tine.wait_for(watched.clone(), until, Some(timeout), &|_, _| {});
        let (done, timed_out) = match waited {
            Ok(done) => (done, false),
            Err(engine::Error::Run(engine::RunError::StillAtWork { .. })) => (Vec::new(), true),
            Err(error) => return Err(error.into()),
        };
        let now = call.sessions()?;
        let mut results = Vec::new();
        for session in &watched {
            let session = now.iter().find(|other| other.key() == session.key()).unwrap_or(session);
            let is_done = done.iter().any(|done| done.key() == session.key());
            let answer = (is_done || timed_out).then(|| call.tine.last_answer(session)).transpose()?;
            results.push(view(session, answer.as_ref().filter(|answer| is_done || answer.is_done())));
        }
        Ok(json!({"timed_out": timed_out, "results": results, "note": QUOTED}))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ReadAnswer {
    /// A name, an id, an id prefix or a path
    #[schemars(example = "try-1")]
    session: String,
}

impl Arguments for ReadAnswer {
    const NAME: &'static str = "read_answer";
    const TITLE: &'static str = "Read a session's last answer";
    const DESCRIPTION: &'static str =
        "Returns a session's last answer, from its transcript. Example: {\"session\": \"try-1\"}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let session = call.select_whole(&call.sessions()?, "session", &self.session)?;
        let answer = call.tine.last_answer(&session)?;
        let mut view = json!(view(&session, Some(&answer)).with_completeness(&answer));
        view["note"] = json!(QUOTED);
        Ok(view)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct StopSessions {
    /// Sessions: names, ids, id prefixes or paths
    #[schemars(example = ["try-1", "try-2"])]
    sessions: Vec<String>,
}

impl Arguments for StopSessions {
    const NAME: &'static str = "stop_sessions";
    const TITLE: &'static str = "Stop sessions";
    const DESCRIPTION: &'static str = "Stops the agents of running sessions. The conversations are kept and can be \
        resumed. \
        Example: {\"sessions\": [\"try-2\"]}";
    const TOUCH: ToolEffect = ToolEffect::Ends;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let all = call.sessions()?;
        let sessions = chosen(call, &all, &self.sessions)?;
        let me = call.own_session(&all).map(|me| me.key());
        for (at, session) in sessions.iter().enumerate() {
            if Some(session.key()) == me {
                let field = format!("sessions[{at}]");
                return Err(CallError::argument(&field, "is your own session; only the user can stop it"));
            }
            call.policy.check_stop(session.view.cwd.as_deref(), &format!("end {}", session.view.label()))?;
        }
        let mut results = Vec::new();
        for session in &sessions {
            let stopped = call.tine.stop(&session.clone().into()).map_err(|error| CallError::from(error).reported());
            results.push(OutcomeView::stopped(session, stopped));
        }
        Ok(json!({"results": results}))
    }
}
