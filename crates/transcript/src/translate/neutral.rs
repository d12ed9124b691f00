//! Makes messages of blocks. Whatever the blocks are, the messages follow these rules:
//!
//! - The first message is a prompt or a summary. Only what follows the last compaction is there.
//! - A round of the model is one message, with its parallel calls; the next one holds the results of all of them, in the
//!   same order. A result is made up where none was recorded.
//! - Ids of calls are unique and legal everywhere, and so are the names of tools; arguments are objects.
//! - No text is blank, except that of a result, and no message is empty.
//! - Thinking, subagents and notes of the agent's program are left out.
//!
//! One round is held at a time, so that a conversation of any size is read in little memory.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::receipt::{Receipt, ReceiptItem};
use super::{CallResult, Message, MessageKind, Picture, Step, ToolCall};
use crate::seed::{Fit, SeedEntryKind, SeedSizes, shortened};
use crate::{Block, BlockKind, NoticeKind, secrets};

/// The result of a call that has none.
pub const INTERRUPTED: &str = "[interrupted: no result was recorded]";
/// The first line of a failed result, in formats that can't mark one.
pub const TOOL_ERROR: &str = "[tool error]";
/// The prompt before a conversation that begins with an answer.
const BEGINNING: &str = "[The beginning of the conversation is missing.]";
/// A prompt without content; leaving it out would join the answers around it.
const EMPTY: &str = "[empty message]";
/// The pictures that every agent's models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Whether every model takes this as the id of a call.
pub fn is_legal_call_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Whether every model takes this as the name of a tool.
pub fn is_legal_tool(name: &str) -> bool {
    is_legal_call_id(name) && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// What is wanted of the messages.
#[derive(Debug, Clone, Default)]
pub struct NeutralOptions {
    /// Whether thinking is kept as text.
    pub keeps_thinking: bool,
    /// Whether secrets are masked.
    pub masks: bool,
    /// How many compactions there are, known from an earlier pass. Without it, every compaction starts over.
    pub compactions: Option<usize>,
    /// What is shortened, decided after an earlier pass.
    pub fit: Option<Fit>,
}

/// Makes messages of blocks; see the module.
#[derive(Debug, Default)]
pub struct Neutral {
    options: NeutralOptions,
    receipt: Receipt,
    ready: VecDeque<Message>,
    round: Option<Round>,
    /// Prompts that follow the round; several if the user wrote to a busy agent.
    prompts: Vec<Message>,
    /// What a picture belongs to.
    last: Last,
    /// Ids of calls so far, as hashes.
    ids: HashSet<u64>,
    compactions: usize,
    has_begun: bool,
    sizes: SeedSizes,
    /// The number of texts that were measured so far.
    measured: usize,
    left_out: HashSet<u32>,
}

/// What the last block was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    Prompt,
    /// The result of the call with this index.
    Result(usize),
    #[default]
    Else,
}

/// A round of the model, and the results so far.
#[derive(Debug)]
struct Round {
    at: Option<Timestamp>,
    results_at: Option<Timestamp>,
    turn: u32,
    message: Option<String>,
    model: Option<String>,
    steps: Vec<Step>,
    calls: Vec<Called>,
}

#[derive(Debug)]
struct Called {
    /// The id as it was.
    id: String,
    new_id: String,
    name: String,
    result: Option<CallResult>,
}

impl Neutral {
    /// Starts a conversation.
    pub fn new(options: NeutralOptions) -> Self {
        Neutral { options, ..Neutral::default() }
    }

    /// Takes the next block. Returns true if it is a compaction after which everything starts over: messages so far don't
    /// count.
    pub fn block(&mut self, mut block: Block) -> bool {
        if block.depth > 0 {
            return false;
        }
        let is_before = self.options.compactions.is_some_and(|all| self.compactions < all);
        if let BlockKind::Compaction { summary } = &block.kind {
            if summary.trim().is_empty() {
                return false;
            }
            self.compactions += 1;
            match self.options.compactions {
                Some(all) if self.compactions != all => return false,
                _ => self.restart(block.turn),
            }
        } else if is_before {
            return false;
        }
        if self.options.masks {
            let count = secrets::mask_block(&mut block.kind);
            self.receipt.add(ReceiptItem::Secrets, count as u64);
        }
        self.take(block)
    }

