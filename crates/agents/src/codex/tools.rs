//! Tools among the response items: calls, and what they gave back.

use serde_json::{Value, json};
use transcript::BlockKind;

use super::message::{Media, media};
use super::record::Record;
use crate::fields::Raw;

/// How far into an output its header reaches.
const HEADER_BYTES: usize = 400;

/// A call, and the pictures that it holds itself.
pub(super) fn call(record: &Record<'_>, with_media: bool) -> (BlockKind, Vec<Media>) {
    let id = record.text(b"call_id").or_else(|| record.text(b"id")).unwrap_or_default();
    let mut pictures = Vec::new();
    let (name, input) = match record.subtype() {
        b"local_shell_call" => ("local_shell".to_owned(), parse(record.get(b"action"))),
        b"web_search_call" => ("web_search".to_owned(), parse(record.get(b"action"))),
        b"tool_search_call" => ("tool_search".to_owned(), arguments(record.get(b"arguments"))),
        b"image_generation_call" => {
            let picture = record.get(b"result").and_then(Raw::string).unwrap_or_default();
            pictures.push(Media::of(&format!("data:image/png;base64,{picture}"), with_media));
            ("image_generation".to_owned(), json!({ "prompt": record.text(b"revised_prompt") }))
        }
        b"custom_tool_call" => (name(record), record.text(b"input").map_or(Value::Null, Value::String)),
        _ => (name(record), arguments(record.get(b"arguments"))),
    };
    (BlockKind::Call { id, name, input }, pictures)
}

/// A tool of an MCP server is named after both; Codex's own namespaces add nothing to a name.
fn name(record: &Record<'_>) -> String {
    let name = record.text(b"name").unwrap_or_default();
    match record.text(b"namespace") {
        Some(namespace) if namespace.starts_with("mcp__") => format!("{namespace}__{name}"),
        _ => name,
    }
}

fn arguments(value: Option<Raw<'_>>) -> Value {
    match value.and_then(Raw::string) {
        Some(text) => serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned())),
        None => parse(value),
    }
}

fn parse(value: Option<Raw<'_>>) -> Value {
    value.and_then(Raw::parse).unwrap_or(Value::Null)
}

/// What a tool gave back.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Output {
    pub call: String,
    pub text: String,
    pub exit_code: Option<i32>,
    pub failed: bool,
    pub pictures: Vec<Media>,
    with_media: bool,
}

/// Reads an output. `is_mcp`: whether it is from an MCP server.
pub(super) fn output(record: &Record<'_>, is_mcp: bool, with_media: bool) -> Output {
    let mut output = Output { call: record.text(b"call_id").unwrap_or_default(), with_media, ..Output::default() };
    if record.subtype() == b"tool_search_output" {
        let tools = record.get(b"tools").map(Raw::elements).into_iter().flatten();
        let names: Vec<String> =
            tools.filter_map(|tool| tool.get(b"name").and_then(Raw::string).map(|name| name.into_owned())).collect();
        output.text = names.join("\n");
        return output;
    }
    let Some(value) = record.get(b"output") else {
        return output;
    };
    if let Some(text) = value.string() {
        output.take_text(&text, is_mcp);
    } else if value.0.starts_with(b"{") {
        // Before 0.50 a failure was an object.
        output.take_text(&value.get(b"content").and_then(Raw::string).unwrap_or_default(), is_mcp);
        output.failed |= value.get(b"success").is_some_and(|success| success.0 == b"false");
    } else {
        output.take_elements(value);
    }
    output.failed |= output.exit_code.is_some_and(|code| code != 0);
    output
}

impl Output {
    fn take_elements(&mut self, elements: Raw<'_>) {
        for element in elements.elements() {
            if let Some(picture) = media(element, self.with_media) {
                self.pictures.push(picture);
            } else if let Some(text) = element.get(b"text").and_then(Raw::string) {
                // An MCP server's output is preceded by its duration, as a separate element.
                if self.text.is_empty() && text.starts_with("Wall time: ") && text.ends_with("\nOutput:") {
                    continue;
                }
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.text.push_str(&text);
            }
        }
    }

