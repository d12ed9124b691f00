//! The Agent Client Protocol, which several agents speak: JSON-RPC over standard input and output, one message per line.
//!
//! The client opens a session or loads one, and a prompt is a request whose answer is the end of the turn. Text arrives
//! in pieces, and nothing says that it is complete, so a piece of another kind or the end of the turn ends it.

use std::collections::HashMap;

use serde_json::{Value, json};
use transcript::{BlockKind, SessionId};

use super::{
    Action, AgentRequest, Always, Answer, Ask, ChatCapabilities, ChatEvent, ChatOrder, ChatSession, ModelChoice,
    Prompt, Protocol, Received, SlashCommand, StreamPart, TurnEnd, TurnOutcome, string,
};

/// The version of the protocol.
const VERSION: u64 = 1;

/// An agent that speaks the protocol.
#[derive(Debug)]
pub(crate) struct AcpAgent {
    /// The arguments that make its program speak it.
    pub(crate) arguments: &'static [&'static str],
    /// The options for a model and a permission mode.
    pub(crate) model: Option<&'static str>,
    pub(crate) mode: Option<&'static str>,
    /// The permission modes, in the agent's words.
    pub(crate) modes: &'static [&'static str],
}

/// One side of a chat with such an agent.
pub(crate) struct AcpChat {
    agent: &'static AcpAgent,
    order: ChatOrder,
    session: Option<String>,
    last_request: u64,
    /// Requests of ours that wait for an answer.
    pending: HashMap<u64, Pending>,
    /// Prompts that wait for the session, or for the end of the turn.
    waiting: Vec<Prompt>,
    is_running: bool,
    is_interrupted: bool,
    /// Requests of the agent that wait for an answer, by their id as text.
    asked: HashMap<String, Value>,
    /// The part of a text that has arrived so far.
    growing: Option<(StreamPart, String)>,
    /// Calls that have begun, with their names.
    calls: HashMap<String, String>,
    offer: ChatCapabilities,
}

/// What one of our requests was for.
enum Pending {
    Initialize,
    Session,
    Prompt,
    SetModel(String),
    SetMode(String),
}

impl AcpChat {
    /// A chat that has not begun.
    pub(crate) fn new(agent: &'static AcpAgent, order: ChatOrder) -> Self {
        AcpChat {
            agent,
            order,
            session: None,
            last_request: 0,
            pending: HashMap::new(),
            waiting: Vec::new(),
            is_running: false,
            is_interrupted: false,
            asked: HashMap::new(),
            growing: None,
            calls: HashMap::new(),
            offer: ChatCapabilities::default(),
        }
    }

    fn request(&mut self, method: &str, params: &Value, purpose: Pending) -> Value {
        self.last_request += 1;
        self.pending.insert(self.last_request, purpose);
        json!({ "jsonrpc": "2.0", "id": self.last_request, "method": method, "params": params })
    }

    fn open_session(&mut self) -> Value {
        let mut params = json!({ "cwd": self.order.directory, "mcpServers": [] });
        match self.order.session.clone() {
            ChatSession::New(_) => self.request("session/new", &params, Pending::Session),
            ChatSession::Existing { id, .. } => {
                params["sessionId"] = json!(id.as_str());
                self.session = Some(id.to_string());
                self.request("session/load", &params, Pending::Session)
            }
        }
    }

    fn answered(&mut self, id: u64, message: &Value) -> Received {
        let Some(purpose) = self.pending.remove(&id) else { return Received::default() };
        if !message["error"].is_null() {
            return self.refused(&purpose, &message["error"]);
        }
        let result = &message["result"];
        match purpose {
            Pending::Initialize => Received::line(self.open_session()),
            Pending::Session => self.opened(result),
            Pending::Prompt => self.turn_ended(match result["stopReason"].as_str() {
                Some("end_turn") => TurnOutcome::Completed,
                Some("cancelled") => TurnOutcome::Interrupted,
                other => TurnOutcome::Failed(other.unwrap_or("the agent gave no reason").replace('_', " ")),
            }),
            Pending::SetModel(model) => Received::event(ChatEvent::Settings { model: Some(model), mode: None }),
            Pending::SetMode(mode) => Received::event(ChatEvent::Settings { model: None, mode: Some(mode) }),
        }
    }

