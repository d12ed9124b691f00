use serde_json::{Value, json};
use transcript::{BlockKind, SessionId};

use super::ClaudeChat;
use crate::chat::{Action, Answer, Ask, ChatEvent, ChatOrder, ChatSession, Prompt, Protocol, Received, TurnOutcome};

fn chat() -> ClaudeChat {
    let id = SessionId::new("1f3a5c60-0000-4000-8000-000000000000").unwrap();
    let order = ChatOrder {
        session: ChatSession::New(id),
        directory: "/work".into(),
        title: None,
        model: Some("opus".to_owned()),
        mode: None,
        options: vec!["--verbose".to_owned()],
        is_attended: true,
    };
    ClaudeChat::new(order, String::new())
}

fn receive(chat: &mut ClaudeChat, messages: &[Value]) -> Vec<ChatEvent> {
    let mut events = Vec::new();
    for message in messages {
        let Received { events: more, lines } = chat.receive(message);
        assert!(lines.is_empty(), "nothing is answered for the person: {lines:?}");
        events.extend(more);
    }
    events
}

fn request(id: &str, tool: &str, input: &Value) -> Value {
    let rule = json!({ "type": "addRules", "rules": [{ "toolName": tool, "ruleContent": "touch a" }],
        "behavior": "allow", "destination": "localSettings" });
    let mode = json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" });
    json!({ "type": "control_request", "request_id": id, "request": { "subtype": "can_use_tool", "tool_name": tool,
        "input": input, "tool_use_id": "call", "permission_suggestions": [rule, mode] } })
}

#[test]
fn requests_are_answered_only_by_the_person() {
    let touch = json!({ "command": "touch a" });
    let check = |answer: Answer, expected: Value| {
        let mut chat = chat();
        let events = receive(&mut chat, &[request("r1", "Bash", &touch)]);
        let [ChatEvent::Request(asked)] = events.as_slice() else { panic!("{events:?}") };
        let Ask::Tool { always, .. } = &asked.ask else { panic!("{asked:?}") };
        let labels: Vec<&str> = always.iter().map(|always| always.label.as_str()).collect();
        assert_eq!(labels, ["Bash(touch a) in this project", "acceptEdits mode in this session"]);
        let sent = chat.act(Action::Answer { request: "r1".to_owned(), answer: answer.clone() });
        assert_eq!(sent.lines.len(), 1);
        assert_eq!(sent.lines[0]["response"]["request_id"], "r1");
        assert_eq!(sent.lines[0]["response"]["response"], expected);
        // An answer counts once.
        let again = chat.act(Action::Answer { request: "r1".to_owned(), answer });
        assert!(again.lines.is_empty() && matches!(again.events[..], [ChatEvent::Refused(_)]));
    };
    let other = json!({ "command": "touch b" });
    let allow = |input: &Value| json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": [] });
    check(Answer::Allow { input: None }, allow(&touch));
    check(Answer::Allow { input: Some(other.clone()) }, allow(&other));
    let reason = Some("wait".to_owned());
    let denied = json!({ "behavior": "deny", "message": "wait", "interrupt": false });
    check(Answer::Deny { reason, interrupt: false }, denied);
    // One rule, not all that were suggested.
    let rule = request("", "Bash", &touch)["request"]["permission_suggestions"][0].clone();
    check(Answer::Always(0), json!({ "behavior": "allow", "updatedInput": touch, "updatedPermissions": [rule] }));
}

/// An `input` of another shape than expected ended the process.
#[test]
fn answers_to_questions_of_any_shape_are_given() {
    let check = |input: Value, expected: Value| {
        let mut chat = chat();
        receive(&mut chat, &[request("r", "AskUserQuestion", &input)]);
        let answer = Answer::Answers(vec![("q".to_owned(), vec!["A".to_owned(), "B".to_owned()])]);
        let sent = chat.act(Action::Answer { request: "r".to_owned(), answer });
        assert_eq!(sent.lines[0]["response"]["response"]["updatedInput"], expected, "{input}");
    };
    let answers = json!({ "answers": { "q": "A, B" } });
    check(json!({ "questions": [] }), json!({ "questions": [], "answers": { "q": "A, B" } }));
    for input in [json!("text"), json!(["list"]), json!(7), Value::Null] {
        check(input, answers.clone());
    }
}

