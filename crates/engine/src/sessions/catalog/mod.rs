//! The catalog: the facts of every session of every agent, kept up to date with one `stat` per file.
//!
//! Facts come from a cache that may be deleted at any time; a file whose size, time or inode has changed is read again.

pub(crate) mod cache;
pub(crate) mod facts;

pub use crate::progress::Quiet;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use agents::{Adapter, SessionFile, Stamp};
use cache::Cache;
pub use facts::Facts;
use facts::Outline;
pub(crate) use facts::{file_key, own_title};
use transcript::{Agent, DefectKind, SessionId, Summary, secrets};

/// A session file and its facts.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The facts, decoded on demand.
    pub summary: Facts,
    /// The state of the file when they were read.
    pub stamp: Stamp,
    /// Whether it was read in this refresh, because it is new or has changed.
    pub is_fresh: bool,
    turn_keys: TurnKeys,
    outline: Outline,
}

/// Where the fingerprints of a session's turns are.
#[derive(Debug, Clone)]
enum TurnKeys {
    /// With its other facts, as just read.
    WithFacts,
    /// In the cache, from this position, not loaded yet.
    InCache(u32),
    /// Among those of the whole cache, from this position.
    Loaded(u32, Arc<Vec<u64>>),
}

/// The catalog at one point in time.
#[derive(Default)]
pub struct Catalog {
    /// Every session file, including those of subagents and empty ones.
    pub entries: Vec<Entry>,
    /// Folders that could not be listed.
    pub unreadable: Vec<(Agent, PathBuf, std::io::ErrorKind)>,
    /// Changes whenever the cache is rebuilt; empty if there is no cache.
    pub generation: String,
    /// How many files were read in this refresh.
    pub scanned: usize,
    cache: Cache,
}

impl Catalog {
    /// Loads the turn fingerprints, which a listing does not need: [`Entry::turn_keys`].
    pub fn load_turn_keys(&mut self) {
        self.cache.load_turn_keys(&mut self.entries);
    }

    /// The folders that could not be listed, as messages.
    pub(crate) fn unlisted(&self) -> impl Iterator<Item = String> {
        let told = |(agent, path, kind): &(Agent, PathBuf, std::io::ErrorKind)| {
            format!("cannot read {agent}'s folder {}: {kind}", path.display())
        };
        self.unreadable.iter().map(told)
    }

    /// The sessions of an agent with this id.
    pub(crate) fn with_id<'a>(&'a self, agent: Agent, id: &'a SessionId) -> impl Iterator<Item = &'a Entry> {
        let beginning = crate::sessions::session::beginning(id.as_str());
        let may_be = move |entry: &&Entry| entry.beginning() == beginning && entry.agent() == agent;
        self.entries.iter().filter(may_be).filter(move |entry| entry.summary.id == *id)
    }
}

impl Entry {
    /// A file that was just read. Secrets in its titles are redacted, because titles are cached and shown in every
    /// listing.
    pub fn fresh(mut summary: Summary, stamp: Stamp) -> Self {
        for title in [&mut summary.custom_title, &mut summary.agent_title, &mut summary.first_prompt] {
            if let Some(Cow::Owned(masked)) = title.as_deref().map(|title| secrets::mask(title).0) {
                *title = Some(masked);
            }
        }
        let outline = Outline::of(&summary);
        Entry { summary: summary.into(), stamp, is_fresh: true, turn_keys: TurnKeys::WithFacts, outline }
    }

    /// The fingerprints of its turns; empty if they were not loaded.
    pub(crate) fn turn_keys(&self) -> &[u64] {
        match &self.turn_keys {
            TurnKeys::WithFacts => &self.summary.turn_keys,
            TurnKeys::InCache(_) => &[],
            TurnKeys::Loaded(from, all) => cache::slice(all, *from, self.outline.turns),
        }
    }

    /// Its transcript's [`file_key`].
    pub(crate) fn file(&self) -> u64 {
        self.outline.file
    }

    /// The session's agent.
    pub(crate) fn agent(&self) -> Agent {
        self.outline.agent
    }

    /// Whether users see it: subagents' threads and empty files are hidden.
    pub(crate) fn is_shown(&self) -> bool {
        self.outline.is_shown
    }

