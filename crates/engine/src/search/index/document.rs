//! Turns the blocks of a conversation into documents for the index, one per turn.
//!
//! Prose is indexed completely, with word frequencies. Of tool calls and output, only the distinct words of a turn are
//! kept: that is a tenth of the work, and enough to find the turn. Nothing that looks like a secret is indexed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agents::{Blocks, TurnStart};
use serde_json::Value;
use tantivy::schema::{Field, OwnedValue};
use transcript::seed::is_seed;
use transcript::{Block, BlockKind, NoticeKind, secrets};

use super::branch;
use super::schema::{Fields, NO_OFFSET, place_key};
use super::table::Level;
use crate::search::query::paths::{is_extension, normal_path};
use crate::search::query::words::Terms;

/// A turn with more words than this becomes several documents, so that memory stays bounded.
const LARGEST: usize = 1 << 20;

/// A document on its way to the index. Until then, its size counts against a limit.
pub(crate) struct TurnDocument {
    values: Vec<(Field, OwnedValue)>,
    size: usize,
    pending: Arc<AtomicUsize>,
}

impl Drop for TurnDocument {
    fn drop(&mut self) {
        self.pending.fetch_sub(self.size, Ordering::Relaxed);
    }
}

impl tantivy::Document for TurnDocument {
    type Value<'a> = &'a OwnedValue;
    type FieldsValuesIter<'a> = std::iter::Map<
        std::slice::Iter<'a, (Field, OwnedValue)>,
        fn(&'a (Field, OwnedValue)) -> (Field, &'a OwnedValue),
    >;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.values.iter().map(|(field, value)| (*field, value))
    }
}

/// How much of a transcript has been read.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentProgress {
    /// The last indexed turn.
    pub turns: u32,
    /// Its offset.
    pub last: Option<u64>,
    /// Whether the end was reached.
    pub complete: bool,
    /// Lines that are too long to index: before the last turn, and in it.
    pub left_out: (u32, u32),
    /// Whether there was text that only the second pass indexes.
    pub has_tools: bool,
    /// The subagents of the last turn.
    pub subagents: Vec<String>,
}

/// Creates documents from one transcript.
pub(crate) struct DocumentBuilder<'a> {
    pub fields: Fields,
    pub file: u64,
    pub level: Level,
    /// Turns up to this one belong to another session and are indexed there.
    pub shared: u32,
    pub pending: &'a Arc<AtomicUsize>,
    /// Takes the documents; returns false to stop.
    pub sink: &'a dyn Fn(TurnDocument) -> bool,
    /// Whether time is up.
    pub is_late: &'a dyn Fn() -> bool,
    turn: Turn,
}

#[derive(Default)]
struct Turn {
    number: u32,
    /// Whether it contains another session's transcript, which is indexed there.
    is_seed: bool,
    offset: Option<u64>,
    at: Option<i64>,
    prose: Terms,
    stems: Terms,
    tools: Terms,
    paths: Terms,
    names: Terms,
}

impl<'a> DocumentBuilder<'a> {
    pub(crate) fn new(
        fields: Fields,
        file: u64,
        level: Level,
        shared: u32,
        pending: &'a Arc<AtomicUsize>,
        sink: &'a dyn Fn(TurnDocument) -> bool,
        is_late: &'a dyn Fn() -> bool,
    ) -> Self {
        DocumentBuilder { fields, file, level, shared, pending, sink, is_late, turn: Turn::default() }
    }

    /// Adds the document of a session's title.
    pub(crate) fn title(&mut self, title: &str, at: Option<jiff::Timestamp>) {
        self.turn.number = 0;
        self.turn.at = at.map(|at| at.as_second());
        self.prose(title);
        self.flush();
    }

