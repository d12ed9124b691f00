//! The folder of tantivy's files: only its owner can read it, it can be read even if it is not writable, and files that
//! no commit names are removed from it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use diagnostics::OrLog;
use tantivy::Index;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, META_LOCK, MmapDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};
use tantivy::index::{SegmentComponent, SegmentMeta};
use tantivy::merge_policy::{LogMergePolicy, MergeCandidate, MergePolicy};

use super::OpenFailure;
use crate::private;
use crate::search::error::IndexProblem;

/// The maximum that is merged at once, in bytes. All of it is mapped into memory meanwhile.
const MERGED: u64 = 64 << 20;

/// The prefix of files that will replace another one. tantivy uses the same.
const TEMPORARY: &str = ".tmp";

/// tantivy's own folder type, with other permissions, and faster.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    files: MmapDirectory,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Folder, OpenFailure> {
        let files = MmapDirectory::open(path).map_err(tantivy::TantivyError::from)?;
        Ok(Folder { files, path: path.to_owned() })
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        match private::new_file(&self.path.join(path)) {
            Ok(file) => Ok(BufWriter::new(Box::new(Unflushed(file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.to_owned()))
            }
            Err(error) => Err(OpenWriteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() }),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = self.path.join(format!("{TEMPORARY}-{}-{number}", std::process::id()));
        let written = private::new_file(&temporary)
            .and_then(|mut file| file.write_all(data))
            .and_then(|()| fs::rename(&temporary, self.path.join(path)));
        if written.is_err() {
            fs::remove_file(&temporary).or_log(format_args!("remove {}", temporary.display()));
        }
        written
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// If nothing can be written, no process removes the files that a reader is about to open.
    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        match self.files.acquire_lock(lock) {
            Err(LockError::IoError(error))
                if lock.filepath == META_LOCK.filepath && IndexProblem::of(&error) == IndexProblem::ReadOnly =>
            {
                Ok(DirectoryLock::from(Box::new(())))
            }
            other => other,
        }
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

/// A file that is not flushed to the disk. A search commits a dozen small files after each new message, and a disk may
/// need some time for each. After the next boot, all of them are verified once.
struct Unflushed(File);

impl Write for Unflushed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Unflushed {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        Ok(())
    }
}

/// The file names of a segment. Some of them may not exist.
pub(crate) fn files_of_segment(meta: &SegmentMeta) -> Vec<PathBuf> {
    use SegmentComponent::{Delete, FastFields, FieldNorms, Positions, Postings, Store, Terms};
    let mut files: Vec<PathBuf> = [Postings, Positions, Terms, Store, FastFields, FieldNorms]
        .into_iter()
        .map(|component| meta.relative_path(component))
        .collect();
    if meta.has_deletes() {
        files.push(meta.relative_path(Delete));
    }
    files
}

/// Removes files that no commit names, left by a writer that was killed or ran out of space.
pub(crate) fn remove_unnamed_files(index: &Index, folder: &Path) {
    // A reader holds this lock while it reads the list of files and opens them.
    let Ok(_lock) = index.directory().acquire_lock(&META_LOCK) else { return };
    let Ok(metas) = index.load_metas() else { return };
    let mut kept: HashSet<PathBuf> = metas.segments.iter().flat_map(files_of_segment).collect();
    kept.insert("meta.json".into());
    kept.extend(metas.payload.map(PathBuf::from));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.') && !name.to_string_lossy().starts_with(TEMPORARY);
        if !is_hidden && !kept.contains(Path::new(&name)) {
            fs::remove_file(entry.path()).or_log(format_args!("remove {}", entry.path().display()));
        }
    }
}

/// Merges like tantivy, but only as much as fits into little memory.
#[derive(Debug)]
pub(crate) struct SmallMerges {
    pub folder: PathBuf,
    pub usual: LogMergePolicy,
}

impl SmallMerges {
    /// The size of a segment without its deleted documents, so that they are removed eventually.
    fn size(&self, segment: &SegmentMeta) -> u64 {
        let sizes = files_of_segment(segment).into_iter().filter_map(|name| fs::metadata(self.folder.join(name)).ok());
        let size: u64 = sizes.map(|metadata| metadata.len()).sum();
        size * u64::from(segment.num_docs()) / u64::from(segment.max_doc().max(1))
    }
}

impl MergePolicy for SmallMerges {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let sized = segments.iter().map(|segment| (segment, self.size(segment)));
        let small: Vec<(SegmentMeta, u64)> =
            sized.filter(|(_, size)| *size <= MERGED / 4).map(|(segment, size)| (segment.clone(), size)).collect();
        let metas: Vec<SegmentMeta> = small.iter().map(|(segment, _)| segment.clone()).collect();
        let mut candidates = self.usual.compute_merge_candidates(&metas);
        for candidate in &mut candidates {
            let mut room = MERGED;
            candidate.0.retain(|id| {
                let size = small.iter().find(|(segment, _)| segment.id() == *id).map_or(0, |(_, size)| *size);
                let fits = size <= room;
                room -= if fits { size } else { 0 };
                fits
            });
        }
        candidates.retain(|candidate| candidate.0.len() > 1);
        candidates
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_private_before_anything_is_written_into_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let _writer = folder.open_write(Path::new("segment.idx")).unwrap();
        folder.atomic_write(Path::new("meta.json"), b"{}").unwrap();
        for name in ["segment.idx", "meta.json"] {
            assert_eq!(fs::metadata(place.path().join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
    }
}
