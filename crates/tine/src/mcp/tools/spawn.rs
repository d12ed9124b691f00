//! Starts workers: several sessions at once, new ones, resumed ones and forks.

use std::path::{Path, PathBuf};

use engine::{
    LaunchRequest, NewWorker, NewWorktree, OpenAt, Place, Plan, Request, Session, SpawnView, Unit, WorkerOutcome,
    WorkerProcess,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::{Agent, State};

use super::READY_WITHIN;
use super::fork::{self, WorktreeWord};
use super::look::AgentWord;
use crate::mcp::tool::{Arguments, Call, CallError, ToolEffect, name};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SpawnWorkers {
    /// One to eight workers
    #[schemars(length(min = 1, max = 8))]
    workers: Vec<Worker>,
    /// Where to run them: in tabs or panes of the current terminal, or headless (without a terminal, only while they
    /// work on a message). `auto` uses tabs if the terminal has them
    #[serde(default)]
    layout: Layout,
}

/// Where workers run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::mcp) enum Layout {
    #[default]
    Auto,
    Panes,
    Tabs,
    Headless,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct Worker {
    /// Directory to work in (default: the caller's project)
    project_path: Option<PathBuf>,
    /// Agent to start (default for a fork or a resumed session: its own agent)
    agent_type: Option<AgentWord>,
    /// Name of the session: 2 to 64 characters from a-z, 0-9 and dashes
    #[schemars(example = "try-1")]
    name: Option<String>,
    /// First prompt
    #[schemars(example = "Find out why the upload times out")]
    prompt: Option<String>,
    /// Model for a new session
    model: Option<String>,
    /// Session to resume: a name, an id, an id prefix or a path. With `fork_session`, work in a fork of it
    resume_session_id: Option<String>,
    /// Fork `resume_session_id` instead of resuming it; `me` forks the caller
    #[serde(default)]
    fork_session: bool,
    /// Resume the newest session of the directory
    #[serde(default)]
    continue_session: bool,
    /// Work in a new worktree
    #[serde(default)]
    use_worktree: bool,
    /// Branch for the worktree
    worktree: Option<WorktreeWord>,
    /// For a fork in a worktree: whether to copy uncommitted changes to it; required if there are any
    carry: Option<bool>,
    /// Skip permission prompts; refused unless the user allows it in tine's configuration
    #[serde(default)]
    skip_permissions: bool,
}

/// A worker that is ready to start.
enum Ready {
    New { new: Box<NewWorker> },
    Resumed { session: Box<Session>, directory: PathBuf, prompt: Option<String>, options: Vec<String> },
    Fork { plan: Box<Plan> },
}

impl Arguments for SpawnWorkers {
    const NAME: &'static str = "spawn_workers";
    const TITLE: &'static str = "Start workers";
    const DESCRIPTION: &'static str = "Starts one to eight sessions that work in parallel with you: new ones, forks \
        of a session with its full context, or resumed ones, each in its own directory or worktree. tine checks all \
        of them before it starts the first one, and reports for each whether it started. Use wait_sessions to collect \
        their results. \
        Example: {\"workers\": [{\"name\": \"try-1\", \"resume_session_id\": \"me\", \"fork_session\": true, \
        \"use_worktree\": true, \"prompt\": \"Try it with a queue\"}]}";
    const TOUCH: ToolEffect = ToolEffect::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        if !(1..=8).contains(&self.workers.len()) {
            return Err(CallError::argument("workers", "must have 1 to 8 workers"));
        }
        let place = self.layout.place(call)?;
        let sessions = call.sessions()?;
        let mut names: Vec<&str> = Vec::new();
        for (at, worker) in self.workers.iter().enumerate() {
            if let Some(name) = worker.name.as_deref() {
                if names.contains(&name) {
                    return Err(CallError::argument(&format!("workers[{at}].name"), "is used by another worker"));
                }
                names.push(name);
            }
        }
        let numbered = self.workers.iter().enumerate();
        let ready: Vec<Ready> =
            numbered.map(|(at, worker)| worker.ready(call, &sessions, at, place)).collect::<Result<_, _>>()?;
        let mut outcomes: Vec<WorkerOutcome> = Vec::new();
        // Background processes to end if the call is cancelled.
        let mut background: Vec<WorkerProcess> = Vec::new();
        for (ready, worker) in ready.into_iter().zip(self.workers) {
            if call.cancel.is_cancelled() {
                outcomes.push(WorkerOutcome::cancelled(worker.name));
                continue;
            }
            outcomes.push(match ready.start(call, place, &mut background) {
                Ok(outcome) => outcome,
                Err(trouble) => WorkerOutcome::Failed { name: worker.name, error: trouble.reported() },
            });
        }
        if call.cancel.is_cancelled() {
            WorkerProcess::cancel_all(&background);
        }
        let view = SpawnView::new(outcomes);
        match view.has_started() {
            true => Ok(json!(view)),
            false => Err(CallError::Told(json!(view))),
        }
    }
}

