//! The title of a session: one column of its row.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::params;

use super::database::{self, SessionRows, failed, gone};
use super::home;

/// Sets the title; where `only` is given, only if that is the title now. The times stay: the conversation is the same.
pub(super) fn set(path: &Path, title: &str, only: Option<&str>) -> io::Result<()> {
    let (database, id) = home::split(path).ok_or_else(gone)?;
    let connection = database::open_to_write(database)?;
    const QUERY: &str = "UPDATE session SET title = ?2 WHERE id = ?1 AND (?3 IS NULL OR title = ?3)";
    let changed = connection.execute(QUERY, params![id, title, only]).map_err(|error| failed(&error))?;
    // A title that was changed since is the user's.
    if changed == 0 && only.is_none() { Err(gone()) } else { Ok(()) }
}

/// The title of a session for which the model has found none yet, as OpenCode writes it.
pub(super) fn placeholder(path: &Path) -> io::Result<String> {
    let rows = SessionRows::open(path)?;
    let created = rows.session().number("time_created").unwrap_or(0);
    let time = Timestamp::from_millisecond(created).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(format!("New session - {}", time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")))
}
