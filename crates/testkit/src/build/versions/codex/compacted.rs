//! 0.36 to 0.98: a compaction holds the summary alone.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019a0c31-5e6f-7c21-b3a4-5d6e7f8a9b10";

pub(super) fn session() -> OldSession {
    let meta = json!({
        "id": ID, "timestamp": "2025-10-22T22:00:00.000Z", "cwd": "/home/me/app", "originator": "codex_cli_rs",
        "cli_version": "0.46.0", "instructions": null, "source": "cli", "model_provider": "mock",
    });
    let payloads = vec![
        ("session_meta", meta),
        ("response_item", message("user", "Pack the petrels")),
        ("event_msg", user_message("Pack the petrels")),
        ("response_item", message("assistant", "The petrels are packed.")),
        ("compacted", json!({"message": "Petrels were packed."})),
        ("response_item", message("user", "Move the merlins")),
        ("event_msg", user_message("Move the merlins")),
        ("response_item", message("assistant", "The merlins are moved.")),
    ];
    OldSession {
        agent: "codex",
        versions: "0.36 to 0.98",
        quirk: "compacted has a message and no replacement_history, and no event follows it.",
        id: ID.to_owned(),
        path: rollout("2025-10-22T22-00-00", ID),
        lines: records("2025-10-22", payloads),
        beside: vec![],
        title: "Pack the petrels",
        turns: vec![("Pack the petrels", "The petrels are packed."), ("Move the merlins", "The merlins are moved.")],
        defects: &[],
    }
}
