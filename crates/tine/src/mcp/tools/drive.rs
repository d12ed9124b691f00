//! Driving: say something in sessions, wait for them, read what they answered, end them.

use std::thread;
use std::time::Duration;

use engine::{AnswerView, LastAnswer, Sent, Session, Target, Tine, Until, WorkerProcess};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::State;

use super::look::chosen;
use crate::failure;
use crate::mcp::tool::{Arguments, Call, QUOTED, Touch, Trouble, quoted, seconds};

/// What is waited for.
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
    /// Whom: names, ids, beginnings of ids or paths
    #[schemars(example = ["try-1", "try-2"])]
    sessions: Vec<String>,
    /// What to say
    #[schemars(example = "Now run the tests and tell me what fails")]
    message: String,
    /// What to wait for: until they have begun with it, until any has answered, or all
    #[serde(default)]
    wait: WaitWord,
    /// For how many seconds at most
    #[serde(default = "ten_minutes")]
    timeout: f64,
}

fn ten_minutes() -> f64 {
    600.0
}

impl Arguments for SendMessage {
    const NAME: &'static str = "send_message";
    const TITLE: &'static str = "Say something in sessions";
    const DESCRIPTION: &'static str = "Says the same in one or several sessions: in its pane where one runs, without a \
        terminal where it does not. With wait `any` or `all` it comes back with the answers; with `none` when they have \
        begun, and wait_sessions and read_answer collect the rest. \
        Example: {\"sessions\": [\"auth-cookie\"], \"message\": \"Now the tests\", \"wait\": \"all\"}";
    const TOUCH: Touch = Touch::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, Trouble> {
        engine::check_message(&self.message).map_err(|error| Trouble::argument("message", error.to_string()))?;
        let timeout = seconds("timeout", self.timeout)?;
        let all = call.sessions()?;
        let mut targets = Vec::new();
        for (at, word) in self.sessions.iter().enumerate() {
            targets.push(target(call, &all, &format!("sessions[{at}]"), word)?);
        }
        if !(1..=16).contains(&targets.len()) {
            return Err(Trouble::argument("sessions", "from 1 to 16 sessions"));
        }
        let me = call.me(&all).map(|me| me.key());
        for (at, target) in targets.iter().enumerate() {
            match target {
                Target::Session(session) if Some(session.key()) == me => {
                    let field = format!("sessions[{at}]");
                    return Err(Trouble::argument(&field, "is your own session, which works on this very call"));
                }
                Target::Session(session) => {
                    let directory = session.view.cwd.as_deref().unwrap_or(&call.tine.context().cwd);
                    call.policy.check_start(directory, &format!("speak to {}", session.view.label()))?;
                }
                Target::Unbegun(name) => match call.tine.status(target)?.directory() {
                    Some(directory) => call.policy.check_start(directory, &format!("speak to {name}"))?,
                    None => call.policy.check_start_somewhere(&format!("speak to {name}"))?,
                },
            }
        }
        call.check_wanted()?;
        let context = call.tine.context();
        // Each has an engine of its own, so that none waits for another.
        let sent: Vec<Result<Sent, Trouble>> = thread::scope(|scope| {
            let threads: Vec<_> =
                targets.iter().map(|target| scope.spawn(|| send(context, target, &self.message, timeout))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(died()))).collect()
        });
        let workers: Vec<WorkerProcess> = sent.iter().filter_map(|sent| sent.as_ref().ok()?.worker.clone()).collect();
        let sent = sent.into_iter().map(|sent| sent.map(|sent| sent.session)).collect();
        let told = self.after(call, sent);
        if call.cancel.is_cancelled() {
            // Agents that ran before go on: somebody else started them.
            WorkerProcess::cancel_all(&workers);
        }
        told
    }
}

impl SendMessage {
    /// Waits for the answers where that is wanted, and tells them.
    fn after(&self, call: &Call<'_>, sent: Vec<Result<Session, Trouble>>) -> Result<Value, Trouble> {
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
                    one(session, answer.as_ref())
                }
                Err(trouble) => json!({"session": word, "error": trouble.as_json()}),
            });
        }
        match results.iter().all(|result| result.get("error").is_some()) {
            true => Err(Trouble::Told(json!({"results": results, "error": results[0]["error"]}))),
            false => Ok(json!({"results": results, "note": QUOTED})),
        }
    }
}

