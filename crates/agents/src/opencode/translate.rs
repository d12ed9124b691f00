//! Another agent's conversation as rows of OpenCode's database.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use transcript::translate::{Act, CallResult, Message, MessageKind, Picture, Receipt, Step, ToolCall, ToolWords};

use super::project::Project;
use super::row::{Row, RowLines};
use super::{OpenCode, database, ids};
use crate::translate::{Translation, TranslationRequest, drop_pictures_of_failures};

/// The version whose rows these are.
const VERSION: &str = "1.18.33";
/// The client's usual agent.
const AGENT: &str = "build";

const fn tool(act: Act, name: &'static str, arguments: &'static [(&'static str, &'static str)]) -> ToolWords {
    ToolWords { act, name, arguments, entry_text: None }
}

const TOOLS: &[ToolWords] = &[
    tool(Act::Shell, "bash", &[]),
    tool(Act::Read, "read", &[("path", "filePath")]),
    tool(Act::Write, "write", &[("path", "filePath")]),
    tool(Act::Edit, "edit", &[("path", "filePath"), ("old", "oldString"), ("new", "newString"), ("all", "replaceAll")]),
    tool(Act::Search, "grep", &[]),
    tool(Act::Find, "glob", &[]),
    tool(Act::Fetch, "webfetch", &[]),
    tool(Act::WebSearch, "websearch", &[]),
    ToolWords { entry_text: Some("content"), ..tool(Act::Todo, "todowrite", &[("items", "todos")]) },
    tool(Act::Subagent, "task", &[("role", "subagent_type")]),
];

impl Translation for OpenCode {
    fn shared_tools(&self) -> &'static [ToolWords] {
        TOOLS
    }

    fn adapt(&self, message: &mut Message, receipt: &mut Receipt) {
        drop_pictures_of_failures(message, receipt);
    }

    fn write_session(
        &self,
        request: &TranslationRequest,
        messages: &mut dyn Iterator<Item = Message>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (provider, model) =
            usual_model(&self.home.database).unwrap_or_else(|| ("unknown".into(), "unknown".into()));
        let mut rows = Rows {
            request,
            lines: RowLines::new(out)?,
            provider,
            model,
            prompt: None,
            answer: None,
            time: 0,
            count: 0,
        };
        rows.session()?;
        for message in messages {
            rows.message(message)?;
        }
        rows.finish_answer(&[])
    }
}

/// The provider and the model of the last session: an unknown one could not continue.
fn usual_model(database: &Path) -> Option<(String, String)> {
    let connection = database::open(database).ok()?;
    let query = "SELECT data FROM message WHERE json_extract(data, '$.role') = 'user'
                 AND json_extract(data, '$.model.providerID') IS NOT NULL ORDER BY time_created DESC, id DESC LIMIT 1";
    let data: String = database::value(&connection, query, []).ok()??;
    let data: Value = serde_json::from_str(&data).ok()?;
    let text = |key: &str| data["model"][key].as_str().map(str::to_owned);
    Some((text("providerID")?, text("modelID")?))
}

struct Rows<'a> {
    request: &'a TranslationRequest,
    lines: RowLines<'a>,
    provider: String,
    model: String,
    /// The id of the turn's prompt.
    prompt: Option<String>,
    /// An answer that waits for the results of its calls.
    answer: Option<Vec<Step>>,
    /// The time of the last message in milliseconds.
    time: i64,
    /// The number of ids made so far.
    count: u64,
}

