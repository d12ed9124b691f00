//! Everything that is true of one agent only: where its sessions live, how they are read, and how it can be seen from
//! outside whether one is idle or busy. One folder per agent, with the same files in each.
//!
//! Foreign files are never fatal: readers hand out what they could read and count the defects that they met.

pub mod claude;
pub mod codex;
mod copy;
mod fields;
mod lines;
mod process;
mod rewrite;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

pub use copy::{Copied, CopyOrder};
pub use fields::{Elements, Fields, Raw};
use jiff::Timestamp;
pub use lines::{Line, LineReader};
pub use process::process_start;
use transcript::{Agent, Block, Defects, ParentPointer, SessionId, State, Summary};

/// The environment variables and folders that decide where agents keep their files; filled by the binary.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The home directory.
    pub home: PathBuf,
    /// `CLAUDE_CONFIG_DIR`, if set.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`, if set.
    pub codex_home: Option<PathBuf>,
    /// Where processes and locks can be looked up; `/proc` on Linux.
    pub proc: Option<PathBuf>,
}

/// One agent's files, read from outside.
pub trait Store: Send + Sync {
    /// Which agent it is.
    fn agent(&self) -> Agent;
    /// The folder in which the agent keeps everything.
    fn home(&self) -> &Path;
    /// Every session file, with one `stat` each and nothing read.
    fn discover(&self) -> Discovery;
    /// Reads one session once, from its first byte to its last, for the facts of it.
    fn scan(&self, path: &Path) -> Summary;
    /// The conversation, block by block, up to and including turn `until`. What an earlier scan found out lets it begin
    /// at once; without that, it scans first.
    fn read(&self, path: &Path, until: Option<u32>, known: Option<&Known>) -> io::Result<Box<dyn Blocks>>;
    /// Where a new session of this id that works in `cwd` belongs.
    fn place_for(&self, id: &SessionId, cwd: &Path, now: Timestamp) -> PathBuf;
    /// Writes a copy of a session under a new id to `out`, in constant memory; the source is only read.
    fn copy(&self, source: &Path, order: &CopyOrder, out: &mut dyn io::Write) -> io::Result<Copied>;
    /// Copies what belongs to a session outside of its file; `side` is the folder in which the copy's own is prepared.
    fn copy_side(&self, source: &Path, order: &CopyOrder, side: &Path) -> io::Result<()>;
    /// The command that resumes a session.
    fn resume_command(&self, id: &SessionId) -> Vec<String>;
    /// What the agent keeps about sessions outside of the session files.
    fn notes(&self) -> Notes;
    /// The sessions that a process has open now.
    fn live(&self) -> Live;
}

/// What a scan found of a file that is its own history in its own order.
#[derive(Debug, Clone)]
pub struct Known {
    /// [`Summary::plain`].
    pub size: u64,
    /// What was wrong in it.
    pub defects: Defects,
}

/// The blocks of a conversation, in order.
pub trait Blocks {
    /// The next block, or nothing at the end.
    fn next_block(&mut self) -> Option<Block>;
    /// What was wrong so far.
    fn defects(&self) -> &Defects;
}

/// Every agent that tine knows, over its files.
pub fn stores(surroundings: &Surroundings) -> Vec<Box<dyn Store>> {
    Agent::ALL
        .into_iter()
        .map(|agent| -> Box<dyn Store> {
            match agent {
                Agent::Claude => Box::new(claude::Claude::new(surroundings)),
                Agent::Codex => Box::new(codex::Codex::new(surroundings)),
            }
        })
        .collect()
}

/// What a look through an agent's folders found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The session files.
    pub files: Vec<SessionFile>,
    /// Folders and files that could not be looked at, with the reason.
    pub unreadable: Vec<(PathBuf, io::ErrorKind)>,
}

/// A session file as the file system sees it. Nothing of it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// The id that the file's name carries.
    pub id: SessionId,
    /// Where it is.
    pub path: PathBuf,
    /// What changes when the file does.
    pub stamp: Stamp,
}

/// What tells a changed file from an unchanged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time in nanoseconds since 1970.
    pub modified: i64,
    /// Its inode, or 0 where there are none.
    pub inode: u64,
    /// When the file was created, in nanoseconds since 1970, where the file system tells. Decides nothing but who
    /// was first among sessions with equal histories.
    pub born: Option<i64>,
}

/// What an agent keeps about sessions outside of the session files.
#[derive(Debug, Default)]
pub struct Notes {
    /// Titles that people gave.
    pub titles: HashMap<SessionId, String>,
    /// Parents of sessions.
    pub parents: HashMap<SessionId, ParentPointer>,
}

/// The sessions that a process has open, by id.
#[derive(Debug, Default)]
pub struct Live {
    /// What is known of each.
    pub sessions: HashMap<SessionId, LiveSession>,
    /// Set where this system cannot tell, so that "stopped" means "not known to run".
    pub weak: Option<&'static str>,
}

/// A session that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    /// The process, where it is known.
    pub pid: Option<u32>,
    /// What the agent says of its state; nothing where only the transcript can tell.
    pub state: Option<State>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// The directory of the process's project, which tells two sessions with one id apart.
    pub cwd: Option<PathBuf>,
}

/// What the file system says of an entry of a folder; a link is followed. The entry is looked up in its folder, which is
/// cheaper than by its whole path.
pub(crate) fn entry_metadata(entry: &std::fs::DirEntry) -> Option<std::fs::Metadata> {
    let metadata = entry.metadata().ok()?;
    if metadata.is_symlink() { std::fs::metadata(entry.path()).ok() } else { Some(metadata) }
}

/// What the file system says of a file.
pub fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    use std::time::{SystemTime, UNIX_EPOCH};
    let nanos = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map(|n| -n).unwrap_or(i64::MIN),
    };
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Stamp {
        size: metadata.len(),
        modified: metadata.modified().map(nanos).unwrap_or(0),
        inode,
        born: metadata.created().ok().map(nanos),
    }
}

/// A stable 64-bit fingerprint of some bytes (FNV-1a). It is stored, so it must not change between versions.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
