//! The workspace of a fork: the source's directory, another one, or a new worktree or copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use transcript::SessionName;

use super::{CodeChoice, PlannedCode, Request, RequestedWorkspace, Where, Workspace, WorkspaceKind};
use crate::advice::FileError;
use crate::config::{InnerPath, Program, Template};
use crate::ctx::Ctx;
use crate::fork::{Error, Result};
use crate::registry::operations::CreatedWorkspace;
use crate::sessions::catalog::Quiet;
use crate::sessions::project;
use crate::workspace;
use crate::workspace::directory::{self, CopyProgress, DirectoryCopy};
use crate::workspace::git::{Git, LOCAL_VARIABLES, Worktree};

/// How to prepare a new worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// The top of the source's working tree.
    pub source: PathBuf,
    /// Whether to copy uncommitted changes.
    pub carry: bool,
    /// Ignored files and folders to copy.
    pub bring: Vec<InnerPath>,
    /// The command to run at the end.
    pub setup: Option<Program>,
    /// The files as they were, if it doesn't begin with those of now.
    pub code: Option<PlannedCode>,
}

pub(super) fn is_dirty(ctx: &Ctx, directory: Option<&Path>) -> bool {
    directory.zip(ctx.git().ok()).is_some_and(|(directory, git)| git.is_dirty_unfiltered(directory))
}

/// The requested workspace of the fork.
pub(super) fn requested_workspace(ctx: &Ctx, request: &Request) -> RequestedWorkspace {
    let own = request.source.view.cwd.clone().unwrap_or_else(|| ctx.context().cwd.clone());
    let carry = request.carry || request.code == CodeChoice::Now;
    RequestedWorkspace { own, workspace: request.workspace.clone(), carry, code: None }
}

pub(super) fn workspace(ctx: &Ctx, asked: &RequestedWorkspace, name: &SessionName) -> Result<Workspace> {
    let own = asked.own.clone();
    let (kind, path) = match &asked.workspace {
        Where::Same => (WorkspaceKind::Same, own),
        Where::Directory(directory) => (WorkspaceKind::Existing, ctx.context().cwd.join(directory)),
        Where::Copy(directory) => return copy_of(ctx, own, directory, name),
        Where::Worktree { branch, .. } => {
            let branch = branch.as_deref().unwrap_or(name.as_str());
            let mut workspace = worktree(ctx, &own, branch, asked.base(), asked.carry)?;
            if let (Some(preparation), Some(CreatedWorkspace::Worktree(worktree)), Some(code)) =
                (&mut workspace.preparation, &mut workspace.creates, &asked.code)
            {
                preparation.code = Some(code.clone());
                worktree.fills = true;
            }
            return Ok(workspace);
        }
    };
    let path = existing(path)?;
    if path.to_str().is_none() {
        return Err(workspace::Error::BadTarget(path).into());
    }
    let branch = project::current_branch(&path);
    Ok(Workspace { kind, path, branch, creates: None, preparation: None })
}

/// A copy of the whole directory, without anything above it, such as the top of its repository. The default target is
/// `<directory>.clones/<name>`.
pub(super) fn copy_of(ctx: &Ctx, directory: PathBuf, target: &Path, name: &SessionName) -> Result<Workspace> {
    let source = existing(directory)?;
    let target = match target.as_os_str().is_empty() {
        true => directory::beside(&source, directory::CLONES).join(name.as_str()),
        false => ctx.context().cwd.join(target),
    };
    let copy = DirectoryCopy::plan(&source, &target)?;
    let path = copy.path.clone();
    let is_top = source.join(".git").symlink_metadata().is_ok();
    let branch = project::current_branch(if is_top { &source } else { &path });
    let creates = Some(CreatedWorkspace::Copy(copy));
    Ok(Workspace { kind: WorkspaceKind::Copy, path, branch, creates, preparation: None })
}

