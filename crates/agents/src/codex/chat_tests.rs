use serde_json::{Value, json};
use transcript::SessionId;

use super::CodexChat;
use crate::chat::{Action, Answer, Ask, ChatEvent, ChatOrder, ChatSession, Prompt, Protocol, TurnOutcome};

fn chat() -> CodexChat {
    let id = SessionId::new("1f3a5c60-0000-4000-8000-000000000000").unwrap();
    let session = ChatSession::Existing { id, path: "/work/rollout.jsonl".into() };
    let mode = Some("auto".to_owned());
    let order = ChatOrder {
        session,
        directory: "/work".into(),
        title: None,
        model: None,
        mode,
        options: Vec::new(),
        is_attended: true,
    };
    CodexChat::new(order, Default::default())
}

/// A chat whose thread is loaded.
fn loaded() -> CodexChat {
    let mut chat = chat();
    chat.open();
    chat.receive(&json!({ "id": 1, "result": {} }));
    let thread = json!({ "thread": { "id": "thread-1", "path": "/rollout" }, "model": "gpt",
        "approvalPolicy": "on-request", "sandbox": { "type": "workspaceWrite" } });
    let received = chat.receive(&json!({ "id": 3, "result": thread }));
    let mode = |event: &ChatEvent| matches!(event, ChatEvent::Settings { mode: Some(mode), .. } if mode == "auto");
    assert!(received.events.iter().any(mode), "{:?}", received.events);
    chat
}

fn prompt(text: &str) -> Action {
    Action::Prompt(Prompt { id: "u".to_owned(), text: text.to_owned(), images: Vec::new() })
}

#[test]
fn a_prompt_waits_for_the_thread() {
    let mut chat = chat();
    assert_eq!(chat.open()[0]["method"], "initialize");
    assert!(chat.act(prompt("early")).lines.is_empty());
    let opened = chat.receive(&json!({ "id": 1, "result": {} })).lines;
    let methods: Vec<&str> = opened.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialized", "thread/resume", "model/list"]);
    assert_eq!(opened[1]["params"]["sandbox"], "workspace-write");
    let id = &opened[1]["id"];
    let sent = chat.receive(&json!({ "id": id, "result": { "thread": { "id": "thread-1" } } })).lines;
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["input"][0]["text"]), (&json!("turn/start"), &json!("early")));
}

#[test]
fn a_prompt_in_a_running_turn_joins_it() {
    let mut chat = loaded();
    chat.receive(&json!({ "method": "turn/started", "params": { "turn": { "id": "t1" } } }));
    let sent = chat.act(prompt("more")).lines;
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["expectedTurnId"]), (&json!("turn/steer"), &json!("t1")));
    let stop = chat.act(Action::Interrupt).lines;
    assert_eq!((&stop[0]["method"], &stop[0]["params"]["turnId"]), (&json!("turn/interrupt"), &json!("t1")));
    let turn = json!({ "turn": { "id": "t1", "status": "interrupted" } });
    let events = chat.receive(&json!({ "method": "turn/completed", "params": turn })).events;
    assert!(matches!(&events[..], [ChatEvent::TurnEnded(end)] if end.outcome == TurnOutcome::Interrupted));
    // Codex never answers this for a thread without a turn.
    assert!(chat.act(Action::Interrupt).lines.is_empty());
}

#[test]
fn settings_go_with_the_next_turn_and_no_other() {
    let mut chat = loaded();
    chat.act(Action::SetMode("full-access".to_owned()));
    chat.act(Action::SetModel("gpt-x".to_owned()));
    let sent = &chat.act(prompt("one")).lines[0]["params"];
    assert_eq!(sent["approvalPolicy"], "never");
    assert_eq!(sent["sandboxPolicy"], json!({ "type": "dangerFullAccess" }));
    assert_eq!(sent["model"], "gpt-x");
    let sent = &chat.act(prompt("two")).lines[0]["params"];
    assert!(sent.get("approvalPolicy").is_none() && sent.get("model").is_none(), "{sent}");
    let refused = chat.act(Action::SetMode("yolo".to_owned()));
    assert!(matches!(refused.events[..], [ChatEvent::Refused(_)]));
}

#[test]
fn requests_are_answered_only_by_the_person() {
    let check = |method: &str, params: Value, answer: Answer, expected: Value| {
        let mut chat = loaded();
        let received = chat.receive(&json!({ "id": 7, "method": method, "params": params }));
        assert!(received.lines.is_empty(), "nothing is answered for the person");
        assert!(matches!(&received.events[..], [ChatEvent::Request(asked)] if asked.id == "7"));
        let sent = chat.act(Action::Answer { request: "7".to_owned(), answer: answer.clone() });
        assert_eq!(sent.lines, [expected]);
        let again = chat.act(Action::Answer { request: "7".to_owned(), answer });
        assert!(again.lines.is_empty());
    };
    let command = "item/commandExecution/requestApproval";
    let params = json!({ "itemId": "i", "command": "touch a", "proposedExecpolicyAmendment": ["touch"] });
    let decided = |decision: Value| json!({ "id": 7, "result": { "decision": decision } });
    check(command, params.clone(), Answer::Allow { input: None }, decided(json!("accept")));
    check(command, params.clone(), Answer::Always(0), decided(json!("acceptForSession")));
    let rule = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["touch"] } });
    check(command, params.clone(), Answer::Always(1), decided(rule));
    check(command, params.clone(), Answer::Deny { reason: None, interrupt: false }, decided(json!("decline")));
    check(command, params, Answer::Deny { reason: None, interrupt: true }, decided(json!("cancel")));
    let question = json!({ "questions": [{ "id": "q", "question": "Which?", "options": [{ "label": "A" }] }] });
    let answer = Answer::Answers(vec![("q".to_owned(), vec!["A".to_owned()])]);
    let expected = json!({ "id": 7, "result": { "answers": { "q": { "answers": ["A"] } } } });
    check("item/tool/requestUserInput", question, answer, expected);
    // What isn't known is never allowed.
    for method in ["item/permissions/requestApproval", "item/permissions/requestApproval", "pay/bill"] {
        let refused = json!({ "id": 7, "error": { "code": -32601, "message": "not supported" } });
        check(method, json!({}), Answer::Allow { input: None }, refused);
    }
}

#[test]
fn an_unknown_request_is_shown() {
    let mut chat = loaded();
    let events = chat.receive(&json!({ "id": "a", "method": "pay/bill", "params": {} })).events;
    assert!(
        matches!(&events[..], [ChatEvent::Request(asked)] if asked.ask == Ask::Unknown { name: "pay/bill".into() })
    );
    let resolved = json!({ "method": "serverRequest/resolved", "params": { "requestId": "a" } });
    assert_eq!(chat.receive(&resolved).events, [ChatEvent::Withdrawn("a".to_owned())]);
}

/// Without a user, Codex may not ask, whatever its configuration and the session's options say.
#[test]
fn nobody_is_asked_without_a_user() {
    let mut chat = chat();
    chat.order.is_attended = false;
    chat.settings.approval = Some("on-request".to_owned());
    let params = chat.load_thread()["params"].clone();
    assert_eq!((&params["approvalPolicy"], &params["sandbox"]), (&json!("never"), &json!("workspace-write")));
}
