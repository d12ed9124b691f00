//! Writing Codex's threads, their titles, and the lists of them.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::SessionId;

use super::{Codex, copy, notes, subagents, title};
use crate::{Copied, CopyRequest, FileGrowth, PlainScan, Program, ProgramError, ReadBack, TitleChange, Writer};

impl Writer for Codex {
    fn path_for(&self, id: &SessionId, _cwd: &Path, now: Timestamp) -> PathBuf {
        let (day, time) = (now.strftime("%Y/%m/%d"), now.strftime("%Y-%m-%dT%H-%M-%S"));
        self.home.root().join("sessions").join(day.to_string()).join(format!("rollout-{time}-{id}.jsonl"))
    }

    fn copy(
        &self,
        source: &Path,
        request: &CopyRequest,
        known: Option<&PlainScan>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied> {
        copy::copy(&self.home, source, request, known, out)
    }

    fn read_back(&self, path: &Path, _source: &Path, request: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack {
        copy::read_back(&self.home, path, request, growing)
    }

    fn leaves_subagents(&self, path: &Path) -> bool {
        subagents::may_have_any(path)
    }

    fn own_files(&self, id: &SessionId, path: &Path) -> Vec<PathBuf> {
        // Going back to an earlier prompt begins another file of the same thread.
        let mut belongings = self.home.files_of_thread(id.as_str());
        belongings.retain(|file| file != path);
        belongings.insert(0, path.to_owned());
        belongings
    }

    fn set_title(&self, program: Option<&Program>, id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        title::announce(program, id, title, directory).map_err(io::Error::other)
    }

    fn title_file(&self, _path: &Path) -> PathBuf {
        self.home.root().join(notes::FILE)
    }

    fn restore_title(
        &self,
        program: Option<&Program>,
        id: &SessionId,
        path: &Path,
        change: &TitleChange<'_>,
    ) -> io::Result<()> {
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let named = title::restore_name(program, id, change.old, directory).map_err(io::Error::other)?;
        notes::remove_title(id, change, &named)
    }

    fn announce(&self, program: &Program, id: &SessionId, title: &str, directory: &Path) -> Result<(), ProgramError> {
        title::announce(program, id, title, directory)
    }
}
