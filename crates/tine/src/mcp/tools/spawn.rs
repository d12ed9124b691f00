//! Workers: several sessions at once, new ones, resumed ones and forks.

use std::path::{Path, PathBuf};

use engine::{LaunchRequest, NewWorker, NewWorktree, OpenAt, Place, Plan, Request, Session, Unit, WorkerProcess};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::{Agent, State};

use super::fork::{self, WorktreeWord};
use super::look::AgentWord;
use super::{READY_WITHIN, terminal_id};
use crate::mcp::tool::{Arguments, Call, Touch, Trouble, name};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SpawnWorkers {
    /// One to eight workers
    #[schemars(length(min = 1, max = 8))]
    workers: Vec<Worker>,
    /// Where they run: tabs or panes of the terminal around you, or headless, without a terminal, only while they work on a
    /// message; auto takes tabs where there are any
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
    /// Where it works; the project around the caller where nothing is said
    project_path: Option<PathBuf>,
    /// Which agent; of a fork or a resumed session its own
    agent_type: Option<AgentWord>,
    /// Its name: 2 to 64 of a-z, 0-9 and dashes
    #[schemars(example = "try-1")]
    name: Option<String>,
    /// What it is told first
    #[schemars(example = "Find out why the upload times out")]
    prompt: Option<String>,
    /// The model of a new session
    model: Option<String>,
    /// Go on in this session: a name, an id, the beginning of an id, a path; with `fork_session`, in a fork of it
    resume_session_id: Option<String>,
    /// Fork `resume_session_id` instead of going on in it; `me` forks the caller
    #[serde(default)]
    fork_session: bool,
    /// Go on in the newest session of the directory
    #[serde(default)]
    continue_session: bool,
    /// Let it work in a new worktree
    #[serde(default)]
    use_worktree: bool,
    /// The branch of that worktree
    worktree: Option<WorktreeWord>,
    /// Of a fork in a worktree: whether uncommitted changes are copied into it; has to be said where there are some
    carry: Option<bool>,
    /// Let it work without asking for permissions; refused unless the person allows it in tine's configuration
    #[serde(default)]
    skip_permissions: bool,
}

/// A worker that can be started.
enum Ready {
    New { new: Box<NewWorker> },
    Resumed { session: Box<Session>, directory: PathBuf, prompt: Option<String>, options: Vec<String> },
    Fork { plan: Box<Plan> },
}

impl Arguments for SpawnWorkers {
    const NAME: &'static str = "spawn_workers";
    const TITLE: &'static str = "Start workers";
    const DESCRIPTION: &'static str = "Starts one to eight sessions that work beside you: new ones, forks of a session with its \
        whole context, or resumed ones, each in a directory or a worktree of its own. All are checked before the first \
        starts; the answer says of each whether it did. Collect what they do with wait_sessions. \
        Example: {\"workers\": [{\"name\": \"try-1\", \"resume_session_id\": \"me\", \"fork_session\": true, \
        \"use_worktree\": true, \"prompt\": \"Try it with a queue\"}]}";
    const TOUCH: Touch = Touch::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, Trouble> {
        if !(1..=8).contains(&self.workers.len()) {
            return Err(Trouble::argument("workers", "from 1 to 8 workers"));
        }
        let place = self.layout.place(call)?;
        let sessions = call.sessions()?;
        let mut names: Vec<&str> = Vec::new();
        for (at, worker) in self.workers.iter().enumerate() {
            if let Some(name) = worker.name.as_deref() {
                if names.contains(&name) {
                    return Err(Trouble::argument(&format!("workers[{at}].name"), "is another worker's, too"));
                }
                names.push(name);
            }
        }
        let numbered = self.workers.iter().enumerate();
        let ready: Vec<Ready> =
            numbered.map(|(at, worker)| worker.ready(call, &sessions, at, place)).collect::<Result<_, _>>()?;
        let mut told: Vec<Value> = Vec::new();
        // The background processes that end again if the call is cancelled.
        let mut background: Vec<WorkerProcess> = Vec::new();
        for (at, (ready, worker)) in ready.into_iter().zip(&self.workers).enumerate() {
            if call.cancel.is_cancelled() {
                told.push(json!({"worker": at, "name": worker.name, "started": false, "error": {"kind": "cancelled", "message": "the call was cancelled"}}));
                continue;
            }
            told.push(match ready.start(call, place, &mut background) {
                Ok(mut started) => {
                    started["worker"] = json!(at);
                    started["started"] = json!(true);
                    started
                }
                Err(trouble) => {
                    json!({"worker": at, "name": worker.name, "started": false, "error": trouble.as_json()})
                }
            });
        }
        if call.cancel.is_cancelled() {
            WorkerProcess::cancel_all(&background);
        }
        let started = told.iter().filter(|worker| worker["started"] == true).count();
        let answer = json!({"workers": told, "started": started, "failed": told.len() - started});
        match started {
            0 => Err(Trouble::Told(answer)),
            _ => Ok(answer),
        }
    }
}

