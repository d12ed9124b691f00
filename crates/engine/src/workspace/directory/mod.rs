//! Copies a whole directory for a fork: checks the target, creates the copy, and removes it again.
//!
//! `copy` walks and copies, `entry` handles one file, link or folder with the available system calls, `repository`
//! gives a copied working tree its own repository, `digest` detects later changes.

pub(crate) mod copy;
pub(crate) mod digest;
pub(crate) mod entry;
pub(crate) mod repository;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use diagnostics::OrLog;
use serde::{Deserialize, Serialize};

pub(crate) use copy::{Copied, copy, copy_one};
pub use copy::{CopyProgress, size_of};
pub(crate) use digest::{Digest, content_digest, digest_of, sizes_of};
pub(crate) use entry::flush;

use crate::advice::FileError;
use crate::private;
use crate::workspace::git::Git;
use crate::workspace::{Error, Result};

/// The suffix of the folder with all clones of a directory.
pub(crate) const CLONES: &str = ".clones";

/// A copy of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryCopy {
    /// The source.
    pub source: PathBuf,
    /// The path of the copy.
    pub path: PathBuf,
    /// Its path until it is complete.
    pub unfinished: PathBuf,
    /// Whether the target was an empty directory before.
    pub was_there: bool,
    /// The parent directories created for it, deepest first.
    pub parents: Vec<PathBuf>,
    /// Its digest when it was complete. Without one, nothing has been moved to `path`.
    pub digest: Option<String>,
}

impl DirectoryCopy {
    /// Plans a copy of `source` at `target` and touches nothing. `source` contains no symbolic links.
    pub(crate) fn plan(source: &Path, target: &Path) -> Result<Self> {
        let path = new_place(target)?;
        if source.to_str().is_none() {
            return Err(Error::BadTarget(source.to_owned()));
        }
        // Also compared by identity: a directory can be mounted twice.
        let own = entry::identity(source);
        let inside = |place: &Path| place == source || (own.is_some() && entry::identity(place) == own);
        if path.ancestors().any(inside) {
            return Err(Error::IntoItself { directory: source.to_owned(), target: path });
        }
        let was_there = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() && fs::read_dir(&path).is_ok_and(|mut all| all.next().is_none()) => true,
            Ok(_) => return Err(Error::TargetExists(path)),
            Err(_) => false,
        };
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(Error::TargetExists(path));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".tine-new");
        let parents = path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let unfinished = parent.join(hidden);
        Ok(DirectoryCopy { source: source.to_owned(), path, unfinished, was_there, parents, digest: None })
    }

    /// Creates the copy next to its final name and records its digest. If anything fails, nothing is left.
    pub(crate) fn write(&mut self, git: Option<&Git>, progress: &dyn CopyProgress) -> Result<Copied> {
        let parent = self.unfinished.parent().unwrap_or(Path::new("/"));
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| FileError::Write { path, source }
        };
        fs::create_dir_all(parent).map_err(failed(parent))?;
        if self.unfinished.symlink_metadata().is_ok() {
            // No other run is using it, or the registry would have reported that.
            remove_tree(&self.unfinished).map_err(failed(&self.unfinished))?;
        }
        let made = copy(&self.source, &self.unfinished, progress).and_then(|mut copied| {
            repository::make_independent(self, &copied.repositories, git, progress)?;
            self.digest = Some(digest_of(&self.unfinished).map_err(failed(&self.unfinished))?);
            entry::flush(&self.unfinished).map_err(failed(&self.unfinished))?;
            copied.repositories.clear();
            Ok(copied)
        });
        made.inspect_err(|_| {
            self.digest = None;
            self.remove();
        })
    }

    /// Renames it to its final name.
    pub(crate) fn put_in_place(&self) -> Result<()> {
        // An empty directory is replaced; anything else that appeared there makes this fail.
        private::rename(&self.unfinished, &self.path).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                Error::TargetExists(self.path.clone())
            }
            _ => FileError::Write { path: self.path.clone(), source }.into(),
        })
    }

    /// Whether it is unchanged since it was created.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.path.exists() || digest_of(&self.path).ok() == self.digest
    }

    /// Whether it has its final name. While the unfinished copy exists, or if it was never complete, whatever has the
    /// final name is not ours.
    pub(crate) fn is_in_place(&self) -> bool {
        self.digest.is_some() && self.unfinished.symlink_metadata().is_err()
    }

    /// Removes it, complete or not, and the parent directories created for it. Anything else in its place is kept.
    pub(crate) fn remove(&self) {
        let is_in_place = self.is_in_place();
        remove_tree(&self.unfinished).or_log(format_args!("remove {}", self.unfinished.display()));
        if is_in_place {
            remove_tree(&self.path).or_log(format_args!("remove {}", self.path.display()));
        }
        self.restore_parents();
    }

    /// Once it is removed, restores the empty directory that was there, or removes the parent directories created for
    /// it.
    pub(crate) fn restore_parents(&self) {
        if self.was_there && self.digest.is_some() {
            // Existing files are kept.
            fs::create_dir(&self.path).or_log(format_args!("create {}", self.path.display()));
        }
        self.remove_empty_parents();
    }

    /// Removes the empty folders above a removed copy: the folder of all clones with the last of them, other folders only
    /// if they were created for this one.
    pub(crate) fn remove_empty_parents(&self) {
        let clones = self.path.parent().filter(|folder| **folder == beside(&self.source, CLONES));
        for folder in self.parents.iter().map(PathBuf::as_path).chain(clones) {
            fs::remove_dir(folder).or_log(format_args!("remove {}", folder.display()));
        }
    }
}

