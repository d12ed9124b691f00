//! A clone of a session in which nothing was said yet: its directory is copied, and an empty conversation begins there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use transcript::SessionName;

use crate::Tine;
use crate::catalog::Quiet;
use crate::directory::CopyProgress;
use crate::error::{Error, Result};
use crate::named::Start;
use crate::names;
use crate::operations::Effects;
use crate::profile::Launch;

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

    /// Clones the session that was started as `source`. Nothing where there is no such session.
    pub fn clone_unbegun(
        &self,
        source: &str,
        name: Option<SessionName>,
        target: &Path,
        progress: &dyn CopyProgress,
    ) -> Result<Option<(Start, i64)>> {
        let Some((agent, directory, profile)) = self.registry().unbegun(source)? else {
            return Ok(None);
        };
        let names = self.registry().names()?;
        let taken: HashSet<&str> = names.values().map(SessionName::as_str).collect();
        let name = match name {
            Some(name) => name,
            None => names::for_fork(source, |name| taken.contains(name)).ok_or(Error::NoNameLeft)?,
        };
        let workspace = self.copy_of(directory, target, &name)?;
        let start = self.plan_start_in(&workspace.path, agent, Some(name), Launch { profile, ..Launch::default() })?;
        let mut effects =
            Effects { session: Some(start.key().id.clone()), copy: workspace.copy.clone(), ..Effects::default() };
        let what = format!("clone {source} as {}", start.name);
        let now = self.context().clock.now();
        let operation = self.registry().begin_operation("clone", &what, &effects, now)?;
        let made = self
            .make_workspace(&workspace, operation, &mut effects, progress)
            .and_then(|()| self.register_start(&start, false));
        if let Err(error) = made {
            self.remove_effects(&effects);
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        }
        self.registry().end_operation(operation, "done", Some(&effects))?;
        Ok(Some((start, operation)))
    }
}
