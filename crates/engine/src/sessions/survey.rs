//! Looking at the disk once: which sessions there are, and reading one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use agents::Blocks;
use diagnostics::OrLog;
use transcript::Agent;

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::registry;
use crate::registry::RegistryProblem;
use crate::registry::SessionKey;
use crate::sessions::catalog::Progress;
use crate::sessions::listing::{Listing, handles_of};
use crate::sessions::marks::Marked;
use crate::sessions::project::Project;
use crate::sessions::resolve::Selection;
use crate::sessions::seeded::{FoldedSeed, UnstartedBlocks};
use crate::sessions::session::{Knowledge, Session};
use crate::sessions::settle;
use crate::sessions::{Error, Result};

/// Selects sessions.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only sessions of this agent.
    pub agent: Option<Agent>,
    /// Only sessions of the project that contains this directory.
    pub directory: Option<PathBuf>,
}

/// The selected sessions, newest first, without subagents' threads and empty files.
pub(crate) fn sessions(ctx: &Ctx, filter: &Filter, progress: &dyn Progress) -> Result<Vec<Session>> {
    Ok(listing(ctx, filter, progress)?.collect())
}

/// Like `sessions`, but lazily, so that long listings need little memory.
pub(crate) fn listing(ctx: &Ctx, filter: &Filter, progress: &dyn Progress) -> Result<Listing> {
    let (mut catalog, knowledge) = survey(ctx, progress)?;
    catalog.entries.extend(knowledge.unstarted_entries());
    let project = filter.directory.as_deref().map(Project::of);
    let asked = |entry: &crate::sessions::catalog::Entry| {
        let in_project = |project: &Project| entry.summary.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
        entry.is_shown()
            && filter.agent.is_none_or(|agent| agent == entry.agent())
            && project.as_ref().is_none_or(in_project)
    };
    let handles = handles_of(catalog.entries.iter().filter(|entry| entry.is_shown()));
    let mut entries = catalog.entries;
    entries.retain(asked);
    Ok(Listing::new(entries, knowledge, handles))
}

/// Lists the session files and adds everything else known about them.
pub(crate) fn survey(ctx: &Ctx, progress: &dyn Progress) -> Result<(crate::sessions::catalog::Catalog, Knowledge)> {
    let mut catalog = crate::sessions::catalog::refresh(&ctx.adapters, &ctx.context.paths.cache, progress);
    for warning in catalog.unlisted() {
        let mut warnings = ctx.warnings.borrow_mut();
        // Some commands look twice.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let notes: HashMap<_, _> = ctx.adapters.iter().map(|adapter| (adapter.agent(), adapter.notes())).collect();
    // What was found is recorded, but a registry that is not writable does not prevent a listing.
    let is_kept = ctx.registry().is_kept();
    let noted = match is_kept {
        true => follow(ctx, &catalog).and_then(|()| settle::settle_starts(ctx, &catalog)),
        false => Ok(()),
    };
    if let Err(error) = noted.and_then(|()| note_lineage(ctx, &mut catalog, &notes)) {
        ctx.do_without_registry(&error)?;
    }
    let live = || ctx.adapters.iter().map(|adapter| (adapter.agent(), adapter.live())).collect();
    let known = Knowledge::new(&ctx.registry.borrow(), notes, live());
    let mut knowledge = match known {
        Err(error @ registry::Error::Unusable { trouble: RegistryProblem::Damaged, .. })
            if ctx.registry().is_kept() =>
        {
            ctx.do_without_registry(&error)?;
            let notes = ctx.adapters.iter().map(|adapter| (adapter.agent(), adapter.notes())).collect();
            Knowledge::new(&ctx.registry.borrow(), notes, live())?
        }
        known => known?,
    };
    knowledge.look_for_terminals(&ctx.adapters);
    knowledge.correct_forks(&mut catalog.entries);
    Ok((catalog, knowledge))
}

/// Every session, newest first.
pub(crate) fn all_sessions(ctx: &Ctx, progress: &dyn Progress) -> Result<Vec<Session>> {
    sessions(ctx, &Filter::default(), progress)
}

/// Finds the session that `spec` refers to, among all sessions.
pub(crate) fn resolve(ctx: &Ctx, spec: &str, progress: &dyn Progress) -> Result<Selection> {
    let sessions = all_sessions(ctx, progress)?;
    resolve_among(ctx, &sessions, spec)
}

/// Finds the session that `spec` refers to, among `sessions`.
pub(crate) fn resolve_among(ctx: &Ctx, sessions: &[Session], spec: &str) -> Result<Selection> {
    crate::sessions::resolve::resolve(ctx, sessions, spec)
}

/// How a transcript that a conversation was seeded with is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedText {
    /// As one line that says where it came from.
    Folded,
    /// As the agent keeps it.
    Full,
}

/// The conversation up to and including turn `until`.
pub(crate) fn read(ctx: &Ctx, session: &Session, until: Option<u32>, seed: SeedText) -> Result<Box<dyn Blocks>> {
    let blocks = read_with(ctx, session, until, true)?;
    let blocks = Box::new(Marked::new(blocks, session.view.cwd.as_deref()));
    if seed == SeedText::Full {
        return Ok(blocks);
    }
    folded(ctx, session, blocks)
}

