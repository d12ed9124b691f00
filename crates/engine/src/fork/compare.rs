//! Verifies that a fork's history matches its source's: both are read with the ordinary reader and compared block by
//! block.
//!
//! For forks that an agent created. A copy by tine is compared by content hash while it is written.

use agents::{Adapter, Blocks};
use transcript::{Block, BlockKind};

use super::Plan;
use crate::advice::FileError;
use crate::fork::{Error, Result};

/// Compares the fork at `path` with what `plan` promises.
pub(super) fn same_history(adapter: &dyn Adapter, plan: &Plan, path: &std::path::Path) -> Result<()> {
    let unreadable = |path: &std::path::Path, source| FileError::Read { path: path.to_owned(), source };
    let source = &plan.source.path;
    let mut expected_blocks =
        adapter.read(source, Some(plan.turns), None).map_err(|error| unreadable(source, error))?;
    let mut found = adapter.read(path, None, None).map_err(|error| unreadable(path, error))?;
    let (mut next_expected, mut next_found) = (next(expected_blocks.as_mut()), next(found.as_mut()));
    // An agent's own fork drops the turns before the last compaction; the plan has listed that loss.
    if plan.after_compaction {
        let last = |path: &std::path::Path, until| -> Result<usize> {
            let mut blocks = adapter.read(path, until, None).map_err(|error| unreadable(path, error))?;
            Ok(std::iter::from_fn(|| blocks.next_block()).filter(|block| is_compaction(Some(block))).count())
        };
        for _ in 0..last(source, Some(plan.turns))? {
            next_expected = next_after_compaction(next_expected, expected_blocks.as_mut());
        }
        for _ in 0..last(path, None)? {
            next_found = next_after_compaction(next_found, found.as_mut());
        }
    }
    loop {
        match (&next_expected, &next_found) {
            (None, None) => return Ok(()),
            // Before it forks, an agent ends an interrupted turn in its own words.
            (None, Some(found)) if plan.unfinished && found.turn == plan.turns && !is_prompt(found) => {}
            (Some(expected), Some(found)) if is_same(expected, found, plan.after_compaction) => {}
            // Claude Code 2.1.197 leaves out a call without a result.
            (Some(expected), _) if plan.unfinished && expected.turn == plan.turns && is_call(expected) => {
                next_expected = next(expected_blocks.as_mut());
                continue;
            }
            (expected, found) => {
                let turn = expected.as_ref().or(found.as_ref()).map_or(0, |block| block.turn);
                let what = format!("the agent's own fork differs from its source in turn {turn}");
                return Err(Error::NativeDiffers { agent: plan.agent, what });
            }
        }
        (next_expected, next_found) = (next(expected_blocks.as_mut()), next(found.as_mut()));
    }
}

/// The next block of the main conversation. Subagents' transcripts are separate and are copied afterwards.
fn next(blocks: &mut dyn Blocks) -> Option<Block> {
    loop {
        match blocks.next_block()? {
            block if block.depth > 0 || matches!(block.kind, BlockKind::Subagent { .. }) => {}
            block => return Some(block),
        }
    }
}

/// The block after the next compaction.
fn next_after_compaction(mut block: Option<Block>, blocks: &mut dyn Blocks) -> Option<Block> {
    while block.is_some() && !is_compaction(block.as_ref()) {
        block = next(blocks);
    }
    next(blocks)
}

fn is_prompt(block: &Block) -> bool {
    matches!(block.kind, BlockKind::Prompt { .. })
}

fn is_call(block: &Block) -> bool {
    matches!(block.kind, BlockKind::Call { .. })
}

fn is_compaction(block: Option<&Block>) -> bool {
    block.is_some_and(|block| matches!(block.kind, BlockKind::Compaction { .. }))
}

fn is_same(expected: &Block, found: &Block, renumbered: bool) -> bool {
    match (&expected.kind, &found.kind) {
        // A large output is in a file next to the transcript, which does not exist yet.
        (BlockKind::Output { call: a, .. }, BlockKind::Output { call: b, text, .. })
            if text.starts_with("<persisted-output>") =>
        {
            a == b
        }
        (a, b) => a == b && (renumbered || expected.turn == found.turn),
    }
}
