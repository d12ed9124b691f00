//! The facts of a session, stored in the cache and decoded on demand.
//!
//! A search considers every session and needs the facts of ten; [`Outline`] has what it needs of all.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use transcript::seed::is_seed;
use transcript::{Agent, Summary};
use xxhash_rust::xxh3::xxh3_64;

/// Up to this many rows are read one by one; more requests mean that all are wanted.
const SINGLE: usize = 64;
/// How much is read at once then. Fresh memory is what costs a listing most, so this small buffer is reused.
const WINDOW: usize = 64 << 10;
/// Rows requested in another order than that of the file are read together after this many jumps.
const JUMPS: usize = 16;

/// The facts of a session.
#[derive(Debug, Clone)]
pub struct Facts {
    known: OnceLock<Box<Summary>>,
    stored: Option<Stored>,
}

/// The position of facts in the cache.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub rows: Arc<StoredRows>,
    pub from: u32,
    pub len: u32,
}

/// What every command needs of every session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    /// [`file_key`] of its path.
    pub file: u64,
    /// [`title_key`].
    pub title: u64,
    /// The first eight characters of its id, as a number.
    pub beginning: u64,
    /// When its last message was written, in nanoseconds since 1970.
    pub updated: Option<i64>,
    pub turns: u32,
    pub agent: Agent,
    pub is_shown: bool,
    /// Whether part of its history is in other files, or should be.
    pub has_bases: bool,
}

impl Outline {
    pub(super) fn of(summary: &Summary) -> Outline {
        Outline {
            file: file_key(&summary.path),
            title: title_key(summary),
            beginning: crate::sessions::session::beginning(summary.id.as_str()),
            updated: updated(summary),
            turns: summary.turns,
            agent: summary.agent,
            is_shown: !summary.is_subagent && !summary.is_empty,
            has_bases: !summary.bases.is_empty() || summary.missing_base.is_some(),
        }
    }
}

/// When the last message of a session was written, in nanoseconds since 1970.
pub(super) fn updated(summary: &Summary) -> Option<i64> {
    let time = summary.updated?.as_nanosecond();
    Some(i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX }))
}

/// A transcript's key.
pub(crate) fn file_key(path: &Path) -> u64 {
    xxh3_64(path.as_os_str().as_encoded_bytes())
}

/// A fingerprint of a title that is not just the start of the first prompt; 0 if there is none.
pub(crate) fn title_key(summary: &Summary) -> u64 {
    own_title(summary).map_or(0, |title| xxh3_64(title.as_bytes()))
}

/// A title that is not just the start of the first prompt.
pub(crate) fn own_title(summary: &Summary) -> Option<&str> {
    let mut titles = [&summary.custom_title, &summary.agent_title].into_iter().flatten().map(String::as_str);
    titles.find(|title| !is_seed(title))
}

impl Facts {
    pub(super) fn stored(stored: Stored) -> Facts {
        Facts { known: OnceLock::new(), stored: Some(stored) }
    }

    /// The facts, if they have been decoded or did not come from the cache; they may have been changed since.
    pub(super) fn known(&self) -> Option<&Summary> {
        self.known.get().map(AsRef::as_ref)
    }

    /// Their position.
    pub(super) fn place(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Moves them out.
    pub(crate) fn into_summary(self) -> Summary {
        let _: &Summary = &self;
        *self.known.into_inner().expect("it was just made")
    }

    fn read(&self) -> Box<Summary> {
        let stored = self.stored.as_ref().expect("what is not known is stored");
        let summary = stored.rows.with_row(stored.from, stored.len, |row| postcard::from_bytes(row).ok());
        // The checksum was verified when the cache was opened, and its first word names the format.
        Box::new(summary.ok().flatten().expect("rows are as the cache's first word says"))
    }
}

impl From<Summary> for Facts {
    fn from(summary: Summary) -> Facts {
        Facts { known: OnceLock::from(Box::new(summary)), stored: None }
    }
}

impl Deref for Facts {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        self.known.get_or_init(|| self.read())
    }
}

impl DerefMut for Facts {
    fn deref_mut(&mut self) -> &mut Summary {
        let _: &Summary = &*self;
        self.known.get_mut().expect("it was just made")
    }
}

/// The rows of an open cache.
#[derive(Debug)]
pub(super) struct StoredRows {
    file: File,
    /// Their position in the file.
    start: u64,
    len: usize,
    reads: AtomicUsize,
    window: Mutex<Window>,
}

/// Part of the rows.
#[derive(Debug, Default)]
struct Window {
    from: usize,
    bytes: Vec<u8>,
    /// How often the next row was not near the end of the window.
    jumps: usize,
}

impl StoredRows {
    pub(super) fn new(file: File, start: u64, len: usize) -> StoredRows {
        StoredRows { file, start, len, reads: AtomicUsize::new(0), window: Mutex::default() }
    }

    /// The file with the rows, which may have been replaced since.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The end of the rows.
    pub(super) fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    /// Reads one row. Rows requested in file order, newest first, share reads.
    pub(super) fn with_row<T>(&self, from: u32, len: u32, see: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        let (from, len) = (from as usize, len as usize);
        let end = from.checked_add(len).filter(|end| *end <= self.len).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if from < window.from || end > window.from + window.bytes.len() {
            let is_single = self.reads.fetch_add(1, Ordering::Relaxed) < SINGLE;
            let behind = from.checked_sub(window.from + window.bytes.len());
            window.jumps += usize::from(!is_single && behind.is_none_or(|gap| gap > WINDOW));
            let (first, size) = match is_single {
                true => (from, len),
                false if window.jumps > JUMPS => (0, self.len),
                false => (from, len.max(WINDOW).min(self.len - from)),
            };
            window.bytes.resize(size, 0);
            window.from = first;
            if let Err(error) = read_at(&self.file, &mut window.bytes, self.start + first as u64) {
                window.bytes.clear();
                return Err(error);
            }
        }
        Ok(see(&window.bytes[from - window.from..end - window.from]))
    }

    /// All rows.
    pub(super) fn all(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        read_at(&self.file, &mut bytes, self.start)?;
        Ok(bytes)
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use io::{Read, Seek};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}
