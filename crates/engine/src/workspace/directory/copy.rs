//! Walks a directory and copies its contents, several files at a time.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::entry;
use crate::advice::FileError;
use crate::progress::Quiet;
use crate::workspace::{Error, Result};

/// The number of files copied at the same time: enough to keep a disk busy, few enough not to compete for it.
const WORKERS: usize = 4;
/// How much of a large file is copied between checks for cancellation.
const PIECE: u64 = 32 << 20;

/// Called with the progress of a copy.
pub trait CopyProgress: Sync {
    /// A copy of this directory starts.
    fn begins(&self, _source: &Path) {}

    /// This many files and bytes have been copied.
    fn copied(&self, files: u64, bytes: u64);
}

impl CopyProgress for Quiet {
    fn copied(&self, _files: u64, _bytes: u64) {}
}

/// What was copied, and what was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub files: u64,
    pub bytes: u64,
    /// Sockets, pipes and devices, which are not copied.
    pub special: u64,
    /// Files that disappeared after their folder was listed.
    pub vanished: u64,
    /// Everything named `.git`, relative to the top.
    pub(super) repositories: Vec<PathBuf>,
}

/// Copies the directory `source` to `target`, which does not exist yet.
pub(crate) fn copy(source: &Path, target: &Path, progress: &dyn CopyProgress) -> Result<Copied> {
    progress.begins(source);
    copy_except(source, target, progress, |_| false)
}

/// The same without the given paths, relative to the top, and to a directory that may exist.
pub(super) fn copy_except(
    source: &Path,
    target: &Path,
    progress: &dyn CopyProgress,
    leave_out: impl Fn(&Path) -> bool,
) -> Result<Copied> {
    let job = CopyJob {
        progress,
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        special: AtomicU64::new(0),
        vanished: AtomicU64::new(0),
        can_share: AtomicBool::new(true),
        stopped: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let (sender, receiver) = sync_channel(256);
    let receiver = Mutex::new(receiver);
    let mut walk = Walk { source, target, job: &job, folders: Vec::new(), firsts: HashMap::new(), names: Vec::new() };
    let mut repositories = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| job.work(&receiver));
        }
        repositories = walk.run(&sender, &leave_out);
        drop(sender);
    });
    walk.finish();
    let CopyJob { files, bytes, special, vanished, failure, .. } = job;
    if let Some(error) = failure.into_inner().unwrap_or_default() {
        return Err(error);
    }
    Ok(Copied {
        files: files.into_inner(),
        bytes: bytes.into_inner(),
        special: special.into_inner(),
        vanished: vanished.into_inner(),
        repositories,
    })
}

/// The size of the files below a directory, in bytes, where they are readable; `None` once `is_over`.
pub fn size_of(directory: &Path, is_over: &AtomicBool) -> Option<u64> {
    let mut size = 0;
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if is_over.load(Ordering::Relaxed) {
                return None;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) if metadata.is_file() => size += metadata.len(),
                _ => {}
            }
        }
    }
    Some(size)
}

/// Copies one file or link to an unused path.
pub(crate) fn copy_one(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return entry::copy_link(from, to, &metadata);
    }
    let source = entry::open(from)?;
    let metadata = source.metadata()?;
    let target = entry::create(to)?;
    io::copy(&mut &source, &mut &target)?;
    entry::keep(&target, &metadata)
}

/// What the walk and the workers share.
struct CopyJob<'a> {
    progress: &'a dyn CopyProgress,
    files: AtomicU64,
    bytes: AtomicU64,
    special: AtomicU64,
    vanished: AtomicU64,
    can_share: AtomicBool,
    stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl CopyJob<'_> {
    fn work(&self, queue: &Mutex<Receiver<(PathBuf, PathBuf)>>) {
        loop {
            let next = queue.lock().ok().and_then(|queue| queue.recv().ok());
            let Some((from, to)) = next else { return };
            // After a failure, the queue is only drained, so that the walk is not blocked.
            if !self.is_stopped()
                && let Err(error) = self.copy_file(&from, &to)
            {
                self.fail(error);
            }
        }
    }

    fn copy_file(&self, from: &Path, to: &Path) -> Result<()> {
        let unreadable = |source| Error::NotCopied { path: from.to_owned(), source };
        let unwritable = |source| FileError::Write { path: to.to_owned(), source };
        let source = match entry::open(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                count(&self.vanished);
                return Ok(());
            }
            opened => opened.map_err(unreadable)?,
        };
        let metadata = source.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            count(&self.special);
            return Ok(());
        }
        let target = entry::create(to).map_err(unwritable)?;
        if metadata.len() > 0 && entry::share_blocks(&source, &target, &self.can_share) {
            self.bytes.fetch_add(metadata.len(), Ordering::Relaxed);
        } else {
            self.copy_bytes(&source, &target, &metadata)
                .map_err(|error| if is_of_target(&error) { unwritable(error).into() } else { unreadable(error) })?;
        }
        entry::keep(&target, &metadata).map_err(unwritable)?;
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.copied(files, self.bytes.load(Ordering::Relaxed));
        Ok(())
    }

    /// Copies a file's content. Holes stay holes: a disk image may be larger than any disk.
    fn copy_bytes(&self, mut source: &File, mut target: &File, metadata: &Metadata) -> io::Result<()> {
        let mut at = 0;
        while let Some(data) = entry::next_data(source, metadata, at) {
            at = data.start;
            source.seek(SeekFrom::Start(at))?;
            target.seek(SeekFrom::Start(at))?;
            while at < data.end {
                let wanted = PIECE.min(data.end - at);
                let count = io::copy(&mut source.take(wanted), &mut target)?;
                at += count;
                let bytes = self.bytes.fetch_add(count, Ordering::Relaxed) + count;
                if count < wanted || self.is_stopped() {
                    return Ok(());
                }
                self.progress.copied(self.files.load(Ordering::Relaxed), bytes);
            }
        }
        if at < metadata.len() {
            target.set_len(metadata.len())?;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Keeps the first failure; later ones are consequences.
    fn fail(&self, error: Error) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }
}

