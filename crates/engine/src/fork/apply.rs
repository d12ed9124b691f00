//! Carrying out a plan.

use agents::{Made, ProgramError, Resumed};
use jiff::Timestamp;
use transcript::{ParentSource, SessionView};

use super::copy::Files;
use super::{Method, Plan, SeedNote};
use crate::Tine;
use crate::directory::CopyProgress;
use crate::error::{Error, Result};
use crate::names;
use crate::operations::{Effects, Expected, NewFork, content_of, stamp_of};
use crate::registry::{Lineage, SessionKey};

/// A fork that was made.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new session.
    pub session: SessionView,
    /// The plan as it was carried out: another name, workspace or method may have taken the place of one that nobody
    /// chose.
    pub plan: Plan,
    /// The operation, which `undo` reverses.
    pub operation: i64,
}

impl Tine {
    /// Makes the fork that `plan` describes. On any failure nothing of it is left.
    pub fn apply_fork(&self, plan: &Plan, progress: &dyn CopyProgress) -> Result<Forked> {
        let now = self.context().clock.now();
        // A name that nobody chose gives way where somebody was quicker to take it; so does the workspace that is called
        // after it.
        let mut plan = plan.clone();
        self.release_name(&plan.name)?;
        let (operation, mut effects) = loop {
            let effects = self.planned_effects(&plan, now);
            let what = format!("fork {} after turn {} as {}", plan.source.label(), plan.turns, plan.name);
            let begun = self.registry().begin_operation("fork", &what, &effects, now);
            match begun {
                Ok(operation) => break (operation, effects),
                Err(Error::NameTaken(_) | Error::InTheWay(_)) if self.gives_way(&plan)? => {
                    self.rename_plan(&mut plan)?;
                }
                Err(error) => return Err(error),
            }
        };
        let (made, files) = loop {
            let files = Files::of(&plan);
            let made = self.make(&plan, &files, operation, &mut effects, progress).and_then(|(made, seed)| {
                self.register(&plan, &made, seed.as_ref(), &effects, operation).map(|()| made)
            });
            let error = match made {
                Ok(made) => break (made, files),
                Err(error) => self.with_age(plan.agent, error),
            };
            // A program that did not answer may have started others.
            let written = self.end_agents(&effects);
            self.find_expected(&mut effects, &written);
            self.remove_effects(&effects);
            if self.may_be_copied(&plan, &error) {
                plan = self.as_copy(&plan, &error);
                effects = self.planned_effects(&plan, now);
                if self.registry().note_effects(operation, &effects).is_ok() {
                    continue;
                }
            }
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        };
        let session = self.made_session(plan.agent, &files, &made.path)?.view;
        match plan.method {
            Method::Native => self.enlist(&made.path),
            Method::Copy | Method::Seed => self.announce(&plan, &session),
        }
        Ok(Forked { session, plan, operation })
    }

    /// Whether another name serves as well: nobody chose this one, and it is what is taken.
    fn gives_way(&self, plan: &Plan) -> Result<bool> {
        Ok(!plan.name_is_chosen && self.registry().taken_names()?.contains(plan.name.as_str()))
    }

    /// Calls the fork by the next free name, and its workspace as well where that follows the name.
    fn rename_plan(&self, plan: &mut Plan) -> Result<()> {
        let (name, workspace) = self.named_workspace(&names::base_of(&plan.source), &plan.asked)?;
        plan.name = name;
        if plan.asked.follows_name() {
            let now = self.context().clock.now();
            plan.workspace = workspace;
            plan.target = self.store(plan.agent).place_for(&plan.id, &plan.workspace.path, now);
            let planned = Resumed { id: &plan.id, path: &plan.target };
            let (directory, prompt) = (&plan.workspace.path, plan.prompt.as_deref());
            let words = self.store(plan.agent).resume_command(planned, directory, &plan.profile.args, prompt);
            plan.command = self.as_configured(plan.agent, words);
        }
        Ok(())
    }

