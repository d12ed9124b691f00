//! Answers in Anthropic's Messages API, whole or streamed.

use std::io;

use serde_json::{Value, json};

use super::reply::{Reply, Step};
use super::request::Request;
use super::server::Answer;

/// Answers `POST /v1/messages`.
pub(crate) fn answer(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    if let Some((status, body)) = &reply.error {
        let body = if body.get("error").is_some() { body.clone() } else { json!({"type": "error", "error": body}) };
        answer.wait_steps(&reply.steps)?;
        return answer.json(*status, &body);
    }
    if request.wants_stream() { stream(answer, request, reply) } else { whole(answer, request, reply) }
}

/// Answers `POST /v1/messages/count_tokens`.
pub(crate) fn count_tokens(answer: &mut Answer, request: &Request) -> io::Result<()> {
    answer.json(200, &json!({"input_tokens": request.bytes / 4}))
}

fn whole(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    let mut content = Vec::new();
    for step in &reply.steps {
        match step {
            Step::Text(text) => content.push(json!({"type": "text", "text": text})),
            Step::Thinking(text) => {
                content.push(json!({"type": "thinking", "thinking": text, "signature": signature(text)}));
            }
            Step::Tool { name, input, .. } => {
                content
                    .push(json!({"type": "tool_use", "id": answer.new_id("toolu_01"), "name": name, "input": input}));
            }
            Step::Delay(_) | Step::Hold(_) => answer.wait(step)?,
        }
    }
    let counts = reply.counts(request.bytes);
    let mut message = envelope(answer, request, counts.input);
    message["content"] = Value::Array(content);
    message["stop_reason"] = json!(stop_reason(reply));
    message["usage"]["output_tokens"] = json!(counts.output);
    answer.json(200, &message)
}

fn stream(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    let counts = reply.counts(request.bytes);
    answer.start_events()?;
    let message = envelope(answer, request, counts.input);
    send(answer, "message_start", json!({"message": message}))?;
    let mut index = 0;
    for step in &reply.steps {
        let (block, deltas) = match step {
            Step::Text(text) => (
                json!({"type": "text", "text": ""}),
                pieces(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect::<Vec<_>>(),
            ),
            Step::Thinking(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                pieces(text)
                    .into_iter()
                    .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                    .chain([json!({"type": "signature_delta", "signature": signature(text)})])
                    .collect(),
            ),
            Step::Tool { name, input, .. } => (
                json!({"type": "tool_use", "id": answer.new_id("toolu_01"), "name": name, "input": {}}),
                pieces(&input.to_string())
                    .into_iter()
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                    .collect(),
            ),
            Step::Delay(_) | Step::Hold(_) => {
                answer.wait(step)?;
                continue;
            }
        };
        send(answer, "content_block_start", json!({"index": index, "content_block": block}))?;
        for delta in deltas {
            send(answer, "content_block_delta", json!({"index": index, "delta": delta}))?;
        }
        send(answer, "content_block_stop", json!({"index": index}))?;
        index += 1;
    }
    let end = json!({
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": {"input_tokens": counts.input, "output_tokens": counts.output},
    });
    send(answer, "message_delta", end)?;
    send(answer, "message_stop", json!({}))
}

fn send(answer: &mut Answer, name: &str, mut event: Value) -> io::Result<()> {
    event["type"] = json!(name);
    answer.event(name, &event)
}

fn envelope(answer: &Answer, request: &Request, input_tokens: u64) -> Value {
    json!({
        "id": answer.new_id("msg_01"),
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
        },
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.calls_tools() { "tool_use" } else { "end_turn" }
}

/// Real signatures are opaque base64; this one is as long as a short real one and names its text's length.
fn signature(text: &str) -> String {
    format!("{:A<200}==", format!("EtestkitSignature{}", text.len()))
}

/// Cuts a text into deltas on character boundaries, large enough that big texts stay quick.
fn pieces(text: &str) -> Vec<&str> {
    const LENGTH: usize = 4096;
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let end = rest.char_indices().map(|(at, _)| at).find(|at| *at >= LENGTH).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}
