//! 1.0.5x: the first caveat is the parent of later local commands, so the last leaf is no conversation.

use super::{CAVEAT, Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0002, "1.0.57");
    lines.meta(1, 0, CAVEAT);
    lines.user(2, 1, "<command-name>/clear</command-name>");
    lines.user(3, 2, "<local-command-stdout></local-command-stdout>");
    lines.user(4, 3, "Preen the peacocks").answer(5, 4, "The peacocks are preened.");
    lines.user(6, 5, "Herd the herons").answer(7, 6, "The herons are herded.");
    lines.user(8, 1, "<command-name>/export</command-name>");
    lines.user(9, 8, "<local-command-stdout>Exported</local-command-stdout>");
    OldSession {
        title: "Preen the peacocks",
        turns: vec![("Preen the peacocks", "The peacocks are preened."), ("Herd the herons", "The herons are herded.")],
        ..lines.session("1.0.5x", "`/export` at the end hangs below the first caveat instead of the last answer.")
    }
}
