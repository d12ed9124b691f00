//! Many sessions, or very long ones, for benchmarks: sizes as people's own, written quickly in constant memory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::claude::claude_project_directory;
use super::claude::lines::{ClaudeLines, Setting as ClaudeSetting};
use super::codex::lines::{CodexLines, Setting as CodexSetting};
use super::codex::{Dialect, rollout_path};
use super::random::{Clock, Random};
use super::turn::Turn;
use super::words::Words;

/// A corpus of sessions of both agents.
///
/// Sizes are log-normal with a median of 60 KB and a long tail, and nearly all of it is tool output, as in people's
/// own directories. Every fourth session is Codex's.
#[derive(Debug, Clone)]
pub struct Corpus {
    seed: u64,
    sessions: usize,
    bytes: Option<u64>,
    projects: usize,
    median: f64,
    vocabulary: Option<usize>,
}

/// One session of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusSession {
    /// `claude` or `codex`.
    pub agent: &'static str,
    /// Its id.
    pub id: String,
    /// Where it worked.
    pub cwd: String,
    /// Its transcript.
    pub path: PathBuf,
    /// The transcript's size.
    pub bytes: u64,
    /// How many turns it has.
    pub turns: usize,
    /// A word that stands in its first prompt and in no other session.
    pub needle: String,
}

impl Corpus {
    /// A hundred sessions in ten projects.
    pub fn new(seed: u64) -> Self {
        Self { seed, sessions: 100, bytes: None, projects: 10, median: 60_000.0, vocabulary: None }
    }

    /// How many sessions.
    pub fn sessions(mut self, count: usize) -> Self {
        self.sessions = count;
        self
    }

    /// As many sessions as it takes to fill so many bytes, instead of a number of them.
    pub fn bytes(mut self, total: u64) -> Self {
        self.bytes = Some(total);
        self
    }

    /// Over how many directories they are spread.
    pub fn projects(mut self, count: usize) -> Self {
        self.projects = count.max(1);
        self
    }

    /// Another median size, in bytes.
    pub fn median(mut self, bytes: usize) -> Self {
        self.median = bytes as f64;
        self
    }

    /// This many made-up words besides the usual ones, most of them rare, and some turns in which tools are called dozens of
    /// times: where a word is rare, it is likely to stand in one of those.
    pub fn vocabulary(mut self, words: usize) -> Self {
        self.vocabulary = Some(words);
        self
    }

    /// Writes the corpus below the two agents' homes. The directories that the sessions worked in need not exist.
    pub fn write(&self, claude_home: &Path, codex_home: &Path, work: &Path) -> Vec<CorpusSession> {
        let mut random = Random::new(self.seed);
        let mut words = self.vocabulary.map_or_else(|| Words::new(self.seed), |count| Words::wide(self.seed, count));
        let mut written = Vec::new();
        let mut total = 0;
        while self.bytes.map_or(written.len() < self.sessions, |bytes| total < bytes) {
            let number = written.len();
            // The tail is cut at 200 MB, which real transcripts rarely pass.
            let mut size = random.log_normal(self.median, 1.8).clamp(4_000.0, 200e6) as u64;
            if let Some(bytes) = self.bytes {
                size = size.min(bytes - total + 4_000);
            }
            let cwd = work.join(format!("project-{}", random.below(self.projects))).display().to_string();
            // Sessions begin over the half year before 1 November 2026.
            let started = 1_793_534_400_000 - random.bits() % 15_552_000_000;
            let needle = format!("needle{number}x{}", random.bits() % 1_000_000);
            let (agent, id, path) = if number % 4 == 3 {
                let id = random.uuid_at(started);
                let path = rollout_path(codex_home, &id, started);
                ("codex", id, path)
            } else {
                let id = random.uuid();
                let path = claude_project_directory(claude_home, &cwd).join(format!("{id}.jsonl"));
                ("claude", id, path)
            };
            let plan = Plan { id: &id, cwd: &cwd, started, seed: random.bits(), needle: &needle, bytes: size };
            let output = if agent == "claude" {
                plan.write_claude(&path, &mut words)
            } else {
                plan.write_codex(&path, &mut words)
            };
            let (bytes, turns) = output.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            total += bytes;
            written.push(CorpusSession { agent, id, cwd, path, bytes, turns, needle });
        }
        written
    }
}

