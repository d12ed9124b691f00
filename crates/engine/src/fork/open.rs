//! Runs the agent of a fork where its plan says.

use std::time::Duration;

use diagnostics::OrLog;
use transcript::SessionView;

use super::{Forked, Place};
use crate::ctx::Ctx;
use crate::fork::launch;
use crate::fork::{Error, Result};
use crate::run::drive::Opening;
use crate::run::drive::open;
use crate::run::places::Pane;
use crate::sessions::catalog::Quiet;
use crate::sessions::survey;

/// A fork whose agent runs where its plan says, or still has to be started in this terminal.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The pane that it runs in.
    pub pane: Option<Pane>,
    /// What it answered without a terminal.
    pub answer: Option<String>,
    /// What resumes it.
    pub command: Vec<String>,
    /// The current session, if its agent runs or has answered.
    pub session: Option<SessionView>,
}

/// Starts the agent of a fork, and shows it if `focus` is set. A failure does not undo the fork.
pub(crate) fn open_fork(ctx: &Ctx, forked: &Forked, focus: bool, ready_within: Duration) -> Result<Opened> {
    let plan = &forked.plan;
    let command = launch::resume_words(ctx, plan, &forked.session);
    let run = || -> Result<(Option<Pane>, Option<String>)> {
        match (plan.place, &plan.prompt) {
            (Place::Headless, Some(prompt)) => Ok((None, Some(launch::say(ctx, plan, &forked.session, prompt)?))),
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
                Ok((Some(open::open_in(ctx, spot, &opening)?), None))
            }
            _ => Ok((None, None)),
        }
    };
    let (pane, answer) = run().map_err(|source| Error::NotOpened {
        fork: forked.session.label().to_owned(),
        operation: forked.operation,
        source: Box::new(source),
    })?;
    let session = match pane.is_some() || answer.is_some() {
        true => survey::resolve(ctx, &forked.session.path.to_string_lossy(), &Quiet).or_log("read the fork again"),
        false => None,
    };
    Ok(Opened { pane, answer, command, session: session.map(|selection| selection.session.view) })
}