    /// The next message that is complete.
    pub fn next_message(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    /// Ends the conversation.
    pub fn finish(&mut self) {
        self.flush();
    }

    /// What became of everything.
    pub fn receipt(&mut self) -> &mut Receipt {
        &mut self.receipt
    }

    /// How many compactions there were.
    pub fn compactions(&self) -> usize {
        self.compactions
    }

    /// The sizes of all texts, to decide what is shortened.
    pub fn into_sizes(self) -> SeedSizes {
        self.sizes
    }

    fn restart(&mut self, turn: u32) {
        let compactions = self.compactions;
        *self = Neutral { options: std::mem::take(&mut self.options), compactions, ..Neutral::default() };
        self.receipt.add(ReceiptItem::TurnsBeforeSummary, u64::from(turn));
    }

    fn take(&mut self, block: Block) -> bool {
        let Block { turn, at, message, kind, .. } = block;
        match kind {
            BlockKind::Prompt { text, steer } => self.prompt(at, turn, text, steer),
            BlockKind::Answer { text, model } => {
                self.last = Last::Else;
                let round = self.round(at, turn, message);
                round.model = model.or(round.model.take());
                if !text.trim().is_empty() {
                    round.steps.push(Step::Text(text));
                }
            }
            BlockKind::Thinking { text } => {
                self.last = Last::Else;
                let keeps = self.options.keeps_thinking && !text.trim().is_empty();
                let round = self.round(at, turn, message);
                if keeps {
                    round.steps.push(Step::Text(format!("<thinking>\n{}\n</thinking>", text.trim())));
                }
                self.receipt.note(if keeps { ReceiptItem::ThinkingAsText } else { ReceiptItem::Thinking });
            }
            BlockKind::Call { id, name, input } => self.call(at, turn, message, (id, name, input)),
            BlockKind::Output { call, text, error, exit_code, .. } => self.result(at, &call, text, error, exit_code),
            BlockKind::Media { media_type, bytes, data } => self.media(&media_type, bytes, data),
            BlockKind::Compaction { summary } => {
                self.emit(Message { at, turn, kind: MessageKind::Summary(summary) });
                return true;
            }
            BlockKind::Notice { notice: NoticeKind::Unreadable, .. } => self.receipt.note(ReceiptItem::Unreadable),
            BlockKind::Notice { .. } => self.receipt.note(ReceiptItem::Notices),
            BlockKind::Subagent { .. } => self.receipt.note(ReceiptItem::Subagents),
        }
        false
    }

    fn prompt(&mut self, at: Option<Timestamp>, turn: u32, text: String, steer: bool) {
        let is_open = self.round.as_ref().is_some_and(|round| round.calls.iter().any(|call| call.result.is_none()));
        if !(steer && is_open) {
            self.flush();
        }
        if steer {
            self.receipt.note(ReceiptItem::MessagesToBusyAgent);
        }
        let text = if text.trim().is_empty() { String::new() } else { text };
        self.prompts.push(Message { at, turn, kind: MessageKind::User { text, pictures: Vec::new() } });
        self.last = Last::Prompt;
    }

    /// The round that a block belongs to: that of the same message, or the last one as long as it has no results.
    fn round(&mut self, at: Option<Timestamp>, turn: u32, message: Option<String>) -> &mut Round {
        let joins = self.prompts.is_empty()
            && self.round.as_ref().is_some_and(|round| {
                let is_same = message.is_some() && round.message == message;
                is_same || round.calls.iter().all(|call| call.result.is_none())
            });
        if !joins {
            self.flush();
        }
        let (results_at, model) = (None, None);
        let new = || Round { at, results_at, turn, message: None, model, steps: Vec::new(), calls: Vec::new() };
        let round = self.round.get_or_insert_with(new);
        round.message = message.or(round.message.take());
        round
    }

    fn call(
        &mut self,
        at: Option<Timestamp>,
        turn: u32,
        message: Option<String>,
        (id, name, input): (String, String, Value),
    ) {
        self.last = Last::Else;
        let new_id = self.unique_id(&id);
        let name = self.legal_name(name);
        let input = match input {
            Value::Object(_) => input,
            Value::Null => json!({}),
            other => {
                self.receipt.note(ReceiptItem::ArgumentsWrapped);
                json!({ "input": other })
            }
        };
        let round = self.round(at, turn, message);
        round.steps.push(Step::Call(ToolCall { id: new_id.clone(), name: name.clone(), input }));
        round.calls.push(Called { id, new_id, name, result: None });
    }

    fn unique_id(&mut self, id: &str) -> String {
        let hash = |text: &str| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        };
        if is_legal_call_id(id) && self.ids.insert(hash(id)) {
            return id.to_owned();
        }
        self.receipt.note(ReceiptItem::IdsReplaced);
        let mut number = 0_u32;
        loop {
            let new = format!("call_{:016x}", hash(&format!("{number} {id}")));
            if self.ids.insert(hash(&new)) {
                return new;
            }
            number += 1;
        }
    }

