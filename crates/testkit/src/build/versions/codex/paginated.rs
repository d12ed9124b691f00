//! 0.150 and later: records are numbered, and a fork refers to its source.

use serde_json::{Value, json};

use super::{OldSession, message, records, rollout};

const ID: &str = "01a1e0f5-2b3c-7b44-8d5e-6f7a8b9c0d12";
const SOURCE: &str = "01a1e0f4-2b3c-7b44-8d5e-6f7a8b9c0d13";

/// Numbers records from `first` on.
fn numbered(lines: Vec<Value>, first: usize) -> Vec<Value> {
    let number = |(ordinal, line): (usize, Value)| json!({"timestamp": line["timestamp"], "ordinal": ordinal, "type": line["type"], "payload": line["payload"]});
    (first..).zip(lines).map(number).collect()
}

fn turn(id: &str, prompt: &str, answer: &str) -> Vec<(&'static str, Value)> {
    let item = |item: Value| json!({"type": "item_completed", "thread_id": ID, "turn_id": id, "item": item});
    vec![
        ("event_msg", json!({"type": "task_started", "turn_id": id, "started_at": 1_794_766_398})),
        ("world_state", json!({"full": true, "state": {"environments": {}}})),
        ("turn_context", json!({"turn_id": id, "cwd": "/home/me/app", "model": "mock-model"})),
        ("response_item", message("user", prompt)),
        ("event_msg", item(json!({"type": "UserMessage", "id": "i", "content": [{"type": "text", "text": prompt}]}))),
        ("response_item", message("assistant", answer)),
        ("event_msg", json!({"type": "task_complete", "turn_id": id, "last_agent_message": answer})),
    ]
}

pub(super) fn session() -> OldSession {
    let meta = |id: &str| {
        json!({
            "session_id": id, "id": id, "timestamp": "2026-11-10T22:00:00.000Z", "cwd": "/home/me/app",
            "originator": "codex_exec", "cli_version": "0.166.0", "source": "exec", "thread_source": "user",
            "model_provider": "mock", "history_mode": "paginated",
        })
    };
    let (first, second) = (("Arrange the auks", "The auks are arranged."), ("Brush the buzzards", "They are brushed."));
    let mut source = vec![("session_meta", meta(SOURCE))];
    source.extend(turn("01a1e0f4-5000-7000-8000-000000000001", first.0, first.1));
    let end = source.len();
    source.extend(turn("01a1e0f4-5000-7000-8000-000000000002", "Not in the fork", "No."));
    let source = numbered(records("2026-11-10", source), 0);
    let offset: usize = source[..end].iter().map(|line| line.to_string().len() + 1).sum();
    let mut own = meta(ID);
    own["forked_from_id"] = json!(SOURCE);
    own["forked_from_ordinal_exclusive"] = json!(end);
    own["history_base"] = json!({"thread_id": SOURCE, "end_ordinal_exclusive": end, "end_byte_offset": offset});
    let mut fork = vec![("session_meta", own)];
    fork.extend(turn("01a1e0f5-5000-7000-8000-000000000003", second.0, second.1));
    OldSession {
        agent: "codex",
        versions: "0.150 and later",
        quirk: "Records have ordinals, prompts are items, and a fork's history is in its source.",
        id: ID.to_owned(),
        path: rollout("2026-11-10T22-00-00", ID),
        lines: numbered(records("2026-11-10", fork), end),
        beside: vec![(rollout("2026-11-10T21-00-00", SOURCE), source)],
        title: first.0,
        turns: vec![first, second],
        defects: &[],
    }
}
