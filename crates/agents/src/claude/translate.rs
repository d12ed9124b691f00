//! Another agent's conversation as a transcript of Claude Code. Each message is one line; all of them form one chain.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use transcript::translate::{Act, CallResult, Message, MessageKind, Picture, Receipt, Step, ToolWords};

use super::Claude;
use super::record::UserPart;
use super::words::prompt_text;
use crate::fields::Raw;
use crate::translate::{Translation, TranslationRequest, drop_pictures_of_failures, prefix_prompt};

/// The version whose records these are.
const VERSION: &str = "2.1.325";
/// The client's own word for answers that none of its models wrote.
const MODEL: &str = "<synthetic>";

const fn tool(act: Act, name: &'static str, arguments: &'static [(&'static str, &'static str)]) -> ToolWords {
    ToolWords { act, name, arguments, entry_text: None }
}

const TOOLS: &[ToolWords] = &[
    tool(Act::Shell, "Bash", &[]),
    tool(Act::Read, "Read", &[("path", "file_path")]),
    tool(Act::Write, "Write", &[("path", "file_path")]),
    tool(
        Act::Edit,
        "Edit",
        &[("path", "file_path"), ("old", "old_string"), ("new", "new_string"), ("all", "replace_all")],
    ),
    tool(Act::Search, "Grep", &[("include", "glob")]),
    tool(Act::Find, "Glob", &[]),
    tool(Act::Fetch, "WebFetch", &[]),
    tool(Act::WebSearch, "WebSearch", &[]),
    ToolWords { entry_text: Some("content"), ..tool(Act::Todo, "TodoWrite", &[("items", "todos")]) },
    tool(Act::Subagent, "Agent", &[("role", "subagent_type")]),
];

impl Translation for Claude {
    fn shared_tools(&self) -> &'static [ToolWords] {
        TOOLS
    }

    fn adapt(&self, message: &mut Message, receipt: &mut Receipt) {
        prefix_prompt(message, is_mistaken, receipt);
        drop_pictures_of_failures(message, receipt);
    }

    fn write_session(
        &self,
        request: &TranslationRequest,
        messages: &mut dyn Iterator<Item = Message>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut lines = Lines { request, out, parent: None, count: 0, last: None };
        for message in messages {
            lines.message(&message)?;
        }
        let (title, id) = (&request.title, request.id.as_str());
        lines.line(&json!({"type": "custom-title", "customTitle": title, "sessionId": id}))
    }
}

/// Whether the client, or tine, would not take this for a prompt.
fn is_mistaken(text: &str) -> bool {
    let Ok(json) = serde_json::to_vec(text) else { return true };
    UserPart::of_text(&json[1..]) != UserPart::Prompt || prompt_text(Raw(&json)) != text
}

struct Lines<'a> {
    request: &'a TranslationRequest,
    out: &'a mut dyn Write,
    parent: Option<String>,
    count: u64,
    last: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChainLine<'a, M> {
    parent_uuid: Option<&'a str>,
    is_sidechain: bool,
    #[serde(rename = "type")]
    kind: &'a str,
    message: M,
    uuid: &'a str,
    timestamp: String,
    user_type: &'a str,
    entrypoint: &'a str,
    cwd: &'a str,
    session_id: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_compact_summary: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_visible_in_transcript_only: bool,
}

#[derive(Serialize)]
struct UserMessage<'a> {
    role: &'a str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Elements(Vec<Element<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Element<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl<'a> Element<'a> {
    fn of_step(step: &'a Step) -> Self {
        match step {
            Step::Text(text) => Element::Text { text },
            Step::Call(call) => Element::ToolUse { id: &call.id, name: &call.name, input: &call.input },
        }
    }
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct AssistantMessage<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'a str,
    role: &'a str,
    model: &'a str,
    content: Vec<Element<'a>>,
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
    usage: NoUsage,
}

#[derive(Serialize, Default)]
struct NoUsage {
    input_tokens: u64,
    output_tokens: u64,
}

impl Lines<'_> {
    fn message(&mut self, message: &Message) -> io::Result<()> {
        let at = self.request.time_of(message, self.last);
        self.last = Some(at);
        match &message.kind {
            MessageKind::User { text, pictures } => {
                let content = content(text, pictures);
                self.chain("user", at, UserMessage { role: "user", content }, false)
            }
            MessageKind::Summary(text) => {
                let content = Content::Text(text);
                self.chain("user", at, UserMessage { role: "user", content }, true)
            }
            MessageKind::Assistant { steps, .. } => {
                let calls = steps.iter().any(|step| matches!(step, Step::Call(_)));
                let message = AssistantMessage {
                    id: format!("msg_{:024x}", self.hash()),
                    kind: "message",
                    role: "assistant",
                    model: MODEL,
                    content: steps.iter().map(Element::of_step).collect(),
                    stop_reason: if calls { "tool_use" } else { "end_turn" },
                    stop_sequence: None,
                    usage: NoUsage::default(),
                };
                self.chain("assistant", at, message, false)
            }
            MessageKind::Results(results) => {
                let texts: Vec<String> = results.iter().map(CallResult::text_with_code).collect();
                let elements = results.iter().zip(&texts).map(|(result, text)| Element::ToolResult {
                    tool_use_id: &result.id,
                    content: content(text, &result.pictures),
                    is_error: result.error,
                });
                let content = Content::Elements(elements.collect());
                self.chain("user", at, UserMessage { role: "user", content }, false)
            }
        }
    }

    /// Writes a line that follows the one before.
    fn chain(&mut self, kind: &str, at: Timestamp, message: impl Serialize, is_summary: bool) -> io::Result<()> {
        let uuid = uuid::Builder::from_custom_bytes(self.hash().to_be_bytes()).into_uuid().to_string();
        let parent = self.parent.take();
        let cwd = self.request.cwd.to_string_lossy();
        let line = ChainLine {
            parent_uuid: parent.as_deref(),
            is_sidechain: false,
            kind,
            message,
            uuid: &uuid,
            timestamp: at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            user_type: "external",
            entrypoint: "cli",
            cwd: &cwd,
            session_id: self.request.id.as_str(),
            version: VERSION,
            git_branch: self.request.branch.as_deref(),
            is_compact_summary: is_summary,
            is_visible_in_transcript_only: is_summary,
        };
        self.line(&line)?;
        self.parent = Some(uuid);
        self.count += 1;
        Ok(())
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, line)?;
        self.out.write_all(b"\n")
    }

    /// A number that is unique for the session and the line.
    fn hash(&self) -> u128 {
        xxhash_rust::xxh3::xxh3_128_with_seed(self.request.id.as_str().as_bytes(), self.count)
    }
}

fn content<'a>(text: &'a str, pictures: &'a [Picture]) -> Content<'a> {
    if pictures.is_empty() {
        return Content::Text(text);
    }
    let text = (!text.is_empty()).then_some(Element::Text { text });
    let image = |picture: &'a Picture| Element::Image {
        source: ImageSource { kind: "base64", media_type: &picture.media_type, data: &picture.data },
    };
    Content::Elements(text.into_iter().chain(pictures.iter().map(image)).collect())
}
