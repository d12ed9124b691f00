//! Files that were set to what they were at an earlier turn: writing them, and putting back what they replaced.
//!
//! What is replaced is first copied to the trash. Putting back touches only files that are as the restoration left
//! them, so it can be repeated after an interruption, and nobody's later work is lost.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use diagnostics::OrLog;

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::operations::{Error, Result};
use crate::private;
use crate::registry::operations::{Restoration, RestoredFile};
use crate::workspace;
use crate::workspace::directory::{self, Digest, stays_inside};
use crate::workspace::git::objects::Mode;

/// The folder in the trash folder for the replaced files.
const KEPT: &str = "kept";

/// The file at a path: its kind and its content in short. `None` if there is no file or link.
pub(crate) fn sign_on_disk(path: &Path) -> io::Result<Option<String>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        return Ok(Some(sign(Mode::Symlink, fs::read_link(path)?.as_os_str().as_encoded_bytes())));
    }
    // A file may be where an empty folder is. Another one stays, and is an error then.
    if !metadata.is_file() {
        return Ok(None);
    }
    let mode = if is_executable(&metadata) { Mode::Executable } else { Mode::File };
    Ok(Some(sign(mode, &fs::read(path)?)))
}

/// The same for a file that is not on disk yet.
pub(crate) fn sign(mode: Mode, content: &[u8]) -> String {
    let mut digest = Digest::new();
    digest.add(content);
    format!("{}-{}", mode.as_str(), digest.finish())
}

/// Whether something in the trash belongs to a restoration whose files can still be put back.
pub(crate) fn check_put_back(id: i64, restoration: &Restoration, force: bool) -> Result<()> {
    for (number, file) in restoration.files.iter().enumerate() {
        let path = restoration.directory.0.join(&file.path.0);
        let now = sign_on_disk(&path).map_err(|source| FileError::Read { path: path.clone(), source })?;
        if !force && now != file.after && now != file.before {
            return Err(Error::ChangedSince { id, path });
        }
        if file.before.is_some() && kept_file(restoration, number).symlink_metadata().is_err() {
            return Err(Error::TrashGone(id));
        }
    }
    Ok(())
}

/// Copies what will be replaced to the trash.
pub(crate) fn keep(restoration: &Restoration) -> Result<()> {
    let folder = restoration.trash.join(KEPT);
    private::create_folder(&folder).map_err(|source| FileError::Write { path: folder.clone(), source })?;
    for (number, file) in restoration.files.iter().enumerate().filter(|(_, file)| file.before.is_some()) {
        let (from, to) = (restoration.directory.0.join(&file.path.0), kept_file(restoration, number));
        directory::copy_one(&from, &to).map_err(|source| FileError::Write { path: to.clone(), source })?;
        let copied = sign_on_disk(&to).map_err(|source| FileError::Read { path: to.clone(), source })?;
        if copied != file.before {
            return Err(Error::ChangedMeanwhile(from));
        }
    }
    Ok(directory::flush(&folder).map_err(|source| FileError::Write { path: folder, source })?)
}

/// Makes a path of a restoration what it shall be: `content`, or nothing.
pub(crate) fn write(restoration: &Restoration, file: &RestoredFile, content: Option<(Mode, &[u8])>) -> Result<()> {
    let top = &restoration.directory.0;
    let path = top.join(&file.path.0);
    let failed = |source| FileError::Write { path: path.clone(), source };
    if !stays_inside(top, &file.path.0) {
        return Err(workspace::Error::InTheWay(path).into());
    }
    let now = sign_on_disk(&path).map_err(|source| FileError::Read { path: path.clone(), source })?;
    if now != file.before {
        return Err(Error::ChangedMeanwhile(path));
    }
    let Some((mode, content)) = content else {
        return Ok(fs::remove_file(&path).map_err(failed)?);
    };
    make_folders(top, &file.path.0).map_err(failed)?;
    Ok(put(&path, mode, content).map_err(failed)?)
}

