//! Codex's structured stream: `codex app-server`, JSON-RPC without a version, one message per line.
//!
//! A chat is one thread of one server. The server takes prompts once the thread is loaded; those that come earlier wait
//! here. Unknown fields are ignored by the server, so fields of newer versions are sent to older ones as well.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use transcript::{BlockKind, NoticeKind, SessionId};

use super::settings::ThreadSettings;
use crate::chat::form;
use crate::chat::{
    Action, AgentRequest, Always, Answer, AnswerChoice, Ask, ChatCapabilities, ChatEvent, ChatOrder, ChatSession,
    ContextUse, ModelChoice, Prompt, Protocol, Question, Received, StreamPart, TurnEnd, TurnOutcome, string,
};

/// The permission modes, as Codex's own screen offers them: what it asks for, and what commands may touch.
const MODES: [(&str, &str, &str, &str); 3] = [
    ("read-only", "on-request", "read-only", "readOnly"),
    ("auto", "on-request", "workspace-write", "workspaceWrite"),
    ("full-access", "never", "danger-full-access", "dangerFullAccess"),
];

/// Questions of the model.
const QUESTIONS: &str = "item/tool/requestUserInput";

/// What an MCP server asks the user.
const ELICITATION: &str = "mcpServer/elicitation/request";

/// Codex's side of a chat.
pub(crate) struct CodexChat {
    order: ChatOrder,
    settings: ThreadSettings,
    thread: Option<String>,
    turn: Option<String>,
    last_request: u64,
    /// Requests of ours that wait for an answer.
    pending: HashMap<u64, Pending>,
    /// Prompts that wait for the thread.
    waiting: Vec<Prompt>,
    /// Requests of the agent that wait for an answer, by their id as text.
    asked: HashMap<String, Value>,
    /// Settings for the next turn.
    overrides: Map<String, Value>,
    offer: ChatCapabilities,
    /// Whether a turn has ended, so that the thread has a file and can be named.
    has_answered: bool,
}

/// What one of our requests was for.
enum Pending {
    Initialize,
    Thread,
    Models,
    Turn,
    Other(&'static str),
}

impl CodexChat {
    /// A chat that has not begun.
    pub(super) fn new(order: ChatOrder, settings: ThreadSettings) -> Self {
        CodexChat {
            order,
            settings,
            thread: None,
            turn: None,
            last_request: 0,
            pending: HashMap::new(),
            waiting: Vec::new(),
            asked: HashMap::new(),
            overrides: Map::new(),
            has_answered: false,
            offer: ChatCapabilities { modes: MODES.map(|mode| mode.0).to_vec(), ..ChatCapabilities::default() },
        }
    }

    fn request(&mut self, method: &str, params: &Value, purpose: Pending) -> Value {
        self.last_request += 1;
        self.pending.insert(self.last_request, purpose);
        json!({ "id": self.last_request, "method": method, "params": params })
    }

    fn load_thread(&mut self) -> Value {
        let mut params = json!({ "cwd": self.order.directory });
        let settings = &self.settings;
        let given =
            [("model", &settings.model), ("approvalPolicy", &settings.approval), ("sandbox", &settings.sandbox)];
        for (name, value) in given.into_iter().chain([("model", &self.order.model)]) {
            if let Some(value) = value {
                params[name] = json!(value);
            }
        }
        if let Some(mode) = self.order.mode.as_deref().and_then(mode_named) {
            params["approvalPolicy"] = json!(mode.1);
            params["sandbox"] = json!(mode.2);
        }
        if !self.order.is_attended {
            params["approvalPolicy"] = json!("never");
        }
        match self.order.session.clone() {
            ChatSession::New(_) => self.request("thread/start", &params, Pending::Thread),
            ChatSession::Existing { id, .. } => {
                params["threadId"] = json!(id.as_str());
                params["excludeTurns"] = json!(true);
                self.request("thread/resume", &params, Pending::Thread)
            }
        }
    }

