//! What tine does: it keeps a catalog of sessions, a registry of names and lineage, and answers questions about them.
//!
//! Front ends see one façade, [`Tine`]. What is true of one agent only lives in `agents`; what a conversation is lives
//! in `transcript`.

mod adopt;
mod catalog;
mod clean_up;
mod config;
mod context;
mod delete;
mod directory;
mod doctor;
mod drive;
mod error;
mod events;
mod export;
mod fork;
mod git;
mod hook;
mod lineage;
mod live;
mod moved;
mod named;
mod names;
mod operations;
mod places;
mod private;
mod profile;
mod project;
mod registry;
mod resolve;
#[cfg_attr(not(feature = "semantic"), allow(dead_code, reason = "what only search by meaning uses"))]
mod search;
mod session;
mod setup;
mod signal;
mod smart;
#[cfg(test)]
mod test_world;
mod tree;
mod undo;

use std::cell::{OnceCell, RefCell, RefMut};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use agents::Cancel;
use agents::{Blocks, Store};
pub use catalog::{Progress, Quiet};
pub use config::notes_for;
pub use config::{AgentsConfig, Config, InnerPath, McpConfig, Permission, Program, Template, WorktreeConfig};
pub use context::{Clock, Context, Environment, Paths};
pub use directory::{CopyProgress, DirectoryCopy, size_of};
pub use doctor::{Check, Report, Verdict};
pub use drive::{Opening, Sent, Target, Unbegun, check_words, fetch, note_trouble, own_editor, pane_command};
pub use error::{Error, IndexTrouble, Result};
pub use events::HeardEvent;
pub use export::{ExportRequest, Exported};
pub use fork::{
    EmptyClone, Forked, Method, Opened, Place, Plan, Preparation, Request, SeedNote, SeedPlan, Where, Workspace,
};
pub use git::Worktree;
pub use hook::{Caller, Event, Heard, Payload, write_name};
pub use named::Start;
pub use operations::{Effect, Operation};
pub use places::{Pane, Spot, Terminal, Unit};
pub use profile::{KeptFile, Launch, LaunchRequest, Profile, masked};
pub use project::Project;
pub use registry::{Lineage, Registry, SessionKey};
pub use resolve::Selection;
pub use search::{
    Answer, Asking, Correction, DEFAULT_COLLECTION, Engine, EngineError, Found, Grounds, IndexProgress, IndexStatus,
    Limits, Missing, Now, Query, RECENT, Snippet, VectorStatus, distrust_index, is_panic_caught, query_time,
    without_line,
};
use session::Knowledge;
pub use session::{Details, Listing, Session};
pub use setup::{Change, Scope, SetupEvent, SetupPlace, SetupPlan, SetupRequest, SetupServer, SetupStatus, Step};
pub use smart::{Intent, Suggestions};
use transcript::Agent;
pub use tree::{Known, Node, forest};

/// One run of tine over one person's sessions.
pub struct Tine {
    context: Context,
    stores: Vec<Box<dyn Store>>,
    registry: RefCell<Registry>,
    warnings: RefCell<Vec<String>>,
    config: OnceCell<Config>,
}

/// Which sessions are asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only this agent's.
    pub agent: Option<Agent>,
    /// Only those of the project around this directory.
    pub directory: Option<PathBuf>,
}

impl Tine {
    /// Opens the registry. Where none can be kept, tine works without names and says so.
    pub fn open(context: Context) -> Result<Self> {
        let stores = agents::stores(&context.surroundings);
        let mut warnings = Vec::new();
        let registry = match Registry::open(&context.paths.registry) {
            Ok(registry) => registry,
            Err(error @ Error::NewerRegistry { .. }) => return Err(error),
            Err(error) => {
                warnings.push(format!("{error}; names and lineage are not kept"));
                Registry::in_memory()?
            }
        };
        let (registry, warnings) = (RefCell::new(registry), RefCell::new(warnings));
        let tine = Tine { context, stores, registry, warnings, config: OnceCell::new() };
        if let Err(error) = tine.clean_up() {
            tine.warn(error.to_string());
        }
        Ok(tine)
    }

