//! Where Codex keeps its threads: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, and flat in `archived_sessions/`.
//!
//! A thread can own several files. Going back to an earlier turn (`thread/revert`, 0.166) starts a new file
//! `rollout-<time>-<id>_<segment>.jsonl` that refers to the old one; the one with the newest segment is the thread.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::{entry_metadata, stamp};
use crate::{Discovery, SessionFile};

/// Codex's folder.
#[derive(Debug, Clone)]
pub(super) struct Home {
    root: PathBuf,
    /// The path of every file when the folders were last listed. A listing looks up the sources of hundreds of forks,
    /// and some no longer exist.
    index: Arc<Mutex<Option<Index>>>,
}

/// Files by the ids in their names.
#[derive(Debug, Default)]
struct Index {
    files: HashMap<String, Vec<(Name, PathBuf)>>,
    /// The time of the newest id; what is older and not here is nowhere.
    newest: i64,
    /// Ids that were not found.
    missing: HashSet<String>,
}

impl Index {
    fn note(&mut self, name: &Name, path: &Path) {
        for id in [Some(&name.thread), name.segment.as_ref()].into_iter().flatten() {
            self.newest = self.newest.max(time_of(id).unwrap_or(0));
            self.files.entry(id.clone()).or_default().push((name.clone(), path.to_owned()));
        }
    }

    fn get(&self, id: &str) -> &[(Name, PathBuf)] {
        self.files.get(id).map_or(&[], Vec::as_slice)
    }

    /// Whether its entry for `id` is still valid, by a quick check.
    fn holds_for(&self, id: &str) -> bool {
        let files = self.get(id);
        if files.is_empty() {
            return self.missing.contains(id) || time_of(id).is_some_and(|time| time <= self.newest);
        }
        files.iter().all(|(_, path)| path.exists())
    }
}

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

