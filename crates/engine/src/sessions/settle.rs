//! Updates the records after a listing: sessions that were started have begun, and new forks get names.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use agents::{Client, Holder};
use transcript::{Agent, SessionId};

use crate::ctx::Ctx;
use crate::registry::Result;
use crate::registry::{Lineage, SessionKey, StartedRow};
use crate::sessions::catalog::Catalog;

/// Resolves pending starts: sessions that have begun become ordinary ones, and starts that were abandoned without a
/// message are forgotten.
pub(crate) fn settle_starts(ctx: &Ctx, catalog: &Catalog) -> Result<()> {
    let started = ctx.registry().starts()?;
    let now = ctx.context().clock.now();
    for row in &started {
        let begun = match row.id.known() {
            Some(id) => {
                let mut begun = catalog.with_id(row.agent, id);
                begun.next().map(|entry| (id.clone(), entry.summary.path.clone()))
            }
            None => find_started(ctx, row, &started, catalog)?,
        };
        let mut registry = ctx.registry();
        match begun {
            Some((id, path)) => registry.settle(row.key, &id, &path)?,
            None if row.is_over(now) => registry.remove_row(row.key)?,
            None => {}
        }
    }
    Ok(())
}

/// The session of a start whose id the agent chose: the one that its process has open, otherwise the first one created
/// in its directory since then and before the next start there.
fn find_started(
    ctx: &Ctx,
    row: &StartedRow,
    started: &[StartedRow],
    catalog: &Catalog,
) -> Result<Option<(SessionId, PathBuf)>> {
    let adapter = ctx.adapter(row.agent);
    let live = adapter.live();
    let own = live.sessions.iter().find(|(_, session)| session.pid.is_some() && session.pid == row.launcher.pid());
    let taken: HashSet<SessionId> = ctx.registry().names()?.into_keys().map(|key| key.id).collect();
    let cwd = row.cwd.as_deref().map(Path::new);
    let next = started.iter().filter(|other| (other.agent, &other.cwd) == (row.agent, &row.cwd));
    let next = next.map(|other| other.created).filter(|created| *created > row.created).min();
    // A daemon does not reveal which of several terminals in a directory shows a session.
    let is_alone = started.iter().filter(|other| (other.agent, &other.cwd) == (row.agent, &row.cwd)).count() == 1;
    let is_kept = |id: &SessionId| live.sessions.get(id).is_some_and(|session| session.holder == Holder::Daemon);
    let fits = |entry: &&crate::sessions::catalog::Entry| {
        let summary = &entry.summary;
        // Some agents record whole seconds; a session that fits two starts belongs to the first.
        let began = summary.created.map(|created| created.as_millisecond());
        let began = began.is_some_and(|began| began + 1000 >= row.created && next.is_none_or(|next| began < next));
        summary.agent == row.agent
                && !summary.is_subagent
                && !taken.contains(&summary.id)
                && match own {
                    Some((id, _)) => summary.id == *id,
                    None => {
                        began
                            && summary.parent.is_none()
                            && summary.cwd.as_deref() == cwd
                            && (is_alone || !is_kept(&summary.id))
                    }
                }
                // A start that the user runs by hand runs in a terminal.
                && (row.launcher.pid().is_some() || adapter.client(&summary.path) != Some(Client::Headless))
    };
    let first = catalog.entries.iter().filter(fits).min_by_key(|entry| entry.summary.created);
    Ok(first.map(|entry| (entry.summary.id.clone(), entry.summary.path.clone())))
}

/// Names forks that were created inside the agents and not reported by a hook.
pub(crate) fn name_forks(ctx: &Ctx, found: &[((Agent, SessionId), Lineage)], catalog: &Catalog) -> Result<()> {
    let named = ctx.registry().names_with_times()?;
    if named.is_empty() {
        return Ok(());
    }
    let has_name: HashSet<(Agent, SessionId)> = named.iter().map(|(key, _, _)| (key.agent, key.id.clone())).collect();
    let holders = ctx.registry().holders()?;
    let under_way = ctx.registry().ongoing_forks()?;
    for ((agent, id), parent) in
        found.iter().filter(|((agent, id), parent)| !under_way.includes(*agent, id, &parent.id))
    {
        let parent_id = (parent.agent, parent.id.clone());
        if !has_name.contains(&parent_id) && !holders.contains_key(&parent_id) {
            continue;
        }
        let Some(entry) = catalog.with_id(*agent, id).next().filter(|entry| entry.is_shown()) else {
            continue;
        };
        // Of sessions with the same id, the parent is the one in the same project.
        let near = |key: &SessionKey| key.path.parent() == entry.summary.path.parent();
        let holds = |agent: Agent, id: &SessionId| {
            let same = || named.iter().filter(|(key, _, _)| key.agent == agent && key.id == *id);
            same().find(|(key, _, _)| near(key)).or_else(|| same().next())
        };
        // For users, the transcript before a `/clear` is the same session.
        let holder = holders.get(&parent_id);
        let parent_row = holds(parent.agent, &parent.id).or_else(|| holds(parent.agent, holder?));
        let Some((parent_key, parent_name, since)) = parent_row else {
            continue;
        };
        // Forks that are older than the parent's name don't get a name from it.
        let born = entry.stamp.born.unwrap_or(entry.stamp.modified) / 1_000_000;
        if holds(*agent, id).is_some_and(|(key, _, _)| key.path == entry.summary.path) || born + 1000 < *since {
            continue;
        }
        let key = SessionKey { agent: *agent, id: id.clone(), path: entry.summary.path.clone() };
        let profile = ctx.registry().profile(parent_key.agent, &parent_key.id)?.unwrap_or_default();
        let name = ctx.registry().name_fork(&key, parent_name, &profile, ctx.context().clock.now())?;
        if let Some(name) = name {
            ctx.warn(format!("found a fork of {parent_name} and named it {name}"));
        }
    }
    Ok(())
}
