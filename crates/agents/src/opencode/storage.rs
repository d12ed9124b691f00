//! Moves sessions into the database and out of it, each in one transaction, and reads them back before it is committed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params_from_iter};

use super::database::{self, failed, gone};
use super::home;
use super::row::{Row, RowLines, RowReader, invalid, to_stored};
use crate::storage::RowStorage;
use crate::transcripts::Stamp;

/// The storage of OpenCode's sessions.
pub(super) static ROWS: RowStorage =
    RowStorage { holds: |path| home::split(path).is_some(), stamp, take_out, put_in, remove, holds_all_of, digest };

/// Tables of a log for synchronisation that OpenCode doesn't need to resume a session.
const LOG: [&str; 2] = ["event_sequence", "event"];

fn parts(path: &Path) -> io::Result<(&Path, &str)> {
    home::split(path).ok_or_else(gone)
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let (database, id) = parts(path)?;
    database::stamp(&database::open(database)?, id)
}

fn digest(path: &Path, most: u64) -> io::Result<Option<u64>> {
    let (database, id) = parts(path)?;
    let mut digest = Digest { hash: xxhash_rust::xxh3::Xxh3::new(), left: most };
    let connection = database::open(database)?;
    // The title and the times of a session change without anything being said in it.
    let written = each_row(&connection, id, &mut |row| match row.table.as_str() {
        "message" | "part" => digest.write_all(row.to_line().as_bytes()),
        _ => Ok(()),
    });
    match written {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(None),
        other => other.map(|()| Some(digest.hash.digest())),
    }
}

