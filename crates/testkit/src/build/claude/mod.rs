//! A synthetic session of Claude Code: what happened in it, and where its files go.

pub(crate) mod lines;
mod records;
mod turn;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::random::{Clock, Random};
use super::turn::Turn;
use lines::{ClaudeLines, Setting};

/// Describes a session of Claude Code and writes it as the real one would have.
#[derive(Debug, Clone)]
pub struct ClaudeSession {
    setting: Setting,
    seed: u64,
    started: u64,
    events: Vec<Event>,
    /// Copied by `/branch`: from which session, and how many events.
    branched: Option<(String, usize)>,
}

#[derive(Debug, Clone)]
enum Event {
    Turn(Turn),
    Compaction(String),
    Title(String),
    /// Goes back to the point after so many turns and on from there, in the same file.
    Rewind(usize),
}

impl ClaudeSession {
    /// A session of 2.1.325 in `/home/me/app`, begun on 1 November 2026.
    pub fn new(id: &str) -> Self {
        Self {
            setting: Setting {
                id: id.to_owned(),
                cwd: "/home/me/app".to_owned(),
                branch: "main".to_owned(),
                version: "2.1.325".to_owned(),
                interactive: false,
                subagent: None,
            },
            seed: id.bytes().fold(7, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
            started: 1_793_534_400_000,
            events: Vec::new(),
            branched: None,
        }
    }

    /// Where it worked. Relative links are not resolved: give the real path.
    pub fn cwd(mut self, path: impl AsRef<Path>) -> Self {
        self.setting.cwd = path.as_ref().display().to_string();
        self
    }

    /// The git branch that its lines name.
    pub fn git_branch(mut self, branch: &str) -> Self {
        self.setting.branch = branch.to_owned();
        self
    }

    /// The version that wrote it: `2.1.325` or `2.1.197`.
    pub fn version(mut self, version: &str) -> Self {
        self.setting.version = version.to_owned();
        self
    }

    /// Typed at a terminal, instead of run by `claude -p`.
    pub fn interactive(mut self) -> Self {
        self.setting.interactive = true;
        self
    }

    /// Other ids than those that follow from the session's own.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// When it began, in milliseconds since 1970.
    pub fn started(mut self, milliseconds: u64) -> Self {
        self.started = milliseconds;
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

    /// Adds `/rename`.
    pub fn title(mut self, title: &str) -> Self {
        self.events.push(Event::Title(title.to_owned()));
        self
    }

    /// Goes back to the point after so many turns; what follows is another branch in the same file.
    pub fn rewind_to(mut self, turns: usize) -> Self {
        self.events.push(Event::Rewind(turns));
        self
    }

    /// What `/branch` makes of the session so far, under a new id: the same lines, each marked with where it came
    /// from. Sessions with a compaction are copied whole, which the real one does not do.
    pub fn branch(&self, new: &str) -> Self {
        let mut branch = self.clone();
        branch.branched = Some((self.setting.id.clone(), self.events.len()));
        new.clone_into(&mut branch.setting.id);
        branch
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.setting.id
    }

    /// Writes the transcript and the files of subagents below Claude Code's home, and returns the transcript's path.
    pub fn write(&self, claude_home: &Path) -> PathBuf {
        let directory = claude_project_directory(claude_home, &self.setting.cwd);
        fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let path = directory.join(format!("{}.jsonl", self.setting.id));
        self.write_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    fn write_file(&self, path: &Path) -> io::Result<()> {
        let file = BufWriter::new(File::create(path)?);
        let mut lines = ClaudeLines::new(file, self.setting.clone(), Random::new(self.seed), Clock::at(self.started));
        self.play(&mut lines)?;
        let beside = path.with_extension("");
        for subagent in std::mem::take(&mut lines.subagents) {
            let directory = beside.join("subagents");
            fs::create_dir_all(&directory)?;
            fs::write(directory.join(format!("agent-{}.jsonl", subagent.id)), subagent.lines)?;
            fs::write(directory.join(format!("agent-{}.meta.json", subagent.id)), subagent.meta.to_string())?;
        }
        lines.into_inner().flush()
    }

    fn play<W: Write>(&self, lines: &mut ClaudeLines<W>) -> io::Result<()> {
        let copied = self.branched.as_ref().map_or(0, |(_, events)| *events);
        let mut points = vec![None];
        let mut last_prompt = "";
        for (number, event) in self.events.iter().enumerate() {
            lines.copied_from = self.branched.as_ref().filter(|_| number < copied).map(|(source, _)| source.clone());
            if self.branched.is_some() && number == copied {
                // What the branch says itself has ids of its own.
                let seed =
                    self.setting.id.bytes().fold(self.seed, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
                lines.random = Random::new(seed);
            }
            match event {
                Event::Turn(turn) => {
                    lines.turn(turn)?;
                    last_prompt = &turn.prompt;
                    points.push(lines.tip.clone());
                }
                Event::Compaction(summary) => lines.compaction(summary)?,
                Event::Title(title) => lines.title(title)?,
                Event::Rewind(turns) => {
                    points.truncate(turns + 1);
                    lines.tip = points.last().cloned().flatten();
                    lines.rewound()?;
                }
            }
        }
        lines.copied_from = None;
        lines.last_words(last_prompt)
    }
}

/// Where Claude Code keeps the transcripts of a directory: `projects/` and the path with everything but letters and
/// digits replaced by dashes, cut and hashed when it is longer than 200 characters.
pub fn claude_project_directory(claude_home: &Path, cwd: &str) -> PathBuf {
    let units: Vec<u16> = cwd.encode_utf16().collect();
    let encoded: String = units
        .iter()
        .map(|unit| char::from_u32(u32::from(*unit)).filter(char::is_ascii_alphanumeric).unwrap_or('-'))
        .collect();
    if encoded.len() <= 200 {
        return claude_home.join("projects").join(encoded);
    }
    let hash = units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    claude_home.join("projects").join(format!("{}-{}", &encoded[..200], base_36(hash.unsigned_abs())))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).expect("a digit below 36"));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_named_as_claude_code_names_them() {
        let name = |cwd: &str| {
            claude_project_directory(Path::new(""), cwd).file_name().expect("a name").to_string_lossy().into_owned()
        };
        assert_eq!(name("/home/me/a.b_c d"), "-home-me-a-b-c-d");
        assert_eq!(name("/ü/漢/😀"), "-------");
        assert_eq!(name(&format!("/{}", "a".repeat(199))).len(), 200);
        assert!(name(&format!("/{}", "a".repeat(200))).starts_with(&format!("-{}-", "a".repeat(199))));
    }
}
