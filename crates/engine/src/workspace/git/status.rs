//! Lists changes in a working tree, from git's machine-readable output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Git;
use crate::workspace::Result;

/// A path that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusEntry {
    pub kind: Kind,
    /// Relative to the top of the working tree.
    pub path: PathBuf,
    /// git's record: modes and objects in commit and index, and whether the file differs.
    pub record: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tracked,
    Submodule,
    Unmerged,
    Untracked,
    /// An untracked repository inside the working tree.
    Repository,
}

impl Git {
    /// Everything that differs from the commit, except ignored files. A rename is a deletion and an addition.
    pub(super) fn changes(&self, tree: &Path) -> Result<Vec<StatusEntry>> {
        let arguments =
            ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=none", "--no-renames"];
        let output = self.output(tree, arguments).map_err(Self::failed(tree))?;
        Ok(output.split(|byte| *byte == 0).filter_map(parse).collect())
    }
}

fn parse(record: &[u8]) -> Option<StatusEntry> {
    let mut fields = record.split(|byte| *byte == b' ');
    // The number of fields before the path, which may contain spaces.
    let (kind, before) = match fields.next()? {
        b"1" if fields.nth(1)?.starts_with(b"S") => (Kind::Submodule, 8),
        b"1" => (Kind::Tracked, 8),
        b"u" => (Kind::Unmerged, 10),
        b"?" if record.ends_with(b"/") => (Kind::Repository, 1),
        b"?" => (Kind::Untracked, 1),
        _ => return None,
    };
    let path = record.splitn(before + 1, |byte| *byte == b' ').nth(before)?;
    Some(StatusEntry { kind, path: to_path(path), record: record.to_owned() })
}

/// A path from git's output. Its bytes need not be UTF-8.
#[cfg(unix)]
pub(super) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes.to_owned()))
}

#[cfg(not(unix))]
pub(super) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from(String::from_utf8_lossy(bytes).into_owned()))
}
