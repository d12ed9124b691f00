//! 1.0 to 2.1.29: the title of a conversation stands in the next file of the project.

use serde_json::json;

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0006, "1.0.98");
    lines.user(1, 0, "Hide the hoopoes").answer(2, 1, "The hoopoes are hidden.");
    let mut next = Lines::new(0xc1a0_0007, "1.0.98");
    let summary = |title: &str, leaf| json!({"type": "summary", "summary": title, "leafUuid": leaf});
    next.lines.push(summary("Somebody else's", next.uuid(99)));
    next.lines.push(summary("Hoopoes in hiding", lines.uuid(2)));
    next.user(1, 0, "Later").answer(2, 1, "Yes.");
    let beside = next.session("", "");
    OldSession {
        title: "Hoopoes in hiding",
        turns: vec![("Hide the hoopoes", "The hoopoes are hidden.")],
        beside: vec![(beside.path, beside.lines)],
        ..lines.session("1.0 to 2.1.29", "A `summary` in another file names the last record of this one.")
    }
}
