//! Deleting a session: everything that belongs to it moves into a trash, from which `undo` brings it back.
//!
//! The trash is a folder beside the registry, one folder in it per operation. What lies in it for longer than a month is
//! removed when something else is deleted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript::{SessionId, State};

use crate::Tine;
use crate::catalog::{self, Quiet};
use crate::directory;
use crate::error::{Error, Result};
use crate::operations::{Effects, Operation};
use crate::private;
use crate::session::Session;

/// How long something stays in the trash.
const KEPT_SECONDS: i64 = 30 * 24 * 60 * 60;

/// Something that was moved into the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Moved {
    /// Where it was.
    pub from: PathBuf,
    /// Where it is.
    pub to: PathBuf,
}

/// Within so many milliseconds after a `/clear`, an agent may still write to what was cleared.
const WRITTEN_AFTER_CLEAR: i64 = 60_000;

impl Tine {
    /// Moves a session into the trash and returns the operation that `undo` reverses.
    pub fn delete(&self, session: &Session) -> Result<i64> {
        let view = &session.view;
        if view.state != State::Stopped {
            return Err(Error::IsOpen { session: view.label().to_owned(), state: view.state });
        }
        let previous = self.goes_along(session)?;
        let files: Vec<&Path> =
            std::iter::once(&view.path).chain(previous.iter().map(|(_, path)| path)).map(PathBuf::as_path).collect();
        let dependants = self.dependants(session, &files);
        if let Some(first) = dependants.first() {
            return Err(Error::StillNeeded {
                session: view.label().to_owned(),
                by: first.clone(),
                count: dependants.len(),
            });
        }
        let now = self.context().clock.now();
        self.empty_trash(now)?;
        let store = self.store(view.agent);
        let mut belongings = store.belongings(&view.id, &view.path);
        for (id, path) in &previous {
            belongings.extend(store.belongings(id, path).into_iter().filter(|path| path.exists()));
        }
        let what = format!("delete {}", view.label());
        let mut effects = Effects { session: Some(view.id.clone()), ..Effects::default() };
        let operation = self.registry().begin_operation("delete", &what, &effects, now)?;
        let trash = self.trash().join(operation.to_string());
        let named = |number: usize, path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            trash.join(format!("{number}-{name}"))
        };
        let moves = belongings.into_iter().enumerate().map(|(number, from)| Moved { to: named(number, &from), from });
        effects.moved = moves.collect();
        effects.name.clone_from(&view.name);
        let moved = self.registry().note_effects(operation, &effects).and_then(|()| {
            private::create_folder(&trash).map_err(|source| Error::CannotWrite { path: trash.clone(), source })?;
            effects.moved.iter().try_for_each(|moved| relocate(&moved.from, &moved.to))
        });
        if let Err(error) = moved {
            // Where that fails, the next run of tine tries again.
            put_back(operation, &effects.moved)?;
            let _ = fs::remove_dir(&trash);
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        }
        let _ = store.delist(&view.id, &view.path);
        self.registry().set_name(&session.key(), None, now)?;
        self.registry().end_operation(operation, "done", Some(&effects))?;
        Ok(operation)
    }

    /// Refuses to bring back what is not in the trash any more, or what has something in its way. What is back already is
    /// neither: an attempt before this one may have failed half-way.
    pub(crate) fn check_restore(&self, operation: &Operation) -> Result<()> {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let moved = &operation.effects.moved;
        if let Some(taken) = moved.iter().find(|moved| is_there(&moved.from) && is_there(&moved.to)) {
            return Err(Error::ThereAgain { id: operation.id, path: taken.from.clone() });
        }
        let is_gone = |moved: &Moved| !is_there(&moved.from) && !is_there(&moved.to);
        if moved.first().is_some_and(is_gone) {
            self.registry().end_operation(operation.id, "purged", None)?;
            return Err(Error::TrashGone(operation.id));
        }
        for gone in moved.iter().filter(|moved| is_gone(moved)) {
            self.warn(format!("{} is not in the trash any more and stays away", gone.from.display()));
        }
        Ok(())
    }

    /// Brings back what an operation moved into the trash.
    pub(crate) fn restore(&self, operation: &mut Operation) -> Result<()> {
        put_back(operation.id, &operation.effects.moved)?;
        let _ = fs::remove_dir(self.trash().join(operation.id.to_string()));
        if let Some(transcript) = operation.effects.moved.first() {
            self.enlist(&transcript.from);
        }
        self.give_name_back(&operation.effects)?;
        operation.effects.undoing = None;
        self.registry().end_operation(operation.id, "undone", Some(&operation.effects))
    }

    /// Puts a session back into the agent's own list, where the agent keeps one.
    pub(crate) fn enlist(&self, transcript: &Path) {
        for store in self.stores().iter().filter(|store| transcript.starts_with(store.home())) {
            if store.keeps_list(transcript) {
                let _ = store.enlist(transcript, &store.scan(transcript));
            }
        }
    }

    /// Calls a session again what it was called before it was deleted.
    pub(crate) fn give_name_back(&self, effects: &Effects) -> Result<()> {
        if let (Some(name), Some(transcript)) = (&effects.name, effects.moved.first()) {
            let session = self.outside_session(&transcript.from)?;
            let now = self.context().clock.now();
            if !self.registry().set_name(&session.key(), Some(name), now)? {
                self.warn(format!("the name `{name}` is taken by now; the session comes back without it"));
            }
        }
        Ok(())
    }

    /// What was said before a `/clear` is the same session to people, and is deleted with it; unless somebody went on
    /// with it since, or has it open.
    pub fn goes_along(&self, session: &Session) -> Result<Vec<(SessionId, PathBuf)>> {
        let live = self.store(session.view.agent).live();
        let previous = self.registry().previous_ids(&session.key())?;
        let is_left = |id: &SessionId, path: &Path, since: i64| {
            let modified = fs::metadata(path).map(|metadata| agents::stamp(&metadata).modified / 1_000_000);
            live.sessions.contains_key(id) || modified.is_ok_and(|modified| modified > since + WRITTEN_AFTER_CLEAR)
        };
        let there = previous.into_iter().filter(|(_, path, _)| path.exists());
        Ok(there.filter(|(id, path, since)| !is_left(id, path, *since)).map(|(id, path, _)| (id, path)).collect())
    }

    /// Sessions whose history is partly in one of these files.
    pub(crate) fn dependants(&self, session: &Session, files: &[&Path]) -> Vec<String> {
        let catalog = catalog::refresh(self.stores(), &self.context().paths.cache, &Quiet);
        let names = self.registry().names().unwrap_or_default();
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

    fn trash(&self) -> PathBuf {
        self.context().paths.registry.with_file_name("trash")
    }

    /// Removes what has lain in the trash for long.
    fn empty_trash(&self, now: jiff::Timestamp) -> Result<()> {
        let operations = self.registry().operations()?;
        let old = |operation: &&Operation| {
            operation.state == "done"
                && !operation.effects.moved.is_empty()
                && now.as_second() - operation.at.as_second() > KEPT_SECONDS
        };
        for operation in operations.iter().filter(old) {
            let _ = directory::remove_tree(&self.trash().join(operation.id.to_string()));
            self.registry().end_operation(operation.id, "purged", None)?;
        }
        Ok(())
    }
}

