//! Notices that the list of sessions has changed, without reading a transcript: folders get new files, transcripts of
//! open sessions grow, agents start and end, and other processes of tine write to the registry.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use agents::{Adapter, LiveSession};
use transcript::{Agent, SessionId};

use crate::context::Context;
use crate::sessions::session::Session;

/// The size and the time of a file or folder. `None` if it doesn't exist.
type WatchStamp = Option<(u64, i64)>;

/// What was seen of the sessions.
pub struct SessionWatch {
    adapters: Vec<Box<dyn Adapter>>,
    /// The registry's files.
    registry: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, WatchStamp>,
    open: HashMap<Agent, HashMap<SessionId, LiveSession>>,
}

impl SessionWatch {
    /// A watch that has seen nothing yet, so that its first look finds a change.
    pub fn new(context: &Context) -> Self {
        let registry = &context.paths.registry;
        let log =
            registry.with_file_name(format!("{}-wal", registry.file_name().unwrap_or_default().to_string_lossy()));
        SessionWatch {
            adapters: agents::all(&context.surroundings),
            registry: vec![registry.clone(), log],
            seen: BTreeMap::new(),
            open: HashMap::new(),
        }
    }

    /// Watches these sessions, and others that appear in their folders.
    pub fn follow(&mut self, sessions: &[Session]) {
        let mut paths: BTreeSet<PathBuf> = self.registry.iter().cloned().collect();
        for adapter in &self.adapters {
            let home = adapter.home();
            let own = || sessions.iter().filter(|session| session.view.agent == adapter.agent());
            // The home itself changes for many other reasons.
            let folders = own().flat_map(|session| session.view.path.ancestors().skip(1).take(DEPTH));
            paths.extend(folders.filter(|folder| *folder != home && folder.starts_with(home)).map(Path::to_owned));
            paths.extend(own().filter(|session| session.is_open()).map(|session| session.view.path.clone()));
            if own().next().is_none() {
                paths.insert(home.to_owned());
            }
        }
        // A folder that is new here may have changed since the sessions were read.
        let seen = |path: PathBuf| {
            let stamp = self.seen.get(&path).copied().flatten();
            (path, stamp)
        };
        self.seen = paths.into_iter().map(seen).collect();
    }

    /// Whether something has changed since the last look.
    pub fn look(&mut self) -> bool {
        let mut has_changed = false;
        for (path, seen) in &mut self.seen {
            let now = stamp(path);
            has_changed |= now != *seen;
            *seen = now;
        }
        let open = self.adapters.iter().map(|adapter| (adapter.agent(), adapter.live().sessions)).collect();
        has_changed |= open != self.open;
        self.open = open;
        has_changed
    }

    /// Whether an agent has a session open.
    pub fn has_open(&self) -> bool {
        self.open.values().any(|sessions| !sessions.is_empty())
    }
}

/// How many folders above a transcript can hold others.
const DEPTH: usize = 5;

fn stamp(path: &Path) -> WatchStamp {
    let file = fs::metadata(path).ok()?;
    let stamp = agents::stamp(&file);
    Some((if file.is_dir() { 0 } else { stamp.size }, stamp.modified))
}
