//! Opens OpenCode's database and reads the rows of a session. All of its SQL that only reads is here.
//!
//! The database is in WAL mode, and a server may be writing to it. Readers open it read-only and hold one snapshot while
//! they read a session.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::Value as Stored;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use serde_json::Map;
use transcript::SessionId;

use super::home;
use super::row::{Row, invalid, to_json, to_stored};
use crate::transcripts::Stamp;

/// How long to wait for a process that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The tables and columns without which nothing can be read.
const NEEDED: [(&str, &[&str]); 3] = [
    ("session", &["id", "parent_id", "directory", "title", "version", "time_created", "time_updated"]),
    ("message", &["id", "session_id", "time_created", "time_updated", "data"]),
    ("part", &["id", "message_id", "session_id", "data"]),
];

/// Opens a database for reading.
pub(super) fn open(path: &Path) -> io::Result<Connection> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(invalid("it is not a regular file"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
    connection.busy_timeout(PATIENCE).map_err(|error| failed(&error))?;
    let checked = check_format(&connection);
    match checked {
        // In a folder that can't be written to, a WAL database can only be opened by promising that no process writes.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !has_log(path) => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            let connection = Connection::open_with_flags(uri(path, "immutable=1"), flags);
            let connection = connection.map_err(|error| failed(&error))?;
            check_format(&connection)?;
            Ok(connection)
        }
        other => other.map(|()| connection),
    }
}

/// Opens a database for writing; it must exist.
pub(super) fn open_to_write(path: &Path) -> io::Result<Connection> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(invalid("it is not a regular file"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
    let prepare = || {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // A session that was put in must survive a power cut.
        connection.pragma_update(None, "synchronous", "FULL")
    };
    prepare().map_err(|error| failed(&error))?;
    check_format(&connection)?;
    Ok(connection)
}

/// Whether there is a log with changes that the database doesn't contain yet.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

fn uri(path: &Path, options: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{uri}?{options}")
}

/// Refuses a database without the tables that a session consists of.
fn check_format(connection: &Connection) -> io::Result<()> {
    for (table, columns) in NEEDED {
        let there = columns_of(connection, table)?;
        let missing = columns.iter().find(|column| !there.iter().any(|known| known.name == **column));
        match missing {
            Some(_) if there.is_empty() => {
                return Err(invalid(format!("its format is unknown: it has no table `{table}`")));
            }
            Some(column) => {
                return Err(invalid(format!("its format is unknown: table `{table}` has no column `{column}`")));
            }
            None => {}
        }
    }
    Ok(())
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub name: String,
    /// Whether a row needs a value that the database doesn't supply.
    pub is_required: bool,
}

/// The columns of a table; an unknown table has none.
pub(super) fn columns_of(connection: &Connection, table: &str) -> io::Result<Vec<Column>> {
    let read = || {
        let mut statement = connection.prepare_cached(
            r#"SELECT name, "notnull" AND dflt_value IS NULL OR (pk > 0 AND type <> 'integer') FROM pragma_table_info(?1)"#,
        )?;
        let rows = statement.query_map([table], |row| Ok(Column { name: row.get(0)?, is_required: row.get(1)? }))?;
        rows.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|error: rusqlite::Error| failed(&error))
}

/// An error of SQLite as an error of the file.
pub(super) fn failed(error: &rusqlite::Error) -> io::Error {
    let (kind, what) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => (io::ErrorKind::InvalidData, "it is not a database".to_owned()),
        Some(ErrorCode::DatabaseCorrupt) => (io::ErrorKind::InvalidData, "the database is damaged".to_owned()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (io::ErrorKind::TimedOut, "another process keeps the database locked".to_owned())
        }
        Some(ErrorCode::CannotOpen) => (io::ErrorKind::PermissionDenied, "the database cannot be opened".to_owned()),
        Some(ErrorCode::ReadOnly) => (io::ErrorKind::PermissionDenied, "the database is read-only".to_owned()),
        Some(ErrorCode::DiskFull) => (io::ErrorKind::StorageFull, "the disk is full".to_owned()),
        _ => (io::ErrorKind::Other, error.to_string()),
    };
    io::Error::new(kind, what)
}

