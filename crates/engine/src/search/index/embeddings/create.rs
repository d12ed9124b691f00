//! Creates the missing vectors: first the gist of every session, then the rest.
//!
//! One process writes, holding the lock of the vector file; the keyword index is not locked. If nothing waits for the
//! vectors, they are created at low priority.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agents::{Adapter, Blocks, Part, PlainScan, TurnStart};
use diagnostics::OrLog;
use meaning::{Embedder, Error, Key, Vector, VectorFile, VectorWriter};
use transcript::BlockKind;
use transcript::seed::is_seed;

use super::selection::{ChunkChoice, Coverage, each_chunk, template_hash};
use super::vectors::{VectorTable, is_of_same, is_same, key, outdated, path, short, table_path, turn};
use crate::search::index::table::{Row, Rows, read_table, write_table};
use crate::search::index::update::IndexProgress;
use crate::search::index::work::{has_grown, keys_hash, prefix_fingerprint};
use crate::sessions::catalog::{Catalog, Entry, own_title};

/// How many chunks are written in one batch.
const BATCH: usize = 64;
/// How many chunks are embedded between two checks of the clock, if there is a deadline.
const STEP: usize = 16;
/// How many vectors are kept in memory for similar chunks, 6 MB in all.
const MADE: usize = 16_384;
/// The niceness of a process that creates vectors nothing waits for.
#[cfg(target_os = "linux")]
const YIELDING: i32 = 10;
/// A search embeds larger transcripts last: one of them could take all of its time, every time.
const LARGE: u64 = 4 << 20;
/// How often a writer checks whether another one has finished.
const PAUSE: Duration = Duration::from_millis(10);
/// How often a long run saves its progress.
const NOTE: Duration = Duration::from_secs(2);
/// The file is rewritten if more than one vector in this many is obsolete.
const DEAD: usize = 8;

/// A request to create vectors.
pub(crate) struct EmbeddingRequest<'a> {
    pub cache: &'a Path,
    pub words: &'a Rows,
    pub adapters: &'a [Box<dyn Adapter>],
    pub embedder: &'a Embedder,
    /// When to stop; without a deadline, when all exist.
    pub until: Option<Instant>,
    /// The sessions to embed, in this order, for a search that waits; without them, all sessions, newest first, at low
    /// priority.
    pub files: Option<&'a [u64]>,
}

/// Removes all vectors.
pub(crate) fn throw_away(cache: &Path) -> Result<(), String> {
    fs::remove_file(table_path(cache)).or_log(format_args!("remove {}", table_path(cache).display()));
    VectorWriter::create_or_replace(&path(cache)).map(drop).map_err(|error| error_with_reason(&error))
}

/// Creates the missing vectors, all of them or until time is up. Returns notices.
pub(crate) fn update(
    making: &EmbeddingRequest<'_>,
    catalog: &mut Catalog,
    progress: &dyn IndexProgress,
) -> Result<Vec<String>, String> {
    let EmbeddingRequest { cache, until, .. } = *making;
    let mut notices = Vec::new();
    let path = path(cache);
    let is_late = || until.is_some_and(|until| Instant::now() >= until);
    let writer = loop {
        match VectorWriter::open(&path) {
            // Another process is creating them; a search doesn't wait for it.
            Err(Error::Busy(_)) if is_late() || making.files.is_some() => return Ok(notices),
            Err(Error::Busy(_)) => std::thread::sleep(PAUSE),
            Err(error) if error.calls_for_rebuild() => {
                if let Error::Damaged { .. } = error {
                    notices
                        .push(format!("the embeddings were damaged; rebuilding them: {}", error_with_reason(&error)));
                }
                fs::remove_file(table_path(cache)).or_log(format_args!("remove {}", table_path(cache).display()));
                break VectorWriter::create_or_replace(&path);
            }
            other => break other,
        }
    };
    let writer = writer.map_err(|error| error_with_reason(&error))?;
    for file in outdated(cache) {
        // Usually it does not exist; one that stays takes up space and is harmless.
        fs::remove_file(&file).or_log(format_args!("remove {}", file.display()));
    }
    let table: VectorTable = read_table(&table_path(cache)).unwrap_or_default();
    let table = if table.records <= writer.len() { table } else { VectorTable::default() };
    let mut there: HashMap<u64, HashSet<Key>> = HashMap::new();
    for key in VectorFile::open(&path).map_err(|error| error_with_reason(&error))?.keys() {
        there.entry(short(key.document)).or_default().insert(key);
    }
    catalog.load_turn_keys();
    let mut run = Run {
        table_path: table_path(cache),
        dead: table.dead.iter().map(|(document, part)| Key { document: *document, part: *part }).collect(),
        rows: table.rows,
        there,
        writer,
        embedder: making.embedder,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        queue: Vec::new(),
        made: HashMap::new(),
        done: Vec::new(),
        held: Vec::new(),
        noted: Instant::now(),
        until,
    };
    let worked = match making.files {
        Some(_) => run.all(making, catalog, progress, &mut notices),
        None => at_low_priority(|| run.all(making, catalog, progress, &mut notices)),
    };
    // Vectors created before a failure are worth keeping.
    if worked.is_err() {
        run.held.clear();
    }
    let ended = run.end();
    worked.and(ended).map(|()| notices)
}

