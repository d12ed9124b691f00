//! Taking operations back: those that a person regrets, and those that were cut off.
//!
//! What somebody went on with is not removed: a session that has grown, moved or is open, one that others need, a
//! worktree or a copy in which something was changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use transcript::{SessionId, State};

use crate::Tine;
use crate::delete;
use crate::directory;
use crate::error::{Error, Result};
use crate::fork::MARK;
use crate::operations::{Effects, Expected, Operation};
use crate::signal::{Signal, signal};

/// How long a git is waited for whose tine is gone.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(30);

/// What Codex calls whoever talks to its app-server.
const OF_A_PROGRAM: &str = "vscode";

impl Tine {
    /// Removes what operations left behind that were cut off.
    pub(crate) fn clean_up(&self) -> Result<()> {
        let cut_off = self.registry().cut_off(self.context().clock.now())?;
        for mut operation in cut_off {
            let opened = match operation.kind.as_str() {
                "fork" => self.end_orphans(&operation.effects),
                _ => Vec::new(),
            };
            // A deletion that was cut off did not happen.
            delete::put_back(&operation.effects.moved)?;
            self.give_name_back(&operation.effects)?;
            let mut left = Vec::new();
            if let Some(worktree) = operation.effects.worktree.take_if(|worktree| {
                self.git().is_ok_and(|git| git.holds_work(worktree)) || self.is_worked_in(&worktree.path)
            }) {
                left.push(worktree.path);
            }
            self.find_expected(&mut operation.effects, &opened);
            left.extend(self.remove_effects(&operation.effects));
            if let (Some(session), true) = (&operation.effects.session, operation.effects.moved.is_empty()) {
                self.registry().forget_unregistered(session)?;
            }
            self.registry().end_operation(operation.id, "cleaned", None)?;
            let what = &operation.what;
            match left.first() {
                None => self.warn(format!("`{what}` was cut off; what it had made is removed")),
                Some(left) => self.warn(format!("`{what}` was cut off; {} is left, please look", left.display())),
            }
        }
        Ok(())
    }

    /// Takes back an operation: the one that is named, or the last that can be.
    pub fn undo(&self, id: Option<i64>, force: bool) -> Result<Operation> {
        let operations = self.registry().operations()?;
        let found = match id {
            Some(id) => operations.into_iter().find(|operation| operation.id == id),
            None => operations.into_iter().find(|operation| operation.state == "done"),
        };
        let operation = found.ok_or(Error::NothingToUndo(id))?;
        if operation.state != "done" {
            return Err(Error::NotUndoable { id: operation.id, state: operation.state });
        }
        if !operation.effects.moved.is_empty() {
            self.restore(&operation)?;
            return Ok(operation);
        }
        if operation.effects.named.is_some() {
            self.name_back(&operation)?;
            return Ok(operation);
        }
        self.check_undo(&operation, force)?;
        if let Some(left) = self.remove_effects(&operation.effects).into_iter().next() {
            return Err(Error::NotRemoved(left));
        }
        if let Some(session) = &operation.effects.session {
            self.registry().forget(session, operation.id)?;
        }
        Ok(operation)
    }

    /// Refuses to remove what somebody went on with, or what others need.
    fn check_undo(&self, operation: &Operation, force: bool) -> Result<()> {
        let effects = &operation.effects;
        let sessions = self.all_sessions(&crate::catalog::Quiet)?;
        let session = effects.session.as_ref().and_then(|id| sessions.iter().find(|session| session.view.id == *id));
        if let Some(session) = session {
            if session.view.state != State::Stopped {
                return Err(Error::IsOpen { session: session.view.label().to_owned(), state: session.view.state });
            }
            let dependants = self.dependants(session, &[&session.view.path]);
            if let Some(first) = dependants.first() {
                let (label, count) = (session.view.label().to_owned(), dependants.len());
                return Err(Error::StillNeeded { session: label, by: first.clone(), count });
            }
            let has_moved = effects.made.first().is_some_and(|path| *path != session.view.path);
            if has_moved && !force {
                return Err(Error::HasMoved { id: operation.id, path: session.view.path.clone() });
            }
        }
        if force {
            return Ok(());
        }
        if has_grown(effects) {
            return Err(Error::HasGrown { id: operation.id });
        }
        let worktree = effects.worktree.as_ref();
        if worktree.is_some_and(|worktree| !self.git().is_ok_and(|git| git.is_untouched(worktree))) {
            return Err(Error::WorkedIn { id: operation.id });
        }
        if let Some(copy) = effects.copy.as_ref().filter(|copy| !copy.is_untouched()) {
            return Err(Error::WorkedInCopy { id: operation.id, path: copy.path.clone() });
        }
        Ok(())
    }

