//! A synthetic thread of Codex: what happened in it, whom it was forked from, and where its files go.

pub(crate) mod lines;
mod turn;

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::random::{Clock, Random};
use super::turn::Turn;
use lines::{CodexLines, Setting};

/// How a rollout is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Numbered lines, as 0.150 and later write them for new threads.
    Paginated,
    /// Without numbers, as 0.140 writes them.
    Legacy,
}

/// Describes a thread of Codex and writes it as the real one would have.
#[derive(Debug, Clone)]
pub struct CodexSession {
    setting: Setting,
    seed: u64,
    started: u64,
    events: Vec<Event>,
    name: Option<String>,
    fork: Option<Fork>,
}

#[derive(Debug, Clone)]
enum Event {
    Turn(Turn),
    Compaction(String),
}

#[derive(Debug, Clone)]
enum Fork {
    /// The history is in the source, up to an ordinal.
    Reference { source: String, ordinal: u64, offset: u64 },
    /// The history was copied from the source.
    Copy { source: Box<CodexSession> },
}

impl CodexSession {
    /// A paginated thread in `/home/me/app`, begun on 1 November 2026, of the model provider that the drivers configure.
    pub fn new(id: &str) -> Self {
        Self {
            setting: Setting {
                id: id.to_owned(),
                cwd: "/home/me/app".to_owned(),
                branch: "main".to_owned(),
                provider: "mock".to_owned(),
                dialect: Dialect::Paginated,
                interactive: false,
                parent: None,
            },
            seed: id.bytes().fold(11, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
            started: 1_793_534_400_000,
            events: Vec::new(),
            name: None,
            fork: None,
        }
    }

    /// Where it worked.
    pub fn cwd(mut self, path: impl AsRef<Path>) -> Self {
        self.setting.cwd = path.as_ref().display().to_string();
        self
    }

    /// The git branch that it names.
    pub fn git_branch(mut self, branch: &str) -> Self {
        self.setting.branch = branch.to_owned();
        self
    }

    /// The model provider that it names. Codex refuses to resume threads of providers that are not configured.
    pub fn provider(mut self, provider: &str) -> Self {
        self.setting.provider = provider.to_owned();
        self
    }

    /// How it is written.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.setting.dialect = dialect;
        self
    }

    /// Typed at a terminal, instead of run by `codex exec`.
    pub fn interactive(mut self) -> Self {
        self.setting.interactive = true;
        self
    }

    /// Other ids than those that follow from the thread's own.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// When it began, in milliseconds since 1970.
    pub fn started(mut self, milliseconds: u64) -> Self {
        self.started = milliseconds;
        self
    }

    /// Its name, kept in `session_index.jsonl`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds a turn.
    pub fn turn(mut self, describe: impl FnOnce(Turn) -> Turn) -> Self {
        self.events.push(Event::Turn(describe(Turn::default())));
        self
    }

    /// Adds `/compact` with the summary that the model wrote.
    pub fn compact(mut self, summary: &str) -> Self {
        self.events.push(Event::Compaction(summary.to_owned()));
        self
    }

    /// A native fork of the thread so far: by reference when it is paginated, by copy when it is legacy.
    pub fn fork(&self, new: &str) -> Self {
        let (ordinal, offset) = self.end();
        let fork = match self.setting.dialect {
            Dialect::Paginated => Fork::Reference { source: self.setting.id.clone(), ordinal, offset },
            Dialect::Legacy => Fork::Copy { source: Box::new(self.clone()) },
        };
        let events = if self.setting.dialect == Dialect::Legacy { self.events.clone() } else { Vec::new() };
        let setting = Setting { id: new.to_owned(), ..self.setting.clone() };
        Self {
            setting,
            seed: self.seed ^ 0xF0,
            started: self.started + 3_600_000,
            events,
            name: None,
            fork: Some(fork),
        }
    }

    /// The thread's id.
    pub fn id(&self) -> &str {
        &self.setting.id
    }

    /// Writes the rollout and those of subagents below Codex's home, and returns the rollout's path.
    pub fn write(&self, codex_home: &Path) -> PathBuf {
        let path = rollout_path(codex_home, &self.setting.id, self.started);
        self.write_files(codex_home, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    fn write_files(&self, codex_home: &Path, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path.parent().expect("a directory of the day"))?;
        let mut lines = self.play(BufWriter::new(fs::File::create(path)?))?;
        for (thread, content) in std::mem::take(&mut lines.subagents) {
            fs::write(rollout_path(codex_home, &thread, self.started), content)?;
        }
        lines.into_inner().flush()?;
        if let Some(name) = &self.name {
            let mut index =
                OpenOptions::new().create(true).append(true).open(codex_home.join("session_index.jsonl"))?;
            let named =
                json!({"id": self.setting.id, "thread_name": name, "updated_at": Clock::at(self.started).now()});
            writeln!(index, "{named}")?;
        }
        Ok(())
    }

    /// The ordinal and the offset at which the thread's own file ends.
    fn end(&self) -> (u64, u64) {
        let lines = self.play(io::sink()).expect("writing to nowhere");
        (lines.ordinal(), lines.bytes())
    }

    fn play<W: Write>(&self, out: W) -> io::Result<CodexLines<W>> {
        let first = match &self.fork {
            Some(Fork::Reference { ordinal, .. }) => *ordinal,
            _ => 0,
        };
        let clock = Clock::at(self.started);
        let mut lines = CodexLines::new(out, self.setting.clone(), Random::new(self.seed), clock, first);
        match &self.fork {
            None => lines.meta(&Value::Null)?,
            Some(Fork::Reference { source, ordinal, offset }) => lines.meta(&json!({
                "forked_from_id": source,
                "forked_from_ordinal_exclusive": ordinal,
                "history_base": {"thread_id": source, "end_ordinal_exclusive": ordinal, "end_byte_offset": offset},
            }))?,
            Some(Fork::Copy { source }) => {
                lines.meta(&json!({"forked_from_id": source.setting.id}))?;
                // The copy begins with the source's own first line.
                let own = std::mem::replace(&mut lines.setting, source.setting.clone());
                lines.meta(&Value::Null)?;
                lines.setting = own;
            }
        }
        for event in &self.events {
            match event {
                Event::Turn(turn) => lines.turn(turn)?,
                Event::Compaction(summary) => lines.compaction(summary)?,
            }
        }
        Ok(lines)
    }
}

/// `sessions/2026/11/01/rollout-2026-11-01T12-00-00-<id>.jsonl`.
pub(crate) fn rollout_path(codex_home: &Path, id: &str, started: u64) -> PathBuf {
    let clock = Clock::at(started);
    let (year, month, day) = clock.date();
    let time = clock.now()[..19].replace(':', "-");
    let directory = codex_home.join("sessions").join(format!("{year:04}/{month:02}/{day:02}"));
    directory.join(format!("rollout-{time}-{id}.jsonl"))
}
