//! Undoing operations.
//!
//! Undo never removes work: it keeps sessions that have grown, moved or are open or needed by others, and worktrees and
//! copies with changes.
//!
//! An undo can be interrupted like any other operation. It is recorded before anything is touched, and everything that
//! it removes is renamed first, so whatever has its own name is complete.

use std::io;
use std::path::{Path, PathBuf};

use transcript::{SessionId, State};

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::operations::clean_up;
use crate::operations::delete;
use crate::operations::free_names;
use crate::operations::growth;
use crate::operations::restored;
use crate::operations::{Error, Result};
use crate::private;
use crate::registry;
use crate::registry::operations::{
    Cloning, Created, CreatedWorkspace, Effects, Forking, LogEntry, Moved, Operation, OperationState, Undoing,
};
use crate::sessions::session::Session;
use crate::workspace;
use crate::workspace::directory;
use crate::workspace::git::WorktreeState;

/// Undoes an operation: the given one, or the last one that can be undone.
pub(crate) fn undo(ctx: &Ctx, id: Option<i64>, force: bool) -> Result<Operation> {
    ctx.registry().check_writable()?;
    loop {
        let log = ctx.registry().log()?;
        let found = match id {
            Some(id) => log.iter().find(|entry| is_about(entry, id)),
            None => log.iter().find(|entry| may_be_undone(entry)),
        };
        let operation = match found.cloned().ok_or(Error::NothingToUndo(id))? {
            LogEntry::Operation(operation) => *operation,
            LogEntry::Unreadable(unreadable) => return Err(registry::Error::from(unreadable).into()),
        };
        match operation.state {
            OperationState::Done => {}
            OperationState::Undoing(_) => return Err(Error::BeingUndone(operation.id)),
            state => return Err(Error::NotUndoable { id: operation.id, state: state.to_string() }),
        }
        let all: Vec<&Operation> = log.iter().filter_map(LogEntry::operation).flat_map(Operation::with_parts).collect();
        // If another process was quicker, check again.
        let undone = match &operation.effects {
            Effects::Forks => undo_parts(ctx, operation, &all, force)?,
            _ => undo_one(ctx, operation.clone(), later_than(&all, operation.id), force)?,
        };
        if let Some(undone) = undone {
            return Ok(undone);
        }
    }
}

/// Whether an entry is an operation with this number, or one of its parts is.
fn is_about(entry: &LogEntry, id: i64) -> bool {
    let parts = entry.operation().map(|operation| operation.parts.as_slice()).unwrap_or_default();
    std::iter::once(entry).chain(parts).any(|entry| entry.id() == id)
}

/// Whether an operation is the last one, judging by its state. An unreadable operation is not skipped in favour of an
/// older one.
fn may_be_undone(entry: &LogEntry) -> bool {
    match entry {
        LogEntry::Operation(operation) => {
            matches!(operation.state, OperationState::Done | OperationState::Undoing(_))
        }
        LogEntry::Unreadable(unreadable) => matches!(unreadable.state.as_str(), "done" | "undoing"),
    }
}

/// Undoes one operation, unless another process is already undoing it. Everything is checked, then recorded, then done;
/// if it is interrupted after that, the next run continues.
fn undo_one<'a>(
    ctx: &Ctx,
    mut operation: Operation,
    later: impl Iterator<Item = &'a Operation>,
    force: bool,
) -> Result<Option<Operation>> {
    let aside = match check_and_plan(ctx, &mut operation, later, force) {
        Ok(aside) => aside,
        Err(error) if ctx.registry().is_done(operation.id)? => {
            if matches!(error, Error::TrashGone(_)) {
                // Not tried again by the next undo.
                ctx.registry().set_state(operation.id, &OperationState::Purged, None)?;
            }
            return Err(error);
        }
        // The check found files that another process was moving away.
        Err(_) => return Ok(None),
    };
    let since = ctx.context().clock.now().as_millisecond();
    operation.state = OperationState::Undoing(Undoing { since, force, aside, is_decided: false });
    if !ctx.registry().reopen(&operation)? {
        return Ok(None);
    }
    if let Err(error) = reverse(ctx, &mut operation) {
        // What could not be moved back is left to the next run.
        if !operation.state.undoing().is_some_and(Undoing::is_under_way) {
            ctx.registry().set_state(operation.id, &OperationState::Done, None)?;
        }
        return Err(error);
    }
    ctx.back_up();
    Ok(Some(operation))
}

