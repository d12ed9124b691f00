//! A clone of a session in which nothing was said yet: its directory is copied, and an empty conversation begins there.

use std::path::{Path, PathBuf};

use transcript::{SessionId, SessionName};

use super::{Asked, Where, Workspace};
use crate::Tine;
use crate::catalog::Quiet;
use crate::directory::CopyProgress;
use crate::error::{Error, Result};
use crate::hook::UNKNOWN_ID;
use crate::named::Start;
use crate::operations::Effects;
use crate::profile::Launch;

/// A clone of a session in which nothing was said yet.
#[derive(Debug, Clone)]
pub struct EmptyClone {
    /// The session that is cloned.
    pub source: SessionName,
    /// Its id, where its agent has taken one.
    pub source_id: Option<SessionId>,
    /// Where that works.
    pub directory: PathBuf,
    /// How the clone begins.
    pub start: Start,
    /// Where the clone works.
    pub workspace: Workspace,
    /// Whether somebody chose the clone's name.
    name_is_chosen: bool,
}

impl Tine {
    /// Makes a worktree of the repository around us, on a new branch, for a session that is to begin in it.
    pub fn new_worktree(&self, branch: &str, base: Option<&str>) -> Result<(PathBuf, i64)> {
        let workspace = self.worktree(&self.context().cwd, branch, base, false)?;
        let mut effects = Effects { worktree: workspace.worktree.clone(), ..Effects::default() };
        let now = self.context().clock.now();
        let operation = self.registry().begin_operation("worktree", &format!("worktree {branch}"), &effects, now)?;
        if let Err(error) = self.make_workspace(&workspace, operation, &mut effects, &Quiet) {
            self.remove_effects(&effects);
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        }
        self.registry().end_operation(operation, "done", Some(&effects))?;
        Ok((workspace.path, operation))
    }

    /// Decides how the session that was started as `source` is cloned. Nothing where there is no such session.
    pub fn plan_empty_clone(
        &self,
        source: &str,
        name: Option<SessionName>,
        target: &Path,
    ) -> Result<Option<EmptyClone>> {
        let (Some((agent, directory, profile)), Ok(source)) =
            (self.registry().unbegun(source)?, SessionName::new(source))
        else {
            return Ok(None);
        };
        let row = self.registry().named(&source)?;
        let source_id = row.map(|row| row.key.id).filter(|id| !id.as_str().starts_with(UNKNOWN_ID));
        let asked = Asked { own: directory, workspace: Where::Copy(target.to_owned()), carry: false };
        let name_is_chosen = name.is_some();
        let (name, workspace) = match name {
            Some(name) => {
                let workspace = self.workspace(&asked, &name)?;
                (name, workspace)
            }
            None => self.named_workspace(source.as_str(), &asked)?,
        };
        let launch = Launch { profile, ..Launch::default() };
        let start = self.plan_start_in(&workspace.path, agent, Some(name), launch)?;
        Ok(Some(EmptyClone { source, source_id, directory: asked.own, start, workspace, name_is_chosen }))
    }

    /// Makes such a clone. A name that nobody chose gives way where somebody was quicker to take it.
    pub fn apply_empty_clone(
        &self,
        plan: EmptyClone,
        target: &Path,
        progress: &dyn CopyProgress,
    ) -> Result<(EmptyClone, i64)> {
        let mut plan = plan;
        self.release_name(&plan.start.name)?;
        let now = self.context().clock.now();
        let (operation, mut effects) = loop {
            let start = &plan.start;
            let effects = Effects {
                session: Some(start.key().id.clone()),
                copy: plan.workspace.copy.clone(),
                reserves: Some(start.name.clone()),
                ..Effects::default()
            };
            let what = format!("clone {} as {}", plan.source, start.name);
            let begun = self.registry().begin_operation("clone", &what, &effects, now);
            match begun {
                Ok(operation) => break (operation, effects),
                Err(Error::NameTaken(_) | Error::InTheWay(_))
                    if !plan.name_is_chosen && self.registry().taken_names()?.contains(start.name.as_str()) =>
                {
                    let next = self.plan_empty_clone(plan.source.as_str(), None, target)?;
                    plan = next.ok_or_else(|| Error::Unbegun(plan.source.clone()))?;
                }
                Err(error) => return Err(error),
            }
        };
        let made = self
            .make_workspace(&plan.workspace, operation, &mut effects, progress)
            .and_then(|()| self.register_start(&plan.start, false));
        if let Err(error) = made {
            self.remove_effects(&effects);
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        }
        effects.reserves = None;
        self.registry().end_operation(operation, "done", Some(&effects))?;
        Ok((plan, operation))
    }
}
