//! Updates the index. The catalog shows what has changed, with one `stat` per file.
//!
//! If much is new, prose is read first and tool output in a second pass, so that the first search answers early. A
//! transcript that has grown is read from the start of its last known turn, if it is in history order.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agents::{Adapter, Known, Part, TurnStart};
use tantivy::{IndexWriter, Term};
use transcript::{Agent, SessionId};

use super::document::{Maker, TurnDocument};
use super::helpers::{self, Helper, HelperChange};
use super::index::{Level, Row, Table, Trouble, Words, place_key};
use crate::search::IndexTrouble;
use crate::sessions::catalog::{Catalog, Entry, Quiet, own_title};

/// If less than this is new, one pass reads everything.
const SMALL: u64 = 16 << 20;
/// The maximum amount of text that waits to be indexed, in bytes.
const PENDING: usize = 16 << 20;
/// tantivy's own buffer.
const MEMORY: usize = 60_000_000;
/// Up to this size, all bytes of a transcript are compared to detect that it was only appended to.
const WHOLE: u64 = 1 << 20;
/// Of a longer one, this many samples of [`SAMPLE`] bytes, from the first byte to the last known one.
const SAMPLES: u64 = 16;
const SAMPLE: u64 = WHOLE / SAMPLES;
/// How many sessions are read between commits. tantivy keeps every deletion in memory until then.
const PORTION: usize = 10_000;
/// How long to wait until the queue has room.
const ROOM: Duration = Duration::from_secs(1);
/// How often a long run commits.
const COMMIT: Duration = Duration::from_secs(10);

/// The work to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Positions in the catalog, and what to read.
    jobs: Vec<IndexJob>,
    gone: Vec<u64>,
    /// Bytes of transcripts that are not in the index.
    bytes: u64,
}

#[derive(Debug, Clone)]
struct IndexJob {
    entry: usize,
    file: u64,
    shared: u32,
    owner: u64,
    /// Nothing of it can be kept.
    anew: bool,
    /// Its prose is in the index and up to date.
    only_tools: bool,
    /// All of it is in the index except for its end.
    only_end: bool,
}