/// The same blocks with a seed as one line.
pub(crate) fn folded(ctx: &Ctx, session: &Session, blocks: Box<dyn Blocks>) -> Result<Box<dyn Blocks>> {
    let note = ctx.registry.borrow().seed(session.view.agent, &session.view.id)?;
    Ok(Box::new(FoldedSeed::new(blocks, note.as_ref(), session.view.parent.as_ref())))
}

/// The conversation as the agent keeps it, including a seed at its beginning.
pub(crate) fn read_all(ctx: &Ctx, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
    read_with(ctx, session, until, false)
}

fn read_with(ctx: &Ctx, session: &Session, until: Option<u32>, acts: bool) -> Result<Box<dyn Blocks>> {
    let path = &session.view.path;
    if session.view.unstarted {
        return Ok(Box::new(UnstartedBlocks::read(path)?));
    }
    let adapter = ctx.adapter(session.view.agent);
    let known = session.details.known.as_ref();
    let part = agents::Part { until, tip: session.details.tip, acts, ..agents::Part::default() };
    Ok(adapter.read_part(path, &part, known).map_err(|source| FileError::Read { path: path.clone(), source })?)
}

/// Records that a session was used, so that `-` refers to it.
pub(crate) fn remember_use(ctx: &Ctx, session: &Session) {
    let key = session.key();
    let value = serde_json::json!({ "agent": key.agent, "id": key.id, "path": key.path }).to_string();
    // Not being able to remember is no reason to fail what was asked.
    ctx.registry
        .borrow_mut()
        .in_a_hurry(|registry| registry.remember("last-session", &value))
        .or_log("record the last session");
}

pub(crate) fn last_used(ctx: &Ctx) -> Result<Option<SessionKey>> {
    #[derive(serde::Deserialize)]
    struct Used {
        agent: Agent,
        id: transcript::SessionId,
        path: PathBuf,
    }
    let used: Option<Used> = ctx.registry.borrow().recall_value("last-session")?;
    Ok(used.map(|used| SessionKey { agent: used.agent, id: used.id, path: used.path }))
}

/// A session file in a folder that is not the agent's.
pub(crate) fn outside_session(ctx: &Ctx, path: &Path) -> Result<Session> {
    let unreadable = |source| FileError::Read { path: path.to_owned(), source };
    let stamp = agents::session_stamp(path).map_err(unreadable)?;
    if !agents::is_session(path) {
        return Err(Error::NotASession(path.to_owned()));
    }
    agents::check_readable(path).map_err(unreadable)?;
    let agent = agents::agent_of_file(ctx.adapters(), path).ok_or_else(|| Error::NotASession(path.to_owned()))?;
    let summary = ctx.adapter(agent).scan(path);
    let registry = ctx.registry.borrow();
    let knowledge = Knowledge::new(&registry, HashMap::new(), HashMap::new())?;
    Ok(knowledge.session(crate::sessions::catalog::Entry::fresh(summary, stamp)))
}

/// Follows moved transcripts: a named session whose file is missing, and whose id has appeared elsewhere.
fn follow(ctx: &Ctx, catalog: &crate::sessions::catalog::Catalog) -> registry::Result<()> {
    if catalog.scanned == 0 {
        return Ok(());
    }
    let names = ctx.registry.borrow().names()?;
    for key in names.keys() {
        let mut same = catalog.with_id(key.agent, &key.id).map(|entry| &entry.summary.path);
        if let (Some(only), None) = (same.next(), same.next())
            && *only != key.path
            && !agents::is_there(&key.path)
        {
            ctx.registry.borrow_mut().in_a_hurry(|registry| registry.move_session(key, only))?;
        }
    }
    Ok(())
}

/// Records the origins of new files in the registry.
fn note_lineage(
    ctx: &Ctx,
    catalog: &mut crate::sessions::catalog::Catalog,
    notes: &HashMap<Agent, agents::Notes>,
) -> registry::Result<()> {
    // A registry that has not seen this cache's sessions must process all of them once.
    let seen = ctx.registry.borrow().recall("catalog")?;
    let all = seen.as_deref() != Some(&catalog.generation);
    if !all && catalog.scanned == 0 {
        return Ok(());
    }
    let known = ctx.registry.borrow().lineage()?;
    catalog.load_turn_keys();
    let found = crate::sessions::lineage::infer(&catalog.entries, notes, |entry| {
        all || (entry.is_fresh && !known.contains_key(&(entry.summary.agent, entry.summary.id.clone())))
    });
    let turns = crate::sessions::lineage::turns(&catalog.entries, &known);
    let mut registry = ctx.registry.borrow_mut();
    let now = ctx.context.clock.now();
    registry.in_a_hurry(|registry| {
        registry.note_lineage(&found, now)?;
        registry.note_turns(&turns)?;
        if all && !catalog.generation.is_empty() {
            registry.remember("catalog", &catalog.generation)?;
        }
        Ok(())
    })?;
    let is_kept = registry.is_kept();
    drop(registry);
    if is_kept { Ok(settle::name_forks(ctx, &found, catalog)?) } else { Ok(()) }
}