    fn take_text(&mut self, text: &str, is_mcp: bool) {
        // The `shell` tool of 2025 gave back JSON.
        if text.starts_with("{\"output\":")
            && let Ok(whole) = serde_json::from_str::<Value>(text)
            && let Some(code) = whole.pointer("/metadata/exit_code").and_then(Value::as_i64)
        {
            self.exit_code = i32::try_from(code).ok();
            self.text = whole["output"].as_str().unwrap_or_default().to_owned();
            return;
        }
        let body = self.take_header(text);
        self.text = if is_mcp { mcp_text(body, &mut self.pictures, self.with_media) } else { body.to_owned() };
        self.failed |= ["unsupported call: ", "unsupported custom tool call: ", "aborted by user"]
            .iter()
            .any(|start| body.starts_with(start));
    }

    /// Notes the exit code and passes over the lines before `Output:`.
    fn take_header<'a>(&mut self, text: &'a str) -> &'a str {
        let starts = ["Chunk ID: ", "Wall time: ", "Exit code: "];
        if !starts.iter().any(|start| text.starts_with(start)) {
            return text;
        }
        let beginning = transcript::text::prefix(text, HEADER_BYTES);
        let (header, body) = match beginning.find("\nOutput:\n") {
            Some(end) => (&text[..end], &text[end + "\nOutput:\n".len()..]),
            // An interrupted command: `Wall time: 0.8 seconds\naborted by user`.
            None => match text.split_once('\n') {
                Some((header, body)) if body.starts_with("aborted by user") => (header, body),
                _ => return text,
            },
        };
        self.exit_code = header.lines().find_map(|line| {
            let code = line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))?;
            code.trim().parse().ok()
        });
        body
    }
}

/// Up to 0.140 an output of text alone was given back as the JSON of the server's answer.
fn mcp_text(body: &str, pictures: &mut Vec<Media>, with_media: bool) -> String {
    let Ok(Value::Array(elements)) = serde_json::from_str::<Value>(body) else {
        return body.to_owned();
    };
    let mut texts = Vec::new();
    for element in &elements {
        match (element["type"].as_str(), element["text"].as_str()) {
            (Some("text"), Some(text)) => texts.push(text),
            (Some("image"), _) => {
                let media_type = element["mimeType"].as_str().unwrap_or("image/*");
                let data = element["data"].as_str().unwrap_or_default();
                pictures.push(Media::of(&format!("data:{media_type};base64,{data}"), with_media));
            }
            _ => return body.to_owned(),
        }
    }
    texts.join("\n")
}

