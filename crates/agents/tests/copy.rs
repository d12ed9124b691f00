//! read(copy(session, n)) = cut(read(session), n), for every agent, and the copy is nobody but itself.

use std::fs;
use std::path::{Path, PathBuf};

use agents::claude::Claude;
use agents::codex::Codex;
use agents::gemini::Gemini;
use agents::{Adapter, AgentEnvironment, CopyRequest, PlainScan, Transcripts, write_copy};
use proptest::prelude::*;
use serde_json::json;
use testkit::build::{ClaudeSession, CodexSession, Dialect, GeminiSession, Turn};
use transcript::{Block, DefectKind, SessionId, Summary};

const SOURCE: &str = "019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37";
const COPY: &str = "019a9000-0000-7000-8000-000000000001";

fn all(adapter: &dyn Adapter, path: &Path, until: Option<u32>) -> Vec<Block> {
    let mut blocks = adapter.read(path, until, None).unwrap();
    std::iter::from_fn(|| blocks.next_block()).collect()
}

fn order(adapter: &dyn Adapter, turns: Option<u32>) -> CopyRequest {
    let (id, now) = (SessionId::new(COPY).unwrap(), "2026-11-15T12:00:00Z".parse().unwrap());
    let cwd = PathBuf::from("/elsewhere/ü");
    CopyRequest {
        source_id: SessionId::new(SOURCE).unwrap(),
        target: adapter.path_for(&id, &cwd, now),
        id,
        turns,
        relink: false,
        tip: None,
        cwd,
        branch: Some("side".into()),
        title: Some("the copy".into()),
        now,
    }
}

fn has_gaps(adapter: &dyn Adapter, source: &Path) -> bool {
    adapter.scan(source).defects.count(DefectKind::BrokenLink) > 0
}

/// Copies `source` up to `turns`, puts the copy where it belongs and returns where that is. What is known of a plain
/// source makes no difference.
fn copied(adapter: &dyn Adapter, source: &Path, turns: Option<u32>) -> PathBuf {
    let order = CopyRequest { relink: has_gaps(adapter, source), ..order(adapter, turns) };
    let target = order.target.clone();
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    let write = |known: Option<&PlainScan>| {
        let file = fs::File::create(&target).unwrap();
        let (copied, found) = write_copy(adapter, source, &order, known, (&target, &file)).unwrap();
        assert_eq!(copied.compare(&found, &order), Ok(()));
        let again = adapter.read_back(&target, source, &order, None);
        assert_eq!(copied.compare(&again, &order), Ok(()), "when it stands still");
        let there = Summary { layout: None, ..adapter.scan(&target) };
        assert_eq!(found.summary, there, "what was found while it grew is what is there");
        fs::read(&target).unwrap()
    };
    let bytes = write(None);
    let summary = adapter.scan(source);
    if let Some(known) = PlainScan::of(&summary) {
        assert_eq!(write(Some(&PlainScan { layout: None, ..known.clone() })), bytes);
        assert_eq!(write(Some(&known)), bytes, "with what was noted of its lines");
    }
    for piece in adapter.side_files(source, &order) {
        adapter.copy_side_file(source, &piece, &order, turns.is_some().then_some(&target)).unwrap();
        if piece.prepared.exists() {
            fs::create_dir_all(piece.place.parent().unwrap()).unwrap();
            let _ = fs::remove_dir_all(&piece.place);
            fs::rename(&piece.prepared, &piece.place).unwrap();
        }
    }
    target
}