/// A session of the list.
#[derive(Debug)]
pub(super) struct Listed {
    pub id: SessionId,
    pub stamp: Stamp,
}

/// What a listing needs of each session. The last message changes when a turn ends, and the numbers of messages and parts
/// whenever something is added; both are answered by indexes.
const STAMP: &str = r#"SELECT s.id, s.time_created, s.time_updated, s.title, s."revert",
    (SELECT count(*) FROM message m WHERE m.session_id = s.id),
    (SELECT count(*) FROM part p WHERE p.session_id = s.id),
    (SELECT m.time_updated FROM message m WHERE m.session_id = s.id ORDER BY m.time_created DESC, m.id DESC LIMIT 1),
    s.directory, s.parent_id
    FROM session s"#;

/// Every session, with one query.
pub(super) fn list(connection: &Connection) -> io::Result<Vec<Listed>> {
    let read = || {
        let mut statement = connection.prepare(STAMP)?;
        let mut rows = statement.query([])?;
        let mut listed = Vec::new();
        while let Some(row) = rows.next()? {
            // Ids become paths and arguments, so anything else is not a session.
            let id = row.get_ref(0)?.as_str().ok().filter(|id| id.starts_with("ses_"));
            if let Some(id) = id.and_then(|id| SessionId::new(id).ok()) {
                listed.push(Listed { id, stamp: stamp_of(row)? });
            }
        }
        Ok(listed)
    };
    read().map_err(|error: rusqlite::Error| failed(&error))
}

/// The stamp of one session.
pub(super) fn stamp(connection: &Connection, id: &str) -> io::Result<Stamp> {
    let query = format!("{STAMP} WHERE s.id = ?1");
    let found = connection.prepare_cached(&query).and_then(|mut statement| {
        let mut rows = statement.query([id])?;
        rows.next()?.map(stamp_of).transpose()
    });
    found.map_err(|error| failed(&error))?.ok_or_else(gone)
}

/// The error for a session that is not there.
pub(super) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the database has no such session")
}

/// What a row counts for where the size of sessions is compared. Adding up their real sizes would mean to read them.
const BYTES_PER_ROW: u64 = 1 << 10;

fn stamp_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Stamp> {
    const NANOSECONDS: i64 = 1_000_000;
    let time = |column: usize| row.get_ref(column).map(|value| value.as_i64().unwrap_or(0).saturating_mul(NANOSECONDS));
    let count = |column: usize| row.get_ref(column).map(|value| value.as_i64().unwrap_or(0).unsigned_abs());
    let (created, updated, answered) = (time(1)?, time(2)?, time(7)?);
    let mut facts = Vec::new();
    for column in [3, 4, 8, 9] {
        facts.extend_from_slice(row.get_ref(column)?.as_bytes().unwrap_or_default());
        facts.push(0);
    }
    facts.extend_from_slice(&updated.to_le_bytes());
    Ok(Stamp {
        size: (count(5)? + count(6)?) * BYTES_PER_ROW,
        modified: updated.max(answered),
        // Changes of the title or the directory don't make a session longer.
        inode: xxhash_rust::xxh3::xxh3_64(&facts),
        born: Some(created),
    })
}

/// All values of the rows that a query returns.
pub(super) fn rows(
    connection: &Connection,
    table: &str,
    query: &str,
    values: impl rusqlite::Params,
    mut see: impl FnMut(Row) -> io::Result<()>,
) -> io::Result<()> {
    let failed = |error: rusqlite::Error| failed(&error);
    let mut statement = connection.prepare_cached(query).map_err(failed)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query(values).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let mut found = Map::new();
        for (index, name) in names.iter().enumerate() {
            found.insert(name.clone(), to_json(row.get_ref(index).map_err(failed)?));
        }
        see(Row::new(table, found))?;
    }
    Ok(())
}