/// Whom a word means: a session, or one in whose pane nothing was said yet.
fn target(call: &Call<'_>, all: &[Session], field: &str, word: &str) -> Result<Target, Trouble> {
    match call.select_whole(all, field, word) {
        Err(Trouble::Failed(failed)) => Ok(failure::target(Err(failed))?),
        selected => Ok(selected?.into()),
    }
}

fn died() -> Trouble {
    Trouble::Failed(crate::failure::Failure::Other { kind: "bug", message: "a thread died".into(), hint: None })
}

/// Sends it; returns when it has been taken up or queued.
fn send(context: &engine::Context, target: &Target, message: &str, timeout: Duration) -> Result<Sent, Trouble> {
    let tine = Tine::open(context.clone())?;
    Ok(tine.send(target, message, false, Some(timeout))?)
}

/// A session as it is now, with its answer where it has one.
fn one(session: &Session, answer: Option<&LastAnswer>) -> Value {
    json!(AnswerView::new(session, answer, |answer| quoted(&session.view.id, answer)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct WaitSessions {
    /// Which: names, ids, beginnings of ids or paths
    #[schemars(example = ["try-1", "try-2"])]
    sessions: Vec<String>,
    /// Until any of them is done, or all
    #[serde(default)]
    wait_for: AnyOrAll,
    /// For how many seconds at most
    #[serde(default = "ten_minutes")]
    timeout: f64,
}

/// How many of them.
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
    const DESCRIPTION: &'static str = "Waits until sessions are done with what they were told, and comes back with what they \
        answered. One that asks the person for a permission ends the waiting with an error that says so; after the timeout \
        `timed_out` is true and the states are told. Example: {\"sessions\": [\"try-1\", \"try-2\"], \"wait_for\": \"any\"}";
    const TOUCH: Touch = Touch::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, Trouble> {
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
            results.push(one(session, answer.as_ref().filter(|answer| is_done || answer.is_done())));
        }
        Ok(json!({"timed_out": timed_out, "results": results, "note": QUOTED}))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ReadAnswer {
    /// A name, an id, the beginning of an id, or a path
    #[schemars(example = "try-1")]
    session: String,
}

impl Arguments for ReadAnswer {
    const NAME: &'static str = "read_answer";
    const TITLE: &'static str = "Read a session's last answer";
    const DESCRIPTION: &'static str =
        "What a session answered last, from its transcript. Example: {\"session\": \"try-1\"}";
    const TOUCH: Touch = Touch::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, Trouble> {
        let session = call.select_whole(&call.sessions()?, "session", &self.session)?;
        let answer = call.tine.last_answer(&session)?;
        let mut told = one(&session, Some(&answer));
        told["is_done"] = json!(answer.is_done());
        told["note"] = json!(QUOTED);
        Ok(told)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct StopSessions {
    /// Which: names, ids, beginnings of ids or paths
    #[schemars(example = ["try-1", "try-2"])]
    sessions: Vec<String>,
}

impl Arguments for StopSessions {
    const NAME: &'static str = "stop_sessions";
    const TITLE: &'static str = "End the agents of sessions";
    const DESCRIPTION: &'static str = "Ends the agents of sessions that run. The conversations stay and can be resumed. \
        Example: {\"sessions\": [\"try-2\"]}";
    const TOUCH: Touch = Touch::Ends;

    fn run(self, call: &Call<'_>) -> Result<Value, Trouble> {
        let all = call.sessions()?;
        let sessions = chosen(call, &all, &self.sessions)?;
        let me = call.me(&all).map(|me| me.key());
        for (at, session) in sessions.iter().enumerate() {
            if Some(session.key()) == me {
                let field = format!("sessions[{at}]");
                return Err(Trouble::argument(&field, "is your own session; the person ends it"));
            }
            call.policy.check_stop(session.view.cwd.as_deref(), &format!("end {}", session.view.label()))?;
        }
        let mut results = Vec::new();
        for session in &sessions {
            results.push(match call.tine.stop(&session.clone().into()).map_err(Trouble::from) {
                Ok(()) => json!({"session": session.view.label(), "id": session.view.id, "state": State::Stopped}),
                Err(trouble) => {
                    json!({"session": session.view.label(), "id": session.view.id, "error": trouble.as_json()})
                }
            });
        }
        Ok(json!({"results": results}))
    }
}
