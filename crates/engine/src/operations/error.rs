//! What can go wrong while an operation is undone or a session is deleted.

use std::path::PathBuf;

use transcript::State;

use crate::advice::{Advice, FileError, wraps};
use crate::{config, program, registry, sessions, workspace};

/// The result of anything about operations.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part of an operation cannot be undone.
    #[error("`{what}`: {source}")]
    InPart {
        /// The part.
        what: String,
        /// Why not.
        source: Box<Error>,
    },
    /// The session is open in an agent.
    #[error("session `{session}` is open ({})", .state.as_str())]
    IsOpen {
        /// The session.
        session: String,
        /// What it does.
        state: State,
    },
    /// Other sessions refer to this one's file.
    #[error("session `{session}` holds part of the history of `{by}`{}", and_more(*.count))]
    StillNeeded {
        /// The session.
        session: String,
        /// One that needs it.
        by: String,
        /// How many need it.
        count: usize,
    },
    /// The copied directory has changes.
    #[error("{}, created by operation {id}, has changes", .path.display())]
    WorkedInCopy {
        /// The operation.
        id: i64,
        /// The copy.
        path: PathBuf,
    },
    /// The worktree has changes.
    #[error("the worktree created by operation {id} has changes")]
    WorkedIn {
        /// The operation.
        id: i64,
    },
    /// A restored file was changed.
    #[error("{} has changed since operation {id} restored it", .path.display())]
    ChangedSince {
        /// The operation.
        id: i64,
        /// The file.
        path: PathBuf,
    },
    /// A file was changed by somebody else while it was to be restored.
    #[error("{} is changing", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// The operation does not exist, or no operation can be undone.
    #[error("{}", match .0 { Some(id) => format!("operation {id} not found"), None => "nothing to undo".into() })]
    NothingToUndo(Option<i64>),
    /// The operation is not in a state that can be undone.
    #[error("operation {id} {}", if state == "undone" { "is already undone".into() } else { format!("is {state} and cannot be undone") })]
    NotUndoable {
        /// Its number.
        id: i64,
        /// Its state.
        state: String,
    },
    /// Another process is undoing the operation.
    #[error("operation {0} is being undone")]
    BeingUndone(i64),
    /// The fork was continued or edited.
    #[error("the session created by operation {id} has changed since then")]
    HasGrown {
        /// The operation.
        id: i64,
    },
    /// The fork was deleted.
    #[error("the session created by operation {id} is in the trash")]
    InTrash {
        /// The operation.
        id: i64,
        /// The operation that deleted it.
        deleted_by: i64,
    },
    /// Another session works in the fork's workspace.
    #[error("session `{session}` works in {}, created by operation {id}", .path.display())]
    WorksThere {
        /// The operation.
        id: i64,
        /// The session.
        session: String,
        /// The workspace.
        path: PathBuf,
    },
    /// A process works in the fork's workspace.
    #[error("process {process} works in {}, created by operation {id}", .path.display())]
    RunsThere {
        /// The operation.
        id: i64,
        /// The process.
        process: u32,
        /// The workspace.
        path: PathBuf,
    },
    /// The fork's worktree is locked.
    #[error("the worktree {}, created by operation {id}, is locked", .path.display())]
    Locked {
        /// The operation.
        id: i64,
        /// The worktree.
        path: PathBuf,
    },
    /// The fork's branch is checked out in another working tree.
    #[error("branch `{branch}`, created by operation {id}, is checked out in {}", .tree.display())]
    BranchInUse {
        /// The operation.
        id: i64,
        /// The branch.
        branch: String,
        /// The working tree.
        tree: PathBuf,
    },
    /// Something else is where the fork's worktree was.
    #[error("{} is no longer the worktree created by operation {id}{}", .path.display(), on_branch(.branch))]
    OtherTree {
        /// The operation.
        id: i64,
        /// Where the worktree was.
        path: PathBuf,
        /// The branch that is checked out there now, if it is a working tree of the same repository.
        branch: Option<String>,
    },
    /// The trash was emptied.
    #[error("the files deleted by operation {0} are no longer in the trash")]
    TrashGone(i64),
    /// Something exists where a deleted file belongs.
    #[error("{} already exists", .path.display())]
    ThereAgain {
        /// The operation that deleted it.
        id: i64,
        /// Where it belongs.
        path: PathBuf,
    },
    /// The fork was moved.
    #[error("the session created by operation {id} has moved to {}", .path.display())]
    HasMoved {
        /// The operation.
        id: i64,
        /// Where it is.
        path: PathBuf,
    },
    /// A file cannot be removed.
    #[error("cannot remove {}", .0.display())]
    NotRemoved(PathBuf),
    /// The worktree or the copied directory cannot be removed together with its session.
    #[error("cannot remove {}: {why}", .path.display())]
    KeepsWorkspace {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The operation was undone, but something that it created still exists.
    #[error("operation {id} was undone only in part: {left}")]
    NotAllUndone {
        /// Its number.
        id: i64,
        /// What still exists, and why.
        left: Box<Error>,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// A directory or a repository.
    #[error(transparent)]
    Workspace(workspace::Error),
    /// The registry.
    #[error(transparent)]
    Registry(registry::Error),
    /// An agent's program.
    #[error(transparent)]
    Program(program::Error),
    /// A session.
    #[error(transparent)]
    Sessions(sessions::Error),
}

wraps!(File, Config, Workspace, Registry, Program, Sessions);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        let force = |id: &i64| format!("`tine undo {id} --force` removes it anyway");
        match self {
            Error::InPart { source, .. } => source.advice(),
            Error::IsOpen { session, .. } => {
                Advice::new("is_open", format!("end the agent first, for example with `tine stop {session}`"))
            }
            Error::StillNeeded { .. } => Advice::new(
                "still_needed",
                "delete those first; forks made with `--method copy` don't need their source",
            ),
            Error::WorkedInCopy { id, .. } => {
                Advice::new("worked_in", format!("save what you need elsewhere; {}", force(id)))
            }
            Error::ChangedSince { id, .. } => Advice::new(
                "has_changed",
                format!("`tine undo {id} --force` puts back what was there before and discards the changes"),
            ),
            Error::ChangedMeanwhile(_) => {
                Advice::new("changed_meanwhile", "nothing was restored; try again when nothing writes there")
            }
            Error::WorkedIn { id } => Advice::new(
                "worked_in",
                format!("save what you need elsewhere; {}, but keeps a branch with new commits", force(id)),
            ),
            Error::NothingToUndo(_) => Advice::new("nothing_to_undo", LOG),
            Error::NotUndoable { .. } => Advice::new("not_undoable", LOG),
            Error::BeingUndone(_) => Advice::new(
                "being_undone",
                "another tine is undoing it; wait, or choose another operation from `tine log`",
            ),
            Error::HasGrown { id } => Advice::new("has_grown", force(id)),
            Error::InTrash { deleted_by, .. } => {
                Advice::new("in_trash", format!("`tine undo {deleted_by}` restores it"))
            }
            Error::WorksThere { id, session, .. } => {
                Advice::new("worked_in", format!("run `tine delete {session}` first; {}", force(id)))
            }
            Error::RunsThere { id, .. } => {
                Advice::new("worked_in", format!("end the process, or let it work elsewhere; {}", force(id)))
            }
            Error::Locked { id, path } => {
                Advice::new("locked", format!("run `git worktree unlock {}` first; {}", path.display(), force(id)))
            }
            Error::BranchInUse { id, .. } => Advice::new(
                "branch_checked_out",
                format!(
                    "check out another branch there; `tine undo {id} --force` undoes the rest and keeps the branch"
                ),
            ),
            Error::OtherTree { id, .. } => Advice::new(
                "other_worktree",
                format!("`tine undo {id} --force` undoes the rest and keeps this worktree"),
            ),
            Error::TrashGone(_) => Advice::new("trash_gone", format!("they cannot be restored; {LOG}")),
            Error::ThereAgain { id, .. } => {
                Advice::new("in_the_way", format!("move it away, then run `tine undo {id}` again"))
            }
            Error::HasMoved { .. } => Advice::new("has_moved", "`tine delete` moves it to the trash"),
            Error::NotRemoved(_) => Advice::new("not_removed", "check the permissions of its folder and try again"),
            Error::KeepsWorkspace { .. } => {
                Advice::new("keeps_worktree", "without `--worktree`, only the session is deleted")
            }
            Error::NotAllUndone { .. } => {
                Advice::new("not_all_undone", "fix the cause; tine retries the next time you run it")
            }
            passed_on!() => self.passed_on(),
        }
    }
}

