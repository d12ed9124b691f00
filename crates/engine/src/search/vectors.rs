//! Keeping a vector for each chunk of what was said: a flat file, and a table of whose chunks are in it.
//!
//! A vector's key tells session and turn, and a fingerprint of the chunk. So whatever the table says, reading a transcript
//! again tells which of its vectors are there, which are missing and which are of something that is not said any more. The
//! table only saves that reading; it is written after the vectors, and one that promises more than there is counts for
//! nothing. One process writes, under the lock of the file of vectors; words are not locked meanwhile.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents::{Blocks, Known, Mark, Part, Store};
use meaning::{Embedder, Error, Key, Vector, VectorFile, VectorWriter, chunks};
use serde::{Deserialize, Serialize};
use transcript::seed::SEED_MARKER;
use transcript::{BlockKind, Summary, secrets};

use super::index::{Row, Rows, read_table, write_table};
use super::update::{IndexProgress, has_grown, keys_hash, seam};
use crate::catalog::{Catalog, Entry, own_title};

/// Changes with every change of what gets a vector.
const FORMAT: u32 = 1;
/// Turns beyond this number get no vectors; the other bits of a key tell the session.
const LAST_TURN: u64 = (1 << 20) - 1;
/// How many chunks are made into vectors and written at once.
const BATCH: usize = 64;
/// How often a long run notes what it has done.
const NOTE: Duration = Duration::from_secs(2);
/// A search that finds the file with more dead vectors than one in so many rewrites it.
const DEAD: usize = 8;

/// Where the vectors are.
pub(super) fn path(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("vectors-{FORMAT}"))
}

fn table_path(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("vectors-{FORMAT}-table"))
}

/// The key of a chunk.
pub(super) fn key(file: u64, turn: u32, chunk: &str) -> Option<Key> {
    let part = xxhash_rust::xxh3::xxh3_64(chunk.as_bytes()) as u32;
    Some(Key { document: document(file, turn)?, part })
}

/// The part of a key that tells the turn.
pub(super) fn document(file: u64, turn: u32) -> Option<u64> {
    (u64::from(turn) <= LAST_TURN).then_some(short(file) | u64::from(turn))
}

/// The part of a key that tells the session.
pub(super) fn short(file_or_document: u64) -> u64 {
    file_or_document & !LAST_TURN
}

/// The turn that a key tells.
pub(super) fn turn(document: u64) -> u32 {
    (document & LAST_TURN) as u32
}

/// Whose vectors are in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Table {
    /// How many vectors there were when it was written.
    records: u64,
    rows: Rows,
    /// Vectors of what has grown since.
    dead: Vec<(u64, u32)>,
}

/// The vectors, open for reading.
#[derive(Default)]
pub(super) struct Vectors {
    pub file: Option<VectorFile>,
    /// Why there are none, where there should be.
    pub damage: Option<String>,
    rows: Rows,
}

/// The sessions whose vectors count, by the short form of their key, with the last turn for which they do.
pub(super) struct Standing {
    pub sessions: HashMap<u64, (u64, u32)>,
    /// How many sessions have none, or not all.
    pub missing: usize,
}

impl Vectors {
    /// Opens what there is.
    pub(super) fn open(cache: &Path) -> Vectors {
        // A writer may be replacing both in this very moment.
        let first = Vectors::try_open(cache);
        if first.file.is_some() || first.damage.is_some() { first } else { Vectors::try_open(cache) }
    }

    fn try_open(cache: &Path) -> Vectors {
        let table: Table = read_table(&table_path(cache)).unwrap_or_default();
        match VectorFile::open(&path(cache)) {
            Ok(file) if file.lost() > 0 => {
                Vectors { damage: Some("the end of the vectors is cut off".into()), ..Vectors::default() }
            }
            Ok(file) if file.len() as u64 >= table.records && !file.is_empty() => {
                Vectors { file: Some(file), damage: None, rows: table.rows }
            }
            Err(error @ Error::Damaged { .. }) => Vectors { damage: Some(error.to_string()), ..Vectors::default() },
            // Of sessions without a chunk there are no vectors, and yet nothing is missing.
            Ok(_) if table.records == 0 => Vectors { rows: table.rows, ..Vectors::default() },
            Ok(_) | Err(_) => Vectors::default(),
        }
    }

