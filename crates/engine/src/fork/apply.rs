//! Carrying out a plan.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use agents::{CopyOrder, Store};
use transcript::{ParentSource, SessionView};

use super::Plan;
use crate::Tine;
use crate::error::{Error, Result};
use crate::operations::Effects;
use crate::private;
use crate::registry::{Lineage, SessionKey};

/// A fork that was made.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new session.
    pub session: SessionView,
    /// The operation, which `undo` reverses.
    pub operation: i64,
}

impl Tine {
    /// Makes the fork that `plan` describes. On any failure nothing of it is left.
    pub fn apply_fork(&self, plan: &Plan) -> Result<Forked> {
        let store = self.store(plan.source.agent);
        let files = Files::of(plan);
        let now = self.context().clock.now();
        let worktree = plan.workspace.worktree.clone();
        let mut effects = Effects { session: Some(plan.id.clone()), made: files.all(), worktree, stamp: None };
        let what = format!("fork {} after turn {} as {}", plan.source.label(), plan.turns, plan.name);
        let operation = self.registry().begin_operation("fork", &what, &effects, now)?;
        let with_worktree = self.prepare(store, plan, &files).and_then(|()| self.make_worktree(plan));
        if with_worktree.is_err() {
            // What stands at that place, if anything does, was made by somebody else and is not ours to remove.
            effects.worktree = None;
        }
        let made = with_worktree
            .and_then(|()| put_in_place(plan, &files))
            .and_then(|()| self.register(plan, &files, operation));
        if let Err(error) = made {
            self.remove_effects(&effects);
            let _ = self.registry().end_operation(operation, "failed", None);
            return Err(error);
        }
        let session = self.outside_session(&plan.target)?;
        Ok(Forked { session: session.view, operation })
    }

    /// Makes the worktree, or fails and leaves nothing of it: git takes back what it could not finish.
    fn make_worktree(&self, plan: &Plan) -> Result<()> {
        let Some(worktree) = &plan.workspace.worktree else {
            return Ok(());
        };
        let git = self.git()?;
        git.add(worktree)?;
        // The source may work in a directory that is not committed.
        let path = &plan.workspace.path;
        fs::create_dir_all(path).map_err(|source| {
            git.remove(worktree);
            Error::CannotWrite { path: path.clone(), source }
        })
    }

    /// Writes everything beside its final name, flushes it, and compares it with the source. A worktree is made after
    /// that: flushing a file makes some file systems flush all that was written before it, a whole worktree included.
    fn prepare(&self, store: &dyn Store, plan: &Plan, files: &Files) -> Result<()> {
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

    fn register(&self, plan: &Plan, files: &Files, operation: i64) -> Result<()> {
        let now = self.context().clock.now();
        let key = SessionKey { agent: plan.source.agent, id: plan.id.clone(), path: plan.target.clone() };
        let parent = Lineage {
            agent: plan.source.agent,
            id: plan.source.id.clone(),
            turn: Some(plan.turns),
            source: ParentSource::Tine,
        };
        let mut made = vec![plan.target.clone()];
        made.extend(files.final_side.is_dir().then(|| files.final_side.clone()));
        let stamp = fs::metadata(&plan.target).ok().map(|metadata| (metadata.len(), agents::stamp(&metadata).modified));
        let worktree = plan.workspace.worktree.clone();
        let effects = Effects { session: Some(plan.id.clone()), made, worktree, stamp };
        if !self.registry().register_fork(&key, &plan.name, &parent, operation, &effects, now)? {
            return Err(Error::NameTaken(plan.name.clone()));
        }
        Ok(())
    }
}

/// Gives everything its final name, the transcript last: with it the fork is there for the agent.
fn put_in_place(plan: &Plan, files: &Files) -> Result<()> {
    let failed = |source: io::Error| Error::CannotWrite { path: plan.target.clone(), source };
    if files.side.is_dir() {
        fs::rename(&files.side, &files.final_side).map_err(failed)?;
    }
    fs::rename(&files.transcript, &plan.target).map_err(failed)
}

fn is_stored_output(expected: &transcript::Block, found: &transcript::Block) -> bool {
    use transcript::BlockKind::Output;
    match (&expected.kind, &found.kind) {
        (Output { call: a, .. }, Output { call: b, text, .. }) => a == b && text.starts_with("<persisted-output>"),
        _ => false,
    }
}

/// What a fork makes, under the names that it has until it is complete.
struct Files {
    transcript: PathBuf,
    side: PathBuf,
    target: PathBuf,
    final_side: PathBuf,
}

impl Files {
    fn of(plan: &Plan) -> Self {
        let folder = plan.target.parent().unwrap_or(Path::new("."));
        Files {
            // Neither agents nor tine take a file of such a name for a session.
            transcript: folder.join(format!(".{}.tine-new", plan.id)),
            side: folder.join(format!(".{}.tine-side", plan.id)),
            target: plan.target.clone(),
            final_side: plan.target.with_extension(""),
        }
    }

    fn all(&self) -> Vec<PathBuf> {
        vec![self.transcript.clone(), self.side.clone(), self.target.clone(), self.final_side.clone()]
    }
}
