//! A model double: an HTTP server on loopback that real agents take for their model.
//!
//! It speaks Anthropic's Messages (Claude Code), OpenAI's Responses (Codex) and Chat Completions (OpenCode), answers what the test scripted and
//! records everything it was asked. It owns the wire and the script; starting agents is [`crate::agents`]' part.
//!
//! ```
//! use testkit::model::{Model, Reply};
//!
//! let model = Model::start();
//! model.push(Reply::text("hello"));                       // the next turn
//! model.on(|request| {                                     // or whatever turn asks for it
//!     request.prompt()?.contains("weather").then(|| Reply::text("rain"))
//! });
//! assert!(model.turn_requests().is_empty());
//! ```

mod anthropic;
mod chat_completions;
mod generate_content;
mod http;
mod message;
mod openai;
mod reply;
mod request;
mod rules;
mod server;
mod shared;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use message::{Block, Message};
pub use reply::{Gate, Reply, Usage};
pub use request::{Api, Kind, Request};
pub use rules::broken_rule;
pub use shared::Progress;

use shared::Shared;

/// A running model double. It ends with its owner.
pub struct Model {
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Model {
    /// Listens on a free port of 127.0.0.1.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        let port = listener.local_addr().expect("the address of the model double").port();
        let shared = Arc::new(Shared::new(port));
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || server::serve(&listener, &shared)
        });
        Self { shared, acceptor: Some(acceptor) }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.shared.port
    }

    /// The base URL, without a path and without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.shared.port)
    }

    /// Adds a reply to the queue. Each turn that no rule covers takes the next one; titles, summaries and other
    /// side requests never do. An empty queue answers `ok N`, with N the number of turns taken so far.
    pub fn push(&self, reply: Reply) -> &Self {
        self.shared.push(reply);
        self
    }

    /// Adds a reply for subagents. They run beside the session that started them, so they have a queue of their own.
    pub fn push_for_subagent(&self, reply: Reply) -> &Self {
        self.shared.push_for_subagent(reply);
        self
    }

    /// How many queued replies nobody has asked for yet.
    pub fn queued(&self) -> usize {
        self.shared.queued()
    }

    /// Adds a rule. Rules are asked before the queue, the newest first, about requests of every kind but token counts.
    pub fn on(&self, rule: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> &Self {
        self.shared.add_rule(Arc::new(rule));
        self
    }

    /// Answers every compaction with this summary.
    pub fn summarise_as(&self, summary: &str) -> &Self {
        let reply = Reply::text(format!("<analysis>From the double.</analysis>\n<summary>{summary}</summary>"));
        self.on(move |request| (request.kind == Kind::Compaction).then(|| reply.clone()))
    }

    /// All requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.requests()
    }

    /// The requests of one kind.
    pub fn requests_of(&self, kind: Kind) -> Vec<Arc<Request>> {
        self.requests().into_iter().filter(|request| request.kind == kind).collect()
    }

    /// The requests that are steps of conversations.
    pub fn turn_requests(&self) -> Vec<Arc<Request>> {
        self.requests_of(Kind::Turn)
    }

    /// The last step of a conversation.
    pub fn last_turn(&self) -> Arc<Request> {
        self.turn_requests()
            .pop()
            .unwrap_or_else(|| panic!("no turn has reached the model; it saw:\n{}", self.overview()))
    }

    /// How far the answer to a request has come.
    pub fn progress(&self, request: &Request) -> Progress {
        self.shared.progress(request.index)
    }

    /// Waits until the condition holds for all requests so far.
    ///
    /// # Panics
    /// When it does not come to hold in time; the message lists what the double saw instead.
    pub fn wait_for(&self, condition: impl Fn(&[Arc<Request>]) -> bool, timeout: Duration) {
        let held = self.shared.wait_for(condition, timeout);
        assert!(held, "the model double waited {timeout:?} in vain; it saw:\n{}", self.overview());
    }

    /// Waits for a turn whose last prompt contains the text, and returns its first request.
    ///
    /// # Panics
    /// As [`Model::wait_for`].
    pub fn wait_for_prompt(&self, text: &str, timeout: Duration) -> Arc<Request> {
        let wanted = |request: &&Arc<Request>| {
            request.kind == Kind::Turn && request.prompt().is_some_and(|prompt| prompt.contains(text))
        };
        self.wait_for(|requests| requests.iter().any(|request| wanted(&request)), timeout);
        let requests = self.requests();
        Arc::clone(requests.iter().find(wanted).expect("the request that was waited for"))
    }

    /// One line per request, for messages of failed tests.
    pub fn overview(&self) -> String {
        let lines = self.requests().into_iter().map(|request| {
            let said = request.messages().last().map(Message::text).unwrap_or_default();
            let said: String = said.chars().take(100).collect();
            format!("  #{} {:?} {} {} {:?}\n", request.index, request.kind, request.method, request.path, said)
        });
        lines.collect()
    }

    /// Writes every request as one line of JSON.
    pub fn save(&self, path: &Path) {
        let file = std::fs::File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut file = std::io::BufWriter::new(file);
        for request in self.requests() {
            writeln!(file, "{}", request.to_json()).expect("writing the record of requests");
        }
        file.flush().expect("writing the record of requests");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.stop();
        // One more connection wakes the listener, which then sees that it has stopped.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.shared.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}
