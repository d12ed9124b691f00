//! The connections of the model double: a listener, a thread per connection, and an end to all of them.

use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http;
use super::reply::{Reply, Step};
use super::request::{Api, Kind, Request};
use super::shared::Shared;
use super::{anthropic, chat_completions, generate_content, openai};

/// How often a waiting answer looks whether the agent hung up or the test ended.
const LOOK: Duration = Duration::from_millis(20);

/// Accepts connections until the double is dropped.
pub(crate) fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.has_stopped() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A connection that breaks is the agent's choice: it interrupts turns by hanging up.
        thread::spawn(move || {
            let _ = talk(stream, &shared);
        });
    }
}

fn talk(mut stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let Some(raw) = http::read_request(&mut stream)? else { return Ok(()) };
    let (request, reply) = shared.receive(raw);
    let mut answer = Answer { stream, shared: Arc::clone(shared), head_only: request.method == "HEAD" };
    let output = match (request.api, request.kind) {
        (Api::Messages, Kind::CountTokens) => anthropic::count_tokens(&mut answer, &request),
        (Api::Messages, _) => anthropic::answer(&mut answer, &request, &reply),
        (Api::Responses, _) if request.path.ends_with("/compact") => openai::compact(&mut answer, &request, &reply),
        (Api::Responses, _) => openai::answer(&mut answer, &request, &reply),
        (Api::GenerateContent, Kind::CountTokens) => generate_content::count_tokens(&mut answer, &request),
        (Api::GenerateContent, _) => generate_content::answer(&mut answer, &request, &reply),
        (Api::ChatCompletions, _) => chat_completions::answer(&mut answer, &request, &reply),
        (Api::Neither, _) => neither(&mut answer, &request),
    };
    shared.answered(request.index, output.is_ok());
    let _ = answer.stream.shutdown(Shutdown::Both);
    output
}

fn neither(answer: &mut Answer, request: &Request) -> io::Result<()> {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/models") => openai::models(answer),
        ("HEAD" | "GET", "/" | "/api/hello") => answer.json(200, &json!({})),
        _ => answer.json(
            404,
            &json!({"type": "error", "error": {"type": "not_found_error", "message": "not part of the double"}}),
        ),
    }
}

/// One answer under way.
pub(crate) struct Answer {
    stream: TcpStream,
    shared: Arc<Shared>,
    head_only: bool,
}

impl Answer {
    /// An id that no other answer of this double has, nor one of another double in the same test.
    pub(crate) fn new_id(&self, prefix: &str) -> String {
        static COUNTER: AtomicUsize = AtomicUsize::new(1);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}{:05}T{number:016}", self.shared.port)
    }

    pub(crate) fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        http::respond(&mut self.stream, status, "application/json", &body.to_string(), self.head_only)
    }

    pub(crate) fn start_events(&mut self) -> io::Result<()> {
        http::start_events(&mut self.stream)
    }

    pub(crate) fn event(&mut self, name: &str, data: &Value) -> io::Result<()> {
        write!(self.stream, "event: {name}\ndata: {data}\n\n")?;
        self.stream.flush()
    }

    /// An event without a name.
    pub(crate) fn data(&mut self, data: &str) -> io::Result<()> {
        write!(self.stream, "data: {data}\n\n")?;
        self.stream.flush()
    }

    /// Waits at a delay or a gate; other steps take no time. Fails when the agent hangs up or the test ends meanwhile.
    pub(crate) fn wait(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Delay(time) => {
                let end = Instant::now() + *time;
                while Instant::now() < end {
                    thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
                    self.still_wanted()?;
                }
            }
            Step::Hold(gate) => {
                while !gate.wait(LOOK) {
                    self.still_wanted()?;
                }
            }
            Step::Text(_) | Step::Thinking(_) | Step::Tool { .. } => {}
        }
        Ok(())
    }

    /// Waits at all delays and gates of a reply, for replies that are told at once.
    pub(crate) fn wait_steps(&mut self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| self.wait(step))
    }

    fn still_wanted(&self) -> io::Result<()> {
        if self.shared.has_stopped() || http::hung_up(&self.stream) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "nobody waits for the answer"));
        }
        Ok(())
    }
}

/// What the double says to requests that no script covers.
pub(crate) fn default_reply(kind: Kind, number: usize) -> Reply {
    match kind {
        Kind::Turn => Reply::text(format!("ok {number}")),
        Kind::Title => Reply::text("{\"title\": \"A title from the double\"}"),
        Kind::Compaction => Reply::text("<analysis>Short.</analysis>\n<summary>A summary from the double.</summary>"),
        Kind::CountTokens | Kind::Other => Reply::text("ok"),
    }
}
