//! Fingerprints that show whether something has changed. They are stored, so they must not change between versions
//! (FNV-1a). They protect against oversight, not against forgery.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::entry;

/// A fingerprint in the making.
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    /// Adds some bytes, so that they cannot run into those that follow.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.mix(bytes);
        self.mix(&(bytes.len() as u64).to_le_bytes());
    }

    /// Adds what a file holds, or where a link leads; a folder adds the looks of all that is in it.
    pub(crate) fn add_content(&mut self, path: &Path) -> io::Result<()> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                self.add(b"nothing");
                return Ok(());
            }
            metadata => metadata?,
        };
        if metadata.is_dir() {
            return self.add_looks(path);
        }
        self.add(&entry::mode(&metadata).to_le_bytes());
        if !metadata.is_file() {
            return self.add_looks_of(path, &metadata);
        }
        let mut file = entry::open(path)?;
        let mut buffer = vec![0; 1 << 16];
        let mut length = 0_u64;
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                self.mix(&length.to_le_bytes());
                return Ok(());
            }
            self.mix(&buffer[..count]);
            length += count as u64;
        }
    }

    /// Adds kind, size, time and mode of everything in a folder.
    pub(crate) fn add_looks(&mut self, folder: &Path) -> io::Result<()> {
        self.add_looks_of(folder, &fs::symlink_metadata(folder)?)?;
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        entries.sort();
        self.add(&(entries.len() as u64).to_le_bytes());
        for path in entries {
            // git rewrites its index whenever the status is queried. Staged changes are detected by their objects.
            if path.ends_with(".git/index") {
                continue;
            }
            self.add(path.file_name().unwrap_or_default().as_encoded_bytes());
            let metadata = fs::symlink_metadata(&path)?;
            if metadata.is_dir() { self.add_looks(&path)? } else { self.add_looks_of(&path, &metadata)? }
        }
        Ok(())
    }

    fn add_looks_of(&mut self, path: &Path, metadata: &Metadata) -> io::Result<()> {
        self.add(&entry::mode(metadata).to_le_bytes());
        if metadata.is_dir() {
            // Its time adds nothing to its entries, and git creates short-lived files there.
            self.add(b"folder");
        } else if metadata.is_symlink() {
            self.add(b"link");
            self.add(fs::read_link(path)?.as_os_str().as_encoded_bytes());
        } else if metadata.is_file() {
            self.add(b"file");
            self.add(&metadata.len().to_le_bytes());
            self.add(&nanoseconds(metadata.modified()?).to_le_bytes());
        } else {
            self.add(b"special");
        }
        Ok(())
    }

    fn add_sizes(&mut self, path: &Path) {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
                entries.sort();
                entries.iter().for_each(|path| self.add_sizes(path));
            }
            Ok(metadata) => {
                self.add(path.as_os_str().as_encoded_bytes());
                self.add(&metadata.len().to_le_bytes());
            }
            Err(_) => {}
        }
    }

    pub(crate) fn finish(self) -> String {
        format!("{:016x}", self.0)
    }

    fn mix(&mut self, bytes: &[u8]) {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, step);
    }
}

/// The fingerprint of all that is in a folder: names, kinds, sizes, times and modes.
pub(crate) fn digest_of(folder: &Path) -> io::Result<String> {
    let mut digest = Digest::new();
    digest.add_looks(folder)?;
    Ok(digest.finish())
}

/// The fingerprint of the names and sizes of files, including those in folders. Empty folders are ignored, and so are
/// times, which change without edits.
pub(crate) fn sizes_of(paths: &[PathBuf]) -> String {
    let mut digest = Digest::new();
    for path in paths {
        digest.add_sizes(path);
    }
    digest.finish()
}

/// The fingerprint of what a file holds.
pub(crate) fn content_digest(file: &Path) -> io::Result<String> {
    let mut digest = Digest::new();
    digest.add_content(file)?;
    Ok(digest.finish())
}

fn nanoseconds(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }
}
