//! The request for a fork by copy, and its verification; the same for every agent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{DefectKind, SessionId, Summary};

use crate::seal::Seal;

/// A session to copy under a new id.
#[derive(Debug, Clone)]
pub struct CopyRequest {
    /// The id of the source.
    pub source_id: SessionId,
    /// The id of the copy.
    pub id: SessionId,
    /// The number of turns to keep; `None` keeps all.
    pub turns: Option<u32>,
    /// The last record of the copied branch; `None` for the active branch. See [`crate::Branch`].
    pub tip: Option<u64>,
    /// Whether records whose parent is missing ([`DefectKind::BrokenLink`]) are linked to the record that they follow.
    pub relink: bool,
    /// The directory in which the copy will work.
    pub cwd: PathBuf,
    /// The branch checked out there.
    pub branch: Option<String>,
    /// The title of the copy, shown by the agent's own picker.
    pub title: Option<String>,
    /// The final path of the copy; it may be written elsewhere first.
    pub target: PathBuf,
    /// When the copy is made.
    pub now: Timestamp,
}

/// A file or folder of a session besides its transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// The source's; it need not be there.
    pub from: PathBuf,
    /// Where the copy's is prepared.
    pub prepared: PathBuf,
    /// Where it belongs.
    pub place: PathBuf,
    /// Whether others put files there too, so that one of theirs must neither be replaced nor removed.
    pub shared: bool,
}

/// What was copied, as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Bytes that were written.
    pub bytes: u64,
    /// The fingerprints of the turns that were kept.
    pub turn_keys: Vec<u64>,
    /// What was carried.
    pub seal: Seal,
}

/// What a copy holds, as one pass over its file finds it.
#[derive(Debug, Clone)]
pub struct ReadBack {
    /// The facts of the new session.
    pub summary: Summary,
    /// Bytes that were read.
    pub bytes: u64,
    /// What was carried.
    pub seal: Seal,
    /// The first thing that a copy must not hold.
    pub fault: Option<String>,
}

impl Copied {
    /// Says in what the copy that was read back differs from what it should be.
    pub fn compare(&self, found: &ReadBack, order: &CopyRequest) -> Result<(), String> {
        let defects = &found.summary.defects;
        let damaged = [DefectKind::BadLine, DefectKind::TruncatedLine, DefectKind::Unreadable];
        if let Some(fault) = &found.fault {
            return Err(fault.clone());
        }
        if let Some((kind, count)) = defects.iter().find(|(kind, _)| damaged.contains(kind)) {
            return Err(format!("{count} of its lines cannot be read ({kind:?})"));
        }
        if found.summary.id != order.id {
            return Err(format!("it has session id {}", found.summary.id));
        }
        if found.summary.turns as usize != self.turn_keys.len() {
            return Err(format!("it has {} turns instead of {}", found.summary.turns, self.turn_keys.len()));
        }
        let same = self.turn_keys.iter().zip(&found.summary.turn_keys).take_while(|(a, b)| a == b).count();
        if same < self.turn_keys.len() || found.summary.turn_keys.len() != self.turn_keys.len() {
            return Err(format!("it differs in turn {}", same + 1));
        }
        if found.seal.records() != self.seal.records() {
            return Err(format!("it has {} records instead of {}", found.seal.records(), self.seal.records()));
        }
        if found.seal != self.seal || found.bytes != self.bytes {
            return Err("its content differs from the source".to_owned());
        }
        Ok(())
    }
}

/// Copies a part of a file, whatever its size, and returns how much there was of it.
pub(crate) fn copy_range(path: &Path, offset: u64, length: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    io::copy(&mut file.take(length), out)
}
