//! The method `copy`: tine writes the new session file next to its final name and reads it back.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agents::{Adapter, CopyRequest, SideFile, write_copy};
use jiff::Timestamp;
use transcript::{Agent, DefectKind, Summary};

use super::{Method, Plan};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::fork::{Error, Result};
use crate::private;
use crate::registry::operations::Note;
use crate::sessions::catalog::Entry;
use crate::sessions::session::{Knowledge, Session};
use crate::workspace::directory;

/// Writes everything next to its final name, flushes it, and compares it with the source. A worktree is created later:
/// on some file systems, flushing a file also flushes everything written before it, including a whole worktree.
pub(super) fn prepare(ctx: &Ctx, adapter: &dyn Adapter, plan: &Plan, files: &Files) -> Result<()> {
    let failed = |source: io::Error| FileError::Write { path: plan.target.clone(), source };
    let unreadable = |source| FileError::Read { path: plan.source.path.clone(), source };
    agents::check_readable(&plan.source.path).map_err(unreadable)?;
    let order = order(plan, ctx.context().clock.now());
    private::create_folder(agents::folder_of(&plan.target)).map_err(failed)?;
    let file = private::open_file(&files.transcript).map_err(failed)?;
    let copy = (files.transcript.as_path(), &file);
    let (copied, found) = write_copy(adapter, &plan.source.path, &order, plan.known.as_ref(), copy).map_err(failed)?;
    let differs = |what| Error::CopyDiffers { what };
    copied.compare(&found, &order).map_err(differs)?;
    if found.summary.turns != plan.turns {
        return Err(differs(format!("it has {} turns instead of {}", found.summary.turns, plan.turns)));
    }
    let cut = (!plan.whole).then_some(files.transcript.as_path());
    files.prepare_beside(adapter, &plan.source.path, &order, cut).map_err(failed)?;
    files.summary.replace(Some(found.summary));
    Ok(())
}

