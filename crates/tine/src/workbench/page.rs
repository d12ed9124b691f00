//! A part of a transcript that is laid out, and what is folded in it.

use std::collections::HashSet;
use std::sync::Arc;

use diagnostics::OrLog;
use engine::Extent;
use ratatui::text::Line;
use transcript::render::{Detail, Style, Terminal};
use transcript::{Block, BlockKind};

use super::document::{Document, RenderedText};

/// A part of a transcript.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Which part.
    pub extent: Extent,
    /// Its blocks, for folding and copying.
    pub blocks: Arc<Vec<Block>>,
    /// Its lines.
    pub layout: PageLayout,
    /// About how much memory it takes.
    pub weight: usize,
    /// Whether nothing follows.
    pub is_last: bool,
}

/// The lines of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageLayout {
    /// The lines, and where turns begin.
    pub document: Document,
    /// Where each block begins that has lines: the block and the line.
    pub places: Vec<(usize, usize)>,
}

/// How pages are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageStyle {
    /// The columns.
    pub width: u16,
    /// What is folded.
    pub folds: Folds,
}

/// What is folded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Folds {
    /// Whether tool calls are open.
    pub tools: bool,
    /// Whether thinking is shown.
    pub thinking: bool,
    /// Whether only prompts and final answers are shown.
    pub focus: bool,
    /// The blocks that are the other way round.
    pub flipped: HashSet<String>,
}

impl Folds {
    /// The name of a block that can be folded.
    pub(crate) fn key(extent: &Extent, place: usize, block: &Block) -> Option<String> {
        let from = match extent {
            Extent::Bytes { from, .. } => *from,
            Extent::Turns { from, .. } => u64::from(*from),
        };
        match &block.kind {
            BlockKind::Call { id, .. } | BlockKind::Output { call: id, .. } if !id.is_empty() => Some(id.clone()),
            BlockKind::Subagent { id, .. } => Some(format!("subagent {id}")),
            BlockKind::Compaction { .. }
            | BlockKind::Notice { .. }
            | BlockKind::Call { .. }
            | BlockKind::Output { .. } => Some(format!("{from}:{place}")),
            _ => None,
        }
    }

    fn is_open(&self, key: Option<&String>) -> bool {
        self.tools != key.is_some_and(|key| self.flipped.contains(key))
    }
}

/// How much of each block is shown.
fn details(extent: &Extent, blocks: &[Block], folds: &Folds) -> Vec<Detail> {
    let is_answer = |block: &Block| block.depth == 0 && matches!(block.kind, BlockKind::Answer { .. });
    // Whether what is nested one level deeper is shown, for each level.
    let mut levels = vec![true];
    let mut details = Vec::with_capacity(blocks.len());
    for (place, block) in blocks.iter().enumerate() {
        let depth = usize::from(block.depth);
        levels.truncate(depth + 1);
        let is_visible = levels.len() > depth && levels[depth];
        let key = Folds::key(extent, place, block);
        let is_open = folds.is_open(key.as_ref());
        if matches!(block.kind, BlockKind::Subagent { .. }) {
            levels.resize(depth + 1, folds.tools);
            levels.push(is_visible && is_open);
        }
        details.push(match &block.kind {
            _ if !is_visible => Detail::Hidden,
            BlockKind::Prompt { .. } => Detail::Folded,
            BlockKind::Answer { .. } if folds.focus => {
                let rest = blocks[place + 1..].iter().take_while(|other| other.turn == block.turn);
                if rest.clone().any(is_answer) || !is_answer(block) { Detail::Hidden } else { Detail::Folded }
            }
            _ if folds.focus => Detail::Hidden,
            BlockKind::Thinking { .. } if folds.thinking => Detail::Open,
            BlockKind::Thinking { .. } => Detail::Hidden,
            _ if is_open => Detail::Open,
            _ => Detail::Folded,
        });
    }
    details
}

/// Lays the blocks of a page out.
pub(crate) fn lay_out(extent: &Extent, blocks: &[Block], folds: &Folds, style: Style) -> PageLayout {
    let text = RenderedText::default();
    let mut renderer = Terminal::folding(text.clone(), style);
    let mut layout = PageLayout::default();
    for (place, (block, detail)) in blocks.iter().zip(details(extent, blocks, folds)).enumerate() {
        renderer.show(block, detail).or_log("lay out a block");
        let lines = text.take();
        if !lines.is_empty() {
            let first = layout.document.lines.len();
            layout.document.add(block.turn, &lines);
            let is_blank = |line: &Line<'_>| line.spans.iter().all(|span| span.content.trim().is_empty());
            let blank = layout.document.lines[first..].iter().take_while(|line| is_blank(line)).count();
            layout.places.push((place, (first + blank).min(layout.document.lines.len().saturating_sub(1))));
        }
    }
    // The blank line between this page and the next one.
    layout.document.lines.push(Line::default());
    layout
}

impl PageLayout {
    /// The block at a line.
    pub(crate) fn block_at(&self, line: usize) -> Option<usize> {
        let after = self.places.partition_point(|(_, start)| *start <= line);
        self.places[..after].last().map(|(block, _)| *block)
    }

