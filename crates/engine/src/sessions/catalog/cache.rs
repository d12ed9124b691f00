//! The catalog's cache on disk: one flat file, read and replaced as a whole.
//!
//! Losing it costs one slow listing, so nothing is repaired: a file that is unreadable, damaged or in another format
//! counts as missing. Two concurrent writers replace each other's file; what one of them did not know is read again the
//! next time. See docs/decisions/0004-catalog-and-registry.md.
//!
//! Every command needs a few numbers of every session, so these come first, then the rows, then the turn fingerprints,
//! which only lineage needs: `MAGIC · number of heads, length of rows, length of the generation, checksum (u64 each) ·
//! heads · generation and rows · fingerprints (u64 each)`. The checksum covers heads, generation and rows.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::{SessionFile, Stamp};
use diagnostics::OrLog;
use transcript::{Agent, Summary};
use xxhash_rust::xxh3::Xxh3Default;

use super::facts::{Facts, Outline, Stored, StoredRows};
use super::{Entry, TurnKeys};
use crate::private;

/// Changes with the facts or how they are computed; with another value, the cache is rebuilt.
const MAGIC: &[u8; 8] = b"tinecatP";
const HEADER: u64 = 40;

/// The fixed-size part of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    stamp: Stamp,
    outline: Outline,
    /// The position of the facts in the rows.
    from: u32,
    len: u32,
    /// The position of the fingerprints in their part of the file.
    turn_keys: u32,
}

impl Head {
    const WORDS: usize = 11;
    /// A time at which nothing happened.
    const NEVER: i64 = i64::MIN;

    fn words(&self) -> [u64; Head::WORDS] {
        let Head { stamp, outline, from, len, turn_keys } = *self;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let agent = Agent::ALL.iter().position(|agent| *agent == outline.agent).unwrap_or_default() as u64;
        [
            stamp.size,
            stamp.modified.cast_unsigned(),
            stamp.inode,
            stamp.born.unwrap_or(Head::NEVER).cast_unsigned(),
            outline.file,
            outline.title,
            outline.beginning,
            outline.updated.unwrap_or(Head::NEVER).cast_unsigned(),
            pair(from, len),
            pair(turn_keys, outline.turns),
            agent << 8 | u64::from(outline.is_shown) | u64::from(outline.has_bases) << 1,
        ]
    }

    fn of(words: [u64; Head::WORDS]) -> Option<Head> {
        let [size, modified, inode, born, file, title, beginning, updated, row, turns, marks] = words;
        let (low, high) = (|pair: u64| pair as u32, |pair: u64| (pair >> 32) as u32);
        let time = |time: u64| Some(time.cast_signed()).filter(|time| *time != Head::NEVER);
        Some(Head {
            stamp: Stamp { size, modified: modified.cast_signed(), inode, born: time(born) },
            outline: Outline {
                file,
                title,
                beginning,
                updated: time(updated),
                turns: high(turns),
                agent: *Agent::ALL.get(usize::try_from(marks >> 8).ok()?)?,
                is_shown: marks & 1 != 0,
                has_bases: marks & 2 != 0,
            },
            from: low(row),
            len: high(row),
            turn_keys: low(turns),
        })
    }
}

/// The contents of the file.
#[derive(Default)]
pub(super) struct Cache {
    path: PathBuf,
    pub(super) generation: String,
    heads: Vec<Option<Head>>,
    /// Positions in `heads` by inode, which is cheaper to look up than a path.
    by_inode: HashMap<u64, u32, BuildHasherDefault<InodeHasher>>,
    /// The file of the heads. It is kept open, because another process may replace it with a file that has other
    /// positions.
    rows: Option<Arc<StoredRows>>,
}