    fn answered(&mut self, id: u64, message: &Value) -> Received {
        let Some(purpose) = self.pending.remove(&id) else { return Received::default() };
        if let Some(error) = message["error"]["message"].as_str() {
            return self.refused(&purpose, error);
        }
        let result = &message["result"];
        match purpose {
            Pending::Initialize => {
                let models = self.request("model/list", &json!({}), Pending::Models);
                Received {
                    events: Vec::new(),
                    lines: vec![json!({ "method": "initialized" }), self.load_thread(), models],
                }
            }
            Pending::Thread => self.loaded(result),
            Pending::Models => {
                let models = result["data"].as_array().map(Vec::as_slice).unwrap_or_default();
                let models = models.iter().filter(|model| model["hidden"] != true);
                let choice =
                    |model: &Value| ModelChoice { value: string(&model["model"]), name: string(&model["displayName"]) };
                self.offer.models = models.map(choice).collect();
                // The first report of the thread includes the list of models.
                match self.thread.is_some() {
                    true => Received::event(ChatEvent::Ready(self.offer.clone())),
                    false => Received::default(),
                }
            }
            Pending::Turn | Pending::Other(_) => Received::default(),
        }
    }

    fn refused(&mut self, purpose: &Pending, error: &str) -> Received {
        match purpose {
            Pending::Models => Received::default(),
            Pending::Turn => {
                let outcome = TurnOutcome::Failed(error.to_owned());
                Received::event(ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: None, windows: Vec::new() }))
            }
            Pending::Initialize | Pending::Thread => Received::event(ChatEvent::Refused(error.to_owned())),
            Pending::Other(what) => Received::event(ChatEvent::Refused(format!("{what}: {error}"))),
        }
    }

    fn loaded(&mut self, result: &Value) -> Received {
        let thread = &result["thread"];
        self.thread = thread["id"].as_str().map(str::to_owned);
        let mut received = Received::default();
        if let Some(id) = self.thread.as_deref().and_then(|id| SessionId::new(id).ok()) {
            received.events.push(ChatEvent::Session { id, path: thread["path"].as_str().map(PathBuf::from) });
        }
        let mode = mode_of(&result["approvalPolicy"], &result["sandbox"]);
        received.events.push(ChatEvent::Settings { model: result["model"].as_str().map(str::to_owned), mode });
        received.events.push(ChatEvent::Ready(self.offer.clone()));
        for prompt in std::mem::take(&mut self.waiting) {
            received.lines.push(self.prompt(&prompt));
        }
        received
    }

    /// The request that names a new thread, once it can be named.
    fn title(&mut self) -> Option<Value> {
        let title = self.order.title.take_if(|_| self.has_answered)?;
        let params = json!({ "threadId": self.thread, "name": title });
        Some(self.request("thread/name/set", &params, Pending::Other("can't name the session")))
    }

    fn prompt(&mut self, prompt: &Prompt) -> Value {
        let image = |image: &crate::chat::Image| json!({ "type": "image", "url": format!("data:{};base64,{}", image.media_type, image.base64) });
        let text = json!({ "type": "text", "text": prompt.text, "text_elements": [] });
        let input: Vec<Value> = prompt.images.iter().map(image).chain([text]).collect();
        let mut params = json!({ "threadId": self.thread, "input": input, "clientUserMessageId": prompt.id });
        if let Some(turn) = &self.turn {
            params["expectedTurnId"] = json!(turn);
            return self.request("turn/steer", &params, Pending::Other("can't add to the running turn"));
        }
        for (name, value) in std::mem::take(&mut self.overrides) {
            params[name] = value;
        }
        self.request("turn/start", &params, Pending::Turn)
    }

    fn notified(&mut self, method: &str, params: &Value) -> Vec<ChatEvent> {
        let delta = |part: StreamPart| vec![ChatEvent::Delta { subagent: None, part, text: string(&params["delta"]) }];
        match method {
            "turn/started" => {
                self.turn = params["turn"]["id"].as_str().map(str::to_owned);
                vec![ChatEvent::TurnStarted]
            }
            "turn/completed" => {
                self.turn = None;
                self.has_answered = true;
                let turn = &params["turn"];
                let outcome = match turn["status"].as_str() {
                    Some("completed") => TurnOutcome::Completed,
                    Some("interrupted") => TurnOutcome::Interrupted,
                    _ => TurnOutcome::Failed(string(&turn["error"]["message"])),
                };
                vec![ChatEvent::TurnEnded(TurnEnd { outcome, total_cost: None, windows: Vec::new() })]
            }
            "item/started" => item_started(&params["item"]),
            "item/completed" => item_completed(&params["item"]),
            "item/agentMessage/delta" => delta(StreamPart::Answer),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => delta(StreamPart::Thinking),
            "item/commandExecution/outputDelta" => delta(StreamPart::Output { call: string(&params["itemId"]) }),
            "thread/tokenUsage/updated" => {
                let usage = &params["tokenUsage"];
                vec![ChatEvent::Context(ContextUse {
                    used: usage["last"]["totalTokens"].as_u64().unwrap_or_default(),
                    window: usage["modelContextWindow"].as_u64(),
                    cached: usage["last"]["cachedInputTokens"].as_u64().unwrap_or_default(),
                })]
            }
            "thread/settings/updated" => Vec::new(),
            "error" if params["willRetry"] == true => {
                vec![ChatEvent::Retrying { attempt: 0, after: None, reason: string(&params["error"]["message"]) }]
            }
            "serverRequest/resolved" => {
                let id = id_text(&params["requestId"]);
                self.asked.remove(&id).map(|_| ChatEvent::Withdrawn(id)).into_iter().collect()
            }
            "model/rerouted" => vec![ChatEvent::Notice("the provider answers with another model".to_owned())],
            "warning" | "configWarning" | "guardianWarning" => {
                let text = params["message"].as_str().or(params["summary"].as_str()).unwrap_or_default();
                vec![ChatEvent::Notice(text.to_owned())]
            }
            _ => Vec::new(),
        }
    }

    fn asks(&mut self, id: &Value, method: &str, params: &Value) -> ChatEvent {
        let ask = match method {
            "item/commandExecution/requestApproval" => Ask::Tool {
                name: "shell".to_owned(),
                input: json!({ "command": params["command"], "cwd": params["cwd"] }),
                reason: params["reason"].as_str().map(str::to_owned),
                can_edit: false,
                hears_reason: false,
                always: command_rules(params),
            },
            "item/fileChange/requestApproval" => Ask::Tool {
                name: "apply_patch".to_owned(),
                input: json!({ "item": params["itemId"], "grantRoot": params["grantRoot"] }),
                reason: params["reason"].as_str().map(str::to_owned),
                can_edit: false,
                hears_reason: false,
                always: vec![for_session()],
            },
            QUESTIONS => {
                let questions = params["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
                Ask::Questions(questions.iter().map(question).collect())
            }
            ELICITATION => elicitation(params),
            other => Ask::Unknown { name: other.to_owned() },
        };
        let request = json!({ "id": id, "method": method, "params": params });
        let id = id_text(id);
        self.asked.insert(id.clone(), request);
        let call = params["itemId"].as_str().map(str::to_owned);
        ChatEvent::Request(AgentRequest { id, call, by_subagent: false, ask })
    }

    /// Shows a request once more whose answer the server would not take.
    fn ask_again(&mut self, id: &str, request: Value, wrong: String) -> Received {
        let ask = elicitation(&request["params"]);
        let ask = AgentRequest { id: id.to_owned(), call: None, by_subagent: false, ask };
        self.asked.insert(id.to_owned(), request);
        Received { events: vec![ChatEvent::Refused(wrong), ChatEvent::Request(ask)], lines: Vec::new() }
    }

    fn answer(&mut self, id: &str, answer: Answer) -> Received {
        let Some(request) = self.asked.remove(id) else {
            return Received::event(ChatEvent::Refused("the agent no longer waits for this answer".to_owned()));
        };
        let number = &request["id"];
        let method = request["method"].as_str().unwrap_or_default();
        if method == ELICITATION {
            return match form::result(&request["params"]["requestedSchema"], &answer) {
                Ok(result) => Received::line(json!({ "id": number, "result": result })),
                Err(wrong) => self.ask_again(id, request, wrong),
            };
        }
        let is_known = method.ends_with("/requestApproval") && method != "item/permissions/requestApproval";
        let result = match answer {
            Answer::Answers(answers) if method == QUESTIONS => {
                let answers: Map<String, Value> =
                    answers.into_iter().map(|(id, chosen)| (id, json!({ "answers": chosen }))).collect();
                json!({ "answers": answers })
            }
            _ if !is_known => {
                let error = json!({ "code": -32601, "message": "not supported" });
                return Received::line(json!({ "id": number, "error": error }));
            }
            Answer::Allow { .. } | Answer::Approve { .. } => json!({ "decision": "accept" }),
            Answer::Always(place) => {
                let rules = match method {
                    "item/commandExecution/requestApproval" => command_rules(&request["params"]),
                    _ => vec![for_session()],
                };
                let rule = rules.into_iter().nth(place).map_or(json!("accept"), |always| always.rule);
                json!({ "decision": rule })
            }
            Answer::Deny { interrupt: true, .. } => json!({ "decision": "cancel" }),
            // An answer that doesn't fit allows nothing.
            Answer::Deny { .. } | Answer::Answers(_) => json!({ "decision": "decline" }),
        };
        Received::line(json!({ "id": number, "result": result }))
    }
}

