//! Carrying out a plan.

use agents::{NewSession, ProgramError};
use jiff::Timestamp;
use transcript::translate::Receipt;
use transcript::{ParentSource, SessionView};

use super::copy::Files;
use super::{KeptSeed, Method, Plan, SeedNote};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::fork::copy;
use crate::fork::launch;
use crate::fork::native;
use crate::fork::plan;
use crate::fork::seed;
use crate::fork::translate;
use crate::fork::unstarted;
use crate::fork::workspace;
use crate::fork::{Error, Result};
use crate::names;
use crate::operations::clean_up;
use crate::operations::delete;
use crate::operations::free_names;
use crate::operations::growth;
use crate::program;
use crate::registry;
use crate::registry::operations::{Created, CreatedWorkspace, Effects, Expected, Forking, NewFork};
use crate::registry::{Lineage, SessionKey};
use crate::run::profile::process;
use crate::sessions::moved;
use crate::workspace::directory::CopyProgress;

/// A fork that was made.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new session.
    pub session: SessionView,
    /// The plan as carried out: generated names, workspaces and methods may have been replaced.
    pub plan: Plan,
    /// The operation, which `undo` reverses.
    pub operation: i64,
}

/// A fork that is complete and not registered yet.
struct Complete {
    made: NewSession,
    /// How many turns it has.
    turns: u32,
    seed: Option<SeedNote>,
    receipt: Option<Receipt>,
}

/// Creates the planned fork. If anything fails, nothing is left behind. A translation that fails gives way to a
/// seed, unless the user chose the method.
pub(crate) fn apply_fork(ctx: &Ctx, plan: &Plan, progress: &dyn CopyProgress) -> Result<Forked> {
    let error = match apply_part(ctx, plan, None, progress) {
        Ok(forked) => return Ok(forked),
        Err(error) => error,
    };
    let is_of_translation = match &error {
        Error::NotForked(source) => matches!(**source, Error::TranslationDiffers { .. }),
        _ => false,
    };
    match plan::as_seed(ctx, plan, &error)? {
        Some(seeded) if is_of_translation => apply_part(ctx, &seeded, None, progress),
        _ => Err(error),
    }
}

/// The same for one that is a part of an operation.
pub(super) fn apply_part(ctx: &Ctx, plan: &Plan, part_of: Option<i64>, progress: &dyn CopyProgress) -> Result<Forked> {
    let now = ctx.context().clock.now();
    // A generated name is replaced if another process takes it first, and so is the workspace named after it.
    let mut plan = plan.clone();
    free_names::release_name(ctx, &plan.name)?;
    process::keep_files(ctx, &plan.profile);
    let (operation, mut fork) = loop {
        let fork = planned(ctx, &plan, now);
        let what = format!("fork {} after turn {} as {}", plan.source.label(), plan.turns, plan.name);
        let begun = ctx.registry().begin_operation(&what, &Effects::Fork(fork.clone()), part_of, now);
        match begun {
            Ok(operation) => break (operation, fork),
            Err(registry::Error::NameTaken(_) | registry::Error::PathReserved(_))
                if can_choose_other_name(ctx, &plan)? =>
            {
                rename_plan(ctx, &mut plan)?;
            }
            Err(error) => return Err(error.into()),
        }
    };
    let (made, files) = loop {
        let files = Files::of(ctx, &plan);
        let made = make(ctx, &plan, &files, operation, &mut fork, progress)
            .and_then(|complete| register(ctx, &plan, &complete, &fork, operation).map(|()| complete.made));
        let error = match made {
            Ok(made) => break (made, files),
            Err(Error::Program(program::Error::Failed(trouble))) => program::with_age(ctx, plan.agent, trouble).into(),
            Err(error) => error,
        };
        // A program that did not answer may have started others.
        let written = clean_up::end_agents(ctx, fork.mark.as_deref());
        clean_up::find_expected(ctx, &mut fork.created, fork.expects.as_ref(), &written);
        let removed = clean_up::remove_created(ctx, &fork.created);
        if let Err(error) = ctx.registry().forget_made(&fork.created.files) {
            ctx.warn(error.to_string());
        }
        if removed.is_ok() && may_be_copied(&plan, &error) {
            plan = plan::as_copy(ctx, &plan, &error);
            fork = planned(ctx, &plan, now);
            if ctx.registry().record_effects(operation, &Effects::Fork(fork.clone())).is_ok() {
                continue;
            }
        }
        let is_removed = removed.is_ok();
        clean_up::fail(ctx, operation, removed);
        return Err(match error {
            error if error.is_cancelled() => error,
            error if is_removed => Error::NotForked(Box::new(error)),
            error => error,
        });
    };
    if plan.keeps_seed {
        return Ok(Forked { session: unstarted::unstarted_session(ctx, &made.path)?, plan, operation });
    }
    let session = copy::made_session(ctx, plan.agent, &files, &made.path)?.view;
    match plan.method {
        Method::Native => delete::add_to_agent_list(ctx, &made.path),
        Method::Copy | Method::Translate | Method::Seed => {
            let key = SessionKey { agent: plan.agent, id: made.id, path: made.path };
            launch::announce(ctx, &key, plan.name.as_str(), &plan.workspace.path);
        }
    }
    Ok(Forked { session, plan, operation })
}