/// Checks that an operation can be undone, and returns what must be moved aside for that.
fn check_and_plan<'a>(
    ctx: &Ctx,
    operation: &mut Operation,
    later: impl Iterator<Item = &'a Operation>,
    force: bool,
) -> Result<Vec<Moved>> {
    Ok(match &operation.effects {
        Effects::Delete(deletion) => {
            delete::check_restore(ctx, operation.id, deletion)?;
            Vec::new()
        }
        Effects::Adopt(_) | Effects::Rename(_) => {
            free_names::check_name_back(ctx, operation)?;
            Vec::new()
        }
        Effects::Restore(restoration) => {
            restored::check_put_back(operation.id, restoration, force)?;
            Vec::new()
        }
        Effects::Fork(_) | Effects::Clone(_) | Effects::Worktree(_) => {
            exclude_later(ctx, later, operation)?;
            check_undo(ctx, operation, force)?;
            operation
                .effects
                .created()
                .map(|created| {
                    warn_of_others(ctx, created);
                    planned_moves(ctx, operation.id, created)
                })
                .unwrap_or_default()
        }
        Effects::Forks => Vec::new(),
    })
}

/// Undoes all parts of an operation, or none if one of them cannot be undone.
fn undo_parts(ctx: &Ctx, mut operation: Operation, all: &[&Operation], force: bool) -> Result<Option<Operation>> {
    let in_part = |part: &Operation| {
        let what = part.what.clone();
        move |source: Error| Error::InPart { what, source: Box::new(source) }
    };
    let parts = ctx.registry().parts_of(operation.id)?;
    for part in &parts {
        let mut checked = part.clone();
        let is_free = exclude_later(ctx, later_than(all, part.id), &mut checked);
        if let Err(error) = is_free.and_then(|()| check_undo(ctx, &checked, force)) {
            return if ctx.registry().is_done(operation.id)? { Err(in_part(part)(error)) } else { Ok(None) };
        }
    }
    let since = ctx.context().clock.now().as_millisecond();
    operation.state = OperationState::Undoing(Undoing { since, force, ..Undoing::default() });
    if !ctx.registry().reopen(&operation)? {
        return Ok(None);
    }
    for part in parts {
        let wrap = in_part(&part);
        let later = later_than(all, part.id);
        if let Err(error) = undo_one(ctx, part, later, force) {
            ctx.registry().set_state(operation.id, &OperationState::Done, None)?;
            return Err(wrap(error));
        }
    }
    end_undo(ctx, &mut operation)?;
    Ok(Some(operation))
}

/// Undoes the parts that an operation created before it failed or was interrupted. A part that has been continued since
/// becomes a separate operation.
pub(crate) fn undo_all_parts(ctx: &Ctx, id: i64) -> Result<()> {
    let parts = ctx.registry().parts_of(id)?;
    for part in parts {
        let (part_id, what) = (part.id, part.what.clone());
        if let Err(error) = undo_one(ctx, part, std::iter::empty(), false) {
            ctx.warn(format!("`{what}` was not undone: {error}"));
            ctx.registry().detach(part_id)?;
        }
    }
    Ok(())
}