    /// Reads blocks to the end, or until time is up. An unfinished turn is read again the next time.
    pub(crate) fn read(&mut self, blocks: &mut dyn Blocks, from: Option<TurnStart>) -> DocumentProgress {
        let mut progress = DocumentProgress {
            turns: from.map_or(0, |from| from.turn.saturating_sub(1)),
            ..DocumentProgress::default()
        };
        let first = from.map_or(1, |from| from.turn);
        let mut begun = false;
        while let Some(block) = blocks.next_block() {
            // Text before the first prompt belongs to its turn.
            let number = block.turn.max(first);
            if !begun || number != self.turn.number {
                if begun {
                    self.flush();
                }
                begun = true;
                let began = blocks.turn_began().filter(|mark| mark.turn == number).map(|mark| mark.offset);
                self.turn.number = number;
                self.turn.is_seed = false;
                self.turn.offset = began;
                progress.turns = number;
                progress.last = began;
                progress.left_out = (progress.left_out.0 + progress.left_out.1, 0);
                progress.subagents.clear();
            }
            match &block.kind {
                BlockKind::Notice { notice: NoticeKind::Unreadable, .. } => progress.left_out.1 += 1,
                BlockKind::Subagent { id, .. } => progress.subagents.push(id.to_string()),
                BlockKind::Notice { .. } | BlockKind::Call { .. } | BlockKind::Output { .. } => {
                    progress.has_tools = true;
                }
                _ => {}
            }
            // Without a position to resume from, stopping would gain nothing.
            if progress.last.is_some() && (self.is_late)() {
                self.flush();
                return progress;
            }
            self.turn.is_seed |= matches!(&block.kind, BlockKind::Prompt { text, .. } if is_seed(text));
            if number > self.shared && !self.turn.is_seed {
                self.block(&block);
                if self.turn.size() > LARGEST {
                    self.flush();
                }
            }
        }
        self.flush();
        progress.complete = true;
        progress
    }

    /// Reads the turns of another branch that are not in its session's history. Returns false if time was up before the
    /// end.
    pub(crate) fn read_branch(&mut self, blocks: &mut dyn Blocks, branch: usize, shared: u32) -> bool {
        let mut last = None;
        while let Some(block) = blocks.next_block() {
            if (self.is_late)() {
                self.flush();
                return false;
            }
            let number = branch::number(branch, block.turn).filter(|_| block.turn > shared);
            let Some(number) = number else { continue };
            if last.replace(number) != Some(number) {
                self.flush();
                (self.turn.number, self.turn.is_seed, self.turn.offset) = (number, false, None);
            }
            self.block(&block);
            if self.turn.size() > LARGEST {
                self.flush();
            }
        }
        self.flush();
        true
    }

    fn block(&mut self, block: &Block) {
        if self.turn.at.is_none() {
            self.turn.at = block.at.map(|at| at.as_second());
        }
        let turn = &mut self.turn;
        let all = self.level == Level::All;
        match &block.kind {
            BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. } | BlockKind::Thinking { text } => {
                self.prose(text);
            }
            BlockKind::Compaction { summary } => self.prose(summary),
            BlockKind::Subagent { description, .. } => self.prose(description.as_deref().unwrap_or_default()),
            BlockKind::Notice { notice: NoticeKind::Unreadable, .. } | BlockKind::Media { .. } => {}
            BlockKind::Notice { text, .. } if all => turn.tools.add_new(&secrets::mask(text).0),
            BlockKind::Call { name, input, .. } if all => {
                turn.names.add_exact(&name.to_lowercase());
                turn.tools.add_new(name);
                call(turn, "", &secrets::mask_json(input).0, 0);
            }
            BlockKind::Output { text, exit_code, .. } if all => {
                turn.tools.add_new(&secrets::mask(text).0);
                if let Some(code) = exit_code.filter(|code| *code != 0) {
                    turn.tools.add_new(&format!("exit code {code} exit_{code}"));
                }
            }
            BlockKind::Notice { .. } | BlockKind::Call { .. } | BlockKind::Output { .. } => {}
        }
    }

    /// Takes a message. All prose passes through here, with its transcript, its turn and the turn's offset, and is cut
    /// into chunks for embedding here.
    fn prose(&mut self, text: &str) {
        self.turn.prose.add(&secrets::mask(text).0, &mut self.turn.stems);
    }

    fn flush(&mut self) {
        let turn = &mut self.turn;
        let size = turn.size();
        if size == 0 {
            turn.at = None;
            return;
        }
        let fields = &self.fields;
        let mut values = vec![
            (fields.file, OwnedValue::U64(self.file)),
            (fields.turn, OwnedValue::U64(u64::from(turn.number))),
            (fields.place, OwnedValue::U64(place_key(self.file, turn.number))),
            (fields.at, OwnedValue::I64(turn.at.unwrap_or(0))),
            (fields.offset, OwnedValue::U64(turn.offset.unwrap_or(NO_OFFSET))),
        ];
        let texts = [
            (fields.prose, turn.prose.take()),
            (fields.stem, turn.stems.take()),
            (fields.tools, turn.tools.take()),
            (fields.path, turn.paths.take()),
            (fields.tool, turn.names.take()),
        ];
        for (field, text) in texts {
            let is_always_asked = [fields.prose, fields.stem, fields.tools].contains(&field);
            match text.is_empty() {
                false => values.push((field, OwnedValue::Str(text))),
                true if is_always_asked => values.push((field, OwnedValue::Str(NOTHING.to_owned()))),
                true => {}
            }
        }
        turn.at = None;
        self.pending.fetch_add(size, Ordering::Relaxed);
        (self.sink)(TurnDocument { values, size, pending: Arc::clone(self.pending) });
    }
}

