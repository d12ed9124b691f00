//! Carrying out a plan.

use std::collections::HashSet;
use std::fs;

use agents::Made;
use jiff::Timestamp;
use transcript::{ParentSource, SessionName, SessionView};

use super::copy::Files;
use super::{Method, Plan, SeedNote};
use crate::Tine;
use crate::directory::CopyProgress;
use crate::error::{Error, Result};
use crate::names;
use crate::operations::{Effects, Expected, NewFork};
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
    pub fn apply_fork(&self, plan: &Plan, progress: &dyn CopyProgress) -> Result<Forked> {
        let now = self.context().clock.now();
        // A name that nobody chose gives way to one that somebody was quicker to take.
        let mut plan = std::borrow::Cow::Borrowed(plan);
        let (operation, mut effects) = loop {
            let effects = self.planned_effects(&plan, now);
            let what = format!("fork {} after turn {} as {}", plan.source.label(), plan.turns, plan.name);
            let begun = self.registry().begin_operation("fork", &what, &effects, now);
            match begun {
                Ok(operation) => break (operation, effects),
                Err(Error::NameTaken(_)) if !plan.name_is_chosen && plan.workspace.worktree.is_none() => {
                    plan.to_mut().name = self.next_name(&plan)?;
                }
                Err(error) => return Err(error),
            }
        };
        let plan = plan.as_ref();
        let files = Files::of(plan);
        let made = self
            .make(plan, &files, operation, &mut effects, progress)
            .and_then(|(made, seed)| self.register(plan, &made, seed.as_ref(), &effects, operation).map(|()| made));
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                self.find_expected(&mut effects, &[]);
                self.remove_effects(&effects);
                let _ = self.registry().end_operation(operation, "failed", None);
                return Err(error);
            }
        };
        let session = self.made_session(plan.agent, &files, &made.path)?.view;
        if plan.method != Method::Native {
            self.announce(plan, &session);
        }
        Ok(Forked { session, operation })
    }

    /// What the fork will make, as far as it is known before.
    fn planned_effects(&self, plan: &Plan, now: Timestamp) -> Effects {
        Effects {
            session: plan.id_is_chosen.then(|| plan.id.clone()),
            made: if plan.id_is_chosen { Files::of(plan).all() } else { Vec::new() },
            worktree: plan.workspace.worktree.clone(),
            copy: plan.workspace.copy.clone(),
            reserves: Some(plan.name.clone()),
            mark: (plan.method != Method::Copy).then(|| plan.id.to_string()),
            expects: (!plan.id_is_chosen).then(|| Expected {
                agent: plan.agent,
                mark: plan.seed.as_ref().map(|seed| seed.nonce.clone()),
                parent: plan.source.id.clone(),
                since: now.as_millisecond(),
            }),
            ..Effects::default()
        }
    }

    /// The next name for a fork that nobody named; names that others are about to take count as taken.
    fn next_name(&self, plan: &Plan) -> Result<SessionName> {
        let mut taken: HashSet<String> = self.registry().names()?.into_values().map(|name| name.to_string()).collect();
        let started = self.registry().operations()?.into_iter().filter(|operation| operation.state == "started");
        taken.extend(started.filter_map(|operation| operation.effects.reserves).map(|name| name.to_string()));
        names::for_fork(&names::base_of(&plan.source), |name| taken.contains(name)).ok_or(Error::NoNameLeft)
    }

    /// Makes everything that belongs to the fork; `effects` knows at any time what there is to remove.
    fn make(
        &self,
        plan: &Plan,
        files: &Files,
        operation: i64,
        effects: &mut Effects,
        progress: &dyn CopyProgress,
    ) -> Result<(Made, Option<SeedNote>)> {
        match plan.method {
            Method::Copy => {
                // A worktree is made after the copy: flushing a file makes some file systems flush all that was written
                // before it, a whole worktree included.
                if let Err(error) = self.prepare(self.store(plan.agent), plan, files) {
                    // What stands where the workspace belongs, if anything does, is not ours to remove.
                    (effects.worktree, effects.copy) = (None, None);
                    return Err(error);
                }
                self.make_workspace(&plan.workspace, operation, effects, progress)?;
                files.put_in_place()?;
                for path in files.brought() {
                    effects.note(&path);
                }
                Ok((Made { id: plan.id.clone(), path: plan.target.clone() }, None))
            }
            Method::Native => {
                self.make_workspace(&plan.workspace, operation, effects, progress)?;
                Ok((self.fork_natively(plan, effects)?, None))
            }
            Method::Seed => {
                self.make_workspace(&plan.workspace, operation, effects, progress)?;
                self.fork_by_seed(plan, effects).map(|(made, note)| (made, Some(note)))
            }
        }
    }

    fn register(
        &self,
        plan: &Plan,
        made: &Made,
        seed: Option<&SeedNote>,
        effects: &Effects,
        operation: i64,
    ) -> Result<()> {
        let now = self.context().clock.now();
        let key = SessionKey { agent: plan.agent, id: made.id.clone(), path: made.path.clone() };
        let parent = Lineage {
            agent: plan.source.agent,
            id: plan.source.id.clone(),
            turn: Some(plan.turns),
            source: ParentSource::Tine,
        };
        let mut effects = effects.clone();
        effects.session = Some(made.id.clone());
        (effects.expects, effects.reserves, effects.mark) = (None, None, None);
        // The transcript stands first: whether the fork has grown is told by it.
        effects.made.retain(|path| *path != made.path && path.exists());
        effects.made.insert(0, made.path.clone());
        let metadata = fs::metadata(&made.path);
        effects.stamp = metadata.ok().map(|metadata| (metadata.len(), agents::stamp(&metadata).modified));
        let fork = NewFork { key, name: &plan.name, parent, seed, profile: &plan.profile, effects };
        if !self.registry().register_fork(&fork, operation, now)? {
            return Err(Error::NameTaken(plan.name.clone()));
        }
        self.note_repository(&plan.workspace.path);
        Ok(())
    }
}