/// Called while the index is built.
pub trait IndexProgress: Sync {
    /// `done` bytes of transcripts have been read in this pass.
    fn read(&self, pass: &'static str, done: u64, total: u64);
}

impl IndexProgress for Quiet {
    fn read(&self, _pass: &'static str, _done: u64, _total: u64) {}
}

/// The session that owns a session's first turns.
#[derive(Debug, Clone, Copy, Default)]
struct Sharing {
    owner: u64,
    turns: u32,
}

impl Work {
    /// Compares the catalog with the index.
    pub(super) fn find(catalog: &mut Catalog, table: &Table) -> Work {
        let rows = &table.rows;
        let mut work = Work::default();
        let mut present = HashSet::with_capacity(catalog.entries.len());
        let mut is_same = true;
        let newest = catalog.entries.iter().map(|entry| entry.stamp.modified).max().unwrap_or(0);
        let mut changed: HashMap<u64, HelperChange> = HashMap::new();
        // If a folder cannot be listed, its sessions don't count as deleted.
        let unlisted: HashSet<Agent> = catalog.unreadable.iter().map(|(agent, ..)| *agent).collect();
        for entry in catalog.entries.iter().filter(|entry| entry.is_shown()) {
            let file = entry.file();
            present.insert(file);
            let row = rows.get(&file);
            is_same &= row.is_some_and(|row| is_current(row, entry) && row.level == Level::All);
            if let Some(helpers) = table.helpers.get(&file) {
                let change = helpers::change(helpers, entry.stamp.modified, newest);
                if change != HelperChange::Nothing {
                    is_same = false;
                    changed.insert(file, change);
                }
            }
        }
        let is_gone = |file: &u64, row: &Row| !present.contains(file) && !unlisted.contains(&row.agent);
        work.gone = rows.iter().filter(|(file, row)| is_gone(file, row)).map(|(file, _)| *file).collect();
        if is_same && work.gone.is_empty() {
            return work;
        }
        catalog.load_turn_keys();
        let sharing = sharing(&catalog.entries);
        for (index, entry) in catalog.entries.iter().enumerate().filter(|(_, entry)| entry.is_shown()) {
            let file = entry.file();
            let Sharing { owner, turns: shared } = sharing.get(&index).copied().unwrap_or_default();
            let row = rows.get(&file);
            let other_share = row.is_some_and(|row| row.owner != owner || row.shared != shared);
            match row {
                Some(row) if is_current(row, entry) && !other_share && !changed.contains_key(&file) => {
                    if row.level < Level::All {
                        work.jobs.push(IndexJob {
                            entry: index,
                            file,
                            shared,
                            owner,
                            anew: false,
                            only_tools: true,
                            only_end: false,
                        });
                        work.bytes += entry.stamp.size;
                    }
                }
                row => {
                    let is_earlier = changed.get(&file) == Some(&HelperChange::Earlier);
                    let grown = row.is_some_and(|row| has_grown(row, entry)) && !other_share && !is_earlier;
                    let only_end = grown && row.is_some_and(|row| row.level == Level::All);
                    let known = row.and_then(|row| row.last).filter(|_| grown).unwrap_or(0);
                    work.jobs.push(IndexJob {
                        entry: index,
                        file,
                        shared,
                        owner,
                        anew: !grown,
                        only_tools: false,
                        only_end,
                    });
                    work.bytes += entry.stamp.size.saturating_sub(known);
                }
            }
        }
        // The newest sessions are indexed first.
        work.jobs.sort_by_key(|job| std::cmp::Reverse(catalog.entries[job.entry].stamp.modified));
        work
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.gone.is_empty()
    }

