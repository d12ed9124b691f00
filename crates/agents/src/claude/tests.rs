//! Whole transcripts, small and odd, as blocks. Each case is one that went wrong once.

#![expect(clippy::needless_pass_by_value, reason = "cases read better without references")]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use transcript::{BlockKind, SessionId, Summary};

use super::*;
use crate::{Transcripts, Writer};

/// A transcript in a project's folder, with its side folder.
struct Lab {
    _folder: tempfile::TempDir,
    adapter: Claude,
    path: PathBuf,
}

impl Lab {
    fn new(lines: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let adapter = Claude::new(&AgentEnvironment {
            variables: [("CLAUDE_CONFIG_DIR", folder.path().to_owned())].into(),
            ..AgentEnvironment::default()
        });
        let path = folder.path().join("projects/-w-app/11111111-1111-4111-8111-111111111111.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).unwrap();
        Lab { _folder: folder, adapter, path }
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
        let mut blocks = self.adapter.read(&self.path, None, None).unwrap();
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
        self.adapter.scan(&self.path)
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
        "notice a record of 17 MB is not shown",
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
fn a_memory_is_no_turn_and_no_branch_of_its_own() {
    let caveat = "Caveat: The messages below were generated by the user while running local commands.";
    let said = [
        meta("a", None, json!(caveat)),
        user("b", Some("a"), json!("first")),
        answer("c", "b", "m1", text("yes")),
        user("d", Some("c"), json!("<user-memory-input>Use tabs</user-memory-input>")),
        user("e", Some("d"), json!("(no content)")),
        user("f", Some("e"), json!("second")),
        answer("g", "f", "m2", text("done")),
    ];
    let shown = ["1. first", "yes", "notice # Use tabs", "2. second", "done"];
    assert_eq!(Lab::new(&said).shown(), shown);
    // 1.0.57 hangs it below the first caveat, too.
    let at_the_caveat = [
        user("x", Some("a"), json!("<user-memory-input>Commit often</user-memory-input>")),
        user("y", Some("x"), json!("(no content)")),
        user("z", Some("a"), json!("<command-name>/export</command-name>")),
    ];
    let lab = Lab::new(&[&said[..], &at_the_caveat].concat());
    assert_eq!(lab.shown(), shown);
    assert_eq!((lab.summary().turns, lab.summary().branches), (2, 0));
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
    let job = lab.adapter.config.join("jobs/ab12");
    fs::create_dir_all(&job).unwrap();
    fs::write(job.join("state.json"), json!({"sessionId": "child", "forkParentSessionId": "parent"}).to_string())
        .unwrap();
    fs::create_dir_all(lab.adapter.config.join("jobs/broken")).unwrap();
    let notes = lab.adapter.notes();
    assert_eq!(notes.parents[&SessionId::new("child").unwrap()].id.as_str(), "parent");
}

#[cfg(unix)]
#[test]
fn a_link_to_another_project_does_not_double_its_sessions() {
    let lab = Lab::new(&[user("a", None, json!("first"))]);
    let projects = lab.adapter.config.join("projects");
    std::os::unix::fs::symlink(projects.join("-w-app"), projects.join("-w-alias")).unwrap();
    let outside = lab.adapter.config.join("moved-away");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("22222222-2222-4222-8222-222222222222.jsonl"), "").unwrap();
    std::os::unix::fs::symlink(&outside, projects.join("-w-linked")).unwrap();
    assert_eq!(lab.adapter.discover().files.len(), 2);
}

#[test]
fn a_finished_answer_without_a_reason_is_finished() {
    let ends_with = |block: Value, reason: Value| {
        let mut last = answer("b", "a", "m1", block);
        last["message"]["stop_reason"] = reason;
        Lab::new(&[user("a", None, json!("first")), last]).summary().mid_turn
    };
    assert!(!ends_with(text("yes"), json!(null)));
    assert!(!ends_with(text("yes"), json!("end_turn")));
    assert!(ends_with(call("c"), json!(null)));
    assert!(ends_with(call("c"), json!("tool_use")));
    assert!(ends_with(json!({"type": "thinking", "thinking": "hm"}), json!(null)));
    assert!(ends_with(json!({"type": "redacted_thinking", "data": "x"}), json!(null)));
}

#[test]
fn a_prompt_from_the_sdk_is_a_turn_if_it_is_answered() {
    let from_sdk = |uuid: &str, parent: Option<&str>, words: &str| {
        let mut record = meta(uuid, parent, json!(words));
        record["promptSource"] = json!("sdk");
        record
    };
    let lab = Lab::new(&[
        from_sdk("a", None, "context"),
        from_sdk("b", Some("a"), "first"),
        json!({"parentUuid": "b", "type": "attachment", "uuid": "c", "attachment": {}}),
        json!({"parentUuid": "c", "type": "system", "subtype": "informational", "uuid": "d"}),
        answer("e", "d", "m1", text("yes")),
        user("f", Some("e"), json!("<command-name>/fix</command-name>")),
        from_sdk("g", Some("f"), "Fix what is broken."),
        answer("h", "g", "m2", text("fixed")),
        from_sdk("i", Some("h"), "last"),
    ]);
    assert_eq!(lab.shown(), ["1. first", "yes", "2. /fix", "fixed"]);
    assert!(lab.summary().mid_turn);
}

#[test]
fn only_links_that_a_copy_makes_are_gaps() {
    let boundary = |uuid: &str, logical: &str| {
        json!({"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": null,
            "logicalParentUuid": logical, "timestamp": "2026-11-10T12:00:00.000Z"})
    };
    let gaps = |lines: &[Value]| Lab::new(lines).summary().gaps;
    let said = [user("a", Some("gone"), json!("first")), answer("b", "a", "m1", text("yes"))];
    assert_eq!(gaps(&said), [0; 0], "nothing stands before it");
    let more = [user("c", Some("lost"), json!("second")), answer("d", "c", "m2", text("yes"))];
    assert_eq!(gaps(&[&said[..], &more].concat()), [2]);
    let answered = [answer("c", "lost", "m2", text("also")), user("d", Some("c"), json!("second"))];
    assert_eq!(gaps(&[&said[..], &answered].concat()), [1]);
    let compacted = [boundary("c", "lost"), user("d", Some("c"), json!("second"))];
    assert_eq!(gaps(&[&said[..], &compacted].concat()), [0; 0], "the clients don't follow it");
    let given_up = [user("c", Some("lost"), json!("second")), user("d", Some("b"), json!("third"))];
    assert_eq!(gaps(&[&said[..], &given_up].concat()), [0; 0], "it is on another branch");
}

#[test]
fn another_conversation_in_the_file_is_counted() {
    let lab = Lab::new(&[
        user("a", None, json!("first")),
        answer("b", "a", "m1", text("yes")),
        user("c", None, json!("from the start")),
        answer("d", "c", "m2", text("again")),
    ]);
    assert_eq!(lab.shown(), ["1. from the start", "again"]);
    assert_eq!(lab.summary().defects.count(transcript::DefectKind::SeparateRoot), 1);
}

#[test]
fn a_summary_is_the_title_of_the_conversation_that_it_names() {
    let old = |lines: &[Value]| {
        let mut lines = lines.to_vec();
        lines.iter_mut().for_each(|line| line["version"] = json!("2.1.29"));
        Lab::new(&lines)
    };
    let summary = |title: &str, leaf: &str| json!({"type": "summary", "summary": title, "leafUuid": leaf});
    let said = [user("a", None, json!("first")), answer("b", "a", "m1", text("yes"))];
    let title = |lines: &[Value]| old(lines).summary().title().map(str::to_owned);
    assert_eq!(title(&[summary("another's", "x"), said[0].clone(), said[1].clone()]).as_deref(), Some("first"));
    let own = [said[0].clone(), said[1].clone(), summary("its own", "b")];
    assert_eq!(title(&own).as_deref(), Some("its own"));
    // The latest record counts, and what a person said counts more.
    let both = [&own[..], &[summary("older", "a")]].concat();
    assert_eq!(title(&both).as_deref(), Some("its own"));
    let named = [&own[..], &[json!({"type": "custom-title", "customTitle": "mine"})]].concat();
    assert_eq!(title(&named).as_deref(), Some("mine"));
}

#[test]
fn a_missing_subagent_counts_the_same_for_a_scan_and_for_a_reader() {
    let named = |uuid: &str, parent: &str, call: &str, agent: &str| {
        let mut record = result(uuid, parent, &[call]);
        record["toolUseResult"] = json!({"status": "completed", "agentId": agent});
        record
    };
    let lab = Lab::new(&[
        user("a", None, json!("send three")),
        answer("b", "a", "m1", call("c1")),
        named("c", "b", "c1", "gone"),
        answer("d", "c", "m2", call("c2")),
        named("e", "d", "c2", "there"),
        answer("f", "e", "m3", call("c3")),
        named("g", "f", "c3", "../there"),
        answer("h", "g", "m4", text("after all")),
        // On a branch that was given up.
        user("x", Some("a"), json!("given up")),
        named("y", "x", "c4", "gone too"),
        json!({"type": "last-prompt", "leafUuid": "h"}),
    ]);
    lab.subagent("there", "c2", "says something");
    let kind = transcript::DefectKind::MissingSubagent;
    assert_eq!(lab.summary().defects.count(kind), 2);
    let mut blocks = lab.adapter.read(&lab.path, None, None).unwrap();
    while blocks.next_block().is_some() {}
    assert_eq!(blocks.defects().count(kind), 2);
}

#[test]
fn what_belongs_to_a_session_includes_its_subagents_beside_it() {
    let lab = Lab::new(&[user("a", None, json!("first"))]);
    let write = |name: &str, session: &str| {
        let path = lab.path.with_file_name(name);
        fs::write(&path, format!("{}\n", json!({"isSidechain": true, "sessionId": session}))).unwrap();
        path
    };
    let id = SessionId::new("11111111-1111-4111-8111-111111111111").unwrap();
    let own = write("agent-1a.jsonl", id.as_str());
    write("agent-2b.jsonl", "22222222-2222-4222-8222-222222222222");
    assert_eq!(lab.adapter.own_files(&id, &lab.path), [lab.path.clone(), own]);
}

#[test]
fn turns_with_ids_that_are_no_uuids_are_told_apart_by_what_was_said() {
    let keys = |words: &str| Lab::new(&[user("1", None, json!(words)), answer("2", "1", "m1", text("yes"))]).summary();
    let (one, other) = (keys("plant a pear"), keys("plant a plum"));
    assert_ne!(one.turn_keys, other.turn_keys);
    assert_eq!(one.turn_keys, keys("plant a pear").turn_keys);
    assert_eq!(one.plain, None, "a copy has to look at the prompts");
}

/// A sidechain record in the session file.
fn sidechain_record(mut record: Value) -> Value {
    record["isSidechain"] = json!(true);
    record
}

fn task(id: &str, prompt: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Task", "input": {"prompt": prompt}})
}

#[test]
fn a_sidechain_without_a_result_is_read() {
    let interrupted = "[Request interrupted by user for tool use]";
    let check = |lines: &[Value], expected: &[&str]| assert_eq!(Lab::new(lines).shown(), expected);
    let asked = [user("a", None, json!("first")), answer("b", "a", "m1", task("c1", "look"))];
    let looks =
        [sidechain_record(user("x", None, json!("look"))), sidechain_record(answer("y", "x", "m2", text("seen")))];
    let begun = [&asked[..], &looks].concat();
    // The file ends while the subagent works.
    check(&begun, &["1. first", "call c1", "subagent x", "  1. look", "  seen"]);
    // It was interrupted.
    let ended = [user("c", Some("b"), json!(interrupted)), user("d", Some("c"), json!("second"))];
    let shown = ["1. first", "call c1", "notice [Request interrupted by user for tool use]", "subagent x"];
    check(&[&begun[..], &ended].concat(), &[&shown[..], &["  1. look", "  seen", "2. second"]].concat());
    // Nobody called it.
    let said = [user("a", None, json!("first")), answer("b", "a", "m1", text("yes"))];
    check(&[&said[..], &looks].concat(), &["1. first", "yes", "subagent x", "  1. look", "  seen"]);
    // It belongs to a branch that was given up.
    let given_up = [user("c", Some("a"), json!("second")), answer("d", "c", "m3", text("no"))];
    check(&[&begun[..], &given_up].concat(), &["1. first", "2. second", "no"]);
    let again = [answer("c", "a", "m3", task("c2", "look")), sidechain_record(user("u", None, json!("look")))];
    check(&[&begun[..], &again].concat(), &["1. first", "call c2", "subagent u", "  1. look"]);
}

#[test]
fn an_interrupted_subagent_beside_the_session_is_the_one_that_was_asked_then() {
    let second = |mut record: Value, second: u32| {
        record["timestamp"] = json!(format!("2025-11-10T12:00:{second:02}.000Z"));
        record
    };
    let mut named = second(result("f", "e", &["c2"]), 9);
    named["toolUseResult"] = json!({"status": "completed", "agentId": "1a"});
    let lab = Lab::new(&[
        second(user("a", None, json!("first")), 0),
        second(answer("b", "a", "m1", task("c1", "look")), 1),
        second(result("c", "b", &["c1"]), 3),
        second(user("d", Some("c"), json!("second")), 5),
        second(answer("e", "d", "m2", task("c2", "look")), 6),
        named,
    ]);
    for (id, began, session) in [("2b", 2, "1"), ("1a", 7, "1"), ("0c", 1, "2")] {
        let session = "11111111-1111-4111-8111-111111111111".replace('1', session);
        let mut line = second(sidechain_record(user(id, None, json!("look"))), began);
        line["sessionId"] = json!(session);
        fs::write(lab.path.with_file_name(format!("agent-{id}.jsonl")), format!("{line}\n")).unwrap();
    }
    let shown = ["1. first", "call c1", "output c1", "subagent 2b", "  1. look", "2. second", "call c2", "output c2"];
    assert_eq!(lab.shown(), [&shown[..], &["subagent 1a", "  2. look"]].concat());
}
