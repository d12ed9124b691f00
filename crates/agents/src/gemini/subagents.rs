//! Subagents: `chats/<id of the session>/<id>.jsonl`, each a session of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::home::id_inside;

/// A subagent and its transcript.
#[derive(Debug, Clone)]
pub(super) struct Subagent {
    pub id: String,
    pub path: PathBuf,
}

/// The folder with the subagents of the session at `path`.
pub(super) fn folder_of(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.join(id_inside(path)?))
}

/// The subagents of the session at `path`, in the order in which they began.
pub(super) fn of(path: &Path) -> Vec<Subagent> {
    let Some(folder) = folder_of(path) else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    let mut subagents: Vec<(Option<String>, Subagent)> = paths
        .filter_map(|path| {
            let id = path.file_stem()?.to_str()?.to_owned();
            Some((began(&path), Subagent { id, path }))
        })
        .collect();
    subagents.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.id.cmp(&other.id)));
    subagents.into_iter().map(|(_, subagent)| subagent).collect()
}

fn began(path: &Path) -> Option<String> {
    let head = crate::files::head_of(path)?;
    let first = head.split(|byte| *byte == b'\n').next()?;
    crate::Raw(first).get(b"startTime")?.string().map(Into::into)
}
