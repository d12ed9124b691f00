//! Files with a gap: a record that others follow was not written.

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0005, "2.0.55");
    lines.user(1, 0, "Lure the larks").answer(2, 1, "The larks are lured.");
    // Record 3 is missing; more than 5 seconds are, too, so that the client doesn't close the gap by itself.
    lines.user(14, 3, "Tag the terns").answer(15, 14, "The terns are tagged.");
    lines.user(16, 15, "Spot the swifts").answer(17, 16, "The swifts are spotted.");
    OldSession {
        title: "Lure the larks",
        turns: vec![
            ("Lure the larks", "The larks are lured."),
            ("Tag the terns", "The terns are tagged."),
            ("Spot the swifts", "The swifts are spotted."),
        ],
        defects: &["broken-link"],
        ..lines.session("any", "The second prompt names a parent that is not in the file.")
    }
}
