//! Detects whether a session has been continued since tine created it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use agents::{Adapter, Blocks};
use diagnostics::OrLog;
use transcript::{Block, BlockKind, SessionId};

use crate::ctx::Ctx;
use crate::operations::undo;
use crate::private;
use crate::registry::operations::{Fingerprint, Forking, content_of, stamp_of};
use crate::workspace::directory;

/// Whether a session has new messages since an operation created it. An agent that opens and closes a session appends
/// records of its own; only the conversation counts.
pub(crate) fn has_grown(ctx: &Ctx, fork: &Forking) -> bool {
    let Forking { created, fingerprint, .. } = fork;
    let Some(transcript) = created.transcript().filter(|path| agents::is_there(path)) else {
        return false;
    };
    let beside = created.session.as_ref().zip(fingerprint.beside.as_ref());
    if beside.is_some_and(|(id, then)| digest_beside(ctx, id, transcript) != *then) {
        return true;
    }
    let Some((then, now)) = fingerprint.stamp.zip(stamp_of(transcript)) else {
        return false;
    };
    match &fingerprint.content {
        Some(content) if now.0 == then.0 => content_of(transcript).as_ref() != Some(content),
        None if now.0 == then.0 => now != then,
        content => {
            let content = content.as_deref();
            now.0 < then.0 || has_more_conversation(ctx, transcript, then.0, content).unwrap_or(true)
        }
    }
}

/// The fingerprint of a complete transcript.
pub(crate) fn fingerprint(ctx: &Ctx, id: &SessionId, transcript: &Path) -> Fingerprint {
    Fingerprint {
        stamp: stamp_of(transcript),
        content: content_of(transcript),
        beside: Some(digest_beside(ctx, id, transcript)),
    }
}

/// A fingerprint of the other files that belong to a transcript's session, such as those of subagents.
fn digest_beside(ctx: &Ctx, id: &SessionId, transcript: &Path) -> String {
    let mut beside = undo::session_files(ctx, id, transcript);
    beside.retain(|path| path != transcript && transcript.parent().is_some_and(|folder| path.starts_with(folder)));
    directory::sizes_of(&beside)
}

/// Whether a transcript has more conversation than its first `size` bytes. If these no longer match `content`, it was
/// edited.
fn has_more_conversation(ctx: &Ctx, transcript: &Path, size: u64, content: Option<&str>) -> io::Result<bool> {
    let adapter = ctx.adapters().iter().find(|adapter| transcript.starts_with(adapter.home()));
    let (Some(adapter), Some(name)) = (adapter, transcript.file_name()) else {
        return Ok(true);
    };
    let folder = ctx.context().paths.cache.join(format!("before-{}", std::process::id()));
    private::create_folder(&folder)?;
    let before = folder.join(name);
    let more = copy_beginning(transcript, &before, size).and_then(|()| {
        let is_edited = content.is_some() && content_of(&before).as_deref() != content;
        Ok(is_edited || !is_same_conversation(adapter.as_ref(), &before, transcript)?)
    });
    directory::remove_tree(&folder).or_log(format_args!("remove {}", folder.display()));
    more
}

fn copy_beginning(from: &Path, to: &Path, size: u64) -> io::Result<()> {
    io::copy(&mut File::open(from)?.take(size), &mut private::new_file(to)?).map(drop)
}

fn is_same_conversation(adapter: &dyn Adapter, before: &Path, now: &Path) -> io::Result<bool> {
    let (mut before, mut now) = (adapter.read(before, None, None)?, adapter.read(now, None, None)?);
    loop {
        match (next_said(before.as_mut()), next_said(now.as_mut())) {
            (None, None) => return Ok(true),
            (Some(before), Some(now)) if (before.turn, before.kind.as_str()) == (now.turn, now.kind.as_str()) => {}
            _ => return Ok(false),
        }
    }
}

/// The next block from the user, the model or a tool. Subagents' messages are in other files.
fn next_said(blocks: &mut dyn Blocks) -> Option<Block> {
    std::iter::from_fn(|| blocks.next_block()).find(|block| {
        let is_said = !matches!(block.kind, BlockKind::Notice { .. } | BlockKind::Subagent { .. });
        is_said && block.depth == 0
    })
}
