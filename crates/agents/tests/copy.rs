//! read(copy(session, n)) = cut(read(session), n), for both agents, and the copy is nobody but itself.

use std::fs;
use std::path::{Path, PathBuf};

use agents::claude::Claude;
use agents::codex::Codex;
use agents::{CopyOrder, Store, Surroundings};
use proptest::prelude::*;
use serde_json::json;
use testkit::build::{ClaudeSession, CodexSession, Dialect, Turn};
use transcript::{Block, SessionId};

const SOURCE: &str = "019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37";
const COPY: &str = "019a9000-0000-7000-8000-000000000001";

fn all(store: &dyn Store, path: &Path, until: Option<u32>) -> Vec<Block> {
    let mut blocks = store.read(path, until, None).unwrap();
    std::iter::from_fn(|| blocks.next_block()).collect()
}

/// Copies `source` up to `turns`, puts the copy where it belongs and returns where that is.
fn copied(store: &dyn Store, source: &Path, turns: Option<u32>) -> PathBuf {
    let (id, now) = (SessionId::new(COPY).unwrap(), "2026-11-15T12:00:00Z".parse().unwrap());
    let cwd = PathBuf::from("/elsewhere/ü");
    let target = store.place_for(&id, &cwd, now);
    let order = CopyOrder {
        source_id: SessionId::new(SOURCE).unwrap(),
        id,
        turns,
        cwd,
        branch: Some("side".into()),
        title: Some("the copy".into()),
        target: target.clone(),
        now,
    };
    let mut bytes = Vec::new();
    let copied = store.copy(source, &order, &mut bytes).unwrap();
    assert_eq!(copied.bytes, bytes.len() as u64);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::write(&target, bytes).unwrap();
    let side = target.with_extension("");
    store.copy_side(source, &order, &side).unwrap();
    target
}

fn check(store: &dyn Store, source: &Path) {
    let before = fs::read(source).unwrap();
    let summary = store.scan(source);
    for turns in (1..=summary.turns).map(Some).chain([None]) {
        let copy = copied(store, source, turns);
        assert_eq!(all(store, &copy, None), all(store, source, turns), "{turns:?} of {}", summary.turns);
        let facts = store.scan(&copy);
        assert_eq!(facts.id.as_str(), COPY);
        assert_eq!(facts.turns, turns.unwrap_or(summary.turns));
        assert_eq!(facts.turn_keys[..], summary.turn_keys[..facts.turns as usize]);
        assert_eq!(facts.parent.as_ref().map(|parent| parent.id.as_str()), Some(SOURCE));
        assert_eq!(facts.cwd, Some(PathBuf::from("/elsewhere/ü")));
        assert!(facts.defects.is_empty(), "{:?}", facts.defects);
        assert_eq!(fs::read(source).unwrap(), before, "the source is as it was");
    }
}

/// A turn of a kind that a number decides.
fn turn(kind: u8, number: usize) -> impl FnOnce(Turn) -> Turn {
    move |turn: Turn| {
        let turn = turn.prompt(format!("prompt {number} \"quoted\"\n漢字")).thinking("hm");
        match kind % 6 {
            0 => turn.text("plain"),
            1 => turn.tool("Bash", json!({"command": "ls", "sessionId": SOURCE}), "a\nb").text("after a tool"),
            2 => turn.parallel([("Bash", json!({"c": 1}), "one"), ("Bash", json!({"c": 2}), "two")]).text("both"),
            3 => turn.failing_tool("Bash", json!({"command": "false"}), "Exit code 1").text("failed"),
            4 => turn.text("I begin").interrupted(),
            _ => turn
                .parallel_reversed([("Bash", json!({"c": 1}), "one"), ("Bash", json!({"c": 2}), "two")])
                .text("both"),
        }
    }
}

fn claude(home: &Path) -> Claude {
    Claude::new(&Surroundings { home: home.to_owned(), ..Surroundings::default() })
}

fn codex(home: &Path) -> Codex {
    Codex::new(&Surroundings { home: home.to_owned(), ..Surroundings::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn claude_code(kinds in prop::collection::vec(any::<u8>(), 1..6), compact in any::<bool>(), rewind in 0usize..4, seed in any::<u64>()) {
        let home = tempfile::tempdir().unwrap();
        let store = claude(home.path());
        let mut session = ClaudeSession::new(SOURCE).cwd("/home/me/app").seed(seed);
        for (number, kind) in kinds.iter().enumerate() {
            session = session.turn(turn(*kind, number));
        }
        if compact {
            session = session.compact("what was said").turn(turn(0, 90));
        }
        if rewind > 0 && rewind < kinds.len() {
            session = session.rewind_to(rewind).turn(turn(1, 91));
        }
        check(&store, &session.write(store.home()));
    }

    #[test]
    fn codex_threads(kinds in prop::collection::vec(any::<u8>(), 1..5), compact in any::<bool>(), legacy in any::<bool>(), fork in any::<bool>(), seed in any::<u64>()) {
        let home = tempfile::tempdir().unwrap();
        let store = codex(home.path());
        let dialect = if legacy { Dialect::Legacy } else { Dialect::Paginated };
        let first = if fork { "019a8000-0000-7000-8000-000000000009" } else { SOURCE };
        let mut session = CodexSession::new(first).cwd("/home/me/app").dialect(dialect).seed(seed);
        for (number, kind) in kinds.iter().enumerate() {
            session = session.turn(turn(*kind, number));
        }
        if compact {
            session = session.compact("what was said").turn(turn(0, 90));
        }
        if fork {
            session.write(store.home());
            session = session.fork(SOURCE).turn(turn(1, 91));
        }
        check(&store, &session.write(store.home()));
    }
}

#[test]
fn side_folders_and_paths_into_them_come_along() {
    let home = tempfile::tempdir().unwrap();
    let store = claude(home.path());
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(|turn| {
        turn.prompt("send one").subagent("help", |turn| turn.prompt("below").text("done below")).text("done")
    });
    let source = session.write(store.home());
    let side = source.with_extension("");
    fs::create_dir_all(side.join("tool-results")).unwrap();
    fs::write(side.join("tool-results/t1.txt"), "all of the output").unwrap();
    let copy = copied(&store, &source, None);
    assert_eq!(all(&store, &copy, None), all(&store, &source, None));
    let copied_side = copy.with_extension("");
    assert_eq!(fs::read_to_string(copied_side.join("tool-results/t1.txt")).unwrap(), "all of the output");
    for entry in fs::read_dir(copied_side.join("subagents")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        assert!(!text.contains(SOURCE), "{}: {text}", entry.path().display());
    }
    assert!(!fs::read_to_string(&copy).unwrap().contains(&*side.to_string_lossy()));
}
