//! The catalog: the facts of every session of every agent, kept up to date at the price of one `stat` per file.
//!
//! Facts come from a cache that may be deleted at any time; a file whose size, time or inode changed is read again.

mod cache;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use agents::{SessionFile, Stamp, Store};
use cache::Cache;
use transcript::{Agent, Summary};

/// One session file and what is known of it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The facts.
    pub summary: Summary,
    /// What the file looked like when they were read.
    pub stamp: Stamp,
    /// Whether it was read in this look, because it is new or has changed.
    pub is_fresh: bool,
}

/// The catalog after one look at the disk.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Every session file, subagents and empty ones included.
    pub entries: Vec<Entry>,
    /// Folders that could not be looked at.
    pub unreadable: Vec<(Agent, PathBuf, std::io::ErrorKind)>,
    /// Changes whenever the cache is begun anew.
    pub generation: String,
    /// How many files were read in this look.
    pub scanned: usize,
}

/// Told about work that may take long.
pub trait Progress: Sync {
    /// `done` of `total` steps are done.
    fn step(&self, done: usize, total: usize);
}

/// Nobody is watching.
pub struct Quiet;

impl Progress for Quiet {
    fn step(&self, _done: usize, _total: usize) {}
}

/// Looks at every agent's files and reads those that changed.
pub fn refresh(stores: &[Box<dyn Store>], cache_folder: &Path, progress: &dyn Progress) -> Catalog {
    let mut catalog = Catalog::default();
    let mut files: Vec<(Agent, SessionFile)> = Vec::new();
    // The cache is read while the folders are walked: both take about as long.
    let (mut cache, mut known) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let cache = Cache::open(cache_folder);
            let known = cache.as_ref().map(Cache::load).unwrap_or_default();
            (cache, known)
        });
        for store in stores {
            let found = store.discover();
            files.extend(found.files.into_iter().map(|file| (store.agent(), file)));
            catalog.unreadable.extend(found.unreadable.into_iter().map(|(path, kind)| (store.agent(), path, kind)));
        }
        loading.join().unwrap_or_default()
    });
    catalog.generation = cache.as_ref().map(|cache| cache.generation().to_owned()).unwrap_or_default();

    let mut changed = Vec::new();
    catalog.entries.reserve(files.len());
    for (agent, file) in files {
        match known.remove(file.path.as_os_str()) {
            Some((stamp, summary)) if stamp == file.stamp => {
                catalog.entries.push(Entry { summary, stamp, is_fresh: false });
            }
            _ => changed.push((agent, file)),
        }
    }
    let fresh = scan_all(stores, &changed, progress);
    catalog.scanned = fresh.len();
    if let Some(cache) = &mut cache {
        // What is left in `known` has no file any more, or belongs to another home that is not looked at now.
        let gone: Vec<&Path> = known
            .keys()
            .map(Path::new)
            .filter(|path| stores.iter().any(|store| path.starts_with(store.home())))
            .collect();
        cache.store(&fresh, &gone);
    }
    catalog.entries.extend(fresh);
    catalog
}

/// Reads the given files with as many threads as there are cores.
fn scan_all(stores: &[Box<dyn Store>], changed: &[(Agent, SessionFile)], progress: &dyn Progress) -> Vec<Entry> {
    if changed.is_empty() {
        return Vec::new();
    }
    let by_agent: HashMap<Agent, &dyn Store> = stores.iter().map(|store| (store.agent(), store.as_ref())).collect();
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
                    let summary = by_agent[agent].scan(&file.path);
                    if sender.send(Entry { summary, stamp: file.stamp, is_fresh: true }).is_err() {
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
    fresh
}
