//! Several forks of one session, which are planned, made and undone as one operation.
//!
//! The operation itself creates nothing. Each fork is a part of it with its own effects, so everything that applies to
//! one fork applies to each of them. If one fails or the process is killed, the others are undone.

use transcript::SessionName;

use super::{Forked, Plan, Request, Where};
use crate::ctx::Ctx;
use crate::fork::Result;
use crate::fork::apply;
use crate::fork::plan;
use crate::operations::undo;
use crate::registry::operations::{Effects, OperationState};
use crate::sessions::catalog::Quiet;

/// What one of several forks has for itself.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its name; by default, the first free one.
    pub name: Option<SessionName>,
    /// The branch of its worktree; by default, the fork's name.
    pub branch: Option<String>,
    /// Its first prompt.
    pub prompt: Option<String>,
}

impl Part {
    fn request(&self, shared: &Request) -> Request {
        let mut request = shared.clone();
        request.name.clone_from(&self.name);
        request.prompt.clone_from(&self.prompt);
        if let Where::Worktree { branch, .. } = &mut request.workspace {
            branch.clone_from(&self.branch);
        }
        request
    }
}

/// Plans several forks of the session in `request` and touches nothing.
pub(crate) fn plan_forks(ctx: &Ctx, request: &Request, parts: &[Part]) -> Result<Vec<Plan>> {
    let mut plans: Vec<Plan> = Vec::with_capacity(parts.len());
    for part in parts {
        let request = part.request(request);
        let plan = match plans.first() {
            None => plan::plan_fork(ctx, &request)?,
            // The history is the same, so it is read and measured once.
            Some(first) => {
                let others: Vec<SessionName> = plans.iter().map(|plan| plan.name.clone()).collect();
                plan::plan_alike(ctx, first, &request, &others)?
            }
        };
        plans.push(plan);
    }
    Ok(plans)
}

/// Creates several forks as one operation, and calls `progress` with the number of complete ones. If one fails, none is
/// kept.
pub(crate) fn apply_forks(ctx: &Ctx, plans: &[Plan], progress: &dyn Fn(usize)) -> Result<Vec<Forked>> {
    let Some(first) = plans.first() else { return Ok(Vec::new()) };
    let what = format!("fork {} after turn {}, {} times", first.source.label(), first.turns, plans.len());
    let now = ctx.context().clock.now();
    let operation = ctx.registry().begin_operation(&what, &Effects::Forks, None, now)?;
    let mut forks = Vec::with_capacity(plans.len());
    for (done, plan) in plans.iter().enumerate() {
        progress(done);
        match apply::apply_part(ctx, plan, Some(operation), &Quiet) {
            Ok(fork) => forks.push(Forked { operation, ..fork }),
            Err(error) => {
                undo::undo_all_parts(ctx, operation)?;
                ctx.registry().set_state(operation, &OperationState::Failed, None)?;
                return Err(error);
            }
        }
    }
    ctx.registry().set_state(operation, &OperationState::Done, None)?;
    Ok(forks)
}

#[cfg(test)]
mod tests {
    use testkit::build::ClaudeSession;

    use super::*;

    use crate::test_world::World;

    /// The state of the last operation that is no part of another.
    fn state_of_last(tine: &crate::Tine) -> &'static str {
        tine.registry().log().expect("the log")[0].operation().expect("a record that can be read").state.as_str()
    }

    fn parts(count: usize) -> Vec<Part> {
        vec![Part::default(); count]
    }

    fn request(tine: &crate::Tine, world: &World) -> Request {
        const ID: &str = "11111111-1111-4111-8111-111111111111";
        let session = ClaudeSession::new(ID).cwd(&world.repository);
        session.turn(|turn| turn.prompt("hi").text("ok")).write(&world.claude_home());
        let mut request = Request::of(tine.resolve(ID, &Quiet).expect("the source").session);
        request.workspace = Where::Worktree { branch: None, base: None };
        request
    }

    #[test]
    fn several_forks_are_one_operation() {
        let world = World::new();
        let tine = world.tine();
        let plans = tine.plan_forks(&request(&tine, &world), &parts(3)).expect("plans");
        let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        assert_eq!(names, ["hi-fork-1", "hi-fork-2", "hi-fork-3"]);
        let forks = tine.apply_forks(&plans, &|_| {}).expect("forks");
        let log: Vec<_> = tine.registry().log().expect("the log");
        let whole = log[0].operation().expect("a record that can be read").clone();
        assert_eq!((log.len(), whole.parts.len()), (1, 3));
        assert!(forks.iter().all(|fork| fork.operation == whole.id && fork.plan.workspace.path.exists()));
        assert_eq!(tine.undo(None, false).expect("undone").id, whole.id);
        assert!(forks.iter().all(|fork| !fork.plan.workspace.path.exists() && !fork.session.path.exists()));
        assert!(matches!(
            tine.undo(None, false),
            Err(crate::Error::Operations(crate::operations::Error::NothingToUndo(None)))
        ));
    }

    #[test]
    fn one_fork_that_has_grown_keeps_them_all() {
        let world = World::new();
        let tine = world.tine();
        let plans = tine.plan_forks(&request(&tine, &world), &parts(2)).expect("plans");
        let forks = tine.apply_forks(&plans, &|_| {}).expect("forks");
        std::fs::write(forks[0].plan.workspace.path.join("work"), "").expect("a file");
        let error = tine.undo(None, false).expect_err("one has grown");
        assert!(error.to_string().contains("hi-fork-1"), "{error}");
        assert!(forks.iter().all(|fork| fork.session.path.exists()));
        tine.undo(Some(forks[0].operation), true).expect("undone");
        assert!(forks.iter().all(|fork| !fork.session.path.exists()));
    }

    #[test]
    fn a_failure_or_a_kill_leaves_none_of_them() {
        let world = World::new();
        let tine = world.tine();
        let mut plans = tine.plan_forks(&request(&tine, &world), &parts(2)).expect("plans");
        plans[1].source.path = "/nonexistent".into();
        tine.apply_forks(&plans, &|_| {}).expect_err("the second one has no source");
        assert!(!plans[0].target.exists() && !plans[0].workspace.path.exists());
        assert_eq!(state_of_last(&tine), "failed");

        let plans = tine.plan_forks(&request(&tine, &world), &parts(2)).expect("plans");
        let now = tine.context().clock.now();
        let parent = tine.registry().begin_operation("forks", &Effects::Forks, None, now).expect("an operation");
        let fork = crate::fork::apply::apply_part(&tine.ctx, &plans[0], Some(parent), &Quiet).expect("a fork");
        tine.registry().simulate_kill_of_all();
        drop(tine);
        let tine = world.tine();
        assert!(!fork.session.path.exists() && !fork.plan.workspace.path.exists());
        assert_eq!(state_of_last(&tine), "cleaned");
    }
}
