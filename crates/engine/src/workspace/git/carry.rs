//! Copies uncommitted changes from one working tree to another at the same commit, exactly: staged changes stay staged,
//! others don't.
//!
//! The index is copied as a file, with everything git knows about a path (an intent to add, bits like skip-worktree);
//! all working trees of a repository share its objects. Files that differ from the commit are copied as files. Nothing
//! is written to the source: no stash is created, and its index is only read.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;

use super::Git;
use super::status::{Kind, StatusEntry, to_path};
use crate::advice::FileError;
use crate::progress::Quiet;
use crate::workspace::directory::{self, stays_inside};
use crate::workspace::{Error, Result};

/// The number of attempts if files in the source change meanwhile.
const ATTEMPTS: usize = 3;

impl Git {
    /// Refuses unresolved conflicts, which only the index knows about.
    pub(crate) fn refuse_unmerged(&self, tree: &Path) -> Result<()> {
        let list = self.output(tree, ["ls-files", "-z", "--unmerged"]).map_err(Self::failed(tree))?;
        let path =
            list.splitn(2, |byte| *byte == 0).next().and_then(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
        match path {
            Some(path) => Err(Error::Unmerged { directory: tree.to_owned(), path: to_path(path) }),
            None => Ok(()),
        }
    }

    /// Copies the changes in `from` to `to`, which was just created at the same commit, including those in submodules.
    /// Returns warnings about what was left out.
    pub(crate) fn carry(&self, from: &Path, to: &Path) -> Result<Vec<String>> {
        self.refuse_unmerged(from)?;
        // One of git's hooks may have created files already, which are not the source's changes.
        let own: BTreeSet<Vec<u8>> = self.changes(to)?.into_iter().map(|change| change.record).collect();
        let mut told = Vec::new();
        for _ in 0..ATTEMPTS {
            told.clear();
            let changes = self.changes(from)?;
            let (left_out, changes): (Vec<_>, Vec<_>) =
                changes.into_iter().partition(|change| change.kind == Kind::Repository && !has_folder(from, change));
            told.extend(left_out.iter().map(|change| {
                let path = transcript::text::one_line(&change.path.to_string_lossy());
                format!("`{path}` is a separate worktree and was not copied")
            }));
            let mut paths: BTreeSet<PathBuf> = changes.iter().map(|change| change.path.clone()).collect();
            let stale = self.changes(to)?.into_iter().filter(|change| !own.contains(&change.record));
            paths.extend(stale.map(|change| change.path));
            paths.extend(self.files_with_ignored_changes(from)?);
            let folders = changes.iter().filter(|change| matches!(change.kind, Kind::Submodule | Kind::Repository));
            for change in folders {
                paths.remove(&change.path);
            }
            copy_files(from, to, &paths)?;
            for change in changes.iter().filter(|change| change.kind == Kind::Repository) {
                copy_nested_repository(from, to, &change.path)?;
            }
            self.copy_index(from, to)?;
            told.extend(self.copy_submodules(from, to, true)?);
            let found: BTreeSet<Vec<u8>> = self.changes(to)?.into_iter().map(|change| change.record).collect();
            let found: BTreeSet<&Vec<u8>> = found.difference(&own).collect();
            let wanted = changes.iter().map(|change| &change.record).filter(|record| !own.contains(*record)).collect();
            if found == wanted {
                return Ok(told);
            }
        }
        Err(Error::CarryDiffers(from.to_owned()))
    }

    /// Files that git is configured to ignore changes in. The user has something of their own in them.
    fn files_with_ignored_changes(&self, tree: &Path) -> Result<Vec<PathBuf>> {
        let list = self.output(tree, ["ls-files", "-z", "-v"]).map_err(Self::failed(tree))?;
        let marked = list.split(|byte| *byte == 0).filter_map(|line| {
            let (mark, path) = (line.first()?, line.get(2..)?);
            (mark.is_ascii_lowercase() || *mark == b'S').then(|| to_path(path))
        });
        Ok(marked.collect())
    }

    fn copy_index(&self, from: &Path, to: &Path) -> Result<()> {
        let (source, target) = (self.own_folder(from)?, self.own_folder(to)?);
        let shared = self.run(from, ["rev-parse", "--shared-index-path"]).unwrap_or_default();
        let shared = (!shared.is_empty()).then(|| from.join(shared));
        let shared_name = shared.as_deref().and_then(Path::file_name);
        for (from, name) in [(shared.clone(), shared_name), (Some(source.join("index")), Some("index".as_ref()))] {
            let (Some(from), Some(name)) = (from, name) else { continue };
            // Its time is copied too: git uses it to recognize files that changed right after they were added.
            replace(&from, &target.join(name)).map_err(|error| copy_error(&from, error))?;
        }
        // The files are new; git has to check each once. If it finds a difference, it fails, which is fine.
        self.run(to, ["-c", "core.untrackedCache=false", "update-index", "-q", "--refresh"])
            .or_log("refresh the index of the worktree");
        Ok(())
    }
}

fn has_folder(tree: &Path, change: &StatusEntry) -> bool {
    is_folder(&tree.join(&change.path).join(".git"))
}

/// Makes each of `paths` in `to` the same as in `from`.
fn copy_files(from: &Path, to: &Path, paths: &BTreeSet<PathBuf>) -> Result<()> {
    // Deletions first: a file may be where a folder belongs.
    for path in paths {
        let target = to.join(path);
        if stays_inside(to, path) && !is_folder(&target) {
            fs::remove_file(&target).or_log(format_args!("remove {}", target.display()));
            for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
                if fs::remove_dir(to.join(folder)).is_err() {
                    break;
                }
            }
        }
    }
    for path in paths.iter().filter(|path| stays_inside(from, path)) {
        let (source, target) = (from.join(path), to.join(path));
        let Ok(metadata) = fs::symlink_metadata(&source) else { continue };
        if metadata.is_dir() {
            // Its contents have paths of their own.
            continue;
        }
        make_parent(to, path)?;
        match directory::copy_one(&source, &target) {
            // It has disappeared meanwhile, and the next comparison sees it as deleted.
            Err(error) if error.kind() == io::ErrorKind::NotFound && source.symlink_metadata().is_err() => {}
            copied => copied.map_err(|error| copy_error(&source, error))?,
        }
    }
    Ok(())
}

fn copy_nested_repository(from: &Path, to: &Path, path: &Path) -> Result<()> {
    let target = to.join(path);
    if target.symlink_metadata().is_err() {
        make_parent(to, path)?;
        directory::copy(&from.join(path), &target, &Quiet)?;
    }
    Ok(())
}

fn make_parent(tree: &Path, path: &Path) -> Result<()> {
    let folder = tree.join(path.parent().unwrap_or(Path::new("")));
    if !stays_inside(tree, path) {
        return Err(Error::InTheWay(folder));
    }
    Ok(fs::create_dir_all(&folder).map_err(|source| FileError::Write { path: folder, source })?)
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn replace(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match directory::copy_one(from, to) {
        // A repository without an index has no files.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => Ok(()),
        copied => copied,
    }
}

fn copy_error(path: &Path, source: io::Error) -> Error {
    Error::NotCopied { path: path.to_owned(), source }
}