/// The session that was made. What was found out when it was read back need not be found out again.
pub(super) fn made_session(ctx: &Ctx, agent: Agent, files: &Files, path: &Path) -> Result<Session> {
    let summary = files.summary.take();
    let Some(mut summary) = summary.or_else(|| files.is_translated.then(|| ctx.adapter(agent).scan(path))) else {
        return Ok(crate::sessions::survey::outside_session(ctx, path)?);
    };
    // They were not in place yet when the copy was read back.
    summary.defects.forget(DefectKind::MissingSubagent);
    if let Err(error) = ctx.adapter(agent).add_to_index(path, &summary) {
        ctx.warn(format!("the fork was not added to the agent's own session list: {error}"));
    }
    let stamp = agents::session_stamp(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    let registry = ctx.registry();
    let knowledge = Knowledge::new(&registry, HashMap::new(), HashMap::new())?;
    Ok(knowledge.session(Entry::fresh(summary, stamp)))
}

pub(super) fn order(plan: &Plan, now: Timestamp) -> CopyRequest {
    CopyRequest {
        source_id: plan.source.id.clone(),
        id: plan.id.clone(),
        // What the source gets while it is copied is not the fork's; where its size is not known, turns are counted.
        turns: (!plan.whole || plan.known.is_none()).then_some(plan.turns),
        tip: plan.tip,
        relink: plan.relinks,
        cwd: plan.workspace.path.clone(),
        branch: plan.workspace.branch.clone(),
        title: Some(plan.name.to_string()),
        target: plan.target.clone(),
        now,
    }
}

/// What a fork makes, under the names that it has until it is complete.
pub(super) struct Files {
    transcript: PathBuf,
    target: PathBuf,
    /// Whether the session is a translation, so that it is new to its agent.
    is_translated: bool,
    /// Files of the session besides its transcript.
    beside: Vec<SideFile>,
    /// What of that was put into folders that belong to others as well.
    brought: RefCell<Vec<PathBuf>>,
    /// The facts of the copy, once it was read back.
    summary: RefCell<Option<Summary>>,
}

impl Files {
    pub(super) fn of(ctx: &Ctx, plan: &Plan) -> Self {
        Files {
            // Neither agents nor tine take a file of such a name for a session.
            transcript: agents::beside(&plan.target, &format!(".{}.tine-new", plan.id)),
            target: plan.target.clone(),
            is_translated: plan.method == Method::Translate,
            beside: match plan.method {
                // What the agent needs beside any new session; nothing of the source's.
                Method::Translate => {
                    ctx.adapter(plan.agent).side_files(&plan.target, &order(plan, Timestamp::UNIX_EPOCH))
                }
                _ => ctx.adapter(plan.agent).side_files(&plan.source.path, &order(plan, Timestamp::UNIX_EPOCH)),
            },
            brought: RefCell::default(),
            summary: RefCell::default(),
        }
    }

    /// Prepares everything besides the transcript.
    pub(super) fn prepare_beside(
        &self,
        adapter: &dyn Adapter,
        source: &Path,
        order: &CopyRequest,
        cut: Option<&Path>,
    ) -> io::Result<()> {
        self.beside.iter().try_for_each(|piece| adapter.copy_side_file(source, piece, order, cut))
    }

    /// Where the transcript is prepared.
    pub(super) fn transcript(&self) -> &Path {
        &self.transcript
    }

    /// Every name that is the fork's alone and under which something may be there before it is complete.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let mut all = vec![self.transcript.clone(), self.target.clone()];
        all.extend(self.beside.iter().map(|piece| piece.prepared.clone()));
        // A name in a folder that belongs to others as well may be taken by one of them at any time.
        all.extend(self.beside.iter().filter(|piece| !piece.shared).map(|piece| piece.place.clone()));
        all
    }

    /// Folders that are not there yet and will be made for it, the deepest first.
    pub(super) fn missing_folders(&self) -> Vec<PathBuf> {
        let places = self.beside.iter().flat_map(|piece| [&piece.place, &piece.prepared]).chain([&self.transcript]);
        let above = places.flat_map(|place| place.ancestors().skip(1).take_while(|folder| !folder.exists()));
        let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
        missing.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        missing.dedup();
        missing
    }

    /// Whether a copy would bring notes into another project.
    pub(super) fn copies_notes(&self) -> bool {
        self.beside.iter().any(|piece| piece.shared)
    }

    /// What is about to be put into folders that belong to others as well, each with a fingerprint of what it holds.
    pub(super) fn notes(&self) -> Result<Vec<Note>> {
        let shared = self.beside.iter().filter(|piece| piece.shared && piece.prepared.exists());
        let note = |piece: &SideFile| {
            let unreadable = |source| FileError::Read { path: piece.prepared.clone(), source };
            let digest = directory::content_digest(&piece.prepared).map_err(unreadable)?;
            Ok(Note { path: piece.place.clone(), digest })
        };
        shared.map(note).collect()
    }

    /// What was put into folders that belong to others as well.
    pub(super) fn brought(&self) -> Vec<PathBuf> {
        self.brought.borrow().clone()
    }

    /// Gives everything its final name, the transcript last: the agent sees the fork from then on.
    pub(super) fn put_in_place(&self) -> Result<()> {
        let failed = |source: io::Error| FileError::Write { path: self.target.clone(), source };
        let mut placed = vec![self.transcript.as_path()];
        for piece in self.beside.iter().filter(|piece| piece.prepared.exists()) {
            placed.push(&piece.place);
            if move_into_place(piece).map_err(failed)? && piece.shared {
                self.brought.borrow_mut().push(piece.place.clone());
            }
        }
        // One flush for each folder and the one above it, which may be new as well.
        let folders: BTreeSet<&Path> = placed.iter().flat_map(|place| place.ancestors().skip(1).take(2)).collect();
        for folder in folders {
            private::sync_folder(folder).map_err(failed)?;
        }
        Ok(private::rename(&self.transcript, &self.target).map_err(failed)?)
    }
}

/// Gives one file its final name. Returns false if a file of that name has appeared in the meantime; it is kept.
fn move_into_place(piece: &SideFile) -> io::Result<bool> {
    private::create_folder(piece.place.parent().unwrap_or(Path::new(".")))?;
    if !piece.shared {
        return fs::rename(&piece.prepared, &piece.place).map(|()| true);
    }
    // A link is never made over a file, as a new name would be.
    let placed = fs::hard_link(&piece.prepared, &piece.place);
    fs::remove_file(&piece.prepared)?;
    Ok(placed.is_ok())
}
