//! Updates the index. The catalog shows what has changed, with one `stat` per file.
//!
//! If much is new, prose is read first and tool output in a second pass, so that the first search answers early. A
//! transcript that has grown is read from the start of its last known turn, if it is in history order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agents::{Adapter, Part, PlainScan, TurnStart};
use tantivy::{IndexWriter, Term};

use super::document::{DocumentBuilder, TurnDocument};
use super::schema::place_key;
use super::subagents::{self, Subagent};
use super::table::{Level, Row, Table};
use super::work::{IndexJob, Missing, Work, keys_hash, level_of, prefix_fingerprint};
use super::{OpenFailure, Words};
use crate::search::error::IndexProblem;
use crate::sessions::catalog::{Catalog, Quiet, own_title};

/// If less than this is new, one pass reads everything.
const SMALL: u64 = 16 << 20;
/// The maximum amount of text that waits to be indexed, in bytes.
const PENDING: usize = 16 << 20;
/// tantivy's own buffer.
const MEMORY: usize = 60_000_000;
/// How many sessions are read between commits. tantivy keeps every deletion in memory until then.
const PORTION: usize = 10_000;
/// How long to wait until the queue has room.
const ROOM: Duration = Duration::from_secs(1);
/// How often a long run commits.
const COMMIT: Duration = Duration::from_secs(10);

/// Called while the index is built.
pub trait IndexProgress: Sync {
    /// `done` bytes of transcripts have been read in this pass.
    fn read(&self, pass: &'static str, done: u64, total: u64);
}

impl IndexProgress for Quiet {
    fn read(&self, _pass: &'static str, _done: u64, _total: u64) {}
}

/// The result of an update.
#[derive(Debug, Default)]
pub(crate) struct Updated {
    /// What is still missing.
    pub missing: Missing,
    /// Transcripts that could not be read.
    pub unreadable: Vec<(std::path::PathBuf, std::io::ErrorKind)>,
}

/// The limits of an update.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Whether tool text is read too if there is much of it.
    pub tools: bool,
    /// When to stop.
    pub until: Option<Instant>,
}

/// Does the work within the budget.
pub(crate) fn update(
    words: &mut Words,
    catalog: &Catalog,
    work: &Work,
    adapters: &[Box<dyn Adapter>],
    budget: Budget,
    progress: &dyn IndexProgress,
) -> Result<Updated, OpenFailure> {
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
    ) -> Result<(), OpenFailure> {
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
                return Err(OpenFailure::Hindered(IndexProblem::Other, "nothing more could be written into it".into()));
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
        fields: super::Fields,
        writer: &IndexWriter<TurnDocument>,
        pending: &Arc<AtomicUsize>,
        sink: &dyn Fn(TurnDocument) -> bool,
        failed: &AtomicBool,
    ) -> Result<(Row, Vec<Subagent>), (std::path::PathBuf, std::io::ErrorKind)> {
        let entry = &self.catalog.entries[job.entry];
        let summary = &entry.summary;
        let adapter = self.adapters.iter().find(|adapter| adapter.agent() == summary.agent);
        let unreadable = |kind| (summary.path.clone(), kind);
        let adapter = adapter.ok_or_else(|| unreadable(std::io::ErrorKind::Unsupported))?;
        let known = PlainScan::of(summary);
        // A transcript that has grown is read from its last known turn; a second pass replaces what the first one
        // indexed. A session whose tool text is missing cannot have half of it.
        let from = row
            .filter(|row| !job.anew && !job.only_tools && row.level == level)
            .and_then(|row| Some(TurnStart { turn: row.turns, offset: row.last? }));
        // Their state before they are read: later changes are noticed the next time.
        let helpers = subagents::look_up(adapter.as_ref(), &summary.path);
        let part = Part { from, prose_only: level == Level::Prose, ..Part::default() };
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
        let mut maker = DocumentBuilder::new(fields, job.file, level, job.shared, pending, sink, &is_late);
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
            seam: prefix_fingerprint(&summary.path, read.last).unwrap_or(0),
            title: entry.title_key(),
            shared: job.shared,
            owner: job.owner,
        };
        Ok((row, subagents::settle(helpers, &read.subagents)))
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
}