    pub(crate) fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    /// Lets some time pass, unless nobody waits for the outcome any more.
    pub(crate) fn pause(&self, time: Duration) -> Result<()> {
        std::thread::sleep(time);
        match self.context.cancel.is_cancelled() {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// The world around.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The registry, for what only it knows.
    pub fn registry(&self) -> RefMut<'_, Registry> {
        self.registry.borrow_mut()
    }

    /// What did not work but was no reason to stop.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// The agents' files.
    pub fn stores(&self) -> &[Box<dyn Store>] {
        &self.stores
    }

    /// The sessions that are asked for, newest first. Subagents' threads and empty files are left out.
    pub fn sessions(&self, filter: &Filter, progress: &dyn Progress) -> Result<Vec<Session>> {
        Ok(self.listing(filter, progress)?.collect())
    }

    /// The same, put together one by one: of ten thousand sessions, most are printed and forgotten.
    pub fn listing(&self, filter: &Filter, progress: &dyn Progress) -> Result<Listing> {
        let (catalog, knowledge) = self.survey(progress)?;
        let project = filter.directory.as_deref().map(Project::of);
        let asked = |entry: &catalog::Entry| {
            let in_project = |project: &Project| entry.summary.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
            entry.is_shown()
                && filter.agent.is_none_or(|agent| agent == entry.agent())
                && project.as_ref().is_none_or(in_project)
        };
        let shown = catalog.entries.iter().filter(|entry| entry.is_shown());
        let handles = session::handles(shown.map(|entry| &entry.summary.id));
        let mut entries = catalog.entries;
        entries.retain(asked);
        Ok(Listing::new(entries, knowledge, handles))
    }

    /// One look at the disk, and everything that is known beside the session files.
    fn survey(&self, progress: &dyn Progress) -> Result<(catalog::Catalog, Knowledge)> {
        let mut catalog = catalog::refresh(&self.stores, &self.context.paths.cache, progress);
        for warning in catalog.unlisted() {
            let mut warnings = self.warnings.borrow_mut();
            // Some commands look twice.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let notes: HashMap<_, _> = self.stores.iter().map(|store| (store.agent(), store.notes())).collect();
        // What was learned is noted, but a registry that cannot be written now does not keep a listing from its work.
        let noted = self
            .follow(&catalog)
            .and_then(|()| self.settle_starts(&catalog))
            .and_then(|()| self.note_lineage(&mut catalog, &notes));
        if let Err(error) = noted {
            self.warnings.borrow_mut().push(error.to_string());
        }
        let live = self.stores.iter().map(|store| (store.agent(), store.live())).collect();
        let registry = self.registry.borrow();
        let mut knowledge = Knowledge::new(&registry, notes, live)?;
        knowledge.look_for_terminals(self.context.surroundings.proc.as_deref());
        drop(registry);
        Ok((catalog, knowledge))
    }

    /// Every session, newest first.
    pub fn all_sessions(&self, progress: &dyn Progress) -> Result<Vec<Session>> {
        self.sessions(&Filter::default(), progress)
    }

    /// Finds the session that `spec` means, among all.
    pub fn resolve(&self, spec: &str, progress: &dyn Progress) -> Result<Selection> {
        let sessions = self.all_sessions(progress)?;
        self.resolve_among(&sessions, spec)
    }

    /// Finds the session that `spec` means, among `sessions`.
    pub fn resolve_among(&self, sessions: &[Session], spec: &str) -> Result<Selection> {
        resolve::resolve(self, sessions, spec)
    }

    /// The conversation as people see it, up to and including turn `until`.
    pub fn read(&self, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
        let blocks = self.read_all(session, until)?;
        Ok(match self.registry.borrow().seed(session.view.agent, &session.view.id)? {
            Some(note) => Box::new(fork::Unseeded::new(blocks, &note)),
            None => blocks,
        })
    }

    /// The conversation as the agent keeps it, with the seed that it may have begun with.
    pub(crate) fn read_all(&self, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
        let path = &session.view.path;
        let store = self.store(session.view.agent);
        let known = session.details.known.as_ref();
        store.read(path, until, known).map_err(|source| Error::Unreadable { path: path.clone(), source })
    }

    /// Remembers that a session was used, so that `-` means it.
    pub fn remember_use(&self, session: &Session) {
        let key = session.key();
        let value = serde_json::json!({ "agent": key.agent, "id": key.id, "path": key.path }).to_string();
        // Not being able to remember is no reason to fail what was asked.
        let _ = self.registry.borrow_mut().in_a_hurry(|registry| registry.remember("last-session", &value));
    }

    pub(crate) fn last_used(&self) -> Result<Option<SessionKey>> {
        let Some(value) = self.registry.borrow().recall("last-session")? else {
            return Ok(None);
        };
        #[derive(serde::Deserialize)]
        struct Used {
            agent: Agent,
            id: transcript::SessionId,
            path: PathBuf,
        }
        let used: Option<Used> = serde_json::from_str(&value).ok();
        Ok(used.map(|used| SessionKey { agent: used.agent, id: used.id, path: used.path }))
    }

    /// A session file that lies outside of the agents' folders.
    pub(crate) fn outside_session(&self, path: &Path) -> Result<Session> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(Error::NotASession(path.to_owned()));
        }
        std::fs::File::open(path).map_err(unreadable)?;
        let agent = resolve::agent_of_file(path).ok_or_else(|| Error::NotASession(path.to_owned()))?;
        let summary = self.store(agent).scan(path);
        let stamp = agents::stamp(&metadata);
        let registry = self.registry.borrow();
        let knowledge = Knowledge::new(&registry, HashMap::new(), HashMap::new())?;
        Ok(knowledge.session(catalog::Entry::fresh(summary, stamp)))
    }