    /// How many sessions are missing in all, and of how many only tool text is missing.
    pub(super) fn missing(&self) -> Missing {
        let tools = self.jobs.iter().filter(|job| job.only_tools).count();
        Missing { sessions: self.jobs.len() - tools, tools }
    }
}

/// What is not in the index yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// Sessions with missing prose.
    pub sessions: usize,
    /// Sessions of which only tool text is missing.
    pub tools: usize,
}

fn is_current(row: &Row, entry: &Entry) -> bool {
    let stamp = &entry.stamp;
    row.complete
        && (row.size, row.modified, row.inode) == (stamp.size, stamp.modified, stamp.inode)
        && row.title == entry.title_key()
}

/// Whether the indexed part is unchanged and the file has only grown.
pub(super) fn has_grown(row: &Row, entry: &Entry) -> bool {
    let summary = &entry.summary;
    row.inode == entry.stamp.inode
        && row.size <= entry.stamp.size
        && row.last.is_some()
        && summary.plain.is_some()
        && row.turns >= 1
        && row.turns <= summary.turns
        && keys_hash(entry.turn_keys(), row.turns) == row.keys
        && seam(&summary.path, row.last) == Some(row.seam)
}

/// A fingerprint of the bytes before an offset, to detect that the file was only appended to: of all bytes, or of
/// samples from the first byte to the last.
pub(super) fn seam(path: &Path, offset: Option<u64>) -> Option<u64> {
    let Some(offset) = offset else { return Some(0) };
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    if offset <= WHOLE {
        file.take(offset).read_to_end(&mut bytes).ok()?;
    } else {
        for sample in 0..SAMPLES {
            file.seek(SeekFrom::Start((offset - SAMPLE) / (SAMPLES - 1) * sample)).ok()?;
            file.by_ref().take(SAMPLE).read_to_end(&mut bytes).ok()?;
        }
        // If the division above has a remainder, the last sample ends before the last byte.
        file.seek(SeekFrom::Start(offset - SAMPLES)).ok()?;
        file.take(SAMPLES).read_to_end(&mut bytes).ok()?;
    }
    Some(xxhash_rust::xxh3::xxh3_64(&bytes))
}

/// The fingerprints of all turns up to this one.
pub(super) fn keys_hash(keys: &[u64], turns: u32) -> u64 {
    let keys = keys.get(..turns as usize).unwrap_or(keys);
    xxhash_rust::xxh3::xxh3_64(&keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>())
}

/// The sessions that share their first turns with an older one, with that session and the number of turns.
fn sharing(entries: &[Entry]) -> HashMap<usize, Sharing> {
    // By agent and first turn; most sessions are alone there.
    let mut families: HashMap<(Agent, u64), Vec<usize>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.is_shown()) {
        if let Some(first) = entry.turn_keys().first() {
            families.entry((entry.agent(), *first)).or_default().push(index);
        }
    }
    let mut sharing = HashMap::new();
    for mut family in families.into_values().filter(|family| family.len() > 1) {
        let ids: HashMap<&SessionId, usize> =
            family.iter().map(|index| (&entries[*index].summary.id, *index)).collect();
        // A file's age is a hint; an agent's own pointer is reliable.
        let depth = |index: usize| {
            let parent = |index: &usize| ids.get(&entries[*index].summary.parent.as_ref()?.id).copied();
            std::iter::successors(parent(&index), parent).take(64).count()
        };
        family.sort_by_cached_key(|index| (depth(*index), age(&entries[*index])));
        for (position, child) in family.iter().enumerate().skip(1) {
            let keys = entries[*child].turn_keys();
            let common = |other: &usize| {
                let theirs = entries[*other].turn_keys();
                keys.iter().zip(theirs).take_while(|(a, b)| a == b).count()
            };
            // The oldest session among those that share the most turns owns them, or got them from an older one.
            let most = family[..position].iter().map(common).max().unwrap_or(0);
            let owner = family[..position].iter().find(|other| common(other) == most);
            if let Some(owner) = owner.filter(|_| most > 0) {
                let owner = entries[*owner].file();
                sharing.insert(*child, Sharing { owner, turns: u32::try_from(most).unwrap_or(u32::MAX) });
            }
        }
    }
    sharing
}

/// The order in which sessions were created, as in lineage.
fn age(entry: &Entry) -> (i64, &str) {
    crate::sessions::lineage::age(entry)
}

/// The result of an update.
#[derive(Debug, Default)]
pub(super) struct Updated {
    /// What is still missing.
    pub missing: Missing,
    /// Transcripts that could not be read.
    pub unreadable: Vec<(std::path::PathBuf, std::io::ErrorKind)>,
}

/// The limits of an update.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Whether tool text is read too if there is much of it.
    pub tools: bool,
    /// When to stop.
    pub until: Option<Instant>,
}

