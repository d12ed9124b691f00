//! Reading a transcript in blocks on several threads finds what reading it line by line finds.

#![expect(clippy::needless_pass_by_value, reason = "cases read better without references")]

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::lines::LONGEST;

const SIMPLE: ReadOptions = ReadOptions { threads: 1, block: 1, longest: LONGEST };

fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("-w-app/11111111-1111-4111-8111-111111111111.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn scanned(path: &Path, means: ReadOptions) -> Scan {
    scan_with(path, SessionId::new("11111111-1111-4111-8111-111111111111").unwrap(), None, |_| means)
}

/// Scans in blocks of all these sizes and returns what each scan found.
fn check(path: &Path, longest: usize, blocks: impl IntoIterator<Item = usize>) -> Scan {
    let simple = scanned(path, ReadOptions { longest, ..SIMPLE });
    for block in blocks {
        let means = ReadOptions { threads: 2 + block % 3, block, longest: longest.max(block) };
        let expected = match means.longest == longest {
            true => &simple,
            false => &scanned(path, ReadOptions { longest: means.longest, ..SIMPLE }),
        };
        assert_eq!(scanned(path, means), *expected, "{means:?}");
    }
    simple
}

fn record(kind: &str, id: &str, parent: Option<&str>, message: Value) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "type": kind, "uuid": id, "cwd": "/w/app", "gitBranch": "main",
        "version": "2.1.325", "timestamp": "2026-11-10T12:00:00.000Z", "message": message})
}

fn user(id: &str, parent: Option<&str>, content: Value) -> Value {
    record("user", id, parent, json!({"role": "user", "content": content}))
}

fn answer(id: &str, parent: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let usage = json!({"input_tokens": 3, "output_tokens": 4});
    let message =
        json!({"id": format!("msg_{id}"), "model": "m", "stop_reason": "end_turn", "usage": usage, "content": content});
    record("assistant", id, Some(parent), message)
}

#[test]
fn every_boundary_of_a_block_gives_the_same() {
    let lines = [
        // The first answer before the first prompt, as 2.1.197 writes it.
        answer("b", "a", "yes").to_string(),
        user("a", None, json!("fix \"it\" \\ now")).to_string(),
        "garbage".to_owned(),
        String::new(),
        user("c", Some("b"), json!([{"type": "tool_result", "tool_use_id": "t", "content": "x".repeat(900)}]))
            .to_string()
            + "\r",
        json!({"type": "custom-title", "customTitle": "mine"}).to_string(),
        user("d", Some("a"), json!("again")).to_string(),
        json!({"type": "last-prompt", "leafUuid": "c"}).to_string(),
        answer("e", "d", "no").to_string(),
    ];
    let whole = lines.join("\n");
    for text in [whole.clone(), whole.clone() + "\n", whole[..whole.len() - 10].to_owned()] {
        let (_folder, path) = file(text.as_bytes());
        let scan = check(&path, LONGEST, 1..text.len() + 2);
        assert_eq!((scan.summary.turns, scan.summary.custom_title.as_deref()), (1, Some("mine")));
        // The longest line is a long one then.
        let scan = check(&path, 600, 1..600);
        assert_eq!(scan.summary.defects.count(DefectKind::HugeLine), 1);
    }
}

#[test]
fn a_parent_far_away_gives_the_same() {
    let mut text = String::new();
    for index in 0..6000u32 {
        let parent = if index == 5900 { Some(17) } else { index.checked_sub(1) };
        let parent = parent.map(|parent| format!("r{parent}"));
        let line = user(&format!("r{index}"), parent.as_deref(), json!(format!("prompt {index}")));
        text += &format!("{line}\n");
    }
    let (_folder, path) = file(text.as_bytes());
    let scan = check(&path, LONGEST, [1000, 10_000, 64 << 10]);
    assert_eq!(scan.summary.turns, 18 + 100);
}

#[test]
fn what_cannot_be_read_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.jsonl");
    let scan = check(&missing, LONGEST, [100]);
    assert_eq!(scan.summary.defects.count(DefectKind::Unreadable), 1);
    check(folder.path(), LONGEST, [100]);
    let (_folder, empty) = file(b"");
    let scan = check(&empty, LONGEST, [100]);
    assert_eq!(scan.summary.defects.count(DefectKind::Empty), 1);
}

