//! Carrying out a plan.

use std::fs;

use transcript::{ParentSource, SessionView};

use super::Plan;
use super::copy::Files;
use crate::Tine;
use crate::error::{Error, Result};
use crate::operations::Effects;
use crate::registry::{Lineage, SessionKey};

/// A fork that was made.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new session.
    pub session: SessionView,
    /// The operation, which `undo` reverses.
    pub operation: i64,
}

impl Tine {
    /// Makes the fork that `plan` describes. On any failure nothing of it is left.
    pub fn apply_fork(&self, plan: &Plan) -> Result<Forked> {
        let store = self.store(plan.source.agent);
        let files = Files::of(plan);
        let now = self.context().clock.now();
        let worktree = plan.workspace.worktree.clone();
        let mut effects = Effects { session: Some(plan.id.clone()), made: files.all(), worktree, stamp: None };
        let what = format!("fork {} after turn {} as {}", plan.source.label(), plan.turns, plan.name);
        let operation = self.registry().begin_operation("fork", &what, &effects, now)?;
        let with_worktree = self.prepare(store, plan, &files).and_then(|()| self.make_worktree(plan));
        if with_worktree.is_err() {
            // What stands at that place, if anything does, was made by somebody else and is not ours to remove.
            effects.worktree = None;
        }
        let made =
            with_worktree.and_then(|()| files.put_in_place()).and_then(|()| self.register(plan, &files, operation));
        if let Err(error) = made {
            self.remove_effects(&effects);
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        }
        let session = self.outside_session(&plan.target)?;
        Ok(Forked { session: session.view, operation })
    }

    fn register(&self, plan: &Plan, files: &Files, operation: i64) -> Result<()> {
        let now = self.context().clock.now();
        let key = SessionKey { agent: plan.source.agent, id: plan.id.clone(), path: plan.target.clone() };
        let parent = Lineage {
            agent: plan.source.agent,
            id: plan.source.id.clone(),
            turn: Some(plan.turns),
            source: ParentSource::Tine,
        };
        let mut made = vec![plan.target.clone()];
        made.extend(files.final_side.is_dir().then(|| files.final_side.clone()));
        let stamp = fs::metadata(&plan.target).ok().map(|metadata| (metadata.len(), agents::stamp(&metadata).modified));
        let worktree = plan.workspace.worktree.clone();
        let effects = Effects { session: Some(plan.id.clone()), made, worktree, stamp };
        if !self.registry().register_fork(&key, &plan.name, &parent, operation, &effects, now)? {
            return Err(Error::NameTaken(plan.name.clone()));
        }
        Ok(())
    }
}
