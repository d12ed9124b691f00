//! Another agent's conversation as a chat file of Gemini CLI. Each result is stored once, with its call; the client would
//! send it twice otherwise.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};
use transcript::translate::{
    Act, CallResult, Message, MessageKind, Picture, Receipt, ReceiptItem, Step, ToolCall, ToolWords,
};

use super::Gemini;
use super::read::exit_code;
use crate::translate::{Translation, TranslationRequest, prefix_prompt};

/// What the model is called in answers that none of the client's models wrote.
const MODEL: &str = "unknown";
const SHELL: &str = "run_shell_command";

const fn tool(act: Act, name: &'static str, arguments: &'static [(&'static str, &'static str)]) -> ToolWords {
    ToolWords { act, name, arguments, entry_text: None }
}

const TOOLS: &[ToolWords] = &[
    tool(Act::Shell, SHELL, &[]),
    tool(Act::Read, "read_file", &[("path", "file_path")]),
    tool(Act::Write, "write_file", &[("path", "file_path")]),
    tool(
        Act::Edit,
        "replace",
        &[("path", "file_path"), ("old", "old_string"), ("new", "new_string"), ("all", "allow_multiple")],
    ),
    tool(Act::Search, "grep_search", &[("path", "dir_path"), ("include", "include_pattern")]),
    tool(Act::Find, "glob", &[("path", "dir_path")]),
    tool(Act::WebSearch, "google_web_search", &[]),
    ToolWords { entry_text: Some("description"), ..tool(Act::Todo, "write_todos", &[("items", "todos")]) },
    tool(Act::Subagent, "invoke_agent", &[("role", "agent_name")]),
];

impl Translation for Gemini {
    fn shared_tools(&self) -> &'static [ToolWords] {
        TOOLS
    }

    fn adapt(&self, message: &mut Message, receipt: &mut Receipt) {
        if let MessageKind::Summary(text) = &mut message.kind {
            receipt.note(ReceiptItem::SummaryAsPrompt);
            let text = format!("[Summary of the conversation so far]\n\n{text}");
            message.kind = MessageKind::User { text, pictures: Vec::new() };
        }
        prefix_prompt(message, is_mistaken, receipt);
        match &mut message.kind {
            MessageKind::Assistant { steps, .. } => {
                let is_call = |step: &Step| matches!(step, Step::Call(_));
                let first_call = steps.iter().position(is_call).unwrap_or(steps.len());
                let moved = steps[first_call..].iter().filter(|step| !is_call(step)).count();
                receipt.add(ReceiptItem::TextsMoved, moved as u64);
                steps.sort_by_key(is_call);
            }
            MessageKind::Results(results) => results.iter_mut().for_each(take_exit_code),
            MessageKind::User { .. } | MessageKind::Summary(_) => {}
        }
    }

    fn write_session(
        &self,
        request: &TranslationRequest,
        messages: &mut dyn Iterator<Item = Message>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let project = super::sha256::hex(request.cwd.to_string_lossy().as_bytes());
        let mut chat = ChatLines { request, out, count: 0, last: None, answer: None };
        chat.line(&json!({
            "sessionId": request.id, "projectHash": project, "startTime": request.now, "lastUpdated": request.now,
            "kind": "main", "summary": request.title,
        }))?;
        for message in messages {
            chat.message(message)?;
        }
        chat.finish_answer(&[])
    }
}

/// Whether the client leaves out a prompt like this, because it looks like a command or like its own context.
fn is_mistaken(text: &str) -> bool {
    let text = text.trim_start();
    ["/", "?", "<session_context>", "<hook_context>"].iter().any(|start| text.starts_with(start))
}

/// The client's own shell writes the exit code into the output, from where it is read.
fn take_exit_code(result: &mut CallResult) {
    let Some(code) = exit_code(Some(&result.name), &result.text) else { return };
    if result.exit_code == Some(code) {
        return;
    }
    if result.exit_code.is_some() {
        result.text = result.text_with_code();
    }
    result.exit_code = Some(code).filter(|code| *code != 0);
    result.error |= code != 0;
}

struct ChatLines<'a> {
    request: &'a TranslationRequest,
    out: &'a mut dyn Write,
    count: u64,
    last: Option<Timestamp>,
    /// An answer that waits for the results of its calls.
    answer: Option<(Timestamp, Vec<Step>)>,
}

impl ChatLines<'_> {
    fn message(&mut self, message: Message) -> io::Result<()> {
        let at = self.request.time_of(&message, self.last);
        self.last = Some(at);
        if let MessageKind::Results(results) = &message.kind {
            return self.finish_answer(results);
        }
        self.finish_answer(&[])?;
        match message.kind {
            MessageKind::User { text, pictures } => {
                let text = (!text.is_empty()).then(|| json!({ "text": text }));
                let content: Vec<Value> = text.into_iter().chain(pictures.iter().map(inline)).collect();
                let id = self.id();
                self.line(&json!({"id": id, "timestamp": at, "type": "user", "content": content}))
            }
            MessageKind::Assistant { steps, .. } => {
                self.answer = Some((at, steps));
                Ok(())
            }
            // They were made prompts and taken above.
            MessageKind::Summary(_) | MessageKind::Results(_) => Ok(()),
        }
    }

    fn finish_answer(&mut self, results: &[CallResult]) -> io::Result<()> {
        let Some((at, steps)) = self.answer.take() else { return Ok(()) };
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        for step in &steps {
            match step {
                Step::Text(text) => texts.push(json!({ "text": text })),
                Step::Call(call) => {
                    let result = results.iter().find(|result| result.id == call.id);
                    calls.push(tool_call(call, result, at));
                }
            }
        }
        let content = match texts.as_slice() {
            [] => json!(""),
            [one] => one["text"].clone(),
            _ => json!(texts),
        };
        let mut line = json!({
            "id": self.id(), "timestamp": at, "type": "gemini", "content": content, "thoughts": [], "tokens": null,
            "model": MODEL,
        });
        if !calls.is_empty() {
            line["toolCalls"] = json!(calls);
        }
        self.line(&line)
    }

    fn id(&mut self) -> String {
        let hash = xxhash_rust::xxh3::xxh3_128_with_seed(self.request.id.as_str().as_bytes(), self.count);
        self.count += 1;
        uuid::Builder::from_custom_bytes(hash.to_be_bytes()).into_uuid().to_string()
    }

    fn line(&mut self, line: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, line)?;
        self.out.write_all(b"\n")
    }
}

fn tool_call(call: &ToolCall, result: Option<&CallResult>, at: Timestamp) -> Value {
    let is_error = result.is_some_and(|result| result.error);
    let parts: Vec<Value> = result.map(result_parts).unwrap_or_default();
    json!({
        "id": call.id, "name": call.name, "args": call.input, "result": parts,
        "status": if is_error { "error" } else { "success" }, "timestamp": at,
        "resultDisplay": result.map(|result| transcript::text::prefix(&result.text, 4 << 10)),
        "displayName": call.name, "description": "", "renderOutputAsMarkdown": false,
    })
}

fn result_parts(result: &CallResult) -> Vec<Value> {
    let is_in_text = exit_code(Some(&result.name), &result.text).is_some();
    let text = if is_in_text { result.text.clone() } else { result.text_with_code() };
    let key = if result.error { "error" } else { "output" };
    let response = json!({
        "functionResponse": {"id": result.id, "name": result.name, "response": {key: text}},
    });
    std::iter::once(response).chain(result.pictures.iter().map(inline)).collect()
}

fn inline(picture: &Picture) -> Value {
    json!({ "inlineData": {"mimeType": picture.media_type, "data": picture.data} })
}
