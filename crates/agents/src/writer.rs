//! Writing into an agent's files: copies of sessions, titles, and the lists that agents keep. The source of a copy is only read.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{SessionId, Summary};

use crate::copy::{Copied, CopyRequest, ReadBack, SideFile};
use crate::follow::FileGrowth;
use crate::program::{Program, ProgramError};
use crate::title::TitleChange;
use crate::transcripts::PlainScan;

/// How sessions are written in an agent's own format.
pub trait Writer {
    /// Where the transcript of a new session with this id that works in `cwd` belongs.
    fn path_for(&self, id: &SessionId, cwd: &Path, now: Timestamp) -> PathBuf;
    /// Writes a copy of a session under a new id to `out`, in constant memory. Without the result of an earlier scan, it
    /// scans the source first.
    fn copy(
        &self,
        source: &Path,
        request: &CopyRequest,
        known: Option<&PlainScan>,
        out: &mut dyn io::Write,
    ) -> io::Result<Copied>;
    /// Reads a copy of `source` back from `path` in one pass, possibly while it is still being written.
    fn read_back(&self, path: &Path, source: &Path, request: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack;
    /// Lists the files of a session besides its transcript that can be copied. Works from paths alone.
    fn side_files(&self, _source: &Path, _request: &CopyRequest) -> Vec<SideFile> {
        Vec::new()
    }
    /// Copies the folder that belongs to a session to `side`. For a copy that ends at an earlier turn, `cut` is the
    /// copy's transcript, and files that it doesn't mention are left out.
    fn copy_side_folder(
        &self,
        _source: &Path,
        _request: &CopyRequest,
        _side: &Path,
        _cut: Option<&Path>,
    ) -> io::Result<()> {
        Ok(())
    }
    /// Copies one of [`Writer::side_files`] to its temporary path, and flushes it.
    fn copy_side_file(
        &self,
        _source: &Path,
        _file: &SideFile,
        _request: &CopyRequest,
        _cut: Option<&Path>,
    ) -> io::Result<()> {
        Ok(())
    }
    /// Whether a copy of this session lacks threads of subagents. A file that is slow to read counts as having some.
    fn leaves_subagents(&self, _path: &Path) -> bool {
        false
    }
    /// The transcript and every other file and folder that belongs to this session alone.
    fn own_files(&self, id: &SessionId, path: &Path) -> Vec<PathBuf>;

    /// Gives a session a title that the agent's own list shows.
    fn set_title(&self, program: Option<&Program>, id: &SessionId, path: &Path, title: &str) -> io::Result<()>;
    /// The file to which [`Writer::set_title`] adds the title.
    fn title_file(&self, path: &Path) -> PathBuf;
    /// Undoes [`Writer::set_title`]: the session gets its previous title back, or none.
    fn restore_title(
        &self,
        program: Option<&Program>,
        id: &SessionId,
        path: &Path,
        change: &TitleChange<'_>,
    ) -> io::Result<()>;

    /// Makes the agent's own list show a session that the agent did not write. Needed where the agent keeps a database of
    /// its sessions.
    fn announce(
        &self,
        _program: &Program,
        _id: &SessionId,
        _title: &str,
        _directory: &Path,
    ) -> Result<(), ProgramError> {
        Ok(())
    }
    /// Whether the agent keeps an index file for the sessions in this folder.
    fn has_index(&self, _path: &Path) -> bool {
        false
    }
    /// Adds a session to that index, if there is one.
    fn add_to_index(&self, _path: &Path, _summary: &Summary) -> io::Result<()> {
        Ok(())
    }
    /// Removes a session from that index.
    fn remove_from_index(&self, _id: &SessionId, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}
