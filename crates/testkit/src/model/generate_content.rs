//! Answers in Google's Gemini API, which Gemini CLI speaks, and what that API rejects.

use std::io;

use serde_json::{Value, json};

use super::reply::{Reply, Step};
use super::request::Request;
use super::server::Answer;

/// Answers `POST /v1beta/models/MODEL:streamGenerateContent` and `:generateContent`.
pub(crate) fn answer(answer: &mut Answer, request: &Request, reply: &Reply) -> io::Result<()> {
    if let Err(fault) = check(&request.body) {
        return refuse(answer, 400, &fault, "INVALID_ARGUMENT");
    }
    if let Some((status, body)) = &reply.error {
        answer.wait_steps(&reply.steps)?;
        let message = body["message"].as_str().unwrap_or("refused").to_owned();
        return refuse(answer, *status, &message, body["type"].as_str().unwrap_or("UNAVAILABLE"));
    }
    let counts = reply.counts(request.bytes);
    let usage = json!({
        "promptTokenCount": counts.input,
        "candidatesTokenCount": counts.output,
        "totalTokenCount": counts.input + counts.output,
    });
    let id = answer.new_id("response-");
    let chunk = |parts: Vec<Value>, is_last: bool| {
        let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
        let mut chunk = json!({ "modelVersion": "mock-model", "responseId": id });
        if is_last {
            candidate["finishReason"] = json!("STOP");
            chunk["usageMetadata"] = usage.clone();
        }
        chunk["candidates"] = json!([candidate]);
        chunk
    };
    if !request.wants_stream() {
        answer.wait_steps(&reply.steps)?;
        let parts = reply.steps.iter().filter_map(|step| part(answer, step)).collect();
        return answer.json(200, &chunk(parts, true));
    }
    answer.start_events()?;
    for step in &reply.steps {
        match part(answer, step) {
            Some(part) => answer.data(&chunk(vec![part], false).to_string())?,
            None => answer.wait(step)?,
        }
    }
    answer.data(&chunk(vec![json!({ "text": "" })], true).to_string())
}

/// Answers `:countTokens`.
pub(crate) fn count_tokens(answer: &mut Answer, request: &Request) -> io::Result<()> {
    answer.json(200, &json!({ "totalTokens": request.bytes / 4 }))
}

fn refuse(answer: &mut Answer, status: u16, message: &str, kind: &str) -> io::Result<()> {
    answer.json(status, &json!({ "error": { "code": status, "message": message, "status": kind } }))
}

fn part(answer: &Answer, step: &Step) -> Option<Value> {
    match step {
        Step::Text(text) => Some(json!({ "text": text })),
        Step::Thinking(text) => Some(json!({ "text": text, "thought": true })),
        Step::Tool { name, input, .. } => {
            let id = answer.new_id("call");
            Some(
                json!({ "functionCall": { "id": id, "name": name, "args": input }, "thoughtSignature": "c2lnbmF0dXJl" }),
            )
        }
        Step::Delay(_) | Step::Hold(_) => None,
    }
}

/// What the real API would reject in a conversation.
pub(crate) fn check(body: &Value) -> Result<(), String> {
    let contents = body["contents"].as_array().filter(|contents| !contents.is_empty());
    let contents = contents.ok_or("contents are required")?;
    let mut calls: Vec<&Value> = Vec::new();
    for (place, content) in contents.iter().enumerate() {
        let role = content["role"].as_str().unwrap_or("user");
        if !matches!(role, "user" | "model") {
            return Err(format!("Please use a valid role: user, model. (contents[{place}])"));
        }
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if parts.is_empty() {
            return Err(format!("contents[{place}].parts must not be empty"));
        }
        let of = |key: &str| parts.iter().map(|part| &part[key]).filter(|value| !value.is_null()).collect::<Vec<_>>();
        let (new_calls, responses) = (of("functionCall"), of("functionResponse"));
        if responses.len() != calls.len() {
            return Err(format!(
                "Please ensure that the number of function response parts is equal to the number of function call parts \
                 of the function call turn. (contents[{place}]: {} calls, {} responses)",
                calls.len(),
                responses.len()
            ));
        }
        for (call, response) in calls.iter().zip(&responses) {
            let is_pair = |response: &&&Value| response["name"] == call["name"];
            if !responses.iter().any(|response| is_pair(&response)) {
                return Err(format!("no function response for {} (contents[{place}])", call["name"]));
            }
            if !response["response"].is_object() {
                return Err(format!("function_response.response must be an object (contents[{place}])"));
            }
        }
        if role == "user" && !new_calls.is_empty() || role == "model" && !responses.is_empty() {
            return Err(format!("a function call or response has the wrong role (contents[{place}])"));
        }
        if let Some(name) = new_calls.iter().filter_map(|call| call["name"].as_str()).find(|name| !is_name(name)) {
            return Err(format!("Invalid function name {name}"));
        }
        calls = new_calls;
    }
    match contents.last().and_then(|content| content["role"].as_str()) {
        Some("model") => Err("the last content must be the user's".to_owned()),
        _ if !calls.is_empty() => Err("the last function call has no response".to_owned()),
        _ => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    first && name.len() <= 64 && letters.all(|letter| letter.is_ascii_alphanumeric() || "_.:-".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_would_reject_is_rejected() {
        let user = |parts: Value| json!({ "role": "user", "parts": parts });
        let model = |parts: Value| json!({ "role": "model", "parts": parts });
        let text = || json!([{ "text": "hi" }]);
        let call = || json!({ "functionCall": { "name": "ls", "args": {} } });
        let result = || json!({ "functionResponse": { "name": "ls", "response": { "output": "a" } } });
        let check = |contents: Value, fault: Option<&str>| {
            let found = check(&json!({ "contents": contents })).err();
            let fits = found
                .as_deref()
                .zip(fault)
                .map_or(found.is_none() == fault.is_none(), |(found, fault)| found.contains(fault));
            assert!(fits, "{contents}: {found:?}");
        };
        check(json!([user(text())]), None);
        check(json!([user(text()), model(json!([call(), call()])), user(json!([result(), result()]))]), None);
        check(json!([]), Some("required"));
        check(json!([user(json!([]))]), Some("empty"));
        check(json!([{ "role": "assistant", "parts": [{ "text": "x" }] }]), Some("valid role"));
        check(
            json!([user(text()), model(json!([call()])), user(json!([result(), result()]))]),
            Some("1 calls, 2 responses"),
        );
        check(json!([user(text()), model(json!([call()])), user(text())]), Some("1 calls, 0 responses"));
        check(json!([user(json!([result()]))]), Some("0 calls, 1 responses"));
        check(json!([user(text()), model(text())]), Some("the user's"));
        let odd = json!({ "functionCall": { "name": "a b", "args": {} } });
        check(json!([user(text()), model(json!([odd])), user(json!([result()]))]), Some("Invalid function name"));
    }
}
