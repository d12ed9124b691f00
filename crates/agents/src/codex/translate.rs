//! Another agent's conversation as a rollout of Codex: the messages for the model, and the events from which the client's
//! picker and history are made.
//!
//! The provider of the model is left out, because a session of another one can't be resumed.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use transcript::text;
use transcript::translate::{
    Act, CallResult, Message, MessageKind, Receipt, ReceiptItem, Step, TOOL_ERROR, ToolCall, ToolWords,
};

use super::Codex;
use super::message::Message as Prompt;
use super::message::is_of_person;
use crate::translate::{Translation, TranslationRequest, prefix_prompt};

/// The version whose records these are.
const VERSION: &str = "0.166.0";
/// What the client shows of an output.
const SHOWN_OUTPUT: usize = 4 << 10;

const TOOLS: &[ToolWords] = &[
    ToolWords { act: Act::Shell, name: SHELL, arguments: &[("command", "cmd")], entry_text: None },
    ToolWords { act: Act::Todo, name: "update_plan", arguments: &[("items", "plan")], entry_text: Some("step") },
];
const SHELL: &str = "exec_command";

impl Translation for Codex {
    fn shared_tools(&self) -> &'static [ToolWords] {
        TOOLS
    }

    fn adapt(&self, message: &mut Message, receipt: &mut Receipt) {
        prefix_prompt(message, is_mistaken, receipt);
        if let MessageKind::Results(results) = &message.kind {
            let failed = results.iter().filter(|result| result.error && result.exit_code.is_none()).count();
            receipt.add(ReceiptItem::FailuresAsText, failed as u64);
        }
    }

    fn write_session(
        &self,
        request: &TranslationRequest,
        messages: &mut dyn Iterator<Item = Message>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut rollout = Rollout {
            request,
            out,
            ordinal: 0,
            turn: None,
            turns: 0,
            at: request.now,
            last: None,
            answer: None,
            calls: Vec::new(),
        };
        let mut messages = messages.peekable();
        rollout.at = messages.peek().map_or(request.now, |first| request.time_of(first, None));
        rollout.meta()?;
        for message in messages {
            rollout.message(&message)?;
        }
        rollout.end_turn()
    }
}

/// Whether the client, or tine, would not take this for a prompt.
fn is_mistaken(text: &str) -> bool {
    let prompt = Prompt { text: text.to_owned(), ..Prompt::default() };
    !is_of_person(text) || prompt.request().0.is_some()
}

struct Rollout<'a> {
    request: &'a TranslationRequest,
    out: &'a mut dyn Write,
    ordinal: u64,
    /// The id of the running turn.
    turn: Option<String>,
    turns: u64,
    at: Timestamp,
    last: Option<Timestamp>,
    /// The last answer of the turn.
    answer: Option<String>,
    /// The shell's calls without a result.
    calls: Vec<(String, String)>,
}

