//! 0.104 to 0.148: tasks are recorded, and going back is an event.

use serde_json::json;

use super::{OldSession, message, records, rollout, user_message};

const ID: &str = "019ea93f-ef00-7000-8000-000000000011";

pub(super) fn session() -> OldSession {
    let meta = json!({
        "id": ID, "timestamp": "2026-06-08T22:00:00.000Z", "cwd": "/home/me/app", "originator": "codex_exec",
        "cli_version": "0.140.0", "source": "exec", "thread_source": "user", "model_provider": "mock",
        "base_instructions": {"text": "Help."},
    });
    let mut payloads = vec![("session_meta", meta)];
    let mut turn = |number: u32, prompt: &str, answer: &str| {
        let id = format!("019ea93f-ef00-7000-8000-0000000000{number}");
        payloads.extend([
            ("event_msg", json!({"type": "task_started", "turn_id": id, "model_context_window": 258_400})),
            ("turn_context", json!({"turn_id": id, "cwd": "/home/me/app", "model": "mock-model"})),
            ("response_item", message("user", prompt)),
            ("event_msg", user_message(prompt)),
            ("event_msg", json!({"type": "agent_message", "message": answer})),
            ("response_item", message("assistant", answer)),
            ("event_msg", json!({"type": "task_complete", "turn_id": id, "last_agent_message": answer})),
        ]);
        if number == 22 {
            payloads.push(("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1})));
        }
    };
    turn(21, "Jot down the jackdaws", "The jackdaws are on paper.");
    turn(22, "Kick the kestrels", "I'd rather not.");
    turn(23, "Keep the kingfishers", "The kingfishers are kept.");
    OldSession {
        agent: "codex",
        versions: "0.104 to 0.148",
        quirk: "task_started and task_complete stand around a turn; thread_rolled_back takes turns back.",
        id: ID.to_owned(),
        path: rollout("2026-06-08T22-00-00", ID),
        lines: records("2026-06-08", payloads),
        beside: vec![],
        title: "Jot down the jackdaws",
        turns: vec![
            ("Jot down the jackdaws", "The jackdaws are on paper."),
            ("Keep the kingfishers", "The kingfishers are kept."),
        ],
        defects: &[],
    }
}