fn check(adapter: &dyn Adapter, source: &Path) {
    let before = fs::read(source).unwrap();
    let summary = adapter.scan(source);
    for turns in (1..=summary.turns).map(Some).chain([None]) {
        let copy = copied(adapter, source, turns);
        assert_eq!(all(adapter, &copy, None), all(adapter, source, turns), "{turns:?} of {}", summary.turns);
        let facts = adapter.scan(&copy);
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
    Claude::new(&AgentEnvironment { home: home.to_owned(), ..AgentEnvironment::default() })
}

fn codex(home: &Path) -> Codex {
    Codex::new(&AgentEnvironment { home: home.to_owned(), ..AgentEnvironment::default() })
}

fn gemini(home: &Path) -> Gemini {
    Gemini::new(&AgentEnvironment { home: home.to_owned(), ..AgentEnvironment::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn gemini_forks_by_copy_at_every_turn(
        kinds in prop::collection::vec(any::<u8>(), 1..7),
        resumed in prop::collection::vec(0..3u8, 7),
        is_old in any::<bool>(),
    ) {
        let home = tempfile::tempdir().unwrap();
        let mut session = GeminiSession::new(SOURCE);
        for (number, kind) in kinds.iter().enumerate() {
            session = session.turn(turn(*kind, number));
            session = match resumed[number] {
                0 => session,
                1 => session.resumed(),
                _ => session.resumed_at_once(),
            };
        }
        let session = if is_old { session.old() } else { session };
        check(&gemini(home.path()), &session.write(&home.path().join(".gemini")));
    }

    #[test]
    fn claude_code(kinds in prop::collection::vec(any::<u8>(), 1..6), compact in any::<bool>(), rewind in 0usize..4, seed in any::<u64>()) {
        let home = tempfile::tempdir().unwrap();
        let adapter = claude(home.path());
        let mut session = ClaudeSession::new(SOURCE).cwd("/home/me/app").seed(seed);
        for (number, kind) in kinds.iter().enumerate() {
            session = session.turn(turn(*kind, number));
        }
        if compact {
            session = session.compact("prompts and answers").turn(turn(0, 90));
        }
        if rewind > 0 && rewind < kinds.len() {
            session = session.rewind_to(rewind).turn(turn(1, 91));
        }
        check(&adapter, &session.write(adapter.home()));
    }

    #[test]
    fn codex_threads(kinds in prop::collection::vec(any::<u8>(), 1..5), compact in any::<bool>(), legacy in any::<bool>(), fork in any::<bool>(), seed in any::<u64>()) {
        let home = tempfile::tempdir().unwrap();
        let adapter = codex(home.path());
        let dialect = if legacy { Dialect::Legacy } else { Dialect::Paginated };
        let first = if fork { "019a8000-0000-7000-8000-000000000009" } else { SOURCE };
        let mut session = CodexSession::new(first).cwd("/home/me/app").dialect(dialect).seed(seed);
        for (number, kind) in kinds.iter().enumerate() {
            session = session.turn(turn(*kind, number));
        }
        if compact {
            session = session.compact("prompts and answers").turn(turn(0, 90));
        }
        if fork {
            session.write(adapter.home());
            session = session.fork(SOURCE).turn(turn(1, 91));
        }
        check(&adapter, &session.write(adapter.home()));
    }
}

/// A session of either agent with tools, whose content names the ids and folders of source and copy.
fn hostile(turn: Turn, side: &str) -> Turn {
    let looks_alike = format!("{side}er/x {{\"sessionId\":\"{SOURCE}\",\"thread_id\":\"{SOURCE}\"}} {COPY}");
    let input = json!({ "sessionId": SOURCE, "cwd": "/home/me/app", "forkedFrom": { "sessionId": SOURCE } });
    turn.prompt(format!("{looks_alike}\u{1}\u{2028}")).tool("Bash", input, looks_alike).text("\\\"}],")
}

#[test]
fn content_that_looks_like_what_is_changed_stays() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let side = adapter.home().join("projects/-home-me-app").join(SOURCE);
    fs::create_dir_all(side.join("tool-results")).unwrap();
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app");
    let source = session.turn(|turn| hostile(turn, &side.to_string_lossy())).write(adapter.home());
    check(&adapter, &source);
    let copy = fs::read_to_string(copied(&adapter, &source, None)).unwrap();
    assert!(copy.contains(&format!("{}er/x", side.to_string_lossy())), "another folder is another folder");

    let adapter = codex(home.path());
    let session = CodexSession::new(SOURCE).cwd("/home/me/app").turn(|turn| hostile(turn, "/x"));
    check(&adapter, &session.write(adapter.home()));
}

#[test]
fn a_sidechain_in_the_file_comes_along_under_the_new_id() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let source = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(0, 1)).write(adapter.home());
    let side = format!(
        "{{\"type\":\"user\",\"uuid\":\"s1\",\"parentUuid\":null,\"isSidechain\":true,\"sessionId\":\"{SOURCE}\",\
         \"cwd\":\"/home/me/app\",\"message\":{{\"content\":\"{SOURCE}\"}}}}\n"
    );
    let mut content = fs::read_to_string(&source).unwrap();
    content.insert_str(0, &side);
    fs::write(&source, content).unwrap();
    check(&adapter, &source);
    let copy = fs::read_to_string(copied(&adapter, &source, None)).unwrap();
    assert_eq!(copy.lines().next().unwrap(), side.trim_end().replacen(SOURCE, COPY, 1));
}

