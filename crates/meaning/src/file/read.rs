//! Reading: the file is mapped, and a search looks at every vector.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapOptions};

use super::{HEADER, Header, Key, RECORD, Record, read_header};
use crate::error::Error;
use crate::vector::{Vector, dot};

/// The vectors that were there when the file was opened.
#[derive(Debug)]
pub struct VectorFile {
    path: PathBuf,
    /// The records that count; nothing, if there are none.
    map: Option<Mmap>,
    lost: u64,
    pub(super) counted_in_second: bool,
}

/// A vector near the requested one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// What it is of.
    pub key: Key,
    /// The cosine.
    pub score: f32,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// The nearest first; equals in the order of their keys.
    pub hits: Vec<Hit>,
    /// How many near records were skipped because they have changed since they were written. Any of them calls for a
    /// rebuild.
    pub damaged: usize,
}

impl VectorFile {
    /// Opens a file. A missing file is an error of the kind `NotFound`; a truncated one gives its remaining records,
    /// and [`VectorFile::lost`] counts the others.
    pub fn open(path: &Path) -> Result<VectorFile, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        VectorFile::of(&file, path)
    }

    pub(super) fn of(mut file: &File, path: &Path) -> Result<VectorFile, Error> {
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let empty = VectorFile { path: path.to_owned(), map: None, lost: 0, counted_in_second: false };
        if length == 0 {
            // Its writer has made it and not begun yet, or was killed right then.
            return Ok(empty);
        }
        let mut header = [0; HEADER];
        if length < HEADER as u64 {
            return Err(Error::damaged(path, "its header is incomplete"));
        }
        // The header is read and not mapped, because a writer changes it.
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut header)).map_err(Error::io("read", path))?;
        let (records, counted_in_second) = match read_header(&header) {
            Header::Counts { records, in_second } => (records, in_second),
            Header::Foreign => return Err(Error::Foreign(path.to_owned())),
            Header::Damaged => return Err(Error::damaged(path, "its header is invalid")),
        };
        // Read after the header, so that it includes what a writer has added since.
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let there = records.min(length.saturating_sub(HEADER as u64) / RECORD as u64);
        let lost = records - there;
        let size = usize::try_from(there).ok().and_then(|there| there.checked_mul(RECORD));
        let size = size.ok_or_else(|| Error::damaged(path, "it does not fit into memory"))?;
        if there == 0 {
            return Ok(VectorFile { lost, counted_in_second, ..empty });
        }
        #[expect(unsafe_code, reason = "mapping a file is unsafe, because another process could change it")]
        // SAFETY: what is mapped must not change or go away while it is. The file is private to its owner (0600), all its
        // writers are in `write.rs`, and they never write below the end of the records that count nor cut a file, but
        // replace it by another. The header, which they do change, is not part of the map.
        let map = unsafe { MmapOptions::new().offset(HEADER as u64).len(size).map(file) };
        let map = map.map_err(Error::io("map", path))?;
        Ok(VectorFile { path: path.to_owned(), map: Some(map), lost, counted_in_second })
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.records().len()
    }

    /// Whether it has no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many vectors were lost by truncation. Any of them calls for a rebuild.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What the vectors are of, in the order in which they were appended.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = Key> {
        self.records().iter().map(|record| Record(record).key())
    }

    /// All vectors, in the order in which they were appended.
    pub fn vectors(&self) -> impl ExactSizeIterator<Item = (Key, Vector)> {
        self.records().iter().map(|record| (Record(record).key(), Vector::of_bytes(Record(record).values())))
    }

    /// The `count` vectors that are nearest to `query` among those whose key is wanted.
    pub fn nearest(&self, query: &Vector, count: usize, mut is_wanted: impl FnMut(Key) -> bool) -> Nearest {
        let mut best = Best::of(count);
        let mut damaged = 0;
        for record in self.records().iter().map(Record) {
            let score = dot(query.values(), &record.values()) as f32 * record.scale() * query.scale();
            if !best.takes(score) {
                continue;
            }
            let key = record.key();
            if !record.is_intact() {
                damaged += 1;
            } else if is_wanted(key) {
                best.take(Hit { key, score });
            }
        }
        Nearest { hits: best.into_hits(), damaged }
    }

    /// How near the vectors are whose key is wanted, in the order in which they were appended.
    pub fn cosines(&self, query: &Vector, mut is_wanted: impl FnMut(Key) -> bool) -> Nearest {
        let mut found = Nearest { hits: Vec::new(), damaged: 0 };
        for record in self.records().iter().map(Record) {
            let key = record.key();
            if !is_wanted(key) {
                continue;
            }
            if record.is_intact() {
                let score = dot(query.values(), &record.values()) as f32 * record.scale() * query.scale();
                found.hits.push(Hit { key, score });
            } else {
                found.damaged += 1;
            }
        }
        found
    }

    /// Looks at every record. A search does so only for those that it finds.
    pub fn verify(&self) -> Result<(), Error> {
        if self.lost > 0 {
            return Err(Error::damaged(&self.path, "its end is missing"));
        }
        match self.records().iter().all(|record| Record(record).is_intact()) {
            true => Ok(()),
            false => Err(Error::damaged(&self.path, "a vector has changed since it was written")),
        }
    }

    pub(super) fn records(&self) -> &[[u8; RECORD]] {
        self.map.as_ref().map_or(&[], |map| map.as_chunks().0)
    }
}

/// The best hits so far, the worst of them on top.
struct Best {
    hits: BinaryHeap<Reverse<Ranked>>,
    count: usize,
}

impl Best {
    fn of(count: usize) -> Best {
        Best { hits: BinaryHeap::new(), count }
    }

    /// Whether a hit of this score could be among the best. What is not a number is not.
    fn takes(&self, score: f32) -> bool {
        if self.hits.len() < self.count {
            return !score.is_nan();
        }
        self.hits.peek().is_some_and(|Reverse(worst)| score >= worst.0.score)
    }

    fn take(&mut self, hit: Hit) {
        self.hits.push(Reverse(Ranked(hit)));
        if self.hits.len() > self.count {
            self.hits.pop();
        }
    }

    fn into_hits(self) -> Vec<Hit> {
        // Sorted in reverse of the reverse: the best first.
        self.hits.into_sorted_vec().into_iter().map(|Reverse(Ranked(hit))| hit).collect()
    }
}

/// Hits by score; for equal scores, the smaller key is better.
struct Ranked(Hit);

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.0.score.total_cmp(&other.0.score).then_with(|| other.0.key.cmp(&self.0.key))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
