//! The table of what is indexed of each transcript, and how tables are stored.

use std::collections::HashMap;
use std::fs;
use std::hash::BuildHasherDefault;
use std::io::{self, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use transcript::Agent;

use super::subagents::Subagents;
use crate::private;
use crate::search::query::words::IdentityHasher;

/// How much of a transcript is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Level {
    /// Prompts and answers.
    Prose,
    /// Also tool calls and output.
    All,
}

/// What is indexed of a transcript.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub agent: Agent,
    pub size: u64,
    pub modified: i64,
    pub inode: u64,
    pub level: Level,
    /// Whether it was read to its end.
    pub complete: bool,
    /// The last indexed turn, which may still grow.
    pub turns: u32,
    /// Its offset.
    pub last: Option<u64>,
    /// The fingerprints of all turns up to it; a difference means that the history was changed.
    pub keys: u64,
    /// Samples of the bytes before it; a difference means that the file was rewritten.
    pub seam: u64,
    /// Lines that are too long to index: before that turn, and in it.
    pub left_out: (u32, u32),
    pub title: u64,
    /// The number of first turns that belong to another session and are found there.
    pub shared: u32,
    pub owner: u64,
}

impl Row {
    /// How many of its lines are too long to index.
    pub(crate) fn left_out(&self) -> u64 {
        u64::from(self.left_out.0) + u64::from(self.left_out.1)
    }
}

/// Rows by [`crate::sessions::catalog::file_key`].
pub(crate) type Rows = HashMap<u64, Row, BuildHasherDefault<IdentityHasher>>;

/// All rows, and the state of the index's files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Table {
    pub rows: Rows,
    /// The subagents of sessions that have some.
    pub helpers: Subagents,
    pub files: Vec<(String, u64, i64)>,
}

impl Table {
    pub(crate) fn read(folder: &Path, name: &str) -> io::Result<Table> {
        if !name.starts_with("table-") || name.contains('/') {
            return Err(io::ErrorKind::InvalidData.into());
        }
        read_table(&folder.join(name))
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        write_table(self, path)
    }
}

/// Reads a file written by [`write_table`].
pub(crate) fn read_table<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = fs::read(path)?;
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or(io::ErrorKind::InvalidData)?;
    if xxhash_rust::xxh3::xxh3_64(body) != u64::from_le_bytes(*sum) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    postcard::from_bytes(body).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Writes a table with its checksum to a temporary file and renames it.
pub(crate) fn write_table<T: Serialize>(table: &T, path: &Path) -> io::Result<()> {
    let mut body = postcard::to_stdvec(table).map_err(io::Error::other)?;
    body.extend(xxhash_rust::xxh3::xxh3_64(&body).to_le_bytes());
    let beside = path.with_extension("new");
    let mut file = private::open_file(&beside)?;
    file.set_len(0)?;
    file.write_all(&body)?;
    fs::rename(&beside, path)
}
