//! Marks at the end of turns that changed files: which, and how many lines.

use std::path::{Path, PathBuf};

use agents::{Act, Blocks, FileAct, FileEdit};
use transcript::{Block, BlockKind, Defects, NoticeKind, TokenUse};

/// The number of files that are named.
const NAMED: usize = 8;

/// Blocks with a mark after each turn that changed files.
pub(crate) struct Marked<'a> {
    blocks: Box<dyn Blocks + 'a>,
    directory: Option<PathBuf>,
    turn: u32,
    /// The files of the turn, with added and removed lines.
    files: Vec<(PathBuf, usize, usize)>,
    held: Option<Block>,
}

impl<'a> Marked<'a> {
    /// `blocks` collect acts; paths are shown relative to `directory`.
    pub(crate) fn new(blocks: Box<dyn Blocks + 'a>, directory: Option<&Path>) -> Self {
        Marked { blocks, directory: directory.map(Path::to_owned), turn: 0, files: Vec::new(), held: None }
    }

    fn take(&mut self) {
        for FileAct { directory, act, .. } in self.blocks.take_acts() {
            let Act::Touch(touch) = act else { continue };
            if touch.change == FileEdit::Nothing {
                continue;
            }
            let path = touch.moved_to.as_ref().unwrap_or(&touch.path);
            let path = directory.as_ref().map_or_else(|| path.clone(), |directory| directory.join(path));
            let (added, removed) = touch.lines();
            match self.files.iter_mut().find(|(known, ..)| *known == path) {
                Some((_, more, less)) => (*more, *less) = (*more + added, *less + removed),
                None => self.files.push((path, added, removed)),
            }
        }
    }

    fn mark(&mut self) -> Option<Block> {
        let files = std::mem::take(&mut self.files);
        let (added, removed) = files.iter().fold((0, 0), |(added, removed), file| (added + file.1, removed + file.2));
        let mut words: Vec<String> = Vec::new();
        for (path, added, removed) in files.iter().take(NAMED) {
            let short = self.directory.as_ref().and_then(|directory| path.strip_prefix(directory).ok()).unwrap_or(path);
            words.push(match files.len() {
                1 => short.display().to_string(),
                _ => format!("{} (+{added} −{removed})", short.display()),
            });
        }
        if files.len() > NAMED {
            words.push(format!("and {} more", files.len() - NAMED));
        }
        let text = format!("+{added} −{removed} {}", words.join(", "));
        let kind = BlockKind::Notice { notice: NoticeKind::Files, text };
        (!files.is_empty()).then_some(Block { turn: self.turn, depth: 0, at: None, message: None, kind })
    }
}

impl Blocks for Marked<'_> {
    fn next_block(&mut self) -> Option<Block> {
        if let Some(block) = self.held.take() {
            return Some(block);
        }
        let block = self.blocks.next_block();
        let ends = block.as_ref().is_none_or(|block| block.depth == 0 && block.turn > self.turn);
        self.take();
        if !ends {
            return block;
        }
        let mark = self.mark();
        self.turn = block.as_ref().map_or(self.turn, |block| block.turn);
        match mark {
            Some(mark) => {
                self.held = block;
                Some(mark)
            }
            None => block,
        }
    }

    fn tokens(&self) -> Option<TokenUse> {
        self.blocks.tokens()
    }

    fn defects(&self) -> &Defects {
        self.blocks.defects()
    }

    fn leaves_tools_out(&self) -> bool {
        self.blocks.leaves_tools_out()
    }

    fn turn_began(&self) -> Option<agents::TurnStart> {
        self.blocks.turn_began()
    }
}