    fn refused(&mut self, purpose: &Pending, error: &Value) -> Received {
        let detail = error["data"]["details"].as_str().or(error["data"].as_str());
        let reason = match (error["message"].as_str(), detail) {
            (Some(message), Some(detail)) if message != detail => format!("{message}: {detail}"),
            (Some(message), _) => message.to_owned(),
            _ => "the agent gave no reason".to_owned(),
        };
        match purpose {
            Pending::Prompt if self.is_interrupted => self.turn_ended(TurnOutcome::Interrupted),
            Pending::Prompt => self.turn_ended(TurnOutcome::Failed(reason)),
            Pending::Initialize | Pending::Session => Received::event(ChatEvent::Refused(reason)),
            Pending::SetModel(_) => Received::event(ChatEvent::Refused(format!("can't change the model: {reason}"))),
            Pending::SetMode(_) => {
                Received::event(ChatEvent::Refused(format!("can't change the permission mode: {reason}")))
            }
        }
    }

    fn opened(&mut self, result: &Value) -> Received {
        if let Some(id) = result["sessionId"].as_str() {
            self.session = Some(id.to_owned());
        }
        let models = result["models"]["availableModels"].as_array().map(Vec::as_slice).unwrap_or_default();
        let choice = |model: &Value| ModelChoice { value: string(&model["modelId"]), name: string(&model["name"]) };
        self.offer.models = models.iter().map(choice).collect();
        let modes = result["modes"]["availableModes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_offered = |mode: &&&str| modes.iter().any(|offered| offered["id"] == ***mode);
        self.offer.modes = self.agent.modes.iter().filter(is_offered).copied().collect();
        let mut received = Received::default();
        if let Some(id) = self.session.as_deref().and_then(|id| SessionId::new(id).ok()) {
            received.events.push(ChatEvent::Session { id, path: None });
        }
        received.events.push(ChatEvent::Settings {
            model: result["models"]["currentModelId"].as_str().map(str::to_owned),
            mode: result["modes"]["currentModeId"].as_str().map(str::to_owned),
        });
        received.events.push(ChatEvent::Ready(self.offer.clone()));
        self.next_prompt(&mut received);
        received
    }

    /// Sends the next prompt, if the agent takes one. A second prompt would end the running turn.
    fn next_prompt(&mut self, received: &mut Received) {
        if self.is_running || !self.is_open() || self.waiting.is_empty() {
            return;
        }
        let Prompt { text, images, .. } = self.waiting.remove(0);
        let image =
            |image: super::Image| json!({ "type": "image", "mimeType": image.media_type, "data": image.base64 });
        let mut parts: Vec<Value> = images.into_iter().map(image).collect();
        parts.push(json!({ "type": "text", "text": text }));
        let params = json!({ "sessionId": self.session, "prompt": parts });
        received.lines.push(self.request("session/prompt", &params, Pending::Prompt));
        (self.is_running, self.is_interrupted) = (true, false);
        let prompt = BlockKind::Prompt { text, steer: false };
        received.events.extend([ChatEvent::TurnStarted, ChatEvent::Block { subagent: None, kind: prompt }]);
    }

    /// Whether the session is there, so that it takes prompts.
    fn is_open(&self) -> bool {
        let is_opening = |purpose: &Pending| matches!(purpose, Pending::Initialize | Pending::Session);
        self.session.is_some() && !self.pending.values().any(is_opening)
    }

    fn turn_ended(&mut self, outcome: TurnOutcome) -> Received {
        self.is_running = false;
        let mut received = Received { events: self.grown().into_iter().collect(), lines: Vec::new() };
        received.events.extend(self.asked.drain().map(|(id, _)| ChatEvent::Withdrawn(id)));
        received.events.push(ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: None, windows: Vec::new() }));
        self.next_prompt(&mut received);
        received
    }

    /// The text that has arrived, which is complete now.
    fn grown(&mut self) -> Option<ChatEvent> {
        let (part, text) = self.growing.take()?;
        let kind = match part {
            StreamPart::Answer => BlockKind::Answer { text, model: None },
            StreamPart::Thinking => BlockKind::Thinking { text },
            StreamPart::Output { .. } => return None,
        };
        Some(ChatEvent::Block { subagent: None, kind })
    }

    fn piece(&mut self, part: StreamPart, update: &Value) -> Vec<ChatEvent> {
        let text = string(&update["content"]["text"]);
        let mut events = Vec::new();
        if self.growing.as_ref().is_some_and(|(known, _)| *known != part) {
            events.extend(self.grown());
        }
        self.growing.get_or_insert_with(|| (part.clone(), String::new())).1.push_str(&text);
        events.push(ChatEvent::Delta { subagent: None, part, text });
        events
    }

    fn updated(&mut self, update: &Value) -> Vec<ChatEvent> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "available_commands_update" => {
                let commands = update["availableCommands"].as_array().map(Vec::as_slice).unwrap_or_default();
                let command = |command: &Value| SlashCommand {
                    name: string(&command["name"]).trim_start_matches('/').to_owned(),
                    description: string(&command["description"]),
                    argument: string(&command["input"]["hint"]),
                };
                self.offer.commands = commands.iter().map(command).collect();
                // The answer that opens the session reports them.
                if self.is_open() { vec![ChatEvent::Ready(self.offer.clone())] } else { Vec::new() }
            }
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str().map(str::to_owned);
                vec![ChatEvent::Settings { model: None, mode }]
            }
            // A session that is loaded tells its history first, which the transcript has as well.
            _ if !self.is_running => Vec::new(),
            "agent_message_chunk" => self.piece(StreamPart::Answer, update),
            "agent_thought_chunk" => self.piece(StreamPart::Thinking, update),
            "tool_call" | "tool_call_update" => self.tool(update),
            _ => Vec::new(),
        }
    }

    fn tool(&mut self, update: &Value) -> Vec<ChatEvent> {
        let mut events: Vec<ChatEvent> = self.grown().into_iter().collect();
        let id = string(&update["toolCallId"]);
        events.extend(self.call(&id, update));
        let status = update["status"].as_str().unwrap_or_default();
        if matches!(status, "completed" | "failed") {
            let name = self.calls.remove(&id);
            let (text, error) = (content_text(update), status == "failed");
            let kind = BlockKind::Output { call: id, name, text, error, exit_code: None };
            events.push(ChatEvent::Block { subagent: None, kind });
        }
        events
    }

    /// The call, where it is new.
    fn call(&mut self, id: &str, call: &Value) -> Option<ChatEvent> {
        if self.calls.contains_key(id) {
            return None;
        }
        let name = name_of(call);
        self.calls.insert(id.to_owned(), name.clone());
        let kind = BlockKind::Call { id: id.to_owned(), name, input: input_of(call) };
        Some(ChatEvent::Block { subagent: None, kind })
    }

    fn asks(&mut self, id: &Value, method: &str, params: &Value) -> Received {
        let mut received = Received { events: self.grown().into_iter().collect(), lines: Vec::new() };
        let call = string(&params["toolCall"]["toolCallId"]);
        let ask = match method {
            "session/request_permission" => {
                received.events.extend(self.call(&call, &params["toolCall"]));
                Ask::Tool {
                    name: name_of(&params["toolCall"]),
                    input: input_of(&params["toolCall"]),
                    reason: None,
                    can_edit: false,
                    hears_reason: false,
                    always: options_of(params, "allow_always").collect(),
                }
            }
            other => Ask::Unknown { name: other.to_owned() },
        };
        let text = id_text(id);
        self.asked.insert(text.clone(), json!({ "id": id, "method": method, "params": params }));
        let call = Some(call).filter(|call| !call.is_empty());
        received.events.push(ChatEvent::Request(AgentRequest { id: text, call, by_subagent: false, ask }));
        received
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
        let first = |kind: &str| options_of(&request["params"], kind).next().map(|option| option.rule);
        let (chosen, interrupts) = match answer {
            Answer::Allow { .. } | Answer::Approve { .. } => (first("allow_once"), false),
            Answer::Always(place) => {
                let rule = options_of(&request["params"], "allow_always").nth(*place);
                (rule.map(|option| option.rule).or_else(|| first("allow_once")), false)
            }
            Answer::Deny { interrupt, .. } => (first("reject_once"), *interrupt),
            Answer::Answers(_) => (None, false),
        };
        let outcome = match chosen {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let mut received = Received::line(json!({ "jsonrpc": "2.0", "id": number, "result": { "outcome": outcome } }));
        if interrupts {
            received.lines.extend(self.interrupt().lines);
        }
        received
    }

    fn interrupt(&mut self) -> Received {
        if !self.is_running {
            return Received::default();
        }
        self.is_interrupted = true;
        let mut received = Received::default();
        for (id, request) in self.asked.drain() {
            let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
            received.lines.push(json!({ "jsonrpc": "2.0", "id": request["id"], "result": cancelled }));
            received.events.push(ChatEvent::Withdrawn(id));
        }
        let params = json!({ "sessionId": self.session });
        received.lines.push(json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
        received
    }
}

impl Protocol for AcpChat {
    fn is_attended(&self) -> bool {
        self.order.is_attended
    }

    fn arguments(&self) -> Vec<String> {
        let mut words = self.order.options.clone();
        for (option, value) in [(self.agent.model, &self.order.model), (self.agent.mode, &self.order.mode)] {
            words.extend(option.zip(value.clone()).into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
        }
        words.extend(self.agent.arguments.iter().map(|word| (*word).to_owned()));
        words
    }

    fn open(&mut self) -> Vec<Value> {
        let files = json!({ "readTextFile": false, "writeTextFile": false });
        let client = json!({ "name": "tine", "version": env!("CARGO_PKG_VERSION") });
        let capabilities = json!({ "fs": files, "terminal": false });
        let params = json!({ "protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": client });
        vec![self.request("initialize", &params, Pending::Initialize)]
    }

    fn receive(&mut self, message: &Value) -> Received {
        let (id, method) = (&message["id"], message["method"].as_str());
        match (id.is_null(), method) {
            (true, Some("session/update")) => {
                Received { events: self.updated(&message["params"]["update"]), lines: Vec::new() }
            }
            (false, Some(method)) => self.asks(id, method, &message["params"]),
            (false, None) => id.as_u64().map(|id| self.answered(id, message)).unwrap_or_default(),
            (true, _) => Received::default(),
        }
    }

    fn act(&mut self, action: Action) -> Received {
        match action {
            Action::Prompt(prompt) => {
                self.waiting.push(prompt);
                let mut received = Received::default();
                self.next_prompt(&mut received);
                received
            }
            Action::Answer { request, answer } => self.answer(&request, &answer),
            Action::Interrupt => self.interrupt(),
            Action::SetModel(model) => {
                let params = json!({ "sessionId": self.session, "modelId": model });
                Received::line(self.request("session/set_model", &params, Pending::SetModel(model)))
            }
            Action::SetMode(mode) => {
                let params = json!({ "sessionId": self.session, "modeId": mode });
                Received::line(self.request("session/set_mode", &params, Pending::SetMode(mode)))
            }
        }
    }
}

/// The options of one kind that a request for permission offers.
fn options_of<'a>(params: &'a Value, kind: &'a str) -> impl Iterator<Item = Always> + 'a {
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = options.iter().filter(move |option| option["kind"] == kind);
    of_kind.map(|option| Always { label: string(&option["name"]), rule: option["optionId"].clone() })
}

/// What people read as the name of a tool. The protocol names what it does, not the tool itself.
fn name_of(call: &Value) -> String {
    let kind = call["kind"].as_str().filter(|kind| !kind.is_empty() && *kind != "other");
    kind.or(call["title"].as_str()).unwrap_or("tool").to_owned()
}

/// The arguments of a call: its own where the agent tells them, else what it says about the call.
fn input_of(call: &Value) -> Value {
    if call["rawInput"].is_object() {
        return call["rawInput"].clone();
    }
    let mut input = json!({ "title": call["title"] });
    let diff = call["content"].as_array().into_iter().flatten().find(|content| content["type"] == "diff");
    if let Some(diff) = diff {
        input["path"] = diff["path"].clone();
        input["old_string"] = diff["oldText"].clone();
        input["new_string"] = diff["newText"].clone();
    }
    input
}

/// The text that a call returned.
fn content_text(call: &Value) -> String {
    let content = call["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|content| content["content"]["text"].as_str()).collect();
    texts.join("\n")
}

/// An id of a request is a number or a string.
fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
