//! Files of a session besides its transcript, which are copied with a fork: subagents, which get the new id, large tool
//! results, and file checkpoints. The agent's notes about a project are copied to another project, unless that has
//! notes of the same name.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::copy::copy_subagent;
use super::home;
use super::mentioned::mentioned;
use super::subagents;
use crate::copy::{CopyRequest, SideFile};

/// Everything that a fork may include, whether the source has it or not; only notes are checked for existence.
pub(super) fn side_files(source: &Path, order: &CopyRequest) -> Vec<SideFile> {
    let target = order.target.as_path();
    let hidden = |folder: &Path, what: &str| folder.join(format!(".{}.tine-{what}", order.id));
    let project = target.parent().unwrap_or(Path::new("."));
    let mut all = vec![SideFile {
        from: home::side_folder(source),
        prepared: hidden(project, "side"),
        place: home::side_folder(target),
        shared: false,
    }];
    if let (Some(old), Some(new)) = (config_of(source), config_of(target)) {
        let folder = new.join("file-history");
        all.push(SideFile {
            from: old.join("file-history").join(order.source_id.as_str()),
            prepared: hidden(&folder, "history"),
            place: folder.join(order.id.as_str()),
            shared: false,
        });
    }
    let memory = source.with_file_name("memory");
    let new_memory = target.with_file_name("memory");
    if memory != new_memory {
        for (number, file) in files_below(&memory).into_iter().enumerate() {
            let place = new_memory.join(&file);
            if fs::symlink_metadata(&place).is_err() {
                let prepared = hidden(project, &format!("memory-{number}"));
                all.push(SideFile { from: memory.join(file), prepared, place, shared: true });
            }
        }
    }
    all
}

/// Copies one of those to its temporary path, and flushes it. A missing one is skipped.
pub(super) fn prepare(source: &Path, piece: &SideFile, order: &CopyRequest, cut: Option<&Path>) -> io::Result<()> {
    if piece.from == home::side_folder(source) {
        return copy_side(source, order, &piece.prepared, cut);
    }
    if piece.from.is_file() {
        return copy_file(&piece.from, &piece.prepared);
    }
    for file in of_cut(&piece.from, files_below(&piece.from), order, cut)? {
        copy_file(&piece.from.join(&file), &piece.prepared.join(&file))?;
    }
    Ok(())
}

/// Copies subagents, large tool results and whatever else there is into the folder `to`.
pub(super) fn copy_side(source: &Path, order: &CopyRequest, to: &Path, cut: Option<&Path>) -> io::Result<()> {
    let side = home::side_folder(source);
    let is_known = |file: &PathBuf| ["subagents", "tool-results"].iter().any(|folder| file.starts_with(folder));
    let (known, unknown): (Vec<PathBuf>, Vec<PathBuf>) = files_below(&side).into_iter().partition(is_known);
    // The turns of the other files are unknown.
    for file in of_cut(&side, known, order, cut)?.into_iter().chain(unknown) {
        let (from, to) = (side.join(&file), to.join(&file));
        if file.starts_with("subagents") && file.extension().is_some_and(|extension| extension == "jsonl") {
            let mut out = private_file(&to)?;
            copy_subagent(&from, source, order, &mut out)?;
            out.sync_all()?;
        } else {
            copy_file(&from, &to)?;
        }
    }
    copy_subagents_beside(source, order, to, cut)
}

/// Copies subagents that 2.0.x kept next to the session's file to where later versions keep them.
fn copy_subagents_beside(source: &Path, order: &CopyRequest, to: &Path, cut: Option<&Path>) -> io::Result<()> {
    let files = subagents::files_beside(source);
    if files.is_empty() {
        return Ok(());
    }
    // They are those of all sessions of the project.
    let folder = source.parent().unwrap_or(Path::new("."));
    for file in mentioned(folder, files, &order.source_id, cut.unwrap_or(source))? {
        let to = to.join("subagents").join(&file);
        if !to.exists() {
            let mut out = private_file(&to)?;
            copy_subagent(&folder.join(&file), source, order, &mut out)?;
            out.sync_all()?;
        }
    }
    Ok(())
}

/// `<config>`, of a transcript at `<config>/projects/<project>/<id>.jsonl`.
fn config_of(transcript: &Path) -> Option<&Path> {
    let projects = transcript.parent()?.parent()?;
    (projects.file_name()? == "projects").then(|| projects.parent()).flatten()
}

/// The files of a folder to copy.
fn of_cut(folder: &Path, files: Vec<PathBuf>, order: &CopyRequest, cut: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    match cut {
        Some(transcript) if !files.is_empty() => mentioned(folder, files, &order.source_id, transcript),
        _ => Ok(files),
    }
}

/// The files in a folder and below it, by their path from there. Links are not followed: they may lead anywhere.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([PathBuf::new()]);
    while let Some(below) = folders.pop_front() {
        for entry in fs::read_dir(folder.join(&below)).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push_back(path),
                Ok(kind) if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut out = private_file(to)?;
    io::copy(&mut File::open(from)?, &mut out)?;
    out.sync_all()
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    private_folder(path.parent().unwrap_or(Path::new(".")))?;
    options.open(path)
}

fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
