//! Foreign files are never fatal.

use proptest::prelude::*;
use transcript::{DefectKind, NoticeKind};

use super::{File, Lab, id, look};
use crate::Transcripts;
use crate::lines::LineReader;

/// Three turns with everything that decides something, in both dialects.
fn samples() -> [String; 2] {
    [File::paginated(1, ""), File::legacy(1, "")].map(|mut file| {
        file.starts().message("<environment_context>").asks("one").answers("a1").asks("steering").ends();
        file.add("turn_context", r#"{"turn_id":"t","cwd":"/x","model":"m"}"#).turn("two");
        file.add("compacted", r#"{"message":"summary","replacement_history":[]}"#);
        file.event(r#"{"type":"thread_rolled_back","num_turns":1}"#).turn("three").turn("four");
        file.text()
    })
}

#[test]
fn damage_is_counted_and_passed_over() {
    let mut file = File::paginated(1, "");
    file.turn("one");
    let mut lines = file.lines.clone();
    lines.insert(1, "garbage".to_owned());
    lines.insert(2, String::new());
    lines.insert(3, "   ".to_owned());
    lines.insert(4, r#"{"timestamp":"2026-11-15T20:45:50.001Z","type":"response_item","payload":{"type":"function_call_output","outp"#.to_owned());
    lines.insert(5, "[1,2]".to_owned());
    lines.push(
        r#"{"timestamp":"2026-11-15T20:45:50.001Z","ordinal":9,"type":"event_msg","payload":{"type":"task_star"#
            .to_owned(),
    );
    let (summary, shown) = look(lines.join("\r\n"));
    assert_eq!(shown, ["1 prompt one", "1 answer answer to one"]);
    assert_eq!(summary.defects.iter().collect::<Vec<_>>(), [(DefectKind::BadLine, 3), (DefectKind::TruncatedLine, 1)]);
    assert_eq!((summary.turns, summary.mid_turn), (1, false));
}

#[test]
fn a_last_line_without_its_line_break_counts_if_it_is_whole() {
    let mut file = File::legacy(1, "");
    file.turn("one").starts().asks("two");
    let (summary, _) = look(file.text().trim_end());
    assert_eq!((summary.turns, summary.defects.is_empty()), (2, true));
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let mut bytes = File::paginated(1, "").turn("on\u{0}e").text().into_bytes();
    for byte in &mut bytes {
        if *byte == 0 {
            *byte = 0xff;
        }
    }
    let (summary, shown) = look(bytes);
    assert_eq!(shown, ["1 prompt on\u{fffd}e", "1 answer answer to on\u{fffd}e"]);
    assert_eq!(summary.defects.iter().collect::<Vec<_>>(), [(DefectKind::InvalidUtf8, 3)]);
    assert_eq!(summary.first_prompt.as_deref(), Some("on\u{fffd}e"));
}

#[test]
fn files_without_a_thread_are_told_by_their_name() {
    let check = |content: &str, defect: DefectKind| {
        let (summary, shown) = look(content);
        assert_eq!(summary.id.as_str(), id(1));
        assert_eq!(summary.defects.iter().collect::<Vec<_>>(), [(defect, 1)], "{content}");
        assert_eq!((summary.turns, shown.len()), (0, 0));
    };
    check("", DefectKind::Empty);
    check("\n\n", DefectKind::Empty);
    check("garbage\n", DefectKind::BadLine);
    check("{\"version\":9,\"said\":\"nothing that is known\"}\n", DefectKind::UnknownFormat);
}

/// The format of before 2025-09, which Codex itself no longer reads.
#[test]
fn what_codex_wrote_once_is_read() {
    let lines = [
        format!(r#"{{"id":"{}","timestamp":"2025-06-01T10:00:00.000Z","instructions":null,"git":{{"branch":"main"}}}}"#, id(1)),
        r#"{"record_type":"state"}"#.into(),
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/w/app</cwd>\n</environment_context>"}]}"#.into(),
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"What is here?"}]}"#.into(),
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I look."}]}"#.into(),
        r#"{"type":"function_call","id":"fc_1","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}"#.into(),
        r#"{"type":"function_call_output","call_id":"call_1","output":"{\"output\":\"README.md\\n\",\"metadata\":{\"exit_code\":0}}"}"#.into(),
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A file."}]}"#.into(),
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"And now?"}]}"#.into(),
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Nothing more."}]}"#.into(),
    ];
    let (summary, shown) = look(lines.join("\n") + "\n");
    assert_eq!(summary.defects.iter().collect::<Vec<_>>(), [(DefectKind::OldFormat, 1)]);
    assert_eq!((summary.turns, summary.cwd.as_deref()), (2, Some(std::path::Path::new("/w/app"))));
    assert_eq!((summary.branch.as_deref(), summary.first_prompt.as_deref()), (Some("main"), Some("What is here?")));
    assert_eq!(
        shown,
        [
            "1 prompt What is here?",
            "1 thinking I look.",
            "1 call call_1 shell {\"command\":[\"ls\"]}",
            "1 output call_1 shell exit 0 README.md",
            "1 answer A file.",
            "2 prompt And now?",
            "2 answer Nothing more.",
        ]
    );
}

