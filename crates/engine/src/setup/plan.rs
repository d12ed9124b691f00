//! Deciding what has to change in an agent's files. Nothing is changed here.
//!
//! An agent runs every hook that it finds, in the user's settings, in a project's and in a plugin. So there is one place at
//! a time: the plugin replaces the user's hooks, and a project needs none where the user has them.

use std::path::{Path, PathBuf};

use agents::{Adapter, BY_NAME, HookEntry, HookMoves, Plugin, Scope, ServerEntry};
use transcript::Agent;

use super::file::{self, Edit};
use super::{Action, Change, SetupPlan, SetupRequest, Step, bad};
use crate::ctx::Ctx;
use crate::program;
use crate::sessions::project;
use crate::setup;
use crate::setup::{Error, Result};

/// Decides what to do for one agent.
pub(super) fn plan_agent(ctx: &Ctx, agent: Agent, request: &SetupRequest, plan: &mut SetupPlan) -> Result<()> {
    let adapter = ctx.adapter(agent);
    if let Some(scope) = request.scope.filter(|scope| !adapter.has_scope(*scope)) {
        let scope = if scope == Scope::Project { "for a project" } else { "as a plugin" };
        return Err(Error::NoSuchScope { agent, scope });
    }
    let enabled = enabled_plugin(adapter)?;
    let usual = if enabled.is_some() && !request.uninstall { Scope::Plugin } else { Scope::User };
    match (request.scope.unwrap_or(usual), request.uninstall) {
        (Scope::User, false) => plan_user(ctx, adapter, plan),
        (Scope::Project, false) => plan_project(ctx, adapter, enabled, plan),
        (Scope::Plugin, false) => plan_plugin(ctx, adapter, enabled, plan),
        (Scope::Project, true) => {
            let hooks = project_hook_file(ctx, adapter).map(|path| plan_hooks(ctx, agent, Scope::Project, &path, true));
            plan.add_hooks(agent, hooks.transpose()?);
            Ok(())
        }
        (scope, true) => {
            // The agent writes the settings when the plugin is removed, so tine's own entries go first.
            if scope == Scope::User {
                plan_removal(ctx, adapter, plan)?;
            }
            if enabled.is_some() {
                plan.steps.push(plugin_step(ctx, adapter, "- the plugin".to_owned(), Action::RemovePlugin));
            }
            note_project_hooks(ctx, adapter, plan)
        }
    }
}

/// The plugin, if the user has it.
pub(super) fn enabled_plugin(adapter: &dyn Adapter) -> Result<Option<&dyn Plugin>> {
    let Some(plugin) = adapter.plugin() else {
        return Ok(None);
    };
    let settings = file::read(&adapter.hook_file())?.unwrap_or_default();
    Ok(Some(plugin).filter(|plugin| plugin.is_enabled(file::split_mark(&settings).1)))
}

/// The hook file of the project around the current directory.
pub(super) fn project_hook_file(ctx: &Ctx, adapter: &dyn Adapter) -> Option<PathBuf> {
    let cwd = &ctx.context().cwd;
    adapter.project_hook_file(&project::top(cwd).unwrap_or_else(|| cwd.clone()))
}

/// The plugin's folder, next to the registry.
pub(super) fn plugin_folder(ctx: &Ctx, plugin: &dyn Plugin) -> PathBuf {
    plugin.folder(ctx.context().paths.registry.parent().unwrap_or(Path::new("/")))
}

/// The change of a hook file, and what is worth knowing about it.
pub(super) struct PlannedHooks {
    pub step: Option<Step>,
    pub notes: Vec<String>,
}

impl PlannedHooks {
    pub(super) fn edit(&self) -> Option<&Edit> {
        match &self.step.as_ref()?.action {
            Action::Edit(edit) => Some(edit),
            _ => None,
        }
    }
}

impl SetupPlan {
    fn add_hooks(&mut self, agent: Agent, hooks: Option<PlannedHooks>) {
        if let Some(PlannedHooks { step, notes }) = hooks {
            self.steps.extend(step);
            self.notes.extend(notes.into_iter().map(|note| (agent, note)));
        }
    }
}

