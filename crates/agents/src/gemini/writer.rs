//! Writing Gemini CLI's sessions, their titles, and the folders of their projects.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{SessionId, Summary};

use super::home::{PROJECT_ROOT, root_of};
use super::{Gemini, copy, subagents, title};
use crate::{Copied, CopyRequest, FileGrowth, PlainScan, Program, ReadBack, SideFile, TitleChange, Writer};

impl Writer for Gemini {
    fn path_for(&self, id: &SessionId, cwd: &Path, now: Timestamp) -> PathBuf {
        self.home.path_for(id, cwd, now)
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
        copy::read_back(path, request, growing).unwrap_or_else(|error| ReadBack {
            summary: Summary::new(transcript::Agent::Gemini, request.id.clone(), request.target.clone()),
            bytes: 0,
            seal: crate::Seal::default(),
            fault: Some(format!("it cannot be read back: {error}")),
        })
    }

    /// The file that names the directory of a project, if it is missing. The client takes over what it finds there,
    /// and completes its own list of projects.
    fn side_files(&self, source: &Path, request: &CopyRequest) -> Vec<SideFile> {
        let Some(project) = request.target.parent().and_then(Path::parent) else { return Vec::new() };
        if root_of(project).is_some() {
            return Vec::new();
        }
        vec![SideFile {
            from: source.to_owned(),
            prepared: project.join(format!(".{}.tine-new", request.id)),
            place: project.join(PROJECT_ROOT),
            shared: true,
        }]
    }

    fn copy_side_file(
        &self,
        _source: &Path,
        file: &SideFile,
        request: &CopyRequest,
        _cut: Option<&Path>,
    ) -> io::Result<()> {
        fs::write(&file.prepared, request.cwd.to_string_lossy().as_bytes())?;
        fs::File::open(&file.prepared)?.sync_all()
    }

    fn leaves_subagents(&self, path: &Path) -> bool {
        !subagents::of(path).is_empty()
    }

    fn own_files(&self, id: &SessionId, path: &Path) -> Vec<PathBuf> {
        let mut own = vec![path.to_owned()];
        own.extend(self.home.stubs_of(id, path));
        // Subagents, and what the client keeps beside the chats: plans, tasks and logs.
        own.extend(path.parent().map(|chats| chats.join(id.as_str())));
        let project = path.parent().and_then(Path::parent);
        own.extend(project.map(|project| project.join(id.as_str())));
        own.retain(|path| path.exists());
        own
    }

    fn set_title(&self, _: Option<&Program>, _id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
        title::set_title(path, title)
    }

    fn title_file(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn restore_title(
        &self,
        _: Option<&Program>,
        _id: &SessionId,
        path: &Path,
        change: &TitleChange<'_>,
    ) -> io::Result<()> {
        title::restore_title(path, change)
    }
}
