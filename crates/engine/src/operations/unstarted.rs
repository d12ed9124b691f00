//! Recovers forks whose start was interrupted.

use std::fs;

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::operations::Result;
use crate::operations::{clean_up, undo};
use crate::registry::operations::{Created, Effects, Forking, Operation, OperationState, Stage};

/// Removes a transcript that was sent.
pub(crate) fn forget_sent(ctx: &Ctx, operation: i64, mut fork: Forking) -> Result<()> {
    if let Some(kept) = fork.kept.take() {
        match fs::remove_file(&kept.file) {
            Err(source) if kept.file.exists() => return Err(FileError::Write { path: kept.file, source }.into()),
            _ => {}
        }
    }
    Ok(ctx.registry().set_state(operation, &OperationState::Done, Some(&Effects::Fork(fork)))?)
}

/// Recovers the interrupted start of a fork, and returns a report.
pub(crate) fn recover_start(ctx: &Ctx, operation: &Operation, fork: &Forking) -> Result<String> {
    let what = &operation.what;
    match fork.kept.as_ref().map(|kept| &kept.stage) {
        Some(Stage::Sent) => {
            forget_sent(ctx, operation.id, fork.clone())?;
            Ok(format!("`{what}`: the fork has started"))
        }
        Some(Stage::Waiting | Stage::Sending { .. }) | None => {
            give_up_start(ctx, operation.id, fork.clone())?;
            Ok(format!("`{what}`: starting the fork was interrupted; it has not started"))
        }
    }
}

/// Removes what the start of a fork has made; afterwards the fork has not started.
pub(crate) fn give_up_start(ctx: &Ctx, operation: i64, mut fork: Forking) -> Result<()> {
    let written = clean_up::end_agents(ctx, fork.mark.take().as_deref());
    let Some(kept) = &mut fork.kept else { return Ok(()) };
    let target = match std::mem::replace(&mut kept.stage, Stage::Waiting) {
        Stage::Sending { target, .. } => target,
        Stage::Waiting | Stage::Sent => None,
    };
    let mut left = Created { session: fork.created.session.clone(), ..Created::default() };
    if let (Some(path), Some(id)) = (target, &left.session) {
        left.files = undo::session_files(ctx, id, &path);
    }
    clean_up::find_expected(ctx, &mut left, fork.expects.take().as_ref(), &written);
    clean_up::remove_created(ctx, &left)?;
    ctx.registry().forget_made(&left.files)?;
    Ok(ctx.registry().set_state(operation, &OperationState::Done, Some(&Effects::Fork(fork)))?)
}
