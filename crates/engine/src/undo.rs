//! Taking operations back that a person regrets.
//!
//! What somebody went on with is not removed: a session that has grown, moved or is open, one that others need, a
//! worktree or a copy in which something was changed.
//!
//! An undo can be cut off like any other operation. It is noted before anything is touched, and whatever it removes gets
//! another name first, so what is there under its own name is whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use transcript::{SessionId, State};

use crate::Tine;
use crate::delete::Moved;
use crate::directory;
use crate::error::{Error, Result};
use crate::git::Standing;
use crate::operations::{Effects, Operation, Reversal, UNDOING, Undoing, content_of, stamp_of};
use crate::session::Session;

impl Tine {
    /// Takes back an operation: the one that is named, or the last that can be.
    pub fn undo(&self, id: Option<i64>, force: bool) -> Result<Operation> {
        loop {
            let operations = self.registry().operations()?;
            let found = match id {
                Some(id) => operations.iter().find(|operation| operation.id == id),
                None => operations.iter().find(|operation| matches!(operation.state.as_str(), "done" | UNDOING)),
            };
            let operation = found.cloned().ok_or(Error::NothingToUndo(id))?;
            if operation.state == UNDOING {
                return Err(Error::BeingUndone(operation.id));
            }
            if operation.state != "done" {
                return Err(Error::NotUndoable { id: operation.id, state: operation.state });
            }
            let later = operations.iter().filter(|other| other.id > operation.id && other.state == "done");
            // Where somebody else was quicker, one looks again.
            if let Some(undone) = self.undo_one(operation.clone(), later, force)? {
                return Ok(undone);
            }
        }
    }