/// Runs a function on its own thread at low priority.
fn at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let is_caught = crate::search::index::panics::is_panic_caught();
    let work = || {
        crate::search::index::panics::is_caught_as(is_caught);
        // On Linux this applies to the current thread and those that it starts. If it fails, the work is done anyway.
        #[cfg(target_os = "linux")]
        rustix::process::nice(YIELDING).or_log("lower the priority");
        work()
    };
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// An error with its reason.
fn error_with_reason(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => format!("{error}: {source}"),
        other => other.to_string(),
    }
}

struct Run<'a> {
    table_path: PathBuf,
    rows: Rows,
    dead: HashSet<Key>,
    /// The contents of the file, by session.
    there: HashMap<u64, HashSet<Key>>,
    writer: VectorWriter,
    embedder: &'a Embedder,
    threads: usize,
    queue: Vec<(Key, String)>,
    /// Vectors of this run, by the likeness of their chunks.
    made: HashMap<u64, Vector>,
    /// Sessions that are complete once the queue is written, and whether obsolete vectors must be removed first.
    done: Vec<(u64, Row, bool)>,
    /// Sessions that are complete once obsolete vectors are removed from the file.
    held: Vec<(u64, Row)>,
    noted: Instant,
    until: Option<Instant>,
}

impl Run<'_> {
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn all(
        &mut self,
        making: &EmbeddingRequest<'_>,
        catalog: &Catalog,
        progress: &dyn IndexProgress,
        notices: &mut Vec<String>,
    ) -> Result<(), String> {
        let words = making.words;
        let places: Option<HashMap<u64, usize>> =
            making.files.map(|files| files.iter().enumerate().map(|(place, file)| (*file, place)).collect());
        let mut jobs = Vec::new();
        let mut present = HashSet::new();
        for entry in catalog.entries.iter().filter(|entry| entry.is_shown()) {
            let file = entry.file();
            present.insert(short(file));
            let place = places.as_ref().map_or(Some(0), |places| places.get(&file).copied());
            if let Some((row, place)) = words.get(&file).filter(|row| row.complete).zip(place)
                && !self.rows.get(&file).is_some_and(|own| is_same(own, row))
            {
                jobs.push((place, file, entry, row));
            }
        }
        self.rows.retain(|file, _| words.contains_key(file));
        // What the keyword index keeps of folders that cannot be listed now is kept here too.
        present.extend(words.keys().copied().map(short));
        let gone = self.there.iter().filter(|(short, _)| !present.contains(short));
        self.dead.extend(gone.flat_map(|(_, keys)| keys.iter().copied()));
        let is_last = |entry: &Entry| self.until.is_some() && entry.stamp.size > LARGE;
        jobs.sort_by_key(|(place, _, entry, _)| (is_last(entry), *place, std::cmp::Reverse(entry.stamp.modified)));
        // First the gist of everything: prompts and last answers.
        let mut rest = Vec::with_capacity(jobs.len());
        let mut pass = Pass { name: "embeddings", read: 0, total: 0, progress };
        pass.total = jobs.iter().map(|(_, _, entry, _)| entry.stamp.size).sum();
        for (_, file, entry, row) in jobs {
            let is_new = !self.rows.contains_key(&file) && !self.there.contains_key(&short(file));
            let has_gist = self.rows.get(&file).is_some_and(|own| is_of_same(own, row));
            if !has_gist {
                let coverage = if is_new { Coverage::Gist } else { Coverage::Whole };
                self.one(making, (file, entry, row), coverage, notices)?;
            }
            pass.done(entry);
            rest.push((file, entry, row));
        }
        self.flush()?;
        // From now on, searches find everything by its gist.
        self.note()?;
        rest.retain(|(file, _, row)| !self.rows.get(file).is_some_and(|own| is_same(own, row)));
        rest.retain(|(file, ..)| !self.held.iter().any(|(held, _)| held == file));
        let mut pass = Pass { name: "more embeddings", read: 0, total: 0, progress };
        pass.total = rest.iter().map(|(_, entry, _)| entry.stamp.size).sum();
        for (file, entry, row) in rest {
            self.one(making, (file, entry, row), Coverage::Whole, notices)?;
            pass.done(entry);
        }
        self.flush()
    }

    /// Creates the vectors of a session, unless time is up. An unreadable session is reported and does not affect the
    /// others.
    fn one(
        &mut self,
        making: &EmbeddingRequest<'_>,
        (file, entry, row): (u64, &Entry, &Row),
        coverage: Coverage,
        notices: &mut Vec<String>,
    ) -> Result<(), String> {
        let adapter = making.adapters.iter().find(|adapter| adapter.agent() == entry.summary.agent);
        let Some(adapter) = adapter.filter(|_| !self.is_late()) else { return Ok(()) };
        match self.session(file, entry, row, adapter.as_ref(), coverage) {
            Ok(()) => Ok(()),
            Err(Failed::Read(kind)) => {
                let notice = format!("cannot read {}: {kind}", entry.summary.path.display());
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
                Ok(())
            }
            Err(Failed::Write(why)) => Err(why),
        }
    }

    /// Finds the chunks of a session without vectors.
    fn session(
        &mut self,
        file: u64,
        entry: &Entry,
        row: &Row,
        adapter: &dyn Adapter,
        coverage: Coverage,
    ) -> Result<(), Failed> {
        let summary = &entry.summary;
        let known = PlainScan::of(summary);
        let is_kept = |own: &&Row| own.complete && own.shared == row.shared && has_grown(own, entry);
        let own = self.rows.get(&file).filter(is_kept);
        let from = own.and_then(|own| Some(TurnStart { turn: own.turns, offset: own.last? }));
        let first = from.map_or(1, |from| from.turn);
        let part = Part { from, prose_only: true, ..Part::default() };
        let mut blocks = adapter.read_part(&summary.path, &part, known.as_ref()).map_err(|e| Failed::Read(e.kind()))?;
        let mut seen: HashSet<Key> = HashSet::new();
        self.take(file, 0, own_title(&entry.summary).unwrap_or_default(), &mut seen)?;
        let (mut turns, mut last, mut seeded) = (first.saturating_sub(1), None, None);
        let mut choice = ChunkChoice::new(coverage);
        while let Some(block) = blocks.next_block() {
            let number = block.turn.max(first);
            if number != turns {
                turns = number;
                last = began(blocks.as_ref(), number);
            }
            if matches!(&block.kind, BlockKind::Prompt { text, .. } if is_seed(text)) {
                seeded = Some(number);
            }
            if number > row.shared && seeded != Some(number) {
                for (number, text) in choice.next(number, &block) {
                    self.take(file, number, &text, &mut seen)?;
                }
            }
            if self.is_late() {
                return Ok(());
            }
        }
        for (number, text) in choice.end() {
            self.take(file, number, &text, &mut seen)?;
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
            seam: prefix_fingerprint(&summary.path, last).unwrap_or(0),
            complete: !choice.leaves_out,
            ..row.clone()
        };
        // A chunk that has grown did exist; one from a rewritten history did not.
        self.done.push((file, complete, from.is_none() && !dead.is_empty()));
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

    /// Embeds the chunks in the queue and writes their vectors; only some of them if time is up before.
    fn flush(&mut self) -> Result<(), String> {
        let mut queue = std::mem::take(&mut self.queue);
        if self.made.len() > MADE {
            self.made.clear();
        }
        let alike: Vec<u64> = queue.iter().map(|(_, text)| template_hash(text)).collect();
        let mut asked = HashSet::new();
        let new: Vec<usize> =
            (0..queue.len()).filter(|at| !self.made.contains_key(&alike[*at]) && asked.insert(alike[*at])).collect();
        for step in new.chunks(if self.until.is_some() { STEP } else { BATCH }) {
            let texts: Vec<&str> = step.iter().map(|at| queue[*at].1.as_str()).collect();
            let vectors = self.embedder.embed_all(&texts, self.threads);
            self.made.extend(step.iter().map(|at| alike[*at]).zip(vectors));
            if self.is_late() {
                break;
            }
        }
        let vectors: Vec<Vector> = alike.iter().map_while(|alike| self.made.get(alike).cloned()).collect();
        if vectors.len() < queue.len() {
            queue.truncate(vectors.len());
            self.done.clear();
        }
        let keyed = queue.iter().map(|(key, _)| *key).zip(&vectors);
        // Text that the model does not support has no vector to keep.
        let keyed: Vec<(Key, &Vector)> = keyed.filter(|(_, vector)| **vector != Vector::NOTHING).collect();
        for (key, _) in &keyed {
            self.there.entry(short(key.document)).or_default().insert(*key);
        }
        self.writer.append(keyed).map_err(|error| error_with_reason(&error))?;
        for (file, row, is_held) in self.done.drain(..) {
            if is_held {
                self.held.push((file, row));
            } else {
                self.rows.insert(file, row);
            }
        }
        if self.noted.elapsed() > NOTE {
            self.note()?;
        }
        Ok(())
    }

    /// Removes obsolete vectors if that is due, and saves the progress.
    fn end(&mut self) -> Result<(), String> {
        let due = self.until.is_none() || !self.held.is_empty() || self.dead.len() > self.writer.len() as usize / DEAD;
        if due && !self.dead.is_empty() {
            let dead = std::mem::take(&mut self.dead);
            self.writer.retain(|key| !dead.contains(&key)).map_err(|error| error_with_reason(&error))?;
            self.rows.extend(self.held.drain(..));
        }
        self.note()
    }

    fn note(&mut self) -> Result<(), String> {
        let table = VectorTable {
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

/// The progress of one pass over the sessions.
struct Pass<'a> {
    name: &'static str,
    read: u64,
    total: u64,
    progress: &'a dyn IndexProgress,
}

impl Pass<'_> {
    fn done(&mut self, entry: &Entry) {
        self.read += entry.stamp.size;
        self.progress.read(self.name, self.read, self.total);
    }
}

enum Failed {
    Read(std::io::ErrorKind),
    Write(String),
}

/// Where a turn starts, if it can be read from there.
fn began(blocks: &dyn Blocks, turn: u32) -> Option<u64> {
    blocks.turn_began().filter(|mark| mark.turn == turn).map(|mark| mark.offset)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use testkit::build::ClaudeSession;

    use super::*;
    use crate::Quiet;
    use crate::search::index::embeddings::vectors::Vectors;
    use crate::test_world::World;

    /// Looks at what a search could use when the gist of all sessions is known.
    struct Watcher {
        cache: PathBuf,
        seen: Mutex<Option<(usize, i32)>>,
    }

    impl IndexProgress for Watcher {
        fn read(&self, pass: &'static str, _done: u64, _total: u64) {
            let mut seen = self.seen.lock().unwrap();
            if pass == "more embeddings" && seen.is_none() {
                let vectors = Vectors::open(&self.cache).file.map_or(0, |file| file.len());
                #[cfg(target_os = "linux")]
                let priority = rustix::process::getpriority_process(None).unwrap();
                #[cfg(not(target_os = "linux"))]
                let priority = 0;
                *seen = Some((vectors, priority));
            }
        }
    }

    #[test]
    fn the_gist_of_every_session_comes_first_and_at_low_priority() {
        let world = World::new();
        for number in 1..=3 {
            ClaudeSession::new(&format!("5e55c0de-0000-4000-8000-00000000000{number}"))
                .cwd(&world.repository)
                .seed(number)
                .turn(|turn| {
                    turn.prompt(format!("Plan the orchard of farm {number}."))
                        .text("I look at the map of the fields first, because I want to know where the water runs.")
                        .tool("Bash", serde_json::json!({"command": "ls"}), "map.txt")
                        .text(format!("Farm {number} gets plums and pears."))
                })
                .write(&world.claude_home());
        }
        let tine = world.tine();
        let cache = tine.context().paths.cache.clone();
        let watcher = Watcher { cache: cache.clone(), seen: Mutex::new(None) };
        let request = crate::IndexRequest { part: crate::IndexPart::Vectors, time: None, rebuild: false };
        let status = tine.update_index(request, &Quiet, &watcher).unwrap().vectors.unwrap();
        // Prompts and last answers; then one more each. The first session of the second pass may be written already.
        let (vectors, priority) = watcher.seen.lock().unwrap().expect("a second pass");
        assert_eq!((vectors, status.vectors, status.missing), (6, 9, 0));
        assert!(cfg!(not(target_os = "linux")) || priority >= YIELDING, "{priority}");
        // What was interrupted after the gist is finished by the next run, which makes nothing twice.
        let mut table: VectorTable = read_table(&table_path(&cache)).unwrap();
        assert!(table.rows.values().all(|row| row.complete));
        for row in table.rows.values_mut() {
            row.complete = false;
        }
        write_table(&table, &table_path(&cache)).unwrap();
        let partial = tine.index_status(&Quiet).unwrap().vectors.unwrap();
        assert_eq!((partial.vectors, partial.missing), (9, 3));
        let status = tine.update_index(request, &Quiet, &Quiet).unwrap().vectors.unwrap();
        assert_eq!((status.vectors, status.missing), (9, 0));
    }
}
