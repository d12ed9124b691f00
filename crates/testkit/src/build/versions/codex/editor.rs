//! The editors' extension: each prompt begins with what is open in the editor.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019a0c31-5e6f-7c21-b3a4-5d6e7f8a9b03";

pub(super) fn session() -> OldSession {
    let meta = json!({
        "id": ID, "timestamp": "2025-10-22T09:10:11.000Z", "cwd": "/home/me/app", "originator": "codex_vscode",
        "cli_version": "0.47.0-alpha.1", "instructions": null, "source": "vscode", "model_provider": "mock",
    });
    let environment = "<environment_context>\n  <cwd>/home/me/app</cwd>\n</environment_context>";
    let mut payloads = vec![("session_meta", meta), ("response_item", message("user", environment))];
    let turns = vec![
        ("Feed the fulmars", "The fulmars are fed."),
        ("Group the guillemots\n\n- by age", "The guillemots are grouped."),
    ];
    for (request, answer) in &turns {
        let prompt = format!(
            "# Context from my IDE setup:\n\n## Active file: src/birds.ts\n\n## Open tabs:\n- birds.ts: src/birds.ts\n\n\
             ## My request for Codex:\n{request}\n"
        );
        payloads.extend([
            ("turn_context", json!({"cwd": "/home/me/app", "approval_policy": "on-request", "model": "gpt-5-codex"})),
            ("response_item", message("user", &prompt)),
            ("event_msg", user_message(&prompt)),
            ("response_item", message("assistant", answer)),
        ]);
    }
    OldSession {
        agent: "codex",
        versions: "extensions for editors",
        quirk: "What is open in the editor precedes the request; turn_context precedes the prompt.",
        id: ID.to_owned(),
        path: rollout("2025-10-22T09-10-11", ID),
        lines: records("2025-10-22", payloads),
        beside: vec![],
        title: "Feed the fulmars",
        turns,
        defects: &[],
    }
}
