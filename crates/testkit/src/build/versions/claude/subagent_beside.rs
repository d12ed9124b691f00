//! 2.0.x: subagents have files of their own beside the session's, and nothing else tells of them.

use serde_json::json;

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0009, "2.0.28");
    let task = |id: &str, prompt: &str| {
        let input = json!({"subagent_type": "Explore", "description": "Look", "prompt": prompt});
        json!({"type": "tool_use", "id": id, "name": "Task", "input": input})
    };
    lines.user(1, 0, "Ask about the dotterels");
    lines.block(2, 1, 2, &task("toolu_1", "Find the dotterels"));
    lines.result(3, 2, "toolu_1", "Dotterels on the moor.");
    lines.lines[2]["toolUseResult"] = json!({"status": "completed", "agentId": "4b7d61aa", "totalTokens": 9});
    lines.answer(4, 3, "The dotterels are found.");
    lines.user(5, 4, "Cheer the chiffchaffs").answer(6, 5, "The chiffchaffs are cheered.");
    // One that was interrupted, so that the result doesn't name it.
    lines.user(7, 6, "Doubt the dunlins").block(8, 7, 8, &task("toolu_2", "Find the dunlins"));
    lines.result(9, 8, "toolu_2", "[Request interrupted by user for tool use]");
    lines.lines.last_mut().expect("a result")["toolUseResult"] =
        json!("Error: [Request interrupted by user for tool use]");
    lines.user(15, 9, "[Request interrupted by user for tool use]");
    lines.user(16, 15, "Drop the ducks").answer(17, 16, "The ducks are dropped.");
    let subagent = |id: &str, number: u32, prompt: &str, answer: &str| {
        let mut subagent = Lines::new(0xc1a0_0009, "2.0.28");
        subagent.user(number, 0, prompt).answer(number + 1, number, answer);
        for line in &mut subagent.lines {
            line["isSidechain"] = json!(true);
            line["agentId"] = json!(id);
        }
        (format!("projects/-home-me-app/agent-{id}.jsonl").into(), subagent.lines)
    };
    OldSession {
        title: "Ask about the dotterels",
        turns: vec![
            ("Ask about the dotterels", "The dotterels are found."),
            ("Cheer the chiffchaffs", "The chiffchaffs are cheered."),
            ("Doubt the dunlins", ""),
            ("Drop the ducks", "The ducks are dropped."),
        ],
        beside: vec![
            subagent("4b7d61aa", 11, "Find the dotterels", "Dotterels on the moor."),
            subagent("5c8e72bb", 13, "Find the dunlins", "Dunlins on the shore."),
        ],
        ..lines.session("2.0.x", "`agent-<id>.jsonl` beside the session, named by `toolUseResult.agentId`.")
    }
}
