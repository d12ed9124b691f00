//! The messages of a live chat, laid out as they arrive.
//!
//! Finished blocks are laid out once. A growing answer costs as much as its last block, however long the chat is.

use jiff::tz::TimeZone;
use ratatui::text::Line;
use transcript::render::{Renderer, StreamingText, Style, Terminal, Tools};
use transcript::{Block, BlockKind};

use diagnostics::OrLog;

use crate::workbench::document::{Document, RenderedText};

/// The lines of a chat.
pub(crate) struct Log {
    style: Style,
    tools: Tools,
    /// Finished text since the chat was opened.
    blocks: Vec<Block>,
    document: Document,
    renderer: Terminal<RenderedText>,
    output: RenderedText,
    /// The answer that is being written.
    growing: Option<StreamingText>,
    /// Its final lines, and their revision.
    settled: (Document, usize, u64),
    /// How much the agent has thought since its last text.
    thought: usize,
    /// The last line that a running tool has printed.
    printed: Option<String>,
    /// The subagent that the last block belongs to.
    subagent: Option<String>,
}

impl Log {
    /// An empty log.
    pub(crate) fn new(color: bool, zone: TimeZone) -> Self {
        let style = Style { color, width: 80, zone, highlight: None };
        let output = RenderedText::default();
        let renderer = Terminal::new(output.clone(), Tools::Brief, style.clone());
        Log {
            style,
            tools: Tools::Brief,
            blocks: Vec::new(),
            document: Document::default(),
            renderer,
            output,
            growing: None,
            settled: (Document::default(), 0, 0),
            thought: 0,
            printed: None,
            subagent: None,
        }
    }

    /// Lays everything out again if the width or the detail has changed.
    pub(crate) fn lay_out(&mut self, width: u16, full: bool) {
        let tools = if full { Tools::Full } else { Tools::Brief };
        if (self.style.width, self.tools) == (usize::from(width), tools) {
            return;
        }
        self.style.width = width.into();
        self.tools = tools;
        self.renderer = Terminal::new(self.output.clone(), tools, self.style.clone());
        self.document = Document::default();
        for block in std::mem::take(&mut self.blocks) {
            self.add(block);
        }
        if let Some(growing) = self.growing.take() {
            let mut again = StreamingText::new(&self.style);
            again.push(growing.text());
            self.growing = Some(again);
            self.settled = (Document::default(), 0, 0);
            self.settle();
        }
    }

    /// Adds a finished block.
    pub(crate) fn push(&mut self, turn: u32, subagent: Option<String>, kind: BlockKind) {
        if subagent.is_none() {
            match &kind {
                BlockKind::Answer { .. } => self.end_growing(),
                BlockKind::Output { .. } => self.printed = None,
                _ => {}
            }
            self.thought = 0;
        }
        if let Some(id) = subagent.clone().filter(|_| subagent != self.subagent) {
            // Blocks of a subagent follow a line that names it.
            let description = self.task_of(&id);
            let kind = BlockKind::Subagent { id, role: None, description };
            self.add(Block { turn, depth: 0, at: None, message: None, kind });
        }
        let depth = u8::from(subagent.is_some());
        self.subagent = subagent;
        self.add(Block { turn, depth, at: None, message: None, kind });
    }

    /// The task of a subagent, from the call that started it.
    fn task_of(&self, call: &str) -> Option<String> {
        self.blocks.iter().rev().find_map(|block| match &block.kind {
            BlockKind::Call { id, input, .. } if id == call => input["description"].as_str().map(str::to_owned),
            _ => None,
        })
    }

    fn add(&mut self, block: Block) {
        self.renderer.block(&block).or_log("lay out a block");
        self.document.add(block.turn, &self.output.take());
        self.blocks.push(block);
    }

    /// Adds the next piece of an answer.
    pub(crate) fn grow(&mut self, piece: &str) {
        self.thought = 0;
        self.growing.get_or_insert_with(|| StreamingText::new(&self.style)).push(piece);
        self.settle();
    }

    /// Records that the agent is thinking.
    pub(crate) fn think(&mut self, piece: &str) {
        self.thought += piece.len();
    }

