//! Cleaning up after operations that were cut off: whichever tine looks next removes what they left behind, ends the
//! agents that still work for them, and goes on with what was being undone.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use agents::SessionFile;
use transcript::SessionId;

use crate::Tine;
use crate::delete;
use crate::directory;
use crate::error::Result;
use crate::fork::MARK;
use crate::operations::{Effects, Expected, Operation};
use crate::signal::{Signal, signal};

/// How long a git is waited for whose tine is gone.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(30);

/// How long a process may take to stop that was told to.
const STILL_WITHIN: Duration = Duration::from_secs(2);

/// By how many milliseconds the time that a file system notes may lag behind the clock.
const CLOCK_TICK: i64 = 10;

/// What Codex calls whoever talks to its app-server.
const OF_A_PROGRAM: &str = "vscode";

impl Tine {
    /// Removes what operations left behind that were cut off. What cannot be removed now keeps nobody from anything else;
    /// it is tried again by the next run.
    pub(crate) fn clean_up(&self) -> Result<()> {
        let cut_off = self.registry().cut_off(self.context().clock.now())?;
        for (operation, process) in cut_off {
            // Of several runs at once, one cleans up.
            if !self.registry().take_over(operation.id, &process)? {
                continue;
            }
            let (id, what) = (operation.id, operation.what.clone());
            match self.clean_up_after(operation) {
                Ok(told) => self.warn(told),
                Err(error) => {
                    self.warn(format!("`{what}` was cut off, and what it left cannot be put right now: {error}"));
                    self.registry().give_back(id, &process)?;
                }
            }
        }
        Ok(())
    }

    /// Removes what one operation left behind, and returns what there is to tell.
    fn clean_up_after(&self, mut operation: Operation) -> Result<String> {
        if operation.effects.undoing.is_some() {
            return self.go_on_undoing(operation);
        }
        let written = self.end_agents(&operation.effects);
        if operation.kind == "fork" {
            self.wait_for_gits(&operation.effects);
        }
        // A deletion that was cut off did not happen.
        delete::put_back(operation.id, &operation.effects.moved)?;
        self.give_name_back(&operation.effects)?;
        let mut left = Vec::new();
        if let Some(worktree) = operation.effects.worktree.take_if(|worktree| {
            self.git().is_ok_and(|git| git.holds_work(worktree)) || self.is_worked_in(&worktree.path)
        }) {
            left.push(worktree.path);
        }
        self.find_expected(&mut operation.effects, &written);
        left.extend(self.remove_effects(&operation.effects));
        if let (Some(session), true) = (&operation.effects.session, operation.effects.moved.is_empty()) {
            self.registry().forget_unregistered(session)?;
        }
        self.registry().end_operation(operation.id, "cleaned", None)?;
        let what = &operation.what;
        Ok(match left.first() {
            None => format!("`{what}` was cut off; what it had made is removed"),
            Some(left) => format!("`{what}` was cut off; {} is left, please look", left.display()),
        })
    }

    /// Removes what an operation made, and returns what is still there.
    pub(crate) fn remove_effects(&self, effects: &Effects) -> Vec<PathBuf> {
        for path in &effects.made {
            let _ = directory::remove_tree(path);
        }
        if let (Some(worktree), Ok(git)) = (&effects.worktree, self.git()) {
            git.remove(worktree);
        }
        if let Some(copy) = &effects.copy {
            copy.remove();
        }
        self.clear_away(effects);
        let tree = effects.worktree.iter().map(|worktree| &worktree.path);
        effects.made.iter().chain(tree).filter(|path| path.symlink_metadata().is_ok()).cloned().collect()
    }

    /// Removes the traces of a session that is gone: where the agent lists it, notes that came along, empty folders.
    pub(crate) fn clear_away(&self, effects: &Effects) {
        if let (Some(id), Some(transcript)) = (&effects.session, effects.made.first()) {
            for store in self.stores() {
                let _ = store.delist(id, transcript);
            }
        }
        for (note, held) in effects.notes.iter().filter(|(note, _)| note.symlink_metadata().is_ok()) {
            match directory::content_digest(note) {
                Ok(holds) if holds == *held => drop(fs::remove_file(note)),
                _ => self.warn(format!("{} came along and was changed since, so it stays", note.display())),
            }
        }
        for folder in &effects.folders {
            let _ = fs::remove_dir(folder);
        }
    }

