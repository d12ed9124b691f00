//! Deciding a fork.

use std::collections::HashSet;

use transcript::{Agent, SessionId, State};

use super::{Method, Plan, Request, Workspace, names};
use crate::Tine;
use crate::error::{Error, Result};

/// What Claude Code's models take where the transcript does not say.
const CLAUDE_WINDOW: u64 = 200_000;

impl Tine {
    /// Decides everything about a fork. Nothing is touched.
    pub fn plan_fork(&self, request: &Request) -> Result<Plan> {
        let source = &request.source.view;
        let turns = self.turns_to_keep(request)?;
        let now = self.context().clock.now();
        let names = self.registry().names()?;
        let taken: HashSet<&str> = names.values().map(|name| name.as_str()).collect();
        let name = match &request.name {
            Some(name) if taken.contains(name.as_str()) => return Err(Error::NameTaken(name.clone())),
            Some(name) => name.clone(),
            None => names::for_fork(source, &taken).ok_or(Error::NoNameLeft)?,
        };
        let workspace = self.workspace(request, &name)?;
        let dirty = workspace.worktree.as_ref().is_some_and(|_| self.is_dirty(source.cwd.as_deref()));
        let id = new_id(source.agent, now);
        let store = self.store(source.agent);
        let whole = turns == source.turns;
        let reported = request.source.details.tokens;
        let tokens = reported.map(|tokens| {
            let all = tokens.input + tokens.output;
            if whole { all } else { all * u64::from(turns) / u64::from(source.turns.max(1)) }
        });
        let context_window = reported.and_then(|tokens| tokens.window).or(match source.agent {
            Agent::Claude => Some(CLAUDE_WINDOW),
            Agent::Codex => None,
        });
        let mut plan = Plan {
            source: source.clone(),
            turns,
            whole,
            agent: source.agent,
            method: Method::Copy,
            place: request.place,
            prompt: request.prompt.clone(),
            why: why(whole, &workspace),
            target: store.place_for(&id, &workspace.path, now),
            command: store.resume_command(&id),
            workspace,
            id,
            name,
            tokens,
            context_window,
            losses: Vec::new(),
            warnings: Vec::new(),
        };
        warn(&mut plan, request);
        if dirty {
            plan.warnings.push(
                "changes that are not committed stay where they are; the worktree begins at the last commit".into(),
            );
        }
        Ok(plan)
    }

    fn turns_to_keep(&self, request: &Request) -> Result<u32> {
        let (view, details) = (&request.source.view, &request.source.details);
        let turns = request.turns.unwrap_or(view.turns);
        let at_work = matches!(view.state, State::Busy | State::Waiting) && turns == view.turns;
        if at_work && !request.now {
            let session = view.label().to_owned();
            return Err(Error::AtWork { session, state: view.state });
        }
        let unfinished = request.now && details.mid_turn && turns == view.turns;
        let turns = if unfinished { turns.saturating_sub(1) } else { turns };
        if turns == 0 {
            return Err(Error::NothingToFork(view.label().to_owned()));
        }
        Ok(turns)
    }
}

fn why(whole: bool, workspace: &Workspace) -> String {
    match (whole, workspace.kind) {
        (false, _) => "a copy can be cut at any turn".into(),
        (true, "existing" | "worktree") => "a copy can work in another directory".into(),
        (true, _) => "a copy needs no start of the agent, and keeps what was said before a compaction".into(),
    }
}

fn warn(plan: &mut Plan, request: &Request) {
    if plan.source.agent == Agent::Codex {
        plan.losses.push("threads of subagents stay with the source".into());
    }
    if let (Some(tokens), Some(window)) = (plan.tokens, plan.context_window) {
        let percent = tokens * 100 / window.max(1);
        if percent >= 100 {
            plan.warnings
                .push(format!("the history is about {tokens} tokens and does not fit into the window of {window}"));
        } else if percent >= 80 {
            plan.warnings.push(format!("the history fills about {percent} % of the window of {window} tokens"));
        }
    }
    if request.source.details.mid_turn && plan.whole {
        plan.warnings.push("the last turn is not finished; the agent will take it as interrupted".into());
    }
    if !request.source.details.defects.is_empty() {
        plan.warnings.push("damaged records of the source are not carried along".into());
    }
}

/// An id as the agent itself would make it.
fn new_id(agent: Agent, now: jiff::Timestamp) -> SessionId {
    let uuid = match agent {
        Agent::Claude => uuid::Uuid::new_v4(),
        Agent::Codex => {
            let seconds = u64::try_from(now.as_second()).unwrap_or(0);
            let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
            uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
        }
    };
    SessionId::new(uuid.to_string()).expect("a UUID is a legal id")
}
