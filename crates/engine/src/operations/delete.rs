//! Deletes sessions: everything that belongs to one is moved to the trash, and `undo` restores it.
//!
//! Each deletion also removes trash that is older than a month.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use transcript::{SessionId, State};

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::operations::leftovers;
use crate::operations::leftovers::OwnWorkspace;
use crate::operations::trash;
use crate::operations::{Error, Result};
use crate::private;
use crate::registry::operations::{Deletion, Effects, Moved, OperationState};
use crate::sessions::catalog::{self, Quiet};
use crate::sessions::session::Session;
use crate::workspace::directory;

/// For this many milliseconds after a `/clear`, an agent may still write to the cleared transcript.
const WRITTEN_AFTER_CLEAR: i64 = 60_000;

/// What moves to the trash together with a session, and what could.
#[derive(Debug)]
pub struct DeletionPlan {
    /// The number of earlier transcripts, before a `/clear`, that are deleted with it.
    pub previous: usize,
    /// The session's worktree or copied directory, if tine created it and it still exists.
    pub workspace: Option<OwnWorkspace>,
}

/// Plans a deletion and touches nothing.
pub(crate) fn plan_deletion(ctx: &Ctx, session: &Session) -> Result<DeletionPlan> {
    let previous = transcripts_before_clear(ctx, session)?.len();
    Ok(DeletionPlan { previous, workspace: leftovers::workspace_of(ctx, session)? })
}

/// Moves a session to the trash, with its worktree or copied directory if one is given, and returns the operation for
/// `undo`.
pub(crate) fn delete(ctx: &Ctx, session: &Session, workspace: Option<&OwnWorkspace>) -> Result<i64> {
    let view = &session.view;
    if view.state != State::Stopped {
        return Err(Error::IsOpen { session: view.label().to_owned(), state: view.state });
    }
    let previous = transcripts_before_clear(ctx, session)?;
    let files: Vec<&Path> =
        std::iter::once(&view.path).chain(previous.iter().map(|(_, path)| path)).map(PathBuf::as_path).collect();
    let dependants = dependants(ctx, session, &files);
    if let Some(first) = dependants.first() {
        return Err(Error::StillNeeded {
            session: view.label().to_owned(),
            by: first.clone(),
            count: dependants.len(),
        });
    }
    let now = ctx.context().clock.now();
    ctx.registry().check_writable()?;
    trash::empty_trash(ctx, now)?;
    let adapter = ctx.adapter(view.agent);
    let mut belongings = match view.unstarted {
        true => vec![view.path.clone()],
        false => adapter.own_files(&view.id, &view.path),
    };
    for (id, path) in &previous {
        belongings.extend(adapter.own_files(id, path).into_iter().filter(|path| agents::is_there(path)));
    }
    let (parts, branch) =
        workspace.map(|own| leftovers::parts_of_workspace(ctx, own, session)).transpose()?.unwrap_or_default();
    belongings.extend(parts);
    let what = format!("delete {}", view.label());
    let trash = trash::new_trash_folder(ctx);
    let named = |number: usize, path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        trash.join(format!("{number}-{name}"))
    };
    let moves = belongings.into_iter().enumerate().map(|(number, from)| Moved { to: named(number, &from), from });
    let deletion = Deletion { session: Some(view.id.clone()), moved: moves.collect(), branch, name: view.name.clone() };
    let effects = Effects::Delete(deletion.clone());
    let operation = ctx.registry().begin_operation(&what, &effects, None, now)?;
    let moved = trash::make_trash_folder(ctx, &trash, &what, &deletion)
        .and_then(|()| deletion.moved.iter().try_for_each(|moved| relocate(&moved.from, &moved.to)));
    if let Err(error) = moved {
        // If that fails, the next run retries it.
        restore_files(operation, &deletion.moved)?;
        trash::remove_folders(&deletion);
        ctx.registry().set_state(operation, &OperationState::Failed, None).or_log("record that the operation failed");
        return Err(error);
    }
    if let Some(branch) = &deletion.branch {
        leftovers::drop_branch(ctx, branch);
    }
    if let Some(own) = workspace {
        own.remove_empty_parents();
    }
    adapter.remove_from_index(&view.id, &view.path).or_log("remove the session from the agent's list");
    ctx.registry().set_name(&session.key(), None, now)?;
    ctx.registry().set_state(operation, &OperationState::Done, None)?;
    ctx.back_up();
    Ok(operation)
}

