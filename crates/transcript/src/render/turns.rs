//! Where turns begin and how deep the current block is, the same for every renderer.

use crate::{Block, BlockKind};

/// Follows the blocks of a session and determines where each of them belongs.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: Option<u32>,
    /// The deepest level that a block may be at: one below the last subagent, else that of the last block.
    deepest: usize,
}

/// Where a block belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Whether a turn starts with it.
    pub(super) opens_turn: bool,
    /// How many subagents it is nested in.
    pub(super) depth: usize,
}

impl Turns {
    /// How deep the next block will be.
    pub(super) fn depth_of(&self, block: &Block) -> usize {
        let deepest = if self.opens(block) { 0 } else { self.deepest };
        usize::from(block.depth).min(deepest)
    }

    fn opens(&self, block: &Block) -> bool {
        match self.open {
            None => true,
            Some(_) if block.depth > 0 => false,
            Some(number) => is_turn_prompt(block) || number != block.turn,
        }
    }

    /// Takes the next block.
    ///
    /// A prompt opens a turn. So does a block of the session itself that is numbered otherwise than what is open:
    /// its prompt is missing, as in a damaged file or in an excerpt.
    pub(super) fn next(&mut self, block: &Block) -> Position {
        let opens_turn = self.opens(block);
        if opens_turn {
            self.open = Some(block.turn);
            self.deepest = 0;
        }
        let depth = usize::from(block.depth).min(self.deepest);
        self.deepest = depth + usize::from(matches!(block.kind, BlockKind::Subagent { .. }));
        Position { opens_turn, depth }
    }
}

/// Whether the block is a prompt that opens a turn of the session itself.
pub(super) fn is_turn_prompt(block: &Block) -> bool {
    block.depth == 0 && matches!(block.kind, BlockKind::Prompt { steer: false, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_begin_at_prompts_and_at_new_numbers() {
        let prompt = |steer| BlockKind::Prompt { text: String::new(), steer };
        let answer = || BlockKind::Answer { text: String::new(), model: None };
        let subagent = || BlockKind::Subagent { id: String::new(), role: None, description: None };
        let mut turns = Turns::default();
        let mut check = |turn, depth, kind, opens_turn, expected_depth| {
            let position = turns.next(&Block { turn, depth, at: None, message: None, kind });
            assert_eq!(position, Position { opens_turn, depth: expected_depth });
        };
        check(0, 0, answer(), true, 0);
        check(1, 0, prompt(false), true, 0);
        check(1, 0, prompt(true), false, 0);
        check(1, 0, subagent(), false, 0);
        check(1, 1, prompt(false), false, 1);
        check(1, 1, subagent(), false, 1);
        check(1, 2, answer(), false, 2);
        check(1, 9, answer(), false, 2);
        check(1, 0, answer(), false, 0);
        check(1, 1, answer(), false, 0);
        check(2, 0, answer(), true, 0);
        check(2, 0, prompt(false), true, 0);
    }
}