/// The one row that a query returns.
pub(super) fn row(
    connection: &Connection,
    table: &str,
    query: &str,
    values: impl rusqlite::Params,
) -> io::Result<Option<Row>> {
    let mut found = None;
    rows(connection, table, query, values, |row| {
        found.get_or_insert(row);
        Ok(())
    })?;
    Ok(found)
}

/// The rows of one session, read in order from one snapshot.
pub(super) struct SessionRows {
    connection: Connection,
    session: Row,
    /// The time and the id of the last message that was read, as they are stored.
    last: Option<[Stored; 2]>,
}

impl SessionRows {
    /// Opens the session at a path.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (database, id) = home::split(path).ok_or_else(gone)?;
        SessionRows::of(open(database)?, id)
    }

    /// The session with this id.
    pub(super) fn of(connection: Connection, id: &str) -> io::Result<Self> {
        connection.execute_batch("BEGIN").map_err(|error| failed(&error))?;
        let session = row(&connection, "session", "SELECT * FROM session WHERE id = ?1", [id])?.ok_or_else(gone)?;
        Ok(SessionRows { connection, session, last: None })
    }

    pub(super) fn session(&self) -> &Row {
        &self.session
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn id(&self) -> &str {
        self.session.text("id").unwrap_or_default()
    }

    /// The next message with its parts.
    pub(super) fn next_message(&mut self) -> io::Result<Option<(Row, Vec<Row>)>> {
        const FIRST: &str = "SELECT * FROM message WHERE session_id = ?1 ORDER BY time_created, id LIMIT 1";
        const NEXT: &str = "SELECT * FROM message WHERE session_id = ?1 AND (time_created, id) > (?2, ?3)
            ORDER BY time_created, id LIMIT 1";
        let message = match &self.last {
            None => row(&self.connection, "message", FIRST, [self.id()])?,
            Some([time, id]) => row(&self.connection, "message", NEXT, params![self.id(), time, id])?,
        };
        let Some(message) = message else { return Ok(None) };
        let id = message.text("id").unwrap_or_default().to_owned();
        let mut parts = Vec::new();
        const PARTS: &str = "SELECT * FROM part WHERE message_id = ?1 ORDER BY id";
        rows(&self.connection, "part", PARTS, [&id], |part| {
            parts.push(part);
            Ok(())
        })?;
        // A damaged row may hold a value of any type there, which is compared as such.
        let stored = |column: &str| message.values.get(column).and_then(to_stored).unwrap_or(Stored::Null);
        self.last = Some([stored("time_created"), stored("id")]);
        Ok(Some((message, parts)))
    }
}

/// The sessions that a session started for its subagents, and theirs.
pub(super) fn descendants(connection: &Connection, id: &str) -> io::Result<Vec<String>> {
    const QUERY: &str = "WITH RECURSIVE below(id) AS (SELECT id FROM session WHERE parent_id = ?1
        UNION SELECT s.id FROM session s JOIN below b ON s.parent_id = b.id) SELECT id FROM below ORDER BY id";
    let read = || {
        let mut statement = connection.prepare_cached(QUERY)?;
        let ids = statement.query_map([id], |row| row.get(0))?;
        ids.collect::<rusqlite::Result<_>>()
    };
    read().map_err(|error: rusqlite::Error| failed(&error))
}

/// One value of a query, if there is a row.
pub(super) fn value<T: rusqlite::types::FromSql>(
    connection: &Connection,
    query: &str,
    values: impl rusqlite::Params,
) -> io::Result<Option<T>> {
    let found = connection.query_row(query, values, |row| row.get(0)).optional();
    found.map_err(|error| failed(&error))
}