/// Moves a file or a folder, also to another file system. There it is copied under another name first, and what was
/// copied gets another name before it is removed, so that whatever has its final name is complete, here and there.
fn relocate(from: &Path, to: &Path) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| Error::CannotWrite { path, source }
    };
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let part = unfinished(to);
            directory::remove_tree(&part).map_err(failed(&part))?;
            let copied = match from.is_dir() && !from.is_symlink() {
                true => directory::copy(from, &part, &Quiet).map(drop),
                false => directory::copy_one(from, &part).map_err(failed(to)),
            };
            let copied = copied.and_then(|()| fs::rename(&part, to).map_err(failed(to)));
            copied.inspect_err(|_| drop(directory::remove_tree(&part)))?;
            drop_whole(from).map_err(failed(from))
        }
        other => other.map_err(failed(to)),
    }
}

/// Removes something in such a way that it is never there by half.
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

/// Brings back what an operation moved, as far as it was moved. Whatever has its final name is complete, so what is
/// still or again where it was is not touched; its folder may even be read-only.
pub(crate) fn put_back(id: i64, moved: &[Moved]) -> Result<()> {
    for Moved { from, to } in moved.iter().rev() {
        for part in [unfinished(from), unfinished(to)] {
            let _ = directory::remove_tree(&part);
        }
        if to.symlink_metadata().is_err() {
            continue;
        }
        if from.symlink_metadata().is_ok() {
            if !holds_all_of(from, to) {
                return Err(Error::ThereAgain { id, path: from.clone() });
            }
            drop_whole(to).map_err(|source| Error::CannotWrite { path: to.clone(), source })?;
            continue;
        }
        let failed = |source| Error::CannotWrite { path: from.clone(), source };
        private::create_folder(from.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        relocate(to, from)?;
    }
    Ok(())
}

/// Whether something holds at least what another holds, by names and sizes: agents only ever add to what they wrote.
fn holds_all_of(whole: &Path, part: &Path) -> bool {
    let (Ok(of_whole), Ok(of_part)) = (fs::symlink_metadata(whole), fs::symlink_metadata(part)) else {
        return false;
    };
    if !of_part.is_dir() {
        return of_whole.file_type() == of_part.file_type() && of_whole.len() >= of_part.len();
    }
    let mut entries = fs::read_dir(part).into_iter().flatten().flatten();
    of_whole.is_dir() && entries.all(|entry| holds_all_of(&whole.join(entry.file_name()), &entry.path()))
}
