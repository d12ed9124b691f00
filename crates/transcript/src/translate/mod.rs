//! A conversation in a form that every agent's format can hold, for moving a session from one agent to another.
//!
//! [`Neutral`] makes [`Message`]s of the blocks that a reader hands out. It is total: whatever it is given, its messages
//! follow the rules that all agents and the APIs of their models need. Each agent's folder in `agents` writes them in
//! the agent's own format. A [`Receipt`] counts what was carried, converted, shortened and dropped.

mod neutral;
mod receipt;
mod tools;

pub use neutral::{INTERRUPTED, Neutral, NeutralOptions, TOOL_ERROR, is_legal_call_id, is_legal_tool};
pub use receipt::{Outcome, Receipt, ReceiptItem, ReceiptLine, ReceiptView};
pub use tools::{Act, ToolWords, convert_call};

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// When it was recorded.
    pub at: Option<Timestamp>,
    /// The turn of the source that it belongs to.
    pub turn: u32,
    /// What it holds.
    pub kind: MessageKind,
}

/// What a message holds.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageKind {
    /// A prompt; its text is not blank unless there are pictures.
    User {
        /// The words.
        text: String,
        /// The pictures that belong to it.
        pictures: Vec<Picture>,
    },
    /// One answer of the model; at least one step, and no blank text.
    Assistant {
        /// The model, if known.
        model: Option<String>,
        /// The steps, in order.
        steps: Vec<Step>,
    },
    /// The results of all calls of the message before it, in the order of the calls.
    Results(Vec<CallResult>),
    /// The summary that replaced everything before it.
    Summary(String),
}

/// A picture in a prompt or in a result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Picture {
    /// Its type, as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Words.
    Text(String),
    /// A call of a tool.
    Call(ToolCall),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Unique in the session; see [`is_legal_call_id`].
    pub id: String,
    /// The tool; see [`is_legal_tool`].
    pub name: String,
    /// Its arguments, an object.
    pub input: Value,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What came back.
    pub text: String,
    /// Whether the tool failed.
    pub error: bool,
    /// The exit code of a shell that failed, which is not part of the text.
    pub exit_code: Option<i32>,
    /// Pictures that came back.
    pub pictures: Vec<Picture>,
}

impl CallResult {
    /// The text with the exit code in front, as Claude Code writes it. [`Neutral`] separates them again.
    pub fn text_with_code(&self) -> String {
        match self.exit_code {
            Some(code) => format!("Exit code {code}\n{}", self.text),
            None => self.text.clone(),
        }
    }
}

impl Message {
    /// A fingerprint of the content. Equal messages have the same one, whichever agent's file they were read from.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match &self.kind {
            MessageKind::User { text, pictures } => (0, text, pictures).hash(&mut hasher),
            MessageKind::Assistant { steps, .. } => {
                1.hash(&mut hasher);
                for step in steps {
                    match step {
                        Step::Text(text) => (0, text).hash(&mut hasher),
                        Step::Call(call) => {
                            (1, &call.id, &call.name).hash(&mut hasher);
                            hash_json(&call.input, &mut hasher);
                        }
                    }
                }
            }
            MessageKind::Results(results) => {
                2.hash(&mut hasher);
                for result in results {
                    (&result.id, &result.text, result.error, result.exit_code, &result.pictures).hash(&mut hasher);
                }
            }
            MessageKind::Summary(text) => (3, text).hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// Numbers with a fraction are compared roughly: writing and reading them again may change their last bit.
fn hash_json(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0.hash(hasher),
        Value::Bool(value) => (1, value).hash(hasher),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => (2, whole).hash(hasher),
            (None, number) => (3, (number.unwrap_or_default() as f32).to_bits()).hash(hasher),
        },
        Value::String(text) => (4, text).hash(hasher),
        Value::Array(values) => {
            (5, values.len()).hash(hasher);
            values.iter().for_each(|value| hash_json(value, hasher));
        }
        Value::Object(fields) => {
            (6, fields.len()).hash(hasher);
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            for (key, value) in fields {
                key.hash(hasher);
                hash_json(value, hasher);
            }
        }
    }
}
