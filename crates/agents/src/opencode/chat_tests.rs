use serde_json::{Value, json};
use transcript::SessionId;

use super::*;

fn order(session: ChatSession) -> ChatOrder {
    ChatOrder {
        session,
        directory: "/w".into(),
        title: None,
        model: None,
        mode: None,
        options: Vec::new(),
        is_attended: true,
    }
}

fn id() -> SessionId {
    SessionId::new("ses_1").unwrap()
}

fn update(chat: &mut OpenCodeChat, update: impl Into<Value>) -> Vec<ChatEvent> {
    let params = json!({ "sessionId": "ses_1", "update": update.into() });
    chat.receive(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).events
}

fn prompt(text: &str) -> Action {
    Action::Prompt(Prompt { id: "1".to_owned(), text: text.to_owned(), images: Vec::new() })
}

/// A chat whose session is open.
fn opened(session: ChatSession) -> OpenCodeChat {
    let mut chat = OpenCodeChat::new(order(session));
    assert_eq!(chat.open()[0]["method"], "initialize");
    let capabilities = json!({ "agentCapabilities": { "sessionCapabilities": { "resume": {} } } });
    let loading = chat.receive(&json!({ "id": 1, "result": capabilities })).lines;
    let result = json!({ "sessionId": "ses_1", "configOptions": [
        { "id": "model", "currentValue": "p/m", "options": [{ "value": "p/m", "name": "M" }] },
        { "id": "mode", "currentValue": "build" },
    ] });
    let events = chat.receive(&json!({ "id": loading[0]["id"], "result": result })).events;
    assert!(matches!(&events[0], ChatEvent::Session { id, .. } if id.as_str() == "ses_1"));
    assert_eq!(events[1], ChatEvent::Settings { model: Some("p/m".to_owned()), mode: Some("build".to_owned()) });
    chat
}

#[test]
fn an_existing_session_is_resumed_and_a_new_one_begun() {
    let method = |session: ChatSession, resumes: bool| {
        let mut chat = OpenCodeChat::new(order(session));
        chat.open();
        let capabilities = if resumes { json!({ "resume": {} }) } else { json!({}) };
        let result = json!({ "agentCapabilities": { "sessionCapabilities": capabilities } });
        chat.receive(&json!({ "id": 1, "result": result })).lines[0]["method"].as_str().unwrap().to_owned()
    };
    let existing = || ChatSession::Existing { id: id(), path: "/d/opencode.db/ses_1".into() };
    assert_eq!(method(ChatSession::New(id()), true), "session/new");
    assert_eq!(method(existing(), true), "session/resume");
    assert_eq!(method(existing(), false), "session/load");
}

#[test]
fn an_answer_grows_and_is_complete_before_a_call() {
    let mut chat = opened(ChatSession::New(id()));
    let sent = chat.act(prompt("hi"));
    assert_eq!(sent.lines[0]["method"], "session/prompt");
    assert_eq!(sent.events[1], ChatEvent::TurnStarted);
    let chunk =
        |text: &str| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    assert_eq!(update(&mut chat, chunk("Let me")).len(), 1);
    update(&mut chat, chunk(" see."));
    let call = |status: &str, title: &str, input: Value| {
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status,
        "title": title, "kind": "execute", "rawInput": input })
    };
    let events = update(&mut chat, call("pending", "bash", json!({ "cwd": "/w" })));
    let answer = BlockKind::Answer { text: "Let me see.".to_owned(), model: None };
    assert_eq!(events, [ChatEvent::Block { subagent: None, kind: answer }]);
    let input = json!({ "command": "ls" });
    let events = update(&mut chat, call("in_progress", "ls", input.clone()));
    let called = BlockKind::Call { id: "c".to_owned(), name: "bash".to_owned(), input: input.clone() };
    assert_eq!(events, [ChatEvent::Block { subagent: None, kind: called }]);
    assert_eq!(update(&mut chat, call("in_progress", "ls", input)), []);
    let mut over = call("completed", "ls", Value::Null);
    over["rawOutput"] = json!({ "output": "a\n", "metadata": { "exit": 2 } });
    let output = BlockKind::Output {
        call: "c".to_owned(),
        name: Some("bash".to_owned()),
        text: "a\n".to_owned(),
        error: true,
        exit_code: Some(2),
    };
    assert_eq!(update(&mut chat, over), [ChatEvent::Block { subagent: None, kind: output }]);
    update(&mut chat, chunk("Done."));
    let ended = chat.receive(&json!({ "id": sent.lines[0]["id"], "result": { "stopReason": "end_turn" } })).events;
    assert!(matches!(&ended[0], ChatEvent::Block { kind: BlockKind::Answer { text, .. }, .. } if text == "Done."));
    assert!(matches!(&ended[1], ChatEvent::TurnEnded(end) if end.outcome == TurnOutcome::Completed));
}

#[test]
fn a_permission_is_shown_and_only_the_user_answers() {
    let check = |answer: Answer, expected: Value| {
        let mut chat = opened(ChatSession::New(id()));
        chat.act(prompt("hi"));
        let options = json!([
            { "optionId": "once", "kind": "allow_once", "name": "Allow once" },
            { "optionId": "always", "kind": "allow_always", "name": "Always allow" },
            { "optionId": "reject", "kind": "reject_once", "name": "Reject" },
        ]);
        let call = json!({ "toolCallId": "c", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } });
        let params = json!({ "sessionId": "ses_1", "toolCall": call, "options": options });
        let asked = chat.receive(&json!({ "id": 0, "method": "session/request_permission", "params": params }));
        assert_eq!(asked.lines, [] as [Value; 0], "nobody has answered");
        let [ChatEvent::Request(request)] = asked.events.as_slice() else { panic!("{:?}", asked.events) };
        let lines = chat.act(Action::Answer { request: request.id.clone(), answer }).lines;
        assert_eq!(lines[0], json!({ "jsonrpc": "2.0", "id": 0, "result": { "outcome": expected } }));
        lines.len()
    };
    let selected = |option: &str| json!({ "outcome": "selected", "optionId": option });
    check(Answer::Allow { input: None }, selected("once"));
    check(Answer::Always(0), selected("always"));
    check(Answer::Deny { reason: None, interrupt: false }, selected("reject"));
    assert_eq!(check(Answer::Deny { reason: None, interrupt: true }, json!({ "outcome": "cancelled" })), 2);
}

#[test]
fn a_prompt_waits_for_the_turn_before_it() {
    let mut chat = opened(ChatSession::New(id()));
    let first = chat.act(prompt("one")).lines;
    assert_eq!(chat.act(prompt("two")).lines, [] as [Value; 0]);
    let interrupt = chat.act(Action::Interrupt).lines;
    assert_eq!(interrupt[0]["method"], "session/cancel");
    let next = chat.receive(&json!({ "id": first[0]["id"], "result": { "stopReason": "cancelled" } }));
    assert!(matches!(&next.events[0], ChatEvent::TurnEnded(end) if end.outcome == TurnOutcome::Interrupted));
    assert_eq!(next.lines[0]["params"]["prompt"][0]["text"], "two");
}