    /// [`facts::title_key`] of its current title.
    pub(crate) fn title_key(&self) -> u64 {
        self.summary.known().map_or(self.outline.title, facts::title_key)
    }

    /// When its last message was written; without messages, when its file was. In nanoseconds since 1970.
    pub(crate) fn updated(&self) -> i64 {
        self.summary.known().map_or(self.outline.updated, facts::updated).unwrap_or(self.stamp.modified)
    }

    /// The first eight characters of its id, as a number.
    pub(crate) fn beginning(&self) -> u64 {
        self.outline.beginning
    }

    /// Whether its facts are in memory.
    #[cfg(test)]
    pub(crate) fn is_decoded(&self) -> bool {
        self.summary.known().is_some()
    }

    /// Whether the file could be read to the end. Otherwise it is read again the next time.
    fn is_readable(&self) -> bool {
        !self.is_fresh || self.summary.defects.count(DefectKind::Unreadable) == 0
    }
}

/// Called during work that may take long.
pub trait Progress: Sync {
    /// `done` of `total` steps are done.
    fn step(&self, done: usize, total: usize);
}

impl Progress for Quiet {
    fn step(&self, _done: usize, _total: usize) {}
}

/// Lists every agent's files and reads those that have changed.
pub fn refresh(adapters: &[Box<dyn Adapter>], cache_folder: &Path, progress: &dyn Progress) -> Catalog {
    let mut catalog = Catalog::default();
    let mut files: Vec<(Agent, SessionFile)> = Vec::new();
    // Folders are listed while the cache is read: without changes, a listing does little else.
    let mut cache = std::thread::scope(|scope| {
        let walks: Vec<_> =
            adapters.iter().map(|adapter| (adapter.agent(), scope.spawn(|| adapter.discover()))).collect();
        let cache = Cache::load(cache_folder);
        for (agent, walk) in walks {
            let found = walk.join().unwrap_or_default();
            files.extend(found.files.into_iter().map(|file| (agent, file)));
            catalog.unreadable.extend(found.unreadable.into_iter().map(|(path, kind)| (agent, path, kind)));
        }
        cache
    });
    let mut changed = Vec::new();
    catalog.entries.reserve(files.len());
    let returned = cache.returned_bases(&files);
    for (agent, file) in files {
        match cache.take(file_key(&file.path), &file.stamp) {
            Some(entry) if !entry.outline.has_bases || still_holds(&entry.summary, &returned) => {
                catalog.entries.push(entry);
            }
            _ => changed.push((agent, file)),
        }
    }
    let mut fresh = scan_all(adapters, &changed, progress);
    let retitled = take_retitled(adapters, &cache, &mut catalog.entries, &fresh);
    fresh.extend(scan_all(adapters, &retitled, progress));
    catalog.scanned = fresh.iter().filter(|entry| entry.is_readable()).count();
    catalog.entries.extend(fresh);
    // Entries of a home that is not listed now, or of an unreadable folder, are kept for later.
    let unlisted: Vec<PathBuf> = catalog.unreadable.iter().map(|(_, path, _)| path.clone()).collect();
    let is_elsewhere = |path: &Path| {
        !adapters.iter().any(|adapter| path.starts_with(adapter.home()))
            || unlisted.iter().any(|folder| path.starts_with(folder))
    };
    let gone = cache.remaining_paths().any(|path| !is_elsewhere(&path));
    catalog.generation = match catalog.scanned > 0 || gone || cache.generation.is_empty() {
        true => cache.replace(&catalog.entries, is_elsewhere),
        false => cache.generation.clone(),
    };
    catalog.cache = cache;
    catalog
}

/// Whether the other files that contain a session's history are unchanged since it was read.
fn still_holds(summary: &Summary, returned: &HashSet<String>) -> bool {
    summary.bases.iter().all(|base| base.exists())
        && summary.missing_base.as_ref().is_none_or(|missing| !returned.contains(missing))
}

