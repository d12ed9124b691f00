//! Answers in OpenAI's Chat Completions API, which OpenCode speaks with most providers. Always streamed.
//!
//! What the real API rejects is rejected here too, so that a history with a fault fails the test.

use std::collections::BTreeSet;
use std::io;

use serde_json::{Value, json};

use super::reply::{Reply, Step};
use super::request::Request;
use super::server::Answer;

/// Answers `POST /v1/chat/completions`.
pub(crate) fn answer(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    if let Some(fault) = fault_of(&request.body) {
        let error = json!({"error": {"message": fault, "type": "invalid_request_error", "param": "messages"}});
        return answer.json(400, &error);
    }
    if let Some((status, body)) = &reply.error {
        let body = if body.get("error").is_some() { body.clone() } else { json!({"error": body}) };
        answer.wait_steps(&reply.steps)?;
        return answer.json(*status, &body);
    }
    let id = answer.new_id("chatcmpl-");
    answer.start_events()?;
    chunk(answer, &id, &json!({"role": "assistant", "content": ""}), None)?;
    let mut calls = 0;
    for step in &reply.steps {
        match step {
            Step::Delay(_) | Step::Hold(_) => answer.wait(step)?,
            Step::Text(text) => chunk(answer, &id, &json!({"content": text}), None)?,
            Step::Thinking(text) => chunk(answer, &id, &json!({"reasoning_content": text}), None)?,
            Step::Tool { name, input, .. } => {
                let function = json!({"name": name, "arguments": input.to_string()});
                let call_id = answer.new_id("call_");
                let call = json!({"index": calls, "id": call_id, "type": "function", "function": function});
                chunk(answer, &id, &json!({"tool_calls": [call]}), None)?;
                calls += 1;
            }
        }
    }
    let reason = if calls > 0 { "tool_calls" } else { "stop" };
    chunk(answer, &id, &json!({}), Some(reason))?;
    let counts = reply.counts(request.bytes);
    let usage = json!({
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
    });
    let last = json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "mock-model", "choices": [], "usage": usage});
    answer.data(&last.to_string())?;
    answer.data("[DONE]")
}

fn chunk(answer: &mut Answer, id: &str, delta: &Value, finish: Option<&str>) -> io::Result<()> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk =
        json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "mock-model", "choices": [choice]});
    answer.data(&chunk.to_string())
}

/// What the real API would reject about the messages of a request.
pub(crate) fn fault_of(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Some(format!(
                    "messages[{at}]: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                ));
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Some(format!(
                "messages[{at}]: an assistant message with 'tool_calls' must be followed by tool messages responding to \
                 each 'tool_call_id'; missing: {id}"
            ));
        }
        match role {
            "system" | "user" | "developer" => {}
            "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                let is_empty = message["content"].as_str().unwrap_or_default().is_empty()
                    && message["content"].as_array().is_none_or(Vec::is_empty);
                if calls.is_empty() && is_empty && message.get("reasoning_content").is_none() {
                    return Some(format!("messages[{at}]: an assistant message needs content or tool_calls"));
                }
                for call in calls {
                    let (id, function) = (call["id"].as_str().unwrap_or_default(), &call["function"]);
                    let name = function["name"].as_str().unwrap_or_default();
                    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_letter) {
                        return Some(format!("messages[{at}]: invalid function name {name:?}"));
                    }
                    let arguments = function["arguments"].as_str().map(serde_json::from_str::<Value>);
                    if !matches!(arguments, Some(Ok(_))) {
                        return Some(format!("messages[{at}]: the arguments of {name} are not JSON in a string"));
                    }
                    if id.is_empty() || !open.insert(id) {
                        return Some(format!("messages[{at}]: tool call id {id:?} is missing or used twice"));
                    }
                }
            }
            other => return Some(format!("messages[{at}]: unknown role {other:?}")),
        }
    }
    open.first().map(|id| format!("the tool call {id} has no tool message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_the_api_rejects_is_rejected() {
        let user = json!({"role": "user", "content": "hi"});
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}});
        let assistant = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
        let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
        let check = |messages: Value, expected: Option<&str>| {
            let fault = fault_of(&json!({"messages": messages}));
            assert_eq!(fault.is_some(), expected.is_some(), "{fault:?} {messages}");
            assert!(fault.unwrap_or_default().contains(expected.unwrap_or_default()), "{messages}");
        };
        let both = assistant(json!([call("a"), call("b")]));
        check(json!([user, both, tool("a"), tool("b"), user]), None);
        check(json!([user, both, tool("b"), tool("a")]), None);
        check(json!([user, both, tool("a"), user]), Some("missing: b"));
        check(json!([user, both, tool("a")]), Some("has no tool message"));
        check(json!([user, tool("a")]), Some("must be a response"));
        check(json!([user, both, tool("a"), tool("a")]), Some("must be a response"));
        check(json!([user, assistant(json!([call("a"), call("a")]))]), Some("used twice"));
        check(json!([user, {"role": "assistant", "content": ""}]), Some("needs content"));
        check(json!([user, {"role": "robot", "content": "x"}]), Some("unknown role"));
        let named = json!({"id": "a", "function": {"name": "with space", "arguments": "{}"}});
        check(json!([user, assistant(json!([named])), tool("a")]), Some("invalid function name"));
        let broken = json!({"id": "a", "function": {"name": "bash", "arguments": "{"}});
        check(json!([user, assistant(json!([broken])), tool("a")]), Some("not JSON"));
    }
}