    fn legal_name(&mut self, name: String) -> String {
        if is_legal_tool(&name) {
            return name;
        }
        self.receipt.note(ReceiptItem::NamesReplaced);
        let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut replaced: String = name.chars().map(legal).collect();
        if !replaced.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            replaced.insert_str(0, "tool_");
        }
        replaced.truncate(64);
        replaced
    }

    fn result(&mut self, at: Option<Timestamp>, call: &str, text: String, error: bool, exit_code: Option<i32>) {
        let open = self.round.as_mut().and_then(|round| {
            let found = round.calls.iter().position(|called| called.id == call && called.result.is_none())?;
            Some((round, found))
        });
        let Some((round, found)) = open else {
            self.last = Last::Else;
            self.receipt.note(ReceiptItem::ResultsWithoutCall);
            return;
        };
        let called = &mut round.calls[found];
        let mut result = CallResult {
            id: called.new_id.clone(),
            name: called.name.clone(),
            text,
            error,
            exit_code,
            pictures: Vec::new(),
        };
        separate_failure(&mut result);
        called.result = Some(result);
        round.results_at = at.or(round.results_at);
        self.last = Last::Result(found);
    }

    fn media(&mut self, media_type: &str, bytes: Option<u64>, data: Option<String>) {
        let is_picture = PICTURES.contains(&media_type);
        let picture = data.filter(|data| is_picture && !data.is_empty());
        let picture = picture.map(|data| Picture { media_type: media_type.to_owned(), data });
        let note = || {
            let size = bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
            format!("[file left out: {}{size}]", crate::text::one_line(media_type))
        };
        if picture.is_none() {
            self.receipt.note(ReceiptItem::Files);
        }
        match self.last {
            Last::Prompt => {
                if let Some(Message { kind: MessageKind::User { text, pictures }, .. }) = self.prompts.last_mut() {
                    attach(picture, note, text, pictures);
                }
            }
            Last::Result(index) => {
                let called = self.round.as_mut().and_then(|round| round.calls.get_mut(index));
                if let Some(CallResult { text, pictures, .. }) = called.and_then(|called| called.result.as_mut()) {
                    attach(picture, note, text, pictures);
                }
            }
            // An answer can't hold one.
            Last::Else if picture.is_some() => self.receipt.note(ReceiptItem::Files),
            Last::Else => {}
        }
    }

    /// Ends the round and the prompts after it.
    fn flush(&mut self) {
        if let Some(round) = self.round.take() {
            self.end_round(round);
        }
        for mut prompt in std::mem::take(&mut self.prompts) {
            if let MessageKind::User { text, pictures } = &mut prompt.kind
                && text.is_empty()
                && pictures.is_empty()
            {
                EMPTY.clone_into(text);
                self.receipt.note(ReceiptItem::EmptyMessages);
            }
            self.emit(prompt);
        }
        self.last = Last::Else;
    }

    fn end_round(&mut self, round: Round) {
        let Round { at, results_at, turn, model, steps, calls, .. } = round;
        if steps.is_empty() {
            return;
        }
        self.emit(Message { at, turn, kind: MessageKind::Assistant { model, steps } });
        if calls.is_empty() {
            return;
        }
        let mut results = Vec::new();
        for called in calls {
            let Called { new_id: id, name, result, .. } = called;
            results.push(result.unwrap_or_else(|| {
                self.receipt.note(ReceiptItem::CallsClosed);
                let text = INTERRUPTED.to_owned();
                CallResult { id, name, text, error: true, exit_code: None, pictures: Vec::new() }
            }));
        }
        self.emit(Message { at: results_at.or(at), turn, kind: MessageKind::Results(results) });
    }

    fn emit(&mut self, mut message: Message) {
        if !self.fits(&mut message) {
            if self.left_out.insert(message.turn) {
                self.receipt.note(ReceiptItem::TurnsTooLong);
            }
            return;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin(&mut message);
        }
        match &message.kind {
            MessageKind::User { pictures, .. } => {
                self.receipt.note(ReceiptItem::Prompts);
                self.receipt.add(ReceiptItem::Pictures, pictures.len() as u64);
            }
            MessageKind::Assistant { steps, .. } => {
                let calls = steps.iter().filter(|step| matches!(step, Step::Call(_))).count();
                self.receipt.add(ReceiptItem::Answers, (steps.len() - calls) as u64);
                self.receipt.add(ReceiptItem::Calls, calls as u64);
            }
            MessageKind::Results(results) => {
                self.receipt.add(ReceiptItem::Results, results.len() as u64);
                let pictures: usize = results.iter().map(|result| result.pictures.len()).sum();
                self.receipt.add(ReceiptItem::Pictures, pictures as u64);
            }
            MessageKind::Summary(_) => self.receipt.note(ReceiptItem::Summary),
        }
        self.ready.push_back(message);
    }

    /// Sees to it that a prompt or a summary comes first, and says what was left out before it.
    fn begin(&mut self, first: &mut Message) {
        let first_turn = self.options.fit.as_ref().map_or(0, Fit::first_turn);
        let left_out = (first_turn > 1).then(|| format!("[Turns before turn {first_turn} are left out here.]"));
        match &mut first.kind {
            MessageKind::Summary(text) => {
                if let Some(note) = left_out {
                    *text = format!("{text}\n\n{note}");
                }
            }
            MessageKind::User { text, .. } => {
                if let Some(note) = left_out {
                    *text = format!("{note}\n\n{text}").trim_end().to_owned();
                }
            }
            MessageKind::Assistant { .. } | MessageKind::Results(_) => {
                self.receipt.note(ReceiptItem::BeginningAdded);
                let text = left_out.unwrap_or_else(|| BEGINNING.to_owned());
                let kind = MessageKind::User { text, pictures: Vec::new() };
                self.ready.push_back(Message { at: first.at, turn: first.turn, kind });
            }
        }
    }

    /// Measures the texts of a message, and shortens them where that is decided. Returns false if it is left out.
    fn fits(&mut self, message: &mut Message) -> bool {
        let Message { turn, kind, .. } = message;
        let first_turn = self.options.fit.as_ref().map_or(0, Fit::first_turn);
        if !matches!(kind, MessageKind::Summary(_)) && *turn < first_turn {
            self.measured += texts_of(kind);
            return false;
        }
        let mut measure = Measure {
            turn: *turn,
            fit: self.options.fit.as_ref(),
            sizes: &mut self.sizes,
            measured: &mut self.measured,
            receipt: &mut self.receipt,
        };
        match kind {
            MessageKind::User { text, pictures } => {
                measure.text(text, SeedEntryKind::Words);
                pictures.iter().for_each(|_| measure.picture());
            }
            MessageKind::Assistant { steps, .. } => {
                for step in steps {
                    match step {
                        Step::Text(text) => measure.text(text, SeedEntryKind::Words),
                        Step::Call(call) => measure.arguments(&mut call.input),
                    }
                }
            }
            MessageKind::Results(results) => {
                results.iter_mut().for_each(|result| measure.text(&mut result.text, SeedEntryKind::Output));
            }
            MessageKind::Summary(text) => measure.text(text, SeedEntryKind::Words),
        }
        true
    }
}

