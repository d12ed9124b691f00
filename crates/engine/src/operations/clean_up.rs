//! Cleans up after interrupted operations: the next run of tine removes their results, ends the agents that still work
//! for them, and continues interrupted undos.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agents::{Client, SessionFile};
use diagnostics::OrLog;

use crate::context::MARK;
use crate::ctx::Ctx;
use crate::operations::delete;
use crate::operations::free_names;
use crate::operations::restored;
use crate::operations::undo;
use crate::operations::unstarted;
use crate::operations::{Error, Result};
use crate::registry::operations::{
    Cloning, Created, CreatedWorkspace, Effects, Expected, KeptSeed, Note, Operation, OperationState,
};
use crate::signal::{Signal, signal};
use crate::workspace;
use crate::workspace::directory;

/// How long to wait for a git process whose tine has ended.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(30);

/// How long a process may take from its fork to its exec.
const EXEC_WITHIN: Duration = Duration::from_millis(100);

/// How long a process may take to stop.
const STILL_WITHIN: Duration = Duration::from_secs(2);

/// File times may lag behind the clock by this many milliseconds.
const CLOCK_TICK: i64 = 10;

/// Removes the results of interrupted operations. What cannot be removed now blocks nothing else; the next run retries
/// it.
pub(crate) fn clean_up(ctx: &Ctx) -> Result<()> {
    let cut_off = ctx.registry().cut_off(ctx.context().clock.now())?;
    for (operation, process) in cut_off {
        // Of several concurrent runs, one cleans up.
        if !ctx.registry().claim(operation.id, &process)? {
            continue;
        }
        let (id, what) = (operation.id, operation.what.clone());
        let is_being_undone = operation.state.undoing().is_some();
        match clean_up_after(ctx, operation) {
            Ok(told) => ctx.warn(told),
            Err(error) => {
                ctx.warn(match &error {
                    Error::NotAllUndone { left, .. } => format!("`{what}` is still only partly undone: {left}"),
                    _ if is_being_undone => format!("`{what}` is still not undone: {error}"),
                    _ => format!("`{what}` was interrupted, and tine cannot clean up after it yet: {error}"),
                });
                ctx.registry().release(id, &process)?;
            }
        }
    }
    Ok(())
}

/// Removes the results of one operation and returns a report.
fn clean_up_after(ctx: &Ctx, operation: Operation) -> Result<String> {
    if let OperationState::Undoing(undoing) = operation.state.clone() {
        return undo::finish_undo(ctx, operation, &undoing);
    }
    let Operation { id, what, effects, .. } = &operation;
    let left = match effects {
        Effects::Fork(fork) if fork.kept.as_ref().is_some_and(KeptSeed::is_starting) => {
            return unstarted::recover_start(ctx, &operation, fork);
        }
        Effects::Fork(fork) => {
            let written = end_agents(ctx, fork.mark.as_deref());
            remove_cut_off(ctx, *id, fork.created.clone(), fork.expects.as_ref(), &written)?
        }
        Effects::Clone(Cloning { created, .. }) | Effects::Worktree(created) => {
            remove_cut_off(ctx, *id, created.clone(), None, &[])?
        }
        Effects::Forks => {
            undo::undo_all_parts(ctx, *id)?;
            None
        }
        // An interrupted deletion did not happen.
        Effects::Delete(deletion) => {
            delete::restore(ctx, *id, deletion)?;
            None
        }
        // Nor did an interrupted restoration.
        Effects::Restore(restoration) => {
            restored::put_back(ctx, restoration, false)?;
            None
        }
        // Nor did an interrupted rename.
        Effects::Adopt(_) | Effects::Rename(_) => {
            free_names::name_back(ctx, &operation)?;
            None
        }
    };
    ctx.registry().set_state(*id, &OperationState::Cleaned, None)?;
    Ok(match left {
        None => format!("`{what}` was interrupted; tine removed its incomplete results"),
        Some(left) => format!(
            "`{what}` was interrupted; tine kept the worktree {} and its branch because it contains other files",
            left.display()
        ),
    })
}

/// Removes what an operation created before it was interrupted. Returns the worktree if it is kept because it is in
/// use.
fn remove_cut_off(
    ctx: &Ctx,
    operation: i64,
    mut created: Created,
    expected: Option<&Expected>,
    written: &[PathBuf],
) -> Result<Option<PathBuf>> {
    let mut left = None;
    if let Some(CreatedWorkspace::Worktree(worktree)) = &created.workspace {
        wait_for_gits(ctx, &worktree.path);
        let index = ctx.context().paths.registry.with_file_name(format!(".index-{operation}"));
        let holds_work = ctx.git().is_ok_and(|git| git.holds_work(worktree, &index));
        if holds_work || is_worked_in(ctx, &worktree.path) {
            left = Some(worktree.path.clone());
            created.workspace = None;
        }
    }
    find_expected(ctx, &mut created, expected, written);
    remove_created(ctx, &created)?;
    ctx.registry().forget_made(&created.files)?;
    if let Some(session) = &created.session {
        ctx.registry().forget_empty(session)?;
    }
    Ok(left)
}

/// Removes everything that an operation created, if possible, and fails if something is left.
pub(crate) fn remove_created(ctx: &Ctx, created: &Created) -> Result<()> {
    for path in &created.files {
        let removed =
            agents::remove_rows(path).map(|is_done| if is_done { Ok(()) } else { directory::remove_tree(path) });
        removed.and_then(|removed| removed).or_log(format_args!("remove {}", path.display()));
    }
    let removed = match &created.workspace {
        Some(CreatedWorkspace::Worktree(worktree)) => ctx.git().and_then(|git| git.remove(worktree)),
        Some(CreatedWorkspace::Copy(copy)) => {
            copy.remove();
            Ok(())
        }
        None => Ok(()),
    };
    clear_away(ctx, created);
    removed?;
    let is_there = |path: &&PathBuf| agents::is_there(path);
    created.files.iter().find(is_there).map_or(Ok(()), |left| Err(workspace::Error::StillThere(left.clone()).into()))
}

