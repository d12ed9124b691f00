//! The messages of a session in their order, found by replaying its file.
//!
//! A chat file is a log: a message with a known id replaces that message where it was, `$rewindTo` drops a message and
//! all after it, and `$set` with `messages` replaces all of them. So the history is known only at the end. It is kept as
//! the places of the messages, a few dozen bytes for each, and the messages are read again when they are needed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{DefectKind, Defects};

use super::elements::elements;
use super::message::{self, Kind, Message, answered_call, parts};
use super::meta::Meta;
use crate::blocks::{ReadOptions, read_ahead};
use crate::fields::{Fields, Raw};
use crate::files::{fingerprint, open_regular};
use crate::follow::{FileGrowth, Following};
use crate::huge::{LongField, fields_of};
use crate::lines::{LONGEST, Line};

/// A message and its place in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub kind: Kind,
    /// The fingerprint of its id.
    pub key: u64,
    pub start: u64,
    pub len: u64,
    /// Whether it is an answer that calls tools, so that another one follows.
    pub calls_tools: bool,
}

/// The replayed file.
#[derive(Debug, Default)]
pub(super) struct History {
    pub meta: Meta,
    pub entries: Vec<Entry>,
    pub defects: Defects,
    /// Calls whose results are stored with them.
    pub answered: HashSet<u64>,
    /// The time of the last message.
    pub last: Option<Timestamp>,
    /// How much was read.
    pub size: u64,
    places: HashMap<u64, usize>,
    records: u64,
}

