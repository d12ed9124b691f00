//! Codex: threads in `<home>/sessions/`, one or more JSONL files each. The format: docs/formats/codex.md.

mod chain;
mod copy;
mod home;
mod message;
mod meta;
mod notes;
mod read;
mod record;
mod scan;
mod source;
mod state;
mod subagents;
mod tools;
mod turns;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{Agent, SessionId, Summary};

use self::home::Home;
use crate::{Blocks, Copied, CopyOrder, Discovery, Known, Live, Notes, Store, Surroundings};

/// Codex's files.
#[derive(Debug, Clone)]
pub struct Codex {
    home: Home,
    proc: Option<PathBuf>,
}

impl Codex {
    /// Finds the folder: `CODEX_HOME`, else `~/.codex`.
    pub fn new(surroundings: &Surroundings) -> Self {
        let root = surroundings.codex_home.clone().unwrap_or_else(|| surroundings.home.join(".codex"));
        Codex { home: Home::new(root), proc: surroundings.proc.clone() }
    }

    /// The current file of a thread, wherever it is.
    pub fn find(&self, id: &SessionId) -> Option<PathBuf> {
        self.home.forget();
        self.home.find_thread(id.as_str())
    }

    /// The threads of the helpers that a thread started, with their files, oldest first.
    ///
    /// Looks at the beginning of every thread that is younger than the parent.
    pub fn subagents_of(&self, parent: &SessionId) -> Vec<(SessionId, PathBuf)> {
        subagents::of(&self.home, parent)
    }
}

impl Store for Codex {
    fn agent(&self) -> Agent {
        Agent::Codex
    }

    fn home(&self) -> &Path {
        self.home.root()
    }

    fn discover(&self) -> Discovery {
        self.home.discover()
    }

    fn scan(&self, path: &Path) -> Summary {
        scan::scan(&self.home, path).summary
    }

    fn read(&self, path: &Path, until: Option<u32>, known: Option<&Known>) -> io::Result<Box<dyn Blocks>> {
        Ok(Box::new(read::open(&self.home, path, until, known)?))
    }

    fn place_for(&self, id: &SessionId, _cwd: &Path, now: Timestamp) -> PathBuf {
        let (day, time) = (now.strftime("%Y/%m/%d"), now.strftime("%Y-%m-%dT%H-%M-%S"));
        self.home.root().join("sessions").join(day.to_string()).join(format!("rollout-{time}-{id}.jsonl"))
    }

    fn copy(&self, source: &Path, order: &CopyOrder, out: &mut dyn io::Write) -> io::Result<Copied> {
        copy::copy(&self.home, source, order, out)
    }

    fn copy_side(&self, _source: &Path, _order: &CopyOrder, _side: &Path) -> io::Result<()> {
        // A thread is one file; its subagents are threads of their own and stay the source's.
        Ok(())
    }

    fn resume_command(&self, id: &SessionId) -> Vec<String> {
        vec!["codex".into(), "resume".into(), id.to_string()]
    }

    fn notes(&self) -> Notes {
        notes::read(self.home.root())
    }

    fn live(&self) -> Live {
        state::live(self.home.root(), self.proc.as_deref())
    }
}
