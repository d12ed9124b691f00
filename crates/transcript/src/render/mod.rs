//! Rendering a stream of blocks for people and programs.
//!
//! A renderer writes as blocks arrive and stores none of them, so the first page appears immediately and memory stays
//! small for any session. Within a block, it writes line by line and parses long Markdown in segments: beyond a few
//! copies of the block, memory doesn't grow with it.

mod call;
mod diff;
mod html;
mod json;
mod markdown;
mod prose;
mod safe_json;
mod segments;
mod terminal;
mod turns;
mod words;

use std::io;

pub use diff::changed_files;
pub use html::Html;
pub use json::Json;
#[cfg(feature = "schema")]
pub use json::ShowView;
pub use markdown::Markdown;
pub use safe_json::{SafeFormatter, to_json_line, to_json_pretty, write_json_array};
pub use terminal::{CodePart, Detail, Highlighter, StreamingText, Style, Terminal};

use crate::{Block, Defects, SessionView};

/// Something that turns a session into output, block by block.
///
/// `begin` is called once, then `block` for each block, then `end` once, which also flushes the writer. A block is
/// at most one level deeper than the one before it, and only after a [`crate::BlockKind::Subagent`]; where a damaged
/// file breaks that rule, the block is shown at the deepest level that is open.
pub trait Renderer {
    /// Writes the start of the page; `part` is the range of turns that follow.
    fn begin(&mut self, session: &SessionView, part: Part) -> io::Result<()>;
    /// Writes one block.
    fn block(&mut self, block: &Block) -> io::Result<()>;
    /// Writes the end of the page.
    fn end(&mut self, defects: &Defects) -> io::Result<()>;
}

/// Which turns of a session are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// All of them.
    #[default]
    Whole,
    /// The first ones, up to and including this.
    Until(u32),
    /// This one.
    Only(u32),
}

/// How much of the tools is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tools {
    /// One line for each call.
    #[default]
    Brief,
    /// Arguments, outputs, thinking and subagents in full.
    Full,
}
