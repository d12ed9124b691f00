//! Edits a configuration file of the user: reads, backs up, writes and renames, and restores it later.
//!
//! The registry remembers what tine wrote as a receipt. If a file has not been changed since, it is restored byte for
//! byte.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::advice::FileError;
use crate::private;
use crate::registry;
use crate::registry::Registry;
use crate::setup::{Error, Result};

/// The receipt for a file that tine changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// The hash of the content before tine's first change; `None` if there was no file.
    pub before: Option<String>,
    /// The hash of the content that tine wrote.
    pub after: String,
    /// The path of the backup.
    pub backup: Option<PathBuf>,
    /// Objects that existed before tine's first change, although they may be empty.
    pub kept: Vec<String>,
    /// Whether tine created the file.
    #[serde(default)]
    pub is_ours: bool,
    /// Folders that tine created for it, outermost first.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// An unfinished change. If it is still here, the run that started it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<StartedChange>,
}

/// A change of a file that was started and may not have happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartedChange {
    /// The hash of the intended content; `None` if another program decides it.
    pub after: Option<String>,
    /// Whether the change removes everything of tine's from the file.
    pub is_removal: bool,
}

/// A planned change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// The path as given; a symbolic link is followed and kept.
    pub path: PathBuf,
    pub before: Option<String>,
    /// The new content; `None` removes the file.
    pub after: Option<String>,
    /// For the receipt: the file's own objects that existed before; `None` if tine's entries are removed.
    pub kept: Option<Vec<String>>,
    /// Whether other users may read a new file.
    pub is_shared: bool,
}

/// A file's text; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
            Error::BadSettings { path: path.to_owned(), line, message: "it is not UTF-8".into() }
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::Read { path: path.to_owned(), source }.into()),
    }
}

/// Splits off the byte order mark that some editors write.
pub(super) fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

impl Registry {
    /// The receipt of a file, if it has one.
    pub(super) fn receipt(&self, path: &Path) -> registry::Result<Option<Receipt>> {
        Ok(self.recall_value::<Option<Receipt>>(&key(path))?.flatten())
    }

    pub(super) fn keep_receipt(&mut self, path: &Path, receipt: Option<&Receipt>) -> registry::Result<()> {
        self.remember_value(&key(path), &receipt)
    }
}

const KEY: &str = "setup/";

fn key(path: &Path) -> String {
    format!("{KEY}{}", real(path).display())
}

/// Whether a change of a file was begun and is not known to have ended.
pub(super) fn is_under_way(registry: &Registry) -> registry::Result<bool> {
    let has_begun = |(_, value): &(String, String)| {
        let receipt = serde_json::from_str::<Option<Receipt>>(value).ok().flatten();
        receipt.is_some_and(|receipt| receipt.begun.is_some())
    };
    Ok(registry.recall_all(KEY)?.iter().any(has_begun))
}

/// Finishes or discards what a killed run had started, and removes temporary copies of users' files that it left. They
/// may contain keys.
pub(super) fn settle(registry: &mut Registry) -> Result<()> {
    for (key, value) in registry.recall_all(KEY)? {
        let path = PathBuf::from(&key[KEY.len()..]);
        remove_strays(&path);
        let parsed = serde_json::from_str::<Option<Receipt>>(&value);
        let Some(mut receipt) = parsed.or_log(format_args!("read the receipt for {}", path.display())).flatten() else {
            continue;
        };
        let Some(begun) = receipt.begun.take() else { continue };
        let now = read(&path)?.as_deref().map(hash);
        let is_written = begun.after.is_none() || begun.after == now;
        if now == receipt.before {
            forget(registry, &path, &receipt)?;
        } else if is_written && begun.is_removal {
            registry.keep_receipt(&path, None)?;
        } else {
            if is_written {
                receipt.after = now.unwrap_or_default();
            }
            registry.keep_receipt(&path, Some(&receipt))?;
        }
    }
    Ok(())
}