fn plan_user(ctx: &Ctx, adapter: &dyn Adapter, plan: &mut SetupPlan) -> Result<()> {
    let (agent, path) = (adapter.agent(), adapter.hook_file());
    let server = plan_server(ctx, adapter)?;
    let hooks = plan_hooks(ctx, agent, Scope::User, &path, false)?;
    let trust = plan_trust(ctx, adapter, &path, &hooks)?;
    if adapter.trust().is_some() && program::program(ctx, agent).is_err() {
        let agent_name = agent.product_name();
        let note = format!(
            "{agent_name} not found, so tine cannot make it trust the hooks; run this command again after you \
             install it"
        );
        plan.notes.push((agent, note));
    }
    plan.add_hooks(agent, Some(hooks));
    plan.steps.extend(trust);
    match server {
        PlannedServer::Change(step) => plan.steps.push(step),
        PlannedServer::Foreign(path) => {
            let note = format!(
                "{} already has a server named `{}` that isn't tine's; left unchanged",
                path.display(),
                BY_NAME
            );
            plan.notes.push((agent, note));
        }
        PlannedServer::UpToDate => {}
    }
    note_project_hooks(ctx, adapter, plan)
}

fn plan_project(ctx: &Ctx, adapter: &dyn Adapter, enabled: Option<&dyn Plugin>, plan: &mut SetupPlan) -> Result<()> {
    let (agent, user) = (adapter.agent(), adapter.hook_file());
    let has_own = !setup::hooks_of_tine(adapter, &user)?.is_empty();
    let broader = has_own.then_some(user).or_else(|| enabled.map(|plugin| plugin_folder(ctx, plugin)));
    if let Some(broader) = broader {
        let note = format!("{} already has the hooks for all projects", broader.display());
        plan.notes.push((agent, note));
        return Ok(());
    }
    if let Some(path) = project_hook_file(ctx, adapter) {
        plan.add_hooks(agent, Some(plan_hooks(ctx, agent, Scope::Project, &path, false)?));
    }
    if ctx.context().find_program(BY_NAME).is_none() {
        plan.notes.push((agent, "tine is not in PATH, so project hooks have no effect on this machine".into()));
    }
    Ok(())
}

fn plan_plugin(ctx: &Ctx, adapter: &dyn Adapter, enabled: Option<&dyn Plugin>, plan: &mut SetupPlan) -> Result<()> {
    let (agent, user) = (adapter.agent(), adapter.hook_file());
    if enabled.is_none() {
        // The agent's own program installs it, and writes the settings.
        program::program(ctx, agent)?;
        file::check_writable(&user)?;
    }
    plan_removal(ctx, adapter, plan)?;
    if let Some(plugin) = adapter.plugin() {
        let files = plugin.files(&setup::hook_program(ctx)?);
        let is_known = enabled.is_some();
        if !is_known || !setup::plugin::is_written(&plugin_folder(ctx, plugin), &files) {
            let what = match is_known {
                true => "~ the plugin".to_owned(),
                false => format!("+ the plugin: {}", plugin.contents()),
            };
            plan.steps.push(plugin_step(ctx, adapter, what, Action::InstallPlugin { files, is_known }));
        }
    }
    note_project_hooks(ctx, adapter, plan)
}

