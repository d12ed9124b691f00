//! The dialects of Codex.

mod bare;
mod by_hand;
mod compacted;
mod editor;
mod forked;
mod paginated;
mod review;
mod tasks;
mod tasks_unrecorded;
mod turn_named;

use serde_json::{Value, json};

use super::OldSession;

pub(super) fn every() -> Vec<OldSession> {
    vec![
        bare::session(),
        tasks_unrecorded::session(),
        editor::session(),
        compacted::session(),
        forked::session(),
        review::session(),
        turn_named::session(),
        tasks::session(),
        paginated::session(),
        by_hand::session(),
    ]
}

/// The path of a thread's file below the home. `time` is as in `2025-12-25T22-45-23`.
fn rollout(time: &str, id: &str) -> std::path::PathBuf {
    let day = time[..10].replace('-', "/");
    format!("sessions/{day}/rollout-{time}-{id}.jsonl").into()
}

/// A message as the model sees it.
fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

/// A prompt as the legacy dialects show it to people.
fn user_message(text: &str) -> Value {
    json!({"type": "user_message", "message": text, "images": []})
}

/// The records of a file, each a second after the one before it.
fn records(day: &str, payloads: Vec<(&str, Value)>) -> Vec<Value> {
    let record = |(number, (kind, payload)): (usize, (&str, Value))| {
        let (minute, second) = (number / 60, number % 60);
        json!({"timestamp": format!("{day}T22:{minute:02}:{second:02}.123Z"), "type": kind, "payload": payload})
    };
    payloads.into_iter().enumerate().map(record).collect()
}