impl Layout {
    fn place(self, call: &Call<'_>) -> Result<Place, CallError> {
        let unit = match self {
            Layout::Headless => return Ok(Place::Headless),
            Layout::Panes => Unit::Pane,
            Layout::Auto | Layout::Tabs => Unit::Tab,
        };
        match (Place::beside(call.tine.context(), unit), self) {
            (Some(place), _) => Ok(place),
            (None, Layout::Auto) => Ok(Place::Headless),
            (None, _) => {
                Err(CallError::argument("layout", "not inside a terminal with panes; use `auto` or `headless`"))
            }
        }
    }
}

impl Worker {
    /// Checks the request and decides what to do.
    fn ready(&self, call: &Call<'_>, sessions: &[Session], at: usize, place: Place) -> Result<Ready, CallError> {
        let field = |name: &str| format!("workers[{at}].{name}");
        let wrong = |name: &str, message: &str| Err(CallError::argument(&field(name), message));
        if self.fork_session && self.resume_session_id.is_none() && !self.continue_session {
            return wrong("fork_session", "needs a source: pass `resume_session_id` or `continue_session`");
        }
        if self.continue_session && self.resume_session_id.is_some() {
            return wrong("continue_session", "cannot be combined with `resume_session_id`");
        }
        if let Some(prompt) = &self.prompt {
            engine::check_message(prompt).map_err(|error| CallError::argument(&field("prompt"), error.to_string()))?;
        } else if place == Place::Headless && !self.fork_session {
            return wrong("prompt", "is required for a headless session");
        }
        if self.model.as_deref().is_some_and(|model| model.starts_with('-') || model.trim().is_empty()) {
            return wrong("model", "is not a model name");
        }
        if self.skip_permissions {
            call.policy.check_skipping()?;
        }
        let chosen_name = name(&field("name"), self.name.as_deref())?;
        let directory = match &self.project_path {
            Some(path) => Some(call.directory(&field("project_path"), path)?),
            None => None,
        };
        let is_worktree = self.use_worktree || self.worktree.is_some();
        if self.carry.is_some() && !(self.fork_session && is_worktree) {
            return wrong("carry", "applies only to a fork in a worktree");
        }
        let source = match (&self.resume_session_id, self.continue_session) {
            (Some(word), _) => Some(call.select(sessions, &field("resume_session_id"), word)?),
            (None, true) => {
                let here = directory.as_deref().unwrap_or(&call.tine.context().cwd);
                let me = call.own_session(sessions).map(|me| me.key());
                let others = sessions.iter().filter(|session| Some(session.key()) != me);
                let Some(newest) = engine::newest_in(others, here) else {
                    return wrong("continue_session", "no session found in that directory");
                };
                Some(engine::Selection { session: newest.clone(), turns: None })
            }
            (None, false) => None,
        };
        let Some(selection) = source else {
            let agent: Agent = self.agent_type.map(Agent::from).unwrap_or_default();
            let directory = directory.unwrap_or_else(|| call.tine.context().cwd.clone());
            call.policy.check_start(&directory, &format!("start {}", agent.product_name()))?;
            call.tine.check_start(agent, chosen_name.as_ref())?;
            let launch = LaunchRequest {
                model: self.model.clone(),
                prompt: self.prompt.clone(),
                args: self.skipping(agent),
                ..LaunchRequest::default()
            };
            let mut worktree = None;
            if is_worktree {
                let WorktreeWord { branch, base } = self.worktree.clone().unwrap_or_default();
                let Some(branch) = branch.or_else(|| chosen_name.as_ref().map(ToString::to_string)) else {
                    return wrong("worktree.branch", "pass a branch, or a name for the worker");
                };
                worktree = Some(NewWorktree { branch, base });
            }
            let new = NewWorker { agent, name: chosen_name, launch, directory, worktree };
            return Ok(Ready::New { new: Box::new(new) });
        };
        if self.model.is_some() {
            return wrong("model", "applies only to new sessions; resumed and forked sessions keep their model");
        }
        if !self.fork_session {
            return self.resumed(call, at, place, selection, directory);
        }
        let mut request = Request::of(selection.session);
        request.turns = selection.turns;
        request.name = chosen_name;
        request.agent = self.agent_type.map(Into::into);
        let (path, worktree) = (self.project_path.as_deref(), self.worktree.as_ref());
        request.workspace = fork::workspace(call, &field("project_path"), path, self.use_worktree, worktree)?;
        request.prompt.clone_from(&self.prompt);
        request.now = true;
        request.place = place;
        request.carry = self.carry.unwrap_or(false);
        if self.carry.is_some() {
            // Whoever decides about the files of now doesn't want those of then.
            request.code = engine::CodeChoice::None;
        }
        let mut plan = fork::plan(call, &request)?;
        fork::check_changes(&plan, self.carry)?;
        // An agent may refuse a repeated option.
        let skipping = self.skipping(plan.agent).into_iter().filter(|option| !plan.profile.args.contains(option));
        let skipping: Vec<String> = skipping.collect();
        plan.profile.args.extend(skipping);
        Ok(Ready::Fork { plan: Box::new(plan) })
    }