#[test]
fn what_cannot_be_opened_is_told() {
    let lab = Lab::new();
    let nowhere = lab.path(&format!("{}.jsonl", id(9)));
    assert_eq!(lab.scan(&nowhere).defects.count(DefectKind::Unreadable), 1);
    assert!(lab.codex.read(&nowhere, None, None).is_err());
    std::fs::create_dir(&nowhere).unwrap();
    assert_eq!(lab.scan(&nowhere).defects.count(DefectKind::Unreadable), 1);
    if let Ok(mut blocks) = lab.codex.read(&nowhere, None, None) {
        assert!(blocks.next_block().is_none());
    }
}

#[test]
fn a_thread_is_read_up_to_where_it_was_when_reading_began() {
    let lab = Lab::new();
    let mut file = File::paginated(1, "");
    let path = lab.write(1, file.turn("one").text());
    let mut blocks = lab.codex.read(&path, None, None).unwrap();
    lab.write(1, file.turn("two").text());
    assert_eq!(super::shown(&mut *blocks).len(), 2);
    let mut blocks = lab.codex.read(&path, None, None).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(super::shown(&mut *blocks).is_empty());
    assert_eq!(blocks.defects().count(DefectKind::Unreadable), 1);
}

#[test]
fn a_line_too_long_for_memory_keeps_its_place() {
    let long = "x".repeat(LineReader::<&[u8]>::LONGEST + 100);
    let left_out = format!("{:?} a record of 16 MB is not shown", NoticeKind::Unreadable).to_lowercase();
    let check = |add: &dyn Fn(&mut File), expected: &[&str]| {
        let mut file = File::paginated(1, "");
        add(file.turn("one").starts());
        let (summary, shown) = look(file.turn("last").text());
        let expected: Vec<String> = expected.iter().map(|line| line.replace("LEFT OUT", &left_out)).collect();
        assert_eq!(shown[2..shown.len() - 2], expected);
        assert_eq!(summary.turns.to_string(), shown.last().unwrap()[..1]);
        assert_eq!(summary.defects.iter().collect::<Vec<_>>(), [(DefectKind::HugeLine, 1)]);
    };
    check(
        &|file| {
            file.prompt_event(&long).answers("a2");
        },
        &["2 prompt", "2 LEFT OUT", "2 answer a2"],
    );
    check(
        &|file| {
            file.message(&long).prompt_event("look");
        },
        &["1 LEFT OUT", "2 prompt look"],
    );
    let output = format!(r#"{{"type":"function_call_output","call_id":"c","output":"{long}"}}"#);
    check(
        &|file| {
            file.asks("two").item(&output).ends();
        },
        &["2 prompt two", "2 LEFT OUT"],
    );
    // What would not have been shown is not missed.
    let command =
        format!(r#"{{"type":"item_completed","item":{{"type":"CommandExecution","id":"c","output":"{long}"}}}}"#);
    check(
        &|file| {
            file.asks("two").event(&command);
        },
        &["2 prompt two"],
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        look(bytes);
    }

    #[test]
    fn no_change_of_a_file_makes_it_panic(
        which in 0usize..2,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(b'"'), Just(b'{'), Just(b'\n')]), 1..8),
    ) {
        let mut bytes = samples()[which].clone().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (summary, _) = look(bytes);
        prop_assert_eq!(summary.turns as usize, summary.turn_keys.len());
    }
}

#[test]
fn no_cut_loses_a_turn_before_it() {
    for text in samples() {
        let lab = Lab::new();
        let whole = lab.scan(&lab.write(1, &text));
        assert_eq!(whole.turns, 3);
        // What is read up to the end of a line is read at every cut up to the end of the next.
        let mut shown_before: Vec<String> = Vec::new();
        let mut known: Vec<u64> = Vec::new();
        let mut counted: std::collections::HashSet<u64> = std::collections::HashSet::new();
        let mut line_start = 0;
        for (end, _) in text.match_indices('\n') {
            let rolls_back = text[line_start..end].contains("thread_rolled_back");
            for cut in (line_start..end - 2).step_by(5).chain(end - 2..=end + 1) {
                let path = lab.write(1, &text.as_bytes()[..cut]);
                let summary = lab.scan(&path);
                if !(rolls_back && cut >= end) {
                    assert!(summary.turn_keys.starts_with(&known), "cut at {cut}");
                }
                counted.extend(&summary.turn_keys);
            }
            let path = lab.write(1, &text.as_bytes()[..=end]);
            known = lab.scan(&path).turn_keys;
            let shown = lab.show(&path);
            if !rolls_back {
                let settled = shown_before.len().min(shown.len()).saturating_sub(1);
                assert_eq!(shown[..settled], shown_before[..settled]);
            }
            shown_before = shown;
            line_start = end + 1;
        }
        // A key that a turn had while it was being written is the one that it keeps.
        assert!(counted.len() <= 4, "{counted:?}");
        assert_eq!(known, whole.turn_keys);
    }
}
