//! What the builders write, read back as plain JSON. Whether the real agents take it is asked in `real_agents/built.rs`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::build::{ClaudeSession, CodexSession, Corpus, Dialect, big_claude_session, big_codex_session};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const FORK: &str = "22222222-2222-4222-8222-222222222222";

fn lines(path: &Path) -> Vec<Value> {
    let content = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(content.ends_with('\n'), "the last line is complete");
    content.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn claude() -> ClaudeSession {
    ClaudeSession::new(ID)
        .interactive()
        .turn(|turn| turn.prompt("one").thinking("hm").tool("Bash", json!({"command": "ls"}), "a").text("1"))
        .turn(|turn| {
            turn.prompt("two").parallel_reversed([("Bash", json!({}), "b"), ("Bash", json!({}), "c")]).text("2")
        })
}

fn codex() -> CodexSession {
    CodexSession::new(ID)
        .turn(|turn| turn.prompt("one").thinking("hm").tool("exec_command", json!({"cmd": "ls"}), "a").text("1"))
        .turn(|turn| turn.prompt("two").text("2"))
}

#[test]
fn the_same_description_is_written_the_same() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(fs::read(claude().write(one.path())).unwrap(), fs::read(claude().write(two.path())).unwrap());
    assert_eq!(fs::read(codex().write(one.path())).unwrap(), fs::read(codex().write(two.path())).unwrap());
}

#[test]
fn every_parent_in_a_claude_transcript_is_an_earlier_line() {
    let home = tempfile::tempdir().unwrap();
    let path = claude().compact("summary").turn(|turn| turn.prompt("three").text("3")).write(home.path());
    let mut known = HashSet::new();
    for line in lines(&path) {
        let Some(id) = line["uuid"].as_str() else { continue };
        if let Some(parent) = line["parentUuid"].as_str() {
            assert!(known.contains(parent), "{line}");
        }
        assert!(known.insert(id.to_owned()), "{id} is there twice");
        assert_eq!(line["sessionId"], ID);
    }
}

/// As Claude Code writes it when the last of several calls ends first: the parents lead past one call and its result.
#[test]
fn results_in_reverse_order_leave_the_chain() {
    let home = tempfile::tempdir().unwrap();
    let all = lines(&claude().write(home.path()));
    let find = |id: &Value| all.iter().find(|line| id.is_string() && line["uuid"] == *id);
    let tip = all.iter().rfind(|line| line["type"] == "assistant").expect("an answer");
    let mut chain = vec![tip];
    while let Some(parent) = find(&chain[chain.len() - 1]["parentUuid"]) {
        chain.push(parent);
    }
    let results = chain.iter().filter(|line| line["message"]["content"][0]["type"] == "tool_result").count();
    assert_eq!(results, 2, "one of three results is not an ancestor of the tip");
}

#[test]
fn a_branch_names_its_source_on_every_copied_line() {
    let home = tempfile::tempdir().unwrap();
    let source = lines(&claude().write(home.path()));
    let branch = lines(&claude().branch(FORK).turn(|turn| turn.prompt("three").text("3")).write(home.path()));
    let copied: Vec<&Value> = branch.iter().filter(|line| !line["forkedFrom"].is_null()).collect();
    let chained: Vec<&Value> = source.iter().filter(|line| line["uuid"].is_string()).collect();
    assert_eq!(copied.len(), chained.len());
    for (copy, original) in copied.into_iter().zip(chained) {
        assert_eq!(copy["uuid"], original["uuid"]);
        assert_eq!(copy["forkedFrom"], json!({"sessionId": ID, "messageUuid": original["uuid"]}));
        assert_eq!(copy["sessionId"], FORK);
    }
}

