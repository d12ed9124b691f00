//! The catalog's cache on disk: one flat file, read as a whole and replaced as a whole.
//!
//! Losing it costs one slow listing, so there is nothing to repair: a file that cannot be read, is damaged or of
//! another format counts as missing. Two processes that write at once replace each other's file; what one of them did
//! not know is read again the next time. See docs/decisions/0004-catalog-and-registry.md.
//!
//! The fingerprints of turns are most of the bytes and only lineage needs them, so they stand apart, behind the
//! entries:
//! `MAGIC · length of rows (u64) · generation · rows, each with its length (u32) before it · fingerprints (u64 each)`.
//!
//! Rows are decoded one by one from a small buffer: fresh memory is what a warm listing pays for most.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use agents::Stamp;
use serde::{Deserialize, Serialize};
use transcript::{SessionId, Summary};

use super::Entry;
use crate::private;

/// Changes with every change of the facts or of how they are worked out; another word means: begin anew.
const MAGIC: &[u8; 8] = b"tinecat8";
const HEADER: u64 = 16;

#[derive(Serialize, Deserialize)]
struct Row {
    size: u64,
    modified: i64,
    inode: u64,
    born: Option<i64>,
    /// Where the fingerprints begin, in their part of the file.
    turn_keys: u32,
    /// `summary.turn_keys` is empty here.
    summary: Box<Summary>,
}

impl Row {
    fn stamp(&self) -> Stamp {
        Stamp { size: self.size, modified: self.modified, inode: self.inode, born: self.born }
    }
}

/// What the file held when it was read.
#[derive(Default)]
pub(super) struct Cache {
    path: PathBuf,
    pub(super) generation: String,
    rows: Vec<Option<Row>>,
    /// Positions in `rows` by inode, which is cheaper to look up than a path.
    by_inode: HashMap<u64, u32, BuildHasherDefault<InodeHasher>>,
    /// The file that the rows came from, and where the fingerprints begin in it. It is kept open, because another
    /// process may put another file in its place, whose fingerprints stand elsewhere.
    keys: Option<(File, u64)>,
}

/// Inodes are numbers that need no more mixing than this.
#[derive(Default)]
struct InodeHasher(u64);

impl Hasher for InodeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

impl Cache {
    /// Reads the cache in `folder`.
    pub(super) fn load(folder: &Path) -> Cache {
        let path = folder.join("catalog");
        Self::read(&path).unwrap_or_else(|_| Cache { path, ..Cache::default() })
    }

    fn read(path: &Path) -> io::Result<Cache> {
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let mut file = File::open(path)?;
        let mut header = [0; HEADER as usize];
        file.read_exact(&mut header)?;
        let (magic, length) = header.split_at(8);
        let length = u64::from_le_bytes(length.try_into().map_err(|_| damaged())?);
        if magic != MAGIC || length > file.metadata()?.len() {
            return Err(damaged());
        }
        let mut reader = BufReader::with_capacity(64 << 10, &file).take(length);
        let mut bytes = Vec::new();
        let generation = String::from_utf8(next(&mut reader, &mut bytes)?.unwrap_or_default().to_vec());
        let mut rows: Vec<Option<Row>> = Vec::new();
        while let Some(row) = next(&mut reader, &mut bytes)? {
            rows.push(Some(postcard::from_bytes(row).map_err(|_| damaged())?));
        }
        let by_inode = rows.iter().flatten().zip(0..).map(|(row, index)| (row.inode, index)).collect();
        let generation = generation.map_err(|_| damaged())?;
        let keys = Some((file, HEADER + length));
        Ok(Cache { path: path.to_owned(), generation, rows, by_inode, keys })
    }

