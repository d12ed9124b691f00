//! Putting a rebuilt tree into a new worktree, as changes that are not committed.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::{ChangedFile, Rebuilt};
use crate::advice::FileError;
use crate::code::{Error, Result};
use crate::workspace::directory::stays_inside;

impl Rebuilt {
    /// Makes the files of `tree`, which is at the commit, what they were, and reads them back.
    pub(crate) fn lay_over(&self, tree: &Path) -> Result<()> {
        // Deletions first: a file may be where a folder belongs.
        let (deleted, written): (Vec<&ChangedFile>, Vec<&ChangedFile>) =
            self.changed.iter().partition(|file| file.bytes.is_none());
        for file in deleted.into_iter().chain(written) {
            let path = tree.join(&file.path);
            if !stays_inside(tree, &file.path) {
                return Err(Error::NotRestored(file.path.clone()));
            }
            put(file, tree, &path).map_err(|source| FileError::Write { path: path.clone(), source })?;
        }
        for file in &self.changed {
            let path = tree.join(&file.path);
            let is_right = match (&file.bytes, fs::read(&path)) {
                (Some(bytes), Ok(found)) => *bytes == found,
                (None, Err(error)) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
                (None, Ok(_)) | (Some(_), Err(_)) => false,
            };
            if !is_right {
                return Err(Error::NotRestored(file.path.clone()));
            }
        }
        Ok(())
    }
}

fn put(file: &ChangedFile, tree: &Path, path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Err(error),
        _ => {}
    }
    let Some(bytes) = &file.bytes else {
        for folder in file.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            // A folder that holds something else stays.
            if fs::remove_dir(tree.join(folder)).is_err() {
                break;
            }
        }
        return Ok(());
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if file.is_executable { 0o777 } else { 0o666 });
    options.open(path)?.write_all(bytes)
}
