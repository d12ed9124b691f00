//! A client of the Model Context Protocol that is not ours: the official one, in a Node.js process of its own.
//!
//! `crates/testkit/mcp/client.mjs` hands on what it is told; everything that goes to the server is written by the client
//! that `./test` installs.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Sandbox;
use crate::agents::installed_mcp_client;
use crate::poll::PATIENCE;
use crate::process::end;

/// The version that `crates/testkit/mcp/package-lock.json` pins.
pub const VERSION: &str = "1.32.2";

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct McpError {
    /// Its code, such as -32602; nothing where the client itself gave up.
    pub code: Option<i64>,
    /// Its words.
    pub message: String,
    /// What else was told.
    pub data: Value,
}

/// A question of the server to the person.
#[derive(Debug, Clone)]
pub struct Question {
    number: u64,
    /// The words of the question.
    pub message: String,
}

/// A call that was made and may not be answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending(u64);

/// A client that is connected to a server. Both end with it.
pub struct McpClient {
    child: Child,
    input: Mutex<ChildStdin>,
    shared: Arc<(Mutex<Heard>, Condvar)>,
    next: AtomicU64,
    /// What the server said of itself.
    pub server: Value,
}

#[derive(Default)]
struct Heard {
    answers: HashMap<u64, Result<Value, McpError>>,
    questions: VecDeque<Question>,
    is_over: bool,
}

