//! One entry of a directory: its kind, and what a copy of it keeps, if the system supports it.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use diagnostics::OrLog;

/// Tells one file or folder from every other of the machine.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    same_file(&fs::metadata(path).ok()?)
}

/// Opens a file for reading. If a link or a pipe has taken its place since, it is neither followed nor waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags as i32);
    }
    options.open(path)
}

/// Makes a file that is not there yet, for its owner alone until it is complete.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a folder, for its owner alone until it is complete.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    let builder = &mut fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
    builder.create(path)
}

/// Lets `to` share the blocks of `from` until one of them is changed. False where the file system cannot.
#[cfg(target_os = "linux")]
pub(super) fn share_blocks(from: &File, to: &File, can: &AtomicBool) -> bool {
    if !can.load(Ordering::Relaxed) {
        return false;
    }
    let shared = rustix::fs::ioctl_ficlone(to, from).is_ok();
    if !shared {
        // One refusal is as good as all: the file systems are the same for almost every file.
        can.store(false, Ordering::Relaxed);
    }
    shared
}

#[cfg(not(target_os = "linux"))]
pub(super) fn share_blocks(_from: &File, _to: &File, can: &AtomicBool) -> bool {
    // On macOS, the standard library already does this.
    can.store(false, Ordering::Relaxed);
    false
}

/// Flushes everything below a folder: flushing the whole file system is faster than file by file.
#[cfg(target_os = "linux")]
pub(crate) fn flush(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn flush(_folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    rustix::fs::sync();
    Ok(())
}

/// The next part of a file at or after an offset that is not a hole. `None` at the end; everything if the file system
/// doesn't report holes.
#[cfg(unix)]
pub(super) fn next_data(file: &File, metadata: &Metadata, from: u64) -> Option<std::ops::Range<u64>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    if std::os::unix::fs::MetadataExt::blocks(metadata) * 512 >= metadata.len() {
        return (from == 0).then_some(0..u64::MAX);
    }
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return None,
        Err(_) => from,
    };
    Some(start..seek(file, SeekFrom::Hole(start)).unwrap_or(u64::MAX))
}

#[cfg(not(unix))]
pub(super) fn next_data(_file: &File, _metadata: &Metadata, from: u64) -> Option<std::ops::Range<u64>> {
    (from == 0).then_some(0..u64::MAX)
}

/// Keeps mode, times and, where we may, the owner. The times come first, as a file may become read-only.
pub(super) fn keep(open: &File, metadata: &Metadata) -> io::Result<()> {
    let mut permissions = metadata.permissions();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let made = open.metadata()?;
        let is_foreign = (made.uid(), made.gid()) != (metadata.uid(), metadata.gid());
        if is_foreign && fchown(open, Some(metadata.uid()), Some(metadata.gid())).is_err() {
            // A setuid program must not run as another user.
            permissions.set_mode(permissions.mode() & !0o6000);
        }
    }
    if let Ok(modified) = metadata.modified() {
        open.set_times(FileTimes::new().set_modified(modified))?;
    }
    open.set_permissions(permissions)
}

#[cfg(unix)]
pub(super) fn copy_link(from: &Path, to: &Path, metadata: &Metadata) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
    use std::os::unix::fs::MetadataExt;
    std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() as _ },
    };
    // Not every file system keeps the time of a link.
    utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW).or_log(format_args!("set the times of {}", to.display()));
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn copy_link(from: &Path, to: &Path, _metadata: &Metadata) -> io::Result<()> {
    fs::copy(from, to).map(|_| ())
}

#[cfg(unix)]
pub(super) fn same_file(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(super) fn same_file(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Whether a file has more than one name.
#[cfg(unix)]
pub(super) fn has_other_names(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
pub(super) fn has_other_names(_metadata: &Metadata) -> bool {
    false
}

/// When something was last changed, its name and mode included, in nanoseconds.
#[cfg(unix)]
pub(super) fn changed(metadata: &Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec())
}

#[cfg(not(unix))]
pub(super) fn changed(metadata: &Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// The bits of a mode, for comparing.
#[cfg(unix)]
pub(super) fn mode(metadata: &Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777
}

#[cfg(not(unix))]
pub(super) fn mode(metadata: &Metadata) -> u32 {
    u32::from(metadata.permissions().readonly())
}

/// Gives every folder back to its owner, so that it can be emptied.
#[cfg(unix)]
pub(super) fn make_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .or_log(format_args!("make {} accessible", folder.display()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

#[cfg(not(unix))]
pub(super) fn make_writable(_folder: &Path) {}
