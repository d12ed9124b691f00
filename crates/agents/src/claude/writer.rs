//! Writing Claude Code's sessions, their titles, and the lists of them.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{SessionId, Summary};

use super::home::{project_folder, side_folder};
use super::{Claude, copy, index, side, subagents, title};
use crate::{Copied, CopyRequest, FileGrowth, PlainScan, Program, ReadBack, SideFile, TitleChange, Writer};

impl Writer for Claude {
    fn path_for(&self, id: &SessionId, cwd: &Path, _now: Timestamp) -> PathBuf {
        self.config.join("projects").join(project_folder(cwd)).join(format!("{id}.jsonl"))
    }

    fn copy(
        &self,
        source: &Path,
        request: &CopyRequest,
        known: Option<&PlainScan>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied> {
        copy::copy(source, request, known, out)
    }

    fn read_back(&self, path: &Path, source: &Path, request: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack {
        copy::read_back(path, source, request, growing)
    }

    fn side_files(&self, source: &Path, request: &CopyRequest) -> Vec<SideFile> {
        side::side_files(source, request)
    }

    fn copy_side_folder(
        &self,
        source: &Path,
        request: &CopyRequest,
        side: &Path,
        cut: Option<&Path>,
    ) -> io::Result<()> {
        side::copy_side(source, request, side, cut)
    }

    fn copy_side_file(
        &self,
        source: &Path,
        file: &SideFile,
        request: &CopyRequest,
        cut: Option<&Path>,
    ) -> io::Result<()> {
        side::prepare(source, file, request, cut)
    }

    fn own_files(&self, id: &SessionId, path: &Path) -> Vec<PathBuf> {
        let mut belongings = vec![path.to_owned(), side_folder(path)];
        let kept = ["file-history", "session-env", "tasks"].map(|folder| self.config.join(folder).join(id.as_str()));
        belongings.extend(kept);
        belongings.extend(subagents::files_beside_of(id, path));
        belongings.retain(|path| path.exists());
        belongings
    }

    fn set_title(&self, _: Option<&Program>, id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
        title::set_title(id, path, title)
    }

    fn title_file(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn restore_title(
        &self,
        _: Option<&Program>,
        id: &SessionId,
        path: &Path,
        change: &TitleChange<'_>,
    ) -> io::Result<()> {
        title::restore_title(id, path, change)
    }

    fn has_index(&self, path: &Path) -> bool {
        index::is_kept(path)
    }

    fn add_to_index(&self, path: &Path, summary: &Summary) -> io::Result<()> {
        index::list_session(path, summary)
    }

    fn remove_from_index(&self, id: &SessionId, path: &Path) -> io::Result<()> {
        index::unlist_session(id, path)
    }
}
