//! `tine restore`: sets files to what they were at a turn. A plan decides everything; applying it is an operation that
//! can be undone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use diagnostics::OrLog;
use serde::Serialize;

use super::present::Present;
use super::snapshots::{LeftOut, Reason, is_refused};
use super::{CodeAt, CodeSource, Error, Result};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::operations::{restored, trash};
use crate::registry::operations::{Effects, OperationState, Restoration, RestoredFile};
use crate::workspace::encoded::EncodedPath;
use crate::workspace::git::objects::{Mode, TreeEntry};

/// What a restoration will do.
#[derive(Debug, Clone)]
pub struct RestorePlan {
    /// The session and the turn, as messages name them.
    pub what: String,
    /// Where the files go.
    pub directory: PathBuf,
    /// Whether that is the working tree itself. Only there, files that did not exist then are removed.
    pub in_place: bool,
    /// Where the knowledge comes from.
    pub source: CodeSource,
    /// What happens to which file.
    pub files: Vec<PlannedFile>,
    /// What stays as it is because the tree lacks it.
    pub left_out: Vec<LeftOut>,
    repository: PathBuf,
}

/// A file that will be different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Relative to the directory.
    pub path: PathBuf,
    /// What happens to it.
    pub change: RestoreChange,
    /// What it will be.
    entry: Option<(Mode, String)>,
    /// What is there now.
    before: Option<String>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RestoreChange {
    /// Nothing is there.
    Create,
    /// Something else is there.
    Replace,
    /// It did not exist then.
    Remove,
}

impl RestoreChange {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RestoreChange::Create => "create",
            RestoreChange::Replace => "replace",
            RestoreChange::Remove => "remove",
        }
    }
}

/// A restoration as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoreView {
    directory: PathBuf,
    in_place: bool,
    source: CodeSource,
    files: Vec<RestoredFileView>,
    left_out: Vec<LeftOut>,
    /// The number of the operation, once it is done.
    operation: Option<i64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RestoredFileView {
    path: String,
    change: RestoreChange,
}

impl RestorePlan {
    /// How many files will be created, replaced and removed.
    pub fn count(&self, change: RestoreChange) -> usize {
        self.files.iter().filter(|file| file.change == change).count()
    }

    /// Whether files that exist will be different or gone.
    pub fn touches_existing(&self) -> bool {
        self.files.iter().any(|file| file.change != RestoreChange::Create)
    }

    /// The plan as JSON, with the operation that carried it out.
    pub fn view(&self, operation: Option<i64>) -> RestoreView {
        let file = |file: &PlannedFile| RestoredFileView {
            path: file.path.to_string_lossy().into_owned(),
            change: file.change,
        };
        RestoreView {
            directory: self.directory.clone(),
            in_place: self.in_place,
            source: self.source,
            files: self.files.iter().map(file).collect(),
            left_out: self.left_out.clone(),
            operation,
        }
    }
}

