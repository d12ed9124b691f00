//! One conversation with everything in it that a conversation can have.

use jiff::Timestamp;
use serde_json::{Value, json};
use transcript::{
    Agent, Block, BlockKind, DefectKind, Defects, NoticeKind, ParentSource, ParentView, SessionId, SessionName,
    SessionView, State,
};

use crate::Conversation;

pub(crate) fn conversation() -> Conversation {
    let mut defects = Defects::default();
    defects.add(DefectKind::BadLine);
    defects.add(DefectKind::BadLine);
    defects.add(DefectKind::TruncatedLine);
    Conversation { session: session(), blocks: blocks(), defects }
}

pub(crate) fn session() -> SessionView {
    SessionView {
        agent: Agent::Claude,
        id: SessionId::new("0b1c2d3e-4f50-4a61-8b72-9c83ad94be05").unwrap(),
        handle: "0b1c2d3e".into(),
        name: Some(SessionName::new("login-redirect").unwrap()),
        title: Some("Fix the login redirect that drops *query parameters*".into()),
        cwd: Some("/home/ann/shop".into()),
        branch: Some("fix/login_redirect".into()),
        path: "/home/ann/.claude/projects/-home-ann-shop/0b1c2d3e-4f50-4a61-8b72-9c83ad94be05.jsonl".into(),
        created: Some(time("13:58:07")),
        updated: Some(time("14:31:40")),
        turns: 3,
        state: State::Stopped,
        parent: Some(ParentView {
            agent: Agent::Codex,
            id: SessionId::new("01a1e069-e243-7c11-9d7b-1f1f5b0c9a10").unwrap(),
            name: Some(SessionName::new("login").unwrap()),
            turn: Some(4),
            source: ParentSource::Tine,
        }),
        unstarted: false,
    }
}

fn time(clock: &str) -> Timestamp {
    format!("2026-11-15T{clock}Z").parse().unwrap()
}

fn at(clock: &str, turn: u32, depth: u8, kind: BlockKind) -> Block {
    Block { turn, depth, at: Some(time(clock)), message: Some(format!("msg-{}", clock.replace(':', ""))), kind }
}

fn prompt(text: &str) -> BlockKind {
    BlockKind::Prompt { text: text.into(), steer: false }
}

fn answer(text: &str) -> BlockKind {
    BlockKind::Answer { text: text.into(), model: Some("claude-opus-5".into()) }
}

fn thinking(text: &str) -> BlockKind {
    BlockKind::Thinking { text: text.into() }
}

fn call(id: &str, name: &str, input: Value) -> BlockKind {
    BlockKind::Call { id: id.into(), name: name.into(), input }
}

fn output(call: &str, name: &str, text: &str) -> BlockKind {
    BlockKind::Output { call: call.into(), name: Some(name.into()), text: text.into(), error: false, exit_code: None }
}

fn notice(notice: NoticeKind, text: &str) -> BlockKind {
    BlockKind::Notice { notice, text: text.into() }
}

const DIAGNOSIS: &str = "The redirect is built in `auth/redirect.rs`, and it **drops the query string**:\n\n\
```rust\nfn target(request: &Request) -> String {\n    request.path().to_owned() // the query is lost here\n}\n```\n\n\
## What I will do\n\n1. Keep the query in `target`.\n2. Add a test:\n   - with one parameter\n   - with none\n\
3. ~~Rewrite the router~~ Leave the router alone, because it is used by the payment callbacks as well and they have tests of their own.\n\n\
| case | before | after |\n|---|---|---|\n| `/a?b=1` | `/a` | `/a?b=1` |\n| `/a` | `/a` | `/a` |\n\n\
> Nothing changes for paths without a query.\n\nSee [the RFC](https://www.rfc-editor.org/rfc/rfc3986) and https://example.org/queries.";

const FAILURE: &str = "\u{1b}[1m\u{1b}[31merror[E0308]\u{1b}[0m: mismatched types\n  --> src/auth/redirect.rs:12:5\n   |\n\
12 |     request.path()\n   |     ^^^^^^^^^^^^^^ expected `String`, found `&str`\n\nerror: could not compile `shop` (lib) due to 1 previous error";

fn blocks() -> Vec<Block> {
    let mut blocks = first_turn();
    blocks.extend(second_turn());
    blocks.extend(third_turn());
    blocks
}