impl Protocol for CodexChat {
    fn is_attended(&self) -> bool {
        self.order.is_attended
    }

    fn arguments(&self) -> Vec<String> {
        self.settings.words.iter().cloned().chain(["app-server".to_owned()]).collect()
    }

    fn open(&mut self) -> Vec<Value> {
        let client = json!({ "name": "tine", "title": "tine", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
        vec![self.request("initialize", &params, Pending::Initialize)]
    }

    fn receive(&mut self, message: &Value) -> Received {
        let (id, method) = (&message["id"], message["method"].as_str());
        match (id.is_null(), method) {
            (true, Some(method)) => Received {
                events: self.notified(method, &message["params"]),
                lines: self.title().into_iter().collect(),
            },
            (false, Some(method)) => Received::event(self.asks(id, method, &message["params"])),
            (false, None) => id.as_u64().map(|id| self.answered(id, message)).unwrap_or_default(),
            (true, None) => Received::default(),
        }
    }

    fn act(&mut self, action: Action) -> Received {
        match action {
            Action::Prompt(prompt) if self.thread.is_none() => {
                self.waiting.push(prompt);
                Received::default()
            }
            Action::Prompt(prompt) => Received::line(self.prompt(&prompt)),
            Action::Answer { request, answer } => self.answer(&request, answer),
            // A thread without a turn never answers.
            Action::Interrupt => match self.turn.clone() {
                None => Received::default(),
                Some(turn) => {
                    let params = json!({ "threadId": self.thread, "turnId": turn });
                    let purpose = Pending::Other("can't interrupt the agent");
                    Received::line(self.request("turn/interrupt", &params, purpose))
                }
            },
            Action::SetModel(model) => {
                self.overrides.insert("model".to_owned(), json!(model));
                Received::event(ChatEvent::Settings { model: Some(model), mode: None })
            }
            Action::SetMode(mode) => {
                let Some((name, policy, _, sandbox)) = mode_named(&mode) else {
                    return Received::event(ChatEvent::Refused(format!("unknown permission mode `{mode}`")));
                };
                self.overrides.insert("approvalPolicy".to_owned(), json!(policy));
                self.overrides.insert("sandboxPolicy".to_owned(), json!({ "type": sandbox }));
                Received::event(ChatEvent::Settings { model: None, mode: Some((*name).to_owned()) })
            }
        }
    }
}

/// What an MCP server asks the user, or Codex itself before it runs a tool of one.
fn elicitation(params: &Value) -> Ask {
    let (server, message) = (string(&params["serverName"]), string(&params["message"]));
    let details = params["_meta"]["tool_params"].clone();
    form::ask(&server, &message, &params["requestedSchema"], params["url"].as_str(), details)
}

fn mode_named(name: &str) -> Option<&'static (&'static str, &'static str, &'static str, &'static str)> {
    MODES.iter().find(|mode| mode.0 == name)
}

fn mode_of(policy: &Value, sandbox: &Value) -> Option<String> {
    let sandbox = sandbox["type"].as_str()?;
    let known = MODES.iter().find(|mode| policy == mode.1 && sandbox == mode.3);
    Some(known.map_or_else(|| format!("{} {sandbox}", policy.as_str().unwrap_or("granular")), |mode| mode.0.to_owned()))
}

/// An id of a request is a number or a string.
fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn block(kind: BlockKind) -> Vec<ChatEvent> {
    vec![ChatEvent::Block { subagent: None, kind }]
}

/// The call that an item is.
fn call(item: &Value) -> Option<BlockKind> {
    let id = string(&item["id"]);
    let (name, input) = match item["type"].as_str()? {
        "commandExecution" => ("shell".to_owned(), json!({ "command": item["command"], "cwd": item["cwd"] })),
        "fileChange" => ("apply_patch".to_owned(), json!({ "changes": item["changes"] })),
        "mcpToolCall" => (format!("{}.{}", string(&item["server"]), string(&item["tool"])), item["arguments"].clone()),
        "dynamicToolCall" => (string(&item["tool"]), item["arguments"].clone()),
        "webSearch" => ("web_search".to_owned(), json!({ "query": item["query"] })),
        _ => return None,
    };
    Some(BlockKind::Call { id, name, input })
}

fn item_started(item: &Value) -> Vec<ChatEvent> {
    match item["type"].as_str() {
        Some("contextCompaction") => vec![ChatEvent::Compacting],
        _ => call(item).map(block).unwrap_or_default(),
    }
}

fn item_completed(item: &Value) -> Vec<ChatEvent> {
    let status = item["status"].as_str();
    let output = |text: String| {
        let name = call(item).and_then(|call| match call {
            BlockKind::Call { name, .. } => Some(name),
            _ => None,
        });
        let exit_code = item["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok());
        let error = matches!(status, Some("failed" | "declined"));
        block(BlockKind::Output { call: string(&item["id"]), name, text, error, exit_code })
    };
    match item["type"].as_str().unwrap_or_default() {
        "agentMessage" => block(BlockKind::Answer { text: string(&item["text"]), model: None }),
        "userMessage" => {
            let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            let texts: Vec<String> =
                parts.iter().filter(|part| part["type"] == "text").map(|it| string(&it["text"])).collect();
            block(BlockKind::Prompt { text: texts.join("\n"), steer: false })
        }
        "reasoning" => {
            let texts =
                |name: &str| item[name].as_array().map(|all| all.iter().map(string).collect::<Vec<_>>().join("\n\n"));
            let text =
                texts("summary").filter(|text| !text.is_empty()).or_else(|| texts("content")).unwrap_or_default();
            block(BlockKind::Thinking { text })
        }
        "plan" => block(BlockKind::Notice { notice: NoticeKind::Info, text: string(&item["text"]) }),
        "contextCompaction" => vec![ChatEvent::Compacted],
        "commandExecution" if status == Some("declined") => output("declined".to_owned()),
        "commandExecution" => output(string(&item["aggregatedOutput"])),
        "fileChange" => output(status.unwrap_or_default().to_owned()),
        "mcpToolCall" => {
            let parts = item["result"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            let texts = parts.iter().filter_map(|part| part["text"].as_str()).chain(item["error"]["message"].as_str());
            output(texts.collect::<Vec<_>>().join("\n"))
        }
        "dynamicToolCall" | "webSearch" => output(String::new()),
        _ => Vec::new(),
    }
}

fn question(question: &Value) -> Question {
    let choices = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    Question {
        id: string(&question["id"]),
        header: string(&question["header"]),
        text: string(&question["question"]),
        choices: choices
            .iter()
            .map(|choice| AnswerChoice { label: string(&choice["label"]), description: string(&choice["description"]) })
            .collect(),
        several: false,
        free: question["isOther"] == true || choices.is_empty(),
    }
}

fn for_session() -> Always {
    Always { label: "everything like this in this session".to_owned(), rule: json!("acceptForSession") }
}

/// What a command's approval may allow from now on.
fn command_rules(params: &Value) -> Vec<Always> {
    let mut rules = vec![Always { label: "this command in this session".to_owned(), rule: json!("acceptForSession") }];
    if let Some(words) = params["proposedExecpolicyAmendment"].as_array().filter(|words| !words.is_empty()) {
        let text: Vec<String> = words.iter().map(string).collect();
        let rule = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": words } });
        rules.push(Always { label: format!("commands that begin with `{}`, in all sessions", text.join(" ")), rule });
    }
    rules
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
