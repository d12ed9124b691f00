//! What a fork by copy is asked for, the same for every agent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::SessionId;

/// A session that is to be copied under a new id.
#[derive(Debug, Clone)]
pub struct CopyOrder {
    /// The id of the source.
    pub source_id: SessionId,
    /// The id of the copy.
    pub id: SessionId,
    /// How many turns are kept; all where nothing is said.
    pub turns: Option<u32>,
    /// The directory in which the copy will work.
    pub cwd: PathBuf,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The title of the copy, shown by the agent's own picker.
    pub title: Option<String>,
    /// Where the copy will stand in the end; it may be written somewhere else first.
    pub target: PathBuf,
    /// When the copy is made.
    pub now: Timestamp,
}

/// What a copy held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Bytes that were written.
    pub bytes: u64,
    /// Turns that were kept.
    pub turns: u32,
}

/// Copies a part of a file, whatever its size, and returns how much there was of it.
pub(crate) fn copy_range(path: &Path, offset: u64, length: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    io::copy(&mut file.take(length), out)
}
