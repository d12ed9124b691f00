//! An MCP server whose tool `ask` asks the user (an elicitation) and returns the answer as it got it. Its argument is the
//! request, so a test decides what is asked.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

pub(super) fn run() -> ExitCode {
    let mut lines = io::stdin().lock().lines();
    let mut call = Value::Null;
    while let Some(Ok(line)) = lines.next() {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let id = &message["id"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "elicit", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{
                "name": "ask", "description": "Ask the user", "inputSchema": { "type": "object" },
                "annotations": { "readOnlyHint": true },
            }] }),
            Some("tools/call") => {
                call = id.clone();
                print(&json!({
                    "jsonrpc": "2.0", "id": "asked", "method": "elicitation/create",
                    "params": message["params"]["arguments"],
                }));
                continue;
            }
            // Notifications, and requests that it can't serve.
            Some(_) if id.is_null() => continue,
            Some(_) => {
                print(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown" } }));
                continue;
            }
            None if *id == "asked" => {
                let answer = message.get("result").or(message.get("error")).unwrap_or(&Value::Null).to_string();
                let content = json!({ "content": [{ "type": "text", "text": answer }] });
                print(&json!({ "jsonrpc": "2.0", "id": call, "result": content }));
                continue;
            }
            None => continue,
        };
        print(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }
    ExitCode::SUCCESS
}

fn print(message: &Value) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}
