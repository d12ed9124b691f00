//! Forks sessions: plans a fork, then creates exactly that.

use std::path::{Path, PathBuf};

use engine::{
    AdoptedView, Choice, CodeChoice, ForkView, Found, Method, Opened, Place, Plan, Quiet, Request, Where, Workspace,
    WorkspaceKind,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::SessionView;

use super::look::AgentWord;
use super::{READY_WITHIN, usual_place};
use crate::failure::Failure;
use crate::mcp::policy::Policy;
use crate::mcp::tool::{Arguments, Call, CallError, QUOTED, ToolEffect, name, quoted};

/// The fork method, as callers name it.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::mcp) enum MethodWord {
    #[default]
    Auto,
    Native,
    Copy,
    Translate,
    Seed,
}

/// A new worktree.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct WorktreeWord {
    /// Name of the new branch (default: the name of the session)
    pub branch: Option<String>,
    /// Commit or branch to start from (default: the HEAD of the source's directory)
    pub base: Option<String>,
}

/// The requested fork.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct PlanFork {
    /// Session to fork: a name, an id, an id prefix, a path, or `me`. `NAME@4` forks after turn 4, `NAME@-1` leaves out
    /// the last turn
    #[schemars(example = "auth-fix@4")]
    session: String,
    /// Name of the fork: 2 to 64 characters from a-z, 0-9 and dashes
    name: Option<String>,
    /// Agent for the fork; a different agent receives the transcript
    agent: Option<AgentWord>,
    /// How to create the fork
    #[serde(default)]
    method: MethodWord,
    /// Directory for the fork to work in
    project_path: Option<PathBuf>,
    /// Work in a new worktree
    #[serde(default)]
    use_worktree: bool,
    /// Branch for the worktree
    worktree: Option<WorktreeWord>,
    /// Copy uncommitted changes to the worktree
    #[serde(default)]
    carry: bool,
    /// Files of the worktree: `then` (as they were after the turn), `now` (with uncommitted changes) or `none` (the last
    /// commit). Default: `then` if the fork ends before the session does and the files are certain
    code: Option<CodeWord>,
    /// First prompt for the fork
    prompt: Option<String>,
    /// Fork a busy session after its last complete turn instead of failing. Your own session is always busy
    now: Option<bool>,
    /// Start the agent now, in a pane next to the user's. Otherwise it starts with the first message, and the
    /// transcript for a different agent is kept until then
    #[serde(default = "yes")]
    open: bool,
}

/// Which files a worktree begins with.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CodeWord {
    Then,
    Now,
    None,
}

impl From<CodeWord> for CodeChoice {
    fn from(word: CodeWord) -> Self {
        match word {
            CodeWord::Then => CodeChoice::Then,
            CodeWord::Now => CodeChoice::Now,
            CodeWord::None => CodeChoice::None,
        }
    }
}

fn yes() -> bool {
    true
}

impl PlanFork {
    pub(super) fn plan(self, call: &Call<'_>) -> Result<Plan, CallError> {
        if let Some(prompt) = &self.prompt {
            engine::check_message(prompt).map_err(|error| CallError::argument("prompt", error.to_string()))?;
        }
        let sessions = call.sessions()?;
        let selection = call.select(&sessions, "session", &self.session)?;
        let is_me = call.own_session(&sessions).is_some_and(|me| me.key() == selection.session.key());
        let mut request = Request::of(selection.session);
        request.turns = selection.turns;
        request.name = name("name", self.name.as_deref())?;
        request.agent = self.agent.map(Into::into);
        request.method = match self.method {
            MethodWord::Auto => None,
            MethodWord::Native => Some(Method::Native),
            MethodWord::Copy => Some(Method::Copy),
            MethodWord::Translate => Some(Method::Translate),
            MethodWord::Seed => Some(Method::Seed),
        };
        let (directory, worktree) = (self.project_path.as_deref(), self.worktree.as_ref());
        request.workspace = workspace(call, "project_path", directory, self.use_worktree, worktree)?;
        request.carry = self.carry;
        request.code = self.code.map(Into::into).unwrap_or_default();
        request.prompt = self.prompt;
        request.now = self.now.unwrap_or(is_me);
        request.place = match (self.open, usual_place(call)) {
            (false, _) => Place::None,
            // Without a terminal, the first prompt is sent immediately.
            (true, Place::None) if request.prompt.is_some() => Place::Headless,
            (true, place) => place,
        };
        request.no_start = !self.open;
        plan(call, &request)
    }
}

