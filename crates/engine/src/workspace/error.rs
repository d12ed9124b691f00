//! What can go wrong with the directories that sessions work in: git, worktrees and copies.

use std::io;
use std::path::PathBuf;

use transcript::text::one_line;

use crate::advice::{Advice, FileError, wraps};

/// The result of anything about workspaces.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about a directory, a repository, a worktree or a copy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory does not exist.
    #[error("directory {} not found", .0.display())]
    NoDirectory(PathBuf),
    /// git is not installed.
    #[error("git not found")]
    NoGit,
    /// git failed.
    #[error("git failed in {}: {message}", .directory.display())]
    Git {
        /// Where it ran.
        directory: PathBuf,
        /// Its output.
        message: String,
    },
    /// git could not create a worktree.
    #[error("git could not create the worktree {}: {message}", .path.display())]
    NotAdded {
        /// Where it should be.
        path: PathBuf,
        /// What git printed.
        message: String,
    },
    /// A parent of the worktree is not a directory.
    #[error("cannot create a worktree at {}: {} is not a directory", .path.display(), .file.display())]
    BadPlace {
        /// Where it should be.
        path: PathBuf,
        /// The file that is in the way.
        file: PathBuf,
    },
    /// A worktree starts from a commit.
    #[error("the repository {} has no commits", .0.display())]
    NothingCommitted(PathBuf),
    /// A bare repository, or a directory in `.git`.
    #[error("{} has no working tree", .0.display())]
    NoWorkingTree(PathBuf),
    /// A worktree needs a repository.
    #[error("{} is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    /// git does not use a repository that belongs to another user.
    #[error("git refuses to use {}: it belongs to another user", .0.display())]
    DubiousOwner(PathBuf),
    /// A merge, a rebase or the like is under way.
    #[error("{} is in the middle of {what}", .directory.display())]
    InTheMiddle {
        /// The working tree.
        directory: PathBuf,
        /// What is under way, with its article.
        what: &'static str,
    },
    /// No branch is checked out.
    #[error("no branch is checked out in {}", .0.display())]
    Detached(PathBuf),
    /// No commit has that name.
    #[error("commit `{}` not found", one_line(.0))]
    NoCommit(String),
    /// git does not accept the name, or it contains invisible characters.
    #[error("invalid branch name `{}`", .0.escape_debug())]
    BadBranch(String),
    /// The branch exists.
    #[error("branch `{0}` already exists")]
    BranchExists(String),
    /// git stores branches as files, so `a` and `a/b` exclude each other.
    #[error("branch `{branch}` conflicts with the existing branch `{other}`")]
    BranchRival {
        /// The new branch.
        branch: String,
        /// The existing one.
        other: String,
    },
    /// The branch is checked out in another working tree.
    #[error("branch `{branch}` is checked out in {}", .tree.display())]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The working tree.
        tree: PathBuf,
    },
    /// Something exists where the worktree should be.
    #[error("{} already exists", .0.display())]
    InTheWay(PathBuf),
    /// The target is in the directory that is copied.
    #[error("cannot copy {} into itself, to {}", .directory.display(), .target.display())]
    IntoItself {
        /// The directory.
        directory: PathBuf,
        /// The target.
        target: PathBuf,
    },
    /// Something exists where the copy should be.
    #[error("{} already exists and is not an empty directory", .0.display())]
    TargetExists(PathBuf),
    /// Paths are stored as text.
    #[error("the path {} is not valid UTF-8", .0.display())]
    BadTarget(PathBuf),
    /// A file or folder cannot be copied.
    #[error("cannot copy {}: {source}", .path.display())]
    NotCopied {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The copy would share its repository with the source.
    #[error("{} points to a repository that cannot be copied with the directory", .0.display())]
    SharedRepository(PathBuf),
    /// A file has merge conflicts.
    #[error("`{}` in {} has unresolved merge conflicts", one_line(&.path.to_string_lossy()), .directory.display())]
    Unmerged {
        /// The working tree.
        directory: PathBuf,
        /// The file in it.
        path: PathBuf,
    },
    /// The worktree has other uncommitted changes than the source.
    #[error("the source {} changed while its uncommitted changes were copied", .0.display())]
    CarryDiffers(PathBuf),
    /// The command that prepares new worktrees failed.
    #[error("`{}` failed in the new worktree: {how}", one_line(.command))]
    SetupFailed {
        /// The command.
        command: String,
        /// How it ended.
        how: String,
    },
    /// Something that tine created cannot be removed.
    #[error("cannot remove {}", .0.display())]
    StillThere(PathBuf),
    /// git does not delete a branch that tine created.
    #[error("git cannot delete the branch `{branch}`: {}", one_line(.message))]
    BranchStays {
        /// The branch.
        branch: String,
        /// What git printed.
        message: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
}

wraps!(File);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        const PLACE: &str = "`worktree.place` in the configuration file sets where worktrees go";
        const OTHER_BRANCH: &str = "choose another name: `--worktree NAME`";
        match self {
            Error::NoDirectory(_) => {
                Advice::new("no_directory", "create it first, or choose another directory with `--to DIR`")
            }
            Error::NoGit => Advice::new("no_git", "install git, or fork without a worktree"),
            Error::Git { directory, .. } => {
                Advice::new("git", format!("`git -C {} status` may show why", directory.display()))
            }
            Error::NotAdded { .. } => Advice::new(
                "git",
                format!("check the disk, the permissions and the repository's `post-checkout` hook; {PLACE}"),
            ),
            Error::BadPlace { .. } => Advice::new("bad_place", PLACE),
            Error::NothingCommitted(_) => Advice::new(
                "no_commit",
                "a worktree starts from a commit: run `git commit` first, or fork without `--worktree`",
            ),
            Error::NoWorkingTree(_) => {
                Advice::new("no_working_tree", "fork to a directory with a checkout: `--to DIR`")
            }
            Error::NoRepository(_) => {
                Advice::new("no_repository", "run `git init` there, or use `--to DIR`, which needs no repository")
            }
            Error::DubiousOwner(repository) => Advice::new(
                "dubious_ownership",
                format!("if you trust it, run `git config --global --add safe.directory {}`", repository.display()),
            ),
            Error::InTheMiddle { .. } => Advice::new("in_the_middle", "finish or abort it first"),
            Error::Detached(_) => Advice::new(
                "detached_head",
                "run `git switch BRANCH` there first; a worktree starts from the branch of the source",
            ),
            Error::NoCommit(_) => Advice::new("no_commit", "use a branch, a tag or a hash, for example `main`"),
            Error::BadBranch(_) => Advice::new("bad_branch", "use a name such as `try/cookies`"),
            Error::BranchExists(_) => Advice::new("branch_exists", OTHER_BRANCH),
            Error::BranchRival { .. } => Advice::new("branch_exists", OTHER_BRANCH),
            Error::CheckedOut { tree, .. } => Advice::new(
                "branch_checked_out",
                format!("work there with `--to {}`, or choose another name: `--worktree NAME`", tree.display()),
            ),
            Error::InTheWay(_) => Advice::new("in_the_way", format!("remove it, or {OTHER_BRANCH}")),
            Error::IntoItself { .. } => Advice::new("into_itself", "choose a target outside the directory"),
            Error::TargetExists(_) => Advice::new("target_exists", "choose another target, or empty this one first"),
            Error::BadTarget(_) => Advice::new("bad_target", "choose a path that is valid UTF-8"),
            Error::NotCopied { .. } => {
                Advice::new("not_copied", "`--worktree` and `--to DIR` work without a copy of the directory")
            }
            Error::SharedRepository(_) => {
                Advice::new("shared_repository", "fork into a worktree instead: `--worktree`")
            }
            Error::Unmerged { .. } => {
                Advice::new("unmerged", "resolve them and run `git add`, or fork without `--carry`")
            }
            Error::CarryDiffers(_) => {
                Advice::new("copy_differs", "try again when nothing writes there, or fork without `--carry`")
            }
            Error::SetupFailed { .. } => {
                Advice::new("setup_failed", "`worktree.setup` in the configuration file sets this command")
            }
            Error::StillThere(_) => {
                Advice::new("not_removed", "check its permissions; tine retries the next time you run it")
            }
            Error::BranchStays { .. } => {
                Advice::new("branch_stays", "if git left a lock file, delete it; tine retries the next time you run it")
            }
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let app = || PathBuf::from("/work/app");
    let tree = || PathBuf::from("/work/app.worktrees/try");
    let denied = || io::Error::from_raw_os_error(13);
    let branch = || "try/cookies".to_owned();
    crate::advice::samples![
        NoDirectory(app()),
        NoGit,
        Git { directory: app(), message: "fatal: bad object HEAD".into() },
        NotAdded { path: tree(), message: "fatal: could not create leading directories".into() },
        BadPlace { path: tree(), file: "/work/app.worktrees".into() },
        NothingCommitted(app()),
        NoWorkingTree("/work/app.git".into()),
        NoRepository(app()),
        DubiousOwner(app()),
        InTheMiddle { directory: app(), what: "a rebase" },
        Detached(app()),
        NoCommit("mian".into()),
        BadBranch("-x".into()),
        BranchExists(branch()),
        BranchRival { branch: branch(), other: "try".into() },
        CheckedOut { branch: branch(), tree: tree() },
        InTheWay(tree()),
        IntoItself { directory: app(), target: "/work/app/copy".into() },
        TargetExists("/work/copy".into()),
        BadTarget("/work/caf\u{fffd}".into()),
        NotCopied { path: "/work/app/secret".into(), source: denied() },
        SharedRepository("/work/app/.git".into()),
        Unmerged { directory: app(), path: "src/main.rs".into() },
        CarryDiffers(app()),
        SetupFailed { command: "npm ci".into(), how: "exit status: 1".into() },
        StillThere(tree()),
        BranchStays { branch: branch(), message: "error: cannot lock ref".into() };
        wraps File
    ]
}
