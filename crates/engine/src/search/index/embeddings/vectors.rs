//! Keeps a vector for each chunk of prose: a flat file, and a table of the sessions whose chunks are in it.
//!
//! A vector's key contains the session, the turn and a fingerprint of the chunk. So reading a transcript again shows
//! which of its vectors exist, which are missing and which are obsolete, whatever the table says. The table only saves
//! that reading; it is written after the vectors, and is ignored if it claims more vectors than exist.
//! [`super::create`] writes both.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use agents::{Adapter, Part, PlainScan, TurnStart};
use meaning::{Error, Key, VectorFile};
use serde::{Deserialize, Serialize};
use transcript::Summary;

use super::selection::{each_chunk, prose_of};
use crate::search::index::table::{Row, Rows, read_table};
use crate::search::index::work::has_grown;
use crate::sessions::catalog::Catalog;

/// Changes whenever the selection of chunks changes.
const FORMAT: u32 = 2;
/// Turns beyond this number get no vectors; the other bits of a key identify the session.
const LAST_TURN: u64 = (1 << 20) - 1;

/// The path of the vectors in the cache folder.
pub fn path(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("vectors-{FORMAT}"))
}

/// Files of older versions, which are no longer read.
pub(crate) fn outdated(cache: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = cache.join("index");
    (1..FORMAT).flat_map(move |format| {
        let name = format!("vectors-{format}");
        [folder.join(&name), folder.join(name + "-table")]
    })
}

pub(crate) fn table_path(cache: &Path) -> PathBuf {
    cache.join("index").join(format!("vectors-{FORMAT}-table"))
}

/// The key of a chunk.
pub(crate) fn key(file: u64, turn: u32, chunk: &str) -> Option<Key> {
    let part = xxhash_rust::xxh3::xxh3_64(chunk.as_bytes()) as u32;
    Some(Key { document: document(file, turn)?, part })
}

/// The part of a key that identifies the turn.
pub(crate) fn document(file: u64, turn: u32) -> Option<u64> {
    (u64::from(turn) <= LAST_TURN).then_some(short(file) | u64::from(turn))
}

/// The part of a key that identifies the session.
pub(crate) fn short(file_or_document: u64) -> u64 {
    file_or_document & !LAST_TURN
}

/// The turn in a key.
pub(crate) fn turn(document: u64) -> u32 {
    (document & LAST_TURN) as u32
}

/// The sessions whose vectors are in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct VectorTable {
    /// The number of vectors when it was written.
    pub records: u64,
    pub rows: Rows,
    /// Obsolete vectors of turns that have grown since.
    pub dead: Vec<(u64, u32)>,
}

/// The vectors, open for reading.
#[derive(Default)]
pub(crate) struct Vectors {
    pub file: Option<VectorFile>,
    /// Why the vectors are missing, if they should exist.
    pub damage: Option<String>,
    rows: Rows,
}

/// Sessions with valid vectors, by the short form of their key, each with the last turn that is covered.
pub(crate) struct VectorCoverage {
    pub sessions: HashMap<u64, (u64, u32)>,
    /// Sessions without complete vectors: their positions in the catalog, and their files.
    pub missing: Vec<(usize, u64)>,
}

impl Vectors {
    /// Opens the existing vectors.
    pub(crate) fn open(cache: &Path) -> Vectors {
        // A writer may be replacing both files right now.
        let first = Vectors::try_open(cache);
        if first.file.is_some() || first.damage.is_some() { first } else { Vectors::try_open(cache) }
    }

    fn try_open(cache: &Path) -> Vectors {
        let table: VectorTable = read_table(&table_path(cache)).unwrap_or_default();
        match VectorFile::open(&path(cache)) {
            Ok(file) if file.lost() > 0 => {
                Vectors { damage: Some("the end of the vectors is missing".into()), ..Vectors::default() }
            }
            Ok(file) if file.len() as u64 >= table.records && !file.is_empty() => {
                Vectors { file: Some(file), damage: None, rows: table.rows }
            }
            Err(error @ Error::Damaged { .. }) => Vectors { damage: Some(error.to_string()), ..Vectors::default() },
            // Sessions without chunks have no vectors, and yet nothing is missing.
            Ok(_) if table.records == 0 => Vectors { rows: table.rows, ..Vectors::default() },
            Ok(_) | Err(_) => Vectors::default(),
        }
    }

    /// Determines which vectors match the current text.
    pub(crate) fn coverage(&self, catalog: &mut Catalog, words: &Rows) -> VectorCoverage {
        let mut standing = VectorCoverage { sessions: HashMap::with_capacity(self.rows.len()), missing: Vec::new() };
        let mut grown = Vec::new();
        let mut twice = HashSet::new();
        let mut put = |file: u64, until: u32, standing: &mut VectorCoverage| {
            // Two sessions with the same short key are indistinguishable.
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
                // Its gist is embedded.
                Some(own) if row.is_some_and(|row| is_of_same(own, row)) => {
                    put(file, u32::MAX, &mut standing);
                    standing.missing.push((index, file));
                }
                own => {
                    standing.missing.push((index, file));
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
    pub(crate) fn sessions(&self, words: &Rows) -> usize {
        self.rows.iter().filter(|(file, row)| words.get(file).is_some_and(|words| is_same(row, words))).count()
    }
}

/// Whether all vectors were made from the same text as the words.
pub(crate) fn is_same(own: &Row, words: &Row) -> bool {
    own.complete && is_of_same(own, words)
}

/// The same, or only those of the gist were.
pub(crate) fn is_of_same(own: &Row, words: &Row) -> bool {
    (own.size, own.modified, own.inode) == (words.size, words.modified, words.inode)
        && (own.title, own.shared, own.owner) == (words.title, words.shared, words.owner)
}

/// The prose of one turn, in chunks.
pub(crate) fn chunks_of_turn(
    adapter: &dyn Adapter,
    summary: &Summary,
    turn: u32,
    offset: Option<u64>,
    mut take: impl FnMut(&str) -> bool,
) -> std::io::Result<()> {
    let known = PlainScan::of(summary);
    let from = offset.filter(|_| known.is_some()).map(|offset| TurnStart { turn, offset });
    let part = Part { from, until: Some(turn), prose_only: true, ..Part::default() };
    let mut blocks = adapter.read_part(&summary.path, &part, known.as_ref())?;
    let mut goes_on = true;
    while let Some(block) = blocks.next_block().filter(|_| goes_on) {
        if block.turn.max(1) >= turn {
            each_chunk(prose_of(&block.kind), |chunk| goes_on = goes_on && take(chunk));
        }
    }
    Ok(())
}