/// Writes one transcript of Claude Code of at least so many bytes.
pub fn big_claude_session(path: &Path, bytes: u64) {
    let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let plan = Plan { id: &id, cwd: "/home/me/app", started: 1_793_534_400_000, seed: 1, needle: "needle", bytes };
    plan.write_claude(path, &mut Words::new(1)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Writes one rollout of Codex of at least so many bytes. The thread id is taken from the end of the file's name.
pub fn big_codex_session(path: &Path, bytes: u64) {
    let id = crate::agents::thread_id(path);
    let plan = Plan { id: &id, cwd: "/home/me/app", started: 1_793_534_400_000, seed: 1, needle: "needle", bytes };
    plan.write_codex(path, &mut Words::new(1)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// What one transcript of a corpus is to be.
struct Plan<'a> {
    id: &'a str,
    cwd: &'a str,
    started: u64,
    seed: u64,
    needle: &'a str,
    bytes: u64,
}

impl Plan<'_> {
    fn write_claude(&self, path: &Path, words: &mut Words) -> io::Result<(u64, usize)> {
        let setting = ClaudeSetting {
            id: self.id.to_owned(),
            cwd: self.cwd.to_owned(),
            branch: "main".to_owned(),
            version: "2.1.325".to_owned(),
            interactive: true,
            subagent: None,
        };
        let mut random = Random::new(self.seed);
        let mut lines = ClaudeLines::new(create(path)?, setting, random.clone(), Clock::at(self.started));
        let mut turns = 0;
        while turns == 0 || lines.bytes() < self.bytes {
            let left = self.bytes.saturating_sub(lines.bytes());
            lines.turn(&self.next_turn(turns, left, ("Bash", "command"), &mut random, words))?;
            turns += 1;
        }
        lines.last_words(self.needle)?;
        let bytes = lines.bytes();
        lines.into_inner().flush()?;
        Ok((bytes, turns))
    }

    fn write_codex(&self, path: &Path, words: &mut Words) -> io::Result<(u64, usize)> {
        let setting = CodexSetting {
            id: self.id.to_owned(),
            cwd: self.cwd.to_owned(),
            branch: "main".to_owned(),
            provider: "mock".to_owned(),
            dialect: Dialect::Paginated,
            interactive: true,
            parent: None,
        };
        let mut random = Random::new(self.seed);
        let mut lines = CodexLines::new(create(path)?, setting, random.clone(), Clock::at(self.started), 0);
        lines.meta(&serde_json::Value::Null)?;
        let mut turns = 0;
        while turns == 0 || lines.bytes() < self.bytes {
            let left = self.bytes.saturating_sub(lines.bytes());
            lines.turn(&self.next_turn(turns, left, ("exec_command", "cmd"), &mut random, words))?;
            turns += 1;
        }
        let bytes = lines.bytes();
        lines.into_inner().flush()?;
        Ok((bytes, turns))
    }

    /// A turn with a few calls of tools, whose outputs take what is left of the size.
    fn next_turn(&self, number: usize, left: u64, shell: (&str, &str), random: &mut Random, words: &mut Words) -> Turn {
        let (prompt_length, answer_length) = (40 + random.below(300), 80 + random.below(900));
        let opening = if number == 0 { format!("{} ", self.needle) } else { String::new() };
        let mut turn = Turn::default().prompt(opening + &words.prose(prompt_length));
        if random.below(3) == 0 {
            turn = turn.thinking(words.prose(200));
        }
        // Every output is kept about twice: once for the model and once for the screen.
        let mut room = left as usize / 2;
        let calls = if words.is_wide() && random.below(8) == 0 { 100 } else { 8 };
        for _ in 0..random.below(calls) {
            let length = (random.log_normal(1_500.0, 1.5) as usize).clamp(20, 30_000).min(room);
            let command = format!("{} ", words.word()) + words.word();
            turn = turn.tool(shell.0, json!({shell.1: command}), words.output(length));
            room = room.saturating_sub(length + 1_000);
            if room == 0 {
                break;
            }
        }
        turn.text(words.prose(answer_length))
    }
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(BufWriter::with_capacity(1 << 20, File::create(path)?))
}
