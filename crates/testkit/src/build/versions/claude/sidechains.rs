//! 1.0.x: subagents stand inside the session's own file.

use serde_json::json;

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0008, "1.0.57");
    let task = |id: &str, prompt: &str| {
        let input = json!({"subagent_type": "general-purpose", "description": "Look", "prompt": prompt});
        json!({"type": "tool_use", "id": id, "name": "Task", "input": input})
    };
    lines.user(1, 0, "Ask about the auks");
    lines.block(2, 1, 2, &task("toolu_1", "Find the auks")).block(3, 2, 2, &task("toolu_2", "Find the avocets"));
    // Both work at once, and the one that was started last says something first.
    lines.user(11, 0, "Find the avocets").user(21, 0, "Find the auks");
    lines.answer(12, 11, "Avocets on the mudflat.").answer(22, 21, "Auks on the cliff.");
    for line in &mut lines.lines[3..] {
        line["isSidechain"] = json!(true);
    }
    lines.result(23, 2, "toolu_1", "Auks on the cliff.").result(24, 3, "toolu_2", "Avocets on the mudflat.");
    lines.answer(25, 24, "Auks and avocets are found.");
    lines.user(26, 25, "Bless the buntings").answer(27, 26, "The buntings are blessed.");
    // One that was interrupted, so that its call has no result.
    lines.user(28, 27, "Count the cranes").block(29, 28, 29, &task("toolu_3", "Find the cranes"));
    let begins = lines.lines.len();
    lines.user(30, 0, "Find the cranes").answer(31, 30, "Cranes on the fen.");
    for line in &mut lines.lines[begins..] {
        line["isSidechain"] = json!(true);
    }
    lines.user(32, 29, "[Request interrupted by user for tool use]");
    lines.user(33, 32, "Count the curlews").answer(34, 33, "The curlews are counted.");
    // One that nothing called.
    let begins = lines.lines.len();
    lines.user(35, 0, "Warmup").answer(36, 35, "Warm, says the wryneck.");
    for line in &mut lines.lines[begins..] {
        line["isSidechain"] = json!(true);
    }
    OldSession {
        title: "Ask about the auks",
        turns: vec![
            ("Ask about the auks", "Auks and avocets are found."),
            ("Bless the buntings", "The buntings are blessed."),
            ("Count the cranes", ""),
            ("Count the curlews", "The curlews are counted."),
        ],
        ..lines.session("1.0.x", "Records with `isSidechain` between a call and its result, told apart by the prompt.")
    }
}
