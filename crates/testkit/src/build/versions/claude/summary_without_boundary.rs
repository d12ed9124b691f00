//! 1.0.x: a compaction leaves a summary without a parent, and no boundary.

use serde_json::json;

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0003, "1.0.90");
    lines.user(1, 0, "Ring the robins").answer(2, 1, "The robins are ringed.");
    let summary = json!({"isCompactSummary": true, "isVisibleInTranscriptOnly": true,
        "message": {"role": "user", "content": "This session is being continued from a previous conversation."}});
    lines.record("user", 3, 0, summary);
    lines.user(4, 3, "Weigh the wrens").answer(5, 4, "The wrens are weighed.");
    OldSession {
        title: "Ring the robins",
        turns: vec![("Ring the robins", "The robins are ringed."), ("Weigh the wrens", "The wrens are weighed.")],
        ..lines.session("1.0.x", "A summary begins a tree of its own; what was said before it stands above it.")
    }
}