impl Layout {
    fn place(self, call: &Call<'_>) -> Result<Place, Trouble> {
        let unit = match self {
            Layout::Headless => return Ok(Place::Headless),
            Layout::Panes => Unit::Pane,
            Layout::Auto | Layout::Tabs => Unit::Tab,
        };
        match (Place::beside(call.tine.context(), unit), self) {
            (Some(place), _) => Ok(place),
            (None, Layout::Auto) => Ok(Place::Headless),
            (None, _) => {
                Err(Trouble::argument("layout", "there is no terminal around that has panes; say `auto` or `headless`"))
            }
        }
    }
}

impl Worker {
    /// Checks what is asked for, and decides what is done.
    fn ready(&self, call: &Call<'_>, sessions: &[Session], at: usize, place: Place) -> Result<Ready, Trouble> {
        let field = |name: &str| format!("workers[{at}].{name}");
        let wrong = |name: &str, message: &str| Err(Trouble::argument(&field(name), message));
        if self.fork_session && self.resume_session_id.is_none() && !self.continue_session {
            return wrong("fork_session", "a fork needs a source: say `resume_session_id` or `continue_session`, too");
        }
        if self.continue_session && self.resume_session_id.is_some() {
            return wrong("continue_session", "leave out either it or `resume_session_id`");
        }
        if let Some(prompt) = &self.prompt {
            engine::check_message(prompt).map_err(|error| Trouble::argument(&field("prompt"), error.to_string()))?;
        } else if place == Place::Headless && !self.fork_session {
            return wrong("prompt", "without a terminal something must be said");
        }
        if self.model.as_deref().is_some_and(|model| model.starts_with('-') || model.trim().is_empty()) {
            return wrong("model", "is no model, but an option or nothing");
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
            return wrong("carry", "only a fork in a worktree can carry uncommitted changes");
        }
        let source = match (&self.resume_session_id, self.continue_session) {
            (Some(word), _) => Some(call.select(sessions, &field("resume_session_id"), word)?),
            (None, true) => {
                let here = directory.as_deref().unwrap_or(&call.tine.context().cwd);
                let me = call.me(sessions).map(|me| me.key());
                let others = sessions.iter().filter(|session| Some(session.key()) != me);
                let Some(newest) = engine::newest_in(others, here) else {
                    return wrong("continue_session", "there is no session in that directory");
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
                    return wrong("worktree.branch", "say a branch, or a name for the worker");
                };
                worktree = Some(NewWorktree { branch, base });
            }
            let new = NewWorker { agent, name: chosen_name, launch, directory, worktree };
            return Ok(Ready::New { new: Box::new(new) });
        };
        if self.model.is_some() {
            return wrong("model", "a session keeps its model; leave it out where one is resumed or forked");
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
        let mut plan = fork::plan(call, &request)?;
        fork::check_changes(&plan, self.carry)?;
        // An agent may refuse an option that it is given twice.
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
    ) -> Result<Ready, Trouble> {
        let wrong = |name: &str, message: &str| Err(Trouble::argument(&format!("workers[{at}].{name}"), message));
        let session = selection.session;
        if selection.turns.is_some() {
            return wrong("resume_session_id", "is a point in a session; say `fork_session`, too");
        }
        if self.name.is_some() {
            return wrong("name", "a resumed session keeps its name; leave it out, or say `fork_session`, too");
        }
        if self.use_worktree || self.worktree.is_some() {
            return wrong("use_worktree", "a resumed session works where it worked; say `fork_session`, too");
        }
        if self.agent_type.is_some_and(|agent| Agent::from(agent) != session.view.agent) {
            return wrong("agent_type", "another agent cannot resume it; say `fork_session`, too");
        }
        if session.view.state != State::Stopped {
            return wrong(
                "resume_session_id",
                "runs already; speak to it with send_message, or say `fork_session`, too",
            );
        }
        let own = session.view.cwd.clone().unwrap_or_else(|| call.tine.context().cwd.clone());
        if place == Place::Headless
            && directory.as_deref().is_some_and(|other| other.canonicalize().ok() != own.canonicalize().ok())
        {
            return wrong(
                "project_path",
                "without a terminal a session goes on where it worked; say `fork_session`, too",
            );
        }
        if place == Place::Headless && self.skip_permissions {
            return wrong("skip_permissions", "without a terminal a session goes on as it was started");
        }
        let directory = directory.unwrap_or(own);
        call.policy.check_start(&directory, &format!("resume {}", session.view.label()))?;
        call.tine.check_start(session.view.agent, None)?;
        let options = self.skipping(session.view.agent);
        Ok(Ready::Resumed { session: Box::new(session), directory, prompt: self.prompt.clone(), options })
    }

    /// The agent's own words for asking nobody.
    fn skipping(&self, agent: Agent) -> Vec<String> {
        let option = agents::about(agent).options.skip_permissions;
        if self.skip_permissions { vec![option.to_owned()] } else { Vec::new() }
    }
}

impl Ready {
    /// Starts it. Background processes that wait for its answer are added to `background`.
    fn start(self, call: &Call<'_>, place: Place, background: &mut Vec<WorkerProcess>) -> Result<Value, Trouble> {
        match self {
            Ready::Fork { mut plan } => {
                // Without a terminal, what it is told is said in the background: others are to start meanwhile.
                let said = if plan.place == Place::Headless { plan.prompt.take() } else { None };
                let (made, opened) = fork::apply(call, &plan)?;
                if let (Some(said), Some(id)) = (said, made.session.id()) {
                    let fork = call.tine.resolve_among(&call.sessions()?, id.as_str())?.session;
                    background.extend(call.tine.send(&fork.into(), &said, false, None)?.worker);
                }
                Ok(json!({
                    "name": made.session.name(), "id": made.session.id(), "agent": made.session.agent(),
                    "working_directory": made.workspace.path, "branch": made.workspace.branch,
                    "forked_from": made.parent.session.id(), "method": made.method, "operation": made.operation,
                    "terminal_id": terminal_id(opened.pane.as_ref()), "warnings": made.warnings,
                }))
            }
            Ready::Resumed { session, directory, prompt, options } => {
                resume(call, &session, &directory, prompt, &options, place, background)
            }
            Ready::New { new } => {
                let agent = new.agent;
                let at = OpenAt { place, focus: false, ready_within: READY_WITHIN };
                let started = call.tine.start_worker(&new, at)?;
                background.extend(started.process);
                Ok(json!({
                    "name": started.name, "id": started.id, "agent": agent,
                    "terminal_id": terminal_id(started.pane.as_ref()),
                    "working_directory": started.directory.to_string_lossy(), "operation": started.operation,
                }))
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
) -> Result<Value, Trouble> {
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
    Ok(json!({
        "name": view.name, "id": view.id, "agent": view.agent, "working_directory": directory.to_string_lossy(),
        "terminal_id": terminal_id(pane.as_ref()),
    }))
}
