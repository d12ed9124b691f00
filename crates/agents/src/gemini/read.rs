//! A session as blocks, one message at a time.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use transcript::{Block, BlockKind, DefectKind, Defects, NoticeKind, TokenUse};

use super::history::{Entry, History, load};
use super::message::{Kind, Message, parts};
use super::scan::tokens;
use super::subagents::{self, Subagent};
use crate::fields::Raw;
use crate::files::{fingerprint, open_regular};
use crate::{Blocks, Part};

/// The tool that starts a subagent.
const SPAWN: &str = "invoke_agent";

/// The blocks of one session.
pub(super) struct GeminiBlocks {
    file: File,
    history: History,
    /// The next message, and the end of the part to read.
    next: usize,
    end: usize,
    turn: u32,
    depth: u8,
    prose_only: bool,
    with_media: bool,
    leaves_tools_out: bool,
    queue: VecDeque<Block>,
    /// The transcript of a subagent, which comes before the rest of the queue.
    nested: Option<Box<GeminiBlocks>>,
    /// Subagents that were not shown yet, oldest first.
    subagents: VecDeque<Subagent>,
    /// The calls whose results were shown.
    answered: HashSet<u64>,
    tokens: Option<TokenUse>,
    defects: Defects,
    buffer: Vec<u8>,
}

/// Opens the session at `path` for reading.
pub(super) fn open(path: &Path, part: &Part) -> io::Result<GeminiBlocks> {
    let mut blocks = GeminiBlocks::of(path, part.until)?;
    (blocks.prose_only, blocks.with_media) = (part.prose_only, part.media);
    blocks.subagents = subagents::of(path).into();
    Ok(blocks)
}

impl GeminiBlocks {
    fn of(path: &Path, until: Option<u32>) -> io::Result<Self> {
        let file = open_regular(path)?;
        let history = History::of(path)?;
        let (end, defects) = (history.up_to(until).len(), history.defects.clone());
        Ok(GeminiBlocks {
            file,
            history,
            next: 0,
            end,
            turn: 0,
            depth: 0,
            prose_only: false,
            with_media: false,
            leaves_tools_out: false,
            queue: VecDeque::new(),
            nested: None,
            subagents: VecDeque::new(),
            answered: HashSet::new(),
            tokens: None,
            defects,
            buffer: Vec::new(),
        })
    }