/// Inodes need no better hash than this.
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
        let (magic, numbers) = header.split_at(8);
        let [count, len, named, checksum] = words(numbers);
        let size = file.metadata()?.len();
        if magic != MAGIC || named > len || count > size / 8 || HEADER + 8 * Head::WORDS as u64 * count + len > size {
            return Err(damaged());
        }
        let mut seal = Xxh3Default::new();
        let mut reader = BufReader::with_capacity(64 << 10, &file);
        let mut heads = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let mut by_inode = HashMap::with_capacity_and_hasher(heads.capacity(), BuildHasherDefault::default());
        for index in 0..u32::try_from(count).map_err(|_| damaged())? {
            let mut bytes = [0; 8 * Head::WORDS];
            reader.read_exact(&mut bytes)?;
            seal.update(&bytes);
            let head = Head::of(words(&bytes)).ok_or_else(damaged)?;
            by_inode.insert(head.stamp.inode, index);
            heads.push(Some(head));
        }
        let mut generation = vec![0; usize::try_from(named).map_err(|_| damaged())?];
        reader.read_exact(&mut generation)?;
        seal.update(&generation);
        let mut rest = len - named;
        while rest > 0 {
            let read = io::BufRead::fill_buf(&mut reader)?;
            let taken = read.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            if taken == 0 {
                return Err(damaged());
            }
            seal.update(&read[..taken]);
            io::BufRead::consume(&mut reader, taken);
            rest -= taken as u64;
        }
        if seal.digest() != checksum {
            return Err(damaged());
        }
        let generation = String::from_utf8(generation).map_err(|_| damaged())?;
        let start = HEADER + 8 * Head::WORDS as u64 * count;
        let rows = Arc::new(StoredRows::new(file, start, usize::try_from(len).map_err(|_| damaged())?));
        Ok(Cache { path: path.to_owned(), generation, heads, by_inode, rows: Some(rows) })
    }

    /// The ids of missing base sessions that are among `found`.
    pub(super) fn returned_bases(&self, found: &[(Agent, SessionFile)]) -> HashSet<String> {
        let summaries =
            self.heads.iter().flatten().filter(|head| head.outline.has_bases).filter_map(|head| self.facts(head));
        let missing: HashSet<String> = summaries.filter_map(|summary| summary.missing_base.clone()).collect();
        if missing.is_empty() {
            return HashSet::new();
        }
        let ids = found.iter().flat_map(|(_, file)| file.ids());
        ids.filter(|id| missing.contains(*id)).map(str::to_owned).collect()
    }

    fn facts(&self, head: &Head) -> Option<Facts> {
        let rows = self.rows.clone()?;
        Some(Facts::stored(Stored { rows, from: head.from, len: head.len }))
    }

    /// Takes the entry of a file, if the file is unchanged.
    pub(super) fn take(&mut self, file: u64, stamp: &Stamp) -> Option<Entry> {
        let place = *self.by_inode.get(&stamp.inode)? as usize;
        let head = *self.heads.get(place)?.as_ref().filter(|head| head.stamp == *stamp && head.outline.file == file)?;
        let summary = self.facts(&head)?;
        self.heads[place] = None;
        Some(Entry {
            summary,
            stamp: head.stamp,
            is_fresh: false,
            turn_keys: TurnKeys::InCache(head.turn_keys),
            outline: head.outline,
        })
    }

    /// Entries that were known of a file that has changed since.
    pub(super) fn previous_entry(&self, file: u64, stamp: &Stamp) -> Option<Facts> {
        let place = *self.by_inode.get(&stamp.inode)? as usize;
        let head = self.heads.get(place)?.as_ref().filter(|head| head.outline.file == file)?;
        self.facts(head)
    }

    /// What was not taken: of files that no longer exist, or of homes that are not listed.
    pub(super) fn remaining_paths(&self) -> impl Iterator<Item = PathBuf> {
        self.heads.iter().flatten().filter_map(|head| Some(self.facts(head)?.path.clone()))
    }

    /// Loads the fingerprints of entries from the cache, and nothing else.
    pub(super) fn load_turn_keys(&self, entries: &mut [Entry]) {
        let mut keys = None;
        for entry in entries {
            if let TurnKeys::InCache(from) = entry.turn_keys {
                let keys = keys.get_or_insert_with(|| Arc::new(self.keys().unwrap_or_default()));
                entry.turn_keys = TurnKeys::Loaded(from, keys.clone());
            }
        }
    }

    fn keys(&self) -> io::Result<Vec<u64>> {
        let Some(rows) = &self.rows else {
            return Ok(Vec::new());
        };
        let mut file = rows.file();
        file.seek(SeekFrom::Start(rows.end()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }

    /// Replaces the file with `entries` and those untaken entries that `keep` selects. A cache that cannot be written
    /// is not an error. Returns the generation, a new one if there was no file before.
    pub(super) fn replace(&mut self, entries: &[Entry], keep: impl Fn(&Path) -> bool) -> String {
        let old_keys = self.keys().unwrap_or_default();
        let old_rows = self.rows.as_ref().and_then(|rows| rows.all().ok()).unwrap_or_default();
        if self.generation.is_empty() {
            self.generation = new_generation();
        }
        let mut new = New { rows: self.generation.clone().into_bytes(), ..New::default() };
        let stored = |from: u32, len: u32| old_rows.get(from as usize..)?.get(..len as usize);
        // Newest first, as a listing needs them.
        let mut entries: Vec<&Entry> = entries.iter().filter(|entry| entry.is_readable()).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.updated()));
        for entry in entries {
            let (stamp, outline) = (entry.stamp, entry.outline);
            match (&entry.turn_keys, entry.summary.place()) {
                (TurnKeys::InCache(from) | TurnKeys::Loaded(from, _), Some(place)) => {
                    let row = stored(place.from, place.len).unwrap_or_default();
                    new.add(stamp, outline, row, slice(&old_keys, *from, outline.turns));
                }
                _ => {
                    let summary = Summary { turn_keys: Vec::new(), ..Summary::clone(&entry.summary) };
                    if let Ok(row) = postcard::to_stdvec(&summary) {
                        new.add(stamp, outline, &row, entry.turn_keys());
                    }
                }
            }
        }
        for head in self.heads.iter().flatten() {
            if self.facts(head).is_some_and(|facts| keep(&facts.path)) {
                let row = stored(head.from, head.len).unwrap_or_default();
                new.add(head.stamp, head.outline, row, slice(&old_keys, head.turn_keys, head.outline.turns));
            }
        }
        if self.write(&new).is_err() {
            return String::new();
        }
        self.generation.clone()
    }

    fn write(&self, new: &New) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private::create_folder(folder)?;
        let temporary = folder.join(format!("catalog.{}.new", std::process::id()));
        let mut seal = Xxh3Default::new();
        seal.update(&new.heads);
        seal.update(&new.rows);
        let count = new.heads.len() / (8 * Head::WORDS);
        let numbers = [count as u64, new.rows.len() as u64, self.generation.len() as u64, seal.digest()];
        let written = (|| {
            let mut file = private::open_file(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(&numbers.map(u64::to_le_bytes).concat())?;
            file.write_all(&new.heads)?;
            file.write_all(&new.rows)?;
            file.write_all(&new.keys)?;
            fs::rename(&temporary, &self.path)
        })();
        if written.is_err() {
            fs::remove_file(&temporary).or_log(format_args!("remove {}", temporary.display()));
        }
        written
    }
}