/// Finishes an interrupted undo and returns its report.
pub(crate) fn finish_undo(ctx: &Ctx, mut operation: Operation, undoing: &Undoing) -> Result<String> {
    let what = operation.what.clone();
    match &operation.effects {
        Effects::Forks => {
            let mut parts = ctx.registry().parts_of(operation.id)?.into_iter();
            let undone = parts.try_for_each(|part| undo_one(ctx, part, std::iter::empty(), undoing.force).map(drop));
            if let Err(error) = undone {
                ctx.registry().set_state(operation.id, &OperationState::Done, None)?;
                return Ok(format!("the undo of `{what}` was interrupted and is incomplete: {error}"));
            }
        }
        Effects::Fork(_) | Effects::Clone(_) | Effects::Worktree(_) if !undoing.is_decided => {
            // What was not moved away yet may have been continued.
            if let Err(error) = check_undo(ctx, &operation, undoing.force) {
                move_back(&undoing.aside)?;
                ctx.registry().set_state(operation.id, &OperationState::Done, None)?;
                return Ok(format!("the undo of `{what}` was interrupted and cannot be finished: {error}"));
            }
        }
        Effects::Fork(_) | Effects::Clone(_) | Effects::Worktree(_) => {}
        Effects::Delete(_) | Effects::Adopt(_) | Effects::Rename(_) | Effects::Restore(_) => {}
    }
    reverse(ctx, &mut operation)?;
    Ok(format!("finished the interrupted undo of `{what}`"))
}

/// Reverses an operation; resumes an interrupted reversal.
fn reverse(ctx: &Ctx, operation: &mut Operation) -> Result<()> {
    match &operation.effects {
        Effects::Delete(deletion) => delete::restore(ctx, operation.id, deletion)?,
        Effects::Adopt(_) | Effects::Rename(_) => free_names::name_back(ctx, operation)?,
        Effects::Restore(restoration) => {
            let force = operation.state.undoing().is_some_and(|undoing| undoing.force);
            restored::put_back(ctx, restoration, force)?;
        }
        Effects::Fork(Forking { created, .. })
        | Effects::Clone(Cloning { created, .. })
        | Effects::Worktree(created) => {
            let created = created.clone();
            remove_all_created(ctx, operation, &created)?;
        }
        // Its parts are undone one by one.
        Effects::Forks => {}
    }
    end_undo(ctx, operation)
}

fn end_undo(ctx: &Ctx, operation: &mut Operation) -> Result<()> {
    operation.state = OperationState::Undone;
    Ok(ctx.registry().set_state(operation.id, &operation.state, Some(&operation.effects))?)
}

/// Removes what an operation created. First everything is renamed (and renamed back if that fails), then unregistered
/// in one transaction. The rest needs no further decision.
fn remove_all_created(ctx: &Ctx, operation: &mut Operation, created: &Created) -> Result<()> {
    let mut undoing = operation.state.undoing().cloned().unwrap_or_default();
    if !undoing.is_decided {
        let moved = undoing.aside.iter_mut().try_for_each(rename_aside);
        let decided = moved.and_then(|()| {
            operation.state = OperationState::Undoing(Undoing { is_decided: true, ..undoing.clone() });
            Ok(ctx.registry().decide_undo(operation)?)
        });
        if let Err(error) = decided {
            operation.state = OperationState::Undoing(undoing.clone());
            move_back(&undoing.aside)?;
            return Err(error);
        }
    }
    let mut left = None;
    for moved in undoing.aside.iter().filter(|moved| directory::remove_tree(&moved.to).is_err()) {
        left = Some(workspace::Error::StillThere(moved.to.clone()));
    }
    match &created.workspace {
        Some(CreatedWorkspace::Worktree(worktree)) => {
            left = ctx.git().and_then(|git| git.forget(worktree)).err().or(left);
        }
        Some(CreatedWorkspace::Copy(copy)) => copy.restore_parents(),
        None => {}
    }
    clean_up::clear_away(ctx, created);
    match left {
        Some(left) => Err(Error::NotAllUndone { id: operation.id, left: Box::new(left.into()) }),
        None => Ok(()),
    }
}

/// All files that belong to the session of a transcript.
pub(crate) fn session_files(ctx: &Ctx, id: &SessionId, transcript: &Path) -> Vec<PathBuf> {
    let adapter = ctx.adapters().iter().find(|adapter| transcript.starts_with(adapter.home()));
    adapter.map(|adapter| adapter.own_files(id, transcript)).unwrap_or_default()
}

