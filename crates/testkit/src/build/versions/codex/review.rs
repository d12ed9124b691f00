//! 0.77 and 0.118: the thread of a review names no parent.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019b5786-a300-7000-8000-000000000006";
/// Begins in the fourth second of its parent.
const REVIEW: &str = "019b5786-b368-7000-8000-000000000007";

pub(super) fn session() -> OldSession {
    let meta = |id: &str, source: serde_json::Value| {
        json!({
            "id": id, "timestamp": "2025-12-25T22:00:00.000Z", "cwd": "/home/me/app", "originator": "codex_cli_rs",
            "cli_version": "0.77.0", "instructions": null, "source": source, "model_provider": "mock",
        })
    };
    let review = "Look over the lapwings";
    let payloads = vec![
        ("session_meta", meta(ID, json!("cli"))),
        ("response_item", message("user", "Ring the ruffs")),
        ("event_msg", user_message("Ring the ruffs")),
        ("response_item", message("assistant", "The ruffs are ringed.")),
        (
            "event_msg",
            json!({"type": "entered_review_mode", "target": {"type": "uncommittedChanges"}, "user_facing_hint": "current changes"}),
        ),
        ("event_msg", user_message(review)),
        ("event_msg", user_message(review)),
        ("event_msg", json!({"type": "exited_review_mode", "review_output": null})),
        ("response_item", message("user", "<user_action>\n  <action>review</action>\n</user_action>")),
        ("response_item", message("assistant", "The review found nothing.")),
    ];
    let helper = vec![
        ("session_meta", meta(REVIEW, json!({"subagent": "review"}))),
        ("response_item", message("user", review)),
        ("event_msg", user_message(review)),
        ("response_item", message("assistant", "Nothing is wrong with the lapwings.")),
    ];
    OldSession {
        agent: "codex",
        versions: "0.77 to 0.118",
        quirk: "A review's thread names no parent and is found by its time and directory.",
        id: ID.to_owned(),
        path: rollout("2025-12-25T22-00-00", ID),
        lines: records("2025-12-25", payloads),
        beside: vec![(rollout("2025-12-25T22-00-04", REVIEW), records("2025-12-25", helper))],
        title: "Ring the ruffs",
        turns: vec![("Ring the ruffs", "The ruffs are ringed."), (review, "The review found nothing.")],
        defects: &[],
    }
}
