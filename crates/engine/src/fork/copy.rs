//! The method `copy`: tine writes the new session file, beside its final name, and reads it back.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use agents::{CopyOrder, Store};

use super::Plan;
use crate::Tine;
use crate::error::{Error, Result};
use crate::private;

impl Tine {
    /// Writes everything beside its final name, flushes it, and compares it with the source. A worktree is made after
    /// that: flushing a file makes some file systems flush all that was written before it, a whole worktree included.
    pub(super) fn prepare(&self, store: &dyn Store, plan: &Plan, files: &Files) -> Result<()> {
        let failed = |source: io::Error| Error::CannotWrite { path: plan.target.clone(), source };
        let source = &plan.source.path;
        let order = CopyOrder {
            source_id: plan.source.id.clone(),
            id: plan.id.clone(),
            turns: (!plan.whole).then_some(plan.turns),
            cwd: plan.workspace.path.clone(),
            branch: plan.workspace.branch.clone(),
            title: Some(plan.name.to_string()),
            target: plan.target.clone(),
            now: self.context().clock.now(),
        };
        let folder = plan.target.parent().unwrap_or(Path::new("."));
        private::create_folder(folder).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 20, private::open_file(&files.transcript).map_err(failed)?);
        store.copy(source, &order, &mut out).map_err(failed)?;
        out.flush().map_err(failed)?;
        out.get_ref().sync_all().map_err(failed)?;
        store.copy_side(source, &order, &files.side).map_err(failed)?;
        self.check(store, plan, files)
    }

    /// Reads the copy back with the ordinary reader and compares it with the source, block by block.
    fn check(&self, store: &dyn Store, plan: &Plan, files: &Files) -> Result<()> {
        let wrong = |what: &str| Error::CopyDiffers { what: what.to_owned() };
        let copy = store.scan(&files.transcript);
        if copy.turns != plan.turns {
            return Err(wrong(&format!("it has {} turns instead of {}", copy.turns, plan.turns)));
        }
        let unreadable = |path: &Path, source| Error::Unreadable { path: path.to_owned(), source };
        let until = Some(plan.turns);
        let source = &plan.source.path;
        let mut expected = store.read(source, until, None).map_err(|error| unreadable(source, error))?;
        let mut found =
            store.read(&files.transcript, None, None).map_err(|error| unreadable(&files.transcript, error))?;
        // Subagents' blocks are compared where both have them: the copy's side folder is not in place yet.
        let next = |blocks: &mut dyn agents::Blocks| loop {
            match blocks.next_block() {
                Some(block) if block.depth > 0 => {}
                Some(block) if matches!(block.kind, transcript::BlockKind::Subagent { .. }) => {}
                other => return other,
            }
        };
        loop {
            match (next(expected.as_mut()), next(found.as_mut())) {
                (None, None) => return Ok(()),
                (Some(expected), Some(found)) if expected == found => {}
                // Large outputs are read from the side folder, which is compared by its files.
                (Some(expected), Some(found)) if is_stored_output(&expected, &found) => {}
                (expected, found) => {
                    let turn = expected.or(found).map_or(0, |block| block.turn);
                    return Err(wrong(&format!("it differs in turn {turn}")));
                }
            }
        }
    }
}

fn is_stored_output(expected: &transcript::Block, found: &transcript::Block) -> bool {
    use transcript::BlockKind::Output;
    match (&expected.kind, &found.kind) {
        (Output { call: a, .. }, Output { call: b, text, .. }) => a == b && text.starts_with("<persisted-output>"),
        _ => false,
    }
}

/// What a fork makes, under the names that it has until it is complete.
pub(super) struct Files {
    transcript: PathBuf,
    side: PathBuf,
    target: PathBuf,
    /// The folder of what belongs to the session outside of its transcript, in the end.
    pub(super) final_side: PathBuf,
}

impl Files {
    pub(super) fn of(plan: &Plan) -> Self {
        let folder = plan.target.parent().unwrap_or(Path::new("."));
        Files {
            // Neither agents nor tine take a file of such a name for a session.
            transcript: folder.join(format!(".{}.tine-new", plan.id)),
            side: folder.join(format!(".{}.tine-side", plan.id)),
            target: plan.target.clone(),
            final_side: plan.target.with_extension(""),
        }
    }

    pub(super) fn all(&self) -> Vec<PathBuf> {
        vec![self.transcript.clone(), self.side.clone(), self.target.clone(), self.final_side.clone()]
    }

    /// Gives everything its final name, the transcript last: with it the fork is there for the agent.
    pub(super) fn put_in_place(&self) -> Result<()> {
        let failed = |source: io::Error| Error::CannotWrite { path: self.target.clone(), source };
        if self.side.is_dir() {
            fs::rename(&self.side, &self.final_side).map_err(failed)?;
        }
        fs::rename(&self.transcript, &self.target).map_err(failed)
    }
}
