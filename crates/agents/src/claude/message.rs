//! Reads single messages of a transcript for a listing.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use transcript::{TokenUse, text};

use super::record::Record;
use super::scan::TITLE_BYTES;
use super::words::prompt_text;
use crate::fields::Raw;

fn read_line(path: &Path, offset: u64, len: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The beginning of the prompt in the line at `offset`, as long as a title may be.
pub(super) fn first_prompt(path: &Path, offset: u64, len: u64) -> Option<String> {
    let bytes = read_line(path, offset, len)?;
    let content = Record::of(&bytes).message?.get(b"content")?;
    let prompt = prompt_text(content);
    let line = text::one_line(text::prefix(&prompt, 4 * TITLE_BYTES));
    Some(text::prefix(&line, TITLE_BYTES).to_owned())
}

/// The facts of the answer in the line at `offset`.
pub(super) fn last_message(path: &Path, offset: u64, len: u64) -> Option<Message> {
    let bytes = read_line(path, offset, len)?;
    let raw = Record::of(&bytes).message?;
    let last = raw.get(b"content").and_then(|content| content.elements().last());
    let kind = last.and_then(|block| block.get(b"type")).and_then(Raw::plain).unwrap_or_default();
    let leads_on = kind.ends_with(b"tool_use") || kind.ends_with(b"thinking");
    Some(Message { leads_on, ..raw.parse()? })
}

/// The model and tokens of an answer.
#[derive(Deserialize)]
pub(super) struct Message {
    pub model: Option<String>,
    stop_reason: Option<String>,
    pub usage: Option<Usage>,
    /// Whether it ends with a call or a thought, after which more has to come.
    #[serde(skip)]
    leads_on: bool,
}

impl Message {
    /// 1.0.17 to 2.1.29 give no reason in finished answers either.
    pub(super) fn is_unfinished(&self) -> bool {
        match self.stop_reason.as_deref() {
            Some(reason) => reason == "tool_use",
            None => self.leads_on,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl Usage {
    pub(super) fn tokens(self) -> TokenUse {
        let cached = self.cache_creation_input_tokens.saturating_add(self.cache_read_input_tokens);
        let input = self.input_tokens.saturating_add(cached);
        TokenUse { input, output: self.output_tokens, window: None }
    }
}
