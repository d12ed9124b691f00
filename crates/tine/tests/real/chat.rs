//! Chats over the structured streams of the real agents, with the model double behind them.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use agents::chat::{
    Action, AgentRequest, Answer, Ask, Chat, ChatEvent, ChatOrder, ChatSession, Prompt, StreamPart, TurnOutcome,
};
use agents::{AgentEnvironment, Cancel, Program};
use serde_json::json;
use testkit::Sandbox;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Gate, Model, Reply, Request};
use transcript::{Agent, BlockKind, SessionId};

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        claude_chats,
        claude_asks_before_it_runs_a_tool,
        claude_is_interrupted,
        claude_ends_with_its_chat,
        claude_passes_on_what_a_server_asks,
    ]);
    use super::{
        claude_asks_before_it_runs_a_tool, claude_chats, claude_ends_with_its_chat, claude_is_interrupted,
        claude_passes_on_what_a_server_asks,
    };
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        codex_chats,
        codex_asks_before_it_runs_a_tool,
        codex_is_interrupted,
        codex_passes_on_what_a_server_asks,
    ]);
    use super::{
        codex_asks_before_it_runs_a_tool, codex_chats, codex_is_interrupted, codex_passes_on_what_a_server_asks,
    };
}

const ID: &str = "22222222-2222-4222-8222-222222222222";
const PATIENCE: Duration = Duration::from_secs(90);

/// A chat, with all that happened in it so far.
struct Talk {
    chat: Chat,
    events: Receiver<ChatEvent>,
    seen: Vec<ChatEvent>,
}

impl Talk {
    fn start(
        sandbox: &Sandbox,
        agent: Agent,
        binary: &Path,
        environment: &[(&'static str, String)],
        directory: &Path,
        (session, mode): (ChatSession, Option<&str>),
    ) -> Talk {
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        let variables = sandbox.environment().iter().map(|(name, value)| (text(name), text(value)));
        let given = environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let program = Program {
            path: binary.to_owned(),
            hidden: std::env::vars_os().map(|(name, _)| text(&name)).collect(),
            environment: variables.chain(given).collect(),
            cancel: Cancel::default(),
        };
        let mode = mode.map(str::to_owned);
        let order = ChatOrder {
            session,
            directory: directory.to_owned(),
            title: None,
            model: None,
            mode,
            options: Vec::new(),
            is_attended: true,
        };
        let protocol = agents::open(agent, &AgentEnvironment::default()).chat(&program, order).unwrap();
        let (sender, events) = mpsc::channel();
        let chat = Chat::start(&program, directory, protocol, move |event| drop(sender.send(event))).unwrap();
        Talk { chat, events, seen: Vec::new() }
    }

    fn act(&mut self, action: Action) {
        self.seen.extend(self.chat.act(action));
    }

    fn prompt(&mut self, number: u8, text: &str) {
        let id = format!("33333333-3333-4333-8333-3333333333{number:02}");
        self.act(Action::Prompt(Prompt { id, text: text.to_owned(), images: Vec::new() }));
    }

    /// Waits for an event and returns what `find` makes of it.
    #[track_caller]
    fn until<T>(&mut self, what: &str, find: impl Fn(&ChatEvent) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let Ok(event) = self.events.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) else {
                panic!("no {what} in {:#?}", self.seen);
            };
            let found = find(&event);
            self.seen.push(event);
            if let Some(found) = found {
                return found;
            }
        }
    }

    #[track_caller]
    fn turn_ends(&mut self) -> TurnOutcome {
        self.until("end of the turn", |event| match event {
            ChatEvent::TurnEnded(end) => Some(end.outcome.clone()),
            _ => None,
        })
    }

    #[track_caller]
    fn request(&mut self) -> AgentRequest {
        self.until("request", |event| match event {
            ChatEvent::Request(request) => Some(request.clone()),
            _ => None,
        })
    }