/// Whether another name can be used: this one was generated, and it is taken.
fn can_choose_other_name(ctx: &Ctx, plan: &Plan) -> Result<bool> {
    Ok(!plan.name_is_chosen && ctx.registry().taken_names()?.contains(plan.name.as_str()))
}

/// Gives the fork the next free name, and its workspace too if that follows the name.
fn rename_plan(ctx: &Ctx, plan: &mut Plan) -> Result<()> {
    let (name, workspace) = plan::named_workspace(ctx, &names::base_of(&plan.source), &plan.asked, &[])?;
    plan.name = name;
    if plan.asked.follows_name() {
        plan.workspace = workspace;
    }
    if plan.asked.follows_name() || plan.keeps_seed {
        plan::set_target(ctx, plan);
    }
    Ok(())
}

/// Whether a fork that failed may be made by copy instead: where the agent's own was nobody's wish, and it is the
/// agent that failed.
fn may_be_copied(plan: &Plan, error: &Error) -> bool {
    let is_the_agents = match error {
        Error::Program(program::Error::Failed(ProgramError::Cancelled { .. })) => false,
        Error::Program(program::Error::Failed(_) | program::Error::TooOld { .. }) | Error::NativeDiffers { .. } => true,
        _ => false,
    };
    is_the_agents && plan.method == Method::Native && !plan.method_is_chosen && plan.workspace.is_there()
}

/// What the fork will create, if known in advance.
fn planned(ctx: &Ctx, plan: &Plan, now: Timestamp) -> Forking {
    let (workspace, reserves) = (plan.workspace.creates.clone(), Some(plan.name.clone()));
    if let Some(kept) = KeptSeed::of(ctx, plan) {
        let (session, files) = (Some(plan.id.clone()), vec![kept.file.clone()]);
        let created = Created { session, files, workspace, ..Created::default() };
        return Forking { created, reserves, kept: Some(kept), ..Forking::default() };
    }
    let files = Files::of(ctx, plan);
    let created = Created {
        session: plan.id_is_chosen.then(|| plan.id.clone()),
        files: if plan.id_is_chosen { files.all() } else { Vec::new() },
        folders: files.missing_folders(),
        workspace,
        ..Created::default()
    };
    let expects = (!plan.id_is_chosen).then(|| Expected {
        agent: plan.agent,
        mark: plan.seed.as_ref().map(|seed| seed.nonce.clone()),
        parent: plan.source.id.clone(),
        since: now.as_millisecond(),
    });
    let mark = (!matches!(plan.method, Method::Copy | Method::Translate)).then(|| plan.id.to_string());
    Forking { created, reserves, mark, expects, ..Forking::default() }
}

/// Makes everything that belongs to the fork; `fork` knows at any time what there is to remove.
fn make(
    ctx: &Ctx,
    plan: &Plan,
    files: &Files,
    operation: i64,
    fork: &mut Forking,
    progress: &dyn CopyProgress,
) -> Result<Complete> {
    match plan.method {
        Method::Copy | Method::Translate => {
            // A worktree is made after the copy: flushing a file makes some file systems flush all that was written
            // before it, a whole worktree included.
            let prepared = match plan.method {
                Method::Translate => translate::prepare(ctx, plan, files).map(Some),
                _ => copy::prepare(ctx, ctx.adapter(plan.agent), plan, files).map(|()| None),
            };
            let translated = prepared.and_then(|translated| {
                record_notes(ctx, files, operation, fork)?;
                Ok(translated)
            });
            let translated = match translated {
                Ok(translated) => translated,
                Err(error) => {
                    // Whatever is in the workspace's place is not ours to remove.
                    fork.created.workspace = None;
                    fork.created.notes.clear();
                    return Err(error);
                }
            };
            let made = create_workspace(ctx, plan, operation, fork, progress);
            let made = made.and_then(|()| files.put_in_place());
            let brought = files.brought();
            fork.created.notes.retain(|note| brought.contains(&note.path));
            made?;
            let made = NewSession { id: plan.id.clone(), path: plan.target.clone() };
            let turns = translated.as_ref().map_or(plan.turns, |(_, turns)| *turns);
            Ok(Complete { made, turns, seed: None, receipt: translated.map(|(receipt, _)| receipt) })
        }
        Method::Native => {
            create_workspace(ctx, plan, operation, fork, progress)?;
            let (made, turns) = native::fork_natively(ctx, plan, &mut fork.created)?;
            Ok(Complete { made, turns, seed: None, receipt: None })
        }
        Method::Seed => {
            create_workspace(ctx, plan, operation, fork, progress)?;
            if let Some(kept) = &fork.kept {
                let (made, note) = unstarted::keep_seed(ctx, plan, kept)?;
                return Ok(Complete { made, turns: 0, seed: Some(note), receipt: None });
            }
            let (made, note) = seed::fork_by_seed(ctx, plan, &mut fork.created)?;
            Ok(Complete { made, turns: 1, seed: Some(note), receipt: None })
        }
    }
}