    fn resumed(
        &self,
        call: &Call<'_>,
        at: usize,
        place: Place,
        selection: engine::Selection,
        directory: Option<PathBuf>,
    ) -> Result<Ready, CallError> {
        let wrong = |name: &str, message: &str| Err(CallError::argument(&format!("workers[{at}].{name}"), message));
        let session = selection.session;
        if selection.turns.is_some() {
            return wrong("resume_session_id", "names a turn; pass `fork_session` to fork there");
        }
        if self.name.is_some() {
            return wrong("name", "a resumed session keeps its name; leave this out or pass `fork_session`");
        }
        if self.use_worktree || self.worktree.is_some() {
            return wrong(
                "use_worktree",
                "a resumed session stays in its directory; pass `fork_session` to use a worktree",
            );
        }
        if self.agent_type.is_some_and(|agent| Agent::from(agent) != session.view.agent) {
            return wrong("agent_type", "a different agent cannot resume this session; pass `fork_session`");
        }
        if session.view.state != State::Stopped {
            return wrong("resume_session_id", "is already running; use send_message, or pass `fork_session`");
        }
        let own = session.view.cwd.clone().unwrap_or_else(|| call.tine.context().cwd.clone());
        if place == Place::Headless
            && directory.as_deref().is_some_and(|other| other.canonicalize().ok() != own.canonicalize().ok())
        {
            return wrong("project_path", "a headless session stays in its directory; pass `fork_session`");
        }
        if place == Place::Headless && self.skip_permissions {
            return wrong("skip_permissions", "a headless session keeps the permissions it was started with");
        }
        let directory = directory.unwrap_or(own);
        call.policy.check_start(&directory, &format!("resume {}", session.view.label()))?;
        call.tine.check_start(session.view.agent, None)?;
        let options = self.skipping(session.view.agent);
        Ok(Ready::Resumed { session: Box::new(session), directory, prompt: self.prompt.clone(), options })
    }

    /// The agent's options to skip permission prompts.
    fn skipping(&self, agent: Agent) -> Vec<String> {
        let option = agents::about(agent).options.skip_permissions;
        if self.skip_permissions { vec![option.to_owned()] } else { Vec::new() }
    }
}

impl Ready {
    /// Starts it. Background processes that wait for its answer are added to `background`.
    fn start(
        self,
        call: &Call<'_>,
        place: Place,
        background: &mut Vec<WorkerProcess>,
    ) -> Result<WorkerOutcome, CallError> {
        match self {
            Ready::Fork { mut plan } => {
                // Headless prompts are sent in the background, so that the other workers can start meanwhile.
                let said = if plan.place == Place::Headless { plan.prompt.take() } else { None };
                let (made, opened) = fork::apply(call, &plan)?;
                if let (Some(said), Some(id)) = (said, made.session.id()) {
                    let fork = call.tine.resolve_among(&call.sessions()?, id.as_str())?.session;
                    background.extend(call.tine.send(&fork.into(), &said, false, None)?.worker);
                }
                Ok(made.worker(opened.pane.as_ref()))
            }
            Ready::Resumed { session, directory, prompt, options } => {
                resume(call, &session, &directory, prompt, &options, place, background)
            }
            Ready::New { new } => {
                let agent = new.agent;
                let at = OpenAt { place, focus: false, ready_within: READY_WITHIN };
                let started = call.tine.start_worker(&new, at)?;
                background.extend(started.process.clone());
                Ok(started.view(agent))
            }
        }
    }
}

fn resume(
    call: &Call<'_>,
    session: &Session,
    directory: &Path,
    prompt: Option<String>,
    options: &[String],
    place: Place,
    background: &mut Vec<WorkerProcess>,
) -> Result<WorkerOutcome, CallError> {
    let session = &call.tine.start_fork(session.clone(), Some(directory))?;
    let (view, tine) = (&session.view, &call.tine);
    let pane = match place {
        Place::In(_) => {
            let launch = tine.launch_of(view, options, prompt)?;
            let at = OpenAt { place, focus: false, ready_within: READY_WITHIN };
            tine.open_session(session, directory, &launch, at)?.pane
        }
        _ => {
            let target = session.clone().into();
            background.extend(tine.send(&target, prompt.as_deref().unwrap_or_default(), false, None)?.worker);
            None
        }
    };
    Ok(WorkerOutcome::resumed(view, directory, pane.as_ref()))
}