/// Does the work within the budget.
pub(super) fn update(
    words: &mut Words,
    catalog: &Catalog,
    work: &Work,
    adapters: &[Box<dyn Adapter>],
    budget: Budget,
    progress: &dyn IndexProgress,
) -> Result<Updated, Trouble> {
    let mut updated = Updated { missing: work.missing(), ..Updated::default() };
    if work.is_empty() {
        return Ok(updated);
    }
    let small = work.bytes <= SMALL;
    // Reading takes twice as long as indexing, and has as many threads as there are cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if small { 1 } else { cores.div_ceil(3).min(4) };
    words.forget_segments();
    let mut writer = words.writer(threads, if small { 15_000_000 } else { MEMORY })?;
    for file in &work.gone {
        writer.delete_term(Term::from_field_u64(words.fields.file, *file));
        words.table.rows.remove(file);
        words.table.helpers.remove(file);
    }
    let run = Run { catalog, adapters, until: budget.until, progress };
    if small {
        run.pass(words, &mut writer, &work.jobs, Level::All, "all", &mut updated)?;
    } else {
        let ends: Vec<IndexJob> = work.jobs.iter().filter(|job| job.only_end).cloned().collect();
        run.pass(words, &mut writer, &ends, Level::All, "new text", &mut updated)?;
        let said: Vec<IndexJob> = work.jobs.iter().filter(|job| !job.only_tools && !job.only_end).cloned().collect();
        run.pass(words, &mut writer, &said, Level::Prose, "prompts and answers", &mut updated)?;
        if budget.tools && !run.is_late() {
            words.commit(&mut writer)?;
            let rest: Vec<IndexJob> = work
                .jobs
                .iter()
                .filter(|job| level_of(words, catalog, job) == Some(Level::Prose))
                .map(|job| IndexJob { only_tools: true, ..job.clone() })
                .collect();
            run.pass(words, &mut writer, &rest, Level::All, "tool output", &mut updated)?;
        }
    }
    words.commit(&mut writer)?;
    writer.wait_merging_threads()?;
    let name = words.committed()?;
    words.settle(&name)?;
    let count = |level: Option<Level>| work.jobs.iter().filter(|job| level_of(words, catalog, job) == level).count();
    updated.missing = Missing { sessions: count(None), tools: count(Some(Level::Prose)) };
    Ok(updated)
}

/// How much of the current session is in the index. Its rows may cover an earlier state completely.
fn level_of(words: &Words, catalog: &Catalog, job: &IndexJob) -> Option<Level> {
    let row = words.table.rows.get(&job.file)?;
    let is_done = is_current(row, &catalog.entries[job.entry]) && (row.owner, row.shared) == (job.owner, job.shared);
    is_done.then_some(row.level)
}

/// Waits until the queue is shorter, but not forever: a failed thread of tantivy stops reading its queue, and only the
/// next write reports the failure.
fn wait_for_room(pending: &AtomicUsize, is_over: impl Fn() -> bool) {
    let begun = Instant::now();
    while pending.load(Ordering::Relaxed) > PENDING && !is_over() && begun.elapsed() < ROOM {
        std::thread::sleep(Duration::from_micros(200));
    }
}

struct Run<'a> {
    catalog: &'a Catalog,
    adapters: &'a [Box<dyn Adapter>],
    until: Option<Instant>,
    progress: &'a dyn IndexProgress,
}