/// A new worktree at the configured place, by default `<repository>.worktrees/<branch>`.
pub(super) fn worktree(
    ctx: &Ctx,
    directory: &Path,
    branch: &str,
    base: Option<&str>,
    carry: bool,
) -> Result<Workspace> {
    let directory = existing(directory.to_owned())?;
    let git = ctx.git()?;
    let top = git.top(&directory).ok_or_else(|| git.no_working_tree(&directory))?;
    if let Some(what) = git.unfinished(&top) {
        return Err(workspace::Error::InTheMiddle { directory: top, what }.into());
    }
    if base.is_none() && project::current_branch(&directory).is_none() {
        return Err(workspace::Error::Detached(top).into());
    }
    if !git.is_branch_name(&top, branch) {
        return Err(workspace::Error::BadBranch(branch.to_owned()).into());
    }
    // A branch can be checked out before it exists.
    if let Some(tree) = git.checked_out_in(&top, branch) {
        return Err(workspace::Error::CheckedOut { branch: branch.to_owned(), tree }.into());
    }
    if git.has_branch(&top, branch) {
        return Err(workspace::Error::BranchExists(branch.to_owned()).into());
    }
    if let Some(other) = git.rival_of(&top, branch) {
        return Err(workspace::Error::BranchRival { branch: branch.to_owned(), other }.into());
    }
    if carry {
        git.refuse_unmerged(&top)?;
    }
    let settings = &ctx.config()?.worktree;
    let main = project::main_tree(&top).unwrap_or_else(|| top.clone());
    // The directory next to a submodule is still inside the repository that contains it.
    let outer = git.outermost(&top).filter(|_| settings.place == Template::default());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = outer.map(|outer| outer.with_file_name(format!("{}-{}", name(&outer), name(&top))));
    let named = named.as_ref().unwrap_or(&main);
    let tree = directory::new_place(&settings.place.fill(named, branch, &ctx.context().surroundings.home))?;
    if tree.symlink_metadata().is_ok() {
        return Err(workspace::Error::InTheWay(tree).into());
    }
    if let Some(file) = tree.ancestors().skip(1).find(|above| above.exists()).filter(|above| !above.is_dir()) {
        return Err(workspace::Error::BadPlace { path: tree.clone(), file: file.to_owned() }.into());
    }
    let parents = tree.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    // If the source works in a subdirectory, so does the fork.
    let below = directory.strip_prefix(&top).unwrap_or(Path::new(""));
    let path = if below.as_os_str().is_empty() { tree.clone() } else { tree.join(below) };
    let base = match base {
        Some(base) => git.commit(&top, base).ok_or_else(|| workspace::Error::NoCommit(base.to_owned()))?,
        None => git.head(&top)?,
    };
    let branch = branch.to_owned();
    let worktree = Worktree {
        repository: main,
        path: tree,
        branch: branch.clone(),
        base,
        parents,
        brought: Vec::new(),
        fills: carry || !settings.bring.is_empty() || settings.setup.is_some(),
        state: None,
        newest_ignored: None,
    };
    let (bring, setup) = (settings.bring.clone(), settings.setup.clone());
    let preparation = Some(Preparation { source: top, carry, bring, setup, code: None });
    let creates = Some(CreatedWorkspace::Worktree(worktree));
    Ok(Workspace { kind: WorkspaceKind::Worktree, path, branch: Some(branch), creates, preparation })
}

/// Creates the planned worktree or copy, or fails and removes it. Afterwards, `created` is what was created or could
/// not be removed, and never what another process put in the same place. `record` is called before a copy gets its
/// final name: from then on, the next run of tine treats whatever has that name as ours.
pub(super) fn create_workspace(
    ctx: &Ctx,
    workspace: &Workspace,
    created: &mut Option<CreatedWorkspace>,
    record: &dyn Fn(&CreatedWorkspace) -> Result<()>,
    progress: &dyn CopyProgress,
) -> Result<()> {
    *created = None;
    match &workspace.creates {
        Some(CreatedWorkspace::Worktree(worktree)) => create_worktree(ctx, workspace, worktree, created),
        Some(CreatedWorkspace::Copy(copy)) => {
            *created = Some(create_copy(ctx, copy, record, progress)?);
            Ok(())
        }
        None => Ok(()),
    }
}

fn create_worktree(
    ctx: &Ctx,
    workspace: &Workspace,
    worktree: &Worktree,
    created: &mut Option<CreatedWorkspace>,
) -> Result<()> {
    let git = ctx.git()?;
    let mut made = worktree.clone();
    let added = git.add(worktree).map_err(Error::from).and_then(|()| prepare_worktree(ctx, &git, workspace, &mut made));
    *created = match &added {
        Ok(()) => Some(CreatedWorkspace::Worktree(made)),
        // Another process has created what is there.
        Err(Error::Workspace(workspace::Error::InTheWay(_) | workspace::Error::BranchExists(_))) => None,
        Err(_) => git.remove(worktree).is_err().then(|| CreatedWorkspace::Worktree(worktree.clone())),
    };
    added
}

