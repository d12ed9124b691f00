//! Repositories in a copy work by themselves: nothing that git does in the copy reaches the source.
//!
//! A `.git` folder is copied like any other. A `.git` file points to a folder elsewhere (linked worktrees, submodules).
//! If that is inside the copied directory, the file is changed to point to the copy; otherwise the copy gets its own
//! folder with the whole history.

use std::fs;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;

use super::DirectoryCopy;
use super::copy::{CopyProgress, copy_except};
use crate::advice::FileError;
use crate::workspace::git::Git;
use crate::workspace::{Error, Result};

/// Makes everything called `.git` in an unfinished copy independent of the source.
pub(super) fn make_independent(
    made: &DirectoryCopy,
    repositories: &[PathBuf],
    git: Option<&Git>,
    progress: &dyn CopyProgress,
) -> Result<()> {
    for name in repositories {
        let (original, copied) = (made.source.join(name), made.unfinished.join(name));
        let Ok(metadata) = copied.symlink_metadata() else { continue };
        if metadata.is_dir() {
            fs::remove_file(copied.join("index.lock"))
                .or_log(format_args!("remove {}", copied.join("index.lock").display()));
            follow_worktrees(made, &original, &copied)?;
        } else if metadata.is_symlink() {
            let leads = fs::read_link(&copied).unwrap_or_default();
            let stays =
                leads.is_relative() && original.canonicalize().is_ok_and(|folder| folder.starts_with(&made.source));
            if !stays {
                return Err(Error::SharedRepository(original));
            }
        } else {
            follow_file(made, &original, &copied, git, progress)?;
        }
    }
    Ok(())
}

/// Worktrees that were copied along belong to the copy; those that were not, do not.
fn follow_worktrees(made: &DirectoryCopy, original: &Path, copied: &Path) -> Result<()> {
    for entry in fs::read_dir(copied.join("worktrees")).into_iter().flatten().flatten() {
        let link = entry.path().join("gitdir");
        let Some(leads) = read_path(&link, "") else { continue };
        let place = original.join("worktrees").join(entry.file_name()).join(&leads);
        let place = place.canonicalize().unwrap_or(place);
        match place.strip_prefix(&made.source) {
            Ok(inside) if leads.is_absolute() => write_path(&link, "", &made.path.join(inside))?,
            Ok(_) => {}
            Err(_) => {
                let gone = super::remove_tree(&entry.path());
                gone.map_err(|source| FileError::Write { path: entry.path(), source })?;
            }
        }
    }
    fs::remove_dir(copied.join("worktrees")).or_log(format_args!("remove {}", copied.join("worktrees").display()));
    Ok(())
}

fn follow_file(
    made: &DirectoryCopy,
    original: &Path,
    copied: &Path,
    git: Option<&Git>,
    progress: &dyn CopyProgress,
) -> Result<()> {
    let Some(leads) = read_path(copied, "gitdir:") else { return Ok(()) };
    let around = original.parent().unwrap_or(&made.source);
    // What leads nowhere leads nowhere in the copy, too.
    let Ok(folder) = around.join(&leads).canonicalize() else { return Ok(()) };
    if let Ok(inside) = folder.strip_prefix(&made.source) {
        return match leads.is_absolute() {
            true => write_path(copied, "gitdir: ", &made.path.join(inside)),
            false => Ok(()),
        };
    }
    let common = read_path(&folder.join("commondir"), "").and_then(|common| folder.join(common).canonicalize().ok());
    let is_linked = common.is_some();
    let common = common.unwrap_or_else(|| folder.clone());
    if is_linked && common.join("reftable").exists() {
        // References of a worktree and of its repository are kept in one format that only git can put together.
        return Err(Error::SharedRepository(original.to_owned()));
    }
    let git = git.ok_or(Error::NoGit)?;
    fs::remove_file(copied).map_err(|source| FileError::Write { path: copied.to_owned(), source })?;
    // Submodules of the copy get separate folders in the same way.
    copy_except(&common, copied, progress, |name| {
        name == Path::new("modules") || name == Path::new("index.lock") || (is_linked && is_of_one_tree(name))
    })?;
    if is_linked {
        const LINKS: [&str; 5] = ["commondir", "gitdir", "locked", "modules", "index.lock"];
        copy_except(&folder, copied, progress, |name| LINKS.iter().any(|link| name == Path::new(link)))?;
    }
    for config in ["config", "config.worktree"].map(|file| copied.join(file)).iter().filter(|file| file.exists()) {
        git.forget_place_in(config);
    }
    Ok(())
}

/// Whether a file of a repository belongs only to its main working tree, according to gitrepository-layout(5).
fn is_of_one_tree(name: &Path) -> bool {
    const OF_ONE_TREE: [&str; 11] = [
        "worktrees",
        "index",
        "config.worktree",
        "rebase-merge",
        "rebase-apply",
        "sequencer",
        "logs/HEAD",
        "refs/bisect",
        "refs/worktree",
        "refs/rewritten",
        "info/sparse-checkout",
    ];
    let is_head = name.as_os_str().as_encoded_bytes().iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    is_head || OF_ONE_TREE.iter().any(|other| name == Path::new(other))
}

/// The path in one of git's files.
fn read_path(file: &Path, before: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    Some(PathBuf::from(text.strip_prefix(before)?.trim()))
}

fn write_path(file: &Path, before: &str, path: &Path) -> Result<()> {
    let text = format!("{before}{}\n", path.display());
    Ok(fs::write(file, text).map_err(|source| FileError::Write { path: file.to_owned(), source })?)
}
