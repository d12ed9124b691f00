//! 2.1.212: prompts that a program sends through the SDK are marked as meta.

use serde_json::json;

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0004, "2.1.212");
    let prompt =
        |text: &str| json!({"isMeta": true, "promptSource": "sdk", "message": {"role": "user", "content": text}});
    lines.record("user", 1, 0, prompt("Observe the ospreys")).answer(2, 1, "The ospreys are observed.");
    lines.record("user", 3, 2, prompt("Note the nuthatches")).answer(4, 3, "The nuthatches are noted.");
    OldSession {
        title: "Observe the ospreys",
        turns: vec![
            ("Observe the ospreys", "The ospreys are observed."),
            ("Note the nuthatches", "The nuthatches are noted."),
        ],
        ..lines.session("2.1.212", "Every prompt is `isMeta` with `promptSource: sdk`.")
    }
}
