//! Runs the agent of a fork where its plan says.

use std::time::Duration;

use diagnostics::OrLog;

use super::{Forked, Place};
use crate::ctx::Ctx;
use crate::fork::launch;
use crate::fork::{Error, Result};
use crate::run::drive::open;
use crate::run::drive::{Opened, Opening};
use crate::sessions::catalog::Quiet;
use crate::sessions::survey;

/// Starts the agent of a fork, and shows it if `focus` is set. A failure does not undo the fork.
pub(crate) fn open_fork(ctx: &Ctx, forked: &Forked, focus: bool, ready_within: Duration) -> Result<Opened> {
    let plan = &forked.plan;
    let command = launch::resume_words(ctx, plan, &forked.session);
    let run = || -> Result<Opened> {
        let mut opened = Opened { command: command.clone(), ..Opened::default() };
        match (plan.place, &plan.prompt) {
            (Place::Headless, Some(prompt)) => {
                opened.answer = Some(launch::prompt_headless(ctx, plan, &forked.session, prompt)?);
            }
            (Place::Here, _) => opened.here = Some(launch::open_command(ctx, plan, &command)?),
            (Place::In(spot), _) => {
                let opening = Opening {
                    agent: plan.agent,
                    id: Some(&forked.session.id),
                    name: Some(&plan.name),
                    label: plan.name.as_str(),
                    directory: &plan.workspace.path,
                    words: &command,
                    profile: &plan.profile,
                    focus,
                    ready_within,
                    turns_before_prompt: plan.prompt.as_ref().map(|_| plan.turns),
                };
                opened.pane = Some(open::open_in(ctx, spot, &opening)?);
            }
            (Place::Headless, None) | (Place::None, _) => {}
        }
        Ok(opened)
    };
    let mut opened = run().map_err(|source| Error::NotOpened {
        fork: forked.session.label().to_owned(),
        operation: forked.operation,
        source: Box::new(source),
    })?;
    let session = match opened.pane.is_some() || opened.answer.is_some() {
        true => survey::resolve(ctx, &forked.session.path.to_string_lossy(), &Quiet).or_log("read the fork again"),
        false => None,
    };
    opened.session = session.map(|selection| selection.session.view);
    Ok(opened)
}