#[test]
fn records_before_those_that_they_follow_are_brought_into_order() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(2, 1)).turn(turn(0, 2)).turn(turn(1, 3));
    let source = session.write(adapter.home());
    let content = fs::read_to_string(&source).unwrap();
    let record = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let (chain, side): (Vec<&str>, Vec<&str>) = content.lines().partition(|line| record(line)["uuid"].is_string());
    // The last three records first, then all others but two, which trade places.
    let mut mixed = chain.clone();
    mixed.rotate_right(3);
    mixed.swap(4, 5);
    for lines in [mixed, chain.iter().rev().copied().collect()] {
        let lines: Vec<&str> = side.iter().copied().chain(lines).collect();
        fs::write(&source, format!("{}\n", lines.join("\n"))).unwrap();
        assert!(adapter.scan(&source).disordered);
        check(&adapter, &source);
        for turns in [None, Some(2)] {
            let copy = copied(&adapter, &source, turns);
            assert!(!adapter.scan(&copy).disordered);
            let copy = fs::read_to_string(copy).unwrap();
            let mut seen = std::collections::HashSet::new();
            for record in copy.lines().map(record).filter(|record| record["uuid"].is_string()) {
                let parent = &record["parentUuid"];
                assert!(parent.is_null() || seen.contains(&parent.to_string()), "{record}");
                seen.insert(record["uuid"].to_string());
            }
        }
    }
}

/// Writes a copy, damages it in each way and expects that reading it back tells.
fn damage_is_found(adapter: &dyn Adapter, source: &Path, own_id: &str, old_id: &str) {
    let order = CopyRequest { relink: has_gaps(adapter, source), ..order(adapter, None) };
    fs::create_dir_all(order.target.parent().unwrap()).unwrap();
    let file = fs::File::create(&order.target).unwrap();
    let (copied, found) = write_copy(adapter, source, &order, None, (&order.target, &file)).unwrap();
    assert_eq!(copied.compare(&found, &order), Ok(()));
    let good = fs::read(&order.target).unwrap();
    let expect_fault = |bytes: &[u8], what: &str| {
        fs::write(&order.target, bytes).unwrap();
        let found = adapter.read_back(&order.target, source, &order, None);
        assert!(copied.compare(&found, &order).is_err(), "{what} was not found");
    };
    let text = String::from_utf8(good.clone()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for at in 0..lines.len() {
        expect_fault(
            [&lines[..at], &lines[at + 1..]].concat().concat().as_bytes(),
            &format!("that line {at} is missing"),
        );
        expect_fault([&lines[..=at], &lines[at..]].concat().concat().as_bytes(), &format!("that line {at} is doubled"));
        if at > 0 && lines[at] != lines[at - 1] {
            let mut swapped = lines.clone();
            swapped.swap(at, at - 1);
            expect_fault(swapped.concat().as_bytes(), &format!("that lines {} and {at} are swapped", at - 1));
        }
        if lines[at].contains(own_id) {
            let mut old = lines.clone();
            let line = lines[at].replacen(own_id, old_id, 1);
            old[at] = &line;
            expect_fault(old.concat().as_bytes(), &format!("an old id in line {at}"));
        }
    }
    for cut in [1, 2, lines.last().unwrap().len(), good.len() / 2] {
        expect_fault(&good[..good.len() - cut], &format!("that {cut} bytes are missing"));
    }
    // The first line of Codex's is the copy's own; what it holds beyond its identity is not the source's.
    let first = if own_id.contains("thread_id") { lines[0].len() } else { 0 };
    for at in (first..good.len()).step_by(7) {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        expect_fault(&flipped, &format!("a byte at {at} of {}", good.len()));
    }
}

#[test]
fn a_copy_that_is_not_right_is_told() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(1, 1)).turn(turn(2, 2));
    let (own, old) = (format!("\"sessionId\":\"{COPY}\""), format!("\"sessionId\":\"{SOURCE}\""));
    damage_is_found(&adapter, &session.write(adapter.home()), &own, &old);
    let adapter = codex(home.path());
    for dialect in [Dialect::Legacy, Dialect::Paginated] {
        let home = tempfile::tempdir().unwrap();
        let session = CodexSession::new(SOURCE).cwd("/home/me/app").dialect(dialect).turn(turn(1, 1)).turn(turn(0, 2));
        let (own, old) = (format!("\"thread_id\":\"{COPY}\""), format!("\"thread_id\":\"{SOURCE}\""));
        damage_is_found(&adapter, &session.write(home.path()), &own, &old);
    }
}

