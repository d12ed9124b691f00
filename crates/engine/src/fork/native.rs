//! The method `native`: the agent creates the fork itself, and tine adds what the agent leaves out.

use agents::{CopyRequest, ForkRequest, NewSession};
use transcript::State;

use super::{Plan, compare};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::fork::launch;
use crate::fork::{Error, Result};
use crate::registry::operations::Created;

/// Lets the agent fork, completes what it made, and compares it with the source. Returns how many turns it has.
pub(super) fn fork_natively(ctx: &Ctx, plan: &Plan, created: &mut Created) -> Result<(NewSession, u32)> {
    let adapter = ctx.adapter(plan.agent);
    let program = launch::marked_program(ctx, plan.agent, plan.id.as_str())?;
    let order = ForkRequest {
        source: &plan.source.path,
        source_id: &plan.source.id,
        id: adapter.accepts_ids().then_some(&plan.id),
        title: plan.name.as_str(),
        // A source that is open may get more turns before the agent reads it.
        turns: (!plan.whole || plan.source.state != State::Stopped).then_some(plan.turns),
        directory: &plan.workspace.path,
    };
    let made = adapter.fork(&program, &order)?;
    created.add(&made.path);
    let failed = |source| FileError::Write { path: made.path.clone(), source };
    let order = CopyRequest {
        source_id: plan.source.id.clone(),
        id: made.id.clone(),
        turns: (!plan.whole).then_some(plan.turns),
        relink: false,
        tip: None,
        cwd: plan.workspace.path.clone(),
        branch: plan.workspace.branch.clone(),
        title: Some(plan.name.to_string()),
        target: made.path.clone(),
        now: ctx.context().clock.now(),
    };
    let side = made.path.with_extension("");
    created.add(&side);
    let cut = (!plan.whole).then_some(made.path.as_path());
    adapter.copy_side_folder(&plan.source.path, &order, &side, cut).map_err(failed)?;
    let turns = adapter.scan(&made.path).turns;
    if turns != plan.turns && !plan.after_compaction {
        let what = format!("the agent's own fork has {turns} turns instead of {}", plan.turns);
        return Err(Error::NativeDiffers { agent: plan.agent, what });
    }
    compare::same_history(adapter, plan, &made.path)?;
    Ok((made, turns))
}
