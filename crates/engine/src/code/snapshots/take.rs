//! Takes a snapshot: lists a working tree, reads what has changed since the last one, and writes a tree, a commit and a
//! ref. The working tree, the index, HEAD and the branches are only read, and nothing that the repository configures
//! runs.
//!
//! Killed at any moment, it leaves either no ref or a complete snapshot: git writes the ref last.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use jiff::Timestamp;

use super::rules;
use super::seen::{FileStamp, Seen, SeenFile, mode_of};
use super::trailers::{LeftOut, Reason, Trailers};
use crate::code::Result;
use crate::workspace::git::Git;
use crate::workspace::git::objects::{Blob, Mode, ObjectWriter, TreeChange, TreeEntry};
use crate::workspace::git::working_files::{TreePlace, WorkingFile, WorkingKind};

/// If more files than this have to be read, those that are the same as in the index are found first, because writing a
/// blob costs more than comparing it.
const WRITTEN_AT_ONCE: usize = 64;

/// How many threads look at files while git lists them. They wait for the file system, more than they compute.
const LOOKERS: usize = 4;

/// How often a file is read again that changes while it is read.
const ATTEMPTS: usize = 3;

/// A working tree to take snapshots of.
pub(super) struct Taker<'a> {
    pub git: &'a Git,
    pub place: &'a TreePlace,
    /// A private folder for temporary files.
    pub scratch: &'a Path,
    /// The file with what was seen last.
    pub seen: &'a Path,
    /// Larger files are left out.
    pub max_file_size: u64,
    pub now: Timestamp,
    /// Whether the files may have changed since the turn ended. It is asked when all of them have been read.
    pub is_too_late: &'a dyn Fn() -> bool,
}

/// The files of a tree: their modes and blobs.
type Entries = BTreeMap<PathBuf, (Mode, String)>;

/// The files of a working tree.
#[derive(Default)]
struct FoundFiles {
    files: BTreeMap<PathBuf, SeenFile>,
    unread: Vec<Unread>,
    left_out: Vec<LeftOut>,
    /// A fingerprint of git's list.
    list: u64,
    /// Whether more than the list and the stamps decides what is left out.
    is_complicated: bool,
}

/// What a first look at a working tree shows.
struct Glance<'a> {
    /// git's list of files.
    list: Vec<u8>,
    fingerprint: u64,
    /// What was known, and what is there now.
    files: &'a [SeenFile],
    found: Vec<Option<Metadata>>,
    /// When the looking began.
    looked: SystemTime,
    is_unchanged: bool,
}

/// A file that has to be read.
struct Unread {
    path: PathBuf,
    mode: Mode,
    stamp: FileStamp,
    /// Its blob in the index, if git tracks it as the same kind of file.
    tracked: Option<String>,
    looked: SystemTime,
}

