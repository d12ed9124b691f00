//! Names: which are free, and how to release one.

use std::io;
use std::path::Path;

use agents::TitleChange;
use transcript::{SessionId, SessionName};

use crate::ctx::Ctx;
use crate::operations::{Error, Result};
use crate::program;
use crate::registry;
use crate::registry::operations::{self, Effects, Operation, Renaming};
use crate::registry::{NameRow, SessionKey};

/// For this many milliseconds, the name of a session without a transcript is not released: the transcript may be about
/// to be written.
const WRITTEN_WITHIN: i64 = 60_000;

/// How many characters of an id are shown if space is short.
const SHORTEST_ID: usize = 8;

/// The session whose name an operation changed, if that can be undone. It is found by its name, because its id or path
/// may have changed.
pub(crate) fn check_name_back(ctx: &Ctx, operation: &Operation) -> Result<Option<SessionKey>> {
    let Some(change) = operation.effects.name_change() else {
        return Ok(None);
    };
    let now_at = match &change.new {
        Some(name) => ctx.registry().named(name)?.map(|row| row.key),
        None => Some(change.session.clone()),
    };
    let key = now_at.ok_or(Error::NotUndoable { id: operation.id, state: "overtaken by another name".into() })?;
    match &change.old {
        Some(old) if !is_free(ctx, old)? => Err(registry::Error::NameTaken(old.clone()).into()),
        _ => Ok(Some(key)),
    }
}

/// Undoes an adoption or a rename.
pub(crate) fn name_back(ctx: &Ctx, operation: &Operation) -> Result<()> {
    let key = match check_name_back(ctx, operation) {
        // It has its old name already, but that was not recorded before the interruption.
        Err(Error::NotUndoable { .. }) => None,
        other => other?,
    };
    let (Some(key), Some(change)) = (key, operation.effects.name_change()) else {
        return Ok(());
    };
    let old = change.old.as_ref();
    if let Some(old) = old {
        release_name(ctx, old)?;
    }
    if let Effects::Rename(renaming) = &operation.effects {
        // First, because without the new name the session can't be found again after an interruption.
        take_title_back(ctx, renaming, &key);
    }
    let now = ctx.context().clock.now();
    ctx.registry().set_name(&key, old, now)?;
    if let Effects::Adopt(adoption) = &operation.effects
        && adoption.has_parent
    {
        ctx.registry().forget_parent(key.agent, &key.id)?;
    }
    Ok(())
}

/// Removes the title that shows a name in the agent's own list. `now` is the session that has the name now; the title
/// is in the file it was added to.
fn take_title_back(ctx: &Ctx, renaming: &Renaming, now: &SessionKey) {
    let Renaming { name, old_title, title: mark } = renaming;
    let (Some(mark), Some(title)) = (mark, &name.new) else {
        return;
    };
    let key = if name.session.path.exists() { &name.session } else { now };
    let (adapter, program) = (ctx.adapter(key.agent), program::program(ctx, key.agent).ok());
    let is_open = adapter.live().sessions.contains_key(&key.id);
    let taken = TitleChange { mark, title: title.as_str(), old: old_title.as_deref(), is_open };
    let taken =
        keeping_stamp(ctx, &key.id, &key.path, || adapter.restore_title(program.as_ref(), &key.id, &key.path, &taken));
    if let Err(error) = taken {
        let agent = key.agent.product_name();
        ctx.warn(format!("{agent}'s session list still shows the title `{title}`: {error}"));
    }
}

/// Changes a title in a transcript. That doesn't count as growth, because the conversation is unchanged.
pub(crate) fn keeping_stamp(
    ctx: &Ctx,
    id: &SessionId,
    path: &Path,
    change: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let before = operations::stamp_of(path);
    let changed = change();
    let moved = before.map(|before| ctx.registry().move_stamp(id, before, path));
    if let Some(Err(error)) = moved {
        ctx.warn(error.to_string());
    }
    changed
}

/// Refuses a name that another session has.
pub(crate) fn check_name(ctx: &Ctx, name: &SessionName) -> Result<()> {
    match is_free(ctx, name)? {
        true => Ok(()),
        false => Err(registry::Error::NameTaken(name.clone()).into()),
    }
}

/// Whether a name is available: unused, or used by a session without a transcript.
pub(crate) fn is_free(ctx: &Ctx, name: &SessionName) -> Result<bool> {
    let row = ctx.registry().named(name)?;
    Ok(row.is_none_or(|row| is_gone(ctx, &row)) && !is_id(ctx, name))
}

/// Whether a name looks like an id and is the prefix of one. Such a name would hide that session.
fn is_id(ctx: &Ctx, name: &SessionName) -> bool {
    let name = name.as_str();
    let may_be = name.len() >= SHORTEST_ID && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_called = |file: &agents::SessionFile| file.ids().any(|id| id.starts_with(name));
    may_be && ctx.adapters().iter().any(|adapter| adapter.discover().files.iter().any(is_called))
}

/// Releases the name of a session without a transcript. Plans don't do this.
pub(crate) fn release_name(ctx: &Ctx, name: &SessionName) -> Result<()> {
    let row = ctx.registry().named(name)?;
    if let Some(row) = row.filter(|row| is_gone(ctx, row)) {
        ctx.registry().forget_name(name)?;
        ctx.warn(format!(
            "`{name}` belonged to a session whose transcript no longer exists ({})",
            row.key.path.display()
        ));
    }
    Ok(())
}

fn is_gone(ctx: &Ctx, row: &NameRow) -> bool {
    let now = ctx.context().clock.now().as_millisecond();
    let is_gone = !row.is_unbegun && !row.key.path.exists() && now - row.created > WRITTEN_WITHIN;
    is_gone && !ctx.adapter(row.key.agent).live().sessions.contains_key(&row.key.id)
}
