//! 0.34 to 0.98: nothing says where a task begins or ends.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019b55c1-4d1e-7a02-9c53-1f6f6a1c2d01";

pub(super) fn session() -> OldSession {
    let context = json!({
        "cwd": "/home/me/app", "approval_policy": "on-request", "sandbox_policy": {"type": "read-only"},
        "model": "gpt-5.2-codex", "summary": "auto",
    });
    let meta = json!({
        "id": ID, "timestamp": "2025-12-25T22:45:23.000Z", "cwd": "/home/me/app", "originator": "codex_cli_rs",
        "cli_version": "0.77.0", "instructions": null, "source": "cli", "model_provider": "mock",
    });
    let reasoning = json!({
        "type": "reasoning", "summary": [{"type": "summary_text", "text": "**Looking**"}], "content": null,
        "encrypted_content": null,
    });
    let call = json!({
        "type": "function_call", "name": "shell_command", "arguments": "{\"command\":\"ls\"}", "call_id": "call_1",
    });
    let output = json!({
        "type": "function_call_output", "call_id": "call_1",
        "output": "Exit code: 0\nWall time: 0 seconds\nOutput:\nbirds.txt\n",
    });
    let environment = "<environment_context>\n  <cwd>/home/me/app</cwd>\n</environment_context>";
    let mut payloads = vec![("session_meta", meta), ("response_item", message("user", environment))];
    let turns = vec![
        ("Sort the sandpipers", "The sandpipers are sorted."),
        ("Count the curlews", "There are seven curlews."),
        ("Draw the dunlins", "The dunlins are drawn."),
    ];
    for (prompt, answer) in &turns {
        payloads.extend([
            ("response_item", message("user", prompt)),
            ("event_msg", user_message(prompt)),
            ("turn_context", context.clone()),
            ("response_item", json!({"type": "ghost_snapshot", "ghost_commit": {"id": "9a0ea68b", "parent": null}})),
            ("event_msg", json!({"type": "agent_reasoning", "text": "**Looking**"})),
            ("response_item", reasoning.clone()),
            ("response_item", call.clone()),
            ("response_item", output.clone()),
            ("turn_context", context.clone()),
            ("event_msg", json!({"type": "agent_message", "message": answer})),
            ("response_item", message("assistant", answer)),
            ("event_msg", json!({"type": "token_count", "info": null, "rate_limits": null})),
        ]);
    }
    OldSession {
        agent: "codex",
        versions: "0.34 to 0.98",
        quirk: "No task_started and no task_complete; turn_context has no turn_id, follows the prompt and comes with every request.",
        id: ID.to_owned(),
        path: rollout("2025-12-25T22-45-23", ID),
        lines: records("2025-12-25", payloads),
        beside: vec![],
        title: "Sort the sandpipers",
        turns,
        defects: &[],
    }
}