impl Turn {
    fn size(&self) -> usize {
        [&self.prose, &self.stems, &self.tools, &self.paths, &self.names].iter().map(|terms| terms.text.len()).sum()
    }
}

/// The content of an empty field, which no query can contain. tantivy takes a megabyte of memory to look up a field
/// that is missing in a segment.
const NOTHING: &str = "-";

/// The input of a tool call without secrets: every value, and the files that it names.
fn call(turn: &mut Turn, key: &str, value: &Value, depth: u8) {
    match value {
        Value::String(text) => {
            turn.tools.add_new(text);
            if is_path_key(key) {
                path(turn, text);
            } else {
                named_paths(turn, text);
            }
        }
        Value::Number(number) => turn.tools.add_new(&number.to_string()),
        Value::Array(values) if depth < 16 => values.iter().for_each(|value| call(turn, key, value, depth + 1)),
        Value::Object(values) if depth < 16 => values.iter().for_each(|(key, value)| call(turn, key, value, depth + 1)),
        _ => {}
    }
}

fn is_path_key(key: &str) -> bool {
    matches!(key, "file_path" | "path" | "notebook_path" | "filePath" | "absolute_path" | "file" | "paths")
}

/// Names of files without an extension in commands.
const PLAIN_FILES: [&str; 10] = [
    "CODEOWNERS",
    "Containerfile",
    "Dockerfile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "LICENSE",
    "Makefile",
    "Procfile",
    "Vagrantfile",
];

/// The files that a command or a patch names.
fn named_paths(turn: &mut Turn, text: &str) {
    let is_separator =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>' | '|' | ';' | '=' | ',');
    let mut found = 0;
    for line in text.lines().take(2000) {
        // Only the headings of a patch name files; its lines are code.
        if text.starts_with("*** Begin Patch") {
            let headings = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
            if let Some(named) = headings.into_iter().find_map(|heading| line.strip_prefix(heading)) {
                path(turn, named);
            }
            continue;
        }
        for word in line.split(is_separator) {
            let name = word.rsplit('/').next().unwrap_or_default();
            let has_extension = name.rsplit_once('.').is_some_and(|(_, extension)| is_extension(extension));
            if (has_extension || PLAIN_FILES.contains(&name)) && !word.contains("://") && word.len() < 300 {
                path(turn, word);
                found += 1;
                if found > 200 {
                    return;
                }
            }
        }
    }
}

/// Adds a path by all of its suffixes, so that `auth.rs`, `src/auth.rs` and the full path are found.
fn path(turn: &mut Turn, text: &str) {
    let lower = normal_path(text);
    if lower.len() > 1000 {
        return;
    }
    let mut rest = lower.as_str();
    loop {
        turn.paths.add_exact(rest);
        match rest.split_once('/') {
            Some((_, after)) => rest = after,
            None => return,
        }
    }
}