/// Takes out the sessions that may have titles in files that were just read. A file that only grew has those that it had.
fn take_retitled(
    adapters: &[Box<dyn Adapter>],
    cache: &Cache,
    entries: &mut Vec<Entry>,
    fresh: &[Entry],
) -> Vec<(Agent, SessionFile)> {
    let has_new_titles = |entry: &&Entry| {
        let titles = entry.summary.titles_of_others;
        let former = || cache.previous_entry(entry.file(), &entry.stamp);
        titles != 0 && former().is_none_or(|former| former.titles_of_others != titles)
    };
    let folders: HashSet<&Path> =
        fresh.iter().filter(has_new_titles).filter_map(|entry| entry.summary.path.parent()).collect();
    if folders.is_empty() {
        return Vec::new();
    }
    let is_retitled = |entry: &mut Entry| {
        let mut own = adapters.iter().filter(|adapter| adapter.agent() == entry.agent());
        entry.summary.path.parent().is_some_and(|folder| folders.contains(folder))
            && own.any(|adapter| adapter.is_titled_elsewhere(&entry.summary))
    };
    let taken = entries.extract_if(.., is_retitled);
    taken.map(|entry| (entry.agent(), SessionFile { path: entry.summary.path.clone(), stamp: entry.stamp })).collect()
}

/// Reads the given files with as many threads as there are cores.
fn scan_all(adapters: &[Box<dyn Adapter>], changed: &[(Agent, SessionFile)], progress: &dyn Progress) -> Vec<Entry> {
    if changed.is_empty() {
        return Vec::new();
    }
    let by_agent: HashMap<Agent, &dyn Adapter> =
        adapters.iter().map(|adapter| (adapter.agent(), adapter.as_ref())).collect();
    // Large files first, so that no thread is left alone with one at the end.
    let mut order: Vec<usize> = (0..changed.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(changed[*index].1.stamp.size));
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(changed.len());
    let mut fresh = Vec::with_capacity(changed.len());
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, order, by_agent) = (&next, &order, &by_agent);
            scope.spawn(move || {
                while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (agent, file) = &changed[*index];
                    let mut summary = by_agent[agent].scan(&file.path);
                    // Line layouts help a copy right after the scan, mostly of long files.
                    if *index != order[0] {
                        summary.layout = None;
                    }
                    if sender.send((*index, Entry::fresh(summary, file.stamp))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for entry in receiver {
            fresh.push(entry);
            progress.step(fresh.len(), changed.len());
        }
    });
    // In the order in which they were found.
    fresh.sort_unstable_by_key(|(index, _)| *index);
    fresh.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use agents::AgentEnvironment;
    use testkit::build::versions::every;

    use super::*;

    #[test]
    fn a_title_that_another_file_brings_later_is_found_in_a_warm_cache() {
        let (home, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let session = every().into_iter().find(|session| session.title == "Hoopoes in hiding").unwrap();
        let adapters = agents::all(&AgentEnvironment { home: home.path().to_owned(), ..AgentEnvironment::default() });
        let looked = || {
            let catalog = refresh(&adapters, cache.path(), &Quiet);
            let own = catalog.entries.iter().find(|entry| entry.summary.id.as_str() == session.id).unwrap();
            (own.summary.title().unwrap().to_owned(), catalog.scanned)
        };
        let mut alone = session.clone();
        let beside = std::mem::take(&mut alone.beside);
        let claude = home.path().join(".claude");
        alone.write(&claude);
        assert_eq!(looked(), ("Hide the hoopoes".to_owned(), 1));
        assert_eq!(looked(), ("Hide the hoopoes".to_owned(), 0));
        let mut other = alone.clone();
        (other.path, other.lines) = beside[0].clone();
        other.write(&claude);
        // Its own file is read again, although it is as it was.
        assert_eq!(looked(), ("Hoopoes in hiding".to_owned(), 2));
        // Nothing is read where nothing changed, and nothing else where a file only grows.
        assert_eq!(looked(), ("Hoopoes in hiding".to_owned(), 0));
        let mut next = OpenOptions::new().append(true).open(claude.join(&beside[0].0)).unwrap();
        writeln!(next, "{}", beside[0].1.last().unwrap()).unwrap();
        assert_eq!(looked(), ("Hoopoes in hiding".to_owned(), 1));
        fs::remove_dir_all(cache.path()).unwrap();
        assert_eq!(looked(), ("Hoopoes in hiding".to_owned(), 2));
    }
}
