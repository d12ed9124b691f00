//! Whole transcripts, small and odd, as blocks. Each case is one that went wrong once.

#![expect(clippy::needless_pass_by_value, reason = "cases read better without references")]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use transcript::BlockKind;

use super::*;

/// A transcript in a project's folder, with its side folder.
struct Lab {
    _folder: tempfile::TempDir,
    store: Claude,
    path: PathBuf,
}

impl Lab {
    fn new(lines: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Claude { config: folder.path().to_owned(), proc: None };
        let path = folder.path().join("projects/-w-app/11111111-1111-4111-8111-111111111111.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).unwrap();
        Lab { _folder: folder, store, path }
    }

    fn subagent(&self, id: &str, call: &str, says: &str) {
        let folder = side_folder(&self.path).join("subagents");
        fs::create_dir_all(&folder).unwrap();
        let line = json!({"type": "assistant", "uuid": id, "isSidechain": true, "message": {"id": id, "model": "m",
            "content": [{"type": "text", "text": says}]}});
        fs::write(folder.join(format!("agent-{id}.jsonl")), format!("{line}\n")).unwrap();
        fs::write(folder.join(format!("agent-{id}.meta.json")), json!({"toolUseId": call}).to_string()).unwrap();
    }

    /// Every block in a word or two.
    fn shown(&self) -> Vec<String> {
        let mut blocks = self.store.read(&self.path, None, None).unwrap();
        let shown = std::iter::from_fn(|| blocks.next_block());
        shown
            .map(|block| {
                let indent = "  ".repeat(block.depth.into());
                let words = match block.kind {
                    BlockKind::Prompt { text, .. } => format!("{}. {text}", block.turn),
                    BlockKind::Answer { text, .. } => text,
                    BlockKind::Call { id, .. } => format!("call {id}"),
                    BlockKind::Output { call, .. } => format!("output {call}"),
                    BlockKind::Notice { text, .. } => format!("notice {text}"),
                    BlockKind::Subagent { id, .. } => format!("subagent {id}"),
                    other => other.as_str().to_owned(),
                };
                format!("{indent}{words}")
            })
            .collect()
    }

    fn summary(&self) -> Summary {
        self.store.scan(&self.path)
    }
}

fn user(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "type": "user", "uuid": uuid, "cwd": "/w/app",
        "timestamp": "2026-11-10T12:00:00.000Z", "message": {"role": "user", "content": content}})
}

fn meta(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    let mut record = user(uuid, parent, content);
    record["isMeta"] = json!(true);
    record
}

fn answer(uuid: &str, parent: &str, message: &str, block: Value) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "type": "assistant", "uuid": uuid, "cwd": "/w/app",
        "timestamp": "2026-11-10T12:00:01.000Z",
        "message": {"id": message, "model": "m", "stop_reason": "end_turn", "content": [block],
            "usage": {"input_tokens": 70, "output_tokens": 7}}})
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Agent", "input": {}})
}

fn result(uuid: &str, parent: &str, calls: &[&str]) -> Value {
    let results: Vec<Value> =
        calls.iter().map(|call| json!({"type": "tool_result", "tool_use_id": call, "content": "done"})).collect();
    user(uuid, Some(parent), json!(results))
}

#[test]
fn a_huge_line_in_a_file_out_of_order_loses_nothing_behind_it() {
    let huge = "x".repeat(17 << 20);
    let mut long = result("r", "q", &["c"]);
    long["message"]["content"][0]["content"] = json!(huge);
    long["toolUseResult"] = json!({});
    let lab = Lab::new(&[
        answer("b", "a", "m1", text("first answer")),
        user("a", None, json!("first")),
        user("p", Some("b"), json!("second")),
        answer("q", "p", "m2", call("c")),
        long,
        answer("s", "r", "m3", text("second answer")),
        user("t", Some("s"), json!("third")),
    ]);
    let expected = [
        "1. first",
        "first answer",
        "2. second",
        "call c",
        "notice a record of 17 MB is left out",
        "second answer",
        "3. third",
    ];
    assert_eq!(lab.shown(), expected);
}

#[test]
fn two_subagents_of_one_record_are_both_told() {
    for out_of_order in [false, true] {
        let mut lines = vec![
            user("a", None, json!("send two")),
            answer("p", "a", "m1", call("c1")),
            answer("q", "p", "m1", call("c2")),
            result("r", "q", &["c1", "c2"]),
            answer("s", "r", "m2", text("after both")),
        ];
        if out_of_order {
            lines.rotate_left(1);
        }
        let lab = Lab::new(&lines);
        lab.subagent("one", "c1", "says one");
        lab.subagent("two", "c2", "says two");
        let expected = [
            "1. send two",
            "call c1",
            "call c2",
            "output c1",
            "subagent one",
            "  says one",
            "output c2",
            "subagent two",
            "  says two",
            "after both",
        ];
        assert_eq!(lab.shown(), expected, "out of order: {out_of_order}");
    }
}

