//! 0.39 to 0.140: a fork is a copy that begins with its own identity and that of its source.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019aa348-0f00-7000-8000-000000000008";
const SOURCE: &str = "019a9e21-b300-7000-8000-000000000009";

pub(super) fn session() -> OldSession {
    let meta = |id: &str, day: &str, cwd: &str| {
        json!({
            "id": id, "timestamp": format!("{day}T22:00:00.000Z"), "cwd": cwd, "originator": "codex_cli_rs",
            "cli_version": "0.61.0", "instructions": null, "source": "cli", "model_provider": "mock",
        })
    };
    let mut own = meta(ID, "2025-11-20", "/home/me/app");
    own["forked_from_id"] = json!(SOURCE);
    let mut payloads = vec![("session_meta", own), ("session_meta", meta(SOURCE, "2025-11-19", "/home/me/app"))];
    let turns = vec![("Name the nightjars", "The nightjars have names."), ("Oil the owls", "The owls are oiled.")];
    for (prompt, answer) in &turns {
        payloads.extend([
            ("response_item", message("user", prompt)),
            ("event_msg", user_message(prompt)),
            ("turn_context", json!({"cwd": "/home/me/app", "approval_policy": "never", "model": "gpt-5.1-codex"})),
            ("response_item", message("assistant", answer)),
        ]);
    }
    OldSession {
        agent: "codex",
        versions: "0.39 to 0.140",
        quirk: "A fork repeats its source's identity and records; only the first identity is its own.",
        id: ID.to_owned(),
        path: rollout("2025-11-20T22-00-00", ID),
        lines: records("2025-11-20", payloads),
        beside: vec![],
        title: "Name the nightjars",
        turns,
        defects: &[],
    }
}