    /// Takes back one operation, unless somebody else is at it by now. All is checked, then noted, then done; from the
    /// note on, the next run goes on with it if this one is cut off.
    fn undo_one<'a>(
        &self,
        mut operation: Operation,
        later: impl Iterator<Item = &'a Operation>,
        force: bool,
    ) -> Result<Option<Operation>> {
        let mut aside = Vec::new();
        match operation.effects.reversal() {
            Reversal::Restore => self.check_restore(&operation)?,
            Reversal::Rename => drop(self.check_name_back(&operation)?),
            Reversal::Remove => {
                self.leave_to(later, &mut operation)?;
                self.check_undo(&operation, force)?;
                self.warn_of_others(&operation.effects);
                aside = self.aside(&operation);
            }
        }
        let since = self.context().clock.now().as_millisecond();
        operation.effects.undoing = Some(Undoing { since, force, aside, is_decided: false });
        if !self.registry().begin_undo(&operation)? {
            return Ok(None);
        }
        if let Err(error) = self.reverse(&mut operation) {
            // What is aside and could not be moved back is left to the next run.
            if !operation.effects.undoing.as_ref().is_some_and(Undoing::is_under_way) {
                self.registry().give_up_undo(operation.id)?;
            }
            return Err(error);
        }
        Ok(Some(operation))
    }

    /// Goes on with what was being undone when it was cut off, and returns what there is to tell.
    pub(crate) fn go_on_undoing(&self, mut operation: Operation) -> Result<String> {
        let what = operation.what.clone();
        let undoing = operation.effects.undoing.clone().unwrap_or_default();
        if operation.effects.reversal() == Reversal::Remove && !undoing.is_decided {
            // Somebody may have gone on with what was not moved away yet.
            if let Err(error) = self.check_undo(&operation, undoing.force) {
                move_back(&undoing.aside)?;
                self.registry().give_up_undo(operation.id)?;
                return Ok(format!("`{what}` was not undone, because that was cut off, and now: {error}"));
            }
        }
        self.reverse(&mut operation)?;
        Ok(format!("`{what}` was being undone, which was cut off; it is undone now"))
    }

    /// Does the opposite of an operation, from wherever somebody was cut off in that.
    fn reverse(&self, operation: &mut Operation) -> Result<()> {
        match operation.effects.reversal() {
            Reversal::Restore => self.restore(operation),
            Reversal::Rename => self.name_back(operation),
            Reversal::Remove => self.take_away(operation),
        }
    }

    /// Removes what an operation made. First all of it gets another name, and goes back where that fails; then it is
    /// forgotten, in one transaction; what is left to do after that needs nobody's decision any more.
    fn take_away(&self, operation: &mut Operation) -> Result<()> {
        let mut undoing = operation.effects.undoing.clone().unwrap_or_default();
        if !undoing.is_decided {
            let moved = undoing.aside.iter_mut().try_for_each(step_aside);
            let decided = moved.and_then(|()| {
                operation.effects.undoing = Some(Undoing { is_decided: true, ..undoing.clone() });
                self.registry().decide_undo(operation)
            });
            if let Err(error) = decided {
                operation.effects.undoing = Some(undoing.clone());
                move_back(&undoing.aside)?;
                return Err(error);
            }
        }
        for moved in &undoing.aside {
            if directory::remove_tree(&moved.to).is_err() {
                self.warn(format!("{} could not be removed, please look", moved.to.display()));
            }
        }
        if let (Some(worktree), Ok(git)) = (&operation.effects.worktree, self.git()) {
            git.forget(worktree);
        }
        if let Some(copy) = &operation.effects.copy {
            copy.tidy_up();
        }
        self.clear_away(&operation.effects);
        operation.effects.undoing = None;
        self.registry().end_operation(operation.id, "undone", Some(&operation.effects))
    }

    /// Whether somebody went on in the session since it was made. That its file was touched says nothing where what it
    /// holds is known.
    fn has_grown(&self, effects: &Effects) -> bool {
        let Some(transcript) = effects.made.first().filter(|path| path.exists()) else {
            return false;
        };
        let has_changed = effects.stamp.zip(stamp_of(transcript)).is_some_and(|(then, now)| match &effects.content {
            Some(content) => then.0 != now.0 || content_of(transcript).as_ref() != Some(content),
            None => then != now,
        });
        let beside = effects.session.as_ref().zip(effects.beside.as_ref());
        has_changed || beside.is_some_and(|(id, then)| self.beside(id, transcript) != *then)
    }

    /// A fingerprint of the files that lie beside a transcript and belong to its session, such as those of subagents.
    pub(crate) fn beside(&self, id: &SessionId, transcript: &Path) -> String {
        let mut beside = self.belongings(id, transcript);
        beside.retain(|path| path != transcript && transcript.parent().is_some_and(|folder| path.starts_with(folder)));
        directory::sizes_of(&beside)
    }

    /// Everything that belongs to the session of a transcript.
    fn belongings(&self, id: &SessionId, transcript: &Path) -> Vec<PathBuf> {
        let store = self.stores().iter().find(|store| transcript.starts_with(store.home()));
        store.map(|store| store.belongings(id, transcript)).unwrap_or_default()
    }

    /// What an undo moves away before it removes it, and where to: beside it, so that a new name is all it takes.
    fn aside(&self, operation: &Operation) -> Vec<Moved> {
        let effects = &operation.effects;
        let mut away = effects.made.clone();
        // What the agent has put beside it since goes as well.
        if let (Some(id), Some(transcript)) = (&effects.session, effects.made.first().filter(|path| path.exists())) {
            away.extend(self.belongings(id, transcript).into_iter().filter(|path| !effects.made.contains(path)));
        }
        let worktree = effects.worktree.as_ref().zip(self.git().ok());
        let worktree = worktree.filter(|(worktree, git)| git.standing(worktree) == Standing::Itself);
        away.extend(worktree.map(|(worktree, _)| worktree.path.clone()));
        away.extend(effects.copy.as_ref().filter(|copy| copy.is_in_place()).map(|copy| copy.path.clone()));
        let mut aside: Vec<Moved> = Vec::new();
        for from in away.into_iter().filter(|path| path.symlink_metadata().is_ok()) {
            let is_free = |to: &PathBuf| to.symlink_metadata().is_err() && aside.iter().all(|moved| moved.to != *to);
            let names = (1..).map(|number: u32| from.with_file_name(format!(".tine-undo-{}-{number}", operation.id)));
            aside.extend(names.into_iter().find(is_free).map(|to| Moved { from, to }));
        }
        aside
    }

    /// What later operations have to do with the effects of an earlier one: a place that was free again may hold the
    /// workspace of another by now, and a session may be in the trash.
    fn leave_to<'a>(&self, later: impl Iterator<Item = &'a Operation>, operation: &mut Operation) -> Result<()> {
        let effects = &mut operation.effects;
        for other in later {
            if let Some(path) = effects.workspace().filter(|path| other.effects.workspace() == Some(*path)) {
                self.warn(format!("{} is what operation {} made there, and stays", path.display(), other.id));
                (effects.worktree, effects.copy) = (None, None);
            }
            if other.effects.moved.iter().any(|moved| effects.made.first() == Some(&moved.from)) {
                return Err(Error::InTrash { id: operation.id, deleted_by: other.id });
            }
        }
        Ok(())
    }

    /// Tells what somebody else has by now of a worktree, its branch or its place, and what is left alone therefore.
    fn warn_of_others(&self, effects: &Effects) {
        let (Some(worktree), Ok(git)) = (&effects.worktree, self.git()) else {
            return;
        };
        if let Some(tree) = git.elsewhere(worktree) {
            self.warn(format!("the branch `{}` is checked out in {}, and stays", worktree.branch, tree.display()));
        }
        if matches!(git.standing(worktree), Standing::Other(_)) {
            let path = worktree.path.display();
            self.warn(format!("{path} is not the worktree any more that was made there, and stays"));
        }
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
            // A clone of a session in which nothing was said has no transcript until somebody says something.
            if effects.made.is_empty() && !force {
                return Err(Error::HasGrown { id: operation.id });
            }
        }
        if force {
            return Ok(());
        }
        if self.has_grown(effects) {
            return Err(Error::HasGrown { id: operation.id });
        }
        if let Some(path) = effects.workspace() {
            let is_there = |session: &&Session| {
                let is_the_forks = Some(&session.view.id) == effects.session.as_ref();
                !is_the_forks && session.view.cwd.as_ref().is_some_and(|cwd| cwd.starts_with(path))
            };
            if let Some(other) = sessions.iter().find(is_there) {
                let (id, session) = (operation.id, other.view.label().to_owned());
                return Err(Error::WorksThere { id, session, path: path.to_owned() });
            }
            let proc = self.context().surroundings.proc.as_deref();
            if let Some(process) = proc.and_then(|proc| agents::processes_in(proc, path).first().copied()) {
                return Err(Error::RunsThere { id: operation.id, process, path: path.to_owned() });
            }
        }
        let worktree = effects.worktree.as_ref();
        if let (Some(worktree), Ok(git)) = (worktree, self.git()) {
            if let Standing::Other(branch) = git.standing(worktree) {
                return Err(Error::OtherTree { id: operation.id, path: worktree.path.clone(), branch });
            }
            if let Some(tree) = git.elsewhere(worktree) {
                return Err(Error::BranchInUse { id: operation.id, branch: worktree.branch.clone(), tree });
            }
        }
        if let Some(tree) = worktree.filter(|tree| self.git().is_ok_and(|git| git.is_locked(tree))) {
            return Err(Error::Locked { id: operation.id, path: tree.path.clone() });
        }
        if worktree.is_some_and(|worktree| !self.git().is_ok_and(|git| git.is_untouched(worktree))) {
            return Err(Error::WorkedIn { id: operation.id });
        }
        if let Some(copy) = effects.copy.as_ref().filter(|copy| !copy.is_untouched()) {
            return Err(Error::WorkedInCopy { id: operation.id, path: copy.path.clone() });
        }
        Ok(())
    }
}

/// Gives something the name under which it waits to be removed. What has it already was moved before.
fn step_aside(moved: &mut Moved) -> Result<()> {
    if moved.to.symlink_metadata().is_ok() {
        return Ok(());
    }
    match fs::rename(&moved.from, &moved.to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A folder of a lower layer of an overlay cannot be renamed, but it can be removed.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            moved.to.clone_from(&moved.from);
            Ok(())
        }
        other => other.map_err(|_| Error::NotRemoved(moved.from.clone())),
    }
}

/// Gives everything its own name again.
fn move_back(aside: &[Moved]) -> Result<()> {
    for Moved { from, to } in aside.iter().filter(|moved| moved.to.symlink_metadata().is_ok() && moved.to != moved.from)
    {
        if from.symlink_metadata().is_ok() {
            return Err(Error::InTheWay(from.clone()));
        }
        fs::rename(to, from).map_err(|source| Error::CannotWrite { path: from.clone(), source })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod tests;