/// The workspace of a fork; `field` is the name of the directory argument.
pub(super) fn workspace(
    call: &Call<'_>,
    field: &str,
    directory: Option<&Path>,
    use_worktree: bool,
    worktree: Option<&WorktreeWord>,
) -> Result<Where, CallError> {
    match (directory, use_worktree || worktree.is_some()) {
        (Some(_), true) => Err(CallError::argument(field, "cannot be combined with a worktree")),
        (Some(directory), false) => Ok(Where::Directory(call.directory(field, directory)?)),
        (None, true) => {
            let worktree = worktree.cloned().unwrap_or_default();
            Ok(Where::Worktree { branch: worktree.branch, base: worktree.base })
        }
        (None, false) => Ok(Where::Same),
    }
}

/// Plans a fork that the caller may create. It inherits options that skip permissions only if the user allows that.
pub(super) fn plan(call: &Call<'_>, request: &Request) -> Result<Plan, CallError> {
    let mut plan = call.tine.plan_fork(request)?;
    if plan.skips_permissions() && call.policy.check_skipping().is_err() {
        plan = call.tine.plan_fork(&Request { asks_permission: true, ..request.clone() })?;
    }
    check(call, &plan)?;
    Ok(plan)
}

/// Whether the caller may create a fork.
fn check(call: &Call<'_>, plan: &Plan) -> Result<(), CallError> {
    permits(&call.policy, &plan.source, &plan.workspace)
}

fn permits(policy: &Policy<'_>, source: &SessionView, workspace: &Workspace) -> Result<(), CallError> {
    // A worktree belongs to the source's repository, wherever it is.
    let directory = match workspace.kind == WorkspaceKind::Worktree {
        true => source.cwd.as_deref().unwrap_or(&workspace.path),
        false => &workspace.path,
    };
    policy.check_start(directory, &format!("fork {}", source.label()))
}

/// Found sessions, each with the reason why the caller can't fork it, if any. The user is not asked.
pub(super) fn choices(call: &Call<'_>, results: Vec<Found>) -> Vec<Choice> {
    let (policy, place) = (call.policy.without_asking(), usual_place(call));
    let choice = |found: Found| {
        let checked = call
            .tine
            .check_found(&found, Some(&of_found(place, &found)))
            .and_then(|workspace| permits(&policy, &found.session.view, &workspace).map_err(CallError::into_refusal));
        Choice { found, can_fork: checked.into() }
    };
    results.into_iter().map(choice).collect()
}

/// A fork of a whole found session. A busy one isn't waited for.
pub(super) fn of_found(place: Place, found: &Found) -> Request {
    let mut request = Request::of(found.session.clone());
    (request.place, request.now) = (place, true);
    request
}

/// Refuses a fork that would leave uncommitted changes in the source's directory, unless the caller decided about them.
pub(super) fn check_changes(plan: &Plan, carry: Option<bool>) -> Result<(), CallError> {
    if let Some(code) = plan.code.as_ref().filter(|code| code.asks()) {
        return Err(CallError::Failed(Failure::Other {
            kind: "not_confirmed",
            message: format!("did not fork {}: {}", plan.source.label(), code.summary()),
            hint: Some("set `code` to `then` to accept these files, to `now` for those of now, or to `none`".into()),
        }));
    }
    match plan.leaves_changes && carry.is_none() {
        true => Err(CallError::Failed(Failure::Other {
            kind: "not_confirmed",
            message: format!("did not fork {}: its directory has uncommitted changes", plan.source.label()),
            hint: Some("set `carry` to true to copy them into the worktree, or to false to fork without them".into()),
        })),
        false => Ok(()),
    }
}

/// Creates a fork and opens it. Returns when it has started on its first prompt.
pub(super) fn apply(call: &Call<'_>, plan: &Plan) -> Result<(ForkView, Opened), CallError> {
    call.check_wanted()?;
    let forked = call.tine.apply_fork(plan, &Quiet)?;
    let opened = call.tine.open_fork(&forked, false, READY_WITHIN)?;
    let mut view = forked.view(&opened);
    view.answer = view.answer.map(|answer| quoted(&forked.session.id, &answer));
    Ok((view, opened))
}

impl Arguments for PlanFork {
    const NAME: &'static str = "plan_fork";
    const TITLE: &'static str = "Plan a fork";
    const DESCRIPTION: &'static str = "Plans a fork without creating it: method and reason, workspace, tokens against \
        the context window, model requests, losses and warnings. Pass its `token` to fork_session to create exactly \
        this fork. \
        Example: {\"session\": \"auth-fix@4\", \"name\": \"auth-cookie\", \"use_worktree\": true}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let plan = self.plan(call)?;
        let mut told = json!(plan.view());
        told["token"] = json!(call.shared.keep(plan));
        told["note"] = json!(QUOTED);
        Ok(told)
    }
}

