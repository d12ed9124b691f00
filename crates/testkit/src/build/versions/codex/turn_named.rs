//! 0.9x: the turn has an id in `turn_context`, and still no task is recorded.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019c2c24-29ad-72c2-83dd-f3edfa6bf105";
const TURNS: [&str; 2] = ["019c2c24-5000-7000-8000-000000000001", "019c2c25-5000-7000-8000-000000000002"];

pub(super) fn session() -> OldSession {
    let meta = json!({
        "id": ID, "timestamp": "2026-02-05T10:21:33.000Z", "cwd": "/home/me/app", "originator": "codex_cli_rs",
        "cli_version": "0.97.0", "source": "cli", "model_provider": "mock", "base_instructions": {"text": "Help."},
    });
    let mut payloads = vec![("session_meta", meta)];
    let turns = vec![("Hide the herons", "The herons are hidden."), ("Hide the herons", "They are hidden already.")];
    for ((prompt, answer), turn) in turns.iter().zip(TURNS) {
        let context =
            json!({"turn_id": turn, "cwd": "/home/me/app", "approval_policy": "never", "model": "gpt-5.3-codex"});
        let call = json!({"type": "custom_tool_call", "status": "completed", "call_id": turn, "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"});
        let output = json!({"type": "custom_tool_call_output", "call_id": turn, "output": "{\"output\":\"ok\",\"metadata\":{\"exit_code\":0}}"});
        payloads.extend([
            ("turn_context", context.clone()),
            ("response_item", message("developer", "<permissions instructions>")),
            ("response_item", message("user", prompt)),
            ("event_msg", user_message(prompt)),
            ("response_item", call),
            ("response_item", output),
            ("turn_context", context),
            ("response_item", message("assistant", answer)),
        ]);
    }
    OldSession {
        agent: "codex",
        versions: "0.9x",
        quirk: "turn_context names the turn, precedes the prompt and comes again with every request.",
        id: ID.to_owned(),
        path: rollout("2026-02-05T10-21-33", ID),
        lines: records("2026-02-05", payloads),
        beside: vec![],
        title: "Hide the herons",
        turns,
        defects: &[],
    }
}
