//! Finding and reading OpenCode's sessions.

use std::io;
use std::path::{Path, PathBuf};

use transcript::{SessionId, Summary};

use super::{OpenCode, database, home, read, row, scan};
use crate::{Blocks, Discovery, Notes, Part, PlainScan, Raw, SessionFile, Transcripts};

impl Transcripts for OpenCode {
    fn home(&self) -> &Path {
        &self.home.data
    }

    fn discover(&self) -> Discovery {
        let mut discovery = Discovery::default();
        match database::open(&self.home.database).and_then(|connection| database::list(&connection)) {
            Ok(listed) => {
                let file =
                    |found: database::Listed| SessionFile { path: self.home.path_of(&found.id), stamp: found.stamp };
                discovery.files = listed.into_iter().map(file).collect();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => discovery.unreadable.push((self.home.database.clone(), error.kind())),
        }
        discovery
    }

    fn find_transcript(&self, id: &SessionId, _directory: &Path) -> Option<PathBuf> {
        let path = self.home.path_of(id);
        crate::storage::is_session(&path).then_some(path)
    }

    fn recognizes_name(&self, name: &str) -> bool {
        name.starts_with("ses_") && SessionId::is_legal(name)
    }

    fn recognizes_line(&self, line: Raw<'_>) -> bool {
        row::is_header(line.0)
    }

    fn scan(&self, path: &Path) -> Summary {
        scan::scan(path)
    }

    fn read_part(&self, path: &Path, part: &Part, _known: Option<&PlainScan>) -> io::Result<Box<dyn Blocks>> {
        Ok(Box::new(read::open(&self.home.database, path, part)?))
    }

    fn subagents(&self, path: &Path) -> Vec<(String, PathBuf)> {
        let Some((database, id)) = home::split(path) else { return Vec::new() };
        let below = database::open(database).and_then(|connection| database::descendants(&connection, id));
        let path = |id: String| {
            let path = database.join(&id);
            (id, path)
        };
        below.unwrap_or_default().into_iter().map(path).collect()
    }

    /// OpenCode doesn't record where a fork came from.
    fn fork_parent(&self, _id: &SessionId, _path: &Path) -> Option<SessionId> {
        None
    }

    fn starting_commits(&self, _path: &Path) -> Vec<String> {
        Vec::new()
    }

    fn notes(&self) -> Notes {
        Notes::default()
    }
}