    /// The ids among `found` that some session missed a part of its history by.
    pub(super) fn returned_bases<'a>(&self, found: impl Iterator<Item = &'a SessionId>) -> HashSet<String> {
        let missing: HashSet<&str> =
            self.rows.iter().flatten().filter_map(|row| row.summary.missing_base.as_deref()).collect();
        if missing.is_empty() {
            return HashSet::new();
        }
        found.map(SessionId::as_str).filter(|id| missing.contains(id)).map(str::to_owned).collect()
    }

    /// Takes out what is known of a file, if the file is still as it was.
    pub(super) fn take(&mut self, path: &Path, stamp: &Stamp) -> Option<Entry> {
        let place = *self.by_inode.get(&stamp.inode)?;
        let slot = self.rows.get_mut(place as usize)?;
        let row = slot.take_if(|row| row.stamp() == *stamp && row.summary.path.as_os_str() == path.as_os_str())?;
        Some(Entry { stamp: row.stamp(), summary: row.summary, is_fresh: false, turn_keys_at: Some(row.turn_keys) })
    }

    /// What was not taken: files that are gone, or that belong to other homes than those looked at.
    pub(super) fn untaken(&self) -> impl Iterator<Item = &Path> {
        self.rows.iter().flatten().map(|row| row.summary.path.as_path())
    }

    /// Fills in the fingerprints of entries that came from the cache.
    pub(super) fn fill_turn_keys(&self, entries: &mut [Entry]) {
        let keys = self.keys().unwrap_or_default();
        for entry in entries {
            if let Some(from) = entry.turn_keys_at.take() {
                entry.summary.turn_keys = slice(&keys, from, entry.summary.turns);
            }
        }
    }

    fn keys(&self) -> io::Result<Vec<u64>> {
        let Some((mut file, start)) = self.keys.as_ref().map(|(file, start)| (file, *start)) else {
            return Ok(Vec::new());
        };
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }

    /// Replaces the file by `entries` and by what `keep` says of the untaken. A cache that cannot be written is no
    /// error. Returns the generation: a new one where there was no file before.
    pub(super) fn replace(&mut self, entries: &mut [Entry], keep: impl Fn(&Path) -> bool) -> String {
        self.fill_turn_keys(entries);
        let old_keys = self.keys().unwrap_or_default();
        if self.generation.is_empty() {
            self.generation = new_generation();
        }
        let mut keys: Vec<u8> = Vec::new();
        let mut rows: Vec<u8> = Vec::new();
        append(&mut rows, self.generation.as_bytes());
        let mut add = |summary: &Summary, stamp: &Stamp, turn_keys: &[u64]| {
            let at = u32::try_from(keys.len() / 8).unwrap_or(u32::MAX);
            keys.extend(turn_keys.iter().flat_map(|key| key.to_le_bytes()));
            let summary = Box::new(Summary { turn_keys: Vec::new(), ..summary.clone() });
            let Stamp { size, modified, inode, born } = *stamp;
            if let Ok(row) = postcard::to_stdvec(&Row { size, modified, inode, born, turn_keys: at, summary }) {
                append(&mut rows, &row);
            }
        };
        for entry in entries.iter() {
            add(&entry.summary, &entry.stamp, &entry.summary.turn_keys);
        }
        for row in self.rows.iter().flatten().filter(|row| keep(&row.summary.path)) {
            add(&row.summary, &row.stamp(), &slice(&old_keys, row.turn_keys, row.summary.turns));
        }
        if self.write(&rows, &keys).is_err() {
            return String::new();
        }
        self.generation.clone()
    }

    fn write(&self, rows: &[u8], keys: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private::create_folder(folder)?;
        let temporary = folder.join(format!("catalog.{}.new", std::process::id()));
        let written = (|| {
            let mut file = private::open_file(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(&(rows.len() as u64).to_le_bytes())?;
            file.write_all(rows)?;
            file.write_all(keys)?;
            fs::rename(&temporary, &self.path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// Appends a piece with its length before it.
fn append(pieces: &mut Vec<u8>, piece: &[u8]) {
    pieces.extend(u32::try_from(piece.len()).unwrap_or(0).to_le_bytes());
    pieces.extend(piece);
}

/// Reads the next piece into `bytes`; nothing at the end.
fn next<'a>(reader: &mut impl BufRead, bytes: &'a mut Vec<u8>) -> io::Result<Option<&'a [u8]>> {
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    // Read no further than there is, so that a damaged length cannot ask for gigabytes.
    let length = u64::from(u32::from_le_bytes(length));
    bytes.clear();
    if reader.take(length).read_to_end(bytes)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

fn slice(keys: &[u64], from: u32, count: u32) -> Vec<u64> {
    let from = from as usize;
    keys.get(from..from.saturating_add(count as usize)).unwrap_or_default().to_vec()
}

/// A word that no other cache has.
fn new_generation() -> String {
    let now = jiff::Timestamp::now().as_nanosecond();
    format!("{now:x}-{:x}", std::process::id())
}
