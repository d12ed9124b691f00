//! A reader that begins at once, because a scan said that the history is the file, tells the same as one that scans.

use std::path::Path;

use agents::claude::Claude;
use agents::codex::Codex;
use agents::{Adapter, AgentEnvironment, Blocks, PlainScan, Transcripts};
use serde_json::json;
use testkit::build::{ClaudeSession, CodexSession, Turn};
use transcript::Block;

const ID: &str = "11111111-1111-4111-8111-111111111111";
const THREAD: &str = "019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37";

fn all(mut blocks: Box<dyn Blocks>) -> Vec<Block> {
    std::iter::from_fn(|| blocks.next_block()).collect()
}

/// Reads in both ways and returns whether the quick one was possible.
fn reads_the_same(adapter: &dyn Adapter, path: &Path) -> bool {
    let summary = adapter.scan(path);
    let scanned = all(adapter.read(path, None, None).unwrap());
    assert_eq!(scanned.iter().map(|block| block.turn).max().unwrap_or(0), summary.turns);
    let Some(known) = PlainScan::of(&summary) else {
        return false;
    };
    assert_eq!(all(adapter.read(path, None, Some(&known)).unwrap()), scanned);
    for until in 1..=summary.turns {
        let quick = all(adapter.read(path, Some(until), Some(&known)).unwrap());
        assert_eq!(quick, all(adapter.read(path, Some(until), None).unwrap()), "until turn {until}");
    }
    // What was appended since is not part of what was scanned.
    let mut content = std::fs::read(path).unwrap();
    content.extend(b"{\"type\":\"user\",\"uuid\":\"new\",\"message\":{\"content\":\"later\"}}\n");
    std::fs::write(path, content).unwrap();
    assert_eq!(all(adapter.read(path, None, Some(&known)).unwrap()), scanned);
    true
}

fn rich(turn: Turn) -> Turn {
    turn.prompt("look")
        .thinking("hm")
        .parallel([("Bash", json!({"command": "a"}), "one"), ("Bash", json!({"command": "b"}), "two")])
        .subagent("help", |turn| turn.prompt("below").text("done below"))
        .text("seen")
}

#[test]
fn claude_code() {
    let home = tempfile::tempdir().unwrap();
    let adapter = Claude::new(&AgentEnvironment { home: home.path().to_owned(), ..AgentEnvironment::default() });
    let plain = |session: ClaudeSession| reads_the_same(&adapter, &session.write(adapter.home()));
    let start = || ClaudeSession::new(ID).cwd("/p").turn(rich).turn(|turn| turn.prompt("again").text("yes"));
    assert!(plain(start()));
    assert!(plain(start().compact("a summary").turn(|turn| turn.prompt("after").text("yes"))));
    assert!(plain(start().turn(|turn| turn.prompt("stop").text("I").interrupted())));
    assert!(!plain(start().rewind_to(1).turn(|turn| turn.prompt("instead").text("yes"))));
}

#[test]
fn codex() {
    let home = tempfile::tempdir().unwrap();
    let adapter = Codex::new(&AgentEnvironment { home: home.path().to_owned(), ..AgentEnvironment::default() });
    let plain = |session: &CodexSession| reads_the_same(&adapter, &session.write(adapter.home()));
    let tools = |turn: Turn| turn.prompt("look").tool("exec_command", json!({"cmd": "ls"}), "a\nb").text("seen");
    let start = CodexSession::new(THREAD).cwd("/p").turn(tools);
    assert!(plain(&start));
    let fork = start.fork("019a820b-91d4-7b36-a5c8-04e7f2d1b6a9").turn(|turn| turn.prompt("on").text("yes"));
    assert!(!plain(&fork), "a fork by reference has its history elsewhere");
}
