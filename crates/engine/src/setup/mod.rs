//! Installs tine in the agents: hooks that report events, the MCP server, and plugins. Plan, then apply.
//!
//! A plan is a list of steps, each of which changes one file and can be shown to the user. `agents` knows where an
//! agent keeps its files and how to edit them; `file` changes a file safely.

pub(crate) mod doctor;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod leftovers;
mod plan;
mod plugin;
pub(crate) mod repair;
mod trust;

pub use error::{Error, Result};

use std::fs;
use std::path::{Path, PathBuf};

use agents::{Adapter, BY_NAME, HookEntry, HookMoves, HookSwitch, PluginFiles, Problem, Scope, ServerEntry};
use diagnostics::OrLog;
use jiff::Timestamp;
use serde::Serialize;
use transcript::Agent;

use crate::ctx::Ctx;
use crate::hook;
use crate::private;
use crate::program;
use file::Edit;

/// A request.
#[derive(Debug, Clone)]
pub struct SetupRequest {
    /// The agents to set up; if empty, those that support the scope, otherwise those whose program or folder exists.
    pub agents: Vec<Agent>,
    /// The scope; `None` for the existing one, otherwise the user's.
    pub scope: Option<Scope>,
    /// Whether to remove tine's entries.
    pub uninstall: bool,
}

/// The planned changes. Planning changes nothing.
#[derive(Debug)]
pub struct SetupPlan {
    request: SetupRequest,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Notes for the user.
    pub notes: Vec<(Agent, String)>,
}

/// A change, and how to make it.
#[derive(Debug)]
pub struct Step {
    /// The change as shown to the user.
    pub change: Change,
    action: Action,
}

/// The change of one file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Its agent.
    pub agent: Agent,
    /// Its scope.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub scope: Scope,
    /// The file or folder.
    pub path: PathBuf,
    /// What is added (`+`), corrected (`~`) and removed (`-`).
    pub what: Vec<String>,
}

#[derive(Debug)]
enum Action {
    Edit(Edit),
    Trust { hooks: PathBuf, moves: HookMoves },
    InstallPlugin { files: PluginFiles, is_known: bool },
    RemovePlugin,
    AddServer,
}

/// The state of the setup in one agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupStatus {
    /// The agent.
    pub agent: Agent,
    /// Whether all events are reported to an existing program.
    pub installed: bool,
    /// The files with tine's hooks.
    pub places: Vec<SetupPlace>,
    /// The files with tine's MCP server.
    pub servers: Vec<SetupServer>,
    /// The events received so far.
    pub events: Vec<SetupEvent>,
}

/// The state of the setup in the requested agents, and the changes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupView<'a> {
    agents: &'a [SetupStatus],
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<&'a Change>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<SetupNote<'a>>>,
}

/// A note about an agent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SetupNote<'a> {
    agent: Agent,
    note: &'a str,
}

impl<'a> SetupView<'a> {
    /// The JSON for these agents, after the changes of `plan` if there is one.
    pub fn new(agents: &'a [SetupStatus], plan: Option<&'a SetupPlan>) -> Self {
        let changes = plan.map(|plan| plan.steps.iter().map(|step| &step.change).collect());
        let note = |(agent, note): &'a (Agent, String)| SetupNote { agent: *agent, note };
        SetupView { agents, changes, notes: plan.map(|plan| plan.notes.iter().map(note).collect()) }
    }
}

/// tine's hooks in one file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupPlace {
    /// Its scope.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// The program that they call.
    pub program: PathBuf,
    /// Whether it exists and is executable.
    pub exists: bool,
    /// Whether it is the current program.
    pub is_this: bool,
    /// Events without a hook.
    pub missing: Vec<&'static str>,
    /// Whether the agent trusts the hooks; `None` if that is not required or not known.
    pub trusted: Option<bool>,
    /// Other reasons why the agent does not run them.
    pub obstacles: Vec<String>,
}

impl SetupPlace {
    /// Whether these hooks report all events, as far as tine knows.
    pub(crate) fn works(&self) -> bool {
        self.exists && self.missing.is_empty() && self.trusted != Some(false) && self.obstacles.is_empty()
    }
}

/// The MCP server in one file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupServer {
    /// Its scope.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// The program that it calls.
    pub program: PathBuf,
    /// Whether it exists and is executable.
    pub exists: bool,
}

/// An event.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupEvent {
    /// Its name on the command line.
    pub event: &'static str,
    /// When it was last received.
    pub last: Option<Timestamp>,
}

impl SetupPlan {
    /// Its agents.
    pub fn agents(&self) -> &[Agent] {
        &self.request.agents
    }
}

/// The named agents, or if there are none, those that support the scope or whose program or folder exists.
fn agents_for_setup(ctx: &Ctx, named: &[Agent], scope: Option<Scope>) -> Result<Vec<Agent>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let is_here = |agent: Agent| program::program(ctx, agent).is_ok() || ctx.adapter(agent).home().is_dir();
    let is_meant = |agent: &Agent| match scope {
        Some(scope) => ctx.adapter(*agent).has_scope(scope),
        None => is_here(*agent),
    };
    let meant: Vec<Agent> = Agent::ALL.into_iter().filter(is_meant).collect();
    if meant.is_empty() { Err(Error::NoAgent) } else { Ok(meant) }
}