/// Refuses to restore what is no longer in the trash, or whose path is taken. What has been restored already is
/// neither: an earlier attempt may have failed half-way.
pub(crate) fn check_restore(ctx: &Ctx, operation: i64, deletion: &Deletion) -> Result<()> {
    let is_there = |path: &Path| agents::is_there(path);
    let moved = &deletion.moved;
    if let Some(taken) = moved.iter().find(|moved| is_there(&moved.from) && is_there(&moved.to)) {
        return Err(Error::ThereAgain { id: operation, path: taken.from.clone() });
    }
    let is_gone = |moved: &Moved| !is_there(&moved.from) && !is_there(&moved.to);
    if moved.first().is_some_and(is_gone) {
        return Err(Error::TrashGone(operation));
    }
    for gone in moved.iter().filter(|moved| is_gone(moved)) {
        ctx.warn(format!("{} is no longer in the trash and was not restored", gone.from.display()));
    }
    Ok(())
}

/// Restores what an operation has moved to the trash.
pub(crate) fn restore(ctx: &Ctx, operation: i64, deletion: &Deletion) -> Result<()> {
    restore_files(operation, &deletion.moved)?;
    trash::remove_folders(deletion);
    if let Some(branch) = &deletion.branch {
        leftovers::restore_branch(ctx, branch)?;
    }
    if let Some(transcript) = deletion.moved.first() {
        add_to_agent_list(ctx, &transcript.from);
    }
    give_name_back(ctx, deletion)
}

/// Adds a session to the agent's own list, if the agent keeps one.
pub(crate) fn add_to_agent_list(ctx: &Ctx, transcript: &Path) {
    for adapter in ctx.adapters().iter().filter(|adapter| transcript.starts_with(adapter.home())) {
        if adapter.has_index(transcript) {
            adapter.add_to_index(transcript, &adapter.scan(transcript)).or_log("add the session to the agent's list");
        }
    }
}

/// Gives a session the name back that it had before it was deleted.
fn give_name_back(ctx: &Ctx, deletion: &Deletion) -> Result<()> {
    if let (Some(name), Some(transcript)) = (&deletion.name, deletion.moved.first()) {
        let unstarted = ctx.registry().unstarted_at(&transcript.from)?;
        let key = match unstarted {
            Some(key) => key,
            None => crate::sessions::survey::outside_session(ctx, &transcript.from)?.key(),
        };
        let now = ctx.context().clock.now();
        if !ctx.registry().set_name(&key, Some(name), now)? {
            ctx.warn(format!("the name `{name}` is now taken; the session was restored without a name"));
        }
    }
    Ok(())
}

/// For users, the transcript before a `/clear` is the same session, so it is deleted too, unless it has been continued
/// since or is open.
fn transcripts_before_clear(ctx: &Ctx, session: &Session) -> Result<Vec<(SessionId, PathBuf)>> {
    let live = ctx.adapter(session.view.agent).live();
    let previous = ctx.registry().previous_ids(&session.key())?;
    let is_left = |id: &SessionId, path: &Path, since: i64| {
        let modified = agents::session_stamp(path).map(|stamp| stamp.modified / 1_000_000);
        live.sessions.contains_key(id) || modified.is_ok_and(|modified| modified > since + WRITTEN_AFTER_CLEAR)
    };
    let there = previous.into_iter().filter(|(_, path, _)| agents::is_there(path));
    Ok(there.filter(|(id, path, since)| !is_left(id, path, *since)).map(|(id, path, _)| (id, path)).collect())
}

