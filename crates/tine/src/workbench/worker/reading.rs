//! Reads transcripts and lays them out.

use std::sync::Arc;

use diagnostics::OrLog;
use engine::{Extent, Pages, SeedText, Session};
use transcript::render::{Part, Renderer, Style, Terminal, Tools};
use transcript::seed::is_acknowledgement;
use transcript::{Block, BlockKind, NoticeKind};

use super::engine_thread::EngineThread;
use crate::workbench::document::{Document, RenderedText};
use crate::workbench::highlight::highlight;
use crate::workbench::page::{Page, PageLayout, PageStyle, lay_out};
use crate::workbench::reader::PageRequest;

/// Of sessions that are larger, only the last turns are laid out at first.
pub(super) const LARGE: u64 = 16 << 20;
const LAST_TURNS: u32 = 40;

/// Longer outputs and arguments are cut.
const LONGEST: usize = 256 << 10;

/// Beyond this, the blocks of subagents are left out of a page.
const HEAVY: usize = 8 << 20;

impl EngineThread {
    fn style(&self, width: u16) -> Style {
        Style { color: self.color, width: width.into(), zone: self.zone.clone(), highlight: Some(highlight) }
    }

    /// Reads a page of a transcript. `None` if it does not exist.
    pub(super) fn read_page(
        &self,
        session: &Session,
        wish: PageRequest,
        looks: &PageStyle,
    ) -> Result<Option<Page>, engine::Error> {
        // A transcript that is read from its beginning is counted again.
        let refreshed = match wish {
            PageRequest::Tail(Extent::Turns { .. }) => self.tine.refresh(session).or_log("look at a followed session"),
            _ => None,
        };
        let pages = self.tine.pages(refreshed.as_ref().unwrap_or(session));
        let found = match wish {
            PageRequest::Last => Some(pages.last()),
            PageRequest::First => Some(pages.first()),
            PageRequest::Turn(turn) => Some(pages.with_turn(turn)),
            PageRequest::Again(extent) => Some(extent),
            PageRequest::Tail(extent) => Some(pages.grown(&extent)),
            PageRequest::Before(extent) => pages.before(&extent),
            PageRequest::After(extent) => pages.after(&extent),
        };
        found.map(|extent| self.page(&pages, extent, looks)).transpose()
    }

    fn page(&self, pages: &Pages<'_>, extent: Extent, looks: &PageStyle) -> Result<Page, engine::Error> {
        let mut read = pages.read(&extent)?;
        let mut blocks = Vec::new();
        let mut weight = 0;
        let mut left_out = 0;
        while let Some(mut block) = read.next_block() {
            if weight > HEAVY && block.depth > 0 {
                left_out += 1;
                continue;
            }
            let is_conversation = matches!(block.kind, BlockKind::Prompt { .. } | BlockKind::Answer { .. });
            if looks.folds.focus && (block.depth > 0 || !is_conversation) {
                continue;
            }
            cut(&mut block);
            weight += size(&block);
            blocks.push(block);
        }
        if left_out > 0 {
            let text = format!("{left_out} blocks of subagents are not shown here; tine show --tools prints them");
            let turn = blocks.last().map_or(0, |block| block.turn);
            let kind = BlockKind::Notice { notice: NoticeKind::Info, text };
            blocks.push(Block { turn, depth: 0, at: None, message: None, kind });
        }
        let layout = lay_out(&extent, &blocks, &looks.folds, self.style(looks.width));
        let weight = weight + layout.document.lines.iter().map(|line| 200 + 3 * line.width()).sum::<usize>();
        let is_last = pages.after(&extent).is_none();
        Ok(Page { extent, blocks: Arc::new(blocks), layout, weight, is_last })
    }