    /// Which of the vectors are of what is said now.
    pub(super) fn standing(&self, catalog: &mut Catalog, words: &Rows) -> Standing {
        let mut standing = Standing { sessions: HashMap::with_capacity(self.rows.len()), missing: 0 };
        let mut grown = Vec::new();
        let mut twice = HashSet::new();
        let mut put = |file: u64, until: u32, standing: &mut Standing| {
            // Two sessions with one short key cannot be told apart.
            if let Some((other, _)) = standing.sessions.insert(short(file), (file, until))
                && other != file
            {
                twice.insert(short(file));
            }
        };
        for (index, entry) in catalog.entries.iter().enumerate().filter(|(_, entry)| entry.is_shown()) {
            let file = entry.file();
            let stamp = &entry.stamp;
            let is_now = |row: &&Row| (row.size, row.modified, row.inode) == (stamp.size, stamp.modified, stamp.inode);
            let row = words.get(&file).filter(is_now);
            match self.rows.get(&file) {
                Some(own) if row.is_some_and(|row| is_same(own, row)) => put(file, u32::MAX, &mut standing),
                own => {
                    standing.missing += 1;
                    if own.is_some() {
                        grown.push((index, file));
                    }
                }
            }
        }
        if !grown.is_empty() {
            catalog.load_turn_keys();
        }
        for (index, file) in grown {
            let own = &self.rows[&file];
            if has_grown(own, &catalog.entries[index]) {
                put(file, own.turns, &mut standing);
            }
        }
        standing.sessions.retain(|short, _| !twice.contains(short));
        standing
    }

    /// How many sessions have all of their vectors.
    pub(super) fn sessions(&self, words: &Rows) -> usize {
        self.rows.iter().filter(|(file, row)| words.get(file).is_some_and(|words| is_same(row, words))).count()
    }
}

/// Whether vectors were made of what the words were read from.
fn is_same(own: &Row, words: &Row) -> bool {
    own.complete
        && (own.size, own.modified, own.inode) == (words.size, words.modified, words.inode)
        && (own.title, own.shared, own.owner) == (words.title, words.shared, words.owner)
}

/// What gets a vector: what a person or an agent said to the other. Thinking and summaries say it once more.
fn said(kind: &BlockKind) -> &str {
    match kind {
        BlockKind::Prompt { text, .. } if text.starts_with(SEED_MARKER) => "",
        BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. } => text,
        BlockKind::Subagent { description, .. } => description.as_deref().unwrap_or_default(),
        _ => "",
    }
}

/// The chunks of a text. A single word such as `continue` is nothing to be found by.
pub(super) fn each_chunk(text: &str, mut take: impl FnMut(&str)) {
    if text.is_empty() {
        return;
    }
    let text = secrets::mask(text).0;
    for range in chunks(&text) {
        let chunk = &text[range];
        if chunk.split_whitespace().nth(1).is_some() {
            take(chunk);
        }
    }
}

/// What was said in one turn, in chunks.
pub(super) fn chunks_of_turn(
    store: &dyn Store,
    summary: &Summary,
    turn: u32,
    offset: Option<u64>,
    mut take: impl FnMut(&str) -> bool,
) -> std::io::Result<()> {
    let known = Known::of(summary);
    let from = offset.filter(|_| known.is_some()).map(|offset| Mark { turn, offset });
    let part = Part { from, until: Some(turn), prose_only: true };
    let mut blocks = store.read_part(&summary.path, &part, known.as_ref())?;
    let mut goes_on = true;
    while let Some(block) = blocks.next_block().filter(|_| goes_on) {
        if block.turn.max(1) >= turn {
            each_chunk(said(&block.kind), |chunk| goes_on = goes_on && take(chunk));
        }
    }
    Ok(())
}

/// Begins anew.
pub(super) fn throw_away(cache: &Path) -> Result<(), String> {
    let _ = fs::remove_file(table_path(cache));
    VectorWriter::anew(&path(cache)).map(drop).map_err(|error| told(&error))
}

