//! Forks by seed that have not started: tine keeps the transcript in a private file, and the first resume sends it.
//!
//! Starting such a fork reopens its operation, so the next run can recover from an interruption: the fork either has
//! not started, and its transcript is kept, or it has started, and nothing is kept.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use agents::NewSession;
use transcript::SessionView;

use super::seed::{SeedHandover, hash_of};
use super::{Plan, SeedNote};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::fork::launch;
use crate::fork::seed;
use crate::fork::{Error, Result};
use crate::operations::growth;
use crate::operations::unstarted::{forget_sent, give_up_start};
use crate::private;
use crate::program;
use crate::registry::operations::{Created, Effects, Expected, Forking, KeptSeed, Operation, OperationState, Stage};
use crate::registry::{SessionKey, Started};
use crate::run::drive::send;
use crate::run::drive::{Sent, Target};
use crate::sessions;
use crate::sessions::catalog::Quiet;
use crate::sessions::moved;
use crate::sessions::session::Session;
use transcript::seed::is_acknowledgement;

impl KeptSeed {
    /// What is planned for a fork that isn't to start yet.
    pub(super) fn of(ctx: &Ctx, plan: &Plan) -> Option<Self> {
        let seed = plan.seed.as_ref().filter(|_| plan.keeps_seed)?;
        let file = ctx.context().paths.registry.with_file_name("seeds").join(format!("{}.txt", plan.id));
        Some(KeptSeed { file, nonce: seed.nonce.clone(), stage: Stage::Waiting })
    }
}

/// The words that start a fork; with the first prompt, if there is one.
pub(super) fn start_words(plan: &Plan) -> Vec<String> {
    let mut words: Vec<String> = ["tine", "resume", plan.name.as_str()].map(str::to_owned).to_vec();
    words.extend(plan.prompt.as_ref().map(|prompt| format!("--prompt={prompt}")));
    words
}

/// Writes the seed into a file that only its owner can read. Nothing is sent.
pub(super) fn keep_seed(ctx: &Ctx, plan: &Plan, kept: &KeptSeed) -> Result<(NewSession, SeedNote)> {
    let seed = seed::write_seed(ctx, plan)?;
    let write = || {
        if let Some(folder) = kept.file.parent() {
            private::create_folder(folder)?;
        }
        let mut file = private::new_file(&kept.file)?;
        file.write_all(seed.text.as_bytes())?;
        file.sync_all()?;
        kept.file.parent().map_or(Ok(()), private::sync_folder)
    };
    write().map_err(|source| FileError::Write { path: kept.file.clone(), source })?;
    let made = NewSession { id: plan.id.clone(), path: kept.file.clone() };
    Ok((made, seed::seed_note(ctx, plan, &seed.text)))
}

/// The session of a fork that has not started.
pub(super) fn unstarted_session(ctx: &Ctx, path: &Path) -> Result<SessionView> {
    let sessions = crate::sessions::survey::all_sessions(ctx, &Quiet)?;
    let found = sessions.into_iter().find(|session| session.view.path == path);
    Ok(found.map(|session| session.view).ok_or_else(|| sessions::Error::NotASession(path.to_owned()))?)
}

/// Starts a fork that has not started: its agent receives the kept transcript. A session that has started is returned
/// unchanged. If this fails, the fork still counts as not started. It works in `directory`, by default its own.
pub(crate) fn start_fork(ctx: &Ctx, session: Session, directory: Option<&Path>) -> Result<Session> {
    if !session.view.unstarted {
        return Ok(session);
    }
    let label = session.view.label().to_owned();
    let started = start_unstarted(ctx, &session, directory).map_err(|error| match error {
        Error::BeingStarted(_) => error,
        error if error.is_cancelled() => error,
        error => {
            let is_kept = session.view.path.is_file();
            Error::StartFailed { fork: label, is_kept, source: Box::new(error) }
        }
    })?;
    let sessions = crate::sessions::survey::all_sessions(ctx, &Quiet)?;
    let found = sessions.into_iter().find(|session| session.key() == started);
    Ok(found.ok_or(sessions::Error::NotASession(started.path))?)
}

