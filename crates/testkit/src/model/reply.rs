//! What the model double says: replies, written in the order in which they are streamed.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;

/// One scripted answer of the model.
///
/// The calls are streamed in the order in which they were written, so a pause can stand anywhere:
///
/// ```
/// use testkit::model::{Gate, Reply};
/// use serde_json::json;
///
/// let gate = Gate::closed();
/// let reply = Reply::new()
///     .thinking("The file may be large.")
///     .say("I read it.")
///     .hold(&gate)
///     .call("Bash", json!({"command": "cat notes.txt"}));
/// # let _ = reply;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(crate) steps: Vec<Step>,
    pub(crate) usage: Option<Usage>,
    pub(crate) error: Option<(u16, Value)>,
}

/// One thing that happens while a reply is streamed.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Text(String),
    Thinking(String),
    Tool { name: String, namespace: Option<String>, input: Value },
    Delay(Duration),
    Hold(Gate),
}

/// The token counts that a reply reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Reply {
    /// An answer without content; add to it.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer in words. On an existing reply use [`Reply::say`].
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// An answer that is one call of a tool. On an existing reply use [`Reply::call`].
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::new().call(name, input)
    }

    /// A refusal, as the API reports it: `Reply::error(529, json!({"type": "overloaded_error", "message": "busy"}))`.
    pub fn error(status: u16, body: Value) -> Self {
        Self { error: Some((status, body)), ..Self::default() }
    }

    /// Adds a block of text.
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.steps.push(Step::Text(text.into()));
        self
    }

    /// Adds a block of reasoning.
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.steps.push(Step::Thinking(text.into()));
        self
    }

    /// Adds a call of a tool; several in one reply run in parallel where the agent allows it.
    pub fn call(mut self, name: impl Into<String>, input: Value) -> Self {
        self.steps.push(Step::Tool { name: name.into(), namespace: None, input });
        self
    }

    /// Adds a call of an MCP tool as Codex names it: `namespace` is `mcp__<server>`.
    pub fn call_in(mut self, namespace: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        self.steps.push(Step::Tool { name: name.into(), namespace: Some(namespace.into()), input });
        self
    }

    /// Waits before what follows.
    pub fn delay(mut self, time: Duration) -> Self {
        self.steps.push(Step::Delay(time));
        self
    }

    /// Waits until the gate is opened before what follows: the session is busy for exactly as long as a test needs.
    pub fn hold(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Hold(gate.clone()));
        self
    }

    /// Reports these token counts instead of an estimate.
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(Usage { input, output });
        self
    }

    pub(crate) fn calls_tools(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Tool { .. }))
    }

    /// The counts to report for a request of so many bytes: four bytes are taken for one token.
    pub(crate) fn counts(&self, request_bytes: usize) -> Usage {
        self.usage.unwrap_or_else(|| {
            let written: usize = self
                .steps
                .iter()
                .map(|step| match step {
                    Step::Text(text) | Step::Thinking(text) => text.len(),
                    Step::Tool { input, .. } => input.to_string().len(),
                    Step::Delay(_) | Step::Hold(_) => 0,
                })
                .sum();
            Usage { input: (request_bytes / 4) as u64, output: (written / 4 + 1) as u64 }
        })
    }
}

/// A gate that a reply waits at until the test opens it.
#[derive(Debug, Clone)]
pub struct Gate {
    state: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    /// A gate that holds every reply that comes to it.
    pub fn closed() -> Self {
        Self { state: Arc::new((Mutex::new(false), Condvar::new())) }
    }

    /// Lets everything through, now and later.
    pub fn open(&self) {
        *self.state.0.lock().expect("the gate's lock") = true;
        self.state.1.notify_all();
    }

    /// Whether it has been opened.
    pub fn is_open(&self) -> bool {
        *self.state.0.lock().expect("the gate's lock")
    }

    /// Waits at most so long, and says whether the gate is open.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let guard = self.state.0.lock().expect("the gate's lock");
        let (guard, _) = self.state.1.wait_timeout_while(guard, time, |open| !*open).expect("the gate's lock");
        *guard
    }
}
