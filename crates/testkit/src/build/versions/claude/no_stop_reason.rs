//! 1.0.17 to 2.1.29: finished answers do not say why they ended.

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0001, "1.0.17");
    lines.user(1, 0, "Feed the finches").answer(2, 1, "The finches are fed.");
    lines.user(3, 2, "Wake the wagtails").answer(4, 3, "The wagtails are awake.");
    OldSession {
        title: "Feed the finches",
        turns: vec![("Feed the finches", "The finches are fed."), ("Wake the wagtails", "The wagtails are awake.")],
        ..lines.session("1.0.17 to 2.1.29", "`stop_reason` is null in finished answers.")
    }
}