/// Sends something to a session. A fork that has not started is started first.
pub(crate) fn send(ctx: &Ctx, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
    let started;
    let target = match target {
        Target::Session(session) if session.view.unstarted => {
            send::check_message(text)?;
            send::check_length(ctx, target, text)?;
            started = Target::Session(Box::new(start_fork(ctx, (**session).clone(), None)?));
            &started
        }
        target => target,
    };
    Ok(send::send(ctx, target, text, wait, timeout)?)
}

fn start_unstarted(ctx: &Ctx, session: &Session, directory: Option<&Path>) -> Result<SessionKey> {
    let (view, key) = (&session.view, session.key());
    ctx.registry().check_writable()?;
    let directory = directory.or(view.cwd.as_deref()).unwrap_or(&ctx.context().cwd);
    moved::check_directory(ctx, session, directory)?;
    let operation = ctx.registry().operation_of_unstarted(&key)?;
    let mut operation = operation.ok_or_else(|| sessions::Error::NotASession(key.path.clone()))?;
    let Effects::Fork(waiting) = operation.effects else {
        return Err(sessions::Error::NotASession(key.path).into());
    };
    let Some(mut kept) = waiting.kept.clone() else {
        return Err(sessions::Error::NotASession(key.path).into());
    };
    let adapter = ctx.adapter(view.agent);
    let now = ctx.context().clock.now();
    let target = adapter.accepts_ids().then(|| adapter.path_for(&view.id, directory, now));
    kept.stage = Stage::Sending { since: now.as_millisecond(), target: target.clone() };
    let mark = view.id.to_string();
    let expects = target.is_none().then(|| Expected {
        agent: view.agent,
        mark: Some(kept.nonce.clone()),
        parent: view.parent.as_ref().map_or_else(|| view.id.clone(), |parent| parent.id.clone()),
        since: now.as_millisecond(),
    });
    let starting = Forking { kept: Some(kept.clone()), mark: Some(mark.clone()), expects, ..waiting.clone() };
    operation.effects = Effects::Fork(starting.clone());
    operation.state = OperationState::Started;
    if !ctx.registry().reopen(&operation)? {
        return Err(Error::BeingStarted(view.label().to_owned()));
    }
    let handed = send_kept_seed(ctx, session, directory, &mark, &kept).and_then(|(made, answer)| {
        let started = SessionKey { agent: view.agent, id: made.id.clone(), path: made.path.clone() };
        let effects = Effects::Fork(started_fork(ctx, &waiting, &made, &kept));
        let is_acknowledged = is_acknowledgement(&answer);
        let operation = Operation { effects, ..operation.clone() };
        let new = Started { session: &started, directory, is_acknowledged, operation: &operation };
        // The fork may have been deleted meanwhile.
        let is_there = kept.file.exists() && ctx.registry().register_started(&key, &new)?;
        if is_there { Ok(started) } else { Err(sessions::Error::NotASession(kept.file.clone()).into()) }
    });
    let started = match handed {
        Ok(started) => started,
        Err(error) => {
            if let Err(left) = give_up_start(ctx, operation.id, starting) {
                ctx.warn(format!("{left}; tine retries the next time you run it"));
            }
            return Err(match error {
                Error::Program(program::Error::Failed(trouble)) => program::with_age(ctx, view.agent, trouble).into(),
                error => error,
            });
        }
    };
    forget_sent(ctx, operation.id, started_fork(ctx, &waiting, &made_of(&started), &kept))?;
    launch::announce(ctx, &started, view.label(), directory);
    ctx.back_up();
    Ok(started)
}

fn send_kept_seed(
    ctx: &Ctx,
    session: &Session,
    directory: &Path,
    mark: &str,
    kept: &KeptSeed,
) -> Result<(NewSession, String)> {
    let view = &session.view;
    let text = kept_text(ctx, session)?;
    let note = ctx.registry().seed(view.agent, &view.id)?;
    if note.is_some_and(|note| note.hash != hash_of(&text)) {
        return Err(Error::KeptTranscriptChanged(kept.file.clone()));
    }
    let handing = SeedHandover { agent: view.agent, id: &view.id, name: view.label(), directory, mark, text: &text };
    let (made, answer) = seed::hand_over_seed(ctx, &handing)?;
    seed::check_seed(ctx, view.agent, &made, &text)?;
    Ok((made, answer))
}