/// A new cache file.
#[derive(Default)]
struct New {
    heads: Vec<u8>,
    /// The generation, followed by the rows.
    rows: Vec<u8>,
    keys: Vec<u8>,
}

impl New {
    fn add(&mut self, stamp: Stamp, outline: Outline, row: &[u8], turn_keys: &[u64]) {
        let number = |count: usize| u32::try_from(count).ok();
        let (Some(from), Some(len), Some(turn_keys_at)) =
            (number(self.rows.len()), number(row.len()), number(self.keys.len() / 8))
        else {
            return;
        };
        let head = Head { stamp, outline, from, len, turn_keys: turn_keys_at };
        self.heads.extend(head.words().into_iter().flat_map(u64::to_le_bytes));
        self.rows.extend(row);
        self.keys.extend(turn_keys.iter().flat_map(|key| key.to_le_bytes()));
    }
}

/// The numbers in some bytes; 0 if there are too few.
fn words<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let mut words = [0; COUNT];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

pub(super) fn slice(keys: &[u64], from: u32, count: u32) -> &[u64] {
    let from = from as usize;
    keys.get(from..from.saturating_add(count as usize)).unwrap_or_default()
}

/// A unique value.
fn new_generation() -> String {
    let now = jiff::Timestamp::now().as_nanosecond();
    format!("{now:x}-{:x}", std::process::id())
}
