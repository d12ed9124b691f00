//! The whole session as one JSON document. Its form is a contract; tools are always in it.
//!
//! Invariant: the document is valid JSON after `end`, whatever the order and the depths of the blocks were.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::ser::Serializer;

use super::turns::{Turns, is_turn_prompt};
use super::{Part, Renderer, SafeFormatter};
use crate::seed::is_seed;
use crate::{Block, BlockKind, Defects, NoticeKind, SessionView};

/// Streams `{"session":{…},"turns":[…],"defects":{…}}` and a line break.
#[derive(Debug)]
pub struct Json<W> {
    writer: W,
    turns: Turns,
    /// For each list of blocks that is open, whether it has an element yet; the first is the turn's own.
    lists: Vec<bool>,
    turns_written: bool,
}

impl<W: Write> Json<W> {
    /// A renderer that writes to `writer`.
    pub fn new(writer: W) -> Self {
        Json { writer, turns: Turns::default(), lists: Vec::new(), turns_written: false }
    }

    fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut serializer = Serializer::with_formatter(&mut self.writer, SafeFormatter::compact());
        Ok(value.serialize(&mut serializer)?)
    }

    /// Writes an object but for its end, which [`Self::close_lists`] or `end` writes, and opens a list in it.
    fn open_object(&mut self, object: &impl Serialize, list: &str) -> io::Result<()> {
        let mut json = Vec::new();
        object.serialize(&mut Serializer::with_formatter(&mut json, SafeFormatter::compact()))?;
        json.pop();
        self.writer.write_all(&json)?;
        write!(self.writer, ",\"{list}\":[")
    }

    /// Ends objects that hold lists of blocks until `remaining` of these lists are open.
    fn close_lists(&mut self, remaining: usize) -> io::Result<()> {
        for _ in remaining..self.lists.len() {
            self.writer.write_all(b"]}")?;
        }
        self.lists.truncate(remaining);
        Ok(())
    }

    fn open_turn(&mut self, block: &Block) -> io::Result<()> {
        self.close_lists(0)?;
        if self.turns_written {
            self.writer.write_all(b",")?;
        }
        self.turns_written = true;
        let turn = match &block.kind {
            BlockKind::Prompt { text, .. } if is_turn_prompt(block) => {
                let message = block.message.as_deref();
                Turn { number: block.turn, at: block.at, message, prompt: Some(text), seed: is_seed(text) }
            }
            _ => Turn { number: block.turn, at: block.at, message: None, prompt: None, seed: false },
        };
        self.open_object(&turn, "blocks")?;
        self.lists.push(false);
        Ok(())
    }
}

impl<W: Write> Renderer for Json<W> {
    fn begin(&mut self, session: &SessionView, _part: Part) -> io::Result<()> {
        #[derive(Serialize)]
        struct Document<'a> {
            session: &'a SessionView,
        }
        self.open_object(&Document { session }, "turns")
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        let position = self.turns.next(block);
        if position.opens_turn {
            self.open_turn(block)?;
            if is_turn_prompt(block) {
                return Ok(());
            }
        }
        self.close_lists(position.depth + 1)?;
        if let Some(has_elements) = self.lists.last_mut()
            && std::mem::replace(has_elements, true)
        {
            self.writer.write_all(b",")?;
        }
        let element = Element {
            kind: block.kind.as_str(),
            at: block.at,
            message: block.message.as_deref(),
            content: block.into(),
        };
        if matches!(block.kind, BlockKind::Subagent { .. }) {
            self.open_object(&element, "blocks")?;
            self.lists.push(false);
            return Ok(());
        }
        self.value(&element)
    }

    fn end(&mut self, defects: &Defects) -> io::Result<()> {
        self.close_lists(0)?;
        self.writer.write_all(b"],\"defects\":")?;
        self.value(defects)?;
        self.writer.write_all(b"}\n")?;
        self.writer.flush()
    }
}

/// A transcript as JSON. It is written block by block, so this type only describes it.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct ShowView {
    /// The session.
    session: SessionView,
    /// Its turns, oldest first.
    turns: Vec<ShownTurn>,
    /// Defects found in its files.
    defects: Defects,
}

/// A turn.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ShownTurn {
    #[schemars(flatten)]
    turn: Turn<'static>,
    /// What the agent did and answered.
    blocks: Vec<ShownBlock>,
}

/// A block of a turn.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ShownBlock {
    #[schemars(flatten)]
    element: Element<'static>,
    /// The blocks of a subagent.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<ShownBlock>,
}

/// A turn but for its blocks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Turn<'a> {
    /// Its number, from 1; 0 for what precedes the first prompt.
    number: u32,
    /// When it began.
    at: Option<Timestamp>,
    /// The agent's id for the prompt.
    message: Option<&'a str>,
    /// The prompt, unless it is missing.
    prompt: Option<&'a str>,
    /// Whether the prompt is the transcript of another session, which tine handed over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    seed: bool,
}

/// A block, but for the blocks inside a subagent.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Element<'a> {
    /// What it is, such as `answer` or `call`.
    kind: &'static str,
    /// When it was written.
    at: Option<Timestamp>,
    /// The agent's id for the message.
    message: Option<&'a str>,
    #[serde(flatten)]
    content: Content<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Content<'a> {
    Prompt { text: &'a str, steer: bool },
    Answer { model: Option<&'a str>, text: &'a str },
    Thinking { text: &'a str },
    Call { id: &'a str, name: &'a str, input: &'a serde_json::Value },
    Output { call: &'a str, name: Option<&'a str>, text: &'a str, error: bool, exit_code: Option<i32> },
    Media { media_type: &'a str, bytes: Option<u64> },
    Compaction { summary: &'a str },
    Notice { notice: NoticeKind, text: &'a str },
    Subagent { id: &'a str, role: Option<&'a str>, description: Option<&'a str> },
}

impl<'a> From<&'a Block> for Content<'a> {
    fn from(block: &'a Block) -> Self {
        match &block.kind {
            BlockKind::Prompt { text, steer } => Content::Prompt { text, steer: *steer },
            BlockKind::Answer { text, model } => Content::Answer { model: model.as_deref(), text },
            BlockKind::Thinking { text } => Content::Thinking { text },
            BlockKind::Call { id, name, input } => Content::Call { id, name, input },
            BlockKind::Output { call, name, text, error, exit_code } => {
                Content::Output { call, name: name.as_deref(), text, error: *error, exit_code: *exit_code }
            }
            BlockKind::Media { media_type, bytes, .. } => Content::Media { media_type, bytes: *bytes },
            BlockKind::Compaction { summary } => Content::Compaction { summary },
            BlockKind::Notice { notice, text } => Content::Notice { notice: *notice, text },
            BlockKind::Subagent { id, role, description } => {
                Content::Subagent { id, role: role.as_deref(), description: description.as_deref() }
            }
        }
    }
}
