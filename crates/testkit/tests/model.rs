//! The model double, asked by hand: what real agents rely on, without the real agents.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::model::{Block, Kind, Model, Progress, Reply, Request};
use testkit::{Gate, poll};

/// Sends a request and returns the status and the body.
fn ask(model: &Model, method: &str, target: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", model.port())).expect("the double");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    write!(stream, "{method} {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .expect("sending");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("receiving");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

fn claude_turn(prompt: &str) -> Value {
    json!({
        "model": "m", "stream": false, "max_tokens": 1000, "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>not typed</system-reminder>"},
            {"type": "text", "text": prompt},
        ]}],
    })
}

fn codex_turn(prompt: &str) -> Value {
    json!({
        "model": "m", "stream": true, "prompt_cache_key": "thread-1",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]},
            {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a\nb"},
        ],
    })
}

/// The events of a stream as JSON.
fn events(body: &str) -> Vec<Value> {
    body.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

#[test]
fn a_turn_takes_the_next_reply_and_then_counts() {
    let model = Model::start();
    model.push(Reply::text("first")).push(Reply::text("second"));
    let said = |number: usize| {
        let (status, body) = ask(&model, "POST", "/v1/messages?beta=true", &claude_turn("hello"));
        assert_eq!(status, 200, "answer {number}");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        body["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    assert_eq!([said(1), said(2), said(3)], ["first", "second", "ok 3"]);
    assert_eq!(model.queued(), 0);
    assert_eq!(model.last_turn().prompts(), ["hello"]);
    assert_eq!(model.last_turn().query, "beta=true");
}

#[test]
fn side_requests_leave_the_queue_alone() {
    let model = Model::start();
    model.push(Reply::text("for the turn"));
    let title =
        json!({"system": [{"type": "text", "text": "Write a title"}], "messages": [{"role": "user", "content": "x"}]});
    let compaction = json!({"tools": [{"name": "Bash"}], "messages": [
        {"role": "user", "content": "CRITICAL: text only.\nYour task is to create a detailed summary of the conversation so far"},
    ]});
    let codex_title = json!({"input": [{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "Generate a concise, single-line task title of at most 36 characters"},
    ]}]});
    let codex_compaction = json!({"input": [{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary"},
    ]}]});
    let cases = [
        ("POST", "/v1/messages", title, Kind::Title, 200),
        ("POST", "/v1/messages", compaction, Kind::Compaction, 200),
        ("POST", "/v1/messages/count_tokens", claude_turn("x"), Kind::CountTokens, 200),
        ("POST", "/v1/responses", codex_title, Kind::Title, 200),
        ("POST", "/v1/responses", codex_compaction, Kind::Compaction, 200),
        ("HEAD", "/", Value::Null, Kind::Other, 200),
        ("GET", "/v1/models", Value::Null, Kind::Other, 200),
        ("GET", "/v1/organizations", Value::Null, Kind::Other, 404),
    ];
    for (method, target, body, kind, status) in cases {
        assert_eq!(ask(&model, method, target, &body).0, status, "{method} {target}");
        assert_eq!(model.requests().pop().expect("a request").kind, kind, "{method} {target}");
    }
    assert_eq!(model.queued(), 1);
}

#[test]
fn a_stream_of_messages_holds_every_block_in_order() {
    let model = Model::start();
    let long = "ü".repeat(10_000);
    model.push(
        Reply::new()
            .thinking("hm")
            .say(&long)
            .call("Bash", json!({"command": "ls"}))
            .call("Read", json!({}))
            .usage(7, 9),
    );
    let mut request = claude_turn("hello");
    request["stream"] = json!(true);
    let (_, body) = ask(&model, "POST", "/v1/messages", &request);
    let events = events(&body);
    let starts: Vec<&str> = events.iter().filter_map(|event| event["content_block"]["type"].as_str()).collect();
    assert_eq!(starts, ["thinking", "text", "tool_use", "tool_use"]);
    let text: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, long);
    let input: String = events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(input, r#"{"command":"ls"}{}"#);
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    assert_eq!(end["usage"], json!({"input_tokens": 7, "output_tokens": 9}));
}

