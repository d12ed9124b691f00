//! Files that other programs write for Codex to resume: messages alone.

use serde_json::json;

use super::{OldSession, message, records, rollout};

const ID: &str = "01a1e0f5-2b3c-7b44-8d5e-6f7a8b9c0d02";

pub(super) fn session() -> OldSession {
    let meta = json!({"id": ID, "timestamp": "2026-11-01T08:00:00.000Z", "cwd": "/home/me/app",
        "originator": "a_script", "cli_version": "0.0.0", "model_provider": "mock"});
    let payloads = vec![
        ("session_meta", meta),
        ("response_item", message("user", "Rinse the razorbills")),
        ("response_item", message("assistant", "The razorbills are rinsed.")),
        ("response_item", message("user", "Shelve the shearwaters")),
    ];
    OldSession {
        agent: "codex",
        versions: "made by hand",
        quirk: "No events at all, and the last prompt ends the file.",
        id: ID.to_owned(),
        path: rollout("2026-11-01T08-00-00", ID),
        lines: records("2026-11-01", payloads),
        beside: vec![],
        title: "Rinse the razorbills",
        turns: vec![("Rinse the razorbills", "The razorbills are rinsed."), ("Shelve the shearwaters", "")],
        defects: &[],
    }
}