impl Home {
    pub(super) fn new(root: PathBuf) -> Self {
        Home { root, index: Arc::default() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Every thread's current file, in the order of their ids, with one `stat` each.
    pub(super) fn discover(&self) -> Discovery {
        let mut found = Discovery::default();
        let mut files: Vec<(Name, SessionFile)> = Vec::new();
        self.visit(None, &mut found.unreadable, &mut |name, entry| {
            if let Some(metadata) = entry_metadata(entry).filter(fs::Metadata::is_file) {
                files.push((name, SessionFile { path: entry.path(), stamp: stamp(&metadata) }));
            }
        });
        // The best file of each thread comes first and stays.
        files.sort_unstable_by(|(a, _), (b, _)| a.thread.cmp(&b.thread).then_with(|| b.rank().cmp(&a.rank())));
        files.dedup_by(|(next, _), (kept, _)| next.thread == kept.thread);
        found.files = files.into_iter().map(|(_, file)| file).collect();
        self.forget();
        found
    }

    /// The file that another file's `history_base` names: by the last id in its name.
    pub(super) fn find_segment(&self, id: &str) -> Option<PathBuf> {
        self.find(id, &|name| name.segment.as_deref().unwrap_or(&name.thread) == id)
    }

    /// The current file of a thread. A segment that was begun since the last look through the folders is not known
    /// yet; [`Home::forget`] makes sure of it.
    pub(super) fn find_thread(&self, id: &str) -> Option<PathBuf> {
        self.find(id, &|name| name.thread == id)
    }

    /// Every file of a thread.
    pub(super) fn files_of_thread(&self, id: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        self.visit(None, &mut Vec::new(), &mut |name, entry| {
            if name.thread == id {
                files.push(entry.path());
            }
        });
        files.sort();
        files
    }

    /// Forgets where files were, so that the next search looks through the folders.
    pub(super) fn forget(&self) {
        *self.index.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The current files of the threads that began between two times, oldest first.
    pub(super) fn threads_between(&self, from: i64, to: Option<i64>) -> Vec<PathBuf> {
        let mut newest: HashMap<String, (Name, PathBuf)> = HashMap::new();
        self.visit(Some(from), &mut Vec::new(), &mut |name, entry| {
            let born = time_of(&name.thread);
            let fits = born.is_none_or(|born| born >= from && to.is_none_or(|to| born <= to));
            let better = newest.get(&name.thread).is_none_or(|(known, _)| known.rank() < name.rank());
            if fits && better {
                newest.insert(name.thread.clone(), (name, entry.path()));
            }
        });
        let mut threads: Vec<(Name, PathBuf)> = newest.into_values().collect();
        threads.sort_by(|(a, _), (b, _)| a.thread.cmp(&b.thread));
        threads.into_iter().map(|(_, path)| path).collect()
    }

    fn find(&self, id: &str, fits: &dyn Fn(&Name) -> bool) -> Option<PathBuf> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if !index.as_ref().is_some_and(|index| index.holds_for(id)) {
            let mut fresh = Index::default();
            self.visit(None, &mut Vec::new(), &mut |name, entry| fresh.note(&name, &entry.path()));
            let mut missing = index.take().map(|index| index.missing).unwrap_or_default();
            missing.insert(id.to_owned());
            missing.retain(|id| fresh.get(id).is_empty());
            fresh.missing = missing;
            *index = Some(fresh);
        }
        let files = index.as_ref()?.get(id).iter().filter(|(name, path)| fits(name) && path.is_file());
        files.max_by(|(a, _), (b, _)| a.rank().cmp(&b.rank())).map(|(_, path)| path.clone())
    }

    /// Hands out every file that is named like a rollout. Folders are entered to the depth of a day and no further,
    /// so links that lead in circles end by themselves.
    fn visit(&self, since: Option<i64>, unreadable: &mut Unreadable, found: &mut dyn FnMut(Name, &fs::DirEntry)) {
        let sessions = self.root.join("sessions");
        let oldest = since.and_then(|since| day_folder(since - MILLISECONDS_PER_DAY));
        visit_folder(&sessions, Some((3, &sessions, oldest.as_deref())), false, unreadable, found);
        visit_folder(&self.root.join("archived_sessions"), None, true, unreadable, found);
    }
}

type Unreadable = Vec<(PathBuf, io::ErrorKind)>;

/// `deeper`: how many levels of folders are entered, the folder at the top, and the oldest day that matters.
fn visit_folder(
    folder: &Path,
    deeper: Option<(u8, &Path, Option<&Path>)>,
    archived: bool,
    unreadable: &mut Unreadable,
    found: &mut dyn FnMut(Name, &fs::DirEntry),
) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                unreadable.push((folder.to_owned(), error.kind()));
            }
            return;
        }
    };
    for entry in entries.flatten() {
        let file_name = entry.file_name();
        let Some(text) = file_name.to_str() else {
            continue;
        };
        if let Some(name) = Name::of(text, archived) {
            found(name, &entry);
            continue;
        }
        let Some((levels, top, oldest)) = deeper else {
            continue;
        };
        if levels == 0 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let path = entry.path();
        // Years, months and days are written with leading zeros, so a folder is compared by the part that it has.
        let too_old = oldest.zip(path.strip_prefix(top).ok()).is_some_and(|(oldest, here)| {
            let same_depth: PathBuf = oldest.components().take(here.components().count()).collect();
            here < same_depth.as_path()
        });
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => path.is_dir(),
            kind => kind.is_ok_and(|kind| kind.is_dir()),
        };
        if !too_old && is_folder {
            visit_folder(&path, Some((levels - 1, top, oldest)), archived, unreadable, found);
        }
    }
}

/// The parts of a rollout's file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// The thread's id.
    pub thread: String,
    /// The id of the segment, where the file is not the thread's first.
    pub segment: Option<String>,
    archived: bool,
    compressed: bool,
}

impl Name {
    fn of(name: &str, archived: bool) -> Option<Self> {
        let stem = name.strip_prefix("rollout-")?;
        let (stem, compressed) = match stem.strip_suffix(".zst") {
            Some(stem) => (stem, true),
            None => (stem, false),
        };
        let stem = stem.strip_suffix(".jsonl")?;
        let (stem, last) = split_id(stem)?;
        match stem.strip_suffix('_').and_then(split_id) {
            Some((_, thread)) => {
                Some(Name { thread: thread.to_owned(), segment: Some(last.to_owned()), archived, compressed })
            }
            None => Some(Name { thread: last.to_owned(), segment: None, archived, compressed }),
        }
    }