/// Whether each message and each part in a file is in the database.
fn holds_all_of(path: &Path, file: &Path) -> io::Result<bool> {
    let (database, _) = parts(path)?;
    let connection = database::open(database)?;
    let mut rows = RowReader::new(File::open(file)?)?;
    while let Some(row) = rows.next_row()? {
        let query = match row.table.as_str() {
            "message" => "SELECT 1 FROM message WHERE id = ?1",
            "part" => "SELECT 1 FROM part WHERE id = ?1",
            _ => continue,
        };
        if database::value::<i64>(&connection, query, [row.text("id").unwrap_or_default()])?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Hashes what is written, up to a length.
struct Digest {
    hash: xxhash_rust::xxh3::Xxh3,
    left: u64,
}

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the rows to a file, flushes it, and removes them.
fn take_out(from: &Path, to: &Path) -> io::Result<()> {
    let (database, id) = parts(from)?;
    let mut connection = database::open_to_write(database)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failed(&error))?;
    let mut part = to.as_os_str().to_owned();
    part.push(".tine-part");
    let part = Path::new(&part);
    let written = write_file(&transaction, id, part).and_then(|()| fs::rename(part, to));
    if let Err(error) = written {
        diagnostics::OrLog::or_log(fs::remove_file(part), format_args!("remove {}", part.display()));
        return Err(error);
    }
    let folder = to.parent().unwrap_or(Path::new("/"));
    let removed = crate::files::sync_folder(folder)
        .and_then(|()| remove_rows(&transaction, id))
        .and_then(|()| transaction.commit().map_err(|error| failed(&error)));
    if removed.is_err() {
        diagnostics::OrLog::or_log(fs::remove_file(to), format_args!("remove {}", to.display()));
    }
    removed
}

fn write_file(connection: &Connection, id: &str, path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::with_capacity(128 << 10, options.open(path)?);
    write_rows(connection, id, &mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// Writes all rows of a session and of those of its subagents.
fn write_rows(connection: &Connection, id: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = RowLines::new(out)?;
    let children = database::descendants(connection, id)?;
    for id in std::iter::once(id).chain(children.iter().map(String::as_str)) {
        each_row(connection, id, &mut |row| lines.row(&row))?;
    }
    Ok(())
}

/// Hands out the rows of one session, each after those that it refers to.
fn each_row(connection: &Connection, id: &str, see: &mut dyn FnMut(Row) -> io::Result<()>) -> io::Result<()> {
    const PROJECT: &str = "SELECT * FROM project WHERE id = (SELECT project_id FROM session WHERE id = ?1)";
    if !database::columns_of(connection, "project")?.is_empty() {
        database::rows(connection, "project", PROJECT, [id], &mut *see)?;
    }
    let session = database::row(connection, "session", "SELECT * FROM session WHERE id = ?1", [id])?;
    see(session.ok_or_else(gone)?)?;
    // Collected first, because the parts of each follow it.
    const MESSAGES: &str = "SELECT id FROM message WHERE session_id = ?1 ORDER BY time_created, id";
    let mut statement = connection.prepare_cached(MESSAGES).map_err(|error| failed(&error))?;
    let mut ids = statement.query([id]).map_err(|error| failed(&error))?;
    while let Some(found) = ids.next().map_err(|error| failed(&error))? {
        let message: rusqlite::types::Value = found.get(0).map_err(|error| failed(&error))?;
        database::rows(connection, "message", "SELECT * FROM message WHERE id = ?1", [&message], &mut *see)?;
        const PARTS: &str = "SELECT * FROM part WHERE message_id = ?1 ORDER BY id";
        database::rows(connection, "part", PARTS, [&message], &mut *see)?;
    }
    for table in tables_of_sessions(connection)? {
        let query = format!(r#"SELECT * FROM "{table}" WHERE session_id = ?1 ORDER BY rowid"#);
        database::rows(connection, &table, &query, [id], &mut *see)?;
    }
    for table in LOG {
        if !database::columns_of(connection, table)?.is_empty() {
            let query = format!("SELECT * FROM {table} WHERE aggregate_id = ?1 ORDER BY seq");
            database::rows(connection, table, &query, [id], &mut *see)?;
        }
    }
    Ok(())
}

/// Further tables whose rows belong to a session, also those of later versions.
fn tables_of_sessions(connection: &Connection) -> io::Result<Vec<String>> {
    const QUERY: &str = r#"SELECT m.name FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
        WHERE m.type = 'table' AND f."table" = 'session' AND f."from" = 'session_id' AND m.name <> 'message'
        AND m.name <> 'part' ORDER BY m.name"#;
    let read = || {
        let mut statement = connection.prepare(QUERY)?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<rusqlite::Result<_>>()
    };
    let names: Vec<String> = read().map_err(|error: rusqlite::Error| failed(&error))?;
    Ok(names.into_iter().filter(|name| is_plain_name(name)).collect())
}

fn is_plain_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn remove(path: &Path) -> io::Result<()> {
    let (database, id) = parts(path)?;
    let mut connection = match database::open_to_write(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failed(&error))?;
    remove_rows(&transaction, id)?;
    transaction.commit().map_err(|error| failed(&error))
}

/// Removes a session and those of its subagents. The rows of their messages go with them.
fn remove_rows(connection: &Connection, id: &str) -> io::Result<()> {
    let mut all = database::descendants(connection, id)?;
    all.push(id.to_owned());
    let remove = |id: &String| -> rusqlite::Result<()> {
        connection.execute("DELETE FROM part WHERE session_id = ?1", [id])?;
        connection.execute("DELETE FROM session WHERE id = ?1", [id]).map(drop)
    };
    all.iter().try_for_each(remove).map_err(|error| failed(&error))?;
    for table in LOG.iter().rev() {
        if !database::columns_of(connection, table)?.is_empty() {
            let query = format!("DELETE FROM {table} WHERE aggregate_id = ?1");
            all.iter().try_for_each(|id| connection.execute(&query, [id]).map(drop)).map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

/// Puts the rows in a file into the database. Everything is read back before the transaction is committed.
fn put_in(file: &Path, target: &Path) -> io::Result<()> {
    let (database, id) = parts(target)?;
    let mut connection = database::open_to_write(database)?;
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failed(&error))?;
    let taken = "SELECT 1 FROM session WHERE id = ?1";
    if database::value::<i64>(&transaction, taken, [id])?.is_some() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the database already has a session with this id"));
    }
    let mut rows = RowReader::new(File::open(file)?)?;
    let mut insert = Insert { connection: &transaction, tables: Vec::new(), sessions: Vec::new() };
    while let Some(row) = rows.next_row()? {
        insert.row(&row)?;
    }
    let sessions = insert.sessions;
    if sessions.first().map(String::as_str) != Some(id) {
        return Err(invalid("the file contains another session"));
    }
    verify(&transaction, file, &sessions)?;
    transaction.commit().map_err(|error| failed(&error))
}

/// Compares what the database has now with the file, row by row.
fn verify(connection: &Connection, file: &Path, sessions: &[String]) -> io::Result<()> {
    let mut expected = RowReader::new(File::open(file)?)?;
    let mut next = move || -> io::Result<Option<Row>> {
        loop {
            match expected.next_row()? {
                // The project may have been there before, and tine doesn't change it.
                Some(row) if row.table == "project" => {}
                other => return Ok(other),
            }
        }
    };
    let differs = || invalid("the database does not contain what was written to it");
    for id in sessions {
        each_row(connection, id, &mut |found| {
            if found.table == "project" {
                return Ok(());
            }
            let wanted = next()?.ok_or_else(differs)?;
            let is_same = wanted.table == found.table
                && wanted.values.iter().all(|(column, value)| found.values.get(column) == Some(value));
            if is_same { Ok(()) } else { Err(differs()) }
        })?;
    }
    if next()?.is_some() { Err(differs()) } else { Ok(()) }
}

/// Inserts rows.
struct Insert<'a> {
    connection: &'a Connection,
    /// The columns of the tables, read once.
    tables: Vec<(String, Vec<database::Column>)>,
    sessions: Vec<String>,
}

impl Insert<'_> {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        let Row { table, values } = row;
        if !is_plain_name(table) {
            return Err(invalid("a line is not a row"));
        }
        let connection = self.connection;
        let columns = self.columns(table)?;
        if columns.is_empty() {
            return Err(invalid(format!("the format of the database is unknown: it has no table `{table}`")));
        }
        let is_unknown = |column: &&String| !columns.iter().any(|known| known.name == **column);
        let unknown = values.iter().filter(|(_, value)| !value.is_null()).map(|(column, _)| column).find(is_unknown);
        if let Some(column) = unknown {
            let what = format!("the format of the database is unknown: table `{table}` has no column `{column}`");
            return Err(invalid(what));
        }
        let is_missing = |column: &&database::Column| {
            column.is_required && values.get(&column.name).is_none_or(serde_json::Value::is_null)
        };
        if let Some(column) = columns.iter().find(is_missing) {
            let name = &column.name;
            let what = format!("the format of the database is unknown: table `{table}` requires a column `{name}`");
            return Err(invalid(what));
        }
        let present: Vec<(&String, &serde_json::Value)> =
            values.iter().filter(|(column, _)| !is_unknown(column)).collect();
        let names: Vec<String> = present.iter().map(|(column, _)| format!("\"{column}\"")).collect();
        // Text that is not UTF-8 comes back as a blob, and is made text again.
        let is_text = |value: &serde_json::Value| value.get("bad_text").is_some();
        let place = |value| if is_text(value) { "CAST(? AS TEXT)" } else { "?" };
        let places = present.iter().map(|(_, value)| place(value)).collect::<Vec<_>>().join(", ");
        // The project may be there, and others use it.
        let verb = if table == "project" { "INSERT OR IGNORE" } else { "INSERT" };
        let query = format!("{verb} INTO {table} ({}) VALUES ({places})", names.join(", "));
        let stored: Option<Vec<_>> = present.iter().map(|(_, value)| to_stored(value)).collect();
        let stored = stored.ok_or_else(|| invalid("a line is not a row"))?;
        let inserted =
            connection.prepare_cached(&query).and_then(|mut insert| insert.execute(params_from_iter(stored)));
        inserted.map_err(|error| failed(&error))?;
        if table == "session" {
            self.sessions.extend(row.text("id").map(str::to_owned));
        }
        Ok(())
    }

    fn columns(&mut self, table: &str) -> io::Result<&[database::Column]> {
        let at = match self.tables.iter().position(|(name, _)| name == table) {
            Some(at) => at,
            None => {
                self.tables.push((table.to_owned(), database::columns_of(self.connection, table)?));
                self.tables.len() - 1
            }
        };
        Ok(&self.tables[at].1)
    }
}