/// Decides how tine's hooks get into a file, or out of it.
pub(super) fn plan_hooks(ctx: &Ctx, agent: Agent, scope: Scope, path: &Path, uninstall: bool) -> Result<PlannedHooks> {
    let adapter = ctx.adapter(agent);
    let before = file::read(path)?;
    let receipt = ctx.registry().receipt(path)?;
    let (mark, text) = file::split_mark(before.as_deref().unwrap_or_default());
    let kept = receipt.as_ref().map(|receipt| receipt.kept.clone()).unwrap_or_default();
    let bare = adapter.remove_hooks(text, &kept).map_err(|problem| bad(path, problem))?;
    let mut notes = Vec::new();
    let mut what = Vec::new();
    let mut tell = |sign: &str, events: &str, rest: &str| {
        if !events.is_empty() {
            what.push(format!("{sign} {events}{rest}"));
        }
    };
    let edit = if uninstall {
        tell("-", &bare.removed.join(", "), "");
        let was = before.as_deref().and_then(|text| file::as_it_was(&ctx.registry(), path, text));
        // The earlier text may contain hooks of an older tine.
        let is_free = |text: &str| adapter.remove_hooks(text, &[]).is_ok_and(|edited| edited.removed.is_empty());
        let was = was.filter(|was| was.as_deref().is_none_or(is_free));
        let is_blank = matches!(bare.text.trim(), "" | "{}");
        let is_all = is_blank && receipt.is_some_and(|receipt| receipt.is_ours);
        let after = was.unwrap_or_else(|| (!is_all).then(|| format!("{mark}{}", bare.text)));
        Edit { path: path.to_owned(), before, after, kept: None, is_shared: false }
    } else {
        let program = program_for(ctx, scope)?;
        let edited = adapter.add_hooks(text, &program).map_err(|problem| bad(path, problem))?;
        let calls = format!(" call {program}");
        tell("+", &edited.added.join(", "), &calls);
        tell("~", &edited.updated.join(", "), &calls);
        tell("-", &edited.removed.join(", "), "");
        if !edited.left.is_empty() {
            let left = edited.left.join(", ");
            notes.push(format!("{}: kept your own hook for {left}", path.display()));
        }
        notes.extend(setup::obstacles(adapter, path)?);
        notes.extend(adapter.hook_caution());
        let after = Some(format!("{mark}{}", edited.text));
        let kept = Some(adapter.hook_containers(&bare.text));
        Edit { path: path.to_owned(), before, after, kept, is_shared: scope == Scope::Project }
    };
    let change = Change { agent, scope, path: path.to_owned(), what };
    let step = (!change.what.is_empty()).then_some(Step { change, action: Action::Edit(edit) });
    Ok(PlannedHooks { step, notes })
}

/// Decides whether to make the agent trust the hooks. Querying it makes it write to its home, so this is postponed if
/// the plan is clear without it.
fn plan_trust(ctx: &Ctx, adapter: &dyn Adapter, path: &Path, hooks: &PlannedHooks) -> Result<Option<Step>> {
    let agent = adapter.agent();
    let (Some(trust), Ok(_)) = (adapter.trust(), program::program(ctx, agent)) else {
        return Ok(None);
    };
    let moves = match hooks.edit() {
        Some(edit) => trust.moves(text_of(edit.before.as_deref()), text_of(edit.after.as_deref())),
        None if setup::trust::is_trusted(ctx, adapter, path) == Some(false) => HookMoves::new(),
        None => return Ok(None),
    };
    let what = vec![format!("+ {}'s trust in these hooks", agent.product_name())];
    let change = Change { agent, scope: Scope::User, path: adapter.server_file(), what };
    Ok(Some(Step { change, action: Action::Trust { hooks: path.to_owned(), moves } }))
}

enum PlannedServer {
    UpToDate,
    Change(Step),
    /// There is a server of the same name that isn't tine's.
    Foreign(PathBuf),
}

/// Plans how the MCP server gets into the agent's list. The text is computed when the step is applied, because trust in
/// hooks may be recorded in the same file before.
fn plan_server(ctx: &Ctx, adapter: &dyn Adapter) -> Result<PlannedServer> {
    let (agent, path) = (adapter.agent(), adapter.server_file());
    let program = setup::hook_program(ctx)?;
    let sign = match server_in(adapter, &path)? {
        ServerEntry::Foreign => return Ok(PlannedServer::Foreign(path)),
        ServerEntry::Ours(known) if known == program => return Ok(PlannedServer::UpToDate),
        ServerEntry::Ours(_) => "~",
        ServerEntry::Missing => "+",
    };
    let text = file::read(&path)?.unwrap_or_default();
    adapter.add_server(file::split_mark(&text).1, &program).map_err(|problem| bad(&path, problem))?;
    let what = vec![format!("{sign} the MCP server calls {program}")];
    let change = Change { agent, scope: Scope::User, path, what };
    Ok(PlannedServer::Change(Step { change, action: Action::AddServer }))
}

/// What a file lists under the name of tine's server.
pub(super) fn server_in(adapter: &dyn Adapter, path: &Path) -> Result<ServerEntry> {
    let text = file::read(path)?.unwrap_or_default();
    adapter.server_in(file::split_mark(&text).1).map_err(|problem| bad(path, problem))
}