/// A session with two gaps: the first record names a parent, and so does one in the middle.
fn with_gaps(adapter: &dyn Adapter) -> PathBuf {
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(2, 1)).turn(turn(1, 2)).turn(turn(0, 3));
    let source = session.write(adapter.home());
    let content = fs::read_to_string(&source).unwrap();
    let mut lines: Vec<serde_json::Value> = content.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let chain: Vec<usize> = (0..lines.len()).filter(|index| lines[*index]["uuid"].is_string()).collect();
    for gap in [chain[0], chain[chain.len() / 2]] {
        lines[gap]["parentUuid"] = json!("dddddddd-0000-4000-8000-000000000000");
    }
    fs::write(&source, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    source
}

#[test]
fn a_copy_links_what_follows_a_missing_record() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let source = with_gaps(&adapter);
    assert_eq!(adapter.scan(&source).defects.count(DefectKind::BrokenLink), 2);
    check(&adapter, &source);
    let copy = fs::read_to_string(copied(&adapter, &source, None)).unwrap();
    let mut seen = std::collections::HashSet::from(["null".to_owned()]);
    for line in copy.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["uuid"].is_string() {
            assert!(seen.contains(&record["parentUuid"].to_string()), "{record}");
            seen.insert(record["uuid"].to_string());
        }
    }
    let (own, old) = (format!("\"sessionId\":\"{COPY}\""), format!("\"sessionId\":\"{SOURCE}\""));
    damage_is_found(&adapter, &source, &own, &old);
}

#[test]
fn a_line_too_long_for_memory_is_rewritten_like_any_other() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let source = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(0, 1)).write(adapter.home());
    let side = source.with_extension("");
    fs::create_dir_all(&side).unwrap();
    let mut content = fs::read_to_string(&source).unwrap();
    let last: serde_json::Value = content
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .rfind(|record| record["uuid"].is_string())
        .unwrap();
    let bulk = format!("{SOURCE} {}/x ", side.display()).repeat(200_000);
    let mut long = last.clone();
    long["parentUuid"] = json!("dddddddd-0000-4000-8000-000000000000");
    long["uuid"] = json!("99999999-9999-4999-8999-999999999999");
    long["message"] = json!({ "role": "assistant", "content": [{ "type": "text", "text": bulk }] });
    content.push_str(&format!("{long}\n"));
    fs::write(&source, content).unwrap();
    let copy = fs::read_to_string(copied(&adapter, &source, None)).unwrap();
    let line = copy.lines().find(|line| line.len() > 16 << 20).unwrap();
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((record["sessionId"].as_str(), record["cwd"].as_str()), (Some(COPY), Some("/elsewhere/ü")));
    assert_eq!(record["forkedFrom"]["messageUuid"], long["uuid"]);
    assert_eq!(record["parentUuid"], last["uuid"], "its own is missing");
    let new_side = adapter.home().join("projects").join(agents::claude::project_folder(Path::new("/elsewhere/ü")));
    let expected = bulk.replace(&format!("{}/", side.display()), &format!("{}/", new_side.join(COPY).display()));
    assert!(record["message"]["content"][0]["text"] == json!(expected), "the content is another");
}

#[test]
fn checkpoints_and_notes_come_along() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let source = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(0, 1)).write(adapter.home());
    let write = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let history = adapter.home().join("file-history");
    write(history.join(SOURCE).join("abc@v1"), "as it was");
    write(source.with_file_name("memory").join("MEMORY.md"), "the source's");
    write(source.with_file_name("memory").join("more/style.md"), "brief");
    let target = order(&adapter, None).target;
    write(target.with_file_name("memory").join("MEMORY.md"), "the target's own");
    copied(&adapter, &source, None);
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!(read(history.join(COPY).join("abc@v1")), "as it was");
    assert_eq!(read(target.with_file_name("memory").join("MEMORY.md")), "the target's own");
    assert_eq!(read(target.with_file_name("memory").join("more/style.md")), "brief");
}

