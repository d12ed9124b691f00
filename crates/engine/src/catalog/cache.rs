//! The catalog's cache on disk: one SQLite file, one row per session file. Losing it costs one slow listing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents::Stamp;
use rusqlite::{Connection, params};
use transcript::Summary;

use super::Entry;
use crate::registry::{create_private_file, create_private_folder};

/// Changes with every change of the facts or of how they are worked out; another number means: begin anew.
const FORMAT: i64 = 1;

pub(super) struct Cache {
    connection: Connection,
    generation: String,
}

impl Cache {
    /// Opens the cache, or makes a new one where it is missing, damaged or of another format.
    pub(super) fn open(folder: &Path) -> Option<Cache> {
        let path = folder.join("catalog.db");
        create_private_folder(folder).ok()?;
        if let Ok(cache) = Self::try_open(&path) {
            return Some(cache);
        }
        remove(&path);
        Self::try_open(&path).ok()
    }

    fn try_open(path: &Path) -> Result<Cache, Box<dyn std::error::Error>> {
        create_private_file(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if format == 0 {
            connection.execute_batch(&format!(
                "PRAGMA journal_mode = wal;
                 BEGIN IMMEDIATE;
                 CREATE TABLE IF NOT EXISTS files (
                    path     BLOB PRIMARY KEY,
                    size     INTEGER NOT NULL,
                    modified INTEGER NOT NULL,
                    inode    INTEGER NOT NULL,
                    born     INTEGER,
                    summary  BLOB NOT NULL
                 ) STRICT, WITHOUT ROWID;
                 CREATE TABLE IF NOT EXISTS generation (word TEXT NOT NULL) STRICT;
                 INSERT INTO generation SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM generation);
                 PRAGMA user_version = {FORMAT};
                 COMMIT;"
            ))?;
        } else if format != FORMAT {
            return Err("another format".into());
        }
        connection.pragma_update(None, "synchronous", "off")?;
        let generation = connection.query_row("SELECT word FROM generation", [], |row| row.get(0))?;
        Ok(Cache { connection, generation })
    }

    pub(super) fn generation(&self) -> &str {
        &self.generation
    }

    /// Everything that is known; what cannot be read is as good as unknown.
    pub(super) fn load(&self) -> HashMap<OsString, (Stamp, Summary)> {
        let read = || -> rusqlite::Result<HashMap<OsString, (Stamp, Summary)>> {
            let mut statement =
                self.connection.prepare("SELECT path, size, modified, inode, born, summary FROM files")?;
            let mut rows = statement.query([])?;
            let mut known = HashMap::new();
            while let Some(row) = rows.next()? {
                let path = os_string(row.get_ref(0)?.as_bytes()?);
                let stamp = Stamp {
                    size: row.get::<_, i64>(1)?.cast_unsigned(),
                    modified: row.get(2)?,
                    inode: row.get::<_, i64>(3)?.cast_unsigned(),
                    born: row.get(4)?,
                };
                if let Ok(summary) = postcard::from_bytes(row.get_ref(5)?.as_bytes()?) {
                    known.insert(path, (stamp, summary));
                }
            }
            Ok(known)
        };
        read().unwrap_or_default()
    }

    /// Keeps what was read and forgets what is gone. A cache that cannot be written is no error.
    pub(super) fn store(&mut self, fresh: &[Entry], gone: &[&Path]) {
        if fresh.is_empty() && gone.is_empty() {
            return;
        }
        let mut write = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            {
                let mut insert = transaction.prepare(
                    "INSERT OR REPLACE INTO files (path, size, modified, inode, born, summary)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                for entry in fresh {
                    let Ok(summary) = postcard::to_stdvec(&entry.summary) else {
                        continue;
                    };
                    insert.execute(params![
                        os_bytes(&entry.summary.path),
                        entry.stamp.size.cast_signed(),
                        entry.stamp.modified,
                        entry.stamp.inode.cast_signed(),
                        entry.stamp.born,
                        summary
                    ])?;
                }
                let mut delete = transaction.prepare("DELETE FROM files WHERE path = ?1")?;
                for path in gone {
                    delete.execute([os_bytes(path)])?;
                }
            }
            transaction.commit()
        };
        let _ = write();
    }
}

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = fs::remove_file(PathBuf::from(name));
    }
}

#[cfg(unix)]
fn os_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn os_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}
