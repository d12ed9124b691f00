//! What the last snapshot of a working tree saw: each file, its blob, and the signs by which an unchanged file is
//! recognized without reading it. It is a cache: without it, files are read again.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use diagnostics::OrLog;
use serde::{Deserialize, Serialize};

use super::trailers::{LeftOut, Reason};
use crate::private;
use crate::workspace::git::objects::{Mode, TreeEntry};

/// The format of the file. Another one counts as none.
const FORMAT: u32 = 2;

/// A file that changed just before it was seen may change again without a sign: file systems tick.
const TICK: Duration = Duration::from_millis(50);
/// The same for a file system that counts whole seconds, some only every second one.
const COARSE_TICK: Duration = Duration::from_secs(3);

/// A working tree as the last snapshot saw it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The top of the working tree.
    pub top: PathBuf,
    /// The snapshot.
    pub commit: String,
    pub tree: String,
    pub head: Option<String>,
    pub left_out: Vec<LeftOut>,
    /// A fingerprint of git's list, if equal lists and equal stamps mean that the tree is the same.
    pub list: Option<u64>,
    /// The files, by their paths.
    pub files: Vec<SeenFile>,
}

/// A file of the tree.
#[derive(Debug, Clone)]
pub(super) struct SeenFile {
    pub entry: TreeEntry,
    /// Nothing where the file has to be read again.
    pub stamp: Option<FileStamp>,
}

/// The same on disk. Paths need not be text.
#[derive(Serialize, Deserialize)]
struct StoredTree {
    format: u32,
    top: OsString,
    commit: String,
    tree: String,
    head: Option<String>,
    left_out: Vec<(OsString, Reason)>,
    list: Option<u64>,
    files: Vec<(OsString, Mode, String, Option<FileStamp>)>,
}

/// The signs of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    size: u64,
    modified: i128,
    changed: i128,
    inode: u64,
    mode: u32,
}

impl Seen {
    /// What was seen of a working tree, from its file.
    pub(super) fn load(file: &Path, top: &Path) -> Option<Self> {
        let stored: StoredTree = postcard::from_bytes(&fs::read(file).ok()?).ok()?;
        let left_out = stored.left_out.into_iter().map(|(path, reason)| LeftOut { path: path.into(), reason });
        let seen_file = |(path, mode, object, stamp): (OsString, Mode, String, Option<FileStamp>)| SeenFile {
            entry: TreeEntry { path: path.into(), mode, object },
            stamp,
        };
        (stored.format == FORMAT && stored.top == top.as_os_str()).then(|| Seen {
            top: top.to_owned(),
            commit: stored.commit,
            tree: stored.tree,
            head: stored.head,
            left_out: left_out.collect(),
            list: stored.list,
            files: stored.files.into_iter().map(seen_file).collect(),
        })
    }

    /// Replaces the file.
    pub(super) fn store(self, file: &Path) {
        let stored_file = |file: SeenFile| {
            let TreeEntry { path, mode, object } = file.entry;
            (path.into_os_string(), mode, object, file.stamp)
        };
        let stored = StoredTree {
            format: FORMAT,
            top: self.top.into_os_string(),
            commit: self.commit,
            tree: self.tree,
            head: self.head,
            left_out: self.left_out.into_iter().map(|left| (left.path.into_os_string(), left.reason)).collect(),
            list: self.list,
            files: self.files.into_iter().map(stored_file).collect(),
        };
        let written = || -> io::Result<()> {
            let bytes = postcard::to_stdvec(&stored).map_err(io::Error::other)?;
            let new = file.with_extension("new");
            let mut opened = private::open_file(&new)?;
            opened.set_len(0)?;
            opened.write_all(&bytes)?;
            fs::rename(new, file)
        };
        written().or_log("store what a snapshot saw");
    }
}

impl FileStamp {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let time = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        FileStamp {
            size: metadata.len(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            mode: metadata.mode(),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| time.as_nanos() as i128);
        FileStamp { size: metadata.len(), modified, changed: modified, inode: 0, mode: 0 }
    }

    /// The same, if the file can't have changed later without another sign. `looked` is when the looking began.
    pub(super) fn settled(self, looked: SystemTime) -> Option<Self> {
        let newest = self.modified.max(self.changed);
        let tick = if newest % 1_000_000_000 == 0 { COARSE_TICK } else { TICK };
        let limit = looked.duration_since(UNIX_EPOCH).ok()?.checked_sub(tick)?;
        (newest < limit.as_nanos() as i128).then_some(self)
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// What the metadata say about the kind of a file; `None` if it is not for git.
pub(super) fn mode_of(metadata: &Metadata) -> Option<Mode> {
    if metadata.is_symlink() {
        return Some(Mode::Symlink);
    }
    if !metadata.is_file() {
        return None;
    }
    #[cfg(unix)]
    let is_executable = std::os::unix::fs::MetadataExt::mode(metadata) & 0o100 != 0;
    #[cfg(not(unix))]
    let is_executable = false;
    Some(if is_executable { Mode::Executable } else { Mode::File })
}