/// Ends a failed operation. If something that it created is left, it stays unfinished, so that the next run retries the
/// removal.
pub(crate) fn fail(ctx: &Ctx, operation: i64, removed: Result<()>) {
    match removed {
        Ok(()) => {
            ctx.registry()
                .set_state(operation, &OperationState::Failed, None)
                .or_log("record that the operation failed");
        }
        Err(left) => ctx.warn(format!("{left}; tine retries the next time you run it")),
    }
}

/// Removes the traces of a removed session: its entry in the agent's list, copied notes, empty folders.
pub(crate) fn clear_away(ctx: &Ctx, created: &Created) {
    if let (Some(id), Some(transcript)) = (&created.session, created.transcript()) {
        for adapter in ctx.adapters() {
            adapter.remove_from_index(id, transcript).or_log("remove the session from the agent's list");
        }
    }
    for Note { path, digest } in created.notes.iter().filter(|note| note.path.symlink_metadata().is_ok()) {
        match directory::content_digest(path) {
            Ok(now) if now == *digest => {
                fs::remove_file(path).or_log(format_args!("remove {}", path.display()));
            }
            _ => ctx.warn(format!("kept {}: it has changed since it was copied", path.display())),
        }
    }
    for folder in &created.folders {
        fs::remove_dir(folder).or_log(format_args!("remove {}", folder.display()));
    }
}

/// Finds a session that an agent has created under its own id, so that it is removed with the rest: by its content, or
/// because the process that created it was writing to it.
pub(crate) fn find_expected(ctx: &Ctx, created: &mut Created, expected: Option<&Expected>, written: &[PathBuf]) {
    let Some(expected) = expected else { return };
    let named = ctx.registry().names().unwrap_or_default();
    let adapter = ctx.adapter(expected.agent);
    for file in adapter.discover().files {
        let is_new = file.stamp.modified / 1_000_000 + 1_000 >= expected.since;
        let is_named = || named.keys().any(|key| file.is_called(key.id.as_str()));
        if is_new && !is_named() && is_expected(adapter, &file, expected, written) {
            created.add(&file.path);
        }
    }
}

/// Processes started by a killed tine continue without it. A git process would create its worktree after the removal,
/// so tine waits for it.
fn wait_for_gits(ctx: &Ctx, worktree: &Path) {
    let Some(proc) = &ctx.context().surroundings.proc else { return };
    let begun = Instant::now();
    while begun.elapsed() < ORPHANS_END_WITHIN && !agents::processes_with(proc, None, worktree.as_os_str()).is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Ends an agent that creates a fork for an interrupted operation. Returns the files that it wrote to.
pub(crate) fn end_agents(ctx: &Ctx, mark: Option<&str>) -> Vec<PathBuf> {
    let (Some(proc), Some(mark)) = (&ctx.context().surroundings.proc, mark) else {
        return Vec::new();
    };
    let mut written = Vec::new();
    let begun = Instant::now();
    // An agent that a killed tine has just forked shows the mark only after its exec.
    let mut was_empty = false;
    loop {
        let processes = agents::processes_marked(proc, MARK, mark);
        if processes.is_empty() && was_empty || begun.elapsed() > ORPHANS_END_WITHIN {
            return written;
        }
        was_empty = processes.is_empty();
        for process in processes {
            written.extend(end(proc, process));
        }
        thread::sleep(if was_empty { EXEC_WITHIN } else { Duration::from_millis(20) });
    }
}

/// Whether a process works in a directory.
fn is_worked_in(ctx: &Ctx, directory: &Path) -> bool {
    let proc = ctx.context().surroundings.proc.as_deref();
    proc.is_some_and(|proc| !agents::processes_with(proc, Some(directory), directory.as_os_str()).is_empty())
}

/// Whether a session is the result of a failed fork. A session that existed before is not, even if it is open.
fn is_expected(adapter: &dyn agents::Adapter, file: &SessionFile, expected: &Expected, written: &[PathBuf]) -> bool {
    let summary = adapter.scan(&file.path);
    let created = summary.created.map(|created| created.as_millisecond());
    let born = || file.stamp.born.map(|born| born / 1_000_000 + CLOCK_TICK);
    let is_new = created.or_else(born).is_some_and(|began| began >= expected.since);
    if file.is_called(expected.parent.as_str()) {
        return false;
    }
    // The system reports the real paths of open files.
    let real = file.path.canonicalize();
    if is_new && written.iter().any(|path| real.as_ref().is_ok_and(|real| path == real)) {
        return true;
    }
    match &expected.mark {
        Some(mark) => summary.first_prompt.as_ref().is_some_and(|prompt| prompt.contains(mark)),
        None => {
            let is_fork = summary.parent.as_ref().is_some_and(|parent| parent.id == expected.parent);
            is_new && is_fork && adapter.client(&file.path) == Some(Client::Program)
        }
    }
}

/// Ends a process that was found by the mark of an operation. Returns the files that it wrote to.
fn end(proc: &Path, process: u32) -> Vec<PathBuf> {
    // Stopped, it opens no more files while it is checked, and writes nothing afterwards.
    signal(process, Signal::Stop);
    let begun = Instant::now();
    while !agents::is_still(proc, process) && begun.elapsed() < STILL_WITHIN {
        thread::sleep(Duration::from_millis(1));
    }
    let written = agents::written_files(proc, process);
    signal(process, Signal::Kill);
    written
}

#[cfg(test)]
#[path = "clean_up_tests.rs"]
mod tests;