    /// Parses the name of the file at `path`.
    pub(super) fn of_path(path: &Path) -> Option<Self> {
        Name::of(path.file_name()?.to_str()?, false)
    }

    /// Of several files of a thread, the newest segment is the thread. Segments are named by time. If a file exists
    /// twice, the one that is not archived and not compressed counts, as for Codex while it compresses one.
    fn rank(&self) -> (Option<&str>, bool, bool) {
        (self.segment.as_deref(), !self.archived, !self.compressed)
    }
}

/// The UUID at the end, and the text before it.
fn split_id(stem: &str) -> Option<(&str, &str)> {
    let start = stem.len().checked_sub(36)?;
    let (before, id) = (stem.get(..start)?, stem.get(start..)?);
    let legal = id.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    legal.then_some((before, id))
}

/// Whether an id is a UUID as Codex writes them.
pub(super) fn is_uuid(id: &str) -> bool {
    split_id(id).is_some_and(|(before, _)| before.is_empty())
}

/// The creation time of an id in milliseconds since 1970, if it is a UUID of version 7.
pub(super) fn time_of(id: &str) -> Option<i64> {
    let (before, id) = split_id(id)?;
    if !before.is_empty() || id.as_bytes()[14] != b'7' {
        return None;
    }
    i64::from_str_radix(&format!("{}{}", &id[..8], &id[9..13]), 16).ok()
}