/// One line, or what takes its place. Ids are few, so that parents are found, missing, doubled and in circles.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let id = || (0..40u32).prop_map(|id| format!("00000000-0000-4000-8000-0000000000{id:02}"));
    let content = prop_oneof![
        4 => "[ -~äß\\n]{0,30}".prop_map(Value::from),
        1 => (0..1500usize).prop_map(|len| Value::from("ä\"\\".repeat(len / 4))),
        2 => Just(json!([{"type": "tool_result", "tool_use_id": "t", "content": "out"}])),
        1 => Just(json!("<command-name>/review</command-name>")),
        1 => Just(json!("<local-command-stdout>x</local-command-stdout>")),
        1 => Just(json!("[Request interrupted by user]")),
        1 => Just(json!([{"type": "text", "text": "go"}])),
    ];
    let kind = prop::sample::select(vec!["user", "user", "user", "assistant", "attachment", "system", "new-kind"]);
    let extra = prop_oneof![
        12 => Just(json!({})),
        1 => Just(json!({"isMeta": true})),
        1 => Just(json!({"isSidechain": true})),
        1 => Just(json!({"isCompactSummary": true})),
        1 => Just(json!({"isApiErrorMessage": true})),
        1 => id().prop_map(|id| json!({"parentUuid": null, "logicalParentUuid": id})),
        1 => "[a-z]{3}".prop_map(|id| json!({"forkedFrom": {"sessionId": id, "messageUuid": "m"}})),
        1 => "/w/[a-c]{1,2}".prop_map(|cwd| json!({"cwd": cwd})),
        1 => Just(json!({"cwd": "/w/app"})),
        1 => "[a-c]{0,2}".prop_map(|branch| json!({"gitBranch": branch, "version": branch})),
        1 => "2026-1[0-2]-0[1-9]T00:00:00.000Z".prop_map(|time| json!({"timestamp": time})),
        1 => Just(json!({"timestamp": ""})),
    ];
    let chain = (kind, id(), prop::option::of(id()), content, extra, "msg_[a-c]").prop_map(
        |(kind, id, parent, content, extra, message)| {
            let mut record =
                record(kind, &id, parent.as_deref(), json!({"id": message, "model": "m", "content": content}));
            for (key, value) in extra.as_object().unwrap() {
                record[key] = value.clone();
            }
            record.to_string().into_bytes()
        },
    );
    let side = prop_oneof![
        id().prop_map(|id| json!({"type": "last-prompt", "leafUuid": id})),
        "[a-zä\"]{0,5}".prop_map(|title| json!({"type": "custom-title", "customTitle": title})),
        "[a-z]{0,5}".prop_map(|title| json!({"type": "ai-title", "aiTitle": title})),
        Just(json!({"type": "relocated", "relocatedCwd": "/moved"})),
        Just(json!({"type": "mode", "mode": "normal"})),
    ]
    .prop_map(|record| record.to_string().into_bytes());
    let whole = prop_oneof![8 => chain, 1 => side].boxed();
    let cut = (whole.clone(), any::<prop::sample::Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len()));
        line
    });
    let not_utf8 = whole.clone().prop_map(|mut line| {
        let quote = line.iter().rposition(|byte| *byte == b'"').unwrap_or(0);
        line.insert(quote, 0xff);
        line
    });
    let garbage = prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![20 => whole, 1 => cut, 1 => not_utf8, 1 => garbage, 1 => Just(b"  ".to_vec())]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let ending = prop_oneof![9 => Just(&b"\n"[..]), 1 => Just(&b"\r\n"[..])];
    (prop::collection::vec((line(), ending), 0..60), any::<bool>()).prop_map(|(lines, is_ended)| {
        let mut text: Vec<u8> = lines.iter().flat_map(|(line, ending)| line.iter().chain(*ending)).copied().collect();
        if !is_ended {
            text.pop();
        }
        text
    })
}

proptest! {
    #[test]
    fn any_file_in_any_blocks_gives_the_same(
        text in text(),
        blocks in prop::collection::vec(1..3000usize, 3),
        longest in prop_oneof![Just(LONGEST), 200..2000usize],
    ) {
        let (_folder, path) = file(&text);
        check(&path, longest, blocks);
    }
}