impl Run<'_> {
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Reads the given sessions with as many threads as there are cores.
    fn pass(
        &self,
        words: &mut Words,
        writer: &mut IndexWriter<TurnDocument>,
        jobs: &[IndexJob],
        level: Level,
        name: &'static str,
        updated: &mut Updated,
    ) -> Result<(), Trouble> {
        let total: u64 = jobs.iter().map(|job| self.catalog.entries[job.entry].stamp.size).sum();
        let mut done = 0;
        let mut rest = jobs;
        // In portions, so that a long run commits now and then.
        while !rest.is_empty() && !self.is_late() {
            let begun = Instant::now();
            let next = AtomicUsize::new(0);
            let failed = AtomicBool::new(false);
            let portion = &rest[..rest.len().min(PORTION)];
            let threads = std::thread::available_parallelism().map_or(1, usize::from).min(portion.len());
            let pending = Arc::new(AtomicUsize::new(0));
            let mut finished = 0;
            let fields = words.fields;
            let Table { rows, helpers, .. } = &mut words.table;
            let known: Vec<Option<Row>> = portion.iter().map(|job| rows.get(&job.file).cloned()).collect();
            std::thread::scope(|scope| {
                let (sender, receiver) = std::sync::mpsc::channel();
                let shared: &IndexWriter<TurnDocument> = writer;
                for _ in 0..threads {
                    let sender = sender.clone();
                    let (next, failed, pending, known) = (&next, &failed, &pending, &known);
                    scope.spawn(move || {
                        let sink = |document: TurnDocument| {
                            wait_for_room(pending, || failed.load(Ordering::Relaxed) || self.is_late());
                            let added = shared.add_document(document).is_ok();
                            failed.fetch_or(!added, Ordering::Relaxed);
                            added
                        };
                        while !self.is_late() && begun.elapsed() < COMMIT && !failed.load(Ordering::Relaxed) {
                            let position = next.fetch_add(1, Ordering::Relaxed);
                            let Some(job) = portion.get(position) else { return };
                            let row = known[position].as_ref();
                            let read = self.session(job, row, level, fields, shared, pending, &sink, failed);
                            if sender.send((position, read)).is_err() {
                                return;
                            }
                        }
                    });
                }
                drop(sender);
                for (position, read) in receiver {
                    let job = &portion[position];
                    finished = finished.max(position + 1);
                    done += self.catalog.entries[job.entry].stamp.size;
                    self.progress.read(name, done, total);
                    match read {
                        Ok((row, theirs)) => {
                            rows.insert(job.file, row);
                            match theirs.is_empty() {
                                true => helpers.remove(&job.file),
                                false => helpers.insert(job.file, theirs),
                            };
                        }
                        // What was indexed before stays, and so does its row, which shows that it is out of date.
                        Err(unreadable) => updated.unreadable.push(unreadable),
                    }
                }
            });
            if failed.load(Ordering::Relaxed) {
                // The commit reports why a thread of tantivy failed.
                writer.prepare_commit()?;
                return Err(Trouble::Hindered(IndexTrouble::Other, "nothing more could be written into it".into()));
            }
            rest = &rest[finished.min(rest.len())..];
            if !rest.is_empty() {
                words.commit(writer)?;
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one session's share of what the pass holds")]
    fn session(
        &self,
        job: &IndexJob,
        row: Option<&Row>,
        level: Level,
        fields: super::index::Fields,
        writer: &IndexWriter<TurnDocument>,
        pending: &Arc<AtomicUsize>,
        sink: &dyn Fn(TurnDocument) -> bool,
        failed: &AtomicBool,
    ) -> Result<(Row, Vec<Helper>), (std::path::PathBuf, std::io::ErrorKind)> {
        let entry = &self.catalog.entries[job.entry];
        let summary = &entry.summary;
        let adapter = self.adapters.iter().find(|adapter| adapter.agent() == summary.agent);
        let unreadable = |kind| (summary.path.clone(), kind);
        let adapter = adapter.ok_or_else(|| unreadable(std::io::ErrorKind::Unsupported))?;
        let known = Known::of(summary);
        // A transcript that has grown is read from its last known turn; a second pass replaces what the first one
        // indexed. A session whose tool text is missing cannot have half of it.
        let from = row
            .filter(|row| !job.anew && !job.only_tools && row.level == level)
            .and_then(|row| Some(TurnStart { turn: row.turns, offset: row.last? }));
        // Their state before they are read: later changes are noticed the next time.
        let helpers = helpers::look_up(adapter.as_ref(), &summary.path);
        let part = Part { from, until: None, prose_only: level == Level::Prose, tip: None };
        let mut blocks =
            adapter.read_part(&summary.path, &part, known.as_ref()).map_err(|error| unreadable(error.kind()))?;
        match from {
            Some(from) => {
                writer.delete_term(Term::from_field_u64(fields.place, place_key(job.file, from.turn)));
                writer.delete_term(Term::from_field_u64(fields.place, place_key(job.file, 0)));
            }
            None if row.is_some() => {
                writer.delete_term(Term::from_field_u64(fields.file, job.file));
            }
            None => {}
        }
        let is_late = || self.is_late() || failed.load(Ordering::Relaxed);
        let mut maker = Maker::new(fields, job.file, level, job.shared, pending, sink, &is_late);
        if let Some(title) = own_title(&entry.summary) {
            maker.title(title, entry.summary.created.or(entry.summary.updated));
        }
        let mut read = maker.read(blocks.as_mut(), from);
        if read.complete && summary.branches > 0 {
            let branches = adapter.branches(&summary.path).map_err(|error| unreadable(error.kind()))?;
            for (number, branch) in branches.iter().enumerate().take(super::branch::MOST) {
                let keys = entry.turn_keys().iter().zip(&branch.summary.turn_keys);
                let shared = keys.take_while(|(own, key)| own == key).count() as u32;
                let part = Part { prose_only: level == Level::Prose, tip: Some(branch.tip), ..Part::default() };
                let blocks = adapter.read_part(&summary.path, &part, None);
                let mut blocks = blocks.map_err(|error| unreadable(error.kind()))?;
                // A branch that shares all prompts has a different answer to the last one.
                let shared = shared.min(branch.summary.turns.saturating_sub(1));
                read.complete &= maker.read_branch(blocks.as_mut(), number, shared);
            }
        }
        // If nothing was left out for the second pass, it is skipped.
        let level = if read.complete && !read.has_tools && !blocks.leaves_tools_out() { Level::All } else { level };
        let before = row.filter(|_| from.is_some()).map_or(0, |row| row.left_out.0);
        let row = Row {
            agent: summary.agent,
            left_out: (before + read.left_out.0, read.left_out.1),
            size: entry.stamp.size,
            modified: entry.stamp.modified,
            inode: entry.stamp.inode,
            level,
            complete: read.complete,
            turns: read.turns,
            last: read.last,
            keys: keys_hash(entry.turn_keys(), read.turns),
            seam: seam(&summary.path, read.last).unwrap_or(0),
            title: entry.title_key(),
            shared: job.shared,
            owner: job.owner,
        };
        Ok((row, helpers::settle(helpers, &read.subagents)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_ever_for_a_writer_that_is_dead() {
        let pending = AtomicUsize::new(PENDING + 1);
        let begun = Instant::now();
        wait_for_room(&pending, || true);
        assert!(begun.elapsed() < ROOM);
        wait_for_room(&pending, || false);
        assert!(begun.elapsed() < 10 * ROOM);
    }

    #[test]
    fn what_there_was_no_time_for_is_missing() {
        let world = crate::test_world::World::new();
        let session = testkit::build::ClaudeSession::new("5e55c0de-0000-4000-8000-000000000001").cwd(&world.repository);
        let session = session.turn(|turn| turn.prompt("a plum").text("yes"));
        session.write(&world.claude_home());
        let missing = |time: Option<Duration>| {
            let status = world
                .tine()
                .update_index(
                    crate::IndexRequest { part: crate::IndexPart::Words, time, rebuild: false },
                    &Quiet,
                    &Quiet,
                )
                .unwrap();
            status.missing.sessions
        };
        assert_eq!(missing(Some(Duration::ZERO)), 1);
        assert_eq!(missing(None), 0);
        session.turn(|turn| turn.prompt("a pear").text("yes")).write(&world.claude_home());
        assert_eq!(missing(Some(Duration::ZERO)), 1);
        assert_eq!(missing(None), 0);
    }

    #[test]
    fn a_change_anywhere_before_the_mark_is_another_seam() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript");
        let check = |size: usize, at: usize, is_noticed: bool| {
            let mut bytes = vec![b'x'; size];
            std::fs::write(&path, &bytes).unwrap();
            let before = seam(&path, Some(size as u64)).unwrap();
            bytes[at] = b'y';
            bytes.push(b'z');
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(seam(&path, Some(size as u64)).unwrap() != before, is_noticed, "{size} {at}");
        };
        let large = 10 * WHOLE as usize + 7;
        for at in [0, 1, 4096, 700_000, WHOLE as usize - 1] {
            check(WHOLE as usize, at, true);
        }
        for at in [0, SAMPLE as usize - 1, large - 1, large - 10, large - SAMPLE as usize] {
            check(large, at, true);
        }
        // In a long transcript only samples are compared.
        check(large, SAMPLE as usize + 1, false);
    }
}
