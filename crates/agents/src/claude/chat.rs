//! Claude Code's structured stream: `claude -p` with stream-json in both directions.
//!
//! `system/init` precedes every turn and describes its settings. Text arrives twice, as deltas of the raw API events
//! and as a whole message. Requests of the agent can come at any time.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use transcript::{BlockKind, NoticeKind, SessionId};

use crate::chat::form;
use crate::chat::{
    Action, AgentRequest, Always, Answer, AnswerChoice, Ask, ChatCapabilities, ChatEvent, ChatOrder, ChatSession,
    ContextUse, ModelChoice, Prompt, Protocol, Question, Received, SlashCommand, StreamPart, TurnEnd, TurnOutcome,
    string,
};

/// The permission modes that can be chosen while it runs. The one that skips all permissions can only be requested at
/// the start.
const MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

/// The id of the request that opens a chat.
const OPENING: &str = "open";

/// Claude Code's side of a chat.
pub(crate) struct ClaudeChat {
    order: ChatOrder,
    resumed: String,
    session: Option<SessionId>,
    mode: Option<String>,
    /// Requests of ours that wait for an answer, and what to say if it is refused.
    pending: HashMap<String, String>,
    last_request: u64,
    /// Requests of the agent that wait for an answer.
    asked: HashMap<String, Value>,
    context: ContextUse,
    /// The names of the tools that were called, by call.
    tools: HashMap<String, String>,
}

impl ClaudeChat {
    /// A chat that has not begun. `resumed` is the argument that resumes an existing session.
    pub(crate) fn new(order: ChatOrder, resumed: String) -> Self {
        ClaudeChat {
            resumed,
            order,
            session: None,
            mode: None,
            pending: HashMap::new(),
            last_request: 0,
            asked: HashMap::new(),
            context: ContextUse::default(),
            tools: HashMap::new(),
        }
    }

    fn control(&mut self, request: &Value, refused: &str) -> Value {
        self.last_request += 1;
        let id = format!("tine-{}", self.last_request);
        self.pending.insert(id.clone(), refused.to_owned());
        json!({ "type": "control_request", "request_id": id, "request": request })
    }

    fn system(&mut self, message: &Value) -> Vec<ChatEvent> {
        match message["subtype"].as_str().unwrap_or_default() {
            "init" => {
                self.mode = message["permissionMode"].as_str().map(str::to_owned);
                let settings = ChatEvent::Settings {
                    model: message["model"].as_str().map(str::to_owned),
                    mode: self.mode.clone(),
                };
                vec![settings, ChatEvent::TurnStarted]
            }
            "status" => {
                let mut events = Vec::new();
                if message["status"] == "compacting" {
                    events.push(ChatEvent::Compacting);
                }
                if let Some(mode) = message["permissionMode"].as_str() {
                    self.mode = Some(mode.to_owned());
                    events.push(ChatEvent::Settings { model: None, mode: self.mode.clone() });
                }
                events
            }
            "compact_boundary" => {
                if let Some(tokens) = message["compact_metadata"]["post_tokens"].as_u64() {
                    self.context.used = tokens;
                }
                vec![ChatEvent::Compacted, ChatEvent::Context(self.context)]
            }
            "api_retry" => vec![ChatEvent::Retrying {
                attempt: message["attempt"].as_u64().unwrap_or_default(),
                after: message["retry_delay_ms"].as_u64().map(Duration::from_millis),
                reason: string(&message["error"]).replace('_', " "),
            }],
            _ => Vec::new(),
        }
    }

    /// A raw event of the API.
    fn stream_event(&mut self, message: &Value) -> Vec<ChatEvent> {
        let event = &message["event"];
        let subagent = parent(message);
        match event["type"].as_str().unwrap_or_default() {
            "content_block_delta" => {
                let delta = &event["delta"];
                let (part, text) = match delta["type"].as_str() {
                    Some("text_delta") => (StreamPart::Answer, string(&delta["text"])),
                    Some("thinking_delta") => (StreamPart::Thinking, string(&delta["thinking"])),
                    _ => return Vec::new(),
                };
                vec![ChatEvent::Delta { subagent, part, text }]
            }
            // A subagent's context isn't the session's.
            "message_start" if subagent.is_none() => self.take_usage(&event["message"]["usage"]),
            "message_delta" if subagent.is_none() => {
                let written = event["usage"]["output_tokens"].as_u64().unwrap_or_default();
                let used = self.context.used + written;
                vec![ChatEvent::Context(ContextUse { used, ..self.context })]
            }
            _ => Vec::new(),
        }
    }