fn kept_text(_ctx: &Ctx, session: &Session) -> Result<String> {
    let path = &session.view.path;
    Ok(fs::read_to_string(path).map_err(|source| FileError::Read { path: path.clone(), source })?)
}

/// What the fork's operation has made once it has started.
fn started_fork(ctx: &Ctx, waiting: &Forking, made: &NewSession, kept: &KeptSeed) -> Forking {
    let (session, files) = (Some(made.id.clone()), vec![made.path.clone()]);
    Forking {
        created: Created { session, files, ..waiting.created.clone() },
        fingerprint: growth::fingerprint(ctx, &made.id, &made.path),
        kept: Some(KeptSeed { stage: Stage::Sent, ..kept.clone() }),
        ..waiting.clone()
    }
}

fn made_of(session: &SessionKey) -> NewSession {
    NewSession { id: session.id.clone(), path: session.path.clone() }
}

#[cfg(test)]
mod tests {
    use testkit::build::ClaudeSession;

    use super::*;
    use crate::fork::{Method, Request};
    use crate::test_world::World;

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    /// A fork that has not started, whose start was cut off at a stage.
    fn cut_off_at(world: &World, stage: impl Fn(&crate::Tine, &Session) -> Stage) -> Session {
        ClaudeSession::new(ID)
            .cwd(&world.repository)
            .turn(|turn| turn.prompt("hi").text("ok"))
            .write(&world.claude_home());
        let tine = world.tine();
        let config = &tine.context().paths.config;
        fs::write(config, "[agents.claude]\ncommand = \"/bin/true\"\n").expect("the configuration");
        let tine = world.tine();
        let mut request = Request::of(tine.resolve(ID, &Quiet).expect("the source").session);
        (request.method, request.no_start) = (Some(Method::Seed), true);
        let plan = tine.plan_fork(&request).expect("a plan");
        tine.apply_fork(&plan, &Quiet).expect("a fork");
        let fork = tine.resolve(plan.name.as_str(), &Quiet).expect("the fork").session;
        let mut operation = tine.registry().operation_of_unstarted(&fork.key()).expect("asked").expect("an operation");
        if let Effects::Fork(Forking { kept: Some(kept), .. }) = &mut operation.effects {
            kept.stage = stage(&tine, &fork);
        }
        operation.state = OperationState::Started;
        assert!(tine.registry().reopen(&operation).expect("the registry"));
        tine.registry().simulate_kill_of_all();
        fork
    }

    #[test]
    fn a_start_that_was_cut_off_while_sending_did_not_happen() {
        let world = World::new();
        let place = |tine: &crate::Tine, fork: &Session| {
            tine.ctx.adapter(fork.view.agent).path_for(&fork.view.id, &world.repository, fork.updated())
        };
        let fork = cut_off_at(&world, |tine, fork| {
            ClaudeSession::new(fork.view.id.as_str())
                .cwd(&world.repository)
                .turn(|turn| turn.prompt("half").text("a half"))
                .write(&world.claude_home());
            assert!(place(tine, fork).exists());
            Stage::Sending { since: 0, target: Some(place(tine, fork)) }
        });
        let tine = world.tine();
        assert!(!place(&tine, &fork).exists() && fork.view.path.exists());
        let again = tine.resolve(fork.view.label(), &Quiet).expect("the fork").session;
        assert!(again.view.unstarted);
        tine.undo(None, false).expect("undone");
        assert!(!fork.view.path.exists());
    }

    #[test]
    fn a_transcript_that_was_sent_is_not_kept() {
        let world = World::new();
        let fork = cut_off_at(&world, |_, _| Stage::Sent);
        let tine = world.tine();
        assert!(!fork.view.path.exists());
        let log = tine.registry().operations().expect("the log");
        assert!(matches!(&log[0].effects, Effects::Fork(Forking { kept: None, .. })), "{:?}", log[0]);
        assert!(log[0].state.is_done(), "{:?}", log[0]);
    }
}
