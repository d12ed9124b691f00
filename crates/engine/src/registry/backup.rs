//! Backups of the registry, and rebuilding it from one of them.
//!
//! A backup is made after a change, at most once a day. tine does not wait for it to reach the disk, because that could
//! mean waiting for a whole worktree; a backup is verified before it is used instead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diagnostics::OrLog;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rusqlite::{Connection, OpenFlags};

use super::{Registry, schema};
use crate::private;
use crate::registry::{Error, RegistryProblem, Result};

/// How many backups are kept.
const GENERATIONS: usize = 5;

/// How many seconds lie between two backups.
const APART: i64 = 24 * 60 * 60;

/// How long a backup may take to be written.
const PARTS_LIVE: Duration = Duration::from_secs(60 * 60);

/// The time in the name of a file.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// A backup on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backup {
    pub path: PathBuf,
    pub at: Timestamp,
}

/// What a registry was rebuilt from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The damaged file itself, of which all could be read.
    Itself,
    /// The backup of this time.
    Backup(Timestamp),
    /// Nothing: it is created empty.
    Nothing,
}

/// A registry that was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rebuilt {
    pub from: Source,
    /// Where the file is now that it replaces.
    pub aside: PathBuf,
}

/// The backups of the registry at `path`, the newest first.
pub(crate) fn backups(path: &Path) -> Vec<Backup> {
    let prefix = format!("{}-", stem(path));
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let time = name.strip_prefix(&prefix)?.strip_suffix(".db")?;
        let at = DateTime::strptime(TIME, time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(Backup { path: entry.path(), at })
    };
    let entries = fs::read_dir(folder(path)).into_iter().flatten().flatten();
    let mut found: Vec<Backup> = entries.filter_map(of).collect();
    found.sort_by_key(|backup| std::cmp::Reverse(backup.at));
    found
}

/// Rebuilds the registry at `path`: from the file itself where all of it can be read, else from the newest backup that is
/// sound. The file that was there is kept aside.
pub(crate) fn rebuild(path: &Path, now: Timestamp) -> Result<Rebuilt> {
    let failed = |source: io::Error| Error::NotRepaired { path: path.to_owned(), source, moved_to: None };
    // Prevents concurrent creation and repair.
    let lock = private::open_file(&path.with_extension("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let part = with_suffix(path, ".tine-part");
    let from = prepare(path, &part).map_err(failed)?;
    let aside = (1..)
        .map(|number| match number {
            1 => with_suffix(path, &format!(".replaced-{}", now.strftime(TIME))),
            _ => with_suffix(path, &format!(".replaced-{}-{number}", now.strftime(TIME))),
        })
        .find(|aside| aside.symlink_metadata().is_err())
        .unwrap_or_default();
    let half_done = |source: io::Error| {
        let moved = ["-wal", "-shm", ""].iter().any(|suffix| with_suffix(&aside, suffix).exists());
        Error::NotRepaired { path: path.to_owned(), source, moved_to: moved.then(|| aside.clone()) }
    };
    // A remaining log would be replayed into the new registry, so it is removed first.
    for suffix in ["-wal", "-shm", ""] {
        match private::rename(&with_suffix(path, suffix), &with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(half_done(error)),
            _ => {}
        }
    }
    if from != Source::Nothing {
        private::rename(&part, path).map_err(half_done)?;
    }
    Ok(Rebuilt { from, aside })
}

/// Writes the content for the new registry next to it.
fn prepare(path: &Path, part: &Path) -> io::Result<Source> {
    fs::remove_file(part).or_log(format_args!("remove {}", part.display()));
    if write_copy(path, part).is_ok() && describe(part).is_some_and(|held| held > 0) {
        finish(part, false)?;
        return Ok(Source::Itself);
    }
    for backup in backups(path) {
        fs::remove_file(part).or_log(format_args!("remove {}", part.display()));
        if describe(&backup.path).is_some() && write_copy(&backup.path, part).is_ok() {
            finish(part, true)?;
            return Ok(Source::Backup(backup.at));
        }
    }
    fs::remove_file(part).or_log(format_args!("remove {}", part.display()));
    Ok(Source::Nothing)
}

/// Prepares a copy to replace the registry. An operation that was running when the backup was made has ended since: it
/// must not be treated as interrupted, because its results would be removed.
fn finish(part: &Path, is_backup: bool) -> io::Result<()> {
    let finish = || -> rusqlite::Result<()> {
        let connection = Connection::open(part)?;
        if is_backup {
            let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            // Older formats had no column for an undo that is under way.
            let undo = if format < 9 { "" } else { ", undo = NULL" };
            let query = format!("UPDATE operations SET state = 'failed'{undo} WHERE state IN ('started', 'undoing')");
            connection.execute(&query, [])?;
        }
        connection.pragma_update(None, "journal_mode", "wal")
    };
    finish().map_err(io::Error::other)?;
    fs::File::open(part)?.sync_all()
}

/// Writes all that a registry holds into a new file that only its owner can read.
fn write_copy(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    write_all(&source, to)
}

fn write_all(source: &Connection, to: &Path) -> rusqlite::Result<()> {
    private::new_file(to).map_err(|_| rusqlite::Error::InvalidPath(to.to_owned()))?;
    // SQLite accepts an existing file if it is empty.
    source.execute("VACUUM INTO ?1", [to.to_string_lossy()]).map(drop)
}

/// How many operations and names a registry holds that is sound and that this version can read.
fn describe(path: &Path) -> Option<i64> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).ok()?;
    if format < 1 || format > schema::MIGRATIONS.len() as i64 || !is_sound(&connection) {
        return None;
    }
    held(&connection).ok()
}