fn create_workspace(
    ctx: &Ctx,
    plan: &Plan,
    operation: i64,
    fork: &mut Forking,
    progress: &dyn CopyProgress,
) -> Result<()> {
    let so_far = fork.clone();
    let record = |workspace: &CreatedWorkspace| {
        let mut fork = so_far.clone();
        fork.created.workspace = Some(workspace.clone());
        ctx.registry().record_effects(operation, &Effects::Fork(fork)).map_err(Error::from)
    };
    workspace::create_workspace(ctx, &plan.workspace, &mut fork.created.workspace, &record, progress)
}

/// Records the notes that are about to be put where others keep theirs.
fn record_notes(ctx: &Ctx, files: &Files, operation: i64, fork: &mut Forking) -> Result<()> {
    fork.created.notes = files.notes()?;
    if fork.created.notes.is_empty() {
        return Ok(());
    }
    Ok(ctx.registry().record_effects(operation, &Effects::Fork(fork.clone()))?)
}

fn register(ctx: &Ctx, plan: &Plan, complete: &Complete, fork: &Forking, operation: i64) -> Result<()> {
    let Complete { made, turns, seed, receipt } = complete;
    let now = ctx.context().clock.now();
    // Agents don't flush what they write, and a fork that is registered must not lose its transcript in a power cut.
    agents::sync_session(&made.path).map_err(|source| FileError::Write { path: made.path.clone(), source })?;
    let key = SessionKey { agent: plan.agent, id: made.id.clone(), path: made.path.clone() };
    let parent = Lineage {
        agent: plan.source.agent,
        id: plan.source.id.clone(),
        turn: Some(plan.turns),
        source: ParentSource::Tine,
    };
    let mut created = Created { session: Some(made.id.clone()), ..fork.created.clone() };
    // The transcript is the first: it shows whether the fork has grown.
    created.files.retain(|path| *path != made.path && agents::is_there(path));
    created.files.insert(0, made.path.clone());
    let fingerprint = growth::fingerprint(ctx, &made.id, &made.path);
    let effects = Effects::Fork(Forking { created, fingerprint, kept: fork.kept.clone(), ..Forking::default() });
    let begins_alike = !matches!(plan.method, Method::Seed | Method::Translate) && !plan.after_compaction;
    let fork = NewFork {
        key,
        name: &plan.name,
        parent,
        seed: seed.as_ref(),
        receipt: receipt.as_ref(),
        begins_alike,
        profile: &plan.profile,
        directory: &plan.workspace.path,
        turns: *turns,
        is_unstarted: plan.keeps_seed,
        effects,
    };
    if !ctx.registry().register_fork(&fork, operation, now)? {
        return Err(registry::Error::NameTaken(plan.name.clone()).into());
    }
    moved::note_repository(ctx, &plan.workspace.path);
    ctx.back_up();
    Ok(())
}

#[cfg(test)]
mod tests {
    use testkit::build::ClaudeSession;
    use transcript::{Agent, SessionId};

    use crate::fork::{Request, SeedNote};
    use crate::sessions::catalog::Quiet;
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
        let (parent, hash) = ("other".to_owned(), "x".to_owned());
        let note =
            SeedNote { parent_agent: Agent::Codex, parent, turn: 7, hash, tokens: 1, window: None, hidden: true };
        tine.registry().record_seed(ID, &note);
        let source = tine.resolve(ID, &Quiet).expect("the source").session;
        let plan = tine.plan_fork(&Request::of(source)).expect("a plan");
        let fork = tine.apply_fork(&plan, &Quiet).expect("a fork").session;
        let note = tine.registry().seed(Agent::Claude, &fork.id).expect("the registry").expect("a note");
        assert_eq!((note.parent.as_str(), note.turn, note.hidden), ("other", 7, true));
        let unknown = SessionId::new("other").expect("an id");
        assert!(tine.registry().seed(Agent::Claude, &unknown).expect("the registry").is_none());
    }
}