/// A fork, planned or not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ForkSession {
    /// Token from plan_fork; creates exactly that fork. Leave out all other arguments
    token: Option<String>,
    /// Session to fork, unless you pass a token: a name, an id, an id prefix, a path, or `me`. `NAME@4` forks after turn 4
    #[schemars(example = &"me")]
    session: Option<String>,
    /// Name of the fork: 2 to 64 characters from a-z, 0-9 and dashes
    name: Option<String>,
    /// Agent for the fork; a different agent receives the transcript
    agent: Option<AgentWord>,
    /// How to create the fork
    method: Option<MethodWord>,
    /// Directory for the fork to work in
    project_path: Option<PathBuf>,
    /// Work in a new worktree
    use_worktree: Option<bool>,
    /// Branch for the worktree
    worktree: Option<WorktreeWord>,
    /// Whether to copy uncommitted changes to the worktree; required if there are any
    carry: Option<bool>,
    /// Files of the worktree: `then` (as they were after the turn), `now` (with uncommitted changes) or `none` (the last
    /// commit). Required if the fork ends before the session does and the files are not certain
    code: Option<CodeWord>,
    /// First prompt for the fork
    prompt: Option<String>,
    /// Fork a busy session after its last complete turn instead of failing. Your own session is always busy
    now: Option<bool>,
    /// Start the agent now, in a pane next to the user's. Otherwise it starts with the first message, and the
    /// transcript for a different agent is kept until then
    open: Option<bool>,
}

impl Arguments for ForkSession {
    const NAME: &'static str = "fork_session";
    const TITLE: &'static str = "Fork a session";
    const DESCRIPTION: &'static str = "Creates a session with the history of another one, up to a turn. The source is \
        not changed. With a `token` from plan_fork, creates exactly the planned fork; otherwise uses the other \
        arguments. Returns the same fields as plan_fork, with the new session and the number of the operation for \
        `tine undo`. \
        Example: {\"session\": \"me\", \"name\": \"other-way\", \"prompt\": \"Try it with a queue instead\"}";
    const TOUCH: ToolEffect = ToolEffect::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let said_more = [
            self.session.is_some(),
            self.name.is_some(),
            self.agent.is_some(),
            self.method.is_some(),
            self.project_path.is_some(),
            self.use_worktree.is_some(),
            self.worktree.is_some(),
            self.carry.is_some(),
            self.code.is_some(),
            self.prompt.is_some(),
            self.now.is_some(),
            self.open.is_some(),
        ];
        let plan = match (self.token, self.session) {
            (Some(_), _) if said_more.contains(&true) => {
                return Err(CallError::argument("token", "cannot be combined with other arguments"));
            }
            (Some(token), _) => {
                let kept = call.shared.take(&token);
                let plan = kept.ok_or_else(|| {
                    CallError::argument("token", "is unknown or was used already; call plan_fork again")
                })?;
                check(call, &plan)?;
                (*plan).clone()
            }
            (None, None) => {
                return Err(CallError::argument("session", "pass a session to fork, or a token from plan_fork"));
            }
            (None, Some(session)) => {
                let plan = PlanFork {
                    session,
                    name: self.name,
                    agent: self.agent,
                    method: self.method.unwrap_or_default(),
                    project_path: self.project_path,
                    use_worktree: self.use_worktree.unwrap_or(false),
                    worktree: self.worktree,
                    carry: self.carry.unwrap_or(false),
                    code: self.code,
                    prompt: self.prompt,
                    now: self.now,
                    open: self.open.unwrap_or(true),
                }
                .plan(call)?;
                check_changes(&plan, self.carry)?;
                plan
            }
        };
        let mut told = json!(apply(call, &plan)?.0);
        told["note"] = json!(QUOTED);
        Ok(told)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct AdoptSession {
    /// Unnamed session: an id, an id prefix, a path, or `me`
    session: String,
    /// Name (default: derived from its title)
    name: Option<String>,
    /// Session it was forked from
    parent: Option<String>,
}

impl Arguments for AdoptSession {
    const NAME: &'static str = "adopt_session";
    const TITLE: &'static str = "Name a session";
    const DESCRIPTION: &'static str = "Names a session that has no name yet, so that you can refer to it by name. \
        Example: {\"session\": \"me\", \"name\": \"csv-export\"}";
    const TOUCH: ToolEffect = ToolEffect::Adds;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let sessions = call.sessions()?;
        let session = call.select_whole(&sessions, "session", &self.session)?;
        let parent = self.parent.as_deref().map(|word| call.select_whole(&sessions, "parent", word)).transpose()?;
        let name = call.tine.adopt(&session, name("name", self.name.as_deref())?, parent.as_ref())?;
        Ok(json!(AdoptedView::new(&session, &name)))
    }
}
