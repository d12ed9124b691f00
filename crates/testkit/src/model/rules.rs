//! What the real APIs refuse in a conversation and a double would accept. The rules are those of public documentation and
//! of public reports.

use std::collections::HashSet;

use serde_json::Value;

/// The first rule that a request breaks, in words; nothing where it breaks none. The API is known by the shape.
pub fn broken_rule(body: &Value) -> Option<String> {
    let mut rules = Rules::default();
    if let Some(contents) = body["contents"].as_array() {
        rules.gemini(contents);
    } else if let Some(input) = body["input"].as_array() {
        rules.responses(input);
    } else if let Some(messages) = body["messages"].as_array() {
        let is_chat = |message: &Value| message["role"] == "tool" || message["tool_calls"].is_array();
        if messages.iter().any(is_chat) { rules.chat(messages) } else { rules.anthropic(messages) }
    }
    rules.broken
}

#[derive(Default)]
struct Rules {
    broken: Option<String>,
    ids: HashSet<String>,
}

impl Rules {
    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(what());
        }
    }

    /// Each call needs its result in the next message of the user, and only there.
    fn anthropic(&mut self, messages: &[Value]) {
        // The API joins messages of one role; the client's own notes stand between them.
        let mut joined: Vec<(&str, Vec<&Value>)> = Vec::new();
        for message in messages.iter().filter(|message| message["role"] != "system") {
            let role = message["role"].as_str().unwrap_or_default();
            let blocks: Vec<&Value> = match &message["content"] {
                Value::Array(blocks) => blocks.iter().collect(),
                text => vec![text],
            };
            match joined.last_mut().filter(|(last, _)| *last == role) {
                Some((_, all)) => all.extend(blocks),
                None => joined.push((role, blocks)),
            }
        }
        self.check(joined.first().is_none_or(|(role, _)| *role == "user"), || {
            "the first message is not the user's".into()
        });
        let mut open: Vec<String> = Vec::new();
        for (role, blocks) in joined {
            let mut calls = Vec::new();
            let mut answered = HashSet::new();
            for block in blocks {
                let text = block.as_str().or(block["text"].as_str().filter(|_| block["type"] == "text"));
                self.check(text.is_none_or(|text| !text.trim().is_empty()), || format!("blank text of the {role}"));
                match block["type"].as_str().unwrap_or_default() {
                    "tool_use" => {
                        let id = self.call(&block["id"], &block["name"], 128);
                        self.check(block["input"].is_object(), || format!("arguments of {id} are not an object"));
                        calls.push(id);
                    }
                    "tool_result" => {
                        let id = string(&block["tool_use_id"]);
                        self.check(open.contains(&id), || format!("unexpected result of {id}"));
                        answered.insert(id.clone());
                        let is_text = |part: &Value| part["type"] == "text";
                        let only_text = block["content"].as_array().is_none_or(|parts| parts.iter().all(is_text));
                        self.check(block["is_error"] != true || only_text, || {
                            format!("a picture in the failure of {id}")
                        });
                    }
                    "thinking" => {
                        let signature = block["signature"].as_str().unwrap_or_default();
                        self.check(!signature.is_empty(), || "thinking without a signature".into());
                    }
                    _ => {}
                }
            }
            for id in open.drain(..) {
                self.check(answered.contains(&id), || format!("no result of {id} immediately after it"));
            }
            open = calls;
        }
    }

    /// Each output needs its call, and each call its output.
    fn responses(&mut self, input: &[Value]) {
        let mut open = HashSet::new();
        for item in input {
            let kind = item["type"].as_str().unwrap_or("message");
            match kind {
                "function_call" | "custom_tool_call" => {
                    let id = self.call(&item["call_id"], &item["name"], 64);
                    self.check(id.len() <= 64, || format!("string too long: {id}"));
                    if kind == "function_call" {
                        let arguments = item["arguments"].as_str().map(serde_json::from_str::<Value>);
                        self.check(arguments.is_some_and(|parsed| parsed.is_ok()), || {
                            format!("arguments of {id} are not JSON in a string")
                        });
                    }
                    open.insert(id);
                }
                "function_call_output" | "custom_tool_call_output" => {
                    let id = string(&item["call_id"]);
                    self.check(open.remove(&id), || format!("an output without a call: {id}"));
                }
                _ => {}
            }
            let prefix = match kind {
                "message" => "msg_",
                "function_call" => "fc_",
                "reasoning" => "rs_",
                _ => "",
            };
            let id = item["id"].as_str().unwrap_or(prefix);
            self.check(id.starts_with(prefix), || format!("the id {id} does not begin with {prefix}"));
        }
        self.check(open.is_empty(), || format!("no output of {open:?}"));
    }

    /// As many responses as calls, in the next message of the user.
    fn gemini(&mut self, contents: &[Value]) {
        let mut open: Vec<String> = Vec::new();
        for content in contents {
            let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
            let name = |key: &str| -> Vec<String> {
                parts.iter().filter(|part| part[key].is_object()).map(|part| string(&part[key]["name"])).collect()
            };
            let (calls, responses) = (name("functionCall"), name("functionResponse"));
            for called in &calls {
                let is_legal = is_name(called, 64) && !called.starts_with(|c: char| c.is_ascii_digit() || c == '-');
                self.check(is_legal, || format!("illegal name of a function: {called}"));
            }
            self.check(responses == open, || {
                format!("{} function responses for {} function calls", responses.len(), open.len())
            });
            open = calls;
        }
        self.check(open.is_empty(), || "function calls without responses".into());
    }

    /// Each call is followed by its message.
    fn chat(&mut self, messages: &[Value]) {
        let mut open: Vec<String> = Vec::new();
        for message in messages {
            let id = string(&message["tool_call_id"]);
            if message["role"] == "tool" {
                let found = open.iter().position(|open| *open == id);
                self.check(found.is_some(), || format!("a result without a call: {id}"));
                found.map(|at| open.remove(at));
                continue;
            }
            self.check(open.is_empty(), || format!("no results of {open:?}"));
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let id = self.call(&call["id"], &call["function"]["name"], 64);
                let arguments = call["function"]["arguments"].as_str().map(serde_json::from_str::<Value>);
                self.check(arguments.is_some_and(|parsed| parsed.is_ok()), || {
                    format!("arguments of {id} are not JSON in a string")
                });
                open.push(id);
            }
        }
        self.check(open.is_empty(), || format!("no results of {open:?}"));
    }

    /// A call's id, which must be legal and new, and its name.
    fn call(&mut self, id: &Value, name: &Value, longest: usize) -> String {
        let (id, name) = (string(id), string(name));
        self.check(is_name(&id, 256), || format!("illegal id of a call: {id:?}"));
        self.check(is_name(&name, longest), || format!("illegal name of a tool: {name:?}"));
        let is_new = self.ids.insert(id.clone());
        self.check(is_new, || format!("the id {id} is used twice"));
        id
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn is_name(text: &str, longest: usize) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    !text.is_empty() && text.len() <= longest && text.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: &Value, expected: Option<&str>) {
        let broken = broken_rule(body);
        match expected {
            None => assert_eq!(broken, None, "{body:#}"),
            Some(part) => assert!(broken.as_ref().is_some_and(|what| what.contains(part)), "{broken:?} {body:#}"),
        }
    }

    #[test]
    fn anthropic_wants_each_result_directly_after_its_call() {
        let call = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]});
        let result = |id: &str, error: bool, content: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "is_error": error, "content": content}]});
        let user = || json!({"role": "user", "content": "hello"});
        let messages = |messages: &[Value]| json!({ "messages": messages });
        check(
            &messages(&[user(), call("a"), result("a", true, json!("no")), call("b"), result("b", false, json!(""))]),
            None,
        );
        check(&messages(&[user(), call("a"), user()]), Some("no result of a"));
        check(&messages(&[user(), result("a", false, json!(""))]), Some("unexpected result"));
        check(&messages(&[user(), call("a"), result("a", false, json!("")), call("a")]), Some("used twice"));
        check(&messages(&[user(), call("a b")]), Some("illegal id"));
        check(&messages(&[user(), call("a"), result("a", true, json!([{"type": "image"}]))]), Some("picture"));
        check(&messages(&[json!({"role": "user", "content": " "})]), Some("blank"));
        check(&messages(&[json!({"role": "assistant", "content": "x"})]), Some("first message"));
        check(
            &messages(&[user(), json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]})]),
            Some("signature"),
        );
    }

    #[test]
    fn responses_want_pairs_of_calls_and_outputs() {
        let call = |id: &str, arguments: Value| json!({"type": "function_call", "call_id": id, "name": "x", "arguments": arguments});
        let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": ""});
        let input = |items: &[Value]| json!({ "input": items });
        check(&input(&[call("a", json!("{}")), output("a")]), None);
        check(&input(&[call("a", json!("{}"))]), Some("no output"));
        check(&input(&[output("a")]), Some("without a call"));
        check(&input(&[call("a", json!({})), output("a")]), Some("not JSON in a string"));
        check(&input(&[call(&"a".repeat(65), json!("{}"))]), Some("string too long"));
        check(&input(&[json!({"type": "message", "id": "x", "role": "user"})]), Some("does not begin with msg_"));
    }

    #[test]
    fn gemini_wants_as_many_responses_as_calls() {
        let call = |name: &str| json!({"functionCall": {"name": name}});
        let response = |name: &str| json!({"functionResponse": {"name": name}});
        let contents = |parts: [Vec<Value>; 2]| json!({"contents": [{"role": "model", "parts": parts[0]}, {"role": "user", "parts": parts[1]}]});
        check(&contents([vec![call("a"), call("b")], vec![response("a"), response("b")]]), None);
        check(&contents([vec![call("a")], vec![response("a"), response("a")]]), Some("2 function responses for 1"));
        check(&contents([vec![], vec![response("a")]]), Some("1 function responses for 0"));
        check(&contents([vec![call("1a")], vec![response("1a")]]), Some("illegal name"));
    }

    #[test]
    fn chat_completions_want_a_message_for_each_call() {
        let call =
            json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{}"}}]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
        let user = json!({"role": "user", "content": "x"});
        check(&json!({"messages": [user, call, result("a"), user]}), None);
        check(&json!({"messages": [user, call, user]}), Some("no results"));
        check(&json!({"messages": [user, result("a")]}), Some("without a call"));
    }
}