/// Whether an event reports a failed call, and which call.
pub(super) fn failure(record: &Record<'_>) -> Option<String> {
    let text = |value: Option<Raw<'_>>| value.and_then(Raw::string).map(|text| text.into_owned());
    if let Some(item) = record.get(b"item") {
        let failed = matches!(text(item.get(b"status")).as_deref(), Some("failed" | "declined"));
        return failed.then(|| text(item.get(b"id"))).flatten();
    }
    let failed = match record.subtype() {
        b"patch_apply_end" => record.get(b"success").is_some_and(|success| success.0 == b"false"),
        _ => record.get(b"result").is_some_and(|result| match result.get(b"Ok") {
            Some(answer) => answer.get(b"isError").is_some_and(Raw::is_true),
            None => result.get(b"Err").is_some(),
        }),
    };
    failed.then(|| text(record.get(b"call_id"))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_item<T>(payload: &str, check: impl Fn(&Record<'_>) -> T) -> T {
        let line = format!(r#"{{"timestamp":"x","type":"response_item","payload":{payload}}}"#);
        check(&Record::of(line.as_bytes()).unwrap())
    }

    #[test]
    fn calls_are_named_and_their_arguments_parsed() {
        let check = |payload: &str, id: &str, name: &str, input: Value| {
            let expected = BlockKind::Call { id: id.to_owned(), name: name.to_owned(), input };
            assert_eq!(with_item(payload, |record| call(record, false).0), expected, "{payload}");
        };
        check(
            r#"{"type":"function_call","id":"fc_3","name":"exec_command","arguments":"{\"cmd\": \"echo hi\"}","call_id":"call_3"}"#,
            "call_3",
            "exec_command",
            json!({"cmd": "echo hi"}),
        );
        check(
            r#"{"type":"function_call","name":"ping","namespace":"mcp__lab","arguments":"{}","call_id":"c"}"#,
            "c",
            "mcp__lab__ping",
            json!({}),
        );
        check(
            r#"{"type":"function_call","name":"spawn_agent","namespace":"multi_agent_v1","arguments":"not json","call_id":"c"}"#,
            "c",
            "spawn_agent",
            json!("not json"),
        );
        check(
            r#"{"type":"custom_tool_call","status":"completed","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n"}"#,
            "c",
            "apply_patch",
            json!("*** Begin Patch\n"),
        );
        check(
            r#"{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
            "c",
            "local_shell",
            json!({"type": "exec", "command": ["ls"]}),
        );
        check(
            r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"weather"}}"#,
            "ws_1",
            "web_search",
            json!({"type": "search", "query": "weather"}),
        );
        check(r#"{"type":"function_call"}"#, "", "", Value::Null);
    }

    #[test]
    fn outputs_are_stripped_of_their_header() {
        let check =
            |output_json: &str, is_mcp: bool, text: &str, exit_code: Option<i32>, failed: bool, pictures: usize| {
                let payload = format!(r#"{{"type":"function_call_output","call_id":"c","output":{output_json}}}"#);
                let found = with_item(&payload, |record| output(record, is_mcp, false));
                let facts = (found.text.as_str(), found.exit_code, found.failed, found.pictures.len());
                assert_eq!(facts, (text, exit_code, failed, pictures), "{output_json}");
            };
        let exec = |code: &str| {
            format!(r#""Chunk ID: 5c1ee8\nWall time: 0.0000 seconds\n{code}\nOriginal token count: 1\nOutput:\nhi\n""#)
        };
        check(&exec("Process exited with code 0"), false, "hi\n", Some(0), false, 0);
        check(&exec("Process exited with code 3"), false, "hi\n", Some(3), true, 0);
        check(&exec("Process running with session ID 23730"), false, "hi\n", None, false, 0);
        check(r#""Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno\n""#, false, "no\n", Some(1), true, 0);
        check(
            r#""{\"output\":\"hi\\n\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}""#,
            false,
            "hi\n",
            Some(2),
            true,
            0,
        );
        check(r#""{\"output\":\"no metadata\"}""#, false, r#"{"output":"no metadata"}"#, None, false, 0);
        check(r#""Plan updated""#, false, "Plan updated", None, false, 0);
        check(r#""Wall time: is what I say""#, false, "Wall time: is what I say", None, false, 0);
        check(r#""aborted by user after 0.7s""#, false, "aborted by user after 0.7s", None, true, 0);
        check(r#""Wall time: 0.8 seconds\naborted by user""#, false, "aborted by user", None, true, 0);
        check(r#""unsupported call: nonsense""#, false, "unsupported call: nonsense", None, true, 0);
        check(r#"{"content":"it broke","success":false}"#, false, "it broke", None, true, 0);
        let elements = r#"[{"type":"input_text","text":"Wall time: 0.0016 seconds\nOutput:"},{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"high"}]"#;
        check(elements, true, "see", None, false, 1);
        check(
            r#""Wall time: 0.0024 seconds\nOutput:\n[{\"type\":\"text\",\"text\":\"pong\"}]""#,
            true,
            "pong",
            None,
            false,
            0,
        );
        check(
            r#""[{\"type\":\"text\",\"text\":\"pong\"}]""#,
            false,
            r#"[{"type":"text","text":"pong"}]"#,
            None,
            false,
            0,
        );
        check("null", false, "", None, false, 0);
    }

    #[test]
    fn events_tell_which_calls_failed() {
        let check = |payload: &str, expected: Option<&str>| {
            let line = format!(r#"{{"timestamp":"x","type":"event_msg","payload":{payload}}}"#);
            let failed = failure(&Record::of(line.as_bytes()).unwrap());
            assert_eq!(failed.as_deref(), expected, "{payload}");
        };
        check(r#"{"type":"item_completed","item":{"type":"McpToolCall","id":"c","status":"failed"}}"#, Some("c"));
        check(r#"{"type":"item_completed","item":{"type":"McpToolCall","id":"c","status":"completed"}}"#, None);
        check(r#"{"type":"mcp_tool_call_end","call_id":"c","result":{"Ok":{"content":[],"isError":true}}}"#, Some("c"));
        check(r#"{"type":"mcp_tool_call_end","call_id":"c","result":{"Ok":{"content":[]}}}"#, None);
        check(r#"{"type":"mcp_tool_call_end","call_id":"c","result":{"Err":"gone"}}"#, Some("c"));
        check(r#"{"type":"patch_apply_end","call_id":"c","success":false}"#, Some("c"));
    }
}