/// Adds a picture, or a note in its place.
fn attach(picture: Option<Picture>, note: impl Fn() -> String, text: &mut String, pictures: &mut Vec<Picture>) {
    match picture {
        Some(picture) => pictures.push(picture),
        None => {
            let line = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(line);
            text.push_str(&note());
        }
    }
}

/// How many entries a message has among the sizes.
fn texts_of(kind: &MessageKind) -> usize {
    match kind {
        MessageKind::User { pictures, .. } => 1 + pictures.len(),
        MessageKind::Assistant { steps, .. } => steps.len(),
        MessageKind::Results(results) => results.len(),
        MessageKind::Summary(_) => 1,
    }
}

/// The texts of a message, one after the other.
struct Measure<'a> {
    turn: u32,
    fit: Option<&'a Fit>,
    sizes: &'a mut SeedSizes,
    measured: &'a mut usize,
    receipt: &'a mut Receipt,
}

impl Measure<'_> {
    fn allowed(&mut self, characters: usize, kind: SeedEntryKind) -> Option<usize> {
        self.sizes.add(self.turn, kind, characters);
        let index = *self.measured;
        *self.measured += 1;
        let allowed = self.fit?.allowed(index);
        let item = match kind {
            SeedEntryKind::Words => ReceiptItem::MessagesShortened,
            SeedEntryKind::Call => ReceiptItem::ArgumentsShortened,
            SeedEntryKind::Output => ReceiptItem::ResultsShortened,
        };
        (allowed < characters).then(|| self.receipt.note(item)).map(|()| allowed)
    }

    fn text(&mut self, text: &mut String, kind: SeedEntryKind) {
        if let Some(allowed) = self.allowed(text.chars().count(), kind) {
            *text = shortened(text, allowed);
        }
    }

    /// A picture takes about 1,500 tokens.
    fn picture(&mut self) {
        self.sizes.add(self.turn, SeedEntryKind::Words, 5_000);
        *self.measured += 1;
    }

    fn arguments(&mut self, input: &mut Value) {
        let characters = characters_of(input);
        if let Some(allowed) = self.allowed(characters, SeedEntryKind::Call) {
            shorten_strings(input, allowed);
        }
    }
}

