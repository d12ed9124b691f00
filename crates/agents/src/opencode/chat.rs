//! OpenCode's structured stream: `opencode acp`, which speaks the Agent Client Protocol, JSON-RPC with one message per line.
//!
//! Its other interface is a server on a port. This one has no port that others could use, ends with its input, and asks for
//! permissions in the same stream. Why: docs/formats/opencode.md.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{BlockKind, SessionId};

use crate::chat::{
    Action, AgentRequest, Always, Answer, Ask, ChatCapabilities, ChatEvent, ChatOrder, ChatSession, ContextUse,
    ModelChoice, Prompt, Protocol, Received, SlashCommand, StreamPart, TurnEnd, TurnOutcome, string,
};

/// OpenCode's own agents, which decide what needs a permission.
const MODES: [&str; 2] = ["build", "plan"];

/// OpenCode's side of a chat.
pub(crate) struct OpenCodeChat {
    order: ChatOrder,
    session: Option<String>,
    last_request: u64,
    /// Requests of ours that wait for an answer.
    pending: HashMap<u64, Pending>,
    /// Prompts that wait for the session or the end of a turn.
    waiting: Vec<Prompt>,
    /// Requests of the agent that wait for an answer, by their id as text.
    asked: HashMap<String, Value>,
    capabilities: ChatCapabilities,
    /// Whether a session can be opened without its history being sent.
    can_resume: bool,
    is_running: bool,
    is_interrupted: bool,
    /// What is being said or thought, and what of it has arrived.
    open: Option<(StreamPart, String)>,
    /// The tools of the calls, and whether each call was reported.
    calls: HashMap<String, (String, bool)>,
    cost: Option<f64>,
}

/// What one of our requests was for.
enum Pending {
    Initialize,
    /// The session is created or loaded.
    Session,
    Prompt,
    Other(&'static str),
}

impl OpenCodeChat {
    /// A chat that has not begun.
    pub(crate) fn new(order: ChatOrder) -> Self {
        OpenCodeChat {
            order,
            session: None,
            last_request: 0,
            pending: HashMap::new(),
            waiting: Vec::new(),
            asked: HashMap::new(),
            capabilities: ChatCapabilities { modes: MODES.to_vec(), ..ChatCapabilities::default() },
            can_resume: false,
            is_running: false,
            is_interrupted: false,
            open: None,
            calls: HashMap::new(),
            cost: None,
        }
    }

    fn request(&mut self, method: &str, params: &Value, purpose: Pending) -> Value {
        self.last_request += 1;
        self.pending.insert(self.last_request, purpose);
        json!({ "jsonrpc": "2.0", "id": self.last_request, "method": method, "params": params })
    }

    fn load_session(&mut self) -> Value {
        let mut params = json!({ "cwd": self.order.directory, "mcpServers": [] });
        match self.order.session.clone() {
            ChatSession::New(_) => self.request("session/new", &params, Pending::Session),
            ChatSession::Existing { id, .. } => {
                params["sessionId"] = json!(id.as_str());
                // Loading sends the whole history again, which tine has read from the database.
                let method = if self.can_resume { "session/resume" } else { "session/load" };
                self.request(method, &params, Pending::Session)
            }
        }
    }

    fn answered(&mut self, id: u64, message: &Value) -> Received {
        let Some(purpose) = self.pending.remove(&id) else { return Received::default() };
        if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
            return self.refused(&purpose, &reason(error));
        }
        let result = &message["result"];
        match purpose {
            Pending::Initialize => {
                self.can_resume = result.pointer("/agentCapabilities/sessionCapabilities/resume").is_some();
                Received::line(self.load_session())
            }
            Pending::Session => self.loaded(result),
            Pending::Prompt => self.prompt_ended(result),
            Pending::Other(_) => Received::default(),
        }
    }