const LOG: &str = "`tine log` lists operations";

fn and_more(count: usize) -> String {
    if count > 1 { format!(" and {} more", count - 1) } else { String::new() }
}

fn on_branch(branch: &Option<String>) -> String {
    branch.as_ref().map_or_else(String::new, |branch| format!(": it is on branch `{branch}`"))
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let session = || "auth-fix".to_owned();
    let path = || PathBuf::from("/work/app.worktrees/try");
    let left = || Box::new(Error::NotRemoved(path()));
    crate::advice::samples![
        InPart { what: "try-2".into(), source: Box::new(Error::HasGrown { id: 12 }) },
        IsOpen { session: session(), state: State::Busy },
        StillNeeded { session: session(), by: "auth-fix-fork-1".into(), count: 3 },
        WorkedInCopy { id: 12, path: "/work/app.clones/try".into() },
        WorkedIn { id: 12 },
        ChangedSince { id: 12, path: "/work/app/src/main.rs".into() },
        ChangedMeanwhile("/work/app/src/main.rs".into()),
        NothingToUndo(Some(12)),
        NothingToUndo(None),
        NotUndoable { id: 12, state: "undone".into() },
        BeingUndone(12),
        HasGrown { id: 12 },
        InTrash { id: 12, deleted_by: 14 },
        WorksThere { id: 12, session: session(), path: path() },
        RunsThere { id: 12, process: 4711, path: path() },
        Locked { id: 12, path: path() },
        BranchInUse { id: 12, branch: "try".into(), tree: "/work/web".into() },
        OtherTree { id: 12, path: path(), branch: Some("main".into()) },
        OtherTree { id: 12, path: path(), branch: None },
        TrashGone(12),
        ThereAgain { id: 12, path: "/home/kim/.claude/projects/-work-app/1f3a.jsonl".into() },
        HasMoved { id: 12, path: "/home/kim/.claude/projects/-work-web/1f3a.jsonl".into() },
        NotRemoved(path()),
        KeepsWorkspace { path: path(), why: "it has uncommitted changes".into() },
        NotAllUndone { id: 12, left: left() };
        wraps File, Config, Workspace, Registry, Program, Sessions
    ]
}