    fn take_usage(&mut self, usage: &Value) -> Vec<ChatEvent> {
        let count = |name: &str| usage[name].as_u64().unwrap_or_default();
        let cached = count("cache_read_input_tokens");
        self.context.used = count("input_tokens") + cached + count("cache_creation_input_tokens");
        self.context.cached = cached;
        vec![ChatEvent::Context(self.context)]
    }

    fn assistant(&mut self, message: &Value) -> Vec<ChatEvent> {
        let content = message["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let model = message["message"]["model"].as_str();
        let is_synthetic = model == Some("<synthetic>");
        let mut events = Vec::new();
        for block in content {
            let kind = match block["type"].as_str() {
                // Text from the program itself: the output of a local command, or a failed request.
                Some("text") if is_synthetic => {
                    let notice = if message["error"].is_null() { NoticeKind::Command } else { NoticeKind::Error };
                    BlockKind::Notice { notice, text: string(&block["text"]) }
                }
                Some("text") => BlockKind::Answer { text: string(&block["text"]), model: model.map(str::to_owned) },
                Some("thinking") => BlockKind::Thinking { text: string(&block["thinking"]) },
                Some("tool_use") => {
                    let (id, name) = (string(&block["id"]), string(&block["name"]));
                    self.tools.insert(id.clone(), name.clone());
                    BlockKind::Call { id, name, input: block["input"].clone() }
                }
                _ => continue,
            };
            events.push(ChatEvent::Block { subagent: parent(message), kind });
        }
        events
    }

    fn user(&mut self, message: &Value) -> Vec<ChatEvent> {
        let subagent = parent(message);
        let content = &message["message"]["content"];
        if let Some(text) = content.as_str() {
            // The summary after a compaction, and other messages of the program to the user.
            let is_own = message["isReplay"] == true && subagent.is_none();
            let kind = BlockKind::Prompt { text: text.to_owned(), steer: false };
            return if is_own { vec![ChatEvent::Block { subagent, kind }] } else { Vec::new() };
        }
        let mut events = Vec::new();
        for block in content.as_array().map(Vec::as_slice).unwrap_or_default() {
            let kind = match block["type"].as_str() {
                Some("tool_result") => {
                    let call = string(&block["tool_use_id"]);
                    BlockKind::Output {
                        name: self.tools.remove(&call),
                        call,
                        text: text_of(&block["content"]),
                        error: block["is_error"] == true,
                        exit_code: None,
                    }
                }
                Some("text") if message["isReplay"] == true && subagent.is_none() => {
                    BlockKind::Prompt { text: string(&block["text"]), steer: false }
                }
                _ => continue,
            };
            events.push(ChatEvent::Block { subagent: subagent.clone(), kind });
        }
        events
    }

    fn result(&mut self, message: &Value) -> Vec<ChatEvent> {
        let mut events = Vec::new();
        let windows = windows_in(&message["modelUsage"]);
        // Several models work for one session; the main one has the largest window of those that answered.
        if let Some(window) = windows.iter().map(|(_, window)| *window).max() {
            self.context.window = Some(window);
            events.push(ChatEvent::Context(self.context));
        }
        let reason = message["terminal_reason"].as_str().unwrap_or_default();
        let outcome = match message["subtype"].as_str().unwrap_or_default() {
            _ if reason.starts_with("aborted") => TurnOutcome::Interrupted,
            "success" if message["is_error"] != true => TurnOutcome::Completed,
            "success" => TurnOutcome::Failed(string(&message["result"])),
            // An older version reports an interruption only like this.
            "error_during_execution" if reason.is_empty() => TurnOutcome::Interrupted,
            other => TurnOutcome::Failed(match message["errors"][0].as_str() {
                Some(error) => error.to_owned(),
                None => other.replace('_', " "),
            }),
        };
        events.push(ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: message["total_cost_usd"].as_f64(), windows }));
        events
    }

    fn control_request(&mut self, message: &Value) -> Received {
        let id = string(&message["request_id"]);
        let request = &message["request"];
        let subtype = request["subtype"].as_str().unwrap_or_default();
        let ask = match subtype {
            "can_use_tool" => ask(request),
            "elicitation" => elicitation(request),
            other => Ask::Unknown { name: other.to_owned() },
        };
        self.asked.insert(id.clone(), request.clone());
        let call = request["tool_use_id"].as_str().map(str::to_owned);
        let by_subagent = !request["agent_id"].is_null();
        Received::event(ChatEvent::Request(AgentRequest { id, call, by_subagent, ask }))
    }

    fn control_response(&mut self, response: &Value) -> Vec<ChatEvent> {
        let id = response["request_id"].as_str().unwrap_or_default();
        if id == OPENING {
            return match response["error"].as_str() {
                Some(error) => vec![ChatEvent::Refused(error.to_owned())],
                None => vec![ChatEvent::Ready(offer(&response["response"]))],
            };
        }
        let Some(refused) = self.pending.remove(id) else { return Vec::new() };
        match response["error"].as_str() {
            Some(error) => vec![ChatEvent::Refused(format!("{refused}: {error}"))],
            None => Vec::new(),
        }
    }

    /// Shows a request once more whose answer the server would not take.
    fn ask_again(&mut self, id: &str, request: Value, wrong: String) -> Received {
        let ask = AgentRequest { id: id.to_owned(), call: None, by_subagent: false, ask: elicitation(&request) };
        self.asked.insert(id.to_owned(), request);
        Received { events: vec![ChatEvent::Refused(wrong), ChatEvent::Request(ask)], lines: Vec::new() }
    }

    fn answer(&mut self, id: &str, answer: &Answer) -> Received {
        let Some(request) = self.asked.remove(id) else {
            return Received::event(ChatEvent::Refused("the agent no longer waits for this answer".to_owned()));
        };
        let respond = |response: Value| {
            let response = json!({ "subtype": "success", "request_id": id, "response": response });
            Received::line(json!({ "type": "control_response", "response": response }))
        };
        let input = &request["input"];
        // An older version takes an answer without the arguments for a denial.
        let allow = |input: Value, permissions: Vec<Value>| {
            respond(json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": permissions }))
        };
        if request["subtype"] == "elicitation" {
            return match form::result(&request["requested_schema"], answer) {
                Ok(result) => respond(result),
                Err(wrong) => self.ask_again(id, request, wrong),
            };
        }
        match answer {
            _ if request["subtype"] != "can_use_tool" => {
                let response = json!({ "subtype": "error", "request_id": id, "error": "not supported" });
                Received::line(json!({ "type": "control_response", "response": response }))
            }
            Answer::Allow { input: given } => allow(given.clone().unwrap_or_else(|| input.clone()), Vec::new()),
            Answer::Always(number) => {
                // One rule only: all of them together would switch the mode as well.
                let rule = rules(&request).into_iter().nth(*number).map(|always| always.rule);
                allow(input.clone(), rule.into_iter().collect())
            }
            Answer::Deny { reason, interrupt } => {
                let message = reason.as_deref().unwrap_or("The user denied this.");
                respond(json!({ "behavior": "deny", "message": message, "interrupt": interrupt }))
            }
            Answer::Answers(answers) => {
                let mut input = input.clone();
                let answers: Map<String, Value> =
                    answers.iter().map(|(question, chosen)| (question.clone(), chosen.join(", ").into())).collect();
                match input.as_object_mut() {
                    Some(input) => drop(input.insert("answers".to_owned(), Value::Object(answers))),
                    // The agent's question has no field for answers, so only the answers are returned.
                    None => input = json!({ "answers": answers }),
                }
                allow(input, Vec::new())
            }
            Answer::Approve { mode } => {
                let set_mode = |mode: &String| json!({ "type": "setMode", "mode": mode, "destination": "session" });
                allow(input.clone(), mode.iter().map(set_mode).collect())
            }
        }
    }
}