/// About how long a value is as JSON.
fn characters_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 6,
        Value::String(text) => text.chars().count() + 2,
        Value::Array(values) => values.iter().map(|value| characters_of(value) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + characters_of(value) + 4).sum::<usize>() + 2
        }
    }
}

fn shorten_strings(value: &mut Value, allowed: usize) {
    match value {
        Value::String(text) => *text = shortened(text, allowed),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten_strings(value, allowed)),
        Value::Object(fields) => fields.values_mut().for_each(|value| shorten_strings(value, allowed)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes the marks of a failure out of a text, however its agent writes them.
fn separate_failure(result: &mut CallResult) {
    while let Some(rest) = result.text.strip_prefix(TOOL_ERROR).and_then(|rest| rest.strip_prefix('\n')) {
        result.text = rest.to_owned();
        result.error = true;
    }
    result.error |= result.exit_code.is_some_and(|code| code != 0);
    if !result.error {
        result.exit_code = None;
        return;
    }
    let code = result.text.strip_prefix("Exit code ").and_then(|rest| {
        let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        Some((code.parse::<i32>().ok().filter(|number| code == number.to_string())?, rest.to_owned()))
    });
    if let Some((code, rest)) = code.filter(|(code, _)| *code != 0 && result.exit_code.is_none_or(|own| own == *code)) {
        (result.exit_code, result.text) = (Some(code), rest);
    }
    result.exit_code = result.exit_code.filter(|code| *code != 0);
}