/// `YYYY/MM/DD` of a time in UTC. Codex names folders by local time, which is a day off at most.
fn day_folder(milliseconds: i64) -> Option<PathBuf> {
    let time = jiff::Timestamp::from_millisecond(milliseconds).ok()?;
    Some(PathBuf::from(time.strftime("%Y/%m/%d").to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "01a1e0f9-02cc-7b42-9fdf-a28cec9bdca5";
    const NEW: &str = "01a1e0f9-07e5-78d2-a445-d493d1ac402e";
    const SEGMENTS: [&str; 2] = ["01a1e0f9-055b-7e12-a270-d6afc9a28ee4", "01a1e0f9-072e-7e91-8f2f-4bb64864ad17"];

    fn home(files: &[&str]) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        }
        let home = Home::new(folder.path().to_owned());
        (folder, home)
    }

    fn names(home: &Home) -> Vec<String> {
        let relative = |file: SessionFile| file.path.strip_prefix(&home.root).unwrap().display().to_string();
        home.discover().files.into_iter().map(relative).collect()
    }

    #[test]
    fn names_tell_thread_and_segment() {
        let check = |name: &str, expected: Option<(&str, Option<&str>)>| {
            let name_of = Name::of(name, false);
            let told = name_of.as_ref().map(|name| (name.thread.as_str(), name.segment.as_deref()));
            assert_eq!(told, expected, "{name}");
        };
        check(&format!("rollout-2026-11-15T20-49-38-{OLD}.jsonl"), Some((OLD, None)));
        check(&format!("rollout-2026-11-15T20-49-38-{OLD}.jsonl.zst"), Some((OLD, None)));
        check(&format!("rollout-{OLD}.jsonl"), Some((OLD, None)));
        let reverted = format!("rollout-2026-11-15T20-49-39-{OLD}_{}.jsonl", SEGMENTS[0]);
        check(&reverted, Some((OLD, Some(SEGMENTS[0]))));
        for other in ["rollout-x.jsonl", "notes.txt", "rollout-.jsonl", &format!("{OLD}.jsonl"), "rollout-ü.jsonl.tmp"]
        {
            check(other, None);
        }
    }

    #[test]
    fn threads_are_found_wherever_codex_keeps_them() {
        let found = [
            format!("archived_sessions/rollout-2026-01-01T00-00-00-{}.jsonl", OLD.replace("02cc", "0001")),
            format!("sessions/rollout-2026-11-15T20-49-38-{}.jsonl", OLD.replace("02cc", "0002")),
            format!("sessions/2026/11/15/rollout-2026-11-15T20-49-38-{OLD}.jsonl"),
            format!("sessions/2026/11/15/rollout-2026-11-15T20-49-39-{NEW}.jsonl.zst"),
        ];
        let mut files: Vec<&str> = found.iter().map(String::as_str).collect();
        files.extend(["sessions/2026/11/15/notes.jsonl", "sessions/README", "session_index.jsonl"]);
        let (folder, home) = home(&files);
        fs::create_dir_all(
            folder.path().join(format!("sessions/rollout-2026-11-15T20-49-38-{}.jsonl", NEW.replace("07", "08"))),
        )
        .unwrap();
        assert_eq!(names(&home), found);
        assert_eq!(home.find_thread(NEW).unwrap(), folder.path().join(&found[3]));
        assert_eq!(home.find_thread(&OLD.replace("02cc", "0001")).unwrap(), folder.path().join(&found[0]));
        assert_eq!(home.find_thread(&OLD.replace("02cc", "0009")), None);
        assert_eq!(Home::new(folder.path().join("nowhere")).discover().unreadable, []);
    }

    #[test]
    fn a_reverted_thread_is_its_newest_segment() {
        let first = format!("sessions/2026/11/15/rollout-2026-11-15T20-49-38-{OLD}.jsonl");
        let second = format!("sessions/2026/11/15/rollout-2026-11-15T20-49-38-{OLD}_{}.jsonl", SEGMENTS[0]);
        let third = format!("sessions/2026/11/15/rollout-2026-11-15T20-49-39-{OLD}_{}.jsonl", SEGMENTS[1]);
        let (folder, home) = home(&[&first, &third, &second]);
        assert_eq!(names(&home), [third.as_str()]);
        assert_eq!(home.find_thread(OLD), Some(folder.path().join(&third)));
        assert_eq!(home.find_segment(OLD), Some(folder.path().join(&first)));
        assert_eq!(home.find_segment(SEGMENTS[0]), Some(folder.path().join(&second)));
    }

    #[test]
    fn a_file_that_is_there_twice_counts_once() {
        let plain = format!("sessions/2026/11/15/rollout-2026-11-15T20-49-38-{OLD}.jsonl");
        let archived = format!("archived_sessions/rollout-2026-11-15T20-49-38-{OLD}.jsonl");
        let (_folder, home) = home(&[&format!("{plain}.zst"), &plain, &archived]);
        assert_eq!(names(&home), [plain]);
    }

    #[test]
    fn a_file_in_the_folder_of_another_day_is_found_all_the_same() {
        let moved = format!("sessions/2020/01/01/rollout-2026-11-15T20-49-38-{OLD}.jsonl");
        let (folder, home) = home(&[&moved]);
        assert_eq!(home.find_segment(OLD), Some(folder.path().join(&moved)));
    }

    #[test]
    fn only_threads_of_the_wanted_time_are_candidates() {
        let file = |day: &str, id: &str| format!("sessions/{day}/rollout-2026-11-15T20-49-38-{id}.jsonl");
        let other_day = OLD.replace("01a1e0f9", "01a0e0f9");
        let (folder, home) =
            home(&[&file("2026/11/15", OLD), &file("2026/11/15", NEW), &file("2026/09/26", &other_day)]);
        let paths = |ids: &[&str]| -> Vec<PathBuf> {
            ids.iter().map(|id| folder.path().join(file("2026/11/15", id))).collect()
        };
        let born = time_of(OLD).unwrap();
        assert_eq!(home.threads_between(born, None), paths(&[OLD, NEW]));
        assert_eq!(home.threads_between(born, Some(born + 100)), paths(&[OLD]));
        assert_eq!(home.threads_between(born + 1, None), paths(&[NEW]));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_circles_end() {
        let file = format!("sessions/2026/11/15/rollout-2026-11-15T20-49-38-{OLD}.jsonl");
        let (folder, home) = home(&[&file]);
        std::os::unix::fs::symlink(folder.path().join("sessions"), folder.path().join("sessions/2026/11/16")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("sessions"), folder.path().join("sessions/2027")).unwrap();
        let dangling = format!("sessions/2026/11/15/rollout-2026-11-15T20-49-38-{NEW}.jsonl");
        std::os::unix::fs::symlink("/nowhere", folder.path().join(dangling)).unwrap();
        assert_eq!(home.discover().files.len(), 1);
    }
}