    /// Adds the output of a running tool.
    pub(crate) fn print(&mut self, piece: &str) {
        if let Some(line) = piece.lines().rev().find(|line| !line.trim().is_empty()) {
            self.printed = Some(transcript::text::clip(&transcript::text::one_line(line), 200));
        }
    }

    /// Discards unfinished text, for example after an interrupt.
    pub(crate) fn end_turn(&mut self, turn: u32) {
        let text =
            self.growing.as_ref().map(|growing| growing.text().to_owned()).filter(|text| !text.trim().is_empty());
        self.end_growing();
        (self.thought, self.printed, self.subagent) = (0, None, None);
        if let Some(text) = text {
            // The agent keeps the text before an interrupt, too.
            self.add(Block { turn, depth: 0, at: None, message: None, kind: BlockKind::Answer { text, model: None } });
        }
    }

    fn end_growing(&mut self) {
        self.growing = None;
        self.settled = (Document::default(), 0, 0);
    }

    fn settle(&mut self) {
        let Some(growing) = &self.growing else { return };
        let (lines, revision) = growing.settled();
        let (document, taken, seen) = &mut self.settled;
        if *seen != revision {
            (*document, *taken, *seen) = (Document::default(), 0, revision);
        }
        for line in &lines[*taken..] {
            document.add(0, &format!("{line}\n"));
        }
        *taken = lines.len();
    }

    /// The finished lines.
    pub(crate) fn finished(&self) -> &[Line<'static>] {
        &self.document.lines
    }

    /// The lines of the unfinished answer, without its last block.
    pub(crate) fn settled(&self) -> &[Line<'static>] {
        &self.settled.0.lines
    }

    /// The lines that can still change.
    pub(crate) fn unsettled(&self) -> Vec<Line<'static>> {
        let mut document = Document::default();
        if let Some(growing) = &self.growing {
            growing.unsettled().iter().for_each(|line| document.add(0, &format!("{line}\n")));
        }
        let mut lines = document.lines;
        let dim = ratatui::style::Style::new().dim();
        if let Some(printed) = &self.printed {
            lines.push(Line::styled(format!("    │ {printed}"), dim));
        }
        if self.thought > 0 {
            lines.push(Line::styled("  ∴ thinking…", dim));
        }
        lines
    }

    /// The answer of the last turn as source text.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.blocks.iter().rev().find_map(|block| match &block.kind {
            BlockKind::Answer { text, .. } if block.depth == 0 => Some(text.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn all(log: &Log) -> Vec<String> {
        [text(log.finished()), text(log.settled()), text(&log.unsettled())].concat()
    }

    #[test]
    fn an_answer_looks_the_same_while_it_grows_and_when_it_is_finished() {
        let answer = "# Title\n\nSome *words* and more.\n\n- one\n- two\n\n```rust\nfn a() {}\n```\n\nThe end.";
        let mut log = Log::new(true, TimeZone::UTC);
        for piece in answer.as_bytes().chunks(5) {
            log.grow(std::str::from_utf8(piece).unwrap());
        }
        let growing = all(&log);
        log.push(1, None, BlockKind::Answer { text: answer.to_owned(), model: None });
        let finished = all(&log);
        // The finished answer begins a turn, with a rule above it.
        assert_eq!(growing, finished[finished.len() - growing.len()..]);
        assert!(log.growing.is_none());
    }

    #[test]
    fn another_width_lays_everything_out_again() {
        let mut log = Log::new(false, TimeZone::UTC);
        log.push(1, None, BlockKind::Prompt { text: "word ".repeat(30), steer: false });
        log.grow(&"more ".repeat(30));
        let wide = all(&log).len();
        log.lay_out(30, false);
        assert!(all(&log).len() > wide + 5);
        assert!(all(&log).iter().all(|line| transcript::text::width(line) <= 30), "{:?}", all(&log));
    }

    #[test]
    fn what_an_interrupt_leaves_is_kept() {
        let mut log = Log::new(false, TimeZone::UTC);
        log.grow("Half an answ");
        log.end_turn(1);
        assert!(all(&log).iter().any(|line| line.contains("Half an answ")));
        assert!(log.unsettled().is_empty());
    }
}
