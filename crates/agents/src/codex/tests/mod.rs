//! Whole threads: small files, trimmed from what 0.140 (legacy) and 0.166 (paginated) wrote.

mod damage;
mod facts;
mod forks;
mod reading;
mod turns;

use std::fs;
use std::path::{Path, PathBuf};

use transcript::{Block, BlockKind, Summary};

use super::Codex;
use crate::{AgentEnvironment, Blocks, Transcripts};

/// A folder of Codex's with the files that a test needs.
struct Lab {
    folder: tempfile::TempDir,
    codex: Codex,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sessions/2026/11/15")).unwrap();
        let surroundings = AgentEnvironment {
            variables: [("CODEX_HOME", folder.path().to_owned())].into(),
            ..AgentEnvironment::default()
        };
        let codex = Codex::new(&surroundings);
        Lab { folder, codex }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("sessions/2026/11/15/rollout-2026-11-15T20-45-44-{name}"))
    }

    /// Writes the file of the thread with the number `n`.
    fn write(&self, n: u32, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(&format!("{}.jsonl", id(n)));
        fs::write(&path, content).unwrap();
        path
    }

    fn scan(&self, path: &Path) -> Summary {
        self.codex.scan(path)
    }

    fn show(&self, path: &Path) -> Vec<String> {
        shown(&mut *self.codex.read(path, None, None).unwrap())
    }
}

/// Writes a file, scans it and shows its blocks.
fn look(content: impl AsRef<[u8]>) -> (Summary, Vec<String>) {
    let lab = Lab::new();
    let path = lab.write(1, content);
    (lab.scan(&path), lab.show(&path))
}

/// The id of the thread with the number `n`; its time grows with the number.
fn id(n: u32) -> String {
    format!("01a1e0f5-{n:04x}-77b3-9cd3-37014acd473c")
}

/// All blocks, one line each: turn, `>` for each level of nesting, kind, what it holds.
fn shown(blocks: &mut dyn Blocks) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(block) = blocks.next_block() {
        lines.push(line_of(&block));
    }
    lines
}

fn line_of(block: &Block) -> String {
    let nesting = ">".repeat(usize::from(block.depth));
    let what = match &block.kind {
        BlockKind::Prompt { text, steer: false } => format!("prompt {text}"),
        BlockKind::Prompt { text, steer: true } => format!("steer {text}"),
        BlockKind::Answer { text, .. } => format!("answer {text}"),
        BlockKind::Thinking { text } => format!("thinking {text}"),
        BlockKind::Call { id, name, input } => format!("call {id} {name} {input}"),
        BlockKind::Output { call, name, text, error, exit_code } => {
            let name = name.as_deref().unwrap_or("?");
            let mark = if *error { "failed " } else { "" };
            let code = exit_code.map_or(String::new(), |code| format!("exit {code} "));
            format!("output {call} {name} {mark}{code}{}", text.trim_end())
        }
        BlockKind::Media { media_type, bytes, .. } => format!("media {media_type} {bytes:?}"),
        BlockKind::Compaction { summary } => format!("compaction {summary}"),
        BlockKind::Notice { notice, text } => format!("{notice:?} {text}").to_lowercase(),
        BlockKind::Subagent { id, role, description } => format!("subagent {id} {role:?} {description:?}"),
    };
    format!("{nesting}{} {what}", block.turn).trim_end().to_owned()
}

/// The lines of a file, in one of the two dialects.
struct File {
    lines: Vec<String>,
    ordinal: Option<u64>,
    task: u32,
}

impl File {
    /// A thread in the paginated dialect. `more` are further fields of its `session_meta`.
    fn paginated(n: u32, more: &str) -> Self {
        File::paginated_from(n, 0, more)
    }

    /// The same for a fork, whose ordinals go on where its base ends.
    fn paginated_from(n: u32, ordinal: u64, more: &str) -> Self {
        let mut file = File { lines: Vec::new(), ordinal: Some(ordinal), task: n * 100 };
        file.add("session_meta", &format!(r#"{{"session_id":"{0}","id":"{0}","timestamp":"2026-11-15T20:45:44.{n:03}Z","cwd":"/home/u/a","cli_version":"0.166.0","source":"exec","history_mode":"paginated","git":{{"branch":"main"}}{more}}}"#, id(n)));
        file
    }

    fn legacy(n: u32, more: &str) -> Self {
        let mut file = File { lines: Vec::new(), ordinal: None, task: n * 100 };
        file.add("session_meta", &format!(r#"{{"id":"{0}","timestamp":"2026-11-15T20:45:48.{n:03}Z","cwd":"/home/u/a","cli_version":"0.140.0","source":"exec"{more}}}"#, id(n)));
        file
    }

    fn add(&mut self, kind: &str, payload: &str) -> &mut Self {
        let ordinal = self.ordinal.map_or(String::new(), |ordinal| format!(r#""ordinal":{ordinal},"#));
        self.ordinal = self.ordinal.map(|ordinal| ordinal + 1);
        self.lines.push(format!(
            r#"{{"timestamp":"2026-11-15T20:45:50.{:03}Z",{ordinal}"type":"{kind}","payload":{payload}}}"#,
            self.lines.len()
        ));
        self
    }

    fn item(&mut self, payload: &str) -> &mut Self {
        self.add("response_item", payload)
    }

    fn event(&mut self, payload: &str) -> &mut Self {
        self.add("event_msg", payload)
    }

    /// A user's message, as the model sees it.
    fn message(&mut self, text: &str) -> &mut Self {
        self.item(&format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#))
    }

    /// A prompt, as the client shows it.
    fn prompt_event(&mut self, text: &str) -> &mut Self {
        if self.ordinal.is_some() {
            let turn = turn_id(self.task);
            self.event(&format!(r#"{{"type":"item_completed","turn_id":"{turn}","item":{{"type":"UserMessage","id":"i","content":[{{"type":"text","text":"{text}","text_elements":[]}}]}}}}"#))
        } else {
            self.event(&format!(r#"{{"type":"user_message","message":"{text}","images":[],"local_images":[]}}"#))
        }
    }

    fn asks(&mut self, text: &str) -> &mut Self {
        self.message(text).prompt_event(text)
    }

    fn answers(&mut self, text: &str) -> &mut Self {
        self.item(&format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
        ))
    }

    fn starts(&mut self) -> &mut Self {
        self.task += 1;
        let turn = turn_id(self.task);
        self.event(&format!(r#"{{"type":"task_started","turn_attribution":{{"turn_id":"x"}},"turn_id":"{turn}","model_context_window":258400}}"#))
    }

    fn ends(&mut self) -> &mut Self {
        let turn = turn_id(self.task);
        self.event(&format!(r#"{{"type":"task_complete","turn_id":"{turn}","last_agent_message":null}}"#))
    }

    /// A turn as it always is: asked, answered, done.
    fn turn(&mut self, text: &str) -> &mut Self {
        self.starts().asks(text).answers(&format!("answer to {text}")).ends()
    }

    fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

fn turn_id(task: u32) -> String {
    format!("01a1e0f5-{task:04x}-7960-8a48-5463f3d62da2")
}
