//! Reads transcripts and lays them out.

use std::collections::HashMap;

use diagnostics::OrLog;
use engine::{SeedText, Session};
use transcript::render::{Part, Renderer, Style, Terminal, Tools};
use transcript::{Block, BlockKind};

use super::engine_thread::EngineThread;
use crate::workbench::document::{Document, RenderedText};

/// Of sessions that are larger, only the last turns are laid out at first.
pub(super) const LARGE: u64 = 16 << 20;
pub(super) const LAST_TURNS: u32 = 40;

impl EngineThread {
    /// Lays out the prompts and the last answer of each turn.
    pub(super) fn focused(&self, session: &Session, width: u16, from: u32) -> Result<Document, engine::Error> {
        let mut blocks = self.tine.read(session, None, SeedText::Folded)?;
        let mut last = HashMap::new();
        let mut number = 0usize;
        while let Some(block) = blocks.next_block() {
            if block.depth == 0 && matches!(block.kind, BlockKind::Answer { .. }) {
                last.insert(block.turn, number);
            }
            number += 1;
        }
        let mut number = 0;
        self.lay_out(session, width, false, |block| {
            let is_last = last.get(&block.turn) == Some(&number);
            number += 1;
            let is_prompt = block.depth == 0 && matches!(block.kind, BlockKind::Prompt { .. });
            block.turn >= from && (is_last || is_prompt)
        })
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

    /// Lays out the selected blocks of a session.
    pub(super) fn lay_out(
        &self,
        session: &Session,
        width: u16,
        full: bool,
        mut is_wanted: impl FnMut(&Block) -> bool,
    ) -> Result<Document, engine::Error> {
        let mut blocks = self.tine.read(session, None, SeedText::Folded)?;
        let tools = if full { Tools::Full } else { Tools::Brief };
        let style = Style { color: self.color, width: width.into(), zone: self.zone.clone() };
        let mut document = Document::default();
        let text = RenderedText::default();
        let mut renderer = Terminal::new(text.clone(), tools, style);
        renderer.begin(&session.view, Part::Whole).or_log("lay out a transcript");
        text.take();
        while let Some(block) = blocks.next_block() {
            if is_wanted(&block) {
                renderer.block(&block).or_log("lay out a block");
                document.add(block.turn, &text.take());
            }
        }
        Ok(document)
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
        let mut prompts = Vec::new();
        let document = self.lay_out(session, width, full, |block| {
            if let (BlockKind::Prompt { text, steer: false }, 0) = (&block.kind, block.depth)
                && !transcript::seed::is_seed(text)
            {
                prompts.push(text.clone());
            }
            let is_acknowledgement = block.turn == 1 && !matches!(block.kind, BlockKind::Prompt { .. });
            (from..=last).contains(&block.turn) && !(hide_acknowledgement && is_acknowledgement)
        })?;
        Ok((document, prompts))
    }
}