    pub(crate) fn store(&self, agent: Agent) -> &dyn Store {
        let found = self.stores.iter().find(|store| store.agent() == agent);
        found.expect("there is a store for every agent").as_ref()
    }

    /// Follows transcripts that were moved: a named session whose file is gone, and whose id turned up elsewhere.
    fn follow(&self, catalog: &catalog::Catalog) -> Result<()> {
        if catalog.scanned == 0 {
            return Ok(());
        }
        let names = self.registry.borrow().names()?;
        for key in names.keys() {
            let mut same = catalog.with_id(key.agent, &key.id).map(|entry| &entry.summary.path);
            if let (Some(only), None) = (same.next(), same.next())
                && *only != key.path
                && !key.path.exists()
            {
                self.registry.borrow_mut().in_a_hurry(|registry| registry.move_session(key, only))?;
            }
        }
        Ok(())
    }

    /// Reads into the registry what new files tell of their origin.
    fn note_lineage(&self, catalog: &mut catalog::Catalog, notes: &HashMap<Agent, agents::Notes>) -> Result<()> {
        // A registry that has not seen this cache's sessions has to look at all of them once.
        let seen = self.registry.borrow().recall("catalog")?;
        let all = seen.as_deref() != Some(&catalog.generation);
        if !all && catalog.scanned == 0 {
            return Ok(());
        }
        let known = self.registry.borrow().lineage()?;
        catalog.load_turn_keys();
        let found = lineage::infer(&catalog.entries, notes, |entry| {
            all || (entry.is_fresh && !known.contains_key(&(entry.summary.agent, entry.summary.id.clone())))
        });
        let turns = lineage::turns(&catalog.entries, &known);
        let mut registry = self.registry.borrow_mut();
        let now = self.context.clock.now();
        registry.in_a_hurry(|registry| {
            registry.note_lineage(&found, now)?;
            registry.note_turns(&turns)?;
            if all && !catalog.generation.is_empty() {
                registry.remember("catalog", &catalog.generation)?;
            }
            Ok(())
        })?;
        drop(registry);
        self.name_forks(&found, catalog)
    }
}