#[test]
fn a_request_that_is_not_known_is_shown_and_can_only_be_refused() {
    let mut chat = chat();
    let unknown = json!({ "type": "control_request", "request_id": "r", "request": { "subtype": "pay_bill" } });
    let events = receive(&mut chat, &[unknown]);
    assert!(
        matches!(&events[..], [ChatEvent::Request(asked)] if asked.ask == Ask::Unknown { name: "pay_bill".into() })
    );
    let sent = chat.act(Action::Answer { request: "r".to_owned(), answer: Answer::Allow { input: None } });
    assert_eq!(sent.lines[0]["response"]["subtype"], "error");
}

#[test]
fn a_withdrawn_request_takes_no_answer() {
    let mut chat = chat();
    receive(&mut chat, &[request("r", "Bash", &json!({}))]);
    let events = receive(&mut chat, &[json!({ "type": "control_cancel_request", "request_id": "r" })]);
    assert_eq!(events, [ChatEvent::Withdrawn("r".to_owned())]);
    let sent = chat.act(Action::Answer { request: "r".to_owned(), answer: Answer::Allow { input: None } });
    assert!(sent.lines.is_empty());
}

#[test]
fn outcomes_of_turns() {
    let check = |result: Value, expected: TurnOutcome| {
        let events = receive(&mut chat(), &[result]);
        assert!(matches!(events.last(), Some(ChatEvent::TurnEnded(end)) if end.outcome == expected), "{events:?}");
    };
    let result = |subtype: &str, error: bool, reason: &str| json!({ "type": "result", "subtype": subtype, "is_error": error, "result": "words", "terminal_reason": reason });
    check(result("success", false, "completed"), TurnOutcome::Completed);
    // Errors of the API are reported as a success.
    check(result("success", true, "api_error"), TurnOutcome::Failed("words".to_owned()));
    check(result("error_during_execution", true, "aborted_streaming"), TurnOutcome::Interrupted);
    check(result("error_max_turns", true, "max_turns"), TurnOutcome::Failed("error max turns".to_owned()));
}

#[test]
fn the_context_is_that_of_the_last_request_of_the_session_itself() {
    let usage = json!({ "input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20 });
    let start = |parent: Value, usage: &Value| {
        json!({ "type": "stream_event", "parent_tool_use_id": parent,
            "event": { "type": "message_start", "message": { "usage": usage } } })
    };
    let mut chat = chat();
    let events = receive(&mut chat, &[start(Value::Null, &usage), start(json!("sub"), &json!({ "input_tokens": 9 }))]);
    assert!(matches!(events[..], [ChatEvent::Context(context)] if (context.used, context.cached) == (123, 100)));
}

#[test]
fn arguments_and_prompts() {
    let mut chat = chat();
    let words = chat.arguments();
    assert!(words.windows(2).any(|pair| pair == ["--permission-prompt-tool", "stdio"]), "{words:?}");
    assert!(words.windows(2).any(|pair| pair == ["--model", "opus"]), "{words:?}");
    let prompt = Prompt { id: "u".to_owned(), text: "hi".to_owned(), images: Vec::new() };
    let sent = chat.act(Action::Prompt(prompt));
    assert_eq!(sent.lines, [json!({ "type": "user", "message": { "role": "user", "content": "hi" }, "uuid": "u" })]);
    let result = json!({ "type": "tool_result", "tool_use_id": "c", "is_error": true,
        "content": [{ "type": "text", "text": "no" }, { "type": "image" }] });
    let events = receive(&mut chat, &[json!({ "type": "user", "message": { "content": [result] } })]);
    let [ChatEvent::Block { kind: BlockKind::Output { text, error, .. }, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((text.as_str(), *error), ("no\n(image)", true));
}

#[test]
fn a_result_names_the_windows_of_its_models() {
    let windows = |usage: Value| {
        let result = json!({ "type": "result", "subtype": "success", "modelUsage": usage });
        let events = receive(&mut chat(), &[result]);
        events.into_iter().find_map(|event| match event {
            ChatEvent::TurnEnded(end) => Some(end.windows),
            _ => None,
        })
    };
    let usage = json!({ "big": { "contextWindow": 1_000_000 }, "small": { "contextWindow": 0 }, "old": {} });
    assert_eq!(windows(usage), Some(vec![("big".to_owned(), 1_000_000)]));
    assert_eq!(windows(Value::Null), Some(Vec::new()));
}

/// Without a user, Claude Code denies itself what it would ask for.
#[test]
fn nobody_is_asked_without_a_user() {
    let mut chat = chat();
    chat.order.is_attended = false;
    assert!(!chat.arguments().iter().any(|word| word == "--permission-prompt-tool"), "{:?}", chat.arguments());
}
