//! 2.0.x: subagents have files of their own beside the session's, and nothing else tells of them.

use serde_json::json;

use super::{Lines, OldSession};

pub(super) fn session() -> OldSession {
    let mut lines = Lines::new(0xc1a0_0009, "2.0.28");
    let input = json!({"subagent_type": "Explore", "description": "Look", "prompt": "Find the dotterels"});
    lines.user(1, 0, "Ask about the dotterels");
    lines.block(2, 1, 2, &json!({"type": "tool_use", "id": "toolu_1", "name": "Task", "input": input}));
    lines.result(3, 2, "toolu_1", "Dotterels on the moor.");
    lines.lines[2]["toolUseResult"] = json!({"status": "completed", "agentId": "4b7d61aa", "totalTokens": 9});
    lines.answer(4, 3, "The dotterels are found.");
    lines.user(5, 4, "Cheer the chiffchaffs").answer(6, 5, "The chiffchaffs are cheered.");
    let mut subagent = Lines::new(0xc1a0_0009, "2.0.28");
    subagent.user(11, 0, "Find the dotterels").answer(12, 11, "Dotterels on the moor.");
    for line in &mut subagent.lines {
        line["isSidechain"] = json!(true);
        line["agentId"] = json!("4b7d61aa");
    }
    OldSession {
        title: "Ask about the dotterels",
        turns: vec![
            ("Ask about the dotterels", "The dotterels are found."),
            ("Cheer the chiffchaffs", "The chiffchaffs are cheered."),
        ],
        beside: vec![("projects/-home-me-app/agent-4b7d61aa.jsonl".into(), subagent.lines)],
        ..lines.session("2.0.x", "`agent-<id>.jsonl` beside the session, named by `toolUseResult.agentId`.")
    }
}
