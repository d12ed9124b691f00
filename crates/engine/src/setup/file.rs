//! A person's file that tine edits: read, backed up, written beside and put in place, and put back as it was.
//!
//! What tine wrote is remembered in the registry as a receipt. A file that nobody else has changed since becomes again
//! what it was, byte for byte.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::private;
use crate::registry::Registry;

/// What is remembered of a file that tine changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// The hash of what was there before tine came; nothing where there was no file.
    pub before: Option<String>,
    /// The hash of what tine wrote.
    pub after: String,
    /// Where the file as it was is kept.
    pub backup: Option<PathBuf>,
    /// What was there before tine came, though it may be empty.
    pub kept: Vec<String>,
    /// Whether tine made the file.
    #[serde(default)]
    pub is_ours: bool,
    /// Folders that tine made for it, the outermost first.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
}

/// A change of one file that is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// The file as it is named; a link is followed and stays.
    pub path: PathBuf,
    pub before: Option<String>,
    /// Nothing to remove the file.
    pub after: Option<String>,
    /// What of the file's own was there before tine came, for the receipt; nothing where tine goes.
    pub kept: Option<Vec<String>>,
    /// Whether others on the machine may read a new file.
    pub is_shared: bool,
}

/// A file's text; nothing where there is no file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
            Error::BadSettings { path: path.to_owned(), line, message: "it is not UTF-8".into() }
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Unreadable { path: path.to_owned(), source }),
    }
}

/// A text without the mark that some editors put before it, and that mark.
pub(super) fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

impl Registry {
    /// What is remembered of a file, if the file is known.
    pub(super) fn receipt(&self, path: &Path) -> Option<Receipt> {
        serde_json::from_str(&self.recall(&key(path)).ok()??).ok()
    }

    pub(super) fn keep_receipt(&mut self, path: &Path, receipt: Option<&Receipt>) -> Result<()> {
        self.remember(&key(path), &serde_json::to_string(&receipt).unwrap_or_default())
    }
}

fn key(path: &Path) -> String {
    format!("setup/{}", real(path).display())
}

/// What the file was before tine came, if nobody else has changed it since and it is still known: the text, or that there
/// was none.
pub(super) fn as_it_was(registry: &Registry, path: &Path, now: &str) -> Option<Option<String>> {
    let receipt = registry.receipt(path).filter(|receipt| receipt.after == hash(now))?;
    let Some(before) = receipt.before else {
        return Some(None);
    };
    let kept = fs::read_to_string(receipt.backup?).ok()?;
    (hash(&kept) == before).then_some(Some(kept))
}

/// Refuses a file that is read-only. A rename would not mind, but whoever made it so does.
pub(super) fn check_writable(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.permissions().readonly() => {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only");
            Err(Error::NotSetUp { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Applies an edit. A backup is beside the file before anything is changed.
pub(super) fn apply(registry: &mut Registry, edit: &Edit, now: Timestamp) -> Result<()> {
    let path = real(&edit.path);
    let failed = |source| Error::NotSetUp { path: edit.path.clone(), source };
    if read(&path)? != edit.before {
        return Err(Error::ChangedMeanwhile(edit.path.clone()));
    }
    check_writable(&edit.path)?;
    let metadata = fs::metadata(&path).ok();
    let untouched = edit.before.as_deref().and_then(|text| as_it_was(registry, &path, text)).is_some();
    let mut receipt = registry.receipt(&path).unwrap_or_default();
    receipt.is_ours |= edit.before.is_none();
    if !untouched {
        receipt.before = edit.before.as_deref().map(hash);
        receipt.backup = match edit.before {
            Some(_) => Some(back_up(&path, now).map_err(failed)?),
            None => None,
        };
    }
    let restored = edit.kept.is_none() && edit.after.as_deref().map(hash) == receipt.before;
    match &edit.after {
        Some(after) => {
            receipt.folders.extend(create_folders(&path, edit.is_shared).map_err(failed)?);
            put(&path, after, metadata.map(|metadata| metadata.permissions()).as_ref(), edit.is_shared)
                .map_err(failed)?;
        }
        None => {
            fs::remove_file(&path).map_err(failed)?;
            // They go only if they are empty.
            receipt.folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
        }
    }
    match (&edit.kept, &edit.after) {
        (Some(kept), Some(after)) => {
            receipt.after = hash(after);
            receipt.kept.clone_from(kept);
            registry.keep_receipt(&path, Some(&receipt))
        }
        _ => {
            // The file is its own backup again.
            if let Some(backup) = receipt.backup.filter(|_| restored) {
                let _ = fs::remove_file(backup);
            }
            registry.keep_receipt(&path, None)
        }
    }
}

/// Notes that a program changed a file on tine's behalf; `before` is where the file as it was is kept, and `kept` what
/// was in it that may be empty.
pub(super) fn note_change(
    registry: &mut Registry,
    path: &Path,
    before: Option<(String, PathBuf)>,
    kept: Vec<String>,
) -> Result<()> {
    let (before, backup) = before.map(|(text, backup)| (hash(&text), backup)).unzip();
    let after = hash(&read(path)?.unwrap_or_default());
    registry.keep_receipt(path, Some(&Receipt { before, after, backup, kept, ..Receipt::default() }))
}

/// Copies a file beside itself, with its permissions, and returns where to.
pub(super) fn back_up(path: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let time = now.strftime("%Y%m%dT%H%M%SZ");
    let names = (1..).map(|number| match number {
        1 => format!("{name}.tine-backup-{time}"),
        _ => format!("{name}.tine-backup-{time}-{number}"),
    });
    let backup = names.map(|name| path.with_file_name(name)).find(|backup| !backup.exists()).unwrap_or_default();
    fs::copy(path, &backup)?;
    Ok(backup)
}

/// Writes a text beside its place, flushes it and renames it.
pub(super) fn put(path: &Path, text: &str, mode: Option<&fs::Permissions>, is_shared: bool) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.tine-{}", std::process::id()));
    let write = || {
        let mut file =
            if is_shared && mode.is_none() { fs::File::create(&beside)? } else { private::open_file(&beside)? };
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        if let Some(mode) = mode {
            file.set_permissions(mode.clone())?;
        }
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Writes a file that is there anew, as it is: a link stays, and so does its mode.
pub(super) fn put_again(path: &Path, text: &str) -> Result<()> {
    let mode = fs::metadata(path).map(|metadata| metadata.permissions()).ok();
    put(&real(path), text, mode.as_ref(), false).map_err(|source| Error::NotSetUp { path: path.to_owned(), source })
}

/// Makes the folders above a file, and returns those that were not there.
fn create_folders(path: &Path, is_shared: bool) -> io::Result<Vec<PathBuf>> {
    let Some(folder) = path.parent() else {
        return Ok(Vec::new());
    };
    let mut missing: Vec<PathBuf> =
        folder.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
    missing.reverse();
    if is_shared {
        fs::create_dir_all(folder)?;
    } else {
        private::create_folder(folder)?;
    }
    Ok(missing)
}

/// Where a file really is. A link to a file that is not there yet leads to where it will be.
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
