//! The lines of a chat file, as recorded with Gemini CLI 0.61.0.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::build::random::{Clock, Random};
use crate::build::turn::{End, Step, Tool, Turn};

/// Writes lines and remembers the messages.
pub(super) struct GeminiLines<W> {
    out: W,
    random: Random,
    clock: Clock,
    meta: Value,
    messages: Vec<Value>,
    /// The ids of the prompts.
    prompts: Vec<String>,
    /// The subagents: their ids and files.
    subagents: Vec<(String, Vec<u8>)>,
    /// What the model has said and thought that is not in a message yet.
    text: String,
    thoughts: Vec<Value>,
}

/// The subagents of a session, its messages, and its first line.
type Parts = (Vec<(String, Vec<u8>)>, Vec<Value>, Value);

impl<W: Write> GeminiLines<W> {
    pub(super) fn new(out: W, random: Random, clock: Clock) -> Self {
        Self {
            out,
            random,
            clock,
            meta: Value::Null,
            messages: Vec::new(),
            prompts: Vec::new(),
            subagents: Vec::new(),
            text: String::new(),
            thoughts: Vec::new(),
        }
    }

    pub(super) fn into_parts(self) -> Parts {
        (self.subagents, self.messages, self.meta)
    }

    /// Writes the first line.
    pub(super) fn meta(&mut self, id: &str, kind: &str, title: Option<&str>) -> io::Result<()> {
        let time = self.clock.now();
        self.meta = json!({
            "sessionId": id,
            "projectHash": self.random.hash(),
            "startTime": time,
            "lastUpdated": time,
            "kind": kind,
        });
        if let Some(title) = title {
            self.meta["summary"] = json!(title);
        }
        let meta = self.meta.clone();
        self.record(&meta)
    }

    /// Writes what the client tells the model about its surroundings.
    pub(super) fn context(&mut self, cwd: &str) -> io::Result<()> {
        let text = format!(
            "<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - {cwd}\n</session_context>"
        );
        let id = self.random.hash()[..32].to_owned();
        let time = self.clock.now();
        let message = json!({ "id": id, "timestamp": time, "type": "user", "content": [{ "text": text }] });
        self.messages.push(message.clone());
        self.record(&json!({ "$set": { "messages": [message], "lastUpdated": time } }))
    }

    pub(super) fn record(&mut self, record: &Value) -> io::Result<()> {
        writeln!(self.out, "{record}")
    }

    /// Writes a message, and the note of its time that follows each.
    fn message(&mut self, message: Value) -> io::Result<()> {
        self.record(&message)?;
        match self.messages.iter_mut().find(|known| known["id"] == message["id"]) {
            Some(known) => *known = message,
            None => self.messages.push(message),
        }
        let time = self.clock.now();
        self.record(&json!({ "$set": { "lastUpdated": time } }))
    }

    fn user(&mut self, content: &Value) -> io::Result<String> {
        let id = self.random.uuid();
        let time = self.clock.tick(400);
        self.message(json!({ "id": id, "timestamp": time, "type": "user", "content": content }))?;
        Ok(id)
    }

    pub(super) fn turn(&mut self, turn: &Turn) -> io::Result<()> {
        let id = self.user(&json!([{ "text": turn.prompt }]))?;
        self.prompts.push(id);
        for (number, step) in turn.steps.iter().enumerate() {
            match step {
                Step::Text(text) => self.text.push_str(text),
                Step::Thinking(text) => {
                    let time = self.clock.tick(100);
                    self.thoughts.push(json!({ "subject": "", "description": text, "timestamp": time }));
                }
                Step::Tools { calls, reversed } => {
                    let is_killed = turn.end == End::Killed && number + 1 == turn.steps.len();
                    self.tools(calls, *reversed, is_killed)?;
                }
                Step::Subagent { description, turn } => self.subagent(description, turn)?,
            }
        }
        match turn.end {
            End::Complete => self.flush().map(|_| ()),
            End::Killed => Ok(()),
            End::Interrupted => {
                self.flush()?;
                let (id, time) = (self.random.uuid(), self.clock.tick(100));
                self.message(json!({ "id": id, "timestamp": time, "type": "info", "content": "Request cancelled." }))
            }
        }
    }

    /// Writes what the model has said, if anything.
    fn flush(&mut self) -> io::Result<Option<Value>> {
        if self.text.is_empty() && self.thoughts.is_empty() {
            return Ok(None);
        }
        let message = self.answer();
        self.message(message.clone())?;
        Ok(Some(message))
    }

    fn answer(&mut self) -> Value {
        let time = self.clock.tick(700);
        let (input, output) = (900 + self.random.below(20_000), 10 + self.random.below(400));
        json!({
            "id": self.random.uuid(),
            "timestamp": time,
            "type": "gemini",
            "content": std::mem::take(&mut self.text),
            "thoughts": std::mem::take(&mut self.thoughts),
            "tokens": { "input": input, "output": output, "cached": 0, "thoughts": 5, "tool": 0, "total": input + output + 5 },
            "model": "gemini-3.1-pro-preview",
        })
    }