impl Taker<'_> {
    /// Takes a snapshot and makes `reference` point to it. Returns its commit, or `None` if it was too late.
    pub(super) fn take(&self, reference: &str, subject: &str) -> Result<Option<String>> {
        let known = Seen::load(self.seen, &self.place.top);
        match self.take_with(known.as_ref(), reference, subject) {
            // git may have removed the objects of the last snapshot.
            Err(_) if known.is_some() => self.take_with(None, reference, subject),
            taken => taken,
        }
    }

    /// The present tree, and what it lacks.
    pub(super) fn tree(&self) -> Result<(String, Vec<LeftOut>)> {
        let known = Seen::load(self.seen, &self.place.top);
        match self.tree_with(known.as_ref()) {
            Err(_) if known.is_some() => self.tree_with(None),
            made => made,
        }
    }

    fn tree_with(&self, known: Option<&Seen>) -> Result<(String, Vec<LeftOut>)> {
        let (FoundFiles { files, left_out, .. }, writer) = self.read_all(self.glance(known)?)?;
        let (base, before) = self.base(known)?;
        let changes = changes(&before, &files);
        let mut writer = writer.map_or_else(|| self.git.object_writer(&self.place.top, self.scratch), Ok)?;
        let tree = writer.tree(base.as_deref(), &changes)?;
        writer.finish()?;
        Ok((tree, left_out))
    }

    fn take_with(&self, known: Option<&Seen>, reference: &str, subject: &str) -> Result<Option<String>> {
        let (git, top) = (self.git, &self.place.top);
        let glance = self.glance(known)?;
        if let Some(known) = known.filter(|known| glance.is_unchanged && known.head == self.place.head) {
            if (self.is_too_late)() {
                return Ok(None);
            }
            git.set_ref(top, reference, &known.commit)?;
            return Ok(Some(known.commit.clone()));
        }
        let (found, writer) = self.read_all(glance)?;
        if (self.is_too_late)() {
            return Ok(None);
        }
        let FoundFiles { files, left_out, list, is_complicated, .. } = found;
        let list = (!is_complicated && files.values().all(|file| file.stamp.is_some())).then_some(list);

        let (base, before) = self.base(known)?;
        let changes = changes(&before, &files);
        let head = self.place.head.clone();
        let same = known.filter(|known| changes.is_empty() && known.head == head && known.left_out == left_out);
        let (commit, tree) = match same {
            Some(known) => (known.commit.clone(), known.tree.clone()),
            None => {
                let trailers = Trailers { worktree: top.clone(), head: head.clone(), left_out: left_out.clone() };
                let mut writer = writer.map_or_else(|| git.object_writer(top, self.scratch), Ok)?;
                let made = writer.commit(base.as_deref(), &changes, &trailers.write(subject), self.now)?;
                writer.finish()?;
                (made.id, made.tree)
            }
        };
        git.set_ref(top, reference, &commit)?;
        let is_as_stored = same.is_some_and(|known| {
            known.files.len() == files.len()
                && known.list == list
                && known.files.iter().all(|file| files.get(&file.entry.path).is_some_and(|now| now.stamp == file.stamp))
        });
        if !is_as_stored {
            let files = files.into_values().collect();
            Seen { top: top.clone(), commit: commit.clone(), tree, head, left_out, list, files }.store(self.seen);
        }
        Ok(Some(commit))
    }

    /// Looks at all files, and writes the blobs of those that changed.
    fn read_all(&self, glance: Glance<'_>) -> Result<(FoundFiles, Option<ObjectWriter>)> {
        let mut found = self.look(glance);
        self.recognize(&mut found);
        let unread = std::mem::take(&mut found.unread);
        let mut writer = None;
        if !unread.is_empty() {
            let writer = writer.insert(self.git.object_writer(&self.place.top, self.scratch)?);
            let mut written: Vec<(Unread, Blob)> = Vec::new();
            for file in unread {
                let secret = rules::is_secret(&file.path).then_some(Reason::Secret);
                let large = (file.stamp.size() > self.max_file_size).then_some(Reason::Large);
                let reason = match secret.or(large) {
                    Some(reason) => reason,
                    None => match self.content(&file) {
                        Ok(Some(content)) => {
                            let blob = writer.blob(&content)?;
                            written.push((file, blob));
                            continue;
                        }
                        Ok(None) => continue,
                        Err(_) => Reason::Unreadable,
                    },
                };
                found.is_complicated |= reason != Reason::Secret || file.tracked.is_some();
                found.left_out.push(LeftOut { path: file.path, reason });
            }
            let blobs: Vec<Blob> = written.iter().map(|(_, blob)| *blob).collect();
            for ((file, _), object) in written.into_iter().zip(writer.ids(&blobs)?) {
                found.add(file, object);
            }
        }
        found.left_out.sort_by(|one, other| one.path.cmp(&other.path));
        Ok((found, writer))
    }

    /// Lets git list the files, and looks meanwhile at those that are known.
    fn glance<'a>(&self, known: Option<&'a Seen>) -> Result<Glance<'a>> {
        let (top, looked) = (&self.place.top, SystemTime::now());
        let files = known.map_or(&[][..], |known| &known.files);
        let share = files.len().div_ceil(LOOKERS).max(1);
        let look = |file: &SeenFile| top.join(&file.entry.path).symlink_metadata().ok();
        let (list, found) = thread::scope(|scope| {
            let lookers: Vec<_> = files
                .chunks(share)
                .map(|files| scope.spawn(move || files.iter().map(look).collect::<Vec<_>>()))
                .collect();
            let list = self.git.working_list(top);
            let found = lookers.into_iter().map(|looker| looker.join().unwrap_or_default());
            (list, found.flatten().collect::<Vec<_>>())
        });
        let list = list?;
        let fingerprint = xxhash_rust::xxh3::xxh3_64_with_seed(&list, self.max_file_size);
        let is_same = |(file, metadata): (&SeenFile, &Option<Metadata>)| {
            file.stamp.is_some() && file.stamp == metadata.as_ref().map(FileStamp::of)
        };
        let is_unchanged = known.is_some_and(|known| known.list == Some(fingerprint))
            && found.len() == files.len()
            && files.iter().zip(&found).all(is_same);
        Ok(Glance { list, fingerprint, files, found, looked, is_unchanged })
    }

    /// Recognizes the files that have not changed since the last snapshot.
    fn look(&self, glance: Glance<'_>) -> FoundFiles {
        let top = &self.place.top;
        let known = glance.files.iter().zip(glance.found);
        let mut known: HashMap<&Path, (&SeenFile, Option<Metadata>)> =
            known.map(|(file, now)| (file.entry.path.as_path(), (file, now))).collect();
        let mut folders = Folders::default();
        let mut found = FoundFiles { list: glance.fingerprint, ..FoundFiles::default() };
        for WorkingFile { path, kind } in WorkingFile::parse(&glance.list) {
            let (tracked, is_sparse) = match kind {
                WorkingKind::Repository => {
                    found.left_out.push(LeftOut { path, reason: Reason::Repository });
                    continue;
                }
                WorkingKind::Tracked { mode: Mode::Submodule, object, .. } => {
                    let folder = top.join(&path);
                    if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                        let is_there = folder.join(".git").symlink_metadata().is_ok();
                        let head = is_there.then(|| self.git.head(&folder).ok()).flatten();
                        found.keep(path, Mode::Submodule, head.unwrap_or(object));
                    }
                    continue;
                }
                WorkingKind::Tracked { mode, object, is_sparse } => (Some((mode, object)), is_sparse),
                WorkingKind::Untracked => (None, false),
            };
            let seen = known.remove(path.as_path());
            let looked = if seen.is_some() { glance.looked } else { SystemTime::now() };
            let metadata = match (folders.is_real(top, &path), &seen) {
                (false, _) => None,
                (true, Some((_, now))) => now.clone(),
                (true, None) => top.join(&path).symlink_metadata().ok(),
            };
            let Some((mode, metadata)) = metadata.and_then(|metadata| Some((mode_of(&metadata)?, metadata))) else {
                if let Some((mode, object)) = tracked.filter(|_| is_sparse) {
                    found.keep(path, mode, object);
                }
                continue;
            };
            if rules::is_refused(&path, mode) {
                found.left_out.push(LeftOut { path, reason: Reason::Name });
                continue;
            }
            let stamp = FileStamp::of(&metadata);
            let tracked = tracked.filter(|(kind, _)| (*kind == Mode::Symlink) == (mode == Mode::Symlink));
            let tracked = tracked.map(|(_, object)| object);
            // A file with a name of a secret is part of a tree only while it is the same as in the index.
            let may_stay = |object: &str| {
                tracked.as_deref() == Some(object) || !(rules::is_secret(&path) || metadata.len() > self.max_file_size)
            };
            let seen = seen.map(|(seen, _)| seen);
            match seen.filter(|seen| seen.stamp == Some(stamp) && may_stay(&seen.entry.object)) {
                Some(seen) => drop(found.files.insert(path, seen.clone())),
                None => found.unread.push(Unread { path, mode, stamp, tracked, looked }),
            }
        }
        found
    }

    /// Recognizes files that are the same as in the index, byte for byte, so that they need not be written.
    fn recognize(&self, found: &mut FoundFiles) {
        let is_guarded = |file: &Unread| rules::is_secret(&file.path) || file.stamp.size() > self.max_file_size;
        let is_one_of_many = found.unread.len() > WRITTEN_AT_ONCE;
        let is_checked = |file: &Unread| {
            file.tracked.is_some() && file.mode != Mode::Symlink && (is_one_of_many || is_guarded(file))
        };
        let paths: Vec<&Path> = found.unread.iter().filter(|file| is_checked(file)).map(|file| &*file.path).collect();
        if paths.is_empty() {
            return;
        }
        // A file that can't be read would end git; all of them are then read one by one.
        let Ok(ids) = self.git.blob_ids(&self.place.top, &paths) else { return };
        let ids: HashMap<PathBuf, String> = paths.into_iter().map(Path::to_owned).zip(ids).collect();
        for file in std::mem::take(&mut found.unread) {
            match ids.get(&file.path).filter(|id| file.tracked.as_ref() == Some(*id)) {
                Some(id) => found.add(file, id.clone()),
                None => found.unread.push(file),
            }
        }
    }

    /// The content of a file; `None` if it is gone.
    fn content(&self, file: &Unread) -> io::Result<Option<Vec<u8>>> {
        let path = self.place.top.join(&file.path);
        let read = if file.mode == Mode::Symlink { read_link(&path) } else { self.read(&path) };
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        for _ in 0..ATTEMPTS {
            content.clear();
            let mut file = open(path)?;
            let before = FileStamp::of(&file.metadata()?);
            // It may have grown since it was listed.
            file.by_ref().take(self.max_file_size + 1).read_to_end(&mut content)?;
            if content.len() as u64 > self.max_file_size {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            if FileStamp::of(&file.metadata()?) == before {
                break;
            }
        }
        Ok(content)
    }

    /// The tree to start from, and its files.
    fn base(&self, known: Option<&Seen>) -> Result<(Option<String>, Entries)> {
        let by_path = |entry: TreeEntry| (entry.path, (entry.mode, entry.object));
        if let Some(known) = known {
            let files = known.files.iter().map(|file| by_path(file.entry.clone())).collect();
            return Ok((Some(known.tree.clone()), files));
        }
        let Some(head) = &self.place.head else { return Ok((None, BTreeMap::new())) };
        let entries = self.git.tree_entries(&self.place.top, head, &[])?;
        Ok((self.git.tree_of(&self.place.top, head), entries.into_iter().map(by_path).collect()))
    }
}

