//! Deciding a fork.

use std::collections::HashSet;

use agents::Resumed;
use transcript::{Agent, DefectKind, SessionId, SessionName, SessionView, State, text};

use super::copy::Files;
use super::{Asked, Method, Place, Plan, Request, Where, Workspace};
use crate::Tine;
use crate::error::{Error, Result};
use crate::names;
use crate::profile::Profile;
use crate::project;

/// What is decided before anything is read.
struct Decision {
    agent: Agent,
    turns: u32,
    whole: bool,
    name: SessionName,
    workspace: Workspace,
    asked: Asked,
    method: Method,
    why: String,
}

impl Tine {
    /// Decides everything about a fork. Nothing is touched.
    pub fn plan_fork(&self, request: &Request) -> Result<Plan> {
        let Decision { agent, turns, whole, name, workspace, asked, method, why } = self.decide(request)?;
        let source = &request.source.view;
        let now = self.context().clock.now();
        let dirty = workspace.worktree.is_some() && !request.carry && self.is_dirty(source.cwd.as_deref());
        let store = self.store(agent);
        let id = new_id(agent, now);
        // Another agent's options mean nothing to this one.
        let profile = if agent == source.agent { self.profile_of(agent, &source.id)? } else { Profile::default() };
        let count = self.count_tokens(request, turns, method == Method::Seed)?;
        let context_window = if agent == source.agent { count.window } else { None }.or(window_of(agent));
        let target = store.place_for(&id, &workspace.path, now);
        let resumed = Resumed { id: &id, path: &target };
        let after_compaction = method == Method::Native && request.source.details.compacted;
        let mut plan = Plan {
            source: source.clone(),
            known: request.source.details.known.clone(),
            turns,
            whole,
            agent,
            method,
            method_is_chosen: request.method.is_some(),
            why,
            place: request.place,
            prompt: request.prompt.clone(),
            command: self.as_configured(
                agent,
                store.resume_command(resumed, &workspace.path, &profile.args, request.prompt.as_deref()),
            ),
            profile,
            target,
            id_is_chosen: method == Method::Copy || store.takes_ids(),
            workspace,
            asked,
            id,
            name,
            name_is_chosen: request.name.is_some(),
            tokens: count.tokens,
            context_window,
            seed: None,
            unfinished: whole && request.source.details.mid_turn,
            after_compaction,
            lacks_beginning: request.source.details.defects.count(DefectKind::MissingBase) > 0,
            losses: Vec::new(),
            warnings: Vec::new(),
        };
        if method == Method::Seed {
            let seed = self.plan_seed(request, turns, agent, context_window, count.per_token)?;
            plan.tokens = Some((seed.fit.characters as f64 / count.per_token) as u64);
            plan.losses.push("thinking and the talk of subagents are left out".into());
            plan.losses.extend(seed.fit.shortened.iter().cloned());
            match seed.secrets {
                0 => {}
                1 => plan.losses.push("one secret is masked; `--keep-secrets` keeps it".into()),
                count => plan.losses.push(format!("{count} secrets are masked; `--keep-secrets` keeps them")),
            }
            plan.seed = Some(seed);
        }
        tell_losses(&mut plan);
        warn(&mut plan, request);
        if !whole && count.ends_compacted {
            plan.warnings.push(format!(
                "a compaction follows turn {turns} and comes along: the model sees its summary, not what was said before it"
            ));
        }
        if dirty {
            plan.warnings.push(
                "changes that are not committed stay where they are; `--carry` brings them along into the worktree"
                    .into(),
            );
        }
        if let Some((then, now)) = self.other_branch(&plan) {
            plan.warnings.push(format!(
                "the session worked on the branch {then}; {now} is checked out there now, and the worktree begins at it"
            ));
        }
        Ok(plan)
    }

    /// The branch that the source's records name and the one that is checked out in its directory, where a worktree
    /// begins at the latter and they differ.
    fn other_branch(&self, plan: &Plan) -> Option<(String, String)> {
        let Where::Worktree { base: None, .. } = plan.asked.workspace else { return None };
        let then = plan.source.branch.clone().filter(|branch| branch != "HEAD")?;
        let now = project::current_branch(&plan.asked.own).filter(|now| *now != then)?;
        Some((text::one_line(&then), text::one_line(&now)))
    }

    /// Whether a fork could be made, told without a look at what was said.
    pub fn check_fork(&self, request: &Request) -> Result<()> {
        self.decide(request).map(drop)
    }

    fn decide(&self, request: &Request) -> Result<Decision> {
        let source = &request.source.view;
        let agent = request.agent.unwrap_or(source.agent);
        let turns = self.turns_to_keep(request)?;
        let whole = turns == source.turns;
        let asked = self.asked(request);
        let (name, workspace) = match &request.name {
            Some(name) => {
                self.check_name(name)?;
                (name.clone(), self.workspace(&asked, name)?)
            }
            None => self.named_workspace(&names::base_of(source), &asked)?,
        };
        let (method, why) = self.choose_method(request, agent, whole, &workspace)?;
        if method != Method::Copy || request.place != Place::None {
            // Whoever is to start it must be there.
            self.program(agent)?;
        }
        check_prompt(request)?;
        Ok(Decision { agent, turns, whole, name, workspace, asked, method, why })
    }

