//! Sessions that began with the transcript of another one.

use std::fs;
use std::path::Path;

use agents::Blocks;
use transcript::seed::is_seed;
use transcript::{Block, BlockKind, Defects, ParentView, TokenUse};

use crate::advice::FileError;
use crate::registry::SeedNote;
use crate::sessions::Result;

/// The conversation of a seeded session with the seed as one line.
pub(crate) struct FoldedSeed {
    blocks: Box<dyn Blocks>,
    /// What is shown for the seed.
    line: String,
}

impl FoldedSeed {
    /// `note` is what the registry knows of the seed, and `parent` the session that it came from.
    pub(crate) fn new(blocks: Box<dyn Blocks>, note: Option<&SeedNote>, parent: Option<&ParentView>) -> Self {
        let line = match note {
            Some(note) => {
                let name = parent.filter(|parent| parent.id.as_str() == note.parent).and_then(|it| it.name.as_ref());
                let source = name.map_or(note.parent.as_str(), |name| name.as_str());
                format!("(transcript of {source} up to turn {}, about {} tokens)", note.turn, note.tokens)
            }
            None => "(transcript of another session)".to_owned(),
        };
        FoldedSeed { blocks, line }
    }
}

impl Blocks for FoldedSeed {
    fn next_block(&mut self) -> Option<transcript::Block> {
        let mut block = self.blocks.next_block()?;
        match &mut block.kind {
            BlockKind::Prompt { text, .. } if is_seed(text) => text.clone_from(&self.line),
            _ => {}
        }
        Some(block)
    }

    fn tokens(&self) -> Option<transcript::TokenUse> {
        self.blocks.tokens()
    }

    fn defects(&self) -> &transcript::Defects {
        self.blocks.defects()
    }
}

/// The conversation of a fork that has not started: what its agent will be handed.
pub(crate) struct UnstartedBlocks {
    block: Option<Block>,
    defects: Defects,
}

impl UnstartedBlocks {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
        let kind = BlockKind::Prompt { text, steer: false };
        let block = Block { turn: 1, depth: 0, at: None, message: None, kind };
        Ok(UnstartedBlocks { block: Some(block), defects: Defects::default() })
    }
}

impl Blocks for UnstartedBlocks {
    fn next_block(&mut self) -> Option<Block> {
        self.block.take()
    }

    fn tokens(&self) -> Option<TokenUse> {
        None
    }

    fn defects(&self) -> &Defects {
        &self.defects
    }
}