impl Protocol for ClaudeChat {
    fn is_attended(&self) -> bool {
        self.order.is_attended
    }

    fn arguments(&self) -> Vec<String> {
        let order = &self.order;
        let mut words: Vec<&str> = Vec::new();
        words.extend(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        words.extend(["--include-partial-messages", "--replay-user-messages"]);
        // Without it, Claude Code denies what it would ask for, and doesn't offer tools that ask the user.
        if order.is_attended {
            words.extend(["--permission-prompt-tool", "stdio"]);
        }
        match &order.session {
            ChatSession::New(id) => words.extend(["--session-id", id.as_str()]),
            ChatSession::Existing { .. } => words.extend(["--resume", &self.resumed]),
        }
        for (option, value) in [("--name", &order.title), ("--model", &order.model), ("--permission-mode", &order.mode)]
        {
            words.extend(value.iter().flat_map(|value| [option, value.as_str()]));
        }
        // If an option is given twice, the last one counts.
        order.options.iter().cloned().chain(words.into_iter().map(str::to_owned)).collect()
    }

    fn environment(&self) -> Vec<(&'static str, &'static str)> {
        // Claude Code lists sessions of other entry points itself; it hides those of its own SDK.
        vec![("CLAUDE_CODE_ENTRYPOINT", "tine"), ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1")]
    }

    fn open(&mut self) -> Vec<Value> {
        vec![json!({ "type": "control_request", "request_id": OPENING, "request": { "subtype": "initialize" } })]
    }

    fn receive(&mut self, message: &Value) -> Received {
        let mut received = match message["type"].as_str().unwrap_or_default() {
            "control_request" => self.control_request(message),
            kind => Received {
                events: match kind {
                    "system" => self.system(message),
                    "stream_event" => self.stream_event(message),
                    "assistant" => self.assistant(message),
                    "user" => self.user(message),
                    "result" => self.result(message),
                    "control_response" => self.control_response(&message["response"]),
                    "control_cancel_request" => {
                        let id = string(&message["request_id"]);
                        self.asked.remove(&id);
                        vec![ChatEvent::Withdrawn(id)]
                    }
                    _ => Vec::new(),
                },
                lines: Vec::new(),
            },
        };
        let id = message["session_id"].as_str().and_then(|id| SessionId::new(id).ok());
        if let Some(id) = id.filter(|id| self.session.as_ref() != Some(id)) {
            self.session = Some(id.clone());
            received.events.insert(0, ChatEvent::Session { id, path: None });
        }
        received
    }

    fn act(&mut self, action: Action) -> Received {
        match action {
            Action::Prompt(prompt) => Received::line(user_message(&prompt)),
            Action::Answer { request, answer } => self.answer(&request, &answer),
            Action::Interrupt => {
                Received::line(self.control(&json!({ "subtype": "interrupt" }), "can't interrupt the agent"))
            }
            Action::SetModel(model) => {
                let line = self.control(&json!({ "subtype": "set_model", "model": model }), "can't change the model");
                let settings = ChatEvent::Settings { model: Some(model), mode: None };
                Received { events: vec![settings], lines: vec![line] }
            }
            Action::SetMode(mode) => {
                let request = json!({ "subtype": "set_permission_mode", "mode": mode });
                Received::line(self.control(&request, "can't change the permission mode"))
            }
        }
    }
}

/// The context windows that a result names, by model. Nothing else of Claude Code names them.
fn windows_in(usage: &Value) -> Vec<(String, u64)> {
    let window = |(model, usage): (&String, &Value)| {
        let window = usage["contextWindow"].as_u64().filter(|window| *window > 0)?;
        Some((model.clone(), window))
    };
    usage.as_object().into_iter().flatten().filter_map(window).collect()
}

fn parent(message: &Value) -> Option<String> {
    message["parent_tool_use_id"].as_str().map(str::to_owned)
}

fn user_message(prompt: &Prompt) -> Value {
    let text = json!({ "type": "text", "text": prompt.text });
    let image = |image: &crate::chat::Image| {
        let source = json!({ "type": "base64", "media_type": image.media_type, "data": image.base64 });
        json!({ "type": "image", "source": source })
    };
    let content = match prompt.images.is_empty() {
        true => json!(prompt.text),
        false => prompt.images.iter().map(image).chain([text]).collect(),
    };
    json!({ "type": "user", "message": { "role": "user", "content": content }, "uuid": prompt.id })
}

/// The text of a tool's result: a string, or blocks of which some are pictures.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |block: &Value| match block["type"].as_str() {
        Some("text") => Some(string(&block["text"])),
        Some(other) => Some(format!("({other})")),
        None => None,
    };
    blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// What an MCP server asks the user.
fn elicitation(request: &Value) -> Ask {
    let (server, message) = (string(&request["mcp_server_name"]), string(&request["message"]));
    form::ask(&server, &message, &request["requested_schema"], request["url"].as_str(), Value::Null)
}

fn ask(request: &Value) -> Ask {
    let input = &request["input"];
    match request["tool_name"].as_str().unwrap_or_default() {
        "AskUserQuestion" => {
            let questions = input["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
            Ask::Questions(questions.iter().map(question).collect())
        }
        "ExitPlanMode" => Ask::Plan { text: string(&input["plan"]), modes: vec!["default", "acceptEdits"] },
        name => Ask::Tool {
            name: name.to_owned(),
            input: input.clone(),
            reason: request["decision_reason"].as_str().map(str::to_owned),
            can_edit: true,
            hears_reason: true,
            always: rules(request),
        },
    }
}

fn question(question: &Value) -> Question {
    let choices = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    Question {
        // Answers are matched by the words of the question.
        id: string(&question["question"]),
        header: string(&question["header"]),
        text: string(&question["question"]),
        choices: choices
            .iter()
            .map(|choice| AnswerChoice { label: string(&choice["label"]), description: string(&choice["description"]) })
            .collect(),
        several: question["multiSelect"] == true,
        free: true,
    }
}

/// What Claude Code suggests to allow from now on.
fn rules(request: &Value) -> Vec<Always> {
    let suggestions = request["permission_suggestions"].as_array().map(Vec::as_slice).unwrap_or_default();
    suggestions.iter().filter_map(|rule| Some(Always { label: rule_label(rule)?, rule: rule.clone() })).collect()
}

fn rule_label(rule: &Value) -> Option<String> {
    let lasts = match rule["destination"].as_str() {
        Some("session") => "in this session",
        Some("localSettings" | "projectSettings") => "in this project",
        _ => "everywhere",
    };
    match rule["type"].as_str()? {
        "addRules" if rule["behavior"] == "allow" => {
            let name = |rule: &Value| match rule["ruleContent"].as_str() {
                Some(content) => format!("{}({content})", string(&rule["toolName"])),
                None => string(&rule["toolName"]),
            };
            let rules: Vec<String> = rule["rules"].as_array()?.iter().map(name).collect();
            Some(format!("{} {lasts}", rules.join(", ")))
        }
        "addDirectories" => {
            let directories: Vec<String> = rule["directories"].as_array()?.iter().map(string).collect();
            Some(format!("access to {} {lasts}", directories.join(", ")))
        }
        "setMode" => Some(format!("{} mode {lasts}", rule["mode"].as_str()?)),
        _ => None,
    }
}

fn offer(response: &Value) -> ChatCapabilities {
    let list = |name: &str| response[name].as_array().cloned().unwrap_or_default();
    let command = |command: &Value| SlashCommand {
        name: string(&command["name"]),
        description: string(&command["description"]),
        argument: string(&command["argumentHint"]),
    };
    let model = |model: &Value| ModelChoice { value: string(&model["value"]), name: string(&model["displayName"]) };
    ChatCapabilities {
        commands: list("commands").iter().map(command).collect(),
        models: list("models").iter().map(model).collect(),
        modes: MODES.to_vec(),
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