/// Plans to set `paths`, or everything, in `directory` to what they were. Paths are relative to the top of the tree.
pub(crate) fn plan(ctx: &Ctx, code: &CodeAt, what: &str, paths: &[PathBuf], directory: &Path) -> Result<RestorePlan> {
    let git = ctx.git()?;
    let repository = code.repository_now(ctx)?;
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let in_place = git.tree_place(&directory).is_some_and(|place| {
        place.top == directory && git.tree_place(&repository).is_some_and(|own| own.common == place.common)
    });
    let is_asked = |path: &Path| paths.is_empty() || paths.iter().any(|asked| path.starts_with(asked));
    let mut left_out: Vec<LeftOut> = code.left_out.iter().filter(|left| is_asked(&left.path)).cloned().collect();
    let unknown: BTreeSet<&Path> = code.left_out.iter().map(|left| left.path.as_path()).collect();

    // What to look at: everything elsewhere, only what differs in place.
    let mut wanted: Vec<(PathBuf, Option<(Mode, String)>)> = Vec::new();
    if in_place {
        let present = Present::of(ctx, &directory)?;
        let is_left_out_now = |path: &Path| present.left_out.iter().any(|left| left.path == path);
        for difference in present.git.tree_changes(&directory, &present.tree, &code.tree)? {
            // The tree can't say whether such a file existed.
            let is_unknown = difference.after.is_none() && is_left_out_now(&difference.path);
            if !is_unknown && !unknown.iter().any(|left| difference.path.starts_with(left)) {
                wanted.push((difference.path, difference.after));
            }
        }
    } else {
        let entries = git.tree_entries(&repository, &code.tree, &[])?.into_iter();
        wanted.extend(entries.map(|TreeEntry { path, mode, object }| (path, Some((mode, object)))));
    }
    wanted.retain(|(path, _)| is_asked(path));
    if wanted.is_empty() && !paths.is_empty() {
        check_paths(ctx, code, &repository, paths)?;
    }

    let mut reader = git.blob_reader(&repository)?;
    let mut files: Vec<PlannedFile> = Vec::new();
    for (path, entry) in wanted {
        let is_safe = path.components().all(|part| matches!(part, Component::Normal(_)));
        let mode = entry.as_ref().map_or(Mode::File, |(mode, _)| *mode);
        if !is_safe || is_refused(&path, mode) {
            left_out.push(LeftOut { path, reason: Reason::Name });
            continue;
        }
        if mode == Mode::Submodule {
            left_out.push(LeftOut { path, reason: Reason::Submodule });
            continue;
        }
        let place = directory.join(&path);
        let before = restored::sign_on_disk(&place);
        let before = before.map_err(|source| FileError::Read { path: place.clone(), source })?;
        let after = match &entry {
            None => None,
            Some((mode, object)) => {
                let content = reader.read(object)?.ok_or_else(|| Error::ObjectGone(object.clone()))?;
                Some(restored::sign(*mode, &content))
            }
        };
        if before == after {
            continue;
        }
        let change = match (&before, &after) {
            (None, _) => RestoreChange::Create,
            (_, Some(_)) => RestoreChange::Replace,
            (_, None) => RestoreChange::Remove,
        };
        files.push(PlannedFile { path, change, entry, before });
    }
    remove_files_in_the_way(&directory, &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let what = what.to_owned();
    Ok(RestorePlan { what, directory, in_place, source: code.source, files, left_out, repository })
}

/// A file that is where a folder belongs has to go.
fn remove_files_in_the_way(directory: &Path, files: &mut Vec<PlannedFile>) -> Result<()> {
    let mut in_the_way: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files.iter().filter(|file| file.entry.is_some()) {
        let folders = file.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let is_file = |folder: &&Path| directory.join(folder).symlink_metadata().is_ok_and(|found| !found.is_dir());
        in_the_way.extend(folders.filter(is_file).map(Path::to_owned));
    }
    for path in in_the_way {
        if files.iter().any(|file| file.path == path) {
            continue;
        }
        let place = directory.join(&path);
        let before = restored::sign_on_disk(&place).map_err(|source| FileError::Read { path: place, source })?;
        files.push(PlannedFile { path, change: RestoreChange::Remove, entry: None, before });
    }
    Ok(())
}

/// A path that the tree does not have, and that nothing would be done about, is a mistake.
fn check_paths(ctx: &Ctx, code: &CodeAt, repository: &Path, paths: &[PathBuf]) -> Result<()> {
    let git = ctx.git()?;
    for path in paths {
        let is_left_out = code.left_out.iter().any(|left| left.path.starts_with(path));
        if !is_left_out && git.tree_entries(repository, &code.tree, std::slice::from_ref(path))?.is_empty() {
            return Err(Error::NoSuchPath(path.clone()));
        }
    }
    Ok(())
}

/// Carries out a plan. Returns the operation for `undo`.
pub(crate) fn apply(ctx: &Ctx, plan: &RestorePlan) -> Result<i64> {
    let now = ctx.context().clock.now();
    ctx.registry().check_writable()?;
    trash::empty_trash(ctx, now)?;
    let mut reader = ctx.git()?.blob_reader(&plan.repository)?;
    let mut content = |file: &PlannedFile| -> Result<Option<(Mode, Vec<u8>)>> {
        let Some((mode, object)) = &file.entry else { return Ok(None) };
        let content = reader.read(object)?.ok_or_else(|| Error::ObjectGone(object.clone()))?;
        Ok(Some((*mode, content)))
    };
    // What is removed goes first: a file may be where a folder belongs.
    let removed = plan.files.iter().filter(|file| file.entry.is_none());
    let ordered: Vec<&PlannedFile> = removed.chain(plan.files.iter().filter(|file| file.entry.is_some())).collect();
    let mut files = Vec::new();
    for file in &ordered {
        let after = content(file)?.map(|(mode, content)| restored::sign(mode, &content));
        files.push(RestoredFile { path: EncodedPath(file.path.clone()), before: file.before.clone(), after });
    }
    let restoration = Restoration {
        directory: EncodedPath(plan.directory.clone()),
        trash: trash::new_trash_folder(ctx),
        folders: new_folders(plan).into_iter().map(EncodedPath).collect(),
        files,
    };
    let effects = Effects::Restore(restoration.clone());
    let what = format!("restore {}", plan.what);
    let operation = ctx.registry().begin_operation(&what, &effects, None, now)?;
    let mut write_all = || -> Result<()> {
        fs::create_dir_all(&plan.directory)
            .map_err(|source| FileError::Write { path: plan.directory.clone(), source })?;
        restored::keep(&restoration)?;
        for (file, record) in ordered.iter().zip(&restoration.files) {
            let content = content(file)?;
            restored::write(&restoration, record, content.as_ref().map(|(mode, content)| (*mode, content.as_slice())))?;
        }
        Ok(())
    };
    if let Err(error) = write_all() {
        // If that fails, the next run retries it.
        restored::put_back(ctx, &restoration, false)?;
        ctx.registry().set_state(operation, &OperationState::Failed, None).or_log("record that the operation failed");
        return Err(error);
    }
    ctx.registry().set_state(operation, &OperationState::Done, None)?;
    ctx.back_up();
    Ok(operation)
}

/// The folders that will be created, relative to the directory, which may be one of them.
fn new_folders(plan: &RestorePlan) -> BTreeSet<PathBuf> {
    let written = plan.files.iter().filter(|file| file.entry.is_some());
    let above = written.flat_map(|file| file.path.ancestors().skip(1));
    let is_new = |folder: &&Path| !plan.directory.join(folder).symlink_metadata().is_ok_and(|found| found.is_dir());
    above.filter(is_new).map(Path::to_owned).collect()
}