/// Decides what to change.
pub(crate) fn plan_setup(ctx: &Ctx, request: &SetupRequest) -> Result<SetupPlan> {
    let request = SetupRequest { agents: agents_for_setup(ctx, &request.agents, request.scope)?, ..request.clone() };
    let mut plan = SetupPlan { request: request.clone(), steps: Vec::new(), notes: Vec::new() };
    for agent in &request.agents {
        plan::plan_agent(ctx, *agent, &request, &mut plan)?;
    }
    Ok(plan)
}

/// Makes the planned changes; waits for another tine that is doing the same.
pub(crate) fn apply_setup(ctx: &Ctx, plan: &SetupPlan) -> Result<()> {
    // Without a receipt, entries could not be removed exactly.
    ctx.registry().check_writable()?;
    let _lock = setup_lock(ctx);
    file::settle(&mut ctx.registry())?;
    // Steps that another process has done are skipped; other changes were not confirmed.
    let fresh = plan_setup(ctx, &plan.request)?;
    for step in &fresh.steps {
        if !plan.steps.iter().any(|shown| shown.change == step.change) {
            return Err(Error::ChangedMeanwhile(step.change.path.clone()));
        }
    }
    for step in &fresh.steps {
        let adapter = ctx.adapter(step.change.agent);
        match &step.action {
            Action::Edit(edit) => file::apply(&mut ctx.registry(), edit, ctx.context().clock.now())?,
            Action::Trust { hooks, moves } => trust::grant_or_remove_hooks(ctx, adapter, hooks, moves)?,
            Action::InstallPlugin { files, is_known } => {
                if let Err(error) = plugin::install(ctx, adapter, files, *is_known) {
                    restore_hooks(ctx, adapter, &fresh)?;
                    return Err(error);
                }
            }
            Action::RemovePlugin => plugin::remove(ctx, adapter)?,
            Action::AddServer => add_server(ctx, adapter)?,
        }
    }
    Ok(())
}

/// Restores the user's hooks, which were removed in favour of a plugin that could not be installed.
fn restore_hooks(ctx: &Ctx, adapter: &dyn Adapter, plan: &SetupPlan) -> Result<()> {
    let user = adapter.hook_file();
    if plan.steps.iter().any(|step| step.change.path == user)
        && let Some(edit) = plan::plan_hooks(ctx, adapter.agent(), Scope::User, &user, false)?.edit()
    {
        file::apply(&mut ctx.registry(), edit, ctx.context().clock.now())?;
    }
    Ok(())
}

/// Adds the MCP server to the agent's list, or corrects the program that it calls.
fn add_server(ctx: &Ctx, adapter: &dyn Adapter) -> Result<()> {
    let path = adapter.server_file();
    let before = file::read(&path)?;
    let (mark, text) = file::split_mark(before.as_deref().unwrap_or_default());
    let after = adapter.add_server(text, &hook_program(ctx)?).map_err(|problem| bad(&path, problem))?;
    let kept = match ctx.registry().receipt(&path)? {
        Some(receipt) => receipt.kept,
        None => adapter.server_containers(text),
    };
    let after = Some(format!("{mark}{after}"));
    let edit = Edit { path, before, after, kept: Some(kept), is_shared: false };
    file::apply(&mut ctx.registry(), &edit, ctx.context().clock.now())
}

/// The state of the setup in these agents, or if there are none, in those whose program or folder exists.
pub(crate) fn setup_status(ctx: &Ctx, agents: &[Agent]) -> Result<Vec<SetupStatus>> {
    agents_for_setup(ctx, agents, None)?.into_iter().map(|agent| status_of(ctx, agent)).collect()
}

fn status_of(ctx: &Ctx, agent: Agent) -> Result<SetupStatus> {
    let places = setup_places(ctx, agent, true)?;
    let adapter = ctx.adapter(agent);
    let events = adapter.hook_events().iter().map(|(event, _)| {
        let last = hook::last_run(&ctx.registry(), agent, *event)?;
        let last = last.and_then(|time| Timestamp::from_millisecond(time).ok());
        Ok(SetupEvent { event: event.as_str(), last })
    });
    let events = events.collect::<Result<_>>()?;
    let installed = places.iter().any(SetupPlace::works);
    let servers = servers(ctx, adapter)?;
    Ok(SetupStatus { agent, installed, places, servers, events })
}