    /// The line where a block begins, or the first shown block after it.
    pub(crate) fn line_of_block(&self, block: usize) -> usize {
        let place = self.places.partition_point(|(own, _)| *own < block);
        self.places.get(place).or(self.places.last()).map_or(0, |(_, line)| *line)
    }
}

/// The source text of a block.
pub(crate) fn source(block: &Block) -> String {
    let text = match &block.kind {
        BlockKind::Prompt { text, .. }
        | BlockKind::Answer { text, .. }
        | BlockKind::Thinking { text }
        | BlockKind::Output { text, .. }
        | BlockKind::Notice { text, .. } => text.clone(),
        BlockKind::Compaction { summary } => summary.clone(),
        BlockKind::Call { input, .. } => {
            let telling = ["command", "cmd"].iter().find_map(|name| input[*name].as_str());
            let whole = || match input {
                serde_json::Value::String(text) => text.clone(),
                _ => transcript::render::to_json_pretty(input),
            };
            telling.map_or_else(whole, str::to_owned)
        }
        BlockKind::Media { media_type, .. } => media_type.clone(),
        BlockKind::Subagent { id, description, .. } => description.clone().unwrap_or_else(|| id.clone()),
    };
    transcript::text::clean(&text)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;

    fn block(turn: u32, depth: u8, kind: BlockKind) -> Block {
        Block { turn, depth, at: None, message: None, kind }
    }

    fn answer(text: &str) -> BlockKind {
        BlockKind::Answer { text: text.into(), model: None }
    }

    fn call(id: &str, name: &str, input: serde_json::Value) -> BlockKind {
        BlockKind::Call { id: id.into(), name: name.into(), input }
    }

    fn output(id: &str, text: &str) -> BlockKind {
        BlockKind::Output { call: id.into(), name: None, text: text.into(), error: false, exit_code: None }
    }

    fn blocks() -> Vec<Block> {
        let subagent = BlockKind::Subagent { id: "s".into(), role: Some("Explore".into()), description: None };
        vec![
            block(1, 0, BlockKind::Prompt { text: "Fix it".into(), steer: false }),
            block(1, 0, BlockKind::Thinking { text: "Hmm.".into() }),
            block(1, 0, answer("First I look.")),
            block(1, 0, call("1", "Bash", json!({"command": "ls"}))),
            block(1, 0, output("1", "a.rs\nb.rs")),
            block(1, 0, subagent),
            block(1, 1, answer("Nested.")),
            block(1, 1, call("2", "Bash", json!({"command": "cat a.rs"}))),
            block(1, 1, output("2", "fn a() {}")),
            block(1, 0, call("3", "Edit", json!({"file_path": "a.rs", "old_string": "x\ny", "new_string": "x\nz\n"}))),
            block(1, 0, output("3", "ok")),
            block(1, 0, answer("Done.")),
            block(2, 0, BlockKind::Prompt { text: "Thanks".into(), steer: false }),
        ]
    }

    fn shown(folds: &Folds) -> String {
        let style = Style { color: false, width: 60, zone: TimeZone::UTC, highlight: None };
        let extent = Extent::Turns { from: 0, until: 2 };
        let layout = lay_out(&extent, &blocks(), folds, style);
        let lines: Vec<String> = layout.document.lines.iter().map(ToString::to_string).collect();
        for (block, line) in &layout.places {
            assert_eq!(layout.block_at(*line), Some(*block));
            assert_eq!(layout.line_of_block(*block), *line);
        }
        lines.join("\n")
    }

    #[test]
    fn calls_are_folded_to_a_line_and_thinking_is_hidden() {
        insta::assert_snapshot!(shown(&Folds::default()), @r"
        ❯ Fix it

        First I look.

          ▸ Bash  ls
          ▸ subagent  Explore
          ▸ Edit  a.rs  +1 −1

        Done.

        ❯ Thanks
        ");
    }

    #[test]
    fn one_block_is_opened_by_itself() {
        let flipped = ["1".to_owned(), "subagent s".to_owned()].into();
        insta::assert_snapshot!(shown(&Folds { flipped, ..Folds::default() }), @r"
        ❯ Fix it

        First I look.

          ▾ Bash  ls
            │ a.rs
            │ b.rs
          ▾ subagent  Explore

        ┊ Nested.
        ┊
        ┊   ▸ Bash  cat a.rs
          ▸ Edit  a.rs  +1 −1

        Done.

        ❯ Thanks
        ");
    }

    #[test]
    fn everything_can_be_open_and_an_edit_is_a_difference() {
        insta::assert_snapshot!(shown(&Folds { tools: true, thinking: true, ..Folds::default() }), @r"
        ❯ Fix it

        ∴ thinking: Hmm.

        First I look.

          ▾ Bash  ls
            │ a.rs
            │ b.rs
          ▾ subagent  Explore

        ┊ Nested.
        ┊
        ┊   ▾ Bash  cat a.rs
        ┊     │ fn a() {}
          ▾ Edit  a.rs  +1 −1
                x
              - y
              + z
            │ ok

        Done.

        ❯ Thanks
        ");
    }

    #[test]
    fn the_focused_view_has_prompts_and_final_answers() {
        insta::assert_snapshot!(shown(&Folds { focus: true, ..Folds::default() }), @r"
        ❯ Fix it

        Done.

        ❯ Thanks
        ");
    }
}