    /// Lays loaded pages out again.
    pub(super) fn lay_out_again(
        &self,
        pages: &[(Extent, Arc<Vec<Block>>)],
        looks: &PageStyle,
    ) -> Vec<(Extent, PageLayout)> {
        let again = |(extent, blocks): &(Extent, Arc<Vec<Block>>)| {
            (*extent, lay_out(extent, blocks, &looks.folds, self.style(looks.width)))
        };
        pages.iter().map(again).collect()
    }

    /// One turn as Markdown, without redaction: it is the user's own text.
    pub(super) fn turn_as_markdown(&self, session: &Session, turn: u32) -> Result<String, engine::Error> {
        let mut blocks = self.tine.read(session, Some(turn), SeedText::Folded)?;
        let mut parts = Vec::new();
        while let Some(block) = blocks.next_block() {
            match block.kind {
                BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. }
                    if block.turn == turn && block.depth == 0 =>
                {
                    parts.push(transcript::text::clean(&text));
                }
                _ => {}
            }
        }
        Ok(parts.join("\n\n"))
    }

    /// A session's transcript from before its tab was opened, and the prompts in it. Later turns are in the tab's log.
    pub(super) fn read_tab(
        &self,
        session: &Session,
        width: u16,
        full: bool,
        hide_acknowledgement: bool,
    ) -> Result<(Document, Vec<String>), engine::Error> {
        let last = session.view.turns;
        let from = if session.size < LARGE { 0 } else { last.saturating_sub(LAST_TURNS) };
        let tools = if full { Tools::Full } else { Tools::Brief };
        let mut document = Document::default();
        let mut prompts = Vec::new();
        let text = RenderedText::default();
        let mut renderer = Terminal::new(text.clone(), tools, self.style(width));
        renderer.begin(&session.view, Part::Whole).or_log("lay out a transcript");
        text.take();
        let mut add = |block: &Block| {
            if let (BlockKind::Prompt { text, steer: false }, 0) = (&block.kind, block.depth)
                && !transcript::seed::is_seed(text)
            {
                prompts.push(text.clone());
            }
            let is_hidden = hide_acknowledgement
                && block.turn == 1
                && matches!(&block.kind, BlockKind::Answer { text, .. } if is_acknowledgement(text));
            if (from..=last).contains(&block.turn) && !is_hidden {
                renderer.block(block).or_log("lay out a block");
                document.add(block.turn, &text.take());
            }
        };
        if session.size < LARGE {
            let mut blocks = self.tine.read(session, None, SeedText::Folded)?;
            while let Some(block) = blocks.next_block() {
                add(&block);
            }
        } else {
            // The last pages are enough, and cost no pass over the whole file.
            let pages = self.tine.pages(session);
            let end = pages.last();
            for extent in pages.before(&end).into_iter().chain([end]) {
                let mut blocks = pages.read(&extent)?;
                while let Some(mut block) = blocks.next_block() {
                    cut(&mut block);
                    add(&block);
                }
            }
        }
        Ok((document, prompts))
    }
}

/// Shortens what nobody reads to its end on a screen.
fn cut(block: &mut Block) {
    if let BlockKind::Output { text, .. } = &mut block.kind
        && text.len() > LONGEST
    {
        let more = text.len() - LONGEST;
        let kept = transcript::text::prefix(text, LONGEST).to_owned();
        *text = format!("{kept}\n… {more} more bytes; tine show --tools prints them");
    }
}

/// About how much memory a block takes.
fn size(block: &Block) -> usize {
    const OWN: usize = 300;
    OWN + match &block.kind {
        BlockKind::Prompt { text, .. }
        | BlockKind::Answer { text, .. }
        | BlockKind::Thinking { text }
        | BlockKind::Output { text, .. }
        | BlockKind::Notice { text, .. } => text.len(),
        BlockKind::Compaction { summary } => summary.len(),
        BlockKind::Call { input, .. } => transcript::render::to_json_line(input).len(),
        BlockKind::Media { .. } | BlockKind::Subagent { .. } => 0,
    }
}