/// A sibling of a directory: its name with a suffix.
pub(crate) fn beside(directory: &Path, behind: &str) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(behind);
    directory.with_file_name(name)
}

/// The absolute path of `path`, which need not exist, without symbolic links and `..`. It must be text, because
/// transcripts and the registry store it.
pub(crate) fn new_place(path: &Path) -> Result<PathBuf> {
    let bad = || Error::BadTarget(path.to_owned());
    let mut missing = Vec::new();
    let mut known = path;
    let mut place = loop {
        match known.canonicalize() {
            Ok(found) => break found,
            // A dangling link, or one that points to itself.
            Err(_) if known.symlink_metadata().is_ok() => return Err(Error::TargetExists(known.to_owned())),
            Err(_) => {
                missing.push(known.components().next_back().ok_or_else(bad)?);
                known = known.parent().ok_or_else(bad)?;
            }
        }
    };
    let has_detours = missing.contains(&Component::ParentDir);
    for component in missing.into_iter().rev() {
        match component {
            Component::Normal(name) => place.push(name),
            Component::ParentDir => drop(place.pop()),
            _ => {}
        }
    }
    if place.to_str().is_none() {
        return Err(bad());
    }
    // After `..` in a missing part, there may be links again.
    if has_detours { new_place(&place) } else { Ok(place) }
}

/// Whether the existing parents of `path` in `tree` are folders: a link would lead somewhere else.
pub(crate) fn stays_inside(tree: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    above.into_iter().all(|folder| match fs::symlink_metadata(tree.join(folder)) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    })
}

/// The latest time, in nanoseconds, at which something was created, changed or moved at `path` or below it.
pub(crate) fn newest(path: &Path, leave_out: &[PathBuf]) -> i64 {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) if !leave_out.iter().any(|left_out| left_out == path) => metadata,
        _ => return 0,
    };
    let below = metadata.is_dir().then(|| fs::read_dir(path).into_iter().flatten().flatten());
    let below = below.into_iter().flatten().map(|entry| newest(&entry.path(), leave_out)).max();
    entry::changed(&metadata).max(below.unwrap_or(0))
}

/// Removes a file, or a folder with its contents, including read-only folders.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => return fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            entry::make_writable(path);
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}