    /// Removes what an operation made, and returns what is still there.
    pub(crate) fn remove_effects(&self, effects: &Effects) -> Vec<PathBuf> {
        for path in &effects.made {
            let _ = directory::remove_tree(path);
        }
        if let (Some(id), Some(transcript)) = (&effects.session, effects.made.first()) {
            for store in self.stores() {
                let _ = store.delist(id, transcript);
            }
        }
        if let (Some(worktree), Ok(git)) = (&effects.worktree, self.git()) {
            git.remove(worktree);
        }
        if let Some(copy) = &effects.copy {
            copy.remove();
        }
        let tree = effects.worktree.iter().map(|worktree| &worktree.path);
        effects.made.iter().chain(tree).filter(|path| path.symlink_metadata().is_ok()).cloned().collect()
    }

    /// Finds a session that an agent has made under an id of its own, so that it is removed with the rest: by what is in
    /// it, or because somebody who made it had it open.
    pub(crate) fn find_expected(&self, effects: &mut Effects, opened: &[PathBuf]) {
        let Some(expected) = effects.expects.take() else {
            return;
        };
        let named = self.registry().names().unwrap_or_default();
        let store = self.store(expected.agent);
        for file in store.discover().files {
            let is_new = file.stamp.modified / 1_000_000 + 1_000 >= expected.since;
            if is_new && !named.keys().any(|key| key.id == file.id) && is_expected(store, &file.path, &expected, opened)
            {
                effects.note(&file.path);
            }
        }
    }

    /// What a killed tine had started goes on without it. A git would make its worktree after that was removed, so it is
    /// waited for; an agent that makes a fork which nobody will see is ended. Returns the files that it had open.
    fn end_orphans(&self, effects: &Effects) -> Vec<PathBuf> {
        let Some(proc) = &self.context().surroundings.proc else {
            return Vec::new();
        };
        let mut opened = Vec::new();
        let begun = Instant::now();
        let waits = || begun.elapsed() < ORPHANS_END_WITHIN;
        if let Some(mark) = &effects.mark {
            let processes = || agents::processes_marked(proc, MARK, mark);
            while waits() && !processes().is_empty() {
                for process in processes() {
                    opened.extend(end(proc, process));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        if let Some(worktree) = &effects.worktree {
            let gits = || agents::processes_with(proc, None, worktree.path.as_os_str());
            while waits() && !gits().is_empty() {
                thread::sleep(Duration::from_millis(20));
            }
        }
        opened
    }

    /// Whether a process works in a directory.
    fn is_worked_in(&self, directory: &Path) -> bool {
        let proc = self.context().surroundings.proc.as_deref();
        proc.is_some_and(|proc| !agents::processes_with(proc, Some(directory), directory.as_os_str()).is_empty())
    }
}

fn is_expected(store: &dyn agents::Store, path: &Path, expected: &Expected, opened: &[PathBuf]) -> bool {
    let summary = store.scan(path);
    let created = summary.created.is_none_or(|created| created.as_millisecond() + 1_000 >= expected.since);
    if created && opened.iter().any(|open| open == path) {
        return true;
    }
    match &expected.mark {
        Some(mark) => summary.first_prompt.as_ref().is_some_and(|prompt| prompt.contains(mark)),
        None => {
            let is_fork = summary.parent.as_ref().is_some_and(|parent| parent.id == expected.parent);
            created && is_fork && store.client(path).as_deref() == Some(OF_A_PROGRAM)
        }
    }
}

/// Ends a process that was started for an operation, by whose mark it was found. Returns the files that it had open.
fn end(proc: &Path, process: u32) -> Vec<PathBuf> {
    // It opens nothing more while it is looked at, and writes nothing afterwards.
    signal(process, Signal::Stop);
    let opened = agents::open_files(proc, process);
    signal(process, Signal::Kill);
    opened
}

/// Whether somebody went on in the session since it was made.
fn has_grown(effects: &Effects) -> bool {
    let Some((size, modified)) = effects.stamp else {
        return false;
    };
    let transcript = effects.made.first().and_then(|path| fs::metadata(path).ok());
    transcript.is_some_and(|metadata| (metadata.len(), agents::stamp(&metadata).modified) != (size, modified))
}

impl crate::registry::Registry {
    /// Forgets a session that was registered as started but came to nothing.
    fn forget_unregistered(&mut self, id: &SessionId) -> Result<()> {
        let query = "DELETE FROM sessions WHERE id = ?1 AND launch IS NOT NULL";
        self.write(|transaction| transaction.execute(query, [id.as_str()])).map(|_| ())
    }
}