#[test]
fn a_cut_brings_what_it_mentions_and_nothing_of_later_turns() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let helped = |number: usize| {
        move |turn: Turn| {
            turn.prompt(format!("send {number}"))
                .subagent("help", |turn| {
                    turn.prompt(format!("below {number}"))
                        .tool("Bash", json!({"command": "ls"}), format!("saved to tool-results/b{number}.txt"))
                        .tool("Agent", json!({"prompt": "deeper"}), format!("agentId: deep{number}"))
                        .text("done below")
                })
                .tool("Bash", json!({"command": "ls"}), format!("saved to tool-results/t{number}.txt"))
                .text("done")
        }
    };
    let source = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(helped(1)).turn(helped(2)).write(adapter.home());
    let side = source.with_extension("");
    fs::create_dir_all(side.join("tool-results")).unwrap();
    let results = ["b1.txt", "b2.txt", "t1.txt", "t2.txt"];
    for name in results {
        fs::write(side.join("tool-results").join(name), name).unwrap();
    }
    for number in ["deep1", "deep2"] {
        fs::write(side.join(format!("subagents/agent-{number}.jsonl")), "{}\n").unwrap();
        fs::write(side.join(format!("subagents/agent-{number}.meta.json")), "{}").unwrap();
    }
    let names = |folder: PathBuf| {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let whole = copied(&adapter, &source, None).with_extension("");
    assert_eq!(names(whole.join("tool-results")), results);
    assert_eq!(names(whole.join("subagents")).len(), 8);
    fs::remove_dir_all(&whole).unwrap();
    let cut = copied(&adapter, &source, Some(1));
    assert_eq!(names(cut.with_extension("").join("tool-results")), ["b1.txt", "t1.txt"]);
    assert_eq!(names(cut.with_extension("").join("subagents")).len(), 4, "two subagents, one below the other");
    assert_eq!(all(&adapter, &cut, None), all(&adapter, &source, Some(1)));
}

#[test]
fn side_folders_and_paths_into_them_come_along() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(|turn| {
        turn.prompt("send one").subagent("help", |turn| turn.prompt("below").text("done below")).text("done")
    });
    let source = session.write(adapter.home());
    let side = source.with_extension("");
    fs::create_dir_all(side.join("tool-results")).unwrap();
    fs::write(side.join("tool-results/t1.txt"), "all of the output").unwrap();
    let copy = copied(&adapter, &source, None);
    assert_eq!(all(&adapter, &copy, None), all(&adapter, &source, None));
    let copied_side = copy.with_extension("");
    assert_eq!(fs::read_to_string(copied_side.join("tool-results/t1.txt")).unwrap(), "all of the output");
    for entry in fs::read_dir(copied_side.join("subagents")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        assert!(!text.contains(SOURCE), "{}: {text}", entry.path().display());
    }
    assert!(!fs::read_to_string(&copy).unwrap().contains(&*side.to_string_lossy()));
}

#[test]
fn an_identity_whose_payload_is_not_an_object_does_not_stop_a_copy() {
    for payload in ["1", "null", "\"text\"", "[{}]", "{\"git\":[]}", "{\"git\":{\"branch\":7}}"] {
        let home = tempfile::tempdir().unwrap();
        let adapter = codex(home.path());
        let session = CodexSession::new(SOURCE).cwd("/home/me/app").turn(turn(0, 1));
        let source = session.write(adapter.home());
        let content = fs::read_to_string(&source).unwrap();
        let (_, rest) = content.split_once('\n').unwrap();
        fs::write(&source, format!("{{\"type\":\"session_meta\",\"payload\":{payload}}}\n{rest}")).unwrap();
        let copy = copied(&adapter, &source, None);
        assert_eq!(all(&adapter, &copy, None), all(&adapter, &source, None), "{payload}");
        assert_eq!(adapter.scan(&copy).id.as_str(), COPY, "{payload}");
    }
}

