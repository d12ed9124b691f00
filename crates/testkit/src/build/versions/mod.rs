//! Sessions in the dialects that the agents wrote over time, one small module per dialect.
//!
//! People keep transcripts for years, so every dialect has to be read, searched, exported and forked for ever. Each
//! module shows one quirk of the versions that it names, with as few lines as possible. Property tests run over
//! [`every`] dialect, so a new module is covered without another test.

mod claude;
mod codex;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A session as an older version of an agent wrote it.
#[derive(Debug, Clone)]
pub struct OldSession {
    /// `claude` or `codex`.
    pub agent: &'static str,
    /// The versions that wrote it so, as `0.34 to 0.98`.
    pub versions: &'static str,
    /// What is special about it, in one sentence.
    pub quirk: &'static str,
    /// The session's id.
    pub id: String,
    /// Its file, relative to the agent's home.
    pub path: PathBuf,
    /// The records of that file.
    pub lines: Vec<Value>,
    /// Further files that belong to it, relative to the agent's home, with their records.
    pub beside: Vec<(PathBuf, Vec<Value>)>,
    /// The title to show.
    pub title: &'static str,
    /// The prompt and the final answer of each turn.
    pub turns: Vec<(&'static str, &'static str)>,
    /// The kinds of defects that tine has to report, such as `old-format`; usually none.
    pub defects: &'static [&'static str],
}

impl OldSession {
    /// Writes its files below the agent's home and returns the path of the session's own.
    pub fn write(&self, home: &Path) -> PathBuf {
        let own = (&self.path, &self.lines);
        for (path, lines) in self.beside.iter().map(|(path, lines)| (path, lines)).chain([own]) {
            let path = home.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("create the folder");
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(path, text).expect("write the session");
        }
        home.join(&self.path)
    }

    /// Whether the agent still reads it, so that a fork by copy is possible.
    pub fn can_be_copied(&self) -> bool {
        !self.defects.contains(&"old-format")
    }
}

/// Every dialect of both agents.
pub fn every() -> Vec<OldSession> {
    let mut every = claude::every();
    every.extend(codex::every());
    every
}