fn is_sound(connection: &Connection) -> bool {
    let told: rusqlite::Result<String> = connection.pragma_query_value(None, "integrity_check", |row| row.get(0));
    told.is_ok_and(|told| told == "ok")
}

fn held(connection: &Connection) -> rusqlite::Result<i64> {
    let query = "SELECT (SELECT count(*) FROM operations) + (SELECT count(*) FROM sessions WHERE name IS NOT NULL)";
    connection.query_row(query, [], |row| row.get(0))
}

/// Removes backups that a killed tine didn't finish.
fn remove_parts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
        let is_old = matches!(age, Ok(Ok(age)) if age > PARTS_LIVE);
        if is_old && entry.file_name().as_encoded_bytes().starts_with(b".") {
            fs::remove_file(entry.path()).or_log(format_args!("remove {}", entry.path().display()));
        }
    }
}

fn folder(path: &Path) -> PathBuf {
    path.with_file_name("backups")
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

impl Registry {
    /// Makes a backup, unless there is one of today.
    pub(crate) fn back_up(&self, now: Timestamp) -> Result<()> {
        let known = backups(&self.path);
        let is_recent = |backup: &Backup| (now.as_second() - backup.at.as_second()).abs() < APART;
        if !self.is_kept() || known.first().is_some_and(is_recent) {
            return Ok(());
        }
        let io_failed = |source: io::Error| {
            let (message, trouble) = (format!("no backup: {source}"), RegistryProblem::of_io(&source));
            Error::Unusable { path: self.path.clone(), message, trouble }
        };
        let folder = folder(&self.path);
        private::create_folder(&folder).map_err(io_failed)?;
        let name = format!("{}-{}.db", stem(&self.path), now.strftime(TIME));
        let part = folder.join(format!(".{name}.{}", std::process::id()));
        let written = write_all(&self.connection, &part).map_err(|error| self.failed(&error));
        let put = || {
            fs::File::open(&part)?.sync_all()?;
            private::rename(&part, &folder.join(name))
        };
        let written = written.and_then(|()| put().map_err(io_failed));
        if written.is_err() {
            fs::remove_file(&part).or_log(format_args!("remove {}", part.display()));
        }
        for old in known.iter().skip(GENERATIONS - 1) {
            fs::remove_file(&old.path).or_log(format_args!("remove {}", old.path.display()));
        }
        remove_parts(&folder);
        written
    }

    /// Whether all of it can be read.
    pub(crate) fn is_sound(&self) -> bool {
        is_sound(&self.connection)
    }

    /// Whether it has neither names nor operations, as one has that was just created.
    pub(crate) fn is_blank(&self) -> bool {
        held(&self.connection).is_ok_and(|held| held == 0)
    }

    /// Whether what makes it unusable is the file itself.
    pub(crate) fn is_damaged(&self) -> bool {
        match &self.unusable {
            Some((_, trouble)) => *trouble == RegistryProblem::Damaged,
            None => !self.is_sound(),
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript::{Agent, SessionId, SessionName};

    use super::super::SessionKey;
    use super::*;
    use crate::registry::operations::{Effects, OperationState};

    fn time(day: u32) -> Timestamp {
        format!("2026-11-{day:02}T12:00:00Z").parse().unwrap()
    }

    fn named(registry: &mut Registry, name: &str) {
        let id = SessionId::new(format!("id-of-{name}")).unwrap();
        let key = SessionKey { agent: Agent::Claude, id, path: format!("/{name}.jsonl").into() };
        assert!(registry.set_name(&key, Some(&SessionName::new(name).unwrap()), time(1)).unwrap());
    }

    fn names(registry: &Registry) -> Vec<String> {
        let mut names: Vec<String> = registry.names().unwrap().into_values().map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    /// The log holds all that was written lately, so it is lost, too.
    fn damage(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(with_suffix(path, suffix));
        }
    }

    #[test]
    fn a_backup_is_made_once_a_day_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.db");
        let mut registry = Registry::open(&path).unwrap();
        for day in 1..=9 {
            named(&mut registry, &format!("name-{day}"));
            registry.back_up(time(day)).unwrap();
            registry.back_up(time(day)).unwrap();
        }
        let found = backups(&path);
        assert_eq!(found.iter().map(|backup| backup.at).collect::<Vec<_>>(), [9, 8, 7, 6, 5].map(time));
        assert_eq!(describe(&found[4].path), Some(5));
        #[cfg(unix)]
        for entry in fs::read_dir(folder.path().join("backups")).unwrap().flatten() {
            let mode = std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
        }
    }

    #[test]
    fn a_damaged_registry_is_rebuilt_from_the_newest_backup_that_is_sound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.db");
        let mut registry = Registry::open(&path).unwrap();
        for day in 1..=3 {
            named(&mut registry, &format!("name-{day}"));
            registry.back_up(time(day)).unwrap();
        }
        named(&mut registry, "too-late");
        drop(registry);
        damage(&path, "not a database at all, but long enough to be looked at as one");
        fs::write(&backups(&path)[0].path, "not a backup either").unwrap();
        let error = Registry::open(&path).unwrap_err();
        assert!(Registry::stand_in(&path, &error).unwrap().is_damaged());
        let rebuilt = rebuild(&path, time(4)).unwrap();
        assert_eq!(rebuilt.from, Source::Backup(time(2)));
        assert!(fs::read_to_string(&rebuilt.aside).unwrap().starts_with("not a database"));
        let registry = Registry::open(&path).unwrap();
        assert_eq!(names(&registry), ["name-1", "name-2"]);
        // Without any backup it begins anew.
        drop(registry);
        fs::remove_dir_all(folder.path().join("backups")).unwrap();
        damage(&path, "damaged once more");
        assert_eq!(rebuild(&path, time(4)).unwrap().from, Source::Nothing);
        assert!(Registry::open(&path).unwrap().is_blank());
    }

    /// It would be taken for one that was cut off, and the fork that it made would be removed.
    #[test]
    fn an_operation_that_was_under_way_at_the_backup_is_not_cleaned_up_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.db");
        let mut registry = Registry::open(&path).unwrap();
        registry.begin_operation("fork x", &Effects::Forks, None, time(1)).unwrap();
        registry.back_up(time(1)).unwrap();
        drop(registry);
        damage(&path, "damaged");
        rebuild(&path, time(2)).unwrap();
        assert!(matches!(Registry::open(&path).unwrap().operations().unwrap()[0].state, OperationState::Failed));
    }

    /// What is only in the log is there, too, and so are names; nothing of it can be changed.
    #[test]
    fn a_stand_in_has_what_can_be_read_and_records_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.db");
        let mut registry = Registry::open(&path).unwrap();
        named(&mut registry, "mine");
        let message = "read-only".to_owned();
        let error = Error::Unusable { path: path.clone(), message, trouble: RegistryProblem::ReadOnly };
        let mut stand_in = Registry::stand_in(&path, &error).unwrap();
        assert_eq!(names(&stand_in), ["mine"]);
        let begun = stand_in.begin_operation("fork x", &Effects::Forks, None, time(1));
        assert!(matches!(begun, Err(Error::NotRecordable { .. })));
        assert!(registry.operations().unwrap().is_empty());
    }
}