/// One walk over a directory. Folders get their modes and times after their contents.
struct Walk<'a> {
    source: &'a Path,
    target: &'a Path,
    job: &'a CopyJob<'a>,
    folders: Vec<(PathBuf, Metadata)>,
    /// Hard-linked files by identity, with the first path found.
    firsts: HashMap<(u64, u64), PathBuf>,
    /// Further names: the first path, and this one.
    names: Vec<(PathBuf, PathBuf)>,
}

impl Walk<'_> {
    /// Creates the folders and links, and queues the files. Returns everything named `.git`.
    fn run(&mut self, queue: &SyncSender<(PathBuf, PathBuf)>, leave_out: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut repositories = Vec::new();
        let mut waiting = vec![PathBuf::new()];
        while let Some(folder) = waiting.pop() {
            let entries = match self.enter(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.job.fail(error);
                    break;
                }
            };
            for (name, metadata) in entries {
                if self.job.is_stopped() {
                    return repositories;
                }
                if leave_out(&name) {
                    continue;
                }
                if name.file_name().is_some_and(|name| name == ".git") {
                    repositories.push(name.clone());
                }
                if metadata.is_dir() {
                    waiting.push(name);
                } else if let Err(error) = self.visit(name, &metadata, queue) {
                    self.job.fail(error);
                }
            }
        }
        repositories
    }

    /// Creates one folder and lists its contents.
    fn enter(&mut self, folder: &Path) -> Result<Vec<(PathBuf, Metadata)>> {
        let (from, to) = self.both(folder);
        let unreadable = |source| Error::NotCopied { path: from.clone(), source };
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound && from != self.source;
        let read = fs::metadata(&from).and_then(|metadata| Ok((metadata, fs::read_dir(&from)?)));
        let (metadata, entries) = match read {
            Err(error) if is_gone(&error) => {
                count(&self.job.vanished);
                return Ok(Vec::new());
            }
            read => read.map_err(unreadable)?,
        };
        match entry::create_folder(&to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => {}
            made => made.map_err(|source| FileError::Write { path: to.clone(), source })?,
        }
        self.folders.push((to, metadata));
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            match entry.metadata() {
                Ok(metadata) => found.push((folder.join(entry.file_name()), metadata)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => count(&self.job.vanished),
                Err(source) => return Err(Error::NotCopied { path: entry.path(), source }),
            }
        }
        Ok(found)
    }

    fn visit(&mut self, name: PathBuf, metadata: &Metadata, queue: &SyncSender<(PathBuf, PathBuf)>) -> Result<()> {
        let (from, to) = self.both(&name);
        if metadata.is_symlink() {
            return match entry::copy_link(&from, &to, metadata) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    count(&self.job.vanished);
                    Ok(())
                }
                made => Ok(made.map_err(|source| FileError::Write { path: to, source })?),
            };
        }
        if !metadata.is_file() {
            count(&self.job.special);
            return Ok(());
        }
        if entry::has_other_names(metadata)
            && let Some(identity) = entry::same_file(metadata)
        {
            if let Some(first) = self.firsts.get(&identity) {
                self.names.push((first.clone(), name));
                return Ok(());
            }
            self.firsts.insert(identity, name);
        }
        // The workers drain the queue until it is closed, so this cannot fail.
        let _ = queue.send((from, to));
        Ok(())
    }

    /// What needs all files to exist: further names, then the folders' modes and times.
    fn finish(&mut self) {
        for (first, name) in std::mem::take(&mut self.names) {
            let (from, to) = self.both(&name);
            // The first file may have disappeared, and not every file system has hard links.
            let linked = fs::hard_link(self.both(&first).1, &to).is_ok();
            if self.job.is_stopped() {
                return;
            }
            match linked {
                true => count(&self.job.files),
                false => self.job.copy_file(&from, &to).unwrap_or_else(|error| self.job.fail(error)),
            }
        }
        for (folder, metadata) in self.folders.iter().rev() {
            if self.job.is_stopped() {
                return;
            }
            if let Err(source) = File::open(folder).and_then(|open| entry::keep(&open, metadata)) {
                self.job.fail(FileError::Write { path: folder.clone(), source }.into());
            }
        }
    }

    fn both(&self, name: &Path) -> (PathBuf, PathBuf) {
        // Joined with an empty path, a path would get a trailing slash.
        let join = |top: &Path| if name.as_os_str().is_empty() { top.to_owned() } else { top.join(name) };
        (join(self.source), join(self.target))
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Whether a failure to copy happened while writing.
fn is_of_target(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}
