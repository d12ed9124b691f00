//! Small helpers for reading the agents' files.

use std::fs::{DirEntry, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::transcripts::Stamp;

/// The [`Stamp`] of a file.
pub fn stamp(metadata: &Metadata) -> Stamp {
    let nanos = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map(|n| -n).unwrap_or(i64::MIN),
    };
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Stamp {
        size: metadata.len(),
        modified: metadata.modified().map(nanos).unwrap_or(0),
        inode,
        born: metadata.created().ok().map(nanos),
    }
}

/// Writes the names in a folder to the disk. A file that was created or renamed survives a power cut only after that. Some
/// file systems can't do it, and it fails for a folder that is writable but not readable.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Elsewhere a folder can't be opened, and a rename is written with the file.
#[cfg(not(unix))]
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens a regular file for reading. Opening a pipe or a device in its place could block forever.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reads a whole small file; see [`open_regular`].
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first 256 KB of a file, which hold its first records.
pub(crate) fn head_of(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    open_regular(path).ok()?.take(256 << 10).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The last part of a file.
pub(crate) fn tail_of(path: &Path) -> Option<Vec<u8>> {
    const TAIL: u64 = 256 << 10;
    let mut file = open_regular(path).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    Some(tail)
}

/// The metadata of a folder's entry, following links. Asking the entry is cheaper than looking up its whole path.
pub(crate) fn entry_metadata(entry: &DirEntry) -> Option<Metadata> {
    let metadata = entry.metadata().ok()?;
    if metadata.is_symlink() { std::fs::metadata(entry.path()).ok() } else { Some(metadata) }
}

/// Whether a text looks like a commit's hash or an abbreviation of one.
pub(crate) fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A stable 64-bit fingerprint of some bytes (FNV-1a). It is stored, so it must not change between versions.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
