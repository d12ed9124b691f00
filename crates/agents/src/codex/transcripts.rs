//! Finding and reading Codex's threads.

use std::io;
use std::path::{Path, PathBuf};

use transcript::{SessionId, Summary};

use super::record::{Kind, Record};
use super::{Codex, notes, read, scan};
use crate::files::{head_of, is_commit};
use crate::{Blocks, Client, Discovery, Notes, Part, PlainScan, Raw, Transcripts};

impl Transcripts for Codex {
    fn home(&self) -> &Path {
        self.home.root()
    }

    fn discover(&self) -> Discovery {
        self.home.discover()
    }

    fn find_transcript(&self, id: &SessionId, _directory: &Path) -> Option<PathBuf> {
        self.home.forget();
        self.home.find_thread(id.as_str())
    }

    fn recognizes_name(&self, name: &str) -> bool {
        name.ends_with(".jsonl.zst")
    }

    fn recognizes_line(&self, line: Raw<'_>) -> bool {
        Record::of(line.0).is_some_and(|record| record.kind == Kind::SessionMeta)
    }

    fn scan(&self, path: &Path) -> Summary {
        scan::scan(&self.home, path).summary
    }

    fn read_part(&self, path: &Path, part: &Part, known: Option<&PlainScan>) -> io::Result<Box<dyn Blocks>> {
        Ok(Box::new(read::open(&self.home, path, part, known)?))
    }

    fn records_acts(&self) -> bool {
        true
    }

    fn fork_parent(&self, _id: &SessionId, path: &Path) -> Option<SessionId> {
        let head = head_of(path)?;
        let pointer = Raw(head.split(|byte| *byte == b'\n').next()?).get(b"payload")?.get(b"forked_from_id")?;
        SessionId::new(pointer.string()?).ok()
    }

    fn starting_commits(&self, path: &Path) -> Vec<String> {
        let head = head_of(path).unwrap_or_default();
        let first = Raw(head.split(|byte| *byte == b'\n').next().unwrap_or_default());
        let git = first.get(b"payload").and_then(|payload| payload.get(b"git"));
        let commit = git.and_then(|git| git.get(b"commit_hash")).and_then(Raw::string);
        commit.into_iter().map(Into::into).filter(|commit: &String| is_commit(commit)).collect()
    }

    fn client(&self, path: &Path) -> Option<Client> {
        let head = head_of(path).unwrap_or_default();
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let source = Raw(first).get(b"payload")?.get(b"source")?;
        Some(match source.string()?.as_ref() {
            "exec" => Client::Headless,
            // So Codex calls every program that talks to its app-server.
            "vscode" => Client::Program,
            _ => Client::Terminal,
        })
    }

    fn notes(&self) -> Notes {
        notes::read(self.home.root())
    }
}