/// Puts back what a restoration replaced. Files that have changed since are kept, with a warning.
pub(crate) fn put_back(ctx: &Ctx, restoration: &Restoration, force: bool) -> Result<()> {
    let top = &restoration.directory.0;
    let mut changed = Vec::new();
    // What was created goes first: a folder may be where a file was.
    for (number, file) in restoration.files.iter().enumerate().rev() {
        let path = top.join(&file.path.0);
        let failed = |source| FileError::Write { path: path.clone(), source };
        if !stays_inside(top, &file.path.0) {
            continue;
        }
        fs::remove_file(part_of(&path)).or_log(format_args!("remove {}", part_of(&path).display()));
        let now = sign_on_disk(&path).map_err(|source| FileError::Read { path: path.clone(), source })?;
        if now == file.before {
            continue;
        }
        if now != file.after && !force {
            changed.push(path);
            continue;
        }
        match file.before {
            None => fs::remove_file(&path).map_err(failed)?,
            Some(_) => {
                make_folders(top, &file.path.0).map_err(failed)?;
                let part = part_of(&path);
                directory::copy_one(&kept_file(restoration, number), &part).map_err(failed)?;
                private::rename(&part, &path).map_err(failed)?;
            }
        }
        for folder in folders_above(restoration, &file.path.0) {
            fs::remove_dir(top.join(folder)).or_log(format_args!("remove {}", folder.display()));
        }
    }
    for path in &changed {
        ctx.warn(format!("kept {}: it has changed since", path.display()));
    }
    if changed.is_empty() {
        directory::remove_tree(&restoration.trash).or_log(format_args!("remove {}", restoration.trash.display()));
    }
    Ok(())
}

/// The folders above a path that a restoration created, the deepest first.
fn folders_above<'a>(restoration: &'a Restoration, path: &'a Path) -> impl Iterator<Item = &'a Path> {
    let is_new = |folder: &&Path| restoration.folders.iter().any(|new| new.0 == *folder);
    path.ancestors().skip(1).take_while(is_new)
}

/// Writes a file under a temporary name and renames it, so that it never exists partially.
fn put(path: &Path, mode: Mode, content: &[u8]) -> io::Result<()> {
    let part = part_of(path);
    directory::remove_tree(&part)?;
    let written = || -> io::Result<()> {
        if mode == Mode::Symlink {
            return link(content, &part);
        }
        // A file that is replaced keeps its permissions, but for the right to execute it.
        let permissions = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).map(|old| old.permissions());
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&part)?;
        file.write_all(content)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        set_executable(&file, mode == Mode::Executable)
    };
    let done = written().and_then(|()| {
        // An empty folder may be where the file belongs.
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            fs::remove_dir(path)?;
        }
        fs::rename(&part, path)
    });
    if done.is_err() {
        directory::remove_tree(&part).or_log(format_args!("remove {}", part.display()));
    }
    done
}

fn make_folders(top: &Path, path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| fs::create_dir_all(top.join(folder)))
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".tine-restore-");
    let digest = xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_encoded_bytes());
    name.push(format!("{digest:016x}"));
    path.with_file_name(name)
}

fn kept_file(restoration: &Restoration, number: usize) -> PathBuf {
    restoration.trash.join(KEPT).join(number.to_string())
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &fs::Metadata) -> bool {
    false
}

/// Whoever may read a file may execute it, or nobody may.
#[cfg(unix)]
fn set_executable(file: &fs::File, wanted: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode();
    let new = if wanted { mode | ((mode & 0o444) >> 2) | 0o100 } else { mode & !0o111 };
    if new == mode { Ok(()) } else { file.set_permissions(fs::Permissions::from_mode(new)) }
}

#[cfg(not(unix))]
fn set_executable(_file: &fs::File, _wanted: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn link(target: &[u8], path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), path)
}

#[cfg(not(unix))]
fn link(_target: &[u8], _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
