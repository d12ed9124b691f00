//! Running the agent of a fork where its plan says.

use std::time::Duration;

use super::{Forked, Place};
use crate::Tine;
use crate::drive::Opening;
use crate::error::{Error, Result};
use crate::places::Pane;

/// A fork whose agent runs where its plan says; in this terminal it still has to.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The pane that it runs in.
    pub pane: Option<Pane>,
    /// What it answered without a terminal.
    pub answer: Option<String>,
    /// What resumes it.
    pub command: Vec<String>,
}

impl Tine {
    /// Runs the agent of a fork, and leads the person there where `focus` says so. That it fails does not undo the fork.
    pub fn open_fork(&self, forked: &Forked, focus: bool, ready_within: Duration) -> Result<Opened> {
        let plan = &forked.plan;
        let command = self.resume_words(plan, &forked.session);
        let run = || -> Result<(Option<Pane>, Option<String>)> {
            match (plan.place, &plan.prompt) {
                (Place::Headless, Some(prompt)) => Ok((None, Some(self.say(plan, &forked.session, prompt)?))),
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
                        said_after: plan.prompt.as_ref().map(|_| plan.turns),
                    };
                    Ok((Some(self.open_in(spot, &opening)?), None))
                }
                _ => Ok((None, None)),
            }
        };
        let (pane, answer) = run().map_err(|source| Error::NotOpened {
            fork: forked.session.label().to_owned(),
            operation: forked.operation,
            source: Box::new(source),
        })?;
        Ok(Opened { pane, answer, command })
    }
}