/// Sessions whose history is partly in one of these files.
pub(crate) fn dependants(ctx: &Ctx, session: &Session, files: &[&Path]) -> Vec<String> {
    let catalog = catalog::refresh(ctx.adapters(), &ctx.context().paths.cache, &Quiet);
    let names = ctx.registry().names().unwrap_or_default();
    let others = catalog.entries.iter().map(|entry| &entry.summary).filter(|summary| {
        summary.agent == session.view.agent
            && summary.id != session.view.id
            && !files.contains(&summary.path.as_path())
            && summary.bases.iter().any(|base| files.contains(&base.as_path()))
    });
    let label = |summary: &transcript::Summary| {
        let name = names.iter().find(|(key, _)| key.agent == summary.agent && key.id == summary.id);
        name.map_or_else(|| summary.id.to_string(), |(_, name)| name.to_string())
    };
    others.map(|summary| label(summary)).collect()
}

/// Moves a file or a folder, also to another file system. There it is first copied under a temporary name, and the
/// original is renamed before it is removed, so whatever has its final name is complete on both sides.
fn relocate(from: &Path, to: &Path) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| FileError::Write { path, source }
    };
    match private::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let part = unfinished(to);
            directory::remove_tree(&part).map_err(failed(&part))?;
            let copied = match from.is_dir() && !from.is_symlink() {
                true => directory::copy(from, &part, &Quiet).map(drop),
                false => Ok(directory::copy_one(from, &part).map_err(failed(to))?),
            };
            // The source is removed after this, so the copy and its name must be on the disk.
            let copied = copied.and_then(|()| {
                let folder = to.parent().unwrap_or(Path::new("/"));
                directory::flush(folder).map_err(failed(folder))?;
                Ok(private::rename(&part, to).map_err(failed(to))?)
            });
            if copied.is_err() {
                directory::remove_tree(&part).or_log(format_args!("remove {}", part.display()));
            }
            copied?;
            Ok(drop_whole(from).map_err(failed(from))?)
        }
        other => Ok(other.map_err(failed(to))?),
    }
}

/// Removes something so that it never exists partially.
fn drop_whole(path: &Path) -> io::Result<()> {
    let aside = unfinished(path);
    directory::remove_tree(&aside)?;
    fs::rename(path, &aside)?;
    directory::remove_tree(&aside)
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tine-part");
    path.with_file_name(name)
}

/// Moves back what an operation has moved. Whatever has its final name is complete, so existing targets are not
/// touched; their folders may even be read-only.
fn restore_files(id: i64, moved: &[Moved]) -> Result<()> {
    for Moved { from, to } in moved.iter().rev() {
        for part in [unfinished(from), unfinished(to)].into_iter().filter(|part| agents::is_there(part)) {
            directory::remove_tree(&part).or_log(format_args!("remove {}", part.display()));
        }
        if to.symlink_metadata().is_err() {
            continue;
        }
        if agents::is_there(from) {
            if !holds_all_of(from, to) {
                return Err(Error::ThereAgain { id, path: from.clone() });
            }
            drop_whole(to).map_err(|source| FileError::Write { path: to.clone(), source })?;
            continue;
        }
        let failed = |source| FileError::Write { path: from.clone(), source };
        private::create_folder(agents::folder_of(from)).map_err(failed)?;
        relocate(to, from)?;
    }
    Ok(())
}

/// Whether one file or folder contains at least what another contains, by names and sizes: agents only append.
fn holds_all_of(whole: &Path, part: &Path) -> bool {
    if let Some(holds) = agents::rows_hold_all_of(whole, part) {
        return holds.unwrap_or(false);
    }
    let (Ok(of_whole), Ok(of_part)) = (fs::symlink_metadata(whole), fs::symlink_metadata(part)) else {
        return false;
    };
    if !of_part.is_dir() {
        return of_whole.file_type() == of_part.file_type() && of_whole.len() >= of_part.len();
    }
    let mut entries = fs::read_dir(part).into_iter().flatten().flatten();
    of_whole.is_dir() && entries.all(|entry| holds_all_of(&whole.join(entry.file_name()), &entry.path()))
}