#[test]
fn links_of_an_unknown_kind_hold_the_chain_together() {
    let odd = |uuid: &str, parent: &str| json!({"parentUuid": parent, "type": "progress", "uuid": uuid, "data": {}});
    let lab = Lab::new(&[
        user("a", None, json!("first")),
        answer("b", "a", "m1", text("yes")),
        user("c", Some("b"), json!("given up")),
        odd("d", "b"),
        user("e", Some("d"), json!("instead")),
    ]);
    assert_eq!(lab.shown(), ["1. first", "yes", "2. instead"]);
    assert!(lab.summary().defects.is_empty());
}

#[test]
fn an_error_of_the_service_does_not_hide_model_and_tokens() {
    let mut error = answer("c", "b2", "m2", text("API Error"));
    error["isApiErrorMessage"] = json!(true);
    error["message"]["model"] = json!("<synthetic>");
    let lab = Lab::new(&[
        user("a", None, json!("first")),
        answer("b", "a", "m1", text("yes")),
        user("b2", Some("b"), json!("second")),
        error,
    ]);
    let summary = lab.summary();
    assert_eq!(summary.model.as_deref(), Some("m"));
    assert_eq!(summary.tokens.map(|tokens| tokens.input), Some(70));
    assert!(!summary.mid_turn);
    assert_eq!(lab.shown().last().unwrap(), "notice API Error");
}

#[test]
fn a_client_command_without_output_is_no_turn() {
    let command = |name: &str| json!(format!("<command-name>{name}</command-name>"));
    let caveat = json!("<local-command-caveat>Caveat</local-command-caveat>");
    let lab = Lab::new(&[
        meta("a", None, caveat.clone()),
        user("b", Some("a"), command("/clear")),
        meta("c", Some("b"), caveat),
        user("d", Some("c"), command("/model")),
        user("e", Some("d"), json!("<local-command-stdout>set</local-command-stdout>")),
        user("f", Some("e"), json!("the prompt")),
    ]);
    assert_eq!(lab.summary().turns, 1);
    assert_eq!(lab.summary().title(), Some("the prompt"));
    // A command that the agent takes up is one.
    let lab = Lab::new(&[
        user(
            "a",
            None,
            json!(
                "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>it</command-args>"
            ),
        ),
        meta("b", Some("a"), json!([text("Fix what is broken.")])),
        answer("c", "b", "m1", text("fixed")),
    ]);
    assert_eq!(lab.shown(), ["1. /fix it", "fixed"]);
}

#[test]
fn what_the_client_put_in_beside_a_prompt_is_not_the_prompt() {
    let content = json!([
        text("<ide_opened_file>main.rs</ide_opened_file>"),
        text("<system-reminder>x</system-reminder>"),
        text("fix it")
    ]);
    let lab = Lab::new(&[user("a", None, content)]);
    assert_eq!(lab.shown(), ["1. fix it"]);
    assert_eq!(lab.summary().title(), Some("fix it"));
}

#[test]
fn a_moved_session_is_where_it_was_moved_to() {
    let lab = Lab::new(&[
        {
            let mut first = user("a", None, json!("first"));
            first["cwd"] = json!("/w/elsewhere");
            first
        },
        json!({"type": "relocated", "relocatedCwd": "/w/app"}),
    ]);
    assert_eq!(lab.summary().cwd, Some(PathBuf::from("/w/app")));
}

#[test]
fn background_jobs_name_their_parents() {
    let lab = Lab::new(&[]);
    let job = lab.store.config.join("jobs/ab12");
    fs::create_dir_all(&job).unwrap();
    fs::write(job.join("state.json"), json!({"sessionId": "child", "forkParentSessionId": "parent"}).to_string())
        .unwrap();
    fs::create_dir_all(lab.store.config.join("jobs/broken")).unwrap();
    let notes = lab.store.notes();
    assert_eq!(notes.parents[&SessionId::new("child").unwrap()].id.as_str(), "parent");
}

#[cfg(unix)]
#[test]
fn a_link_to_another_project_does_not_double_its_sessions() {
    let lab = Lab::new(&[user("a", None, json!("first"))]);
    let projects = lab.store.config.join("projects");
    std::os::unix::fs::symlink(projects.join("-w-app"), projects.join("-w-alias")).unwrap();
    let outside = lab.store.config.join("moved-away");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("22222222-2222-4222-8222-222222222222.jsonl"), "").unwrap();
    std::os::unix::fs::symlink(&outside, projects.join("-w-linked")).unwrap();
    assert_eq!(lab.store.discover().files.len(), 2);
}