/// Makes the vectors that are missing, until all are there or time is up. What there is to say of it comes back.
pub(super) fn update(
    cache: &Path,
    catalog: &mut Catalog,
    words: &Rows,
    stores: &[Box<dyn Store>],
    until: Option<Instant>,
    progress: &dyn IndexProgress,
) -> Result<Vec<String>, String> {
    let mut notices = Vec::new();
    let path = path(cache);
    let writer = loop {
        match VectorWriter::open(&path) {
            Err(Error::Busy(_)) if until.is_none() => std::thread::sleep(Duration::from_millis(50)),
            Err(Error::Busy(_)) => return Ok(vec!["another tine is making vectors".into()]),
            Err(error) if error.calls_for_rebuild() => {
                if let Error::Damaged { .. } = error {
                    notices.push(format!("the vectors were damaged and are made anew: {}", told(&error)));
                }
                let _ = fs::remove_file(table_path(cache));
                break VectorWriter::anew(&path);
            }
            other => break other,
        }
    };
    let writer = writer.map_err(|error| told(&error))?;
    let table: Table = read_table(&table_path(cache)).unwrap_or_default();
    let table = if table.records <= writer.len() { table } else { Table::default() };
    let mut there: HashMap<u64, HashSet<Key>> = HashMap::new();
    for key in VectorFile::open(&path).map_err(|error| told(&error))?.keys() {
        there.entry(short(key.document)).or_default().insert(key);
    }
    catalog.load_turn_keys();
    let mut run = Run {
        table_path: table_path(cache),
        dead: table.dead.iter().map(|(document, part)| Key { document: *document, part: *part }).collect(),
        rows: table.rows,
        there,
        writer,
        embedder: Embedder::new(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        queue: Vec::new(),
        done: Vec::new(),
        held: Vec::new(),
        noted: Instant::now(),
        until,
    };
    let worked = run.all(catalog, words, stores, progress, &mut notices);
    // What was made before something failed is worth keeping.
    if worked.is_err() {
        run.held.clear();
    }
    let ended = run.end();
    worked.and(ended).map(|()| notices)
}

/// An error with its reason.
fn told(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => format!("{error}: {source}"),
        other => other.to_string(),
    }
}

struct Run {
    table_path: PathBuf,
    rows: Rows,
    dead: HashSet<Key>,
    /// What is in the file, by session.
    there: HashMap<u64, HashSet<Key>>,
    writer: VectorWriter,
    embedder: Embedder,
    threads: usize,
    queue: Vec<(Key, String)>,
    /// Sessions that are complete once the queue is written.
    done: Vec<(u64, Row)>,
    /// Sessions that are complete once dead vectors are out of the file.
    held: Vec<(u64, Row)>,
    noted: Instant,
    until: Option<Instant>,
}

impl Run {
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn all(
        &mut self,
        catalog: &Catalog,
        words: &Rows,
        stores: &[Box<dyn Store>],
        progress: &dyn IndexProgress,
        notices: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut jobs = Vec::new();
        let mut present = HashSet::new();
        for entry in catalog.entries.iter().filter(|entry| entry.is_shown()) {
            let file = entry.file();
            present.insert(short(file));
            if let Some(row) = words.get(&file).filter(|row| row.complete)
                && !self.rows.get(&file).is_some_and(|own| is_same(own, row))
            {
                jobs.push((file, entry, row));
            }
        }
        self.rows.retain(|file, _| words.contains_key(file));
        // What words keep of folders that cannot be looked into now is kept here, too.
        present.extend(words.keys().copied().map(short));
        let gone = self.there.iter().filter(|(short, _)| !present.contains(short));
        self.dead.extend(gone.flat_map(|(_, keys)| keys.iter().copied()));
        // What was said last is looked for first.
        jobs.sort_by_key(|(_, entry, _)| std::cmp::Reverse(entry.stamp.modified));
        let total = jobs.iter().map(|(_, entry, _)| entry.stamp.size).sum();
        let mut read = 0;
        for (file, entry, row) in jobs {
            if self.is_late() {
                break;
            }
            let Some(store) = stores.iter().find(|store| store.agent() == entry.summary.agent) else { continue };
            match self.session(file, entry, row, store.as_ref()) {
                Ok(()) => {}
                Err(Failed::Read(kind)) => {
                    notices.push(format!("cannot read {}: {kind}", entry.summary.path.display()));
                }
                Err(Failed::Write(why)) => return Err(why),
            }
            read += entry.stamp.size;
            progress.read("what it means", read, total);
        }
        self.flush()
    }

