//! Reading sessions of Gemini CLI: what is in them, in every style that the client writes, and in damaged files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::build::{GeminiSession, Turn};
use transcript::{Block, BlockKind, DefectKind, Summary};

use super::Gemini;
use crate::{Adapter, AgentEnvironment, Transcripts};

const ID: &str = "1f3a2b4c-0000-4000-8000-000000000001";

struct World {
    folder: tempfile::TempDir,
    gemini: Gemini,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gemini = Gemini::new(&AgentEnvironment { home: folder.path().to_owned(), ..AgentEnvironment::default() });
        World { folder, gemini }
    }

    fn write(&self, session: &GeminiSession) -> PathBuf {
        session.write(&self.folder.path().join(".gemini"))
    }

    fn read(&self, path: &Path) -> (Summary, String) {
        let mut blocks = self.gemini.read(path, None, None).unwrap();
        let told: Vec<String> = std::iter::from_fn(|| blocks.next_block()).map(|block| told(&block)).collect();
        (self.gemini.scan(path), told.join("\n"))
    }
}

/// A block in one line: turn, depth and content.
fn told(block: &Block) -> String {
    let what = match &block.kind {
        BlockKind::Prompt { text, .. } => format!("prompt {text}"),
        BlockKind::Answer { text, .. } => format!("answer {text}"),
        BlockKind::Thinking { text } => format!("thinking {text}"),
        BlockKind::Call { name, input, .. } => format!("call {name} {input}"),
        BlockKind::Output { text, error, .. } => format!("output {text}{}", if *error { " (failed)" } else { "" }),
        BlockKind::Media { media_type, bytes, .. } => format!("media {media_type} {}", bytes.unwrap_or(0)),
        BlockKind::Compaction { summary } => format!("compaction {summary}"),
        BlockKind::Notice { text, .. } => format!("notice {text}"),
        BlockKind::Subagent { role, description, .. } => format!("subagent {role:?} {description:?}"),
    };
    format!("{}{} {what}", "  ".repeat(usize::from(block.depth)), block.turn)
}

fn conversation() -> GeminiSession {
    let shell = |command: &str| json!({ "command": command });
    GeminiSession::new(ID)
        .turn(|turn| {
            let calls = [("run_shell_command", shell("ls"), "a.txt"), ("read_file", json!({"file_path": "a"}), "A")];
            turn.prompt("What is here?").thinking("I look.").text("Let me see.").parallel(calls).text("One file.")
        })
        .turn(|turn| {
            turn.prompt("Look deeper.")
                .subagent("search everything", |inner: Turn| {
                    inner.prompt("Search.").tool("glob", json!({"pattern": "*"}), "b.txt").text("Found b.txt.")
                })
                .text("There is b.txt.")
        })
        .turn(|turn| turn.prompt("And now?").failing_tool("run_shell_command", shell("false"), "it failed"))
}

