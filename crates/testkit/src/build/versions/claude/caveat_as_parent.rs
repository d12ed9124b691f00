//! 1.0.5x: the first caveat is the parent of later local commands, so the last leaf is no conversation.

use super::{CAVEAT, Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0002, "1.0.57");
    lines.meta(1, 0, CAVEAT);
    lines.user(2, 1, "<command-name>/clear</command-name>");
    lines.user(3, 2, "<local-command-stdout></local-command-stdout>");
    lines.user(4, 3, "Preen the peacocks").answer(5, 4, "The peacocks are preened.");
    // One that is where it belongs.
    lines.user(6, 5, "<user-memory-input>Peacocks moult in August</user-memory-input>").user(7, 6, "(no content)");
    lines.user(8, 7, "Herd the herons").answer(9, 8, "The herons are herded.");
    lines.user(10, 1, "<user-memory-input>Herons fish at dawn</user-memory-input>").user(11, 10, "(no content)");
    lines.user(12, 1, "<bash-input>ls nest</bash-input>");
    lines.user(13, 12, "<bash-stdout>egg</bash-stdout><bash-stderr></bash-stderr>");
    lines.user(14, 1, "<command-name>/export</command-name>");
    lines.user(15, 14, "<local-command-stdout>Exported</local-command-stdout>");
    OldSession {
        title: "Preen the peacocks",
        turns: vec![("Preen the peacocks", "The peacocks are preened."), ("Herd the herons", "The herons are herded.")],
        ..lines.session(
            "1.0.5x",
            "`#memory`, `!command` and `/export` at the end hang below the first caveat instead of the last answer.",
        )
    }
}
