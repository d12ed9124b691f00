//! Until September 2025: items without anything around them.

use serde_json::json;

use super::{OldSession, message};

const ID: &str = "5973b6c0-94b8-487b-a530-2aeb6098ae04";

pub(super) fn session() -> OldSession {
    let environment = "<environment_context>\nCurrent working directory: /home/me/app\nApproval policy: never\n</environment_context>";
    let lines = vec![
        json!({"id": ID, "timestamp": "2025-07-03T12:00:00.000Z", "instructions": null, "git": {"branch": "main"}}),
        json!({"record_type": "state"}),
        message("user", environment),
        message("user", "Weigh the wagtails"),
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Scales."}]}),
        json!({"type": "function_call", "id": "fc_1", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "call_1"}),
        json!({"type": "function_call_output", "call_id": "call_1", "output": "{\"output\":\"wagtails\\n\",\"metadata\":{\"exit_code\":0}}"}),
        message("assistant", "The wagtails are weighed."),
        json!({"record_type": "state"}),
        message("user", "Tag the terns"),
        message("assistant", "The terns are tagged."),
    ];
    OldSession {
        agent: "codex",
        versions: "until September 2025",
        quirk: "Lines are bare items, and Codex doesn't read them any more.",
        id: ID.to_owned(),
        path: format!("sessions/2025/07/03/rollout-2025-07-03T12-00-00-{ID}.jsonl").into(),
        lines,
        beside: vec![],
        title: "Weigh the wagtails",
        turns: vec![("Weigh the wagtails", "The wagtails are weighed."), ("Tag the terns", "The terns are tagged.")],
        defects: &["old-format"],
    }
}