    /// Whether a fork that failed may be made by copy instead: where the agent's own was nobody's wish, and it is the
    /// agent that failed.
    fn may_be_copied(&self, plan: &Plan, error: &Error) -> bool {
        let is_the_agents = match error {
            Error::Program(ProgramError::Cancelled { .. }) => false,
            Error::Program(_) | Error::TooOld { .. } | Error::NativeDiffers { .. } => true,
            _ => false,
        };
        is_the_agents && plan.method == Method::Native && !plan.method_is_chosen && plan.workspace.is_there()
    }

    /// What the fork will make, as far as it is known before.
    fn planned_effects(&self, plan: &Plan, now: Timestamp) -> Effects {
        Effects {
            session: plan.id_is_chosen.then(|| plan.id.clone()),
            made: if plan.id_is_chosen { Files::of(plan).all() } else { Vec::new() },
            worktree: plan.workspace.worktree.clone(),
            copy: plan.workspace.copy.clone(),
            reserves: Some(plan.name.clone()),
            folders: Files::of(plan).missing_folders(),
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
                let prepared = self.prepare(self.store(plan.agent), plan, files);
                if let Err(error) = prepared.and_then(|()| self.note_notes(files, operation, effects)) {
                    // What stands where the workspace belongs, if anything does, is not ours to remove.
                    (effects.worktree, effects.copy) = (None, None);
                    effects.notes.clear();
                    return Err(error);
                }
                let made = self.make_workspace(&plan.workspace, operation, effects, progress);
                let made = made.and_then(|()| files.put_in_place());
                let brought = files.brought();
                effects.notes.retain(|(path, _)| brought.contains(path));
                made?;
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

    /// Tells the registry of the notes that are about to be put where others keep theirs.
    fn note_notes(&self, files: &Files, operation: i64, effects: &mut Effects) -> Result<()> {
        effects.notes = files.notes()?;
        match effects.notes.is_empty() {
            true => Ok(()),
            false => self.registry().note_effects(operation, effects),
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
        (effects.stamp, effects.content) = (stamp_of(&made.path), content_of(&made.path));
        effects.beside = Some(self.beside(&made.id, &made.path));
        let begins_alike = plan.method != Method::Seed && !plan.after_compaction;
        let fork = NewFork { key, name: &plan.name, parent, seed, begins_alike, profile: &plan.profile, effects };
        if !self.registry().register_fork(&fork, operation, now)? {
            return Err(Error::NameTaken(plan.name.clone()));
        }
        self.note_repository(&plan.workspace.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use testkit::build::ClaudeSession;
    use transcript::{Agent, SessionId};

    use crate::catalog::Quiet;
    use crate::fork::Request;
    use crate::test_world::World;

    /// Its first turn is the transcript that the source was told, which is shown as one line.
    #[test]
    fn a_fork_of_a_seeded_session_is_seeded() {
        const ID: &str = "11111111-1111-4111-8111-111111111111";
        let world = World::new();
        let session = ClaudeSession::new(ID).cwd(&world.repository);
        session
            .turn(|turn| turn.prompt("[TINE_FORK_SEED]\nlong").text("Ready."))
            .turn(|turn| turn.prompt("go on").text("done"))
            .write(&world.claude_home());
        let tine = world.tine();
        let query = "INSERT INTO seeds (agent, id, parent_agent, parent_id, turn, hash, tokens, window, hidden)
                     VALUES ('claude', ?1, 'codex', 'other', 7, 'x', 1, NULL, 1)";
        tine.registry().write(|transaction| transaction.execute(query, [ID])).expect("a note");
        let source = tine.resolve(ID, &Quiet).expect("the source").session;
        let plan = tine.plan_fork(&Request::of(source)).expect("a plan");
        let fork = tine.apply_fork(&plan, &Quiet).expect("a fork").session;
        let note = tine.registry().seed(Agent::Claude, &fork.id).expect("the registry").expect("a note");
        assert_eq!((note.parent.as_str(), note.turn, note.hidden), ("other", 7, true));
        let unknown = SessionId::new("other").expect("an id");
        assert!(tine.registry().seed(Agent::Claude, &unknown).expect("the registry").is_none());
    }
}
