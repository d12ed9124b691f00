//! Writing OpenCode's sessions and their titles.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::SessionId;

use super::{OpenCode, copy, title};
use crate::{Copied, CopyRequest, FileGrowth, PlainScan, Program, ReadBack, TitleChange, Writer};

impl Writer for OpenCode {
    fn path_for(&self, id: &SessionId, _cwd: &Path, _now: Timestamp) -> PathBuf {
        self.home.path_of(id)
    }

    fn copy(
        &self,
        source: &Path,
        request: &CopyRequest,
        _known: Option<&PlainScan>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied> {
        copy::copy(source, request, out)
    }

    fn read_back(&self, path: &Path, _source: &Path, request: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack {
        copy::read_back(path, request, growing)
    }

    /// Those of its subagents are found through it, in the source as in the copy.
    fn leaves_subagents(&self, path: &Path) -> bool {
        copy::has_subagents(path)
    }

    fn own_files(&self, _id: &SessionId, path: &Path) -> Vec<PathBuf> {
        vec![path.to_owned()]
    }

    fn set_title(&self, _program: Option<&Program>, _id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
        title::set(path, title, None)
    }

    fn title_file(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn restore_title(
        &self,
        _program: Option<&Program>,
        _id: &SessionId,
        path: &Path,
        change: &TitleChange<'_>,
    ) -> io::Result<()> {
        match change.old {
            Some(old) => title::set(path, old, Some(change.title)),
            None => title::set(path, &title::placeholder(path)?, Some(change.title)),
        }
    }
}
