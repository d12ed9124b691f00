//! The pieces that a conversation is made of, in the order in which they happened.
//!
//! Readers hand out blocks one at a time, so that a transcript of any size is shown, searched or forked in constant
//! memory. Text in a block is what the agent stored; making it safe for a terminal is the renderer's work.

use jiff::Timestamp;
use serde::Serialize;

/// One piece of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The turn it belongs to; 0 before the first prompt.
    pub turn: u32,
    /// 0 in the session itself, 1 in a subagent, 2 in a subagent of that.
    pub depth: u8,
    /// When it was recorded.
    pub at: Option<Timestamp>,
    /// The agent's id of the message that it is a part of; several blocks may share one.
    pub message: Option<String>,
    /// What it is.
    pub kind: BlockKind,
}

/// What a block holds.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockKind {
    /// A user's prompt. It starts a turn, unless it was added while the agent was busy.
    Prompt {
        /// The words.
        text: String,
        /// Whether it was added to a turn that was already running.
        steer: bool,
    },
    /// An answer of the agent.
    Answer {
        /// The words, mostly Markdown.
        text: String,
        /// The model that wrote it.
        model: Option<String>,
    },
    /// The agent's thinking before an answer.
    Thinking {
        /// The words; empty where the agent stores them encrypted.
        text: String,
    },
    /// A tool that the agent called.
    Call {
        /// Pairs it with its output.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: serde_json::Value,
    },
    /// What the tool gave back.
    Output {
        /// The call that it answers.
        call: String,
        /// The tool, where the call was seen.
        name: Option<String>,
        /// What came back.
        text: String,
        /// Whether the tool failed.
        error: bool,
        /// The exit code, where the tool is a shell and the agent recorded it.
        exit_code: Option<i32>,
    },
    /// A picture or another thing that is not text.
    Media {
        /// Its type, as `image/png`.
        media_type: String,
        /// Its size in bytes, if known.
        bytes: Option<u64>,
        /// Its bytes in base64, if the reader was asked for them and the transcript holds them.
        data: Option<String>,
    },
    /// The history before this point was replaced by a summary in what the model sees.
    Compaction {
        /// The summary, if it is stored.
        summary: String,
    },
    /// Something that is part of the record but neither a prompt nor an answer.
    Notice {
        /// What sort of thing.
        notice: NoticeKind,
        /// The words.
        text: String,
    },
    /// A subagent begins: what follows one level deeper is its own conversation.
    Subagent {
        /// Its id.
        id: String,
        /// Its type, as `general-purpose`.
        role: Option<String>,
        /// What it was started for.
        description: Option<String>,
    },
}

/// What sort of notice it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// The user interrupted the agent.
    Interrupted,
    /// Something failed, such as a request to the model.
    Error,
    /// A command that the client itself carried out, with its output.
    Command,
    /// A part of the record that could not be read or is too large to show.
    Unreadable,
    /// The files that the turn changed, with added and removed lines.
    Files,
    /// Anything else from the agent.
    Info,
}

impl BlockKind {
    /// The word for it in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            BlockKind::Prompt { .. } => "prompt",
            BlockKind::Answer { .. } => "answer",
            BlockKind::Thinking { .. } => "thinking",
            BlockKind::Call { .. } => "call",
            BlockKind::Output { .. } => "output",
            BlockKind::Media { .. } => "media",
            BlockKind::Compaction { .. } => "compaction",
            BlockKind::Notice { .. } => "notice",
            BlockKind::Subagent { .. } => "subagent",
        }
    }
}