impl Rows<'_> {
    fn session(&mut self) -> io::Result<()> {
        let TranslationRequest { id, title, cwd, now, .. } = self.request;
        let project = Project::of(cwd);
        let now = now.as_millisecond();
        self.row("project", json!({
            "id": project.id, "worktree": project.worktree().to_string_lossy(),
            "vcs": project.is_repository.then_some("git"), "time_created": now, "time_updated": now, "sandboxes": "[]",
        }))?;
        let model = json!({ "id": self.model, "providerID": self.provider }).to_string();
        self.row("session", json!({
            "id": id, "project_id": project.id, "slug": format!("fork-{}", id.as_str().trim_start_matches("ses_").to_lowercase()),
            "directory": cwd.to_string_lossy(), "path": project.path_of(cwd), "title": title, "version": VERSION,
            "agent": AGENT, "model": model, "time_created": now, "time_updated": now,
        }))
    }

    fn message(&mut self, message: Message) -> io::Result<()> {
        let at = message.at.unwrap_or(self.request.now).as_millisecond();
        self.time = if self.time == 0 { at } else { at.max(self.time + 1) };
        if let MessageKind::Results(results) = &message.kind {
            return self.finish_answer(results);
        }
        self.finish_answer(&[])?;
        match message.kind {
            MessageKind::User { text, pictures } => {
                let id = self.prompt()?;
                if !text.is_empty() {
                    self.part(&id, &json!({"type": "text", "text": text}))?;
                }
                pictures.iter().enumerate().try_for_each(|(index, picture)| self.part(&id, &file(picture, index)))
            }
            MessageKind::Summary(text) => {
                let id = self.prompt()?;
                self.part(&id, &json!({"type": "compaction", "auto": false}))?;
                self.time += 1;
                let answer = self.assistant(
                    json!({"mode": "compaction", "agent": "compaction", "summary": true, "finish": "stop"}),
                )?;
                self.part(&answer, &json!({"type": "text", "text": text}))
            }
            MessageKind::Assistant { steps, .. } => {
                self.answer = Some(steps);
                Ok(())
            }
            MessageKind::Results(_) => Ok(()),
        }
    }

    /// Writes a message of the user, without its parts.
    fn prompt(&mut self) -> io::Result<String> {
        let id = self.id("msg");
        let data = json!({
            "role": "user", "time": {"created": self.time}, "agent": AGENT,
            "model": {"providerID": self.provider, "modelID": self.model},
        });
        self.message_row(&id, &data)?;
        self.prompt = Some(id.clone());
        Ok(id)
    }

    /// Writes a message of the model, without its parts.
    fn assistant(&mut self, more: Value) -> io::Result<String> {
        let id = self.id("msg");
        let cwd = self.request.cwd.to_string_lossy();
        let root = Project::of(&self.request.cwd).worktree().to_string_lossy().into_owned();
        let mut data = json!({
            "role": "assistant", "parentID": self.prompt, "mode": AGENT, "agent": AGENT, "path": {"cwd": cwd, "root": root},
            "cost": 0, "tokens": tokens(), "modelID": self.model, "providerID": self.provider,
            "time": {"created": self.time, "completed": self.time},
        });
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        self.message_row(&id, &data)?;
        Ok(id)
    }

    fn finish_answer(&mut self, results: &[CallResult]) -> io::Result<()> {
        let Some(steps) = self.answer.take() else { return Ok(()) };
        let reason = if results.is_empty() { "stop" } else { "tool-calls" };
        let id = self.assistant(json!({ "finish": reason }))?;
        self.part(&id, &json!({"type": "step-start"}))?;
        for step in steps {
            match step {
                Step::Text(text) => {
                    let time = json!({"start": self.time, "end": self.time});
                    self.part(&id, &json!({"type": "text", "text": text, "time": time}))?;
                }
                Step::Call(call) => {
                    let state = self.state(&id, &call, results.iter().find(|result| result.id == call.id));
                    self.part(&id, &json!({"type": "tool", "tool": call.name, "callID": call.id, "state": state}))?;
                }
            }
        }
        self.part(&id, &json!({"type": "step-finish", "reason": reason, "tokens": tokens(), "cost": 0}))
    }

    fn state(&mut self, message: &str, call: &ToolCall, result: Option<&CallResult>) -> Value {
        let time = json!({"start": self.time, "end": self.time});
        let Some(result) = result else {
            return json!({"status": "error", "input": call.input, "error": transcript::translate::INTERRUPTED, "time": time});
        };
        let text = result.text_with_code();
        if result.error {
            return json!({"status": "error", "input": call.input, "error": text, "time": time});
        }
        let mut state = json!({
            "status": "completed", "input": call.input, "output": text, "title": "", "metadata": {}, "time": time,
        });
        let files: Vec<Value> = result
            .pictures
            .iter()
            .enumerate()
            .map(|(index, picture)| {
                let mut file = file(picture, index);
                file["id"] = json!(self.id("prt"));
                file["messageID"] = json!(message);
                file["sessionID"] = json!(self.request.id);
                file
            })
            .collect();
        if !files.is_empty() {
            state["attachments"] = json!(files);
        }
        state
    }

    fn message_row(&mut self, id: &str, data: &Value) -> io::Result<()> {
        let (session, time) = (&self.request.id, self.time);
        let row = json!({"id": id, "session_id": session, "time_created": time, "time_updated": time, "data": data.to_string()});
        self.row("message", row)
    }

    fn part(&mut self, message: &str, data: &Value) -> io::Result<()> {
        let (session, time) = (&self.request.id, self.time);
        let row = json!({
            "id": self.id("prt"), "message_id": message, "session_id": session, "time_created": time, "time_updated": time,
            "data": data.to_string(),
        });
        self.row("part", row)
    }

    fn id(&mut self, prefix: &str) -> String {
        self.count += 1;
        ids::in_order(prefix, self.time, self.count, &self.request.id)
    }

    fn row(&mut self, table: &str, values: Value) -> io::Result<()> {
        let values = match values {
            Value::Object(values) => values,
            _ => Map::new(),
        };
        self.lines.row(&Row::new(table, values))
    }
}

fn tokens() -> Value {
    json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}})
}

fn file(picture: &Picture, index: usize) -> Value {
    let Picture { media_type, data } = picture;
    let extension = media_type.rsplit('/').next().unwrap_or("png");
    json!({
        "type": "file", "mime": media_type, "filename": format!("image-{}.{extension}", index + 1),
        "url": format!("data:{media_type};base64,{data}"),
    })
}