impl McpClient {
    /// Starts a server and talks to it on its standard input and output. `elicitation` says whether the client can ask
    /// the person.
    #[track_caller]
    pub fn start(sandbox: &Sandbox, server: &Command, elicitation: bool) -> Self {
        let environment = server
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_string_lossy().into_owned(), json!(value?.to_string_lossy()))));
        let stdio = json!({
            "command": server.get_program().to_string_lossy(),
            "args": server.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
            "env": environment.collect::<serde_json::Map<_, _>>(),
            "cwd": server.get_current_dir().map(Path::to_string_lossy),
        });
        let connected = Self::connect(sandbox, &json!({"stdio": stdio, "elicitation": elicitation}));
        connected.unwrap_or_else(|error| panic!("the client could not connect: {error:?}"))
    }

    /// Connects to a server that listens.
    pub fn over_http(sandbox: &Sandbox, url: &str, headers: &Value, elicitation: bool) -> Result<Self, McpError> {
        Self::connect(sandbox, &json!({"http": {"url": url, "headers": headers}, "elicitation": elicitation}))
    }

    fn connect(sandbox: &Sandbox, to: &Value) -> Result<Self, McpError> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/client.mjs");
        let mut node = sandbox.command("node");
        node.arg(script).arg(installed_mcp_client(VERSION)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().unwrap_or_else(|error| panic!("Node.js could not be started: {error}"));
        let input = Mutex::new(child.stdin.take().expect("its input"));
        let output = child.stdout.take().expect("its output");
        let shared = Arc::new((Mutex::new(Heard::default()), Condvar::new()));
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    hear(&shared, &line);
                }
                shared.0.lock().expect("what was heard").is_over = true;
                shared.1.notify_all();
            }
        });
        let mut client = Self { child, input, shared, next: AtomicU64::new(1), server: Value::Null };
        client.server = client.ask("connect", to.clone())?;
        Ok(client)
    }

    /// The tools that the server has.
    #[track_caller]
    pub fn tools(&self) -> Vec<Value> {
        list(&self.expect("listTools", json!({})), "tools")
    }

    /// Calls a tool, and waits for its answer as the protocol has it.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Value, McpError> {
        self.finish(self.begin(tool, arguments))
    }

    /// Calls a tool that does what it is asked for, and returns what it tells.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn tool(&self, tool: &str, arguments: Value) -> Value {
        let call = format!("{tool} {arguments}");
        let answer = self.call(tool, arguments).unwrap_or_else(|error| panic!("{call}: {error:?}"));
        assert_ne!(answer["isError"], true, "{call}: {answer:#}");
        tool_result(&answer)
    }

    /// Calls a tool that understands the request and cannot do it, and returns its error.
    ///
    /// # Panics
    /// When it succeeds, or rejects the arguments.
    #[track_caller]
    pub fn tool_error(&self, tool: &str, arguments: Value) -> Value {
        tool_error_in(&self.call(tool, arguments))
    }

    /// Calls a tool with invalid arguments.
    ///
    /// # Panics
    /// When it accepts them.
    #[track_caller]
    pub fn refused(&self, tool: &str, arguments: Value) -> McpError {
        let call = format!("{tool} {arguments}");
        match self.call(tool, arguments) {
            Err(error) => error,
            Ok(answer) => panic!("{call} was accepted: {answer:#}"),
        }
    }

    /// Calls a tool and does not wait.
    pub fn begin(&self, tool: &str, arguments: Value) -> Pending {
        self.send("callTool", with_arguments(tool, arguments))
    }

    /// Waits for the answer to a call.
    ///
    /// # Panics
    /// When it does not come.
    #[track_caller]
    pub fn finish(&self, call: Pending) -> Result<Value, McpError> {
        let answer = self.wait(PATIENCE, |heard| heard.answers.remove(&call.0));
        answer.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for an answer"))
    }

    /// Whether a call is answered.
    pub fn is_finished(&self, call: Pending) -> bool {
        self.shared.0.lock().expect("what was heard").answers.contains_key(&call.0)
    }

    /// Cancels a call.
    #[track_caller]
    pub fn cancel(&self, call: Pending) {
        self.expect("cancel", json!({"call": call.0}));
    }

    /// The resources that the server has.
    #[track_caller]
    pub fn resources(&self) -> Vec<Value> {
        list(&self.expect("listResources", json!({})), "resources")
    }

    /// The kinds of resources that the server has.
    #[track_caller]
    pub fn resource_templates(&self) -> Vec<Value> {
        list(&self.expect("listResourceTemplates", json!({})), "resourceTemplates")
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Result<Value, McpError> {
        self.ask("readResource", json!({"uri": uri}))
    }

    /// The prompts that the server has.
    #[track_caller]
    pub fn prompts(&self) -> Vec<Value> {
        list(&self.expect("listPrompts", json!({})), "prompts")
    }

    /// A prompt, filled in.
    pub fn prompt(&self, name: &str, arguments: Value) -> Result<Value, McpError> {
        self.ask("getPrompt", with_arguments(name, arguments))
    }

    /// Waits for a question to the person.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn question(&self) -> Question {
        let question = self.wait(PATIENCE, |heard| heard.questions.pop_front());
        question.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for a question"))
    }

    /// Answers a question.
    #[track_caller]
    pub fn answer(&self, question: &Question, accept: bool) {
        let action = if accept { "accept" } else { "decline" };
        self.expect("answer", json!({"asked": question.number, "action": action}));
    }

    /// Takes leave of the server; one that was started ends.
    #[track_caller]
    pub fn close(&self) {
        self.expect("close", json!({}));
    }

    #[track_caller]
    fn expect(&self, op: &str, rest: Value) -> Value {
        self.ask(op, rest).unwrap_or_else(|error| panic!("{op}: {error:?}"))
    }

    #[track_caller]
    fn ask(&self, op: &str, rest: Value) -> Result<Value, McpError> {
        self.finish(self.send(op, rest))
    }

    fn send(&self, op: &str, mut request: Value) -> Pending {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        request["id"] = json!(id);
        request["op"] = json!(op);
        writeln!(self.input.lock().expect("the client's input"), "{request}").expect("the client's input");
        Pending(id)
    }

    fn wait<T>(&self, timeout: Duration, mut find: impl FnMut(&mut Heard) -> Option<T>) -> Option<T> {
        let heard = self.shared.0.lock().expect("what was heard");
        let mut found = None;
        let (heard, _) = self
            .shared
            .1
            .wait_timeout_while(heard, timeout, |heard| {
                found = find(heard);
                found.is_none() && !heard.is_over
            })
            .expect("what was heard");
        assert!(found.is_some() || !heard.is_over, "the client has ended");
        found
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// The result in a tool's answer, which is the same as data and as text.
#[track_caller]
pub fn tool_result(answer: &Value) -> Value {
    let text = answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer:#}"));
    let as_text: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!(as_javascript(&as_text), as_javascript(&answer["structuredContent"]));
    as_text
}

/// A value in which all numbers are of one kind, as the client has them: it knows no other zero than 0.
fn as_javascript(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(all) => all.iter().map(as_javascript).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), as_javascript(value))).collect(),
        other => other.clone(),
    }
}

/// The error in a tool's answer.
#[track_caller]
pub fn tool_error_in(answer: &Result<Value, McpError>) -> Value {
    let answer = answer.as_ref().unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(answer["isError"], true, "{answer:#}");
    tool_result(answer)["error"].take()
}

fn with_arguments(name: &str, arguments: Value) -> Value {
    let mut request = json!({"name": name});
    request["arguments"] = arguments;
    request
}

fn list(answer: &Value, key: &str) -> Vec<Value> {
    answer[key].as_array().unwrap_or_else(|| panic!("no {key} in {answer:#}")).clone()
}

fn hear(shared: &(Mutex<Heard>, Condvar), line: &str) {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
    let mut heard = shared.0.lock().expect("what was heard");
    if let Some(number) = line["asked"].as_u64() {
        let message = line["message"].as_str().unwrap_or_default().to_owned();
        heard.questions.push_back(Question { number, message });
    } else if let Some(id) = line["id"].as_u64() {
        let answer = match line.get("error") {
            Some(error) => Err(McpError {
                code: error["code"].as_i64(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].clone(),
            }),
            None => Ok(line["ok"].clone()),
        };
        heard.answers.insert(id, answer);
    }
    shared.1.notify_all();
}
