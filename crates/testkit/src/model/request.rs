//! What an agent asked of the model: recorded whole, told apart by kind, and normalised for both APIs.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::http::{RawRequest, header};
use super::message::{self, Block, Message};

/// Which API a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's Messages, spoken by Claude Code.
    Messages,
    /// OpenAI's Responses, spoken by Codex.
    Responses,
    /// Google's Gemini API, spoken by Gemini CLI.
    GenerateContent,
    /// OpenAI's Chat Completions, spoken by OpenCode.
    ChatCompletions,
    /// None of them: a probe or a list of models.
    Neither,
}

/// Why an agent asked. Only turns take scripted replies from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A step of a conversation, of the main session or of a subagent.
    Turn,
    /// The agent wants a title or a name for the session.
    Title,
    /// The agent wants a summary that replaces the history.
    Compaction,
    /// The agent counts tokens.
    CountTokens,
    /// Everything else: probes, quota checks, helpers.
    Other,
}

/// One recorded request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among all requests to this double, from 0.
    pub index: usize,
    /// When it was complete.
    pub time: SystemTime,
    /// `GET`, `POST`, `HEAD`.
    pub method: String,
    /// The path without its query string.
    pub path: String,
    /// The query string, empty when there is none.
    pub query: String,
    /// Names as sent, in order.
    pub headers: Vec<(String, String)>,
    /// The JSON body, `null` when there is none or it is not JSON.
    pub body: Value,
    /// How long the body was.
    pub bytes: usize,
    /// The API it speaks.
    pub api: Api,
    /// Why it was sent.
    pub kind: Kind,
    /// The session (Claude Code) or thread (Codex) that sent it, where it says so.
    pub session: Option<String>,
    /// The subagent that sent it, where one did: Claude Code's agent id or Codex's thread id.
    pub subagent: Option<String>,
}

impl Request {
    pub(crate) fn new(index: usize, raw: RawRequest) -> Self {
        let (path, query) = raw.target.split_once('?').unwrap_or((&raw.target, ""));
        let body: Value = serde_json::from_slice(&raw.body).unwrap_or(Value::Null);
        let api = match path {
            "/v1/messages" | "/v1/messages/count_tokens" => Api::Messages,
            "/v1/responses" | "/v1/responses/compact" => Api::Responses,
            "/v1/chat/completions" => Api::ChatCompletions,
            path if path.starts_with("/v1beta/models/") && path.contains(':') => Api::GenerateContent,
            _ => Api::Neither,
        };
        let mut request = Self {
            index,
            time: SystemTime::now(),
            method: raw.method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: raw.headers,
            bytes: raw.body.len(),
            body,
            api,
            kind: Kind::Other,
            session: None,
            subagent: None,
        };
        request.kind = request.classify();
        request.session = request.find_session();
        request.subagent = request.find_subagent();
        request
    }

    /// The value of a header, whatever its letter case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Whether the agent wants the answer as an event stream.
    pub fn wants_stream(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or(false) || self.path.ends_with(":streamGenerateContent")
    }

    /// The conversation that was sent, the same for all APIs.
    pub fn messages(&self) -> Vec<Message> {
        match self.api {
            Api::Messages => message::from_messages(&self.body),
            Api::ChatCompletions => message::from_chat(&self.body),
            Api::Responses => message::from_responses(&self.body),
            Api::GenerateContent => message::from_contents(&self.body),
            Api::Neither => Vec::new(),
        }
    }

    /// The texts that one role said, in order.
    pub fn texts(&self, role: &str) -> Vec<String> {
        self.messages()
            .into_iter()
            .filter(|message| message.role == role)
            .flat_map(|message| message.blocks)
            .filter_map(|block| match block {
                Block::Text(text) => Some(text),
                _ => None,
            })
            .collect()
    }

    /// What the person typed, without what the agent added to it.
    pub fn prompts(&self) -> Vec<String> {
        self.texts("user").into_iter().filter(|text| !message::is_injected(text)).collect()
    }

    /// The last thing the person typed.
    pub fn prompt(&self) -> Option<String> {
        self.prompts().pop()
    }

    /// The names of the tools that were offered.
    pub fn tool_names(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let declared = tools.iter().flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
        let name = |tool: &Value| {
            let name = tool["function"]["name"].as_str().or(tool["name"].as_str()).or(tool["type"].as_str());
            name.map(str::to_owned)
        };
        tools.iter().chain(declared).filter_map(name).collect()
    }

