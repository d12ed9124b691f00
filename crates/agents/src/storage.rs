//! What is at the path of a session: a file, or rows of a database.
//!
//! Most agents keep each session in a file of its own. Where an agent keeps its sessions in one database, the path of a
//! session is that of the database with the session's id after it, as if the database were a folder. Nothing is there
//! for the file system; these functions work for both. A session that is moved out of a database becomes a file with its
//! rows, and is put back into the database when that file is moved to its path again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use transcript::Agent;

use crate::about::about;
use crate::files::{self, sync_folder};
use crate::transcripts::Stamp;

/// How sessions are stored as rows of a database.
#[derive(Debug)]
pub struct RowStorage {
    /// Whether a path is that of a session in a database. Only the path counts.
    pub(crate) holds: fn(&Path) -> bool,
    /// What changes when the rows do.
    pub(crate) stamp: fn(&Path) -> io::Result<Stamp>,
    /// Moves the rows out into a new file.
    pub(crate) take_out: fn(&Path, &Path) -> io::Result<()>,
    /// Puts the rows in a file into the database, in one transaction, and reads them back.
    pub(crate) put_in: fn(&Path, &Path) -> io::Result<()>,
    /// Removes the rows.
    pub(crate) remove: fn(&Path) -> io::Result<()>,
    /// Whether the database has everything that is in a file with rows of a session.
    pub(crate) holds_all_of: fn(&Path, &Path) -> io::Result<bool>,
    /// A digest of the rows, unless there are more than that many bytes.
    pub(crate) digest: fn(&Path, u64) -> io::Result<Option<u64>>,
}

/// The storage of the session at a path, if that is not a file.
fn rows(path: &Path) -> Option<&'static RowStorage> {
    Agent::ALL.into_iter().filter_map(|agent| about(agent).rows).find(|rows| (rows.holds)(path))
}

/// The stamp of a session.
pub fn session_stamp(path: &Path) -> io::Result<Stamp> {
    match rows(path) {
        Some(rows) => (rows.stamp)(path),
        None => Ok(files::stamp(&fs::metadata(path)?)),
    }
}

/// Whether a session is there: a regular file, or rows.
pub fn is_session(path: &Path) -> bool {
    match rows(path) {
        Some(rows) => (rows.stamp)(path).is_ok(),
        None => path.is_file(),
    }
}

/// Whether anything is at a path: a file, a folder, a link, or rows.
pub fn is_there(path: &Path) -> bool {
    match rows(path) {
        Some(rows) => (rows.stamp)(path).is_ok(),
        None => path.symlink_metadata().is_ok(),
    }
}

/// Whether a session can be opened for reading.
pub fn check_readable(path: &Path) -> io::Result<()> {
    match rows(path) {
        Some(rows) => (rows.stamp)(path).map(drop),
        None => fs::File::open(path).map(drop),
    }
}

/// The folder in which files that belong to a session can be created.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(Path::new("."));
    if rows(path).is_some() { parent.parent().unwrap_or(Path::new(".")) } else { parent }
}

/// A file next to a session, from which a rename is enough to give it the session's path.
pub fn beside(path: &Path, name: &str) -> PathBuf {
    folder_of(path).join(name)
}

/// Moves a session, a file or a folder, and returns when the new name is on the disk. The contents must be there already.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match (rows(from), rows(to)) {
        (Some(rows), None) => (rows.take_out)(from, to),
        (None, Some(rows)) => {
            (rows.put_in)(from, to)?;
            fs::remove_file(from)
        }
        (Some(_), Some(_)) => Err(io::Error::new(io::ErrorKind::Unsupported, "both are rows of a database")),
        (None, None) => {
            fs::rename(from, to)?;
            // It has its new name now, so an error here must not look as if it had not.
            let folders = [to.parent(), from.parent().filter(|folder| Some(*folder) != to.parent())];
            for folder in folders.into_iter().flatten() {
                diagnostics::OrLog::or_log(sync_folder(folder), format_args!("sync {}", folder.display()));
            }
            Ok(())
        }
    }
}

/// Removes the rows of a session. Returns false if the path is not that of rows, so that there is a file to remove.
pub fn remove_rows(path: &Path) -> io::Result<bool> {
    rows(path).map_or(Ok(false), |rows| (rows.remove)(path).map(|()| true))
}

/// Flushes a session to the disk. A database does that with each transaction.
pub fn sync_session(path: &Path) -> io::Result<()> {
    if rows(path).is_some() {
        return Ok(());
    }
    fs::File::open(path)?.sync_all()?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Whether the rows of a session are at least those in a file. Nothing where the path is not that of rows.
pub fn rows_hold_all_of(path: &Path, file: &Path) -> Option<io::Result<bool>> {
    rows(path).map(|rows| (rows.holds_all_of)(path, file))
}

/// A digest of the rows of a session, unless they have more than `most` bytes. Nothing where the path is not that of rows.
pub fn digest_of_rows(path: &Path, most: u64) -> Option<io::Result<Option<u64>>> {
    rows(path).map(|rows| (rows.digest)(path, most))
}