/// Drops the receipt of a file that has its original content. Its backup is no longer needed.
fn forget(registry: &mut Registry, path: &Path, receipt: &Receipt) -> Result<()> {
    if let Some(backup) = &receipt.backup {
        fs::remove_file(backup).or_log(format_args!("remove {}", backup.display()));
    }
    if receipt.before.is_none() {
        // Only empty folders are removed.
        receipt.folders.iter().rev().for_each(|folder| {
            fs::remove_dir(folder).or_log(format_args!("remove {}", folder.display()));
        });
    }
    Ok(registry.keep_receipt(path, None)?)
}

/// Removes temporary files that [`write_atomically`] wrote next to a file in processes that no longer run.
fn remove_strays(path: &Path) {
    let prefix = stray_prefix(path);
    for entry in path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
        if process.is_some_and(|process: u32| process != std::process::id() && agents::process_start(process).is_none())
        {
            fs::remove_file(entry.path()).or_log(format_args!("remove {}", entry.path().display()));
        }
    }
}

/// The prefix of temporary names next to a file; the process id follows.
fn stray_prefix(path: &Path) -> String {
    format!(".{}.tine-", path.file_name().unwrap_or_default().to_string_lossy())
}

/// The original content of a file, if it has not been changed since and is still known: the text, or that there was
/// none.
pub(super) fn as_it_was(registry: &Registry, path: &Path, now: &str) -> Option<Option<String>> {
    let receipt = registry.receipt(path).or_log("read the receipt").flatten();
    let receipt = receipt.filter(|receipt| receipt.after == hash(now))?;
    let Some(before) = receipt.before else {
        return Some(None);
    };
    let kept = fs::read_to_string(receipt.backup?).ok()?;
    (hash(&kept) == before).then_some(Some(kept))
}