#[derive(Serialize)]
struct RolloutLine<'a, P> {
    timestamp: String,
    ordinal: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: P,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'a str,
        content: Vec<Element<'a>>,
    },
    FunctionCall {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
        arguments: String,
        call_id: &'a str,
    },
    CustomToolCall {
        name: &'a str,
        input: &'a str,
        call_id: &'a str,
        status: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: ResultOutput<'a>,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        output: ResultOutput<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Element<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
    InputImage { image_url: String },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultOutput<'a> {
    Text(&'a str),
    Elements(Vec<Element<'a>>),
}

impl Rollout<'_> {
    fn meta(&mut self) -> io::Result<()> {
        let TranslationRequest { id, cwd, branch, now, .. } = self.request;
        let mut meta = json!({
            "id": id, "session_id": id, "timestamp": stamp(*now), "cwd": cwd.to_string_lossy(), "originator": "codex-tui",
            "cli_version": VERSION, "source": "cli", "thread_source": "user", "history_mode": "paginated",
        });
        if let Some(branch) = branch {
            meta["git"] = json!({ "branch": branch });
        }
        self.line("session_meta", &meta)
    }

    fn message(&mut self, message: &Message) -> io::Result<()> {
        self.at = self.request.time_of(message, self.last);
        self.last = Some(self.at);
        match &message.kind {
            MessageKind::User { text, pictures } => {
                self.begin_turn()?;
                let mut content = Vec::new();
                if !text.is_empty() {
                    content.push(Element::InputText { text });
                }
                content.extend(pictures.iter().map(|picture| image(&picture.media_type, &picture.data)));
                self.line("response_item", &Item::Message { role: "user", content })?;
                let id = format!("item-{}", self.ordinal);
                let content = json!([{"type": "text", "text": text}]);
                self.completed(&json!({"type": "UserMessage", "id": id, "content": content}))
            }
            MessageKind::Summary(text) => {
                let content = vec![Element::InputText { text }];
                let history = [Item::Message { role: "user", content }];
                self.line("compacted", &json!({"message": text, "replacement_history": history}))
            }
            MessageKind::Assistant { steps, .. } => steps.iter().try_for_each(|step| self.step(step)),
            MessageKind::Results(results) => results.iter().try_for_each(|result| self.result(result)),
        }
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Text(text) => {
                let content = vec![Element::OutputText { text }];
                self.line("response_item", &Item::Message { role: "assistant", content })?;
                let id = format!("item-{}", self.ordinal);
                self.answer = Some(text.clone());
                let content = json!([{"type": "Text", "text": text}]);
                self.completed(&json!({"type": "AgentMessage", "id": id, "content": content}))
            }
            Step::Call(call) => self.call(call),
        }
    }

    fn call(&mut self, call: &ToolCall) -> io::Result<()> {
        let (name, call_id) = (call.name.as_str(), call.id.as_str());
        if let Some(input) = freeform(call) {
            let item = Item::CustomToolCall { name, input, call_id, status: "completed" };
            self.calls.push((call.id.clone(), String::new()));
            return self.line("response_item", &item);
        }
        if name == SHELL
            && let Some(command) = call.input.get("cmd").and_then(Value::as_str)
        {
            self.calls.push((call.id.clone(), text::prefix(command, SHOWN_OUTPUT).to_owned()));
        }
        let (namespace, name) = match name.strip_prefix("mcp__").and_then(|rest| rest.rsplit_once("__")) {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
                (Some(&name[.."mcp__".len() + server.len()]), tool)
            }
            _ => (None, name),
        };
        let item = Item::FunctionCall { name, namespace, arguments: call.input.to_string(), call_id };
        self.line("response_item", &item)
    }

    fn result(&mut self, result: &CallResult) -> io::Result<()> {
        let called = self.calls.iter().position(|(id, _)| *id == result.id).map(|at| self.calls.swap_remove(at).1);
        let text = output_text(result);
        let output = match result.pictures.as_slice() {
            [] if !is_mistaken_output(result) => ResultOutput::Text(&text),
            pictures => {
                let text = (!text.is_empty()).then_some(Element::InputText { text: &text });
                let images = pictures.iter().map(|picture| image(&picture.media_type, &picture.data));
                ResultOutput::Elements(text.into_iter().chain(images).collect())
            }
        };
        let call_id = result.id.as_str();
        match called.as_deref() {
            Some("") => self.line("response_item", &Item::CustomToolCallOutput { call_id, output }),
            Some(command) => {
                self.line("response_item", &Item::FunctionCallOutput { call_id, output })?;
                self.shell(result, command)
            }
            None => self.line("response_item", &Item::FunctionCallOutput { call_id, output }),
        }
    }

    /// What the client shows of a command.
    fn shell(&mut self, result: &CallResult, command: &str) -> io::Result<()> {
        let cwd = format!("file://{}", self.request.cwd.to_string_lossy());
        let code = result.exit_code.unwrap_or(i32::from(result.error));
        self.completed(&json!({
            "type": "CommandExecution", "id": result.id, "command": ["bash", "-lc", command], "cwd": cwd,
            "parsed_cmd": [{"type": "unknown", "cmd": command}], "source": "agent",
            "status": if result.error { "failed" } else { "completed" },
            "aggregated_output": text::prefix(&result.text, SHOWN_OUTPUT), "exit_code": code,
            "duration": {"secs": 0, "nanos": 0},
        }))
    }

    fn begin_turn(&mut self) -> io::Result<()> {
        self.end_turn()?;
        let seed = xxhash_rust::xxh3::xxh3_128_with_seed(self.request.id.as_str().as_bytes(), self.turns);
        self.turns += 1;
        let id = uuid::Builder::from_custom_bytes(seed.to_be_bytes()).into_uuid().to_string();
        self.line("event_msg", &json!({"type": "task_started", "turn_id": id, "started_at": self.at.as_second()}))?;
        self.turn = Some(id);
        Ok(())
    }

    fn end_turn(&mut self) -> io::Result<()> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        let answer = self.answer.take();
        self.line("event_msg", &json!({"type": "task_complete", "turn_id": turn, "last_agent_message": answer}))
    }

    fn completed(&mut self, item: &Value) -> io::Result<()> {
        // What precedes the first prompt belongs to no turn.
        let Some(turn) = self.turn.clone() else { return Ok(()) };
        let thread = self.request.id.as_str();
        self.line("event_msg", &json!({"type": "item_completed", "thread_id": thread, "turn_id": turn, "item": item}))
    }

    fn line(&mut self, kind: &str, payload: &impl Serialize) -> io::Result<()> {
        let line = RolloutLine { timestamp: stamp(self.at), ordinal: self.ordinal, kind, payload };
        serde_json::to_writer(&mut *self.out, &line)?;
        self.ordinal += 1;
        self.out.write_all(b"\n")
    }
}

/// The input of a tool that takes text instead of arguments.
fn freeform(call: &ToolCall) -> Option<&str> {
    let fields = call.input.as_object().filter(|fields| fields.len() == 1 && !call.name.starts_with("mcp__"))?;
    fields.get("input")?.as_str().filter(|input| !input.is_empty())
}

/// The text of an output. The client's own shell puts the exit code in front.
fn output_text(result: &CallResult) -> String {
    let text = &result.text;
    match result.exit_code {
        Some(code) if result.pictures.is_empty() => {
            format!("Exit code: {code}\nWall time: 0.0000 seconds\nOutput:\n{text}")
        }
        Some(_) => format!("{TOOL_ERROR}\n{}", result.text_with_code()),
        None if result.error => format!("{TOOL_ERROR}\n{text}"),
        None if result.pictures.is_empty() && text.starts_with("Wall time: ") => {
            format!("Wall time: 0.0000 seconds\nOutput:\n{text}")
        }
        None => text.clone(),
    }
}

/// Whether an output as a plain text would be read as something else, such as the header of a shell.
fn is_mistaken_output(result: &CallResult) -> bool {
    const STARTS: [&str; 6] = [
        "Chunk ID: ",
        "Exit code: ",
        "{\"output\":",
        "unsupported call: ",
        "unsupported custom tool call: ",
        "aborted by user",
    ];
    let is_plain = result.exit_code.is_none() && !result.error;
    is_plain
        && (STARTS.iter().any(|start| result.text.starts_with(start))
            || result.name.starts_with("mcp__") && result.text.trim_start().starts_with('['))
}

fn image<'a>(media_type: &str, data: &str) -> Element<'a> {
    Element::InputImage { image_url: format!("data:{media_type};base64,{data}") }
}

fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
