//! Writing: one process at a time, and a killed one leaves a file that is as before.

use std::borrow::Borrow;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use diagnostics::OrLog;

use super::{FIXED, Key, RECORD, VectorFile, end, fixed_header, slot, write_record};
use crate::error::Error;
use crate::vector::Vector;

/// How many records are gathered before they are written.
const BUFFERED: usize = 2000;

/// Appends to a file of vectors. While there is one, no other process writes to that file; readers are not disturbed. The
/// lock is the system's and goes with the process, however that ends.
#[derive(Debug)]
pub struct VectorWriter {
    path: PathBuf,
    file: File,
    /// How many records count.
    records: u64,
    /// Which slot the next count goes into.
    second_is_next: bool,
}

impl VectorWriter {
    /// Opens or creates a file to append to. Existing records are verified first, so that nothing is added to a damaged
    /// file.
    pub fn open(path: &Path) -> Result<VectorWriter, Error> {
        let file = lock(path)?;
        if file.metadata().map_err(Error::io("read", path))?.len() == 0 {
            return VectorWriter::begin(path, file);
        }
        let there = VectorFile::of(&file, path)?;
        there.verify()?;
        let (records, second_is_next) = (there.len() as u64, !there.counted_in_second);
        Ok(VectorWriter { path: path.to_owned(), file, records, second_is_next })
    }

    /// Creates a new file, replacing an existing one. Processes that read the old file can continue.
    pub fn create_or_replace(path: &Path) -> Result<VectorWriter, Error> {
        let _locked = lock(path)?;
        VectorWriter::replace(path, |_| Ok(()))
    }

    /// How many vectors there are.
    pub fn len(&self) -> u64 {
        self.records
    }

    /// Whether it has no vectors.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Appends vectors, all of them or, if it fails, none. Readers that open the file from now on see them. Each call
    /// waits for the disk, so large batches are better.
    pub fn append<V: Borrow<Vector>>(&mut self, vectors: impl IntoIterator<Item = (Key, V)>) -> Result<(), Error> {
        let mut vectors = vectors.into_iter().peekable();
        let (mut records, mut bytes) = (self.records, Vec::new());
        while vectors.peek().is_some() {
            bytes.clear();
            for (key, vector) in vectors.by_ref().take(BUFFERED) {
                write_record(key, vector.borrow(), &mut bytes);
            }
            let at = end(records).ok_or_else(|| Error::damaged(&self.path, "it exceeds the maximum size of a file"))?;
            self.write_at(at, &bytes)?;
            records += (bytes.len() / RECORD) as u64;
        }
        if records == self.records {
            return Ok(());
        }
        self.file.sync_data().map_err(Error::io("write", &self.path))?;
        self.count(records)
    }

    /// Removes all vectors whose key is no longer wanted, by writing the others to a new file. Returns how many were
    /// removed.
    pub fn retain(&mut self, is_wanted: impl Fn(Key) -> bool) -> Result<u64, Error> {
        let old = VectorFile::of(&self.file, &self.path)?;
        if old.keys().all(&is_wanted) {
            return Ok(0);
        }
        let before = self.records;
        let kept = old.vectors().filter(|(key, _)| is_wanted(*key));
        *self = VectorWriter::replace(&self.path, |new| new.append(kept))?;
        Ok(before - self.records)
    }

    /// Writes a new file next to the one at `path`, whose lock is held, and renames it.
    fn replace(path: &Path, fill: impl FnOnce(&mut VectorWriter) -> Result<(), Error>) -> Result<VectorWriter, Error> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        // Left by a killed writer: no other process can be using it, since we hold the lock.
        fs::remove_file(&beside).or_log(format_args!("remove {}", beside.display()));
        let put = || {
            // Locked before the rename, so that no other writer can take it in between.
            let mut writer = VectorWriter::begin(&beside, lock(&beside)?)?;
            fill(&mut writer)?;
            fs::rename(&beside, path).map_err(Error::io("replace", path))?;
            writer.path = path.to_owned();
            Ok(writer)
        };
        put().inspect_err(|_| {
            fs::remove_file(&beside).or_log(format_args!("remove {}", beside.display()));
        })
    }

    /// Writes the header of a file that is empty.
    fn begin(path: &Path, file: File) -> Result<VectorWriter, Error> {
        let mut writer = VectorWriter { path: path.to_owned(), file, records: 0, second_is_next: true };
        writer.write_at(0, &[&fixed_header()[..], &slot(0), &slot(0)].concat())?;
        Ok(writer)
    }

    /// Makes this many records count.
    fn count(&mut self, records: u64) -> Result<(), Error> {
        let at = if self.second_is_next { FIXED + 16 } else { FIXED };
        self.write_at(at as u64, &slot(records))?;
        self.records = records;
        self.second_is_next = !self.second_is_next;
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(Error::io("write", &self.path))
    }
}

/// Opens a file that only its owner can read, makes it if need be, and locks it.
fn lock(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let file = options.open(path).map_err(Error::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
        // Another writer may have replaced the file while we had opened it and not locked it yet.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(ours), Ok(there)) = (file.metadata(), fs::metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}
