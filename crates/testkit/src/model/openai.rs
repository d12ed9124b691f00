//! Answers in OpenAI's Responses API, always streamed: that is all Codex asks for.

use std::io;

use serde_json::{Value, json};

use super::reply::{Reply, Step};
use super::request::Request;
use super::server::Answer;

/// Answers `POST /v1/responses`.
pub(crate) fn answer(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    if let Some((status, body)) = &reply.error {
        let body = if body.get("error").is_some() { body.clone() } else { json!({"error": body}) };
        answer.wait_steps(&reply.steps)?;
        return answer.json(*status, &body);
    }
    let id = answer.new_id("resp_");
    answer.start_events()?;
    send(answer, "response.created", json!({"response": {"id": id, "status": "in_progress"}}))?;
    let mut index = 0;
    for step in &reply.steps {
        let item = match step {
            Step::Delay(_) | Step::Hold(_) => {
                answer.wait(step)?;
                continue;
            }
            Step::Text(text) => message(answer, index, text)?,
            Step::Thinking(text) => json!({
                "type": "reasoning",
                "id": answer.new_id("rs_"),
                "summary": [{"type": "summary_text", "text": text}],
                "encrypted_content": format!("{:A<120}", format!("gAAAAtestkit{}", text.len())),
            }),
            Step::Tool { name, namespace, input } => call(answer, name, namespace.as_deref(), input),
        };
        send(answer, "response.output_item.done", json!({"output_index": index, "item": item}))?;
        index += 1;
    }
    let counts = reply.counts(request.bytes);
    let completed = json!({"response": {
        "id": id,
        "status": "completed",
        "usage": {
            "input_tokens": counts.input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": counts.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": counts.input + counts.output,
        },
    }});
    send(answer, "response.completed", completed)
}

/// Answers `GET /v1/models`. Codex accepts an unknown model with a warning, so the list may be empty.
pub(crate) fn models(answer: &mut Answer) -> io::Result<()> {
    answer.json(200, &json!({"object": "list", "data": [], "models": []}))
}

/// Streams the words of a message, so that they are on the screen while a gate holds the rest.
fn message(answer: &mut Answer, index: usize, text: &str) -> io::Result<Value> {
    let id = answer.new_id("msg_");
    let started = json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []});
    send(answer, "response.output_item.added", json!({"output_index": index, "item": started}))?;
    let delta = json!({"item_id": id, "output_index": index, "content_index": 0, "delta": text});
    send(answer, "response.output_text.delta", delta)?;
    Ok(json!({
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }))
}

fn call(answer: &Answer, name: &str, namespace: Option<&str>, input: &Value) -> Value {
    let mut item = json!({
        "type": "function_call",
        "id": answer.new_id("fc_"),
        "call_id": answer.new_id("call_"),
        "name": name,
        "arguments": input.to_string(),
    });
    // A string instead of an object is a custom tool's free-form input, such as a patch.
    if let Value::String(text) = input {
        item["type"] = json!("custom_tool_call");
        item["id"] = json!(answer.new_id("ctc_"));
        item["input"] = json!(text);
        item.as_object_mut().expect("an object").remove("arguments");
    }
    if let Some(namespace) = namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

fn send(answer: &mut Answer, name: &str, mut event: Value) -> io::Result<()> {
    event["type"] = json!(name);
    answer.event(name, &event)
}

/// Answers `POST /v1/responses/compact`, which Codex asks of OpenAI's own servers alone.
pub(crate) fn compact(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    answer.wait_steps(&reply.steps)?;
    let text: String = reply
        .steps
        .iter()
        .filter_map(|step| if let Step::Text(text) = step { Some(text.as_str()) } else { None })
        .collect();
    let last_user = request
        .messages()
        .into_iter()
        .rfind(|message| message.role == "user")
        .map(|message| message.text())
        .unwrap_or_default();
    let output = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": last_user}]},
        {"type": "compaction", "encrypted_content": text},
    ]);
    answer.json(200, &json!({"output": output}))
}
