//! Naming existing sessions: adopting one, and renaming it.

use std::collections::HashSet;

use agents::TitleMark;
use serde::Serialize;
use transcript::{Agent, ParentSource, SessionId, SessionName};

use crate::ctx::Ctx;
use crate::names;
use crate::naming::{Error, Result};
use crate::operations::free_names;
use crate::program;
use crate::registry;
use crate::registry::Lineage;
use crate::registry::operations::{Adoption, Effects, NameChange, OperationState, Renaming};
use crate::sessions::session::Session;

/// A session that has a name now.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdoptedView<'a> {
    agent: Agent,
    id: &'a SessionId,
    name: &'a SessionName,
}

impl<'a> AdoptedView<'a> {
    /// Its JSON.
    pub fn new(session: &'a Session, name: &'a SessionName) -> Self {
        AdoptedView { agent: session.view.agent, id: &session.view.id, name }
    }
}

/// Registers a session under a name.
pub(crate) fn adopt(
    ctx: &Ctx,
    session: &Session,
    name: Option<SessionName>,
    parent: Option<&Session>,
) -> Result<SessionName> {
    let name = plan_adoption(ctx, session, name, parent, &HashSet::new())?;
    let (view, now) = (&session.view, ctx.context().clock.now());
    let what = format!("adopt {} as {name}", view.id);
    let change = NameChange { session: session.key(), old: None, new: Some(name.clone()) };
    let effects = Effects::Adopt(Adoption { name: change, has_parent: parent.is_some() });
    free_names::release_name(ctx, &name)?;
    let operation = ctx.registry().begin_operation(&what, &effects, None, now)?;
    if !ctx.registry().set_name(&session.key(), Some(&name), now)? {
        ctx.registry().set_state(operation, &OperationState::Failed, None)?;
        return Err(registry::Error::NameTaken(name).into());
    }
    if let Some(parent) = parent {
        let (agent, id) = (parent.view.agent, parent.view.id.clone());
        let lineage = Lineage { agent, id, turn: None, source: ParentSource::Tine };
        ctx.registry().note_lineage(&[((view.agent, view.id.clone()), lineage)], now)?;
    }
    ctx.registry().set_state(operation, &OperationState::Done, None)?;
    ctx.back_up();
    Ok(name)
}

/// The name under which a session would be adopted, or why it can't be. `taken` are the names of others that are adopted
/// in the same run.
pub(crate) fn plan_adoption(
    ctx: &Ctx,
    session: &Session,
    name: Option<SessionName>,
    parent: Option<&Session>,
    taken: &HashSet<SessionName>,
) -> Result<SessionName> {
    let view = &session.view;
    if let Some(tracked) = ctx.registry().holder(view.agent, &view.id, &view.path)? {
        return Err(Error::Tracked { id: view.id.clone(), name: tracked });
    }
    if let Some(parent) = parent {
        check_parent(ctx, session, parent)?;
    }
    match name {
        Some(name) if !free_names::is_free(ctx, &name)? => Err(registry::Error::NameTaken(name).into()),
        Some(name) => Ok(name),
        None => name_for(ctx, session, taken),
    }
}

/// Refuses a parent that is a descendant of the session.
fn check_parent(ctx: &Ctx, session: &Session, parent: &Session) -> Result<()> {
    let lineage = ctx.registry().lineage()?;
    let child = (session.view.agent, session.view.id.clone());
    let mut at = (parent.view.agent, parent.view.id.clone());
    for _ in 0..=lineage.len() {
        if at == child {
            let (session, parent) = (session.view.label().to_owned(), parent.view.label().to_owned());
            return Err(Error::OwnAncestor { session, parent });
        }
        match lineage.get(&at) {
            Some(above) => at = (above.agent, above.id.clone()),
            None => break,
        }
    }
    Ok(())
}

/// A name for a session: the words of its title, or a made-up name.
fn name_for(ctx: &Ctx, session: &Session, others: &HashSet<SessionName>) -> Result<SessionName> {
    let names = ctx.registry().names()?;
    let taken: HashSet<&str> = names.values().chain(others).map(SessionName::as_str).collect();
    let title = transcript::text::one_line(session.view.title.as_deref().unwrap_or_default());
    let title = transcript::secrets::mask(&title).0;
    let words: Vec<&str> = title.split(' ').take(5).collect();
    names::from_text(&words.join(" "), &taken)
        .or_else(|| names::readable(|name| taken.contains(name)))
        .ok_or(Error::NoNameLeft)
}

/// Gives a session another name, in the registry and in the agent's own list.
pub(crate) fn rename(ctx: &Ctx, session: &Session, name: &SessionName) -> Result<i64> {
    let (view, now) = (&session.view, ctx.context().clock.now());
    if view.name.as_ref() == Some(name) {
        return Err(Error::SameName(name.clone()));
    }
    free_names::check_name(ctx, name)?;
    let what = format!("rename {} to {name}", view.label());
    let change = NameChange { session: session.key(), old: view.name.clone(), new: Some(name.clone()) };
    let mut renaming = Renaming {
        name: change,
        old_title: session.details.custom_title.clone(),
        // A fork that has not started is in no list of the agent yet.
        title: (!view.unstarted).then(|| TitleMark::of(ctx.adapter(view.agent).title_file(&view.path))),
    };
    free_names::release_name(ctx, name)?;
    let operation = ctx.registry().begin_operation(&what, &Effects::Rename(renaming.clone()), None, now)?;
    if !ctx.registry().set_name(&session.key(), Some(name), now)? {
        ctx.registry().set_state(operation, &OperationState::Failed, None)?;
        return Err(registry::Error::NameTaken(name.clone()).into());
    }
    if !view.unstarted && !add_title(ctx, session, name.as_str()) {
        renaming.title = None;
    }
    ctx.registry().set_state(operation, &OperationState::Done, Some(&Effects::Rename(renaming)))?;
    ctx.back_up();
    Ok(operation)
}

/// Adds a title to the agent's own list, and returns whether that worked. If not, the session has its name anyway.
fn add_title(ctx: &Ctx, session: &Session, title: &str) -> bool {
    let view = &session.view;
    let program = program::program(ctx, view.agent).ok();
    let shown = free_names::keeping_stamp(ctx, &view.id, &view.path, || {
        ctx.adapter(view.agent).set_title(program.as_ref(), &view.id, &view.path, title)
    });
    if let Err(error) = &shown {
        ctx.warn(format!("{}'s session list still shows the old title: {error}", view.agent.product_name()));
    }
    shown.is_ok()
}