fn prepare_worktree(ctx: &Ctx, git: &Git, workspace: &Workspace, worktree: &mut Worktree) -> Result<()> {
    let Some(preparation) = &workspace.preparation else { return Ok(()) };
    let (source, tree) = (&preparation.source, &worktree.path);
    let left_out = match preparation.carry {
        true => git.carry(source, tree)?,
        false => git.copy_submodules(source, tree, false)?,
    };
    for warning in left_out {
        ctx.warn(warning);
    }
    if let Some(code) = &preparation.code {
        code.tree.lay_over(git, tree)?;
    }
    // The source's directory may not be committed.
    fs::create_dir_all(&workspace.path).map_err(|source| FileError::Write { path: workspace.path.clone(), source })?;
    for path in preparation.bring.iter().map(InnerPath::as_path) {
        if copy_path(source, tree, path)? {
            worktree.brought.push(path.to_owned());
        }
    }
    if let Some(setup) = &preparation.setup {
        set_up(ctx, setup, source, tree)?;
    }
    // Only a difference from the commit has to be recorded.
    if git.may_differ(worktree) && git.is_dirty(tree) || !worktree.brought.is_empty() {
        worktree.state = Some(git.state(worktree)?);
    }
    worktree.newest_ignored = Some(if worktree.fills { git.newest_ignored(worktree)? } else { 0 });
    Ok(())
}

/// Runs the user's own command in the new worktree. Its output goes to standard error.
fn set_up(ctx: &Ctx, setup: &Program, source: &Path, tree: &Path) -> Result<()> {
    let (mut command, text) = match setup {
        Program::Line(line) => {
            let mut command = Command::new(ctx.context().find_program("sh").unwrap_or_else(|| "sh".into()));
            command.arg("-c").arg(line);
            (command, line.clone())
        }
        Program::Words(words) => {
            let Some((program, arguments)) = words.split_first() else { return Ok(()) };
            let found = if program.contains('/') { None } else { ctx.context().find_program(program) };
            let mut command = Command::new(found.unwrap_or_else(|| program.into()));
            command.args(arguments);
            (command, words.join(" "))
        }
    };
    for variable in LOCAL_VARIABLES {
        command.env_remove(variable);
    }
    command.current_dir(tree).env("TINE_SOURCE_DIR", source).stdin(Stdio::null()).stdout(io::stderr());
    let how = match command.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(workspace::Error::SetupFailed { command: text, how }.into())
}

fn create_copy(
    ctx: &Ctx,
    copy: &DirectoryCopy,
    record: &dyn Fn(&CreatedWorkspace) -> Result<()>,
    progress: &dyn CopyProgress,
) -> Result<CreatedWorkspace> {
    let mut made = copy.clone();
    let copied = made.write(ctx.git().ok().as_ref(), progress)?;
    let created = CreatedWorkspace::Copy(made.clone());
    if let Err(error) = record(&created).and_then(|()| Ok(made.put_in_place()?)) {
        made.remove();
        return Err(error);
    }
    if copied.special > 0 {
        ctx.warn(format!("{} sockets, pipes and devices were not copied", copied.special));
    }
    if copied.vanished > 0 {
        ctx.warn(format!("{} files disappeared while the directory was copied", copied.vanished));
    }
    Ok(created)
}

fn existing(path: PathBuf) -> Result<PathBuf> {
    if !path.is_dir() {
        return Err(workspace::Error::NoDirectory(path).into());
    }
    Ok(path.canonicalize().map_err(|source| FileError::Read { path, source })?)
}

/// Copies one path from a working tree to another; existing files are kept. Returns whether anything was copied.
fn copy_path(source: &Path, tree: &Path, path: &Path) -> Result<bool> {
    let (from, to) = (source.join(path), tree.join(path));
    let Ok(metadata) = fs::symlink_metadata(&from) else { return Ok(false) };
    let there = fs::symlink_metadata(&to);
    if metadata.is_dir() && there.as_ref().is_ok_and(fs::Metadata::is_dir) {
        let mut came = false;
        let entries = fs::read_dir(&from).map_err(|source| workspace::Error::NotCopied { path: from, source })?;
        for entry in entries.flatten() {
            came |= copy_path(source, tree, &path.join(entry.file_name()))?;
        }
        return Ok(came);
    }
    // If the commit has the folder as a link, it leads elsewhere.
    if !directory::stays_inside(tree, path) {
        return Ok(false);
    }
    if there.is_ok() || !(metadata.is_dir() || metadata.is_file() || metadata.is_symlink()) {
        return Ok(false);
    }
    let folder = to.parent().unwrap_or(tree);
    fs::create_dir_all(folder).map_err(|source| FileError::Write { path: folder.to_owned(), source })?;
    match metadata.is_dir() {
        true => directory::copy(&from, &to, &Quiet).map(|_| ())?,
        false => {
            directory::copy_one(&from, &to).map_err(|source| workspace::Error::NotCopied { path: from, source })?;
        }
    }
    Ok(true)
}