    /// The first free name for a fork that nobody named, and its workspace. Somebody may take the name meanwhile and make
    /// a workspace of the same name, which then is in the way. Nor is a name free that a branch or directory has to which
    /// the workspace would be called alike.
    pub(super) fn named_workspace(&self, base: &str, asked: &Asked) -> Result<(SessionName, Workspace)> {
        const TRIES: usize = 100;
        let mut occupied = HashSet::new();
        loop {
            let taken = self.registry().taken_names()?;
            let is_taken = |name: &str| taken.contains(name) || occupied.contains(name);
            let name = names::for_fork(base, is_taken).ok_or(Error::NoNameLeft)?;
            match self.workspace(asked, &name) {
                Err(_) if asked.follows_name() && self.registry().taken_names()?.contains(name.as_str()) => {}
                Err(
                    Error::BranchExists(_) | Error::CheckedOut { .. } | Error::BranchRival { .. } | Error::InTheWay(_),
                ) if asked.follows_name() && occupied.len() < TRIES => {
                    occupied.insert(name.to_string());
                }
                workspace => return workspace.map(|workspace| (name, workspace)),
            }
        }
    }

    /// Another method for a fork whose first one failed: a copy, which needs nothing of the agent.
    pub(super) fn as_copy(&self, plan: &Plan, trouble: &Error) -> Plan {
        let store = self.store(plan.agent);
        let now = self.context().clock.now();
        let id = new_id(plan.agent, now);
        let target = store.place_for(&id, &plan.workspace.path, now);
        let resumed = Resumed { id: &id, path: &target };
        let words = store.resume_command(resumed, &plan.workspace.path, &plan.profile.args, plan.prompt.as_deref());
        let mut plan = Plan {
            method: Method::Copy,
            why: "the agent's own fork failed".into(),
            command: self.as_configured(plan.agent, words),
            id_is_chosen: true,
            after_compaction: false,
            losses: Vec::new(),
            target,
            id,
            ..plan.clone()
        };
        tell_losses(&mut plan);
        let trouble = transcript::text::one_line(&trouble.to_string());
        plan.warnings.push(format!("the agent's own fork failed, so it was made by copy: {trouble}"));
        plan
    }

    fn turns_to_keep(&self, request: &Request) -> Result<u32> {
        let (view, details) = (&request.source.view, &request.source.details);
        let turns = request.turns.unwrap_or(view.turns);
        let at_work = matches!(view.state, State::Busy | State::Waiting) && turns == view.turns;
        if at_work && !request.now && !request.waits {
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

/// What an agent's models take where the transcript does not say.
fn window_of(agent: Agent) -> Option<u64> {
    match agent {
        Agent::Claude => Some(200_000),
        Agent::Codex => Some(258_400),
    }
}

/// A prompt that stands on a command line has a limit, and cannot hold a NUL.
fn check_prompt(request: &Request) -> Result<()> {
    const LONGEST: usize = 120_000;
    match &request.prompt {
        Some(prompt) if prompt.contains('\0') => Err(Error::BadPrompt("holds a NUL character")),
        Some(prompt) if request.place != Place::Headless && prompt.len() > LONGEST => {
            Err(Error::BadPrompt("is too long for a command line"))
        }
        _ => Ok(()),
    }
}

fn tell_losses(plan: &mut Plan) {
    let same_agent = plan.agent == plan.source.agent;
    if same_agent && plan.agent == Agent::Codex && plan.method != Method::Seed {
        plan.losses.push("threads of subagents stay with the source".into());
    }
    if plan.lacks_beginning {
        plan.losses.push("the session that the source was forked from is gone, and what was said there with it".into());
    }
    if plan.after_compaction {
        plan.losses.push("what was said before the last compaction stays with the source".into());
    }
    if plan.method == Method::Native && Files::of(plan).brings_notes() {
        plan.losses.push("the notes that the agent keeps of the source's project stay there".into());
    }
    if plan.method == Method::Native && plan.unfinished {
        plan.losses.push("the agent ends the turn that was cut off in its own way".into());
    }
    if plan.method == Method::Native && plan.agent == Agent::Codex {
        plan.losses.push("where Codex forks by reference, the source's file must stay".into());
    }
}

fn warn(plan: &mut Plan, request: &Request) {
    if let (Some(tokens), Some(window)) = (plan.tokens, plan.context_window) {
        let percent = tokens * 100 / window.max(1);
        if percent >= 100 {
            plan.warnings.push(format!(
                "the history is about {tokens} tokens and DOES NOT FIT into the window of {window}; \
                 fork at an earlier turn, or compact it"
            ));
        } else if percent >= 80 {
            plan.warnings.push(format!("the history fills about {percent} % of the window of {window} tokens"));
        }
    }
    if request.source.details.mid_turn && plan.whole {
        plan.warnings.push("the last turn is not finished; the agent will take it as interrupted".into());
    }
    let defects = &request.source.details.defects;
    if [DefectKind::BadLine, DefectKind::TruncatedLine].iter().any(|kind| defects.count(*kind) > 0) {
        plan.warnings.push("damaged records of the source are not carried along".into());
    }
    if request.waits {
        plan.warnings.push("the source is at work; the fork is made when it is idle, of what was said by then".into());
    }
    if let Some(wanted) = request.turns.filter(|wanted| *wanted > plan.turns) {
        plan.warnings.push(format!("turn {wanted} is not finished, so the fork ends with turn {}", plan.turns));
    }
}

/// An id as the agent itself would make it.
pub(crate) fn new_id(agent: Agent, now: jiff::Timestamp) -> SessionId {
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

impl Plan {
    /// The session that is forked, as a parent.
    pub fn parent(&self) -> &SessionView {
        &self.source
    }

    /// The same plan, for whoever keeps it for a while: without what only makes sense at once and takes memory.
    #[must_use]
    pub fn for_later(mut self) -> Plan {
        if let Some(known) = &mut self.known {
            known.layout = None;
        }
        self
    }
}
