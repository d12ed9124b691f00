//! Finding and reading Gemini CLI's sessions.

use std::io;
use std::path::{Path, PathBuf};

use transcript::{SessionId, Summary};

use super::{Gemini, history, home, read, scan, subagents};
use crate::{Blocks, Discovery, Notes, Part, PlainScan, Raw, Transcripts};

impl Transcripts for Gemini {
    fn home(&self) -> &Path {
        self.home.root()
    }

    fn discover(&self) -> Discovery {
        self.home.discover()
    }

    fn find_transcript(&self, id: &SessionId, directory: &Path) -> Option<PathBuf> {
        self.home.find(id, directory)
    }

    fn recognizes_name(&self, name: &str) -> bool {
        name.ends_with(".json") && home::short_id(name).is_some()
    }

    fn recognizes_line(&self, line: Raw<'_>) -> bool {
        line.get(b"sessionId").is_some() && line.get(b"projectHash").is_some()
    }

    fn scan(&self, path: &Path) -> Summary {
        scan::scan(path)
    }

    fn read_part(&self, path: &Path, part: &Part, _known: Option<&PlainScan>) -> io::Result<Box<dyn Blocks>> {
        Ok(Box::new(read::open(path, part)?))
    }

    fn subagents(&self, path: &Path) -> Vec<(String, PathBuf)> {
        subagents::of(path).into_iter().map(|subagent| (subagent.id, subagent.path)).collect()
    }

    fn fork_parent(&self, _id: &SessionId, path: &Path) -> Option<SessionId> {
        // The note about it is the second record, and the rest of the file may be long.
        let head = crate::files::head_of(path)?;
        let source = history::imported_from(&head)?;
        SessionId::new(home::id_inside(&source)?).ok()
    }

    fn starting_commits(&self, _path: &Path) -> Vec<String> {
        Vec::new()
    }

    fn notes(&self) -> Notes {
        Notes::default()
    }
}