fn first_turn() -> Vec<Block> {
    let failed = BlockKind::Output {
        call: "toolu_3".into(),
        name: Some("Bash".into()),
        text: FAILURE.into(),
        error: true,
        exit_code: Some(101),
    };
    let edit = json!({
        "file_path": "/home/ann/shop/src/auth/redirect.rs",
        "old_string": "    request.path().to_owned()",
        "new_string": "    match request.query() {\n        Some(query) => format!(\"{}?{query}\", request.path()),\n        None => request.path().to_owned(),\n    }",
        "replace_all": false,
    });
    vec![
        at("13:58:07", 0, 0, notice(NoticeKind::Info, "session forked from login at turn 4")),
        at(
            "13:58:30",
            1,
            0,
            prompt(
                "After login people land on /orders instead of /orders?page=2.\nPlease find out why:\n\n    GET /login?next=/orders?page=2\n\nand fix it.",
            ),
        ),
        at("13:58:30", 1, 0, BlockKind::Media { media_type: "image/png".into(), bytes: Some(48_213), data: None }),
        at(
            "13:58:41",
            1,
            0,
            thinking("The query must be lost where the redirect target is built.\nI should look at the callers first."),
        ),
        at("13:58:44", 1, 0, call("toolu_1", "Grep", json!({"pattern": "fn target", "path": "src/auth"}))),
        at("13:58:44", 1, 0, call("toolu_2", "Read", json!({"file_path": "/home/ann/shop/src/auth/redirect.rs"}))),
        at(
            "13:58:45",
            1,
            0,
            output("toolu_1", "Grep", "src/auth/redirect.rs:11:fn target(request: &Request) -> String {"),
        ),
        at(
            "13:58:45",
            1,
            0,
            output(
                "toolu_2",
                "Read",
                "11\tfn target(request: &Request) -> String {\n12\t    request.path().to_owned()\n13\t}\n",
            ),
        ),
        at("13:59:02", 1, 0, answer(DIAGNOSIS)),
        at("13:59:10", 1, 0, call("toolu_e", "Edit", edit)),
        at("13:59:11", 1, 0, output("toolu_e", "Edit", "")),
        at(
            "13:59:12",
            1,
            0,
            call("toolu_3", "Bash", json!({"command": "cargo test --workspace", "description": "Run the tests"})),
        ),
        at("13:59:40", 1, 0, failed),
        at("13:59:50", 1, 0, BlockKind::Prompt { text: "and run clippy too".into(), steer: true }),
        at("14:00:05", 1, 0, answer("Fixed: `target` keeps the query now.")),
    ]
}

fn second_turn() -> Vec<Block> {
    let subagent = |id: &str, role: Option<&str>, description: Option<&str>| BlockKind::Subagent {
        id: id.into(),
        role: role.map(Into::into),
        description: description.map(Into::into),
    };
    let task = json!({
        "description": "Find other redirects",
        "prompt": "Look through src/ for every other redirect.",
        "subagent_type": "general-purpose",
    });
    vec![
        at("14:02:00", 2, 0, prompt("Are there other places with the same mistake?")),
        at("14:02:10", 2, 0, call("toolu_4", "Task", task)),
        at("14:02:11", 2, 0, subagent("agent-7f", Some("general-purpose"), Some("Find other redirects"))),
        at("14:02:11", 2, 1, prompt("Look through src/ for every other redirect.")),
        at("14:02:20", 2, 1, call("toolu_5", "Bash", json!({"command": "rg -n 'Redirect::to' src"}))),
        at("14:02:21", 2, 1, output("toolu_5", "Bash", "src/cart.rs:88:    Redirect::to(path)\n")),
        at("14:02:22", 2, 1, subagent("agent-80", None, None)),
        at("14:02:23", 2, 2, answer("`src/cart.rs` is fine.")),
        at("14:02:40", 2, 1, answer("One other place, and it is **fine**.")),
        at("14:02:41", 2, 0, output("toolu_4", "Task", "One other place, and it is fine.")),
        at("14:02:50", 2, 0, answer("No. `src/cart.rs:88` redirects as well, but to a path without a query.")),
        at(
            "14:03:00",
            2,
            0,
            BlockKind::Compaction { summary: "The redirect in `auth/redirect.rs` keeps the query now.".into() },
        ),
    ]
}

fn third_turn() -> Vec<Block> {
    let patch = "*** Begin Patch\n*** Update File: CHANGELOG.md\n@@\n+- Login keeps the query.\n*** End Patch\n";
    vec![
        at("14:30:00", 3, 0, prompt("漢字のパスでも動きますか？ Please check, and add a line to the changelog.")),
        at("14:30:01", 3, 0, thinking("")),
        at("14:30:10", 3, 0, call("toolu_6", "apply_patch", json!(patch))),
        at("14:30:11", 3, 0, output("toolu_6", "apply_patch", "Done!")),
        at(
            "14:30:20",
            3,
            0,
            call("toolu_7", "TodoWrite", json!({"todos": [{"content": "check 漢字", "status": "in_progress"}]})),
        ),
        at("14:30:30", 3, 0, notice(NoticeKind::Command, "/cost\nTotal cost: $0.31\nTotal duration: 2m")),
        at("14:30:40", 3, 0, notice(NoticeKind::Error, "API Error: 529 overloaded")),
        at("14:31:40", 3, 0, notice(NoticeKind::Interrupted, "")),
    ]
}