    fn message(&mut self, entry: Entry) {
        if entry.kind == Kind::Prompt && self.depth == 0 {
            self.turn += 1;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        match load(&mut self.file, &entry, &mut buffer) {
            Ok(true) => {
                if let Some(message) = Message::of(&buffer) {
                    self.show(&message);
                }
            }
            Ok(false) => self.too_long(&entry),
            Err(_) => self.defects.add(DefectKind::Unreadable),
        }
        self.buffer = buffer;
    }

    fn too_long(&mut self, entry: &Entry) {
        if entry.kind == Kind::Prompt {
            self.push(None, None, BlockKind::Prompt { text: String::new(), steer: false });
        }
        let text = format!("a record of {} MB is not shown", entry.len >> 20);
        self.push(None, None, BlockKind::Notice { notice: NoticeKind::Unreadable, text });
    }

    fn show(&mut self, message: &Message<'_>) {
        match message.kind {
            Kind::Prompt => {
                let (text, added) = message.prompt();
                self.push_of(message, BlockKind::Prompt { text, steer: false });
                if let Some(text) = added {
                    self.push_of(message, BlockKind::Notice { notice: NoticeKind::Info, text });
                }
                self.pictures(message, message.content);
            }
            Kind::Answer => self.answer(message),
            // What is stored with the calls was shown there.
            Kind::Results if self.history.is_told_before(message) => {}
            Kind::Results => {
                for part in parts(message.content) {
                    self.output(message, part, None);
                }
            }
            Kind::Note => {
                let text = super::message::text_of(message.content);
                let notice = match message.get(b"type").and_then(Raw::plain) {
                    Some(b"error") => NoticeKind::Error,
                    _ => NoticeKind::Info,
                };
                if !text.trim().is_empty() {
                    self.push_of(message, BlockKind::Notice { notice, text });
                }
            }
            Kind::Context | Kind::Import | Kind::Other => {}
        }
    }

    fn answer(&mut self, message: &Message<'_>) {
        self.tokens = tokens(message).or(self.tokens);
        let thoughts: Vec<String> = message.get(b"thoughts").map(thoughts).unwrap_or_default();
        let has_thoughts = !thoughts.is_empty();
        for text in thoughts {
            self.push_of(message, BlockKind::Thinking { text });
        }
        let model = message.text(b"model");
        let listed: HashSet<String> =
            message.calls.elements().filter_map(|call| call.get(b"id")?.string()).map(Into::into).collect();
        for part in parts(message.content) {
            if let Some(call) = part.get(b"functionCall") {
                // The calls with their results follow.
                if call.get(b"id").and_then(Raw::string).is_none_or(|id| !listed.contains(id.as_ref())) {
                    self.call(message, call);
                }
            } else if let Some(text) = super::message::part_text(part).filter(|text| !text.trim().is_empty()) {
                let text = text.into_owned();
                match part.get(b"thought").is_some_and(Raw::is_true) {
                    true if has_thoughts => {}
                    true => self.push_of(message, BlockKind::Thinking { text }),
                    false => self.push_of(message, BlockKind::Answer { text, model: model.clone() }),
                }
            } else {
                self.pictures(message, part);
            }
        }
        let calls: Vec<Raw<'_>> = message.calls.elements().collect();
        for call in &calls {
            self.call(message, *call);
        }
        for call in calls {
            self.results(message, call);
        }
    }

    fn call(&mut self, message: &Message<'_>, call: Raw<'_>) {
        if self.leave_out() {
            return;
        }
        let text = |key: &[u8]| call.get(key).and_then(Raw::string).map(|text| text.into_owned()).unwrap_or_default();
        let input = call.get(b"args").and_then(Raw::parse).unwrap_or(Value::Null);
        self.push_of(message, BlockKind::Call { id: text(b"id"), name: text(b"name"), input });
    }

    /// The results of a call, which are stored with it. After a resume, the client stores those of all parallel calls
    /// with each of them.
    fn results(&mut self, message: &Message<'_>, call: Raw<'_>) {
        let id = call.get(b"id").and_then(Raw::string);
        let Some(result) = call.get(b"result") else { return };
        let mut is_own = true;
        for part in parts(result) {
            if part.get(b"functionResponse").is_some() {
                is_own = super::message::answered_call(part) == id;
            }
            if is_own {
                self.output(message, part, Some(call));
            }
        }
        if call.get(b"name").and_then(Raw::plain) == Some(SPAWN.as_bytes()) {
            self.subagent(message, call);
        }
    }

    fn output(&mut self, message: &Message<'_>, part: Raw<'_>, call: Option<Raw<'_>>) {
        let Some(response) = part.get(b"functionResponse") else {
            if !self.leave_out() {
                // A picture that a tool returned follows its result.
                self.pictures(message, part);
            }
            return;
        };
        let text = |key: &[u8]| response.get(key).and_then(Raw::string).map(|text| text.into_owned());
        let id = text(b"id").unwrap_or_default();
        if !self.answered.insert(fingerprint(id.as_bytes())) || self.leave_out() {
            return;
        }
        let status = call.and_then(|call| call.get(b"status")).and_then(Raw::plain);
        let (text_of_result, is_error) = response.get(b"response").map(result_text).unwrap_or_default();
        let exit_code = exit_code(text(b"name").as_deref(), &text_of_result);
        let error = is_error || status.is_some_and(|status| status != b"success");
        let kind = BlockKind::Output { call: id, name: text(b"name"), text: text_of_result, error, exit_code };
        self.push_of(message, kind);
        if let Some(more) = response.get(b"parts") {
            self.pictures(message, more);
        }
    }

    fn subagent(&mut self, message: &Message<'_>, call: Raw<'_>) {
        let Some(subagent) = self.subagents.pop_front().filter(|_| self.depth == 0) else { return };
        let argument = |key: &[u8]| {
            let value = call.get(b"args")?.get(key)?.string()?;
            Some(value.into_owned()).filter(|value| !value.is_empty())
        };
        let role = argument(b"agent_name").or_else(|| argument(b"name"));
        let description = argument(b"prompt").or_else(|| argument(b"objective"));
        self.push_of(message, BlockKind::Subagent { id: subagent.id, role, description });
        match GeminiBlocks::of(&subagent.path, None) {
            Ok(mut blocks) => {
                (blocks.turn, blocks.depth) = (self.turn, self.depth + 1);
                (blocks.prose_only, blocks.with_media) = (self.prose_only, self.with_media);
                self.nested = Some(Box::new(blocks));
            }
            Err(_) => self.defects.add(DefectKind::MissingSubagent),
        }
    }

    fn pictures(&mut self, message: &Message<'_>, content: Raw<'_>) {
        for part in parts(content) {
            let (Some(data), is_inline) = (part.get(b"inlineData").or_else(|| part.get(b"fileData")), part) else {
                continue;
            };
            let media_type = data.get(b"mimeType").and_then(Raw::string).unwrap_or("application/octet-stream".into());
            let base64 = is_inline.get(b"inlineData").and_then(|data| data.get(b"data")).and_then(Raw::plain);
            let bytes = base64.map(|data| {
                let padding = data.iter().rev().take(2).filter(|byte| **byte == b'=').count();
                (data.len() / 4 * 3).saturating_sub(padding) as u64
            });
            let data = base64.filter(|_| self.with_media).map(|data| String::from_utf8_lossy(data).into_owned());
            self.push_of(message, BlockKind::Media { media_type: media_type.into_owned(), bytes, data });
        }
    }

    fn leave_out(&mut self) -> bool {
        self.leaves_tools_out |= self.prose_only;
        self.prose_only
    }

    fn push_of(&mut self, message: &Message<'_>, kind: BlockKind) {
        self.push(message.at(), message.text(b"id"), kind);
    }

    fn push(&mut self, at: Option<Timestamp>, message: Option<String>, kind: BlockKind) {
        self.queue.push_back(Block { turn: self.turn, depth: self.depth, at, message, kind });
    }

    /// OptionValue the blocks of a subagent that is being read.
    fn next_nested(&mut self) -> Option<Block> {
        let nested = self.nested.as_mut()?;
        let block = nested.next_block();
        if block.is_none() {
            let (defects, leaves_tools_out) = (nested.defects.clone(), nested.leaves_tools_out);
            self.defects.merge(&defects);
            self.leaves_tools_out |= leaves_tools_out;
            self.nested = None;
        }
        block
    }
}

impl Blocks for GeminiBlocks {
    fn next_block(&mut self) -> Option<Block> {
        loop {
            if let Some(block) = self.queue.pop_front() {
                return Some(block);
            }
            if let Some(block) = self.next_nested() {
                return Some(block);
            }
            let entry = *self.history.entries.get(self.next).filter(|_| self.next < self.end)?;
            self.next += 1;
            self.message(entry);
        }
    }