    /// The results of the tools that were sent back, with the id of each call.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        self.messages()
            .into_iter()
            .flat_map(|message| message.blocks)
            .filter_map(|block| match block {
                Block::ToolResult { id, text } => Some((id, text)),
                _ => None,
            })
            .collect()
    }

    /// The system prompt or the instructions as one text.
    pub fn system(&self) -> String {
        match self.api {
            Api::Messages => message::joined_text(&self.body["system"]),
            Api::GenerateContent => message::joined_text(&self.body["systemInstruction"]["parts"]),
            Api::ChatCompletions => {
                let messages = self.messages().into_iter().filter(|message| message.role == "system");
                messages.map(|message| message.text()).collect::<Vec<_>>().join("\n")
            }
            _ => self.body["instructions"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The record that is written to `requests.jsonl`.
    pub fn to_json(&self) -> Value {
        let since_epoch = self.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        json!({
            "index": self.index,
            "unix_ms": since_epoch.as_millis() as u64,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "kind": format!("{:?}", self.kind),
            "session": self.session,
            "subagent": self.subagent,
            "headers": self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<serde_json::Map<_, _>>(),
            "body": self.body,
        })
    }

    fn classify(&self) -> Kind {
        if self.method != "POST" || self.body.is_null() {
            return Kind::Other;
        }
        match self.path.as_str() {
            "/v1/messages/count_tokens" => Kind::CountTokens,
            "/v1/responses/compact" => Kind::Compaction,
            "/v1/messages" => self.classify_messages(),
            "/v1/responses" => self.classify_responses(),
            path if path.ends_with(":countTokens") => Kind::CountTokens,
            path if path.ends_with(":generateContent") => Kind::Other,
            path if path.ends_with(":streamGenerateContent") => {
                // Helpers, such as the one that corrects an edit, are offered no tools.
                if self.tool_names().is_empty() { Kind::Other } else { Kind::Turn }
            }
            "/v1/chat/completions" => self.classify_chat(),
            _ => Kind::Other,
        }
    }

    /// Claude Code's helpers send no tools; its compaction request ends in instructions for a summary.
    fn classify_messages(&self) -> Kind {
        let last = self.messages().pop().map(|message| message.text()).unwrap_or_default();
        if last.contains("Your task is to create a detailed summary of") {
            return Kind::Compaction;
        }
        let system = self.system();
        if system.contains("Generate a concise") && system.contains("title") {
            return Kind::Title;
        }
        let few_tokens = self.body["max_tokens"].as_u64().is_some_and(|limit| limit <= 1);
        if few_tokens || self.tool_names().is_empty() {
            return if system.to_lowercase().contains("title") { Kind::Title } else { Kind::Other };
        }
        Kind::Turn
    }

    /// OpenCode's helpers send no tools.
    fn classify_chat(&self) -> Kind {
        let system = self.system();
        let last = self.messages().pop().map(|message| message.text()).unwrap_or_default();
        if system.contains("title generator") || last.contains("Generate a title for this conversation") {
            Kind::Title
        } else if self.tool_names().is_empty() {
            let summarises =
                system.contains("summar") || last.contains("summar") || last.contains("continuing our conversation");
            if summarises { Kind::Compaction } else { Kind::Other }
        } else {
            Kind::Turn
        }
    }

    /// Codex says why it asks in the metadata of the turn; the words are for versions that do not.
    fn classify_responses(&self) -> Kind {
        let turn = self.codex_turn();
        let last = self.messages().pop().map(|message| message.text()).unwrap_or_default();
        if turn["thread_source"] == "thread_title" || last.contains("Generate a concise, single-line task title") {
            Kind::Title
        } else if turn["request_kind"] == "compaction" || last.contains("CONTEXT CHECKPOINT COMPACTION") {
            Kind::Compaction
        } else {
            Kind::Turn
        }
    }

    /// A subagent of Codex is a thread of its own, but its cache key is that of the session that started it.
    fn find_session(&self) -> Option<String> {
        let named = self.header("x-claude-code-session-id").or_else(|| self.header("thread-id"));
        if let Some(id) = named.or_else(|| self.body["prompt_cache_key"].as_str()) {
            return Some(id.to_owned());
        }
        let user: Value = serde_json::from_str(self.body["metadata"]["user_id"].as_str()?).ok()?;
        user["session_id"].as_str().map(str::to_owned)
    }

    /// Claude Code names the subagent in a header, Codex its parent in the metadata of the turn.
    fn find_subagent(&self) -> Option<String> {
        if let Some(id) = self.header("x-claude-code-agent-id") {
            return Some(id.to_owned());
        }
        let turn = self.codex_turn();
        turn["parent_thread_id"].as_str()?;
        turn["thread_id"].as_str().map(str::to_owned)
    }

    fn codex_turn(&self) -> Value {
        self.header("x-codex-turn-metadata").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}
