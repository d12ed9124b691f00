//! Finds where a missing directory is now. A repository is recognized by its commits, never by the name of its folder:
//! by those that tine recorded, and those that the agents wrote down.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;

use crate::ctx::Ctx;
use crate::sessions::project;
use crate::sessions::session::Session;
use crate::sessions::{Error, Result};
use crate::workspace;
use crate::workspace::git::Git;

/// How deep below a folder repositories are searched, and in how many folders at most.
const DEPTH: usize = 3;
const MOST_FOLDERS: usize = 4_000;

/// What is remembered of a directory: a commit of its repository, and where in the repository it is.
fn key(directory: &Path) -> String {
    format!("repository/{}", directory.display())
}

/// Remembers which repository a session works in, so that it is found again when it is moved.
pub(crate) fn note_repository(ctx: &Ctx, directory: &Path) {
    let Some((commit, top)) = project::current_commit(directory).zip(project::top(directory)) else {
        return;
    };
    let below = directory.strip_prefix(&top).unwrap_or(Path::new(""));
    let value = format!("{commit} {}", below.display());
    // Not being able to remember is no reason to fail what was asked.
    ctx.registry()
        .in_a_hurry(|registry| registry.remember(&key(directory), &value))
        .or_log("record where the repository is");
}

/// Checks that a session can continue in its directory. A missing directory is searched for.
pub(crate) fn check_directory(ctx: &Ctx, session: &Session, directory: &Path) -> Result<()> {
    if directory.is_dir() {
        note_repository(ctx, directory);
        return Ok(());
    }
    if session.view.cwd.as_deref() != Some(directory) {
        return Err(workspace::Error::NoDirectory(directory.to_owned()).into());
    }
    let now = current_repository(ctx, session, directory)?;
    Err(Error::DirectoryGone { session: session.view.label().to_owned(), path: directory.to_owned(), now })
}

/// Where the repository of a missing directory is now: the working tree of the session's branch, otherwise any that is
/// found. Only repositories that are certainly the same count.
fn current_repository(ctx: &Ctx, session: &Session, gone: &Path) -> Result<Option<PathBuf>> {
    let Ok(git) = ctx.git() else {
        return Ok(None);
    };
    let remembered = ctx.registry().recall(&key(gone))?;
    let (commit, below) = remembered.as_deref().and_then(|value| value.split_once(' ')).unzip();
    let mut commits: Vec<String> = commit.map(str::to_owned).into_iter().collect();
    if commits.is_empty() {
        commits = ctx.adapter(session.view.agent).starting_commits(&session.view.path);
    }
    let sessions = crate::sessions::survey::all_sessions(ctx, &crate::sessions::catalog::Quiet)?;
    let known = sessions.iter().filter_map(|session| project::top(session.view.cwd.as_deref()?));
    let around = gone.ancestors().skip(1).find(|folder| folder.is_dir()).filter(|folder| folder.parent().is_some());
    let home = ctx.context().surroundings.home.clone();
    let found = around.map(Path::to_owned).into_iter().chain([home]).flat_map(|folder| repositories_below(&folder));
    let mut tops: Vec<PathBuf> = known.chain(found).filter(|top| top.is_dir()).collect();
    tops.sort();
    tops.dedup();
    tops.retain(|top| project::has_worktree(top, gone) || git.has_commits(top, &commits));
    let branch = session.view.branch.as_deref();
    let has_branch = |top: &PathBuf| branch.is_some() && project::current_branch(top).as_deref() == branch;
    let best = tops.iter().max_by_key(|top| (has_branch(top), top.file_name() == gone.file_name()));
    let tree = best.map(|top| tree_of(&git, top, branch));
    Ok(tree.map(|tree| {
        let inner = tree.join(below.unwrap_or_default());
        // Joined with an empty path, a path would get a trailing slash.
        if inner.is_dir() { inner.components().collect() } else { tree }
    }))
}

/// The working tree of a repository in which a branch is checked out, else the one that was found.
fn tree_of(git: &Git, top: &Path, branch: Option<&str>) -> PathBuf {
    let tree = branch.and_then(|branch| git.checked_out_in(top, branch)).filter(|tree| tree.is_dir());
    tree.unwrap_or_else(|| top.to_owned())
}

/// The repositories below a folder, except in hidden folders and within the limits.
fn repositories_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    for _ in 0..MOST_FOLDERS {
        let Some((folder, depth)) = folders.pop_front() else {
            break;
        };
        if folder.join(".git").exists() {
            found.push(folder);
            continue;
        }
        if depth == DEPTH {
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".") || name == "node_modules";
            if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back((entry.path(), depth + 1));
            }
        }
    }
    found
}
