//! The turns of a session in short, for choosing one of them.

use agents::Blocks;
use transcript::render::changed_files;
use transcript::{Block, BlockKind, text};

use crate::ctx::Ctx;
use crate::sessions::Result;
use crate::sessions::pages::{Extent, Pages};
use crate::sessions::session::Session;
use crate::sessions::survey::{self, SeedText};

/// Of a larger transcript, only the last pages are read.
const WHOLE: u64 = 16 << 20;
/// How many pages are read of such a transcript.
const PAGES: usize = 8;
/// How many characters of a prompt and an answer are kept.
const LENGTH: usize = 200;
/// How many files are named for a turn.
const FILES: usize = 20;

/// A turn in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSummary {
    /// Its number.
    pub turn: u32,
    /// The prompt, on one line.
    pub prompt: String,
    /// The first line of the last answer.
    pub answer: Option<String>,
    /// The files that it changed.
    pub files: Vec<String>,
    /// The tokens of the conversation up to its end, if the agent reported them.
    pub tokens: Option<u64>,
}

/// The turns of a session. Of a large one, only the last turns.
pub(crate) fn turns(ctx: &Ctx, session: &Session) -> Result<Vec<TurnSummary>> {
    let mut turns = Vec::new();
    if session.size <= WHOLE {
        read(&mut *survey::read(ctx, session, None, SeedText::Folded)?, &mut turns);
        return Ok(turns);
    }
    let pages = Pages::of(ctx, session);
    let mut extents = vec![pages.last()];
    // Elsewhere, each page costs a pass over the whole file.
    let is_cheap = |extent: &Extent| matches!(extent, Extent::Bytes { .. });
    while let Some(before) = extents.last().filter(|extent| is_cheap(extent)).and_then(|extent| pages.before(extent)) {
        extents.push(before);
        if extents.len() == PAGES {
            break;
        }
    }
    for extent in extents.iter().rev() {
        read(&mut *pages.read(extent)?, &mut turns);
    }
    // The first page may begin in the middle of a turn.
    turns.retain(|turn| !turn.prompt.is_empty());
    Ok(turns)
}

fn read(blocks: &mut dyn Blocks, turns: &mut Vec<TurnSummary>) {
    while let Some(block) = blocks.next_block() {
        let tokens = blocks.tokens().map(|tokens| tokens.context());
        add(&block, tokens, turns);
    }
}

fn add(block: &Block, tokens: Option<u64>, turns: &mut Vec<TurnSummary>) {
    if block.turn == 0 {
        return;
    }
    if turns.last().is_none_or(|last| last.turn < block.turn) {
        let turn = block.turn;
        turns.push(TurnSummary { turn, prompt: String::new(), answer: None, files: Vec::new(), tokens: None });
    }
    let Some(turn) = turns.last_mut() else { return };
    turn.tokens = tokens.or(turn.tokens);
    match &block.kind {
        BlockKind::Prompt { text, steer: false } if block.depth == 0 => turn.prompt = short(text),
        BlockKind::Answer { text, .. } if block.depth == 0 => {
            let first = text.lines().map(str::trim).find(|line| !line.is_empty());
            turn.answer = first.map(short).or(turn.answer.take());
        }
        BlockKind::Call { name, input, .. } => {
            for file in changed_files(name, input) {
                if turn.files.len() < FILES && !turn.files.contains(&file) {
                    turn.files.push(file);
                }
            }
        }
        _ => {}
    }
}

fn short(words: &str) -> String {
    // Only what is shown has to be cleaned.
    text::clip(&text::one_line(text::prefix(words, 4 * LENGTH)), LENGTH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn block(turn: u32, depth: u8, kind: BlockKind) -> Block {
        Block { turn, depth, at: None, message: None, kind }
    }

    #[test]
    fn a_turn_has_its_prompt_its_last_answer_and_the_files_it_changed() {
        let answer = |text: &str| BlockKind::Answer { text: text.into(), model: None };
        let edit = |file: &str| {
            let input = json!({"file_path": file, "old_string": "a", "new_string": "b"});
            BlockKind::Call { id: file.into(), name: "Edit".into(), input }
        };
        let blocks = [
            block(0, 0, answer("Before the first prompt.")),
            block(1, 0, BlockKind::Prompt { text: "Fix\nit".into(), steer: false }),
            block(1, 0, answer("I look first.")),
            block(1, 0, edit("a.rs")),
            block(1, 1, edit("b.rs")),
            block(1, 0, edit("a.rs")),
            block(1, 0, BlockKind::Prompt { text: "faster".into(), steer: true }),
            block(1, 0, answer("\nDone.\nMore.")),
            block(1, 1, answer("Of a subagent.")),
            block(2, 0, BlockKind::Prompt { text: "Thanks".into(), steer: false }),
        ];
        let mut turns = Vec::new();
        for (place, block) in blocks.iter().enumerate() {
            add(block, Some(place as u64), &mut turns);
        }
        let expected = [
            TurnSummary {
                turn: 1,
                prompt: "Fix it".into(),
                answer: Some("Done.".into()),
                files: vec!["a.rs".into(), "b.rs".into()],
                tokens: Some(8),
            },
            TurnSummary { turn: 2, prompt: "Thanks".into(), answer: None, files: Vec::new(), tokens: Some(9) },
        ];
        assert_eq!(turns, expected);
    }
}