/// Decides how the user's hooks, the trust in them and the server are removed.
fn plan_removal(ctx: &Ctx, adapter: &dyn Adapter, plan: &mut SetupPlan) -> Result<()> {
    let (agent, path) = (adapter.agent(), adapter.hook_file());
    let hooks = plan_hooks(ctx, agent, Scope::User, &path, true)?;
    let trust = adapter.trust().zip(hooks.edit());
    let moves = match trust {
        Some((trust, edit)) => trust.moves(text_of(edit.before.as_deref()), text_of(edit.after.as_deref())),
        None => HookMoves::new(),
    };
    let has_hooks = trust.is_some();
    plan.add_hooks(agent, Some(hooks));
    let config = adapter.server_file();
    let Some(before) = file::read(&config)? else {
        return Ok(());
    };
    let (mark, text) = file::split_mark(&before);
    let failed = |problem| bad(&config, problem);
    let has_server = matches!(adapter.server_in(text).map_err(failed)?, ServerEntry::Ours(_));
    let was = file::as_it_was(&ctx.registry(), &config, &before);
    // Trust in hooks that an interrupted run has removed already.
    let is_left = adapter.trust().is_some() && was.as_ref().is_some_and(|was| was.as_ref() != Some(&before));
    if !has_server && !has_hooks && !is_left {
        return Ok(());
    }
    let receipt = ctx.registry().receipt(&config)?;
    let kept = receipt.as_ref().map_or_else(|| adapter.server_containers(text), |receipt| receipt.kept.clone());
    let mut left = text.to_owned();
    if has_server {
        left = adapter.remove_server(&left, &kept).map_err(failed)?;
    }
    if let Some(trust) = adapter.trust() {
        left = trust.follow(&left, &setup::trust::names_of(&path), &moves, &kept).map_err(failed)?;
    }
    let after = match was {
        // Trust in other hooks that moved is not what it was.
        Some(was) if moves.iter().all(|(_, new)| new.is_none()) => was,
        _ if adapter.is_blank(&left) && receipt.is_some_and(|receipt| receipt.is_ours) => None,
        _ => Some(format!("{mark}{left}")),
    };
    if after.as_deref() != Some(&before) {
        let trust =
            (has_hooks || is_left && !has_server).then(|| format!("- {}'s trust in these hooks", agent.product_name()));
        let server = has_server.then(|| "- the MCP server".to_owned());
        let what = trust.into_iter().chain(server).collect();
        let change = Change { agent, scope: Scope::User, path: config.clone(), what };
        let edit = Edit { path: config, before: Some(before), after, kept: None, is_shared: false };
        plan.steps.push(Step { change, action: Action::Edit(edit) });
    }
    Ok(())
}

/// Notes that the project has hooks of an older tine, which don't give way; they may be a colleague's.
fn note_project_hooks(ctx: &Ctx, adapter: &dyn Adapter, plan: &mut SetupPlan) -> Result<()> {
    let agent = adapter.agent();
    let Some(path) = project_hook_file(ctx, adapter).filter(|path| *path != adapter.hook_file()) else {
        return Ok(());
    };
    let entries = setup::hooks_of_tine(adapter, &path)?;
    let gives_way = |entry: &HookEntry| entry.program.as_deref() == Some(Path::new(BY_NAME));
    if !entries.iter().all(gives_way) {
        let path = path.display();
        let note = format!("{path} also has tine's hooks; `tine setup {agent} --project --uninstall` removes them");
        plan.notes.push((agent, note));
    }
    Ok(())
}

fn plugin_step(ctx: &Ctx, adapter: &dyn Adapter, what: String, action: Action) -> Step {
    let path = adapter.plugin().map(|plugin| plugin_folder(ctx, plugin)).unwrap_or_default();
    Step { change: Change { agent: adapter.agent(), scope: Scope::Plugin, path, what: vec![what] }, action }
}

/// The program that hooks call. A project's call it by name, because everybody has their own.
fn program_for(ctx: &Ctx, scope: Scope) -> Result<String> {
    match scope {
        Scope::Project => Ok(BY_NAME.to_owned()),
        Scope::User | Scope::Plugin => setup::hook_program(ctx),
    }
}

fn text_of(text: Option<&str>) -> &str {
    file::split_mark(text.unwrap_or_default()).1
}