    #[track_caller]
    fn session(&mut self) -> String {
        let id = |event: &ChatEvent| match event {
            ChatEvent::Session { id, .. } => Some(id.to_string()),
            _ => None,
        };
        match self.seen.iter().rev().find_map(id) {
            Some(id) => id,
            None => self.until("session", id),
        }
    }

    /// All finished answers.
    fn answers(&self) -> Vec<&str> {
        let found = self.seen.iter().filter_map(|event| match event {
            ChatEvent::Block { kind: BlockKind::Answer { text, .. }, .. } => Some(text.as_str()),
            _ => None,
        });
        found.collect()
    }

    /// What streamed in of answers.
    fn streamed(&self) -> String {
        let found = self.seen.iter().filter_map(|event| match event {
            ChatEvent::Delta { part: StreamPart::Answer, text, .. } => Some(text.as_str()),
            _ => None,
        });
        found.collect()
    }

    /// The outputs of tools, and whether each is an error.
    fn outputs(&self) -> Vec<(&str, bool)> {
        let found = self.seen.iter().filter_map(|event| match event {
            ChatEvent::Block { kind: BlockKind::Output { text, error, .. }, .. } => Some((text.as_str(), *error)),
            _ => None,
        });
        found.collect()
    }
}

fn claude_talk(claude: &ClaudeDriver<'_>, sandbox: &Sandbox, directory: &Path, session: ChatSession) -> Talk {
    claude.trust(directory);
    Talk::start(sandbox, Agent::Claude, claude.binary(), &claude.environment(), directory, (session, None))
}

fn codex_talk(codex: &CodexDriver<'_>, sandbox: &Sandbox, directory: &Path, session: ChatSession) -> Talk {
    codex.trust(directory);
    Talk::start(sandbox, Agent::Codex, codex.binary(), &codex.environment(), directory, (session, Some("read-only")))
}

fn existing_session(id: &str, path: &Path) -> ChatSession {
    ChatSession::Existing { id: SessionId::new(id).unwrap(), path: path.to_owned() }
}

fn new_session() -> ChatSession {
    ChatSession::New(SessionId::new(ID).unwrap())
}