    fn refused(&mut self, purpose: &Pending, error: &str) -> Received {
        match purpose {
            Pending::Prompt => {
                let mut events = self.close();
                self.is_running = false;
                let outcome = match std::mem::take(&mut self.is_interrupted) {
                    true => TurnOutcome::Interrupted,
                    false => TurnOutcome::Failed(error.to_owned()),
                };
                events.push(ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: self.cost, windows: Vec::new() }));
                self.followed_by_next(events)
            }
            Pending::Initialize | Pending::Session => Received::event(ChatEvent::Refused(error.to_owned())),
            Pending::Other(what) => Received::event(ChatEvent::Refused(format!("{what}: {error}"))),
        }
    }

    fn loaded(&mut self, result: &Value) -> Received {
        let given = match &self.order.session {
            ChatSession::Existing { id, .. } => Some(id.to_string()),
            ChatSession::New(_) => None,
        };
        self.session = result["sessionId"].as_str().map(str::to_owned).or(given);
        let mut received = Received::default();
        if let Some(id) = self.session.as_deref().and_then(|id| SessionId::new(id).ok()) {
            received.events.push(ChatEvent::Session { id, path: None });
        }
        received.events.push(self.settings(result));
        received.events.push(ChatEvent::Ready(self.capabilities.clone()));
        if let Some(model) = self.order.model.take() {
            received.lines.push(self.set_model(&model));
        }
        if let Some(mode) = self.order.mode.take() {
            received.lines.push(self.set_mode(&mode));
        }
        let next = self.next_prompt();
        received.events.extend(next.events);
        received.lines.extend(next.lines);
        received
    }

    /// The model and the mode among the options of a session. Notes which models there are.
    fn settings(&mut self, options: &Value) -> ChatEvent {
        let options = options["configOptions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let option = |name: &str| options.iter().find(|option| option["id"] == name);
        let current = |name: &str| option(name).and_then(|option| option["currentValue"].as_str()).map(str::to_owned);
        let models = option("model").and_then(|option| option["options"].as_array());
        let choice = |model: &Value| ModelChoice { value: string(&model["value"]), name: string(&model["name"]) };
        self.capabilities.models = models.into_iter().flatten().map(choice).collect();
        ChatEvent::Settings { model: current("model"), mode: current("mode") }
    }

    fn set_model(&mut self, model: &str) -> Value {
        let params = json!({ "sessionId": self.session, "modelId": model });
        self.request("session/set_model", &params, Pending::Other("can't change the model"))
    }

    fn set_mode(&mut self, mode: &str) -> Value {
        let params = json!({ "sessionId": self.session, "modeId": mode });
        self.request("session/set_mode", &params, Pending::Other("can't change the permission mode"))
    }

    /// The prompt that is next, if the session can take one.
    fn next_prompt(&mut self) -> Received {
        if self.session.is_none() || self.is_running || self.waiting.is_empty() {
            return Received::default();
        }
        let prompt = self.waiting.remove(0);
        self.is_running = true;
        let image =
            |image: &crate::chat::Image| json!({ "type": "image", "mimeType": image.media_type, "data": image.base64 });
        let text = json!({ "type": "text", "text": prompt.text });
        let parts: Vec<Value> = prompt.images.iter().map(image).chain([text]).collect();
        let params = json!({ "sessionId": self.session, "prompt": parts });
        let line = self.request("session/prompt", &params, Pending::Prompt);
        // The agent doesn't send it back.
        let mut events = block(BlockKind::Prompt { text: prompt.text, steer: false });
        events.push(ChatEvent::TurnStarted);
        Received { events, lines: vec![line] }
    }

    fn prompt_ended(&mut self, result: &Value) -> Received {
        let mut events = self.close();
        self.is_running = false;
        let is_interrupted = std::mem::take(&mut self.is_interrupted);
        let outcome = match result["stopReason"].as_str() {
            Some("cancelled") => TurnOutcome::Interrupted,
            _ if is_interrupted => TurnOutcome::Interrupted,
            Some("end_turn") | None => TurnOutcome::Completed,
            Some("max_tokens") => TurnOutcome::Failed("the answer is too long for the model".to_owned()),
            Some("refusal") => TurnOutcome::Failed("the model refused".to_owned()),
            Some(other) => TurnOutcome::Failed(other.to_owned()),
        };
        events.push(ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: self.cost, windows: Vec::new() }));
        self.followed_by_next(events)
    }

    fn followed_by_next(&mut self, mut events: Vec<ChatEvent>) -> Received {
        let next = self.next_prompt();
        events.extend(next.events);
        Received { events, lines: next.lines }
    }

    fn updated(&mut self, update: &Value) -> Vec<ChatEvent> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        // What an older version sends while it loads a session is its history.
        let is_history = self.session.is_none();
        match kind {
            "available_commands_update" => {
                let commands = update["availableCommands"].as_array().map(Vec::as_slice).unwrap_or_default();
                let command = |command: &Value| SlashCommand {
                    name: string(&command["name"]),
                    description: string(&command["description"]),
                    argument: string(&command["input"]["hint"]),
                };
                self.capabilities.commands = commands.iter().map(command).collect();
                let is_loaded = self.session.is_some();
                is_loaded.then(|| ChatEvent::Ready(self.capabilities.clone())).into_iter().collect()
            }
            "usage_update" => {
                self.cost = update["cost"]["amount"].as_f64().or(self.cost);
                let used = update["used"].as_u64().unwrap_or_default();
                vec![ChatEvent::Context(ContextUse { used, window: update["size"].as_u64(), cached: 0 })]
            }
            _ if is_history => Vec::new(),
            "agent_message_chunk" => self.chunk(StreamPart::Answer, &update["content"]),
            "agent_thought_chunk" => self.chunk(StreamPart::Thinking, &update["content"]),
            "tool_call" | "tool_call_update" => self.tool(update),
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str().map(str::to_owned);
                vec![ChatEvent::Settings { model: None, mode }]
            }
            "config_option_update" => vec![self.settings(update)],
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, part: StreamPart, content: &Value) -> Vec<ChatEvent> {
        let Some(text) = content["text"].as_str().filter(|text| !text.is_empty()) else { return Vec::new() };
        let mut events = match &self.open {
            Some((open, _)) if *open == part => Vec::new(),
            _ => self.close(),
        };
        self.open.get_or_insert_with(|| (part.clone(), String::new())).1.push_str(text);
        events.push(ChatEvent::Delta { subagent: None, part, text: text.to_owned() });
        events
    }

    /// Ends what is being said.
    fn close(&mut self) -> Vec<ChatEvent> {
        let kind = match self.open.take() {
            Some((StreamPart::Answer, text)) => BlockKind::Answer { text, model: None },
            Some((_, text)) => BlockKind::Thinking { text },
            None => return Vec::new(),
        };
        block(kind)
    }

    fn tool(&mut self, update: &Value) -> Vec<ChatEvent> {
        let mut events = self.close();
        let id = string(&update["toolCallId"]);
        let status = update["status"].as_str();
        let is_over = matches!(status, Some("completed" | "failed"));
        // A call is announced by its tool before its arguments are known; later, its title is for people.
        let title = || update["title"].as_str().or(update["kind"].as_str()).unwrap_or("tool").to_owned();
        let (name, is_reported) = self.calls.entry(id.clone()).or_insert_with(|| (title(), false));
        if status != Some("pending") && !*is_reported {
            *is_reported = true;
            let (name, input) = (name.clone(), update["rawInput"].clone());
            events.extend(block(BlockKind::Call { id: id.clone(), name, input }));
        }
        if is_over {
            let name = self.calls.get(&id).map(|(name, _)| name.clone());
            let text = output(update);
            let exit_code = update["rawOutput"]["metadata"]["exit"].as_i64().and_then(|code| i32::try_from(code).ok());
            let error = status == Some("failed") || exit_code.is_some_and(|code| code != 0);
            events.extend(block(BlockKind::Output { call: id, name, text, error, exit_code }));
        }
        events
    }

    fn asks(&mut self, id: &Value, method: &str, params: &Value) -> Vec<ChatEvent> {
        let mut events = self.close();
        let call = &params["toolCall"];
        let ask = match method {
            "session/request_permission" => Ask::Tool {
                name: self.tool_of(call),
                input: call["rawInput"].clone(),
                reason: None,
                can_edit: false,
                hears_reason: false,
                always: rules(params),
            },
            other => Ask::Unknown { name: other.to_owned() },
        };
        let request = json!({ "id": id, "method": method, "params": params });
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        self.asked.insert(id.clone(), request);
        let call = call["toolCallId"].as_str().map(str::to_owned);
        events.push(ChatEvent::Request(AgentRequest { id, call, by_subagent: false, ask }));
        events
    }

    /// The tool of a call that was announced; otherwise what the request calls it.
    fn tool_of(&self, call: &Value) -> String {
        let known = call["toolCallId"].as_str().and_then(|id| self.calls.get(id));
        known.map_or_else(|| string(&call["title"]), |(name, _)| name.clone())
    }

    fn answer(&mut self, id: &str, answer: &Answer) -> Received {
        let Some(request) = self.asked.remove(id) else {
            return Received::event(ChatEvent::Refused("the agent no longer waits for this answer".to_owned()));
        };
        let number = &request["id"];
        if request["method"] != "session/request_permission" {
            let error = json!({ "code": -32601, "message": "not supported" });
            return Received::line(json!({ "jsonrpc": "2.0", "id": number, "error": error }));
        }
        let params = &request["params"];
        let of_kind = |kind: &str| options(params).iter().find(|option| option["kind"] == kind);
        let chosen = match answer {
            Answer::Allow { .. } | Answer::Approve { .. } => of_kind("allow_once").map(|option| &option["optionId"]),
            Answer::Always(_) => of_kind("allow_always").map(|option| &option["optionId"]),
            Answer::Deny { interrupt: false, .. } | Answer::Answers(_) => {
                of_kind("reject_once").map(|option| &option["optionId"])
            }
            Answer::Deny { interrupt: true, .. } => None,
        };
        let outcome = match chosen {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let mut lines = vec![json!({ "jsonrpc": "2.0", "id": number, "result": { "outcome": outcome } })];
        if let Answer::Deny { interrupt: true, .. } = answer {
            lines.push(self.cancel());
        }
        Received { events: Vec::new(), lines }
    }

    fn cancel(&mut self) -> Value {
        self.is_interrupted = true;
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": self.session } })
    }
}

