//! An agent's trust in hooks, for agents that only run hooks that the user trusts.

use std::path::Path;

use agents::{Adapter, HookMoves, SeenHook};
use diagnostics::OrLog;

use super::file::{self, Edit};
use super::{bad, hooks_of_tine};
use crate::ctx::Ctx;
use crate::program;
use crate::setup::plan;
use crate::setup::{Error, Result};

/// Notes the trust. An agent that can't be asked has no hooks, and gets none.
pub(super) fn grant_or_remove_hooks(ctx: &Ctx, adapter: &dyn Adapter, path: &Path, moves: &HookMoves) -> Result<()> {
    let granted = grant(ctx, adapter, path, moves);
    if let Err(Error::NoHooks { .. }) = granted
        && let Some(edit) = plan::plan_hooks(ctx, adapter.agent(), agents::Scope::User, path, true)?.edit()
    {
        file::apply(&mut ctx.registry(), edit, ctx.context().clock.now())?;
    }
    granted
}

/// Whether the agent trusts all of tine's hooks that it sees; nothing if it can't be asked.
pub(super) fn is_trusted(ctx: &Ctx, adapter: &dyn Adapter, path: &Path) -> Option<bool> {
    let trust = adapter.trust()?;
    let program = program::program(ctx, adapter.agent()).or_log(format_args!("find {}", adapter.agent()))?;
    let seen = trust.hooks(&program).or_log("ask the agent which hooks it trusts")?;
    let commands = commands(adapter, path).or_log(format_args!("read {}", path.display()))?;
    let mut ours = seen.hooks.iter().filter(|hook| is_ours(hook, path, &commands)).peekable();
    Some(ours.peek().is_some() && ours.all(|hook| hook.is_trusted && hook.is_enabled))
}

/// The names under which an agent may note the hooks of a file.
pub(super) fn names_of(path: &Path) -> [String; 2] {
    [path.to_string_lossy().into_owned(), file::real(path).to_string_lossy().into_owned()]
}

/// Notes in the agent's settings that tine's hooks are trusted. The hashes are the agent's own.
fn grant(ctx: &Ctx, adapter: &dyn Adapter, path: &Path, moves: &HookMoves) -> Result<()> {
    let Some(trust) = adapter.trust() else {
        return Ok(());
    };
    let (agent, config) = (adapter.agent(), adapter.server_file());
    let program = program::program(ctx, agent)?;
    let seen = trust.hooks(&program).map_err(|source| Error::NoHooks { agent, source })?;
    let commands = commands(adapter, path)?;
    let ours: Vec<&SeenHook> = seen.hooks.iter().filter(|hook| is_ours(hook, path, &commands)).collect();
    if ours.is_empty() {
        let reason = seen.complaints.first().map(|reason| format!(": {reason}")).unwrap_or_default();
        ctx.warn(format!("{} does not see the hooks{reason}", agent.product_name()));
    } else {
        let unknown = commands.iter().filter(|(_, command)| !ours.iter().any(|hook| hook.command == *command));
        let unknown: Vec<&str> = unknown.map(|(event, _)| event.as_str()).collect();
        if !unknown.is_empty() {
            ctx.warn(format!("this version of {} does not support {}", agent.product_name(), unknown.join(", ")));
        }
    }
    let before = file::read(&config)?;
    let text = before.clone().unwrap_or_default();
    let kept = match ctx.registry().receipt(&config)? {
        Some(receipt) => receipt.kept,
        None => adapter.server_containers(&text),
    };
    let edited = trust.follow(&text, &names_of(path), moves, &kept).and_then(|text| trust.grant(&text, &ours));
    let after = edited.map_err(|problem| bad(&config, problem))?;
    if after == text {
        return Ok(());
    }
    let edit = Edit { path: config, before, after: Some(after), kept: Some(kept), is_shared: false };
    file::apply(&mut ctx.registry(), &edit, ctx.context().clock.now())
}

/// The events and commands of tine's hooks in a file.
fn commands(adapter: &dyn Adapter, path: &Path) -> Result<Vec<(String, String)>> {
    Ok(hooks_of_tine(adapter, path)?.into_iter().map(|entry| (entry.event, entry.command)).collect())
}

fn is_ours(hook: &SeenHook, path: &Path, commands: &[(String, String)]) -> bool {
    file::real(&hook.source) == file::real(path) && commands.iter().any(|(_, command)| *command == hook.command)
}