/// Refuses a read-only file. A rename would work, but it is read-only on purpose.
pub(super) fn check_writable(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.permissions().readonly() => {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only");
            Err(Error::NotSetUp { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Applies an edit. The backup is written before anything is changed.
pub(super) fn apply(registry: &mut Registry, edit: &Edit, now: Timestamp) -> Result<()> {
    let path = real(&edit.path);
    let failed = |source| Error::NotSetUp { path: edit.path.clone(), source };
    if read(&path)? != edit.before {
        return Err(Error::ChangedMeanwhile(edit.path.clone()));
    }
    check_writable(&edit.path)?;
    let metadata = fs::metadata(&path).ok();
    let untouched = edit.before.as_deref().and_then(|text| as_it_was(registry, &path, text)).is_some();
    let mut receipt = registry.receipt(&path)?.unwrap_or_default();
    receipt.is_ours |= edit.before.is_none();
    if !untouched {
        receipt.before = edit.before.as_deref().map(hash);
        receipt.backup = edit.before.is_some().then(|| backup_of(&path, now));
    }
    let after = edit.after.as_deref().map(hash);
    let restored = edit.kept.is_none() && after == receipt.before;
    if edit.after.is_some() {
        receipt.folders.extend(missing_folders(&path));
    }
    if let Some(kept) = &edit.kept {
        receipt.kept.clone_from(kept);
    }
    // Recorded before anything is written, so that the next run can continue wherever this one is killed.
    receipt.begun = Some(StartedChange { after: Some(after.unwrap_or_default()), is_removal: edit.kept.is_none() });
    registry.keep_receipt(&path, Some(&receipt))?;
    receipt.begun = None;
    let changed = change(&path, edit, &receipt, !untouched, metadata.map(|metadata| metadata.permissions()).as_ref());
    if let Err(error) = changed {
        settle(registry)?;
        return Err(failed(error));
    }
    match &edit.after {
        Some(after) if edit.kept.is_some() => {
            receipt.after = hash(after);
            Ok(registry.keep_receipt(&path, Some(&receipt))?)
        }
        _ if restored => forget(registry, &path, &receipt),
        _ => Ok(registry.keep_receipt(&path, None)?),
    }
}

/// Writes the backup and changes the file.
fn change(
    path: &Path,
    edit: &Edit,
    receipt: &Receipt,
    is_new_backup: bool,
    mode: Option<&fs::Permissions>,
) -> io::Result<()> {
    if let Some(backup) = receipt.backup.as_ref().filter(|_| is_new_backup) {
        private::copy(path, backup)?;
    }
    match &edit.after {
        Some(after) => {
            create_folders(path, edit.is_shared)?;
            write_atomically(path, after, mode, edit.is_shared)
        }
        None => {
            fs::remove_file(path)?;
            receipt.folders.iter().rev().for_each(|folder| {
                fs::remove_dir(folder).or_log(format_args!("remove {}", folder.display()));
            });
            Ok(())
        }
    }
}

/// Records that a program is about to change a file on tine's behalf, and keeps the file's text and a backup. `kept`
/// lists existing objects that may be empty.
pub(super) fn begin_change(
    registry: &mut Registry,
    path: &Path,
    kept: Vec<String>,
    now: Timestamp,
) -> Result<Option<(String, PathBuf)>> {
    let before = read(path)?;
    let backup = before.is_some().then(|| backup_of(&real(path), now));
    let begun = Some(StartedChange { after: None, is_removal: false });
    let receipt =
        Receipt { before: before.as_deref().map(hash), backup: backup.clone(), kept, begun, ..Receipt::default() };
    registry.keep_receipt(path, Some(&receipt))?;
    if let Some(backup) = &backup {
        private::copy(&real(path), backup).map_err(|source| Error::NotSetUp { path: path.to_owned(), source })?;
    }
    Ok(before.zip(backup))
}

/// The path of the backup: next to the file, under an unused name.
fn backup_of(path: &Path, now: Timestamp) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let time = now.strftime("%Y%m%dT%H%M%SZ");
    let names = (1..).map(|number| match number {
        1 => format!("{name}.tine-backup-{time}"),
        _ => format!("{name}.tine-backup-{time}-{number}"),
    });
    names.map(|name| path.with_file_name(name)).find(|backup| !backup.exists()).unwrap_or_default()
}

/// Writes a text to a temporary file, flushes it and renames it.
pub(super) fn write_atomically(
    path: &Path,
    text: &str,
    mode: Option<&fs::Permissions>,
    is_shared: bool,
) -> io::Result<()> {
    let beside = path.with_file_name(format!("{}{}", stray_prefix(path), std::process::id()));
    let write = || {
        let mut file =
            if is_shared && mode.is_none() { fs::File::create(&beside)? } else { private::open_file(&beside)? };
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        if let Some(mode) = mode {
            file.set_permissions(mode.clone())?;
        }
        file.sync_all()?;
        private::rename(&beside, path)
    };
    let written = write();
    if written.is_err() {
        fs::remove_file(&beside).or_log(format_args!("remove {}", beside.display()));
    }
    written
}

/// Rewrites an existing file; symbolic links and permissions are kept.
pub(super) fn rewrite(path: &Path, text: &str) -> Result<()> {
    let mode = fs::metadata(path).map(|metadata| metadata.permissions()).ok();
    write_atomically(&real(path), text, mode.as_ref(), false)
        .map_err(|source| Error::NotSetUp { path: path.to_owned(), source })
}

/// The missing folders above a file, outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).take_while(|above| !above.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

fn create_folders(path: &Path, is_shared: bool) -> io::Result<()> {
    match path.parent() {
        Some(folder) if is_shared => fs::create_dir_all(folder),
        Some(folder) => private::create_folder(folder),
        None => Ok(()),
    }
}

/// The real path of a file. A link to a file that does not exist yet resolves to its future path.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    match fs::read_link(path) {
        Ok(target) => folder.join(target),
        Err(_) => folder.join(path.file_name().unwrap_or_default()),
    }
}

fn hash(text: &str) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes()))
}