/// What an undo moves aside before it removes it, and where to: next to it, so that a rename is enough.
fn planned_moves(ctx: &Ctx, operation: i64, created: &Created) -> Vec<Moved> {
    let mut away = created.files.clone();
    // Files that the agent has added next to it since are removed too.
    if let (Some(id), Some(transcript)) = (&created.session, created.transcript().filter(|path| agents::is_there(path)))
    {
        away.extend(session_files(ctx, id, transcript).into_iter().filter(|path| !created.files.contains(path)));
    }
    let is_ours = match &created.workspace {
        Some(CreatedWorkspace::Worktree(tree)) => {
            ctx.git().is_ok_and(|git| git.worktree_state(tree) == WorktreeState::Itself)
        }
        Some(CreatedWorkspace::Copy(copy)) => copy.is_in_place(),
        None => false,
    };
    away.extend(created.workspace.as_ref().filter(|_| is_ours).map(|workspace| workspace.path().to_owned()));
    let mut aside: Vec<Moved> = Vec::new();
    for from in away.into_iter().filter(|path| agents::is_there(path)) {
        let is_free = |to: &PathBuf| to.symlink_metadata().is_err() && aside.iter().all(|moved| moved.to != *to);
        let names = (1..).map(|number: u32| agents::beside(&from, &format!(".tine-undo-{operation}-{number}")));
        aside.extend(names.into_iter().find(is_free).map(|to| Moved { from, to }));
    }
    aside
}

/// What belongs to later operations: a path that was free again may hold another operation's workspace, and a session
/// may be in the trash.
fn exclude_later<'a>(ctx: &Ctx, later: impl Iterator<Item = &'a Operation>, operation: &mut Operation) -> Result<()> {
    let Some(created) = operation.effects.created_mut() else { return Ok(()) };
    for other in later {
        let path = |workspace: &CreatedWorkspace| workspace.path().to_owned();
        let others = other.effects.workspace().map(path);
        if let Some(path) = created.workspace.as_ref().map(path).filter(|path| others.as_ref() == Some(path)) {
            ctx.warn(format!("kept {}: operation {} created it", path.display(), other.id));
            created.workspace = None;
        }
        let is_in_trash = match &other.effects {
            Effects::Delete(deletion) => deletion.moved.iter().any(|moved| created.transcript() == Some(&moved.from)),
            _ => false,
        };
        if is_in_trash {
            return Err(Error::InTrash { id: operation.id, deleted_by: other.id });
        }
    }
    Ok(())
}

/// Warns about a worktree, branch or path that something else uses now, and that is therefore kept.
fn warn_of_others(ctx: &Ctx, created: &Created) {
    let (Some(worktree), Ok(git)) = (created.worktree(), ctx.git()) else {
        return;
    };
    if let Some(tree) = git.elsewhere(worktree) {
        ctx.warn(format!("kept branch `{}`: it is checked out in {}", worktree.branch, tree.display()));
    }
    let branch = git.commit(&worktree.repository, &format!("refs/heads/{}", worktree.branch));
    if branch.is_some_and(|commit| commit != worktree.base) {
        ctx.warn(format!("kept branch `{}`: it has new commits", worktree.branch));
    }
    if matches!(git.worktree_state(worktree), WorktreeState::Other(_)) {
        let path = worktree.path.display();
        ctx.warn(format!("kept {path}: it is no longer the worktree that tine created"));
    }
}

