//! What the connections and the test share: the script and the record.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::http::RawRequest;
use super::reply::Reply;
use super::request::{Kind, Request};
use super::server::default_reply;

type Rule = Arc<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

/// How far the answer to a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is being streamed, or held at a gate.
    Open,
    /// It was sent to the end.
    Finished,
    /// The agent hung up before its end, as it does when a turn is interrupted.
    Abandoned,
}

pub(crate) struct Shared {
    pub(crate) port: u16,
    stopped: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<Arc<Request>>,
    progress: Vec<Progress>,
    turns: usize,
    queue: VecDeque<Reply>,
    subagents: VecDeque<Reply>,
    rules: Vec<Rule>,
}

impl Shared {
    pub(crate) fn new(port: u16) -> Self {
        Self { port, stopped: AtomicBool::new(false), state: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) fn push(&self, reply: Reply) {
        self.state().queue.push_back(reply);
    }

    pub(crate) fn push_for_subagent(&self, reply: Reply) {
        self.state().subagents.push_back(reply);
    }

    pub(crate) fn queued(&self) -> usize {
        self.state().queue.len()
    }

    pub(crate) fn add_rule(&self, rule: Rule) {
        self.state().rules.push(rule);
    }

    pub(crate) fn requests(&self) -> Vec<Arc<Request>> {
        self.state().requests.clone()
    }

    pub(crate) fn progress(&self, index: usize) -> Progress {
        self.state().progress[index]
    }

    /// Records a request and chooses its reply: the newest rule that wants it, then the queue (turns alone), then the default.
    pub(crate) fn receive(&self, raw: RawRequest) -> (Arc<Request>, Reply) {
        let (request, rules) = {
            let mut state = self.state();
            let request = Arc::new(Request::new(state.requests.len(), raw));
            state.requests.push(Arc::clone(&request));
            state.progress.push(Progress::Open);
            (request, state.rules.clone())
        };
        self.changed.notify_all();
        // Rules run without the lock, so that they may ask the model what it has seen.
        if let Some(reply) = rules.iter().rev().find_map(|rule| rule(&request)) {
            return (request, reply);
        }
        let mut state = self.state();
        if request.kind == Kind::Turn {
            state.turns += 1;
            let queue = if request.subagent.is_some() { &mut state.subagents } else { &mut state.queue };
            if let Some(reply) = queue.pop_front() {
                return (request, reply);
            }
        }
        let reply = default_reply(request.kind, state.turns);
        (request, reply)
    }

    pub(crate) fn answered(&self, index: usize, to_the_end: bool) {
        self.state().progress[index] = if to_the_end { Progress::Finished } else { Progress::Abandoned };
        self.changed.notify_all();
    }

    /// Waits until the condition holds for the requests so far, and says whether it came to hold in time.
    pub(crate) fn wait_for(&self, condition: impl Fn(&[Arc<Request>]) -> bool, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        loop {
            // The condition runs without the lock, as rules do.
            if condition(&self.requests()) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let state = self.state();
            drop(self.changed.wait_timeout(state, left.min(Duration::from_millis(50))).expect("the model's lock"));
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