impl FoundFiles {
    /// Adds a file that was read.
    fn add(&mut self, file: Unread, object: String) {
        let Unread { path, mode, stamp, looked, .. } = file;
        let entry = TreeEntry { path: path.clone(), mode, object };
        self.files.insert(path, SeenFile { entry, stamp: stamp.settled(looked) });
    }

    /// Adds something that is not read.
    fn keep(&mut self, path: PathBuf, mode: Mode, object: String) {
        self.files.insert(path.clone(), SeenFile { entry: TreeEntry { path, mode, object }, stamp: None });
    }
}

/// What turns one tree into the other; deletions first, because a file may be where a folder was.
fn changes(before: &Entries, after: &BTreeMap<PathBuf, SeenFile>) -> Vec<TreeChange> {
    let removed = before.keys().filter(|path| !after.contains_key(*path)).cloned().map(TreeChange::Remove);
    let is_new = |file: &&SeenFile| {
        before
            .get(&file.entry.path)
            .is_none_or(|(mode, object)| *mode != file.entry.mode || *object != file.entry.object)
    };
    removed.chain(after.values().filter(is_new).map(|file| TreeChange::Set(file.entry.clone()))).collect()
}

/// Which folders of a working tree are folders, and not links to somewhere else.
#[derive(Default)]
struct Folders(HashMap<PathBuf, bool>);

impl Folders {
    /// Whether all folders above a path are real.
    fn is_real(&mut self, top: &Path, path: &Path) -> bool {
        let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return true };
        if let Some(known) = self.0.get(folder) {
            return *known;
        }
        let is_folder = || top.join(folder).symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let is_real = self.is_real(top, folder) && is_folder();
        self.0.insert(folder.to_owned(), is_real);
        is_real
    }
}

#[cfg(unix)]
fn read_link(path: &Path) -> io::Result<Vec<u8>> {
    Ok(std::os::unix::ffi::OsStringExt::into_vec(fs::read_link(path)?.into_os_string()))
}

#[cfg(not(unix))]
fn read_link(path: &Path) -> io::Result<Vec<u8>> {
    Ok(fs::read_link(path)?.to_string_lossy().into_owned().into_bytes())
}

/// Opens a regular file. A pipe in its place must not block, nor a link lead elsewhere.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(all(test, unix))]
#[path = "take_tests.rs"]
mod tests;