    /// Finds out which chunks of a session have no vector yet.
    fn session(&mut self, file: u64, entry: &Entry, row: &Row, store: &dyn Store) -> Result<(), Failed> {
        let summary = &entry.summary;
        let known = Known::of(summary);
        let own = self.rows.get(&file).filter(|own| own.shared == row.shared && has_grown(own, entry));
        let from = own.and_then(|own| Some(Mark { turn: own.turns, offset: own.last? }));
        let first = from.map_or(1, |from| from.turn);
        let part = Part { from, until: None, prose_only: true };
        let mut blocks = store.read_part(&summary.path, &part, known.as_ref()).map_err(|e| Failed::Read(e.kind()))?;
        let mut seen: HashSet<Key> = HashSet::new();
        self.take(file, 0, own_title(&entry.summary).unwrap_or_default(), &mut seen)?;
        let (mut turns, mut last) = (first.saturating_sub(1), None);
        while let Some(block) = blocks.next_block() {
            let number = block.turn.max(first);
            if number != turns {
                turns = number;
                last = began(blocks.as_ref(), number);
            }
            if number > row.shared {
                self.take(file, number, said(&block.kind), &mut seen)?;
            }
            if self.is_late() {
                return Ok(());
            }
        }
        if self.is_late() {
            return Ok(());
        }
        let there = self.there.get(&short(file)).into_iter().flatten();
        let is_read = |key: &&Key| turn(key.document) >= first || turn(key.document) == 0;
        let dead: Vec<Key> = there.filter(is_read).filter(|key| !seen.contains(key)).copied().collect();
        let complete = Row {
            turns,
            last,
            keys: keys_hash(entry.turn_keys(), turns),
            seam: seam(&summary.path, last).unwrap_or(0),
            ..row.clone()
        };
        // A chunk that has grown was said; one of a history that was changed was not.
        if from.is_some() || dead.is_empty() {
            self.done.push((file, complete));
        } else {
            self.held.push((file, complete));
        }
        self.dead.extend(dead);
        Ok(())
    }

    fn take(&mut self, file: u64, turn: u32, text: &str, seen: &mut HashSet<Key>) -> Result<(), Failed> {
        let mut new = Vec::new();
        each_chunk(text, |chunk| {
            if let Some(key) = key(file, turn, chunk).filter(|key| seen.insert(*key)) {
                self.dead.remove(&key);
                if !self.there.get(&short(file)).is_some_and(|keys| keys.contains(&key)) {
                    new.push((key, chunk.to_owned()));
                }
            }
        });
        for chunk in new {
            if self.is_late() {
                return Ok(());
            }
            self.queue.push(chunk);
            if self.queue.len() >= BATCH {
                self.flush().map_err(Failed::Write)?;
            }
        }
        Ok(())
    }

    /// Makes vectors of what is in the queue and writes them.
    fn flush(&mut self) -> Result<(), String> {
        let queue = std::mem::take(&mut self.queue);
        let texts: Vec<&str> = queue.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = self.embedder.embed_all(&texts, self.threads);
        let keyed = queue.iter().map(|(key, _)| *key).zip(&vectors);
        // What the model cannot read is like nothing and need not be kept.
        let keyed: Vec<(Key, &Vector)> = keyed.filter(|(_, vector)| **vector != Vector::NOTHING).collect();
        for (key, _) in &keyed {
            self.there.entry(short(key.document)).or_default().insert(*key);
        }
        self.writer.append(keyed).map_err(|error| told(&error))?;
        self.rows.extend(self.done.drain(..));
        if self.noted.elapsed() > NOTE {
            self.note()?;
        }
        Ok(())
    }

    /// Takes dead vectors out, if that is due, and notes what was done.
    fn end(&mut self) -> Result<(), String> {
        let due = self.until.is_none() || !self.held.is_empty() || self.dead.len() > self.writer.len() as usize / DEAD;
        if due && !self.dead.is_empty() {
            let dead = std::mem::take(&mut self.dead);
            self.writer.retain(|key| !dead.contains(&key)).map_err(|error| told(&error))?;
            self.rows.extend(self.held.drain(..));
        }
        self.note()
    }

    fn note(&mut self) -> Result<(), String> {
        let table = Table {
            records: self.writer.len(),
            rows: std::mem::take(&mut self.rows),
            dead: self.dead.iter().map(|key| (key.document, key.part)).collect(),
        };
        let written = write_table(&table, &self.table_path);
        self.rows = table.rows;
        self.noted = Instant::now();
        written.map_err(|error| format!("cannot write {}: {error}", self.table_path.display()))
    }
}

enum Failed {
    Read(std::io::ErrorKind),
    Write(String),
}

/// Where a turn begins, if it can be read from there.
fn began(blocks: &dyn Blocks, turn: u32) -> Option<u64> {
    blocks.turn_began().filter(|mark| mark.turn == turn).map(|mark| mark.offset)
}