    /// Finds a session that an agent has made under an id of its own, so that it is removed with the rest: by what is in
    /// it, or because whoever made it was writing to it.
    pub(crate) fn find_expected(&self, effects: &mut Effects, written: &[PathBuf]) {
        let Some(expected) = effects.expects.take() else {
            return;
        };
        let named = self.registry().names().unwrap_or_default();
        let store = self.store(expected.agent);
        for file in store.discover().files {
            let is_new = file.stamp.modified / 1_000_000 + 1_000 >= expected.since;
            let is_named = || named.keys().any(|key| file.is_called(key.id.as_str()));
            if is_new && !is_named() && is_expected(store, &file, &expected, written) {
                effects.note(&file.path);
            }
        }
    }

    /// What a killed tine had started goes on without it. A git would make its worktree after that was removed, so it is
    /// waited for.
    fn wait_for_gits(&self, effects: &Effects) {
        let (Some(proc), Some(worktree)) = (&self.context().surroundings.proc, &effects.worktree) else {
            return;
        };
        let begun = Instant::now();
        while begun.elapsed() < ORPHANS_END_WITHIN
            && !agents::processes_with(proc, None, worktree.path.as_os_str()).is_empty()
        {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends an agent that makes a fork which nobody will see. Returns the files that it wrote to.
    pub(crate) fn end_agents(&self, effects: &Effects) -> Vec<PathBuf> {
        let (Some(proc), Some(mark)) = (&self.context().surroundings.proc, &effects.mark) else {
            return Vec::new();
        };
        let mut written = Vec::new();
        let begun = Instant::now();
        loop {
            let processes = agents::processes_marked(proc, MARK, mark);
            if processes.is_empty() || begun.elapsed() > ORPHANS_END_WITHIN {
                return written;
            }
            for process in processes {
                written.extend(end(proc, process));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether a process works in a directory.
    fn is_worked_in(&self, directory: &Path) -> bool {
        let proc = self.context().surroundings.proc.as_deref();
        proc.is_some_and(|proc| !agents::processes_with(proc, Some(directory), directory.as_os_str()).is_empty())
    }
}

/// Whether a session is what a fork that came to nothing has left. A session that was there before is somebody else's,
/// whoever has it open.
fn is_expected(store: &dyn agents::Store, file: &SessionFile, expected: &Expected, written: &[PathBuf]) -> bool {
    let summary = store.scan(&file.path);
    let created = summary.created.map(|created| created.as_millisecond());
    let born = || file.stamp.born.map(|born| born / 1_000_000 + CLOCK_TICK);
    let is_new = created.or_else(born).is_some_and(|began| began >= expected.since);
    if file.is_called(expected.parent.as_str()) {
        return false;
    }
    // The system tells of open files where they really are.
    let real = file.path.canonicalize();
    if is_new && written.iter().any(|path| real.as_ref().is_ok_and(|real| path == real)) {
        return true;
    }
    match &expected.mark {
        Some(mark) => summary.first_prompt.as_ref().is_some_and(|prompt| prompt.contains(mark)),
        None => {
            let is_fork = summary.parent.as_ref().is_some_and(|parent| parent.id == expected.parent);
            is_new && is_fork && store.client(&file.path).as_deref() == Some(OF_A_PROGRAM)
        }
    }
}

/// Ends a process that was started for an operation, by whose mark it was found. Returns the files that it wrote to.
fn end(proc: &Path, process: u32) -> Vec<PathBuf> {
    // It opens nothing more while it is looked at, and writes nothing afterwards.
    signal(process, Signal::Stop);
    let begun = Instant::now();
    while !agents::is_still(proc, process) && begun.elapsed() < STILL_WITHIN {
        thread::sleep(Duration::from_millis(1));
    }
    let written = agents::written_files(proc, process);
    signal(process, Signal::Kill);
    written
}

impl crate::registry::Registry {
    /// Forgets a session that was registered as started but came to nothing.
    fn forget_unregistered(&mut self, id: &SessionId) -> Result<()> {
        let query = "DELETE FROM sessions WHERE id = ?1 AND launch IS NOT NULL";
        self.write(|transaction| transaction.execute(query, [id.as_str()])).map(|_| ())
    }
}

#[cfg(test)]
#[path = "clean_up_tests.rs"]
mod tests;