/// Refuses to remove what has been continued or is still needed.
fn check_undo(ctx: &Ctx, operation: &Operation, force: bool) -> Result<()> {
    let Some(created) = operation.effects.created() else { return Ok(()) };
    let sessions = crate::sessions::survey::all_sessions(ctx, &crate::sessions::catalog::Quiet)?;
    let session = created.session.as_ref().and_then(|id| sessions.iter().find(|session| session.view.id == *id));
    if let Some(session) = session {
        if session.view.state != State::Stopped {
            return Err(Error::IsOpen { session: session.view.label().to_owned(), state: session.view.state });
        }
        let dependants = delete::dependants(ctx, session, &[&session.view.path]);
        if let Some(first) = dependants.first() {
            let (label, count) = (session.view.label().to_owned(), dependants.len());
            return Err(Error::StillNeeded { session: label, by: first.clone(), count });
        }
        let has_moved = created.transcript().is_some_and(|path| *path != session.view.path);
        if has_moved && !force {
            return Err(Error::HasMoved { id: operation.id, path: session.view.path.clone() });
        }
        // A clone of a session without messages has no transcript until its first message.
        if created.files.is_empty() && !force {
            return Err(Error::HasGrown { id: operation.id });
        }
    }
    if force {
        return Ok(());
    }
    if let Effects::Fork(fork) = &operation.effects
        && growth::has_grown(ctx, fork)
    {
        return Err(Error::HasGrown { id: operation.id });
    }
    if let Some(path) = created.workspace.as_ref().map(CreatedWorkspace::path) {
        let is_there = |session: &&Session| {
            let is_the_forks = Some(&session.view.id) == created.session.as_ref();
            !is_the_forks && session.view.cwd.as_ref().is_some_and(|cwd| cwd.starts_with(path))
        };
        if let Some(other) = sessions.iter().find(is_there) {
            let (id, session) = (operation.id, other.view.label().to_owned());
            return Err(Error::WorksThere { id, session, path: path.to_owned() });
        }
        let proc = ctx.context().surroundings.proc.as_deref();
        if let Some(process) = proc.and_then(|proc| agents::processes_in(proc, path).first().copied()) {
            return Err(Error::RunsThere { id: operation.id, process, path: path.to_owned() });
        }
    }
    let worktree = created.worktree();
    if let (Some(worktree), Ok(git)) = (worktree, ctx.git()) {
        if let WorktreeState::Other(branch) = git.worktree_state(worktree) {
            return Err(Error::OtherTree { id: operation.id, path: worktree.path.clone(), branch });
        }
        if let Some(tree) = git.elsewhere(worktree) {
            return Err(Error::BranchInUse { id: operation.id, branch: worktree.branch.clone(), tree });
        }
    }
    if let Some(tree) = worktree.filter(|tree| ctx.git().is_ok_and(|git| git.is_locked(tree))) {
        return Err(Error::Locked { id: operation.id, path: tree.path.clone() });
    }
    if worktree.is_some_and(|worktree| !ctx.git().is_ok_and(|git| git.is_untouched(worktree))) {
        return Err(Error::WorkedIn { id: operation.id });
    }
    if let Some(copy) = created.copy().filter(|copy| !copy.is_untouched()) {
        return Err(Error::WorkedInCopy { id: operation.id, path: copy.path.clone() });
    }
    Ok(())
}

/// Later operations that have not been undone.
fn later_than<'a>(all: &[&'a Operation], id: i64) -> impl Iterator<Item = &'a Operation> {
    all.iter().copied().filter(move |other| other.id > id && other.state.is_done())
}

/// Renames something to the name under which it waits for removal, unless it has that name already.
fn rename_aside(moved: &mut Moved) -> Result<()> {
    if moved.to.symlink_metadata().is_ok() {
        // Rows are removed from a database a moment after the file with them is complete.
        return agents::remove_rows(&moved.from).map(drop).map_err(|_| Error::NotRemoved(moved.from.clone()));
    }
    match private::rename(&moved.from, &moved.to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A folder from a lower layer of an overlay cannot be renamed, but it can be removed.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            moved.to.clone_from(&moved.from);
            Ok(())
        }
        other => other.map_err(|_| Error::NotRemoved(moved.from.clone())),
    }
}

/// Gives everything its own name back.
fn move_back(aside: &[Moved]) -> Result<()> {
    for Moved { from, to } in aside.iter().filter(|moved| moved.to.symlink_metadata().is_ok() && moved.to != moved.from)
    {
        if agents::is_there(from) {
            return Err(workspace::Error::InTheWay(from.clone()).into());
        }
        private::rename(to, from).map_err(|source| FileError::Write { path: from.clone(), source })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod tests;