/// The files with tine's hooks for an agent. To find out whether it trusts them, tine has to start it.
pub(crate) fn setup_places(ctx: &Ctx, agent: Agent, asks_agent: bool) -> Result<Vec<SetupPlace>> {
    let adapter = ctx.adapter(agent);
    let user = adapter.hook_file();
    let project = plan::project_hook_file(ctx, adapter).filter(|project| *project != user);
    let plugin = plan::enabled_plugin(adapter)?.map(|plugin| plugin.hook_file(&plan::plugin_folder(ctx, plugin)));
    let files = [(Scope::User, Some(user)), (Scope::Project, project), (Scope::Plugin, plugin)];
    let mut places = Vec::new();
    for (scope, path) in files.into_iter().filter_map(|(scope, path)| Some((scope, path?))) {
        let entries = hooks_of_tine(adapter, &path)?;
        let Some(program) = entries.iter().find_map(|entry| entry.program.clone()) else {
            continue;
        };
        let obstacles = obstacles(adapter, &path)?;
        let is_there = |name: &str| entries.iter().any(|entry| entry.event == name);
        let missing = adapter.hook_events().iter().map(|(_, name)| *name).filter(|name| !is_there(name)).collect();
        let trusted = asks_agent.then(|| trust::is_trusted(ctx, adapter, &path)).flatten();
        let program = ctx.context().find_program(BY_NAME).filter(|_| program.is_relative()).unwrap_or(program);
        let exists = program.is_absolute() && crate::context::is_executable(&program);
        let same = |program: &Path| program.canonicalize().ok();
        let is_this = exists && same(&program) == same(&ctx.context().program);
        places.push(SetupPlace { scope, path, program, exists, is_this, missing, trusted, obstacles });
    }
    Ok(places)
}

/// The path that hooks call: the one in PATH that resolves to this program, because it stays valid after an update;
/// otherwise the program's own path.
fn hook_program(ctx: &Ctx) -> Result<String> {
    let own = &ctx.context().program;
    let own = own.canonicalize().unwrap_or_else(|_| own.clone());
    let found = ctx.context().find_program("tine");
    let found = found.filter(|path| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == own));
    let program = found.unwrap_or(own);
    program.into_os_string().into_string().map_err(|program| Error::OwnPath(program.into()))
}

/// The files with tine's MCP server for an agent.
fn servers(ctx: &Ctx, adapter: &dyn Adapter) -> Result<Vec<SetupServer>> {
    let plugin = plan::enabled_plugin(adapter)?.map(|plugin| plugin.server_file(&plan::plugin_folder(ctx, plugin)));
    let mut found = Vec::new();
    for (scope, path) in [(Scope::User, Some(adapter.server_file())), (Scope::Plugin, plugin)] {
        let Some(path) = path else { continue };
        if let ServerEntry::Ours(program) = plan::server_in(adapter, &path)? {
            let program = PathBuf::from(program);
            let exists = program.is_absolute() && crate::context::is_executable(&program);
            found.push(SetupServer { scope, path, program, exists });
        }
    }
    Ok(found)
}

/// tine's hooks in a file. An unreadable file is an error.
fn hooks_of_tine(adapter: &dyn Adapter, path: &Path) -> Result<Vec<HookEntry>> {
    let text = file::read(path)?.unwrap_or_default();
    let hooks = adapter.hooks_in(file::split_mark(&text).1).map_err(|problem| bad(path, problem))?;
    Ok(hooks.into_iter().filter(|hook| hook.program.is_some()).collect())
}

/// Reasons why an agent does not run the hooks in a file.
fn obstacles(adapter: &dyn Adapter, path: &Path) -> Result<Vec<String>> {
    let mut obstacles = Vec::new();
    let text = file::read(path)?.unwrap_or_default();
    let (_, text) = file::split_mark(&text);
    if let Some(line) = adapter.refused_line(text).filter(|_| !text.trim().is_empty()) {
        obstacles.push(format!(
            "{} ignores {} because it isn't plain JSON: line {line} has a comment or a trailing comma",
            adapter.agent().product_name(),
            path.display()
        ));
    }
    let HookSwitch { path, key, is_off } = adapter.hook_switch(path);
    let settings = file::read(&path)?.unwrap_or_default();
    if is_off(file::split_mark(&settings).1).map_err(|problem| bad(&path, problem))? {
        obstacles.push(format!("hooks are disabled in {}: `{key}`", path.display()));
    }
    Ok(obstacles)
}

/// Held while files are changed. Without it, setup continues.
fn setup_lock(ctx: &Ctx) -> Option<fs::File> {
    let file = lock_file(ctx)?;
    file.lock().or_log("take the setup lock")?;
    Some(file)
}

fn lock_file(ctx: &Ctx) -> Option<fs::File> {
    let path = ctx.context().paths.registry.with_file_name("setup.lock");
    private::create_folder(path.parent()?).or_log("create the folder of the setup lock")?;
    private::open_file(&path).or_log("open the setup lock")
}

/// Ends what a setup had begun that was killed: the copies of people's files that it left behind may hold keys, so they
/// don't wait for the next setup. One that is still running is left alone.
pub(crate) fn clean_up(ctx: &Ctx) -> Result<()> {
    if !file::is_under_way(&ctx.registry())? {
        return Ok(());
    }
    let Some(file) = lock_file(ctx).filter(|file| file.try_lock().is_ok()) else { return Ok(()) };
    file::settle(&mut ctx.registry())?;
    drop(file);
    Ok(())
}

fn bad(path: &Path, problem: Problem) -> Error {
    Error::BadSettings { path: path.to_owned(), line: problem.line, message: problem.message }
}
