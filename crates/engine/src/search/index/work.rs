//! Finds out which sessions the index lacks, by comparing the catalog with its table.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use transcript::{Agent, SessionId};

use super::Words;
use super::subagents::{self, SubagentChange};
use super::table::{Level, Row, Table};
use crate::sessions::catalog::{Catalog, Entry};

/// Up to this size, all bytes of a transcript are compared to detect that it was only appended to.
const WHOLE: u64 = 1 << 20;
/// Of a longer one, this many samples of [`SAMPLE`] bytes, from the first byte to the last known one.
const SAMPLES: u64 = 16;
const SAMPLE: u64 = WHOLE / SAMPLES;

/// The work to do.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Positions in the catalog, and what to read.
    pub jobs: Vec<IndexJob>,
    pub gone: Vec<u64>,
    /// Bytes of transcripts that are not in the index.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct IndexJob {
    pub entry: usize,
    pub file: u64,
    pub shared: u32,
    pub owner: u64,
    /// Nothing of it can be kept.
    pub anew: bool,
    /// Its prose is in the index and up to date.
    pub only_tools: bool,
    /// All of it is in the index except for its end.
    pub only_end: bool,
}

/// The session that owns a session's first turns.
#[derive(Debug, Clone, Copy, Default)]
struct SharedTurns {
    owner: u64,
    turns: u32,
}

impl Work {
    /// Compares the catalog with the index.
    pub(crate) fn find(catalog: &mut Catalog, table: &Table) -> Work {
        let rows = &table.rows;
        let mut work = Work::default();
        let mut present = HashSet::with_capacity(catalog.entries.len());
        let mut is_same = true;
        let newest = catalog.entries.iter().map(|entry| entry.stamp.modified).max().unwrap_or(0);
        let mut changed: HashMap<u64, SubagentChange> = HashMap::new();
        // If a folder cannot be listed, its sessions don't count as deleted.
        let unlisted: HashSet<Agent> = catalog.unreadable.iter().map(|(agent, ..)| *agent).collect();
        for entry in catalog.entries.iter().filter(|entry| entry.is_shown()) {
            let file = entry.file();
            present.insert(file);
            let row = rows.get(&file);
            is_same &= row.is_some_and(|row| is_current(row, entry) && row.level == Level::All);
            if let Some(helpers) = table.helpers.get(&file) {
                let change = subagents::change(helpers, entry.stamp.modified, newest);
                if change != SubagentChange::Nothing {
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
            let SharedTurns { owner, turns: shared } = sharing.get(&index).copied().unwrap_or_default();
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
                    let is_earlier = changed.get(&file) == Some(&SubagentChange::Earlier);
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

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.gone.is_empty()
    }

    /// How many sessions are missing in all, and of how many only tool text is missing.
    pub(crate) fn missing(&self) -> Missing {
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
pub(crate) fn has_grown(row: &Row, entry: &Entry) -> bool {
    let summary = &entry.summary;
    row.inode == entry.stamp.inode
        && row.size <= entry.stamp.size
        && row.last.is_some()
        && summary.plain.is_some()
        && row.turns >= 1
        && row.turns <= summary.turns
        && keys_hash(entry.turn_keys(), row.turns) == row.keys
        && prefix_fingerprint(&summary.path, row.last) == Some(row.seam)
}

/// A fingerprint of the bytes before an offset, to detect that the file was only appended to: of all bytes, or of
/// samples from the first byte to the last.
pub(crate) fn prefix_fingerprint(path: &Path, offset: Option<u64>) -> Option<u64> {
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
pub(crate) fn keys_hash(keys: &[u64], turns: u32) -> u64 {
    let keys = keys.get(..turns as usize).unwrap_or(keys);
    xxhash_rust::xxh3::xxh3_64(&keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>())
}

/// The sessions that share their first turns with an older one, with that session and the number of turns.
fn sharing(entries: &[Entry]) -> HashMap<usize, SharedTurns> {
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
                sharing.insert(*child, SharedTurns { owner, turns: u32::try_from(most).unwrap_or(u32::MAX) });
            }
        }
    }
    sharing
}

/// The order in which sessions were created, as in lineage.
fn age(entry: &Entry) -> (i64, &str) {
    crate::sessions::lineage::age(entry)
}

/// How much of the current session is in the index. Its rows may cover an earlier state completely.
pub(crate) fn level_of(words: &Words, catalog: &Catalog, job: &IndexJob) -> Option<Level> {
    let row = words.table.rows.get(&job.file)?;
    let is_done = is_current(row, &catalog.entries[job.entry]) && (row.owner, row.shared) == (job.owner, job.shared);
    is_done.then_some(row.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_anywhere_before_the_mark_is_another_seam() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript");
        let check = |size: usize, at: usize, is_noticed: bool| {
            let mut bytes = vec![b'x'; size];
            std::fs::write(&path, &bytes).unwrap();
            let before = prefix_fingerprint(&path, Some(size as u64)).unwrap();
            bytes[at] = b'y';
            bytes.push(b'z');
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(prefix_fingerprint(&path, Some(size as u64)).unwrap() != before, is_noticed, "{size} {at}");
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
