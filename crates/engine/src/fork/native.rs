//! The method `native`: the agent makes the fork itself, and tine brings along what the agent leaves behind.

use agents::{CopyOrder, Made, NativeOrder};
use transcript::State;

use super::{Plan, compare};
use crate::Tine;
use crate::error::{Error, Result};
use crate::operations::Effects;

impl Tine {
    /// Lets the agent fork, completes what it made, and compares it with the source.
    pub(super) fn fork_natively(&self, plan: &Plan, effects: &mut Effects) -> Result<Made> {
        let store = self.store(plan.agent);
        let program = self.marked_program(plan)?;
        let order = NativeOrder {
            source: &plan.source.path,
            source_id: &plan.source.id,
            id: store.takes_ids().then_some(&plan.id),
            title: plan.name.as_str(),
            // A source that is open may get more turns before the agent reads it.
            turns: (!plan.whole || plan.source.state != State::Stopped).then_some(plan.turns),
            directory: &plan.workspace.path,
        };
        let made = store.fork(&program, &order)?;
        effects.note(&made.path);
        let failed = |source| Error::CannotWrite { path: made.path.clone(), source };
        let order = CopyOrder {
            source_id: plan.source.id.clone(),
            id: made.id.clone(),
            turns: (!plan.whole).then_some(plan.turns),
            cwd: plan.workspace.path.clone(),
            branch: plan.workspace.branch.clone(),
            title: Some(plan.name.to_string()),
            target: made.path.clone(),
            now: self.context().clock.now(),
        };
        let side = made.path.with_extension("");
        effects.note(&side);
        let cut = (!plan.whole).then_some(made.path.as_path());
        store.copy_side(&plan.source.path, &order, &side, cut).map_err(failed)?;
        let turns = store.scan(&made.path).turns;
        if turns != plan.turns && !plan.after_compaction {
            let what = format!("the agent's own fork has {turns} turns instead of {}", plan.turns);
            return Err(Error::NativeDiffers { agent: plan.agent, what });
        }
        compare::same_history(store, plan, &made.path)?;
        Ok(made)
    }
}