impl History {
    /// Replays the file at `path`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        if is_old(path) {
            return History::of_old(path, file);
        }
        let size = file.metadata()?.len();
        History::replay(path, file, ReadOptions::for_size(size))
    }

    /// Replays a copy that may still be written.
    pub(super) fn of_copy(path: &Path, growing: Option<&FileGrowth>) -> io::Result<Self> {
        History::replay(path, Following::open(path, growing)?, ReadOptions::for_size(0))
    }

    fn replay<R: Read + Send>(path: &Path, source: R, means: ReadOptions) -> io::Result<Self> {
        let mut history = History::default();
        let mut is_blank = true;
        let read = read_ahead(source, u64::MAX, means, |line| {
            history.size = line.offset + line.len + u64::from(line.terminated);
            is_blank &= line.is_blank();
            history.line(path, line)?;
            Ok(ControlFlow::Continue(()))
        });
        if read.is_err() {
            history.defects.add(DefectKind::Unreadable);
        }
        history.finish(is_blank);
        Ok(history)
    }

    /// Versions before JSONL wrote one object.
    fn of_old(path: &Path, file: File) -> io::Result<Self> {
        let mut history = History { size: file.metadata()?.len(), ..History::default() };
        match fields_of(file, None)? {
            Some((fields, _)) => history.long_fields(path, 0, &fields)?,
            None => history.defects.add(if history.size == 0 { DefectKind::Empty } else { DefectKind::BadLine }),
        }
        history.finish(false);
        Ok(history)
    }

    fn finish(&mut self, is_blank: bool) {
        if is_blank && self.defects.is_empty() {
            self.defects.add(DefectKind::Empty);
        } else if self.records == 0 && self.defects.is_empty() {
            self.defects.add(DefectKind::UnknownFormat);
        }
    }

    fn line(&mut self, path: &Path, line: &Line<'_>) -> io::Result<()> {
        let Some(bytes) = line.bytes else {
            self.defects.add(DefectKind::HugeLine);
            return self.long_line(path, line.offset, line.len);
        };
        if line.is_blank() {
            return Ok(());
        }
        if !Fields::of(bytes).finish() {
            self.defects.add(if line.terminated { DefectKind::BadLine } else { DefectKind::TruncatedLine });
            return Ok(());
        }
        if !bytes.is_ascii() && std::str::from_utf8(bytes).is_err() {
            self.defects.add(DefectKind::InvalidUtf8);
        }
        let record = Raw(bytes);
        if let Some(id) = record.get(b"$rewindTo").and_then(Raw::string) {
            self.records += 1;
            self.rewind(fingerprint(id.as_bytes()));
        } else if let Some(message) = Message::of(bytes) {
            self.add(&message, line.offset);
        } else if let Some(change) = record.get(b"$set") {
            self.change(change, change_offset(bytes, change, line.offset), true);
        } else if record.get(b"sessionId").is_some() && record.get(b"projectHash").is_some() {
            self.change(record, line.offset, false);
        }
        Ok(())
    }

    /// OptionValue a change of the metadata. One that lists messages replaces all, unless it is the first line of a file.
    fn change(&mut self, change: Raw<'_>, offset: u64, replaces: bool) {
        self.records += 1;
        for (key, value) in change.fields() {
            if key != b"messages" || !value.0.starts_with(b"[") {
                self.meta.take(key, value);
                continue;
            }
            if replaces {
                self.clear();
            }
            for element in value.elements() {
                if let Some(message) = Message::of(element.0) {
                    self.add(&message, offset + distance(change.0, element.0));
                }
            }
        }
    }

    /// A line that is too long to be held: a message with a picture, or all messages at once.
    fn long_line(&mut self, path: &Path, offset: u64, len: u64) -> io::Result<()> {
        let Some((fields, _)) = fields_of(range(path, offset, len)?, Some(b"$set"))? else {
            return Ok(());
        };
        let inner: Vec<LongField> = fields.iter().filter(|field| field.inner).cloned().collect();
        if !inner.is_empty() {
            if inner.iter().any(|field| field.key == b"messages") {
                self.clear();
            }
            return self.long_fields(path, offset, &inner);
        }
        if fields.iter().any(|field| field.key == b"sessionId") {
            return self.long_fields(path, offset, &fields);
        }
        self.long_message(&fields, offset, len);
        Ok(())
    }

    /// The fields of an object that is not held, with the messages that it lists.
    fn long_fields(&mut self, path: &Path, offset: u64, fields: &[LongField]) -> io::Result<()> {
        self.records += 1;
        for field in fields {
            if let Some(value) = &field.value {
                self.meta.take(&field.key, Raw(value));
            }
            if field.key != b"messages" {
                continue;
            }
            let list = offset + field.start;
            for (start, end) in elements(range(path, list, field.end - field.start)?)? {
                let (at, len) = (list + start, end - start);
                if len < LONGEST as u64 {
                    let mut bytes = Vec::new();
                    range(path, at, len)?.read_to_end(&mut bytes)?;
                    if let Some(message) = Message::of(&bytes) {
                        self.add(&message, at);
                    }
                } else if let Some((fields, _)) = fields_of(range(path, at, len)?, None)? {
                    self.long_message(&fields, at, len);
                }
            }
        }
        Ok(())
    }

    fn long_message(&mut self, fields: &[LongField], start: u64, len: u64) {
        let get = |key: &[u8]| fields.iter().find(|field| field.key == key)?.value.as_deref();
        if let Some(id) = get(b"id").and_then(|id| Raw(id).string()) {
            let kind = Message::kind_of_long(get(b"type").and_then(|kind| Raw(kind).plain()).unwrap_or_default());
            self.put(Entry { kind, key: fingerprint(id.as_bytes()), start, len, calls_tools: false });
        }
    }

    fn add(&mut self, message: &Message<'_>, start: u64) {
        if message.kind == Kind::Import {
            self.meta.imported_from = message::imported_from(message.content);
        }
        if message.kind == Kind::Answer {
            self.answered.extend(message.answered_calls());
        }
        self.last = message.at().or(self.last);
        let (calls_tools, len) = (message.calls_tools(), message.bytes.0.len() as u64);
        self.put(Entry { kind: message.kind, key: message.key, start, len, calls_tools });
    }

    fn put(&mut self, entry: Entry) {
        self.records += 1;
        match self.places.get(&entry.key) {
            Some(place) => self.entries[*place] = entry,
            None => {
                self.places.insert(entry.key, self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    fn rewind(&mut self, key: u64) {
        match self.places.get(&key).copied() {
            Some(place) => {
                for dropped in self.entries.drain(place..) {
                    self.places.remove(&dropped.key);
                }
            }
            None => self.clear(),
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.answered.clear();
    }

    /// The messages of the first turns; with `None`, all.
    pub(super) fn up_to(&self, turns: Option<u32>) -> &[Entry] {
        let prompts = self.entries.iter().enumerate().filter(|(_, entry)| entry.kind == Kind::Prompt);
        let next = turns.and_then(|turns| prompts.map(|(index, _)| index).nth(turns as usize));
        &self.entries[..next.unwrap_or(self.entries.len())]
    }

    /// Whether the results in a message are all stored with their calls as well.
    pub(super) fn is_told_before(&self, results: &Message<'_>) -> bool {
        let ids = parts(results.content).filter_map(answered_call);
        ids.map(|id| fingerprint(id.as_bytes())).all(|id| self.answered.contains(&id))
    }
}

/// The file that the client loaded a session from, according to the note among its first records.
pub(super) fn imported_from(head: &[u8]) -> Option<PathBuf> {
    let messages = head.split(|byte| *byte == b'\n').take(3).filter_map(Message::of);
    messages.filter(|message| message.kind == Kind::Import).find_map(|note| message::imported_from(note.content))
}

/// Whether a file is from a version before JSONL.
pub(super) fn is_old(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// The bytes of a message; nothing for one that is too long to be held.
pub(super) fn load(file: &mut File, entry: &Entry, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    if entry.len >= LONGEST as u64 {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(entry.start))?;
    file.take(entry.len).read_to_end(buffer)?;
    Ok(buffer.len() as u64 == entry.len)
}

/// A part of a file.
pub(super) fn range(path: &Path, offset: u64, len: u64) -> io::Result<io::Take<File>> {
    let mut file = open_regular(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file.take(len))
}

/// Where in the file the value of `$set` begins.
fn change_offset(line: &[u8], change: Raw<'_>, offset: u64) -> u64 {
    offset + distance(line, change.0)
}

/// How far inside `whole` its part begins.
fn distance(whole: &[u8], part: &[u8]) -> u64 {
    (part.as_ptr().addr() - whole.as_ptr().addr()) as u64
}