#[test]
fn a_response_is_streamed_for_codex_and_its_items_are_normalised() {
    let model = Model::start();
    model.push(Reply::new().thinking("hm").say("hello").call("exec_command", json!({"cmd": "ls"})).usage(7, 9));
    let (_, body) = ask(&model, "POST", "/v1/responses", &codex_turn("typed"));
    let events = events(&body);
    let items: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .filter_map(|event| event["item"]["type"].as_str())
        .collect();
    assert_eq!(items, ["reasoning", "message", "function_call"]);
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[events.len() - 1]["response"]["usage"]["total_tokens"], 16);
    let request = model.last_turn();
    assert_eq!(request.session.as_deref(), Some("thread-1"));
    assert_eq!(request.prompts(), ["typed"]);
    let blocks: Vec<Block> = request.messages().into_iter().skip(2).flat_map(|message| message.blocks).collect();
    let call = Block::ToolUse { id: "c1".into(), name: "exec_command".into(), input: json!({"cmd": "ls"}) };
    assert_eq!(blocks, [call, Block::ToolResult { id: "c1".into(), text: "a\nb".into() }]);
}

#[test]
fn rules_come_before_the_queue_and_the_newest_first() {
    let model = Model::start();
    model.push(Reply::text("queue"));
    model.on(|request: &Request| request.prompt()?.contains("weather").then(|| Reply::text("rain")));
    model.on(|request| request.prompt()?.contains("weather today").then(|| Reply::text("sun")));
    for (prompt, answer) in [("weather", "rain"), ("weather today", "sun"), ("else", "queue")] {
        let (_, body) = ask(&model, "POST", "/v1/messages", &claude_turn(prompt));
        assert!(body.contains(answer), "{prompt}: {body}");
    }
}

#[test]
fn an_error_reply_has_its_status() {
    let model = Model::start();
    model.push(Reply::error(529, json!({"type": "overloaded_error", "message": "busy"})));
    let (status, body) = ask(&model, "POST", "/v1/messages", &claude_turn("x"));
    assert_eq!(status, 529);
    assert_eq!(serde_json::from_str::<Value>(&body).expect("JSON")["error"]["type"], "overloaded_error");
}

#[test]
fn a_gate_holds_the_answer_until_it_is_opened() {
    let model = Arc::new(Model::start());
    let gate = Gate::closed();
    model.push(Reply::text("before").hold(&gate).say("after"));
    let asking = thread::spawn({
        let model = Arc::clone(&model);
        move || ask(&model, "POST", "/v1/responses", &codex_turn("x")).1
    });
    let request = model.wait_for_prompt("x", Duration::from_secs(5));
    assert_eq!(model.progress(&request), Progress::Open);
    assert!(!asking.is_finished());
    gate.open();
    let body = asking.join().expect("the answer");
    assert!(body.contains("before") && body.contains("after"));
    poll::wait_until("the answer to be sent", Duration::from_secs(5), || {
        model.progress(&request) == Progress::Finished
    });
}

#[test]
fn an_agent_that_hangs_up_abandons_its_answer() {
    let model = Model::start();
    model.push(Reply::text("before").hold(&Gate::closed()));
    let mut stream = TcpStream::connect(("127.0.0.1", model.port())).expect("the double");
    let body = codex_turn("x").to_string();
    write!(stream, "POST /v1/responses HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("sending");
    let request = model.wait_for_prompt("x", Duration::from_secs(5));
    drop(stream);
    poll::wait_until("the end", Duration::from_secs(5), || model.progress(&request) == Progress::Abandoned);
}

#[test]
fn the_double_ends_with_its_owner_even_when_an_answer_is_held() {
    let model = Model::start();
    model.push(Reply::new().hold(&Gate::closed()));
    let port = model.port();
    let asking = thread::spawn({
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the double");
        let body = codex_turn("x").to_string();
        write!(stream, "POST /v1/responses HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("sending");
        move || stream.read_to_string(&mut String::new())
    });
    model.wait_for_prompt("x", Duration::from_secs(5));
    let started = Instant::now();
    drop(model);
    let _ = asking.join().expect("the end of the answer");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "somebody still listens");
}
