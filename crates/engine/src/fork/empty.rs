//! Clones a session without messages: copies its directory and starts an empty conversation there.

use std::path::{Path, PathBuf};

use transcript::{SessionId, SessionName};

use super::{RequestedWorkspace, Where, Workspace};
use crate::ctx::Ctx;
use crate::fork::Result;
use crate::fork::plan;
use crate::fork::workspace;
use crate::naming::start;
use crate::naming::start::Start;
use crate::operations::clean_up;
use crate::operations::free_names;
use crate::registry;
use crate::registry::EmptySession;
use crate::registry::operations::{Cloning, Created, CreatedWorkspace, Effects, OperationState};
use crate::run::profile::Launch;
use crate::sessions;
use crate::sessions::catalog::Quiet;
use crate::workspace::directory::CopyProgress;

/// A clone of a session without messages.
#[derive(Debug, Clone)]
pub struct EmptyClone {
    /// The cloned session.
    pub source: SessionName,
    /// Its id, if its agent has chosen one.
    pub source_id: Option<SessionId>,
    /// Its directory.
    pub directory: PathBuf,
    /// How to start the clone.
    pub start: Start,
    /// The workspace of the clone.
    pub workspace: Workspace,
    /// Whether the user chose the clone's name.
    name_is_chosen: bool,
}

/// Creates a worktree of the current repository on a new branch, for a new session.
pub(crate) fn new_worktree(ctx: &Ctx, branch: &str, base: Option<&str>) -> Result<(PathBuf, i64)> {
    let workspace = workspace::worktree(ctx, &ctx.context().cwd, branch, base, false)?;
    let mut created = Created { workspace: workspace.creates.clone(), ..Created::default() };
    let now = ctx.context().clock.now();
    let (what, effects) = (format!("worktree {branch}"), Effects::Worktree(created.clone()));
    let operation = ctx.registry().begin_operation(&what, &effects, None, now)?;
    let record = |workspace: &CreatedWorkspace| {
        let created = Created { workspace: Some(workspace.clone()), ..Created::default() };
        Ok(ctx.registry().record_effects(operation, &Effects::Worktree(created))?)
    };
    if let Err(error) = workspace::create_workspace(ctx, &workspace, &mut created.workspace, &record, &Quiet) {
        let removed = clean_up::remove_created(ctx, &created);
        clean_up::fail(ctx, operation, removed);
        return Err(error);
    }
    ctx.registry().set_state(operation, &OperationState::Done, Some(&Effects::Worktree(created)))?;
    ctx.back_up();
    Ok((workspace.path, operation))
}

/// Plans a clone of the session that was started as `source`. `None` if there is none.
pub(crate) fn plan_empty_clone(
    ctx: &Ctx,
    source: &str,
    name: Option<SessionName>,
    target: &Path,
) -> Result<Option<EmptyClone>> {
    let (Some(unbegun), Ok(source)) = (ctx.registry().empty_session(source)?, SessionName::new(source)) else {
        return Ok(None);
    };
    let EmptySession { agent, id, directory, profile } = unbegun;
    let source_id = id.known().cloned();
    let asked =
        RequestedWorkspace { own: directory, workspace: Where::Copy(target.to_owned()), carry: false, code: None };
    let name_is_chosen = name.is_some();
    let (name, workspace) = match name {
        Some(name) => {
            let workspace = workspace::workspace(ctx, &asked, &name)?;
            (name, workspace)
        }
        None => plan::named_workspace(ctx, source.as_str(), &asked, &[])?,
    };
    let launch = Launch { profile, ..Launch::default() };
    let start = start::plan_start_in(ctx, &workspace.path, agent, Some(name), launch)?;
    Ok(Some(EmptyClone { source, source_id, directory: asked.own, start, workspace, name_is_chosen }))
}

/// Creates such a clone. A generated name is replaced if another process takes it first.
pub(crate) fn apply_empty_clone(
    ctx: &Ctx,
    plan: EmptyClone,
    target: &Path,
    progress: &dyn CopyProgress,
) -> Result<(EmptyClone, i64)> {
    let mut plan = plan;
    free_names::release_name(ctx, &plan.start.name)?;
    let now = ctx.context().clock.now();
    let (operation, mut created) = loop {
        let start = &plan.start;
        let (session, workspace) = (Some(start.key().id.clone()), plan.workspace.creates.clone());
        let created = Created { session, workspace, ..Created::default() };
        let effects = Effects::Clone(Cloning { created: created.clone(), reserves: Some(start.name.clone()) });
        let what = format!("clone {} as {}", plan.source, start.name);
        let begun = ctx.registry().begin_operation(&what, &effects, None, now);
        match begun {
            Ok(operation) => break (operation, created),
            Err(registry::Error::NameTaken(_) | registry::Error::PathReserved(_))
                if !plan.name_is_chosen && ctx.registry().taken_names()?.contains(start.name.as_str()) =>
            {
                let next = plan_empty_clone(ctx, plan.source.as_str(), None, target)?;
                plan = next.ok_or_else(|| sessions::Error::EmptySession(plan.source.clone()))?;
            }
            Err(error) => return Err(error.into()),
        }
    };
    let so_far = created.clone();
    let record = |workspace: &CreatedWorkspace| {
        let created = Created { workspace: Some(workspace.clone()), ..so_far.clone() };
        let reserves = Some(plan.start.name.clone());
        Ok(ctx.registry().record_effects(operation, &Effects::Clone(Cloning { created, reserves }))?)
    };
    let made = workspace::create_workspace(ctx, &plan.workspace, &mut created.workspace, &record, progress)
        .and_then(|()| Ok(start::register_start(ctx, &plan.start, false)?));
    if let Err(error) = made {
        let removed = clean_up::remove_created(ctx, &created);
        clean_up::fail(ctx, operation, removed);
        return Err(error);
    }
    let effects = Effects::Clone(Cloning { created, reserves: None });
    ctx.registry().set_state(operation, &OperationState::Done, Some(&effects))?;
    Ok((plan, operation))
}