/// However little is known of it, however long it is and whatever stands in it: [`copied`] compares.
#[test]
fn odd_lines_are_copied_alike_however_they_were_found() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(1, 1)).turn(turn(2, 2));
    let source = session.turn(turn(3, 3)).write(adapter.home());
    let mut content = fs::read_to_string(&source).unwrap();
    let chain: Vec<serde_json::Value> = content.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = chain.iter().rfind(|record| record["uuid"].is_string()).unwrap();
    let mut parent = last["uuid"].clone();
    let mut follow = |content: &mut String, number: u64, line: &dyn Fn(&serde_json::Value) -> String| {
        let mut next = last.clone();
        next["parentUuid"] = std::mem::replace(&mut parent, json!(format!("{number:08x}-0000-4000-8000-000000000000")));
        next["uuid"] = parent.clone();
        content.push_str(&format!("{}\n", line(&next)));
    };
    let forked = json!({ "sessionId": "other", "messageUuid": "x" });
    follow(&mut content, 1, &|next| {
        let mut next = next.clone();
        next["forkedFrom"] = forked.clone();
        next.to_string()
    });
    follow(&mut content, 2, &|next| next.to_string().replacen('{', r#"{"sessionId":"twice","cwd":"/twice","#, 1));
    follow(&mut content, 3, &|next| format!("  {next} \t"));
    content.push_str("\n   \nnot JSON\n{\"type\":\"user\",\"uuid\":\"cut\n[]\n{}\n");
    content.push_str("{\"type\":\"api-request\",\"sessionId\":\"x\"}\n{\"type\":\"unheard-of\",\"n\":1.50}\n");
    follow(&mut content, 4, &ToString::to_string);
    fs::write(&source, &content).unwrap();
    assert!(adapter.scan(&source).plain.is_some());
    copied(&adapter, &source, None);
    copied(&adapter, &source, Some(2));
    // So long that several threads look at it.
    let bulk = "x".repeat(60_000);
    for number in 0..600 {
        follow(&mut content, 100 + number, &|next| {
            let mut next = next.clone();
            next["bulk"] = json!(bulk);
            next.to_string()
        });
    }
    // Somebody is still writing.
    content.push_str("{\"type\":\"user\",\"uuid\":\"cut");
    fs::write(&source, &content).unwrap();
    let known = PlainScan::of(&adapter.scan(&source)).unwrap();
    let whole = fs::read(copied(&adapter, &source, None)).unwrap();
    // What was appended since is not part of it, whenever its lines are found.
    fs::write(&source, content + " on\"}\n{}\n").unwrap();
    let order = order(&adapter, None);
    for known in [PlainScan { layout: None, ..known.clone() }, known] {
        let file = fs::File::create(&order.target).unwrap();
        write_copy(&adapter, &source, &order, Some(&known), (&order.target, &file)).unwrap();
        assert!(fs::read(&order.target).unwrap() == whole);
    }
}

/// Whatever was noted of another file, a copy is right or is told not to be.
#[test]
fn a_file_that_changed_since_its_lines_were_noted_is_taken_apart() {
    let home = tempfile::tempdir().unwrap();
    let adapter = claude(home.path());
    let session = ClaudeSession::new(SOURCE).cwd("/home/me/app").turn(turn(1, 1)).turn(turn(2, 2));
    let source = session.write(adapter.home());
    let known = PlainScan::of(&adapter.scan(&source)).unwrap();
    let content = fs::read_to_string(&source).unwrap();
    let order = order(&adapter, None);
    fs::create_dir_all(order.target.parent().unwrap()).unwrap();
    let write = |known: &PlainScan| {
        let file = fs::File::create(&order.target).unwrap();
        let written = write_copy(&adapter, &source, &order, Some(known), (&order.target, &file));
        let is_right = written.is_ok_and(|(copied, found)| copied.compare(&found, &order).is_ok());
        is_right.then(|| fs::read(&order.target).unwrap())
    };
    let shorter = content.replacen("\"sessionId\"", "\"session\"", 1);
    let moved = content.replace("\"cwd\":\"/home/me/app\",", "").replace('}', "}   ");
    for changed in [shorter.as_str(), &moved, &content[..content.len() / 2], ""] {
        fs::write(&source, changed).unwrap();
        let size = changed.len() as u64;
        let taken_apart = write(&PlainScan { size, layout: None, ..known.clone() });
        assert_eq!(write(&PlainScan { size, ..known.clone() }), taken_apart, "{changed}");
    }
    fs::write(&source, content.replace("\"uuid\"", "\"UUID\"")).unwrap();
    assert_eq!(write(&known), None);
}
