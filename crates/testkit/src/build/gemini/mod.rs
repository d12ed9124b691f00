//! A synthetic session of Gemini CLI: what happened in it, and where its file goes.

mod lines;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::random::{Clock, Random};
use super::turn::Turn;
use lines::GeminiLines;

/// Describes a session of Gemini CLI and writes it as the real one would have.
#[derive(Debug, Clone)]
pub struct GeminiSession {
    id: String,
    cwd: String,
    seed: u64,
    started: u64,
    title: Option<String>,
    events: Vec<Event>,
    is_old: bool,
}

#[derive(Debug, Clone)]
enum Event {
    Turn(Turn),
    /// The client loaded the session again, and wrote all messages anew.
    Resume {
        at_once: bool,
    },
    /// The user went back to before this turn, from 1.
    Rewind(usize),
    /// Any record.
    Record(Value),
}

impl GeminiSession {
    /// A session in `/home/me/app`, begun on 1 November 2026.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            cwd: "/home/me/app".to_owned(),
            seed: id.bytes().fold(13, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
            started: 1_793_534_400_000,
            title: None,
            events: Vec::new(),
            is_old: false,
        }
    }

    /// Where it worked.
    pub fn cwd(mut self, path: impl AsRef<Path>) -> Self {
        self.cwd = path.as_ref().display().to_string();
        self
    }

    /// When it began, in milliseconds since 1970.
    pub fn started(mut self, milliseconds: u64) -> Self {
        self.started = milliseconds;
        self
    }

    /// Its title.
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.to_owned());
        self
    }

    /// Adds a turn.
    pub fn turn(mut self, describe: impl FnOnce(Turn) -> Turn) -> Self {
        self.events.push(Event::Turn(describe(Turn::default())));
        self
    }

    /// The session was resumed: the client writes all messages again, in another style, with the results of parallel
    /// calls stored with each of them.
    pub fn resumed(mut self) -> Self {
        self.events.push(Event::Resume { at_once: false });
        self
    }

    /// The session was resumed in the minute in which it began: the client begins its file anew, and forgets what it
    /// knew of calls besides the parts of the messages.
    pub fn resumed_at_once(mut self) -> Self {
        self.events.push(Event::Resume { at_once: true });
        self
    }

    /// The user went back to before a turn, counted from 1.
    pub fn rewound_to(mut self, turn: usize) -> Self {
        self.events.push(Event::Rewind(turn));
        self
    }

    /// Adds any record.
    pub fn record(mut self, record: Value) -> Self {
        self.events.push(Event::Record(record));
        self
    }

    /// As versions before JSONL wrote it: one object over many lines.
    pub fn old(mut self) -> Self {
        self.is_old = true;
        self
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Writes the session and its subagents below Gemini CLI's home, and returns the session's file.
    pub fn write(&self, gemini_home: &Path) -> PathBuf {
        let project = gemini_project_directory(gemini_home, Path::new(&self.cwd));
        let time = Clock::at(self.started).now()[..16].replace(':', "-");
        let kind = if self.is_old { "json" } else { "jsonl" };
        let path = project.join(format!("chats/session-{time}-{}.{kind}", &self.id[..8]));
        self.write_files(&project, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    fn write_files(&self, project: &Path, path: &Path) -> io::Result<()> {
        let chats = project.join("chats");
        fs::create_dir_all(&chats)?;
        fs::write(project.join(".project_root"), &self.cwd)?;
        let mut bytes = Vec::new();
        let mut lines = GeminiLines::new(&mut bytes, Random::new(self.seed), Clock::at(self.started));
        lines.meta(&self.id, "main", self.title.as_deref())?;
        lines.context(&self.cwd)?;
        for event in &self.events {
            match event {
                Event::Turn(turn) => lines.turn(turn)?,
                Event::Resume { at_once } => {
                    if *at_once {
                        lines.begin_again(&self.cwd)?;
                    }
                    lines.resume(*at_once)?;
                }
                Event::Rewind(turn) => lines.rewind(*turn)?,
                Event::Record(record) => lines.record(record)?,
            }
        }
        let (subagents, messages, meta) = lines.into_parts();
        for (id, content) in subagents {
            fs::create_dir_all(chats.join(&self.id))?;
            fs::write(chats.join(&self.id).join(format!("{id}.jsonl")), content)?;
        }
        let mut file = BufWriter::new(fs::File::create(path)?);
        if self.is_old {
            let mut whole = meta;
            whole["messages"] = json!(messages);
            serde_json::to_writer_pretty(&mut file, &whole)?;
        } else {
            file.write_all(&bytes)?;
        }
        file.flush()
    }
}

/// The folder of a directory's project.
pub fn gemini_project_directory(gemini_home: &Path, cwd: &Path) -> PathBuf {
    let name = cwd.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let slug: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let taken = |slug: &String| {
        let root = fs::read_to_string(gemini_home.join("tmp").join(slug).join(".project_root"));
        root.is_ok_and(|root| Path::new(root.trim()) != cwd)
    };
    let names = std::iter::once(slug.clone()).chain((1..).map(|number| format!("{slug}-{number}")));
    let free = names.into_iter().find(|slug| !taken(slug)).unwrap_or(slug);
    gemini_home.join("tmp").join(free)
}