    fn tokens(&self) -> Option<TokenUse> {
        self.tokens
    }

    fn defects(&self) -> &Defects {
        &self.defects
    }

    fn leaves_tools_out(&self) -> bool {
        self.leaves_tools_out
    }
}

/// What the model thought.
fn thoughts(list: Raw<'_>) -> Vec<String> {
    let text = |thought: Raw<'_>| {
        let part = |key: &[u8]| thought.get(key).and_then(Raw::string).map(|text| text.trim().to_owned());
        let (subject, description) = (part(b"subject").unwrap_or_default(), part(b"description").unwrap_or_default());
        match (subject.is_empty(), description.is_empty()) {
            (false, false) => format!("**{subject}**\n\n{description}"),
            (false, true) => subject,
            _ => description,
        }
    };
    list.elements().map(text).filter(|text| !text.is_empty()).collect()
}

/// The text of a tool's response, and whether it is an error.
fn result_text(response: Raw<'_>) -> (String, bool) {
    for (key, is_error) in [(&b"output"[..], false), (b"error", true)] {
        if let Some(text) = response.get(key).and_then(Raw::string) {
            return (text.into_owned(), is_error);
        }
    }
    (String::from_utf8_lossy(response.0).into_owned(), false)
}

/// The exit code that the shell's tool writes after the output of a command.
pub(super) fn exit_code(tool: Option<&str>, text: &str) -> Option<i32> {
    if tool != Some("run_shell_command") {
        return None;
    }
    text.lines().rev().find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}