impl Protocol for OpenCodeChat {
    fn arguments(&self) -> Vec<String> {
        ["acp".to_owned()].into_iter().chain(self.order.options.iter().cloned()).collect()
    }

    fn open(&mut self) -> Vec<Value> {
        let client = json!({ "name": "tine", "title": "tine", "version": env!("CARGO_PKG_VERSION") });
        let files = json!({ "readTextFile": false, "writeTextFile": false });
        let capabilities = json!({ "fs": files, "terminal": false });
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client });
        vec![self.request("initialize", &params, Pending::Initialize)]
    }

    fn is_attended(&self) -> bool {
        self.order.is_attended
    }

    fn receive(&mut self, message: &Value) -> Received {
        let (id, method) = (&message["id"], message["method"].as_str());
        let events = match (id.is_null(), method) {
            (true, Some("session/update")) => self.updated(&message["params"]["update"]),
            (false, Some(method)) => self.asks(id, method, &message["params"]),
            (false, None) => return id.as_u64().map(|id| self.answered(id, message)).unwrap_or_default(),
            (true, _) => Vec::new(),
        };
        Received { events, lines: Vec::new() }
    }

    fn act(&mut self, action: Action) -> Received {
        match action {
            Action::Prompt(prompt) => {
                self.waiting.push(prompt);
                self.next_prompt()
            }
            Action::Answer { request, answer } => self.answer(&request, &answer),
            Action::Interrupt if self.is_running => {
                let mut lines = vec![self.cancel()];
                // A request for a permission is answered by that, too.
                for (_, request) in self.asked.drain() {
                    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
                    lines.insert(0, json!({ "jsonrpc": "2.0", "id": request["id"], "result": outcome }));
                }
                Received { events: Vec::new(), lines }
            }
            Action::Interrupt => Received::default(),
            Action::SetModel(model) => {
                let line = self.set_model(&model);
                let event = ChatEvent::Settings { model: Some(model), mode: None };
                Received { events: vec![event], lines: vec![line] }
            }
            Action::SetMode(mode) => {
                let line = self.set_mode(&mode);
                let event = ChatEvent::Settings { model: None, mode: Some(mode) };
                Received { events: vec![event], lines: vec![line] }
            }
        }
    }
}

fn block(kind: BlockKind) -> Vec<ChatEvent> {
    vec![ChatEvent::Block { subagent: None, kind }]
}

fn output(update: &Value) -> String {
    if let Some(text) = update["rawOutput"]["output"].as_str().or(update["rawOutput"]["error"].as_str()) {
        return text.to_owned();
    }
    let parts = update["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["content"]["text"].as_str()).collect();
    texts.join("\n")
}

fn options(params: &Value) -> &[Value] {
    params["options"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn rules(params: &Value) -> Vec<Always> {
    let always = options(params).iter().filter(|option| option["kind"] == "allow_always");
    let rule = |option: &Value| Always {
        label: "everything like this until OpenCode ends".to_owned(),
        rule: option["optionId"].clone(),
    };
    always.map(rule).collect()
}

/// What an error says. Details are in its data.
fn reason(error: &Value) -> String {
    let details = error["data"]["message"].as_str().or(error["data"]["details"].as_str());
    details.or(error["message"].as_str()).unwrap_or("unknown error").to_owned()
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
