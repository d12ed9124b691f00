//! The trash: a folder next to the registry, with one folder per deletion.
//!
//! The name of a folder is random and never reused. A label in it records what was deleted and where it belongs, so
//! that it can be restored even without the registry.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use transcript::SessionId;

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::operations::Result;
use crate::registry::operations::{Deletion, Effects, Moved, Operation, OperationState};
use crate::{private, workspace::directory};

/// The label of a folder in the trash.
pub(crate) const LABEL: &str = "tine.json";

/// How long the trash is kept.
const KEPT_SECONDS: i64 = 30 * 24 * 60 * 60;

/// The label next to deleted files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Label {
    /// A description of the operation.
    pub what: String,
    /// Its time, in milliseconds.
    pub at: i64,
    /// The registry that recorded it.
    pub registry: PathBuf,
    /// The files that it moved.
    pub effects: Deletion,
}

/// A folder in the trash that no recorded operation can restore.
#[derive(Debug, Clone)]
pub(crate) struct StrandedTrash {
    pub folder: PathBuf,
    pub label: Label,
}

fn trash(ctx: &Ctx) -> PathBuf {
    ctx.context().paths.registry.with_file_name("trash")
}

/// An unused path in the trash.
pub(crate) fn new_trash_folder(ctx: &Ctx) -> PathBuf {
    let time = ctx.context().clock.now().strftime("%Y%m%dT%H%M%SZ");
    let random = uuid::Uuid::new_v4().simple().to_string();
    trash(ctx).join(format!("{time}-{}", &random[..12]))
}

/// Creates such a folder with its label.
pub(crate) fn make_trash_folder(ctx: &Ctx, folder: &Path, what: &str, deletion: &Deletion) -> Result<()> {
    let failed = |source| FileError::Write { path: folder.to_owned(), source };
    private::create_folder(&trash(ctx)).map_err(failed)?;
    private::new_folder(folder).map_err(failed)?;
    let registry = ctx.context().paths.registry.clone();
    let at = ctx.context().clock.now().as_millisecond();
    write_label(folder, &Label { what: what.to_owned(), at, registry, effects: deletion.clone() })
}

/// Removes trash that is old enough.
pub(crate) fn empty_trash(ctx: &Ctx, now: Timestamp) -> Result<()> {
    let operations = ctx.registry().operations()?;
    for Operation { id, at, state, effects, .. } in &operations {
        if !state.is_done() || now.as_second() - at.as_second() <= KEPT_SECONDS {
            continue;
        }
        let folders: HashSet<&Path> = match effects {
            Effects::Delete(deletion) => folders_of(deletion),
            Effects::Restore(restoration) => HashSet::from([restoration.trash.as_path()]),
            _ => continue,
        };
        for folder in folders {
            directory::remove_tree(folder).or_log(format_args!("remove {}", folder.display()));
        }
        ctx.registry().set_state(*id, &OperationState::Purged, None)?;
    }
    Ok(())
}

/// Deletions in the trash that are missing from the log.
pub(crate) fn stranded_trash(ctx: &Ctx) -> Result<Vec<StrandedTrash>> {
    let entries = fs::read_dir(trash(ctx)).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    folders.sort();
    // The log is read after the folders: a running deletion is recorded before its folder is created.
    let operations = ctx.registry().operations()?;
    let is_current = |operation: &&Operation| operation.state.is_done() || operation.state.is_under_way();
    let deletions = operations.iter().filter(is_current).filter_map(|operation| match &operation.effects {
        Effects::Delete(deletion) => Some(deletion),
        _ => None,
    });
    let known: HashSet<&Path> = deletions.flat_map(folders_of).collect();
    let stranded = folders.into_iter().filter(|folder| !known.contains(folder.as_path()));
    Ok(stranded.filter_map(|folder| labelled(ctx, folder)).collect())
}

/// The restorable contents of a folder.
fn labelled(ctx: &Ctx, folder: PathBuf) -> Option<StrandedTrash> {
    let own = &ctx.context().paths.registry;
    let label = fs::read(folder.join(LABEL)).ok().and_then(|text| serde_json::from_slice::<Label>(&text).ok());
    let label = label.or_else(|| guess_label(ctx, &folder))?;
    // Registries in the same folder share the trash.
    let is_anothers = label.registry != *own && label.registry.exists();
    let holds_some = label.effects.moved.iter().any(|moved| moved.to.symlink_metadata().is_ok());
    (holds_some && !is_anothers).then_some(StrandedTrash { folder, label })
}

/// Reconstructs a missing label: the transcript contains its session and directory. Files from elsewhere stay in the
/// trash.
fn guess_label(ctx: &Ctx, folder: &Path) -> Option<Label> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut files: Vec<(usize, String, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (number, name) = name.split_once('-')?;
            Some((number.parse().ok()?, name.to_owned(), entry.path()))
        })
        .collect();
    files.sort();
    let (number, name, transcript) = files.iter().find(|(_, _, path)| path.is_file())?;
    let summary = ctx.adapter(agents::agent_of_file(ctx.adapters(), transcript)?).scan(transcript);
    // If a transcript doesn't name its session, its file name does, here with a number in front.
    let id = match summary.id.as_str().strip_prefix(&format!("{number}-")) {
        Some(id) => SessionId::new(id).ok()?,
        None => summary.id,
    };
    let created = summary.created.unwrap_or_else(|| ctx.context().clock.now());
    let place = ctx.adapter(summary.agent).path_for(&id, summary.cwd.as_deref()?, created);
    let from = place.with_file_name(name);
    let mut moved = vec![Moved { from: from.clone(), to: transcript.clone() }];
    let beside = files.iter().find(|(_, name, path)| path.is_dir() && *name == id.as_str());
    moved.extend(beside.map(|(_, name, path)| Moved { from: from.with_file_name(name), to: path.clone() }));
    let what = format!("delete {id}");
    let effects = Deletion { session: Some(id), moved, branch: None, name: None };
    let registry = ctx.context().paths.registry.clone();
    Some(Label { what, at: ctx.context().clock.now().as_millisecond(), registry, effects })
}

/// The folders in the trash that a deletion uses.
pub(crate) fn folders_of(deletion: &Deletion) -> HashSet<&Path> {
    deletion.moved.iter().filter_map(|moved| moved.to.parent()).collect()
}

/// Removes the folders of a restored deletion if they are empty.
pub(crate) fn remove_folders(deletion: &Deletion) {
    for folder in folders_of(deletion) {
        let holds_more = fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| entry.file_name() != LABEL);
        if !holds_more {
            fs::remove_file(folder.join(LABEL)).or_log(format_args!("remove {}", folder.join(LABEL).display()));
            fs::remove_dir(folder).or_log(format_args!("remove {}", folder.display()));
        }
    }
}

pub(crate) fn write_label(folder: &Path, label: &Label) -> Result<()> {
    let path = folder.join(LABEL);
    let text = serde_json::to_vec_pretty(label).map_err(std::io::Error::from);
    let written = text.and_then(|text| private::new_file(&path)?.write_all(&text));
    Ok(written.map_err(|source| FileError::Write { path, source })?)
}