#[test]
fn a_subagent_of_claude_has_files_beside_the_transcript() {
    let home = tempfile::tempdir().unwrap();
    let session = ClaudeSession::new(ID)
        .turn(|turn| turn.prompt("one").subagent("Look", |turn| turn.prompt("below").text("seen")).text("done"));
    let path = session.write(home.path());
    let files: Vec<_> = fs::read_dir(path.with_extension("").join("subagents")).unwrap().flatten().collect();
    assert_eq!(files.len(), 2);
    let transcript = files.iter().find(|file| file.path().extension().is_some_and(|kind| kind == "jsonl")).unwrap();
    for line in lines(&transcript.path()).iter().filter(|line| line["uuid"].is_string()) {
        assert_eq!(line["isSidechain"], true);
        assert!(transcript.path().to_string_lossy().contains(line["agentId"].as_str().expect("an agent")));
    }
}

#[test]
fn a_fork_by_reference_goes_on_where_its_source_ends() {
    let home = tempfile::tempdir().unwrap();
    let source = codex().write(home.path());
    let child = codex().fork(FORK).turn(|turn| turn.prompt("three").text("3")).write(home.path());
    let (source_lines, child_lines) = (lines(&source), lines(&child));
    let base = &child_lines[0]["payload"]["history_base"];
    assert_eq!(base["thread_id"], ID);
    assert_eq!(base["end_ordinal_exclusive"], source_lines.len());
    assert_eq!(base["end_byte_offset"], fs::metadata(&source).unwrap().len());
    assert_eq!(child_lines[0]["ordinal"], source_lines.len());
    assert!(!fs::read_to_string(&child).unwrap().contains("\"one\""), "the history is not copied");
}

#[test]
fn a_legacy_fork_is_a_copy_with_two_first_lines() {
    let home = tempfile::tempdir().unwrap();
    let all = lines(&codex().dialect(Dialect::Legacy).fork(FORK).write(home.path()));
    assert_eq!(all[0]["payload"]["id"], FORK);
    assert_eq!(all[0]["payload"]["forked_from_id"], ID);
    assert_eq!(all[1]["payload"]["id"], ID);
    assert!(all.iter().all(|line| line["ordinal"].is_null()));
    assert!(all.iter().any(|line| line["payload"]["message"] == "two"));
}

#[test]
fn a_named_thread_is_in_the_index() {
    let home = tempfile::tempdir().unwrap();
    codex().name("side-road").write(home.path());
    let index = lines(&home.path().join("session_index.jsonl"));
    assert_eq!(index[0]["thread_name"], "side-road");
}

#[test]
fn a_corpus_has_the_sessions_that_it_reports() {
    let home = tempfile::tempdir().unwrap();
    let (claude_home, codex_home) = (home.path().join("claude"), home.path().join("codex"));
    let sessions = Corpus::new(5).sessions(40).projects(3).write(&claude_home, &codex_home, Path::new("/work"));
    assert_eq!(sessions.len(), 40);
    for session in &sessions {
        let content = fs::read_to_string(&session.path).unwrap();
        assert_eq!(content.len() as u64, session.bytes, "{}", session.path.display());
        assert!(content.contains(&session.needle) && content.contains(&session.cwd));
    }
    assert!(sessions.iter().any(|session| session.agent == "codex" && session.path.starts_with(&codex_home)));
    let needles: HashSet<&str> = sessions.iter().map(|session| session.needle.as_str()).collect();
    assert_eq!(needles.len(), 40);
    let again = Corpus::new(5).sessions(40).projects(3).write(&claude_home, &codex_home, Path::new("/work"));
    assert_eq!(sessions, again, "the same seed writes the same");
}

#[test]
fn big_sessions_have_the_size_that_was_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let claude = home.path().join(format!("{ID}.jsonl"));
    let codex = home.path().join(format!("rollout-2026-11-01T12-00-00-{ID}.jsonl"));
    big_claude_session(&claude, 3_000_000);
    big_codex_session(&codex, 3_000_000);
    for path in [claude, codex] {
        let bytes = fs::metadata(&path).unwrap().len();
        assert!((3_000_000..3_300_000).contains(&bytes), "{bytes}");
        assert!(lines(&path).len() > 500);
    }
}