    /// The message is written before the tools run, and again with their results. Then the results follow once more, as a
    /// message of the user.
    fn tools(&mut self, calls: &[Tool], reversed: bool, is_killed: bool) -> io::Result<()> {
        let mut message = self.answer();
        self.message(message.clone())?;
        if is_killed {
            return Ok(());
        }
        let mut list = Vec::new();
        let mut responses = Vec::new();
        for Tool { name, input, output, failed } in calls {
            let id = format!("{name}__{}", self.random.id("", 12));
            let response = json!({ if *failed { "error" } else { "output" }: output });
            let part = json!({ "functionResponse": { "id": id, "name": name, "response": response } });
            list.push(json!({
                "id": id,
                "name": name,
                "args": input,
                "result": [part],
                "status": if *failed { "error" } else { "success" },
                "timestamp": self.clock.tick(50),
                "resultDisplay": output,
                "description": "",
                "displayName": name,
                "renderOutputAsMarkdown": false,
            }));
            responses.push(part);
        }
        if reversed {
            responses.reverse();
        }
        message["toolCalls"] = json!(list);
        self.message(message)?;
        self.user(&json!(responses)).map(|_| ())
    }

    fn subagent(&mut self, description: &str, turn: &Turn) -> io::Result<()> {
        let id = self.random.uuid();
        let mut bytes = Vec::new();
        let random = Random::new(self.random.bits());
        let mut lines = GeminiLines::new(&mut bytes, random, self.clock.clone());
        lines.meta(&id, "subagent", None)?;
        lines.turn(turn)?;
        let answer = turn.last_words().to_owned();
        self.subagents.push((id, bytes));
        let input = json!({ "agent_name": "generalist", "prompt": description });
        let call = Tool { name: "invoke_agent".to_owned(), input, output: answer, failed: false };
        self.tools(&[call], false, false)
    }

    /// Writes the beginning of a new session into the same file.
    pub(super) fn begin_again(&mut self, cwd: &str) -> io::Result<()> {
        let meta = self.meta.clone();
        self.record(&meta)?;
        let messages = std::mem::take(&mut self.messages);
        self.context(cwd)?;
        self.messages = messages;
        Ok(())
    }

    /// What the client writes when it resumes a session: all messages, with calls and thoughts among the parts, and with
    /// all results of a message in each of its calls.
    pub(super) fn resume(&mut self, at_once: bool) -> io::Result<()> {
        let id = self.meta["sessionId"].clone();
        self.record(&json!({ "$set": { "sessionId": id } }))?;
        let mut all = Vec::new();
        for mut message in std::mem::take(&mut self.messages) {
            if message["type"] != "gemini" {
                all.extend((message["type"] == "user").then_some(message));
                continue;
            }
            let calls = message["toolCalls"].as_array().cloned().unwrap_or_default();
            let thoughts = message["thoughts"].as_array().cloned().unwrap_or_default();
            if message["content"].is_string() {
                let mut parts: Vec<Value> =
                    thoughts.iter().map(|thought| json!({ "text": thought["description"], "thought": true })).collect();
                parts.extend(
                    message["content"].as_str().filter(|text| !text.is_empty()).map(|text| json!({ "text": text })),
                );
                parts.extend(calls.iter().map(
                    |call| json!({ "functionCall": { "id": call["id"], "name": call["name"], "args": call["args"] } }),
                ));
                message["content"] = json!(parts);
            }
            let results: Vec<Value> =
                calls.iter().flat_map(|call| call["result"].as_array().cloned().unwrap_or_default()).collect();
            for call in message["toolCalls"].as_array_mut().into_iter().flatten() {
                call["result"] = json!(results);
            }
            let response = json!({
                "id": format!("{}_response", message["id"].as_str().unwrap_or_default()),
                "timestamp": self.clock.now(),
                "type": "user",
                "content": results,
            });
            if at_once && let Some(fields) = message.as_object_mut() {
                fields.retain(|field, _| !matches!(field.as_str(), "toolCalls" | "thoughts" | "tokens" | "model"));
            }
            all.push(message);
            all.extend((!calls.is_empty()).then_some(response));
        }
        self.messages.clone_from(&all);
        let time = self.clock.tick(1000);
        self.record(&json!({ "$set": { "messages": all, "lastUpdated": time } }))
    }

    pub(super) fn rewind(&mut self, turn: usize) -> io::Result<()> {
        let id = self.prompts[turn - 1].clone();
        self.prompts.truncate(turn - 1);
        let place = self.messages.iter().position(|message| message["id"] == id.as_str());
        self.messages.truncate(place.unwrap_or(0));
        self.record(&json!({ "$rewindTo": id }))
    }
}