fn claude_chats(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = claude_talk(&claude, &sandbox, &project, new_session());
    let offer = talk.until("offer", |event| match event {
        ChatEvent::Ready(offer) => Some(offer.clone()),
        _ => None,
    });
    assert!(offer.commands.iter().any(|command| command.name == "compact"), "{offer:?}");
    assert!(!offer.models.is_empty());
    for (number, answer) in [(1, "One **bold** answer."), (2, "Another one.")] {
        model.push(Reply::text(answer));
        talk.prompt(number, &format!("prompt {number}"));
        assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    }
    assert_eq!(talk.answers(), ["One **bold** answer.", "Another one."]);
    assert_eq!(talk.streamed(), "One **bold** answer.Another one.");
    assert_eq!(talk.session(), ID);
    let context = |event: &ChatEvent| matches!(event, ChatEvent::Context(context) if context.used > 0 && context.window.is_some());
    assert!(talk.seen.iter().any(context), "{:#?}", talk.seen);
    drop(talk);
    // The session goes on in a chat of its own.
    let existing = existing_session(ID, &claude.transcript(ID).unwrap());
    let mut talk = claude_talk(&claude, &sandbox, &project, existing);
    talk.prompt(3, "prompt 3");
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    assert_eq!(model.last_turn().prompts(), ["prompt 1", "prompt 2", "prompt 3"]);
    let recorded = std::fs::read_to_string(claude.transcript(ID).unwrap()).unwrap();
    assert!(recorded.contains(r#""entrypoint":"tine""#), "Claude Code hides the sessions of its own SDK");
}

fn claude_asks_before_it_runs_a_tool(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = claude_talk(&claude, &sandbox, &project, new_session());
    let touch =
        |name: &str| Reply::tool("Bash", json!({ "command": format!("touch {name}"), "description": "Touch it" }));
    for name in ["allowed", "denied", "edited"] {
        model.push(touch(name));
    }
    model.push(Reply::text("Done."));
    talk.prompt(1, "make three files");
    let answers = [
        Answer::Allow { input: None },
        Answer::Deny { reason: Some("not this one".to_owned()), interrupt: false },
        Answer::Allow { input: Some(json!({ "command": "touch changed", "description": "Touch another" })) },
    ];
    for answer in answers {
        let request = talk.request();
        let Ask::Tool { name, always, can_edit, .. } = &request.ask else { panic!("{request:?}") };
        assert_eq!((name.as_str(), *can_edit), ("Bash", true));
        assert!(!always.is_empty(), "{request:?}");
        assert!(!project.join("edited").exists());
        talk.act(Action::Answer { request: request.id, answer });
    }
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    let exists = |name: &str| project.join(name).exists();
    assert_eq!(["allowed", "denied", "edited", "changed"].map(exists), [true, false, false, true]);
    assert!(talk.outputs().iter().any(|(text, error)| *error && text.contains("not this one")), "{:?}", talk.outputs());
    // A question.
    let choice = |label: &str| json!({ "label": label, "description": format!("Take {label}") });
    let question = json!({ "questions": [{ "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [choice("Red"), choice("Blue")] }] });
    model.push(Reply::tool("AskUserQuestion", question));
    model.push(Reply::text("Blue it is."));
    talk.prompt(2, "ask me");
    let request = talk.request();
    let Ask::Questions(questions) = &request.ask else { panic!("{request:?}") };
    let labels: Vec<&str> = questions[0].choices.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!((questions[0].text.as_str(), labels), ("Which colour?", vec!["Red", "Blue"]));
    let answer = Answer::Answers(vec![(questions[0].id.clone(), vec!["Blue".to_owned()])]);
    talk.act(Action::Answer { request: request.id, answer });
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    let results = model.last_turn().tool_results();
    assert!(results.last().unwrap().1.contains("Blue"), "{results:?}");
}

fn claude_is_interrupted(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = claude_talk(&claude, &sandbox, &project, new_session());
    let gate = Gate::closed();
    model.push(Reply::text("A long").hold(&gate).say(" story."));
    talk.prompt(1, "tell me");
    talk.until("text", |event| matches!(event, ChatEvent::Delta { .. }).then_some(()));
    talk.act(Action::Interrupt);
    assert_eq!(talk.turn_ends(), TurnOutcome::Interrupted);
    gate.open();
    // A refused request ends a turn, not the chat.
    let refusal = json!({ "type": "invalid_request_error", "message": "no such thing" });
    let is_refused = |request: &Request| request.prompt().as_deref() == Some("fail");
    model.on(move |request| is_refused(request).then(|| Reply::error(400, refusal.clone())));
    talk.prompt(2, "fail");
    let outcome = talk.turn_ends();
    assert!(
        matches!(&outcome, TurnOutcome::Failed(text) if text.contains("no such thing")),
        "{outcome:?} {:#?}",
        talk.seen
    );
    talk.act(Action::SetMode("plan".to_owned()));
    model.push(Reply::text("Planned."));
    talk.prompt(3, "plan it");
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    let planning = |event: &ChatEvent| matches!(event, ChatEvent::Settings { mode: Some(mode), .. } if mode == "plan");
    assert!(talk.seen.iter().any(planning), "{:#?}", talk.seen);
    assert_eq!(talk.answers().last(), Some(&"Planned."));
}

/// Neither the agent nor a tool of it outlives the chat.
fn claude_ends_with_its_chat(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = claude_talk(&claude, &sandbox, &project, new_session());
    let command = "echo $$ > pid; sleep 300";
    model.push(Reply::tool("Bash", json!({ "command": command, "description": "Sleep" })));
    talk.prompt(1, "sleep");
    let request = talk.request();
    talk.act(Action::Answer { request: request.id, answer: Answer::Allow { input: None } });
    let started = || std::fs::read_to_string(project.join("pid")).ok()?.trim().parse::<u32>().ok();
    testkit::poll::wait_until("the tool", PATIENCE, || started().is_some());
    let tool = started().unwrap();
    let agent = talk.chat.pid();
    drop(talk);
    let is_gone = |pid: u32| !Path::new(&format!("/proc/{pid}")).exists();
    testkit::poll::wait_until("the end", Duration::from_secs(10), || is_gone(agent) && is_gone(tool));
}

fn codex_chats(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = codex_talk(&codex, &sandbox, &project, new_session());
    for (number, answer) in [(1, "One **bold** answer."), (2, "Another one.")] {
        model.push(Reply::text(answer));
        talk.prompt(number, &format!("prompt {number}"));
        assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    }
    assert_eq!(talk.answers(), ["One **bold** answer.", "Another one."]);
    assert_eq!(talk.streamed(), "One **bold** answer.Another one.");
    let ready = |event: &ChatEvent| matches!(event, ChatEvent::Ready(offer) if offer.modes.contains(&"auto"));
    assert!(talk.seen.iter().any(ready), "{:#?}", talk.seen);
    let context = |event: &ChatEvent| matches!(event, ChatEvent::Context(context) if context.used > 0 && context.window.is_some());
    assert!(talk.seen.iter().any(context), "{:#?}", talk.seen);
    let id = talk.session();
    drop(talk);
    let mut talk = codex_talk(&codex, &sandbox, &project, existing_session(&id, Path::new("")));
    talk.prompt(3, "prompt 3");
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    assert_eq!(talk.session(), id);
    assert_eq!(model.last_turn().prompts(), ["prompt 1", "prompt 2", "prompt 3"]);
}

fn codex_asks_before_it_runs_a_tool(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = codex_talk(&codex, &sandbox, &project, new_session());
    for name in ["allowed", "denied"] {
        let asking = json!({ "sandbox_permissions": "require_escalated", "justification": "It writes." });
        let mut input = json!({ "cmd": format!("touch {name}") });
        input.as_object_mut().unwrap().extend(asking.as_object().unwrap().clone());
        model.push(Reply::tool("exec_command", input));
    }
    model.push(Reply::text("Done."));
    talk.prompt(1, "make two files");
    for answer in [Answer::Allow { input: None }, Answer::Deny { reason: None, interrupt: false }] {
        let request = talk.request();
        let Ask::Tool { name, input, always, .. } = &request.ask else { panic!("{request:?}") };
        assert_eq!(name, "shell");
        assert!(input["command"].as_str().unwrap().contains("touch"), "{request:?}");
        assert!(!always.is_empty());
        assert!(!project.join("denied").exists());
        talk.act(Action::Answer { request: request.id, answer });
    }
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    assert_eq!(["allowed", "denied"].map(|name| project.join(name).exists()), [true, false]);
}

fn codex_is_interrupted(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let mut talk = codex_talk(&codex, &sandbox, &project, new_session());
    let gate = Gate::closed();
    model.push(Reply::text("A long").hold(&gate).say(" story."));
    talk.prompt(1, "tell me");
    talk.until("text", |event| matches!(event, ChatEvent::Delta { .. }).then_some(()));
    talk.act(Action::Interrupt);
    assert_eq!(talk.turn_ends(), TurnOutcome::Interrupted);
    gate.open();
    model.push(Reply::text("Again."));
    talk.prompt(2, "and now");
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    assert_eq!(talk.answers().last(), Some(&"Again."));
}

/// What the test server asks the user: a form with a field of each kind, or a page to visit.
fn elicitations() -> [serde_json::Value; 2] {
    let properties = json!({
        "email": { "type": "string", "title": "Address", "description": "Where to write", "format": "email" },
        "count": { "type": "integer", "minimum": 1, "maximum": 9 },
        "urgent": { "type": "boolean", "description": "Whether it is urgent" },
        "colour": { "type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"] },
        "note": { "type": "string" },
    });
    let schema =
        json!({ "type": "object", "properties": properties, "required": ["email", "count", "urgent", "colour"] });
    let page =
        json!({ "mode": "url", "message": "Please sign in", "url": "https://example.org/in", "elicitationId": "e1" });
    [json!({ "message": "Please fill this in", "requestedSchema": schema }), page]
}

fn claude_passes_on_what_a_server_asks(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let server = testkit::stand_in::install_elicit(&sandbox);
    sandbox.write(project.join(".mcp.json"), &json!({ "mcpServers": { "forms": { "command": server } } }).to_string());
    claude.settings(&json!({ "enableAllProjectMcpServers": true, "permissions": { "allow": ["mcp__forms__ask"] } }));
    let mut talk = claude_talk(&claude, &sandbox, &project, new_session());
    // 2.1.197 answers a request for a visit to a page itself, with an error.
    answer_a_form(&mut talk, &model, version != "2.1.197", &|arguments| Reply::tool("mcp__forms__ask", arguments));
}

fn codex_passes_on_what_a_server_asks(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let server = testkit::stand_in::install_elicit(&sandbox);
    codex.configure(&format!("[mcp_servers.forms]\ncommand = {:?}", server.display().to_string()));
    let mut talk = codex_talk(&codex, &sandbox, &project, new_session());
    answer_a_form(&mut talk, &model, true, &|arguments| Reply::new().call_in("mcp__forms", "ask", arguments));
}

fn answer_a_form(talk: &mut Talk, model: &Model, takes_pages: bool, call: &dyn Fn(serde_json::Value) -> Reply) {
    let [form, page] = elicitations();
    model.push(call(form.clone()));
    model.push(Reply::text("Done."));
    talk.prompt(1, "ask me");
    let given =
        [("email", "a@b.org"), ("count", "ten"), ("urgent", "yes"), ("colour", "blue"), ("note", "leave empty")];
    let mut answers = given.map(|(name, answer)| (name.to_owned(), vec![answer.to_owned()])).to_vec();
    let request = talk.request();
    let Ask::Questions(questions) = &request.ask else { panic!("{request:?}") };
    let question = |id: &str| questions.iter().find(|question| question.id == id).unwrap();
    assert_eq!(questions.len(), given.len());
    assert!(question("email").text.starts_with("Please fill this in\nAddress (Where to write)"), "{questions:?}");
    // 0.140.0 loses the names of the choices.
    answers[3].1 = vec![question("colour").choices[1].label.clone()];
    let id = request.id.clone();
    talk.act(Action::Answer { request: id.clone(), answer: Answer::Answers(answers.clone()) });
    assert!(talk.seen.iter().any(|event| *event == ChatEvent::Refused("count: enter a number".to_owned())));
    answers[1].1 = vec!["7".to_owned()];
    talk.act(Action::Answer { request: id, answer: Answer::Answers(answers) });
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    let results = model.last_turn().tool_results();
    let got = &results.last().unwrap().1;
    // The agents wrap it differently.
    let got = got.replace('\\', "");
    let parts = ["accept", r#""colour":"blue""#, r#""count":7"#, r#""email":"a@b.org""#, r#""urgent":true"#];
    assert!(parts.iter().all(|part| got.contains(part)) && !got.contains("note"), "{got}");

    model.push(call(form));
    model.push(Reply::text("Done."));
    talk.prompt(2, "ask me again");
    let request = talk.request();
    talk.act(Action::Answer { request: request.id, answer: Answer::Deny { reason: None, interrupt: false } });
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    let results = model.last_turn().tool_results();
    assert!(results.last().unwrap().1.contains("decline"), "{results:?}");

    if !takes_pages {
        return;
    }
    model.push(call(page));
    model.push(Reply::text("Done."));
    talk.prompt(3, "show me a page");
    let request = talk.request();
    let Ask::Consent { from, url, .. } = &request.ask else { panic!("{request:?}") };
    assert_eq!((from.as_str(), url.as_deref()), ("forms", Some("https://example.org/in")));
    talk.act(Action::Answer { request: request.id, answer: Answer::Allow { input: None } });
    assert_eq!(talk.turn_ends(), TurnOutcome::Completed);
    let results = model.last_turn().tool_results();
    assert!(results.last().unwrap().1.contains("accept"), "{results:?}");
}
