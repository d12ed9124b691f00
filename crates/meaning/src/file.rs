//! A flat file of vectors: many processes read it, one at a time appends to it, and a search scans all of it.
//!
//! ```text
//! header   magic (8), version (4), dimensions (4), model (8), zero (8)
//!          two slots of: number of records (8), xxh3 of the above and this number (8)
//! records  values (384), scale (4), part (4), document (8), xxh3 of the above (8)
//! ```
//!
//! All numbers are little-endian. The valid slot with the larger count wins. A writer appends records after the counted
//! ones, flushes them, and then fills the other slot; if it is killed, the file is as before, with ignored bytes after
//! the end. Counted records are never rewritten: for any other change, a new file is written and renamed. So a reader
//! may map the counted records and rely on them not to change.

mod read;
mod write;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub use read::{Hit, Nearest, VectorFile};
pub use write::VectorWriter;

use crate::embedder::MODEL;
use crate::vector::{DIMENSIONS, Vector};

/// Counts up whenever the file, the tokens of a text or its chunks are made differently.
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"tinevecs";
const HEADER: usize = 64;
/// The part of the header that never changes.
const FIXED: usize = 32;
const RECORD: usize = DIMENSIONS + 24;

/// What a vector is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The text's number, assigned by the owner of the file.
    pub document: u64,
    /// Which part of the text: the number of a chunk or its offset.
    pub part: u32,
}

/// One record: a key and a vector.
#[derive(Clone, Copy)]
struct Record<'f>(&'f [u8; RECORD]);

impl<'f> Record<'f> {
    fn values(self) -> [i8; DIMENSIONS] {
        self.field(0).map(u8::cast_signed)
    }

    fn scale(self) -> f32 {
        f32::from_le_bytes(*self.field(DIMENSIONS))
    }

    fn key(self) -> Key {
        Key {
            part: u32::from_le_bytes(*self.field(DIMENSIONS + 4)),
            document: u64::from_le_bytes(*self.field(DIMENSIONS + 8)),
        }
    }

    fn is_intact(self) -> bool {
        xxh3_64(&self.0[..RECORD - 8]) == u64::from_le_bytes(*self.field(RECORD - 8))
    }

    fn field<const N: usize>(self, at: usize) -> &'f [u8; N] {
        self.0[at..].first_chunk().expect("fields lie inside of the record")
    }
}

fn write_record(key: Key, vector: &Vector, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend(vector.values().iter().map(|value| value.cast_unsigned()));
    bytes.extend(vector.scale().to_le_bytes());
    bytes.extend(key.part.to_le_bytes());
    bytes.extend(key.document.to_le_bytes());
    let check = xxh3_64(&bytes[start..]);
    bytes.extend(check.to_le_bytes());
}

fn fixed_header() -> [u8; FIXED] {
    let mut header = [0; FIXED];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(DIMENSIONS as u32).to_le_bytes());
    header[16..24].copy_from_slice(&MODEL.to_le_bytes());
    header
}

fn slot(count: u64) -> [u8; 16] {
    let mut hasher = Xxh3::new();
    hasher.update(&fixed_header());
    hasher.update(&count.to_le_bytes());
    let mut slot = [0; 16];
    slot[..8].copy_from_slice(&count.to_le_bytes());
    slot[8..].copy_from_slice(&hasher.digest().to_le_bytes());
    slot
}

/// The state of a header.
enum Header {
    /// The number of valid records, and whether the second slot has it.
    Counts { records: u64, in_second: bool },
    /// It is not a file of this version and model.
    Foreign,
    /// Neither slot is right.
    Damaged,
}

fn read_header(header: &[u8; HEADER]) -> Header {
    if header[..FIXED] != fixed_header() {
        return if header[..8] == MAGIC { Header::Foreign } else { Header::Damaged };
    }
    let count = |at: usize| {
        let count = u64::from_le_bytes(*header[at..].first_chunk()?);
        (header[at..at + 16] == slot(count)).then_some(count)
    };
    match (count(FIXED), count(FIXED + 16)) {
        (None, None) => Header::Damaged,
        (first, second) => Header::Counts { records: first.max(second).unwrap_or(0), in_second: second > first },
    }
}

/// Where the records that count end.
fn end(records: u64) -> Option<u64> {
    records.checked_mul(RECORD as u64)?.checked_add(HEADER as u64)
}