const TOLD: &str = "1 prompt What is here?
1 thinking I look.
1 answer Let me see.
1 call run_shell_command {\"command\":\"ls\"}
1 call read_file {\"file_path\":\"a\"}
1 output a.txt
1 output A
1 answer One file.
2 prompt Look deeper.
2 call invoke_agent {\"agent_name\":\"generalist\",\"prompt\":\"search everything\"}
2 output Found b.txt.
2 subagent Some(\"generalist\") Some(\"search everything\")
  2 prompt Search.
  2 call glob {\"pattern\":\"*\"}
  2 output b.txt
  2 answer Found b.txt.
2 answer There is b.txt.
3 prompt And now?
3 call run_shell_command {\"command\":\"false\"}
3 output it failed (failed)";

#[test]
fn a_session_is_read_once_in_every_style() {
    for session in [conversation(), conversation().old(), conversation().resumed(), conversation().resumed().resumed()]
    {
        let world = World::new();
        let path = world.write(&session);
        let (summary, told) = world.read(&path);
        assert_eq!(told, TOLD);
        assert_eq!((summary.id.as_str(), summary.turns, summary.turn_keys.len()), (ID, 3, 3));
        assert_eq!(summary.first_prompt.as_deref(), Some("What is here?"));
        assert_eq!(summary.cwd.as_deref(), Some(Path::new("/home/me/app")));
        assert_eq!(summary.model.as_deref(), Some("gemini-3.1-pro-preview"));
        assert!(summary.tokens.is_some() && summary.mid_turn && summary.defects.is_empty(), "{summary:?}");
        let found = world.gemini.discover().files;
        assert_eq!(found.iter().map(|file| &file.path).collect::<Vec<_>>(), [&path], "a subagent is no session");
        assert_eq!(world.gemini.subagents(&path).len(), 1);
    }
}

#[test]
fn going_back_drops_what_followed() {
    let world = World::new();
    let session = conversation().rewound_to(2).turn(|turn| turn.prompt("Something else.").text("Fine."));
    let (summary, told) = world.read(&world.write(&session));
    let first = TOLD.split("\n2 ").next().unwrap();
    assert_eq!(told, format!("{first}\n2 prompt Something else.\n2 answer Fine."));
    assert_eq!((summary.turns, summary.mid_turn), (2, false));
    // The client drops everything where it doesn't know the message.
    let session = conversation().record(json!({ "$rewindTo": "nowhere" }));
    assert!(world.gemini.scan(&world.write(&session)).is_empty);
}

#[test]
fn titles_pictures_and_notes_are_read() {
    let world = World::new();
    let picture = json!({ "inlineData": { "mimeType": "image/png", "data": "aGVsbG8=" } });
    let session = GeminiSession::new(ID)
        .title("first")
        .record(json!({ "id": "p", "type": "user", "content": [{ "text": "See." }, picture] }))
        .record(json!({ "id": "n", "type": "error", "content": "quota" }))
        .record(json!({ "id": "u", "type": "from the future" }))
        .record(json!({ "$set": { "summary": "second" } }));
    let (summary, told) = world.read(&world.write(&session));
    assert_eq!(told, "1 prompt See.\n1 media image/png 5\n1 notice quota");
    assert_eq!((summary.custom_title.as_deref(), summary.mid_turn), (Some("second"), true));
}

#[test]
fn damaged_files_give_what_can_be_read() {
    let world = World::new();
    let path = world.write(&conversation());
    let whole = fs::read(&path).unwrap();
    let check = |bytes: &[u8], expected: &[DefectKind], turns: u32| {
        fs::write(&path, bytes).unwrap();
        let (summary, _) = world.read(&path);
        let defects: Vec<DefectKind> = summary.defects.iter().map(|(kind, _)| kind).collect();
        assert_eq!((defects.as_slice(), summary.turns), (expected, turns));
        assert!(summary.id.as_str().starts_with("1f3a2b4c"), "{}", summary.id);
    };
    check(&whole, &[], 3);
    check(&whole[..whole.len() - 5], &[DefectKind::TruncatedLine], 3);
    check(&[&whole[..], b"garbage\n"].concat(), &[DefectKind::BadLine], 3);
    check(
        &[&whole[..], b"\0\xff\xfe\n{\"id\":\"x\",\"type\":\"user\",\"content\":\"\xff\"}\n"].concat(),
        &[DefectKind::BadLine, DefectKind::InvalidUtf8],
        4,
    );
    check(b"", &[DefectKind::Empty], 0);
    check(b"{\"from\":\"another program\"}\n", &[DefectKind::UnknownFormat], 0);
    let old = world.write(&conversation().old());
    fs::write(&old, "{\"sessionId\":\"1f3a2b4c-x\",\"messages\":[{\"id\"").unwrap();
    assert_eq!(world.gemini.scan(&old).defects.count(DefectKind::BadLine), 1);
}

#[test]
fn lines_too_long_to_be_held_keep_their_place() {
    let world = World::new();
    let data = "x".repeat(17 << 20);
    let picture = json!({ "inlineData": { "mimeType": "image/png", "data": data } });
    let session = GeminiSession::new(ID)
        .turn(|turn| turn.prompt("one").text("1"))
        .record(json!({ "id": "p", "type": "user", "content": [picture, { "text": "two" }] }))
        .turn(|turn| turn.prompt("three").text("3"));
    let expected =
        "1 prompt one\n1 answer 1\n2 prompt \n2 notice a record of 17 MB is not shown\n3 prompt three\n3 answer 3";
    let (summary, told) = world.read(&world.write(&session));
    assert_eq!((told.as_str(), summary.turns), (expected, 3));
    // The same in one line with everything, as after a resume.
    let path = world.folder.path().join("session-x-1f3a2b4c.jsonl");
    let messages: Vec<serde_json::Value> = fs::read_to_string(world.write(&session))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|record: &serde_json::Value| record["id"].is_string())
        .collect();
    let lines = [json!({ "sessionId": ID, "projectHash": "x" }), json!({ "$set": { "messages": messages } })];
    fs::write(&path, format!("{}\n{}\n", lines[0], lines[1])).unwrap();
    let (summary, told) = world.read(&path);
    assert_eq!((told.as_str(), summary.turns), (expected, 3));
    assert_eq!(world.gemini.agent(), transcript::Agent::Gemini);
}
