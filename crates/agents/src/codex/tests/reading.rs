//! Threads as blocks.

use std::path::PathBuf;

use super::{File, Lab, id, look, shown};
use crate::Transcripts;
use transcript::DefectKind;

#[test]
fn everything_is_shown_once_and_in_order() {
    let mut file = File::paginated(1, "");
    file.starts().add("turn_context", r#"{"turn_id":"t","cwd":"/home/u/a","model":"mock-model"}"#).asks("go");
    for (event, item) in [
        (
            r#"{"type":"item_completed","item":{"type":"Reasoning","id":"rs_1","summary_text":["hm"],"raw_content":[]}}"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"well"}],"content":null,"encrypted_content":"ENC1"}"#,
        ),
        (
            r#"{"type":"item_completed","item":{"type":"AgentMessage","id":"msg_2","content":[{"type":"Text","text":"I go"}]}}"#,
            r#"{"type":"message","status":"completed","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"I go","annotations":[]}]}"#,
        ),
        (
            r#"{"type":"token_count","info":null}"#,
            r#"{"type":"function_call","id":"fc_3","name":"exec_command","arguments":"{\"cmd\":\"false\"}","call_id":"call_3"}"#,
        ),
        (
            r#"{"type":"item_completed","item":{"type":"CommandExecution","id":"call_3","aggregated_output":"hi\n","exit_code":3}}"#,
            r#"{"type":"function_call_output","id":"fco_1","call_id":"call_3","output":"Chunk ID: 5c1ee8\nWall time: 0.0000 seconds\nProcess exited with code 3\nOriginal token count: 1\nOutput:\nhi\n"}"#,
        ),
        (
            r#"{"type":"thread_settings_applied","thread_settings":{}}"#,
            r#"{"type":"function_call","id":"fc_4","name":"ping","namespace":"mcp__lab","arguments":"{\"bad\":true}","call_id":"call_4"}"#,
        ),
        (
            r#"{"type":"item_completed","item":{"type":"McpToolCall","id":"call_4","server":"lab","tool":"ping","status":"failed"}}"#,
            r#"{"type":"function_call_output","call_id":"call_4","output":[{"type":"input_text","text":"Wall time: 0.0020 seconds\nOutput:"},{"type":"input_text","text":"went wrong"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}"#,
        ),
        (
            r#"{"type":"item_completed","item":{"type":"WebSearch","id":"x_14","query":"weather"}}"#,
            r#"{"type":"web_search_call","id":"x_14","status":"completed","action":{"type":"search","query":"weather"}}"#,
        ),
        (r#"{"type":"from_the_future"}"#, r#"{"type":"from_the_future","text":"?"}"#),
        (
            r#"{"type":"token_count","info":null}"#,
            r#"{"type":"reasoning","summary":[],"content":null,"encrypted_content":"ENC16"}"#,
        ),
    ] {
        file.event(event).item(item);
    }
    file.add("from_the_future", "{}").add("world_state", r#"{"full":true}"#).ends();
    let expected = [
        "1 prompt go",
        "1 thinking hm\n\nwell",
        "1 answer I go",
        r#"1 call call_3 exec_command {"cmd":"false"}"#,
        "1 output call_3 exec_command failed exit 3 hi",
        r#"1 call call_4 mcp__lab__ping {"bad":true}"#,
        "1 output call_4 mcp__lab__ping failed went wrong",
        "1 media image/png Some(3)",
        r#"1 call x_14 web_search {"type":"search","query":"weather"}"#,
        "1 thinking",
    ];
    let (summary, shown) = look(file.text());
    assert_eq!(shown, expected);
    assert!(summary.defects.is_empty());
}

#[test]
fn blocks_carry_time_message_and_model() {
    let lab = Lab::new();
    let mut file = File::paginated(1, "");
    file.starts().add("turn_context", r#"{"turn_id":"t","model":"mock-model"}"#);
    file.item(r#"{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"go"}]}"#)
        .prompt_event("go");
    file.item(r#"{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"gone"}]}"#);
    let path = lab.write(1, file.text());
    let mut blocks = lab.codex.read(&path, None, None).unwrap();
    let (prompt, answer) = (blocks.next_block().unwrap(), blocks.next_block().unwrap());
    assert_eq!(prompt.message.as_deref(), Some("msg_1"));
    assert_eq!(answer.message.as_deref(), Some("msg_2"));
    assert_eq!(answer.at.unwrap().to_string(), "2026-11-15T20:45:50.005Z");
    let expected = transcript::BlockKind::Answer { text: "gone".to_owned(), model: Some("mock-model".to_owned()) };
    assert_eq!(answer.kind, expected);
}

#[test]
fn a_summary_stands_once_where_the_history_was_replaced() {
    let compacted = r#"{"message":"Another language model started to solve this problem.\nSUMMARY of all","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}]}"#;
    for (mut file, event) in [
        (File::paginated(1, ""), r#"{"type":"item_completed","item":{"type":"ContextCompaction","id":"x"}}"#),
        (File::legacy(1, ""), r#"{"type":"context_compacted"}"#),
    ] {
        file.turn("one").starts().event(r#"{"type":"token_count","info":null}"#).answers("SUMMARY of all");
        file.event(r#"{"type":"token_count","info":null}"#).add("compacted", compacted).event(event).ends();
        // A later compaction of which only the event is there, and one without a summary of its own.
        file.turn("two").event(event).add("compacted", r#"{"message":"","replacement_history":[]}"#).event(event);
        let expected = [
            "1 prompt one",
            "1 answer answer to one",
            "1 compaction SUMMARY of all",
            "2 prompt two",
            "2 answer answer to two",
            "2 compaction",
            "2 compaction",
        ];
        let (summary, shown) = look(file.text());
        assert_eq!(shown, expected);
        assert_eq!(summary.turns, 2);
    }
}

#[test]
fn failed_requests_are_told() {
    let mut file = File::paginated(1, "");
    file.starts().asks("one").event(r#"{"type":"task_complete","turn_id":"t","last_agent_message":null,"error":{"message":"high demand","codex_error_info":"internal_server_error"}}"#);
    file.starts().asks("two").event(r#"{"type":"error","message":"it broke"}"#).ends();
    let (summary, shown) = look(file.text());
    assert_eq!(shown, ["1 prompt one", "1 error high demand", "2 prompt two", "2 error it broke"]);
    assert!(!summary.mid_turn);
}

#[test]
fn reading_ends_behind_the_wanted_turn() {
    let lab = Lab::new();
    let mut file = File::paginated(1, "");
    file.turn("one").starts().asks("two").answers("a2").asks("more").answers("a3").ends().turn("three");
    let path = lab.write(1, file.text());
    let until = |turn: u32| shown(&mut *lab.codex.read(&path, Some(turn), None).unwrap());
    assert_eq!(until(0), [""; 0]);
    assert_eq!(until(1), ["1 prompt one", "1 answer answer to one"]);
    assert_eq!(until(2).last().unwrap(), "2 answer a3");
    assert_eq!(until(2).len(), 6);
    assert_eq!(until(3), until(99));
}

/// A thread that starts a helper, told by the given event, and by the given output.
fn spawner(event: Option<&str>, output: &str) -> File {
    let mut file = File::paginated(1, "");
    file.starts().asks("use a helper");
    file.item(r#"{"type":"function_call","name":"spawn_agent","namespace":"multi_agent_v1","arguments":"{\"message\":\"the task\"}","call_id":"c"}"#);
    if let Some(event) = event {
        file.event(event);
    }
    file.item(&format!(r#"{{"type":"function_call_output","call_id":"c","output":"{output}"}}"#));
    file.message(r"<subagent_notification>\n{}").answers("done").ends();
    file
}

#[test]
fn helpers_are_shown_where_they_were_started() {
    let helper = format!(
        r#","parent_thread_id":"{}","thread_source":"subagent","agent_nickname":"Nash","agent_path":"/root/task""#,
        id(1)
    );
    let collab = format!(
        r#"{{"type":"item_completed","item":{{"type":"CollabAgentToolCall","id":"c","tool":"spawn_agent","receiver_thread_ids":["{}"],"prompt":"the task"}}}}"#,
        id(2)
    );
    let activity = format!(
        r#"{{"type":"item_completed","item":{{"type":"SubAgentActivity","id":"c","kind":"started","agent_thread_id":"{}","agent_path":"/root/task"}}}}"#,
        id(2)
    );
    let with_id = format!(r#"{{\"agent_id\":\"{}\",\"nickname\":\"Nash\"}}"#, id(2));
    let check = |event: Option<&str>, output: &str, child: &mut File, description: &str, asked: &str| {
        let lab = Lab::new();
        let path = lab.write(1, spawner(event, output).text());
        lab.write(2, child.text());
        let expected = [
            "1 prompt use a helper".to_owned(),
            r#"1 call c spawn_agent {"message":"the task"}"#.to_owned(),
            format!(r#"1 subagent {} None Some("{description}")"#, id(2)),
            format!(">1 prompt {asked}"),
            ">1 answer helped".to_owned(),
            format!("1 output c spawn_agent {}", output.replace('\\', "")),
            "1 answer done".to_owned(),
        ];
        assert_eq!(lab.show(&path), expected);
        assert_eq!(lab.scan(&path).turns, 1);
    };
    let plain = || {
        let mut file = File::paginated(2, &helper);
        file.starts().asks("the task").answers("helped").ends();
        file
    };
    check(None, &with_id, &mut plain(), "the task", "the task");
    check(Some(&collab), &with_id, &mut plain(), "the task", "the task");
    // A helper that begins with a copy of its parent's history: only its own is shown.
    let forked = format!(r#"{helper},"forked_from_id":"{}""#, id(1));
    let copy = || {
        let mut file = File::paginated(2, &forked);
        let parent = spawner(None, "");
        file.lines.extend(parent.lines[..4].iter().cloned());
        file
    };
    check(Some(&collab), &with_id, copy().starts().asks("the task").answers("helped").ends(), "the task", "the task");
    // Version 2 of the tools: the task is a message from another agent.
    let message = r#"{"type":"agent_message","author":"/root","recipient":"/root/task","content":[{"type":"input_text","text":"Message Type: NEW_TASK"},{"type":"encrypted_content","encrypted_content":"gAAA"}]}"#;
    let mut child = copy();
    child
        .starts()
        .add("inter_agent_communication_metadata", r#"{"trigger_turn":true}"#)
        .item(message)
        .answers("helped")
        .ends();
    check(Some(&activity), r#"{\"task_name\":\"/root/task\"}"#, &mut child, "/root/task", "Message Type: NEW_TASK");
}

#[test]
fn helpers_that_are_missing_or_go_in_circles_do_no_harm() {
    let lab = Lab::new();
    let output = |n: u32| format!(r#"{{\"agent_id\":\"{}\"}}"#, id(n));
    let path = lab.write(1, spawner(None, &output(2)).text());
    let mut blocks = lab.codex.read(&path, None, None).unwrap();
    assert_eq!(shown(&mut *blocks).len(), 5);
    assert_eq!(blocks.defects().count(DefectKind::MissingSubagent), 1);
    // A thread that is its own helper's helper.
    let mut second = spawner(None, &output(1));
    second.lines[0] = File::paginated(2, "").lines[0].clone();
    lab.write(2, second.text());
    lab.codex.discover();
    let shown = lab.show(&path);
    assert_eq!(shown.iter().filter(|line| line.contains("subagent")).count(), 2);
}

#[test]
fn a_review_is_shown_in_the_turn_that_asked_for_it() {
    let check = |identity: &str, is_shown: bool, is_prompt_recorded: bool| {
        let lab = Lab::new();
        let mut file = File::legacy(1, "");
        file.turn("one");
        // The thread of the review is found by its time, which its id holds.
        let time = jiff::Timestamp::from_millisecond(super::super::home::time_of(&id(2)).unwrap()).unwrap();
        let entered = r#"{"type":"entered_review_mode","target":{"type":"custom"},"user_facing_hint":"look"}"#;
        file.lines.push(format!(r#"{{"timestamp":"{time}","type":"event_msg","payload":{entered}}}"#));
        if is_prompt_recorded {
            file.starts().prompt_event("look for bugs");
        }
        file.event(r#"{"type":"exited_review_mode","review_output":null}"#).answers("none").ends();
        let path = lab.write(1, file.text());
        let child = format!(r#"{identity},"source":{{"subagent":"review"}}"#);
        lab.write(2, File::legacy(2, &child).turn("look for bugs").text());
        let turn = if is_prompt_recorded { 2 } else { 1 };
        let mut expected = Vec::new();
        if is_prompt_recorded {
            expected.push(format!("{turn} prompt look for bugs"));
        }
        if is_shown {
            expected.extend([
                format!(r#"{turn} subagent {} Some("review") None"#, id(2)),
                format!(">{turn} prompt look for bugs"),
                format!(">{turn} answer answer to look for bugs"),
            ]);
        }
        expected.push(format!("{turn} answer none"));
        assert_eq!(lab.show(&path)[2..], expected, "{identity}");
    };
    // 0.140, 0.106, and 0.77, which names no parent: then the directory decides.
    let parent = id(1);
    check(&format!(r#","parent_thread_id":"{parent}","thread_source":"subagent""#), true, true);
    check(&format!(r#","forked_from_id":"{parent}""#), true, true);
    check("", true, true);
    check("", true, false);
    check(r#","cwd":"/home/u/another""#, false, true);
    check(&format!(r#","parent_thread_id":"{}""#, id(3)), false, true);
}

#[test]
fn compressed_files_are_read_like_plain_ones() {
    let lab = Lab::new();
    let mut file = File::paginated(1, "");
    for n in 0..200 {
        file.turn(&format!("prompt {n}"));
    }
    let plain = lab.write(1, file.text());
    let compressed: PathBuf = lab.path(&format!("{}.jsonl.zst", id(1)));
    let bytes = ruzstd::encoding::compress_to_vec(file.text().as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    assert!(bytes.len() < file.text().len() / 4);
    std::fs::write(&compressed, &bytes).unwrap();
    let (expected, found) = (lab.scan(&plain), lab.scan(&compressed));
    assert_eq!((found.turn_keys, found.updated), (expected.turn_keys, expected.updated));
    assert_eq!(lab.show(&compressed), lab.show(&plain));
    // A fork of a thread that was compressed since.
    let end = file.ordinal.unwrap();
    std::fs::remove_file(&plain).unwrap();
    let more = format!(r#","history_base":{{"thread_id":"{}","end_ordinal_exclusive":{end}}}"#, id(1));
    let fork = lab.write(2, File::paginated_from(2, end, &more).turn("own").text());
    assert_eq!(lab.scan(&fork).turns, 201);
    // Cut off, it is read as far as it goes.
    std::fs::write(&compressed, &bytes[..bytes.len() - 40]).unwrap();
    assert_eq!(lab.scan(&compressed).defects.count(DefectKind::Unreadable), 1);
    std::fs::write(&compressed, "no archive").unwrap();
    assert_eq!(lab.scan(&compressed).defects.count(DefectKind::Unreadable), 1);
    assert!(lab.codex.read(&compressed, None, None).is_err());
}
