//! One pass over a history for the facts of the thread, near the speed of reading it.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{Agent, DefectKind, ParentPointer, ParentSource, SessionId, Summary, TokenUse, text};

use super::chain::{self, Segment};
use super::home::{Home, Name, time_of};
use super::meta::Meta;
use super::record::{Kind, Record};
use super::source::is_compressed;
use super::source::{Source, beginning_of_line};
use super::turns::{Place, Step, Turns};
use crate::blocks::{ReadOptions, read_ahead};
use crate::fields::Raw;
use crate::follow::{FileGrowth, Following};
use crate::lines::Line;

/// What a title needs of a prompt.
const TITLE_BYTES: usize = 200;

/// What one pass finds.
#[derive(Debug)]
pub(super) struct Scan {
    pub summary: Summary,
    pub meta: Meta,
    /// The files of the history, the oldest first, each with the offset at which the pass ended.
    pub files: Vec<(PathBuf, u64)>,
    /// Ranges removed by going back to an earlier prompt: from the first position up to and including the second.
    pub taken_back: Vec<(Place, Place)>,
}

/// Is shown every line of a thread's own file that is a record or may be one.
pub(super) trait Watch {
    fn line(&mut self, _record: &Record<'_>, _line: &Line<'_>) {}
}

impl Watch for () {}

/// Reads the history of the file at `path` once.
pub(super) fn scan(home: &Home, path: &Path) -> Scan {
    let mut pass = new_pass(home, path);
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let read = Source::open(path).and_then(|source| pass.own_file(path, source, ReadOptions::for_size(size), &mut ()));
    if read.is_err() {
        pass.summary.defects.add(DefectKind::Unreadable);
    }
    pass.finish()
}

/// Reads a copy that is being written to `path` and will be renamed to `target`, and passes all of its records to
/// `watch`.
pub(super) fn scan_copy(
    home: &Home,
    (path, target): (&Path, &Path),
    growing: Option<&FileGrowth>,
    watch: &mut impl Watch,
) -> Scan {
    let mut pass = new_pass(home, target);
    // A file that is still being written is in the page cache, so reading ahead is pointless.
    let read =
        Following::open(path, growing).and_then(|file| pass.own_file(path, file, ReadOptions::for_size(0), watch));
    if read.is_err() {
        pass.summary.defects.add(DefectKind::Unreadable);
    }
    for (name, _) in &mut pass.files {
        if name == path {
            target.clone_into(name);
        }
    }
    pass.finish()
}

fn new_pass<'a>(home: &'a Home, path: &Path) -> Pass<'a> {
    let id = Name::of_path(path).and_then(|name| SessionId::new(name.thread).ok());
    let id = id.unwrap_or_else(|| SessionId::new("unknown").expect("a legal id"));
    Pass {
        home,
        summary: Summary::new(Agent::Codex, id, path.to_owned()),
        meta: None,
        turns: Turns::default(),
        steps: Vec::new(),
        files: Vec::new(),
        taken_back: Vec::new(),
        known_records: 0,
        is_old: false,
        old_cwd: None,
        own: true,
        time: Vec::new(),
        tokens: Vec::new(),
        compacted: false,
        context: Vec::new(),
        context_time: Vec::new(),
        own_context: false,
    }
}

/// The directory in the environment context.
fn directory_in_context(record: &Record<'_>) -> Option<PathBuf> {
    let content = record.get(b"content")?;
    let mut texts = content.elements().filter_map(|element| element.get(b"text")?.string());
    texts.find_map(|text| {
        let about = text.trim_start().strip_prefix("<environment_context>")?;
        let tagged = about.split_once("<cwd>").and_then(|(_, rest)| rest.split_once("</cwd>"));
        let named = || about.split_once("Current working directory: ").and_then(|(_, rest)| rest.split_once('\n'));
        let (directory, _) = tagged.or_else(named)?;
        Some(PathBuf::from(directory.trim()))
    })
}

struct Pass<'a> {
    home: &'a Home,
    summary: Summary,
    meta: Option<Meta>,
    turns: Turns,
    steps: Vec<Step>,
    files: Vec<(PathBuf, u64)>,
    taken_back: Vec<(Place, Place)>,
    known_records: u64,
    /// Whether there are lines of before September 2025,
    is_old: bool,
    /// and the directory in the model's context, as nothing else records it.
    old_cwd: Option<PathBuf>,
    /// Whether the records are the file's own, not those of its base.
    own: bool,
    time: Vec<u8>,
    /// The last `token_count` and `turn_context`, parsed at the end.
    tokens: Vec<u8>,
    compacted: bool,
    context: Vec<u8>,
    /// When that `turn_context` was written.
    context_time: Vec<u8>,
    own_context: bool,
}

impl Pass<'_> {
    fn own_file<R: Read + Send>(
        &mut self,
        path: &Path,
        source: R,
        means: ReadOptions,
        watch: &mut impl Watch,
    ) -> io::Result<()> {
        let mut end = 0;
        let mut empty = true;
        let result = read_ahead(source, u64::MAX, means, |line| {
            end = line.offset + line.len + u64::from(line.terminated);
            empty &= line.is_blank();
            let huge = line.bytes.is_none().then(|| beginning_of_line(path, line.offset)).flatten();
            if let Some(record) = self.check(line, huge.as_deref()) {
                watch.line(&record, line);
                self.own_record(path, &record, line.offset);
            }
            Ok(ControlFlow::Continue(()))
        });
        if empty && result.is_ok() {
            self.summary.defects.add(DefectKind::Empty);
        }
        self.files.push((path.to_owned(), end));
        result
    }

    /// Takes a record of the thread's own file. The first identity shows whether a history in other files precedes it.
    fn own_record(&mut self, path: &Path, record: &Record<'_>, offset: u64) {
        self.note_time(record);
        if record.kind != Kind::SessionMeta || self.meta.is_some() {
            return self.record(record, Place { segment: self.files.len(), offset });
        }
        let meta = Meta::of(record);
        self.turns.helper = meta.helper.is_some();
        self.record(record, Place::default());
        if let Some(base) = &meta.base {
            self.own = false;
            let (segments, missing) = chain::resolve(self.home, path, base);
            let mut whole = missing.is_none();
            self.summary.bases = segments.iter().map(|segment| segment.path.clone()).collect();
            self.summary.missing_base = missing;
            for segment in &segments {
                whole &= self.segment(segment).unwrap_or(false);
            }
            if !whole {
                self.summary.defects.add(DefectKind::MissingBase);
            }
            self.own = true;
        }
        self.meta = Some(meta);
    }

    /// Reads a file that this one refers to; false if it ends too early.
    fn segment(&mut self, segment: &Segment) -> io::Result<bool> {
        let mut lines = Source::lines(&segment.path, None)?;
        let (mut end, mut reached) = (0, false);
        while let Some(line) = lines.next_line()? {
            let huge = line.bytes.is_none().then(|| beginning_of_line(&segment.path, line.offset)).flatten();
            let Some(record) = self.check(&line, huge.as_deref()) else {
                end = line.offset + line.len + u64::from(line.terminated);
                continue;
            };
            if segment.ends_before(&record, line.offset) {
                reached = true;
                break;
            }
            end = line.offset + line.len + u64::from(line.terminated);
            reached = match (segment.end_ordinal, record.ordinal) {
                (Some(wanted), Some(ordinal)) => ordinal + 1 >= wanted,
                _ => segment.end_offset.is_none_or(|wanted| end >= wanted),
            };
            self.record(&record, Place { segment: self.files.len(), offset: line.offset });
        }
        self.files.push((segment.path.clone(), end));
        Ok(reached)
    }

    /// The record on a line, or a defect.
    fn check<'line>(&mut self, line: &Line<'line>, huge: Option<&'line [u8]>) -> Option<Record<'line>> {
        let Some(bytes) = line.bytes else {
            self.summary.defects.add(DefectKind::HugeLine);
            return huge.and_then(Record::of);
        };
        let record = Record::of_line(line);
        if record.is_some() {
            // Telling ASCII is several times faster than telling UTF-8.
            if !bytes.is_ascii() && std::str::from_utf8(bytes).is_err() {
                self.summary.defects.add(DefectKind::InvalidUtf8);
            }
        } else if !line.is_blank() {
            let kind = if line.terminated { DefectKind::BadLine } else { DefectKind::TruncatedLine };
            self.summary.defects.add(kind);
        }
        record
    }

    fn note_time(&mut self, record: &Record<'_>) {
        if let Some(time) = record.time {
            self.time.clear();
            self.time.extend_from_slice(time);
        }
    }

    fn record(&mut self, record: &Record<'_>, place: Place) {
        match record.kind {
            Kind::TokenCount if record.has(b"info") => {
                keep(&mut self.tokens, record);
                let context = token_use(Raw(&self.tokens)).map_or(0, |tokens| tokens.context());
                self.summary.largest_context = self.summary.largest_context.max(context);
            }
            Kind::Compacted => self.compacted = true,
            Kind::TurnContext => {
                keep(&mut self.context, record);
                self.context_time.clear();
                self.context_time.extend_from_slice(record.time.unwrap_or_default());
                self.own_context = self.own;
            }
            _ => {}
        }
        if record.kind != Kind::Other {
            self.known_records += 1;
        }
        if record.is_bare {
            self.is_old = true;
            if record.kind == Kind::UserMessage && self.old_cwd.is_none() {
                self.old_cwd = directory_in_context(record);
            }
        }
        self.turns.add_record(record, place, &mut self.steps);
        self.take_steps(place);
    }

    fn take_steps(&mut self, place: Place) {
        for step in self.steps.drain(..) {
            match step {
                Step::Prompt { message, steer: false, key, .. } => {
                    self.summary.turn_keys.push(key);
                    if self.summary.first_prompt.is_none() {
                        // A title needs no more than the first of many lines.
                        let line = text::one_line(text::prefix(message.request().1, 8 * TITLE_BYTES));
                        self.summary.first_prompt =
                            Some(text::prefix(&line, TITLE_BYTES).to_owned()).filter(|line| !line.is_empty());
                    }
                }
                Step::TakenBack(from) => {
                    self.taken_back.push((from, place));
                    self.summary.turn_keys.truncate(self.turns.count as usize);
                    if self.turns.count == 0 {
                        self.summary.first_prompt = None;
                    }
                }
                Step::Prompt { .. } | Step::Shell(_) | Step::Injected(_) => {}
            }
        }
    }

    fn finish(mut self) -> Scan {
        let end = Place { segment: self.files.len(), offset: 0 };
        self.turns.finish(&mut self.steps);
        self.take_steps(end);
        let meta = self.meta.take().unwrap_or_default();
        let summary = &mut self.summary;
        if self.known_records == 0 && summary.defects.is_empty() {
            summary.defects.add(DefectKind::UnknownFormat);
        }
        if self.is_old {
            summary.defects.add(DefectKind::OldFormat);
        }
        let own_name = meta.id.as_ref().is_none_or(|id| *id == summary.id);
        if let Some(id) = &meta.id {
            summary.id = id.clone();
        }
        summary.turns = self.turns.count;
        summary.is_empty = summary.turns == 0;
        let is_plain = own_name && self.taken_back.is_empty() && meta.helper.is_none() && !is_compressed(&summary.path);
        if let ([(path, end)], true) = (self.files.as_slice(), is_plain)
            && *path == summary.path
        {
            summary.plain = Some(*end);
        }
        summary.mid_turn = self.turns.running;
        summary.compacted = self.compacted;
        summary.version = meta.version.clone();
        summary.branch = meta.branch.clone();
        summary.is_subagent = meta.helper.is_some();
        let parent = meta.forked_from.as_ref().or(meta.spawned_by.as_ref());
        summary.parent = parent.map(|id| ParentPointer { id: id.clone(), source: ParentSource::Agent });
        summary.updated = std::str::from_utf8(&self.time).ok().and_then(|time| time.parse().ok());
        // A file that was begun by going back has the time of that; the thread's id has the time of its beginning.
        let reverted = Name::of_path(&summary.path).filter(|name| name.segment.is_some());
        let began = reverted.and_then(|name| Timestamp::from_millisecond(time_of(&name.thread)?).ok());
        summary.created = began.or(meta.began_at()).or(summary.updated);
        // A copy is younger than the records in it.
        summary.updated = summary.updated.max(summary.created.filter(|_| summary.updated.is_some()));
        summary.tokens = token_use(Raw(&self.tokens));
        let context = Raw(&self.context);
        summary.model = context.get(b"model").and_then(Raw::string).map(|model| model.into_owned());
        let moved = context
            .get(b"cwd")
            .and_then(Raw::string)
            .filter(|_| self.own_context && !is_copied(context, &self.context_time, &meta));
        summary.cwd = moved.map(|cwd| PathBuf::from(cwd.as_ref())).or_else(|| meta.cwd.clone());
        summary.cwd = summary.cwd.take().or(self.old_cwd);
        Scan { summary: self.summary, meta, files: self.files, taken_back: self.taken_back }
    }
}

fn keep(buffer: &mut Vec<u8>, record: &Record<'_>) {
    buffer.clear();
    buffer.extend_from_slice(record.payload());
}

/// A fork in the legacy dialect starts with copies of its source's records. The directory of a turn that is older than
/// the thread is not the thread's. Codex writes copies with new times and tine with the old ones; turns of versions
/// before 0.99 have no id.
fn is_copied(context: Raw<'_>, written: &[u8], meta: &Meta) -> bool {
    let turn = context.get(b"turn_id").and_then(Raw::string).and_then(|id| time_of(&id));
    let written: Option<Timestamp> = std::str::from_utf8(written).ok().and_then(|time| time.parse().ok());
    let began = meta.began_at().map(|began| began.as_millisecond());
    let is_older = |time: Option<i64>| time.zip(began).is_some_and(|(time, began)| time < began);
    meta.forked_from.is_some() && (is_older(turn) || is_older(written.map(Timestamp::as_millisecond)))
}

fn token_use(count: Raw<'_>) -> Option<TokenUse> {
    let info = count.get(b"info")?;
    let last = info.get(b"last_token_usage")?;
    Some(TokenUse {
        input: last.get(b"input_tokens").and_then(Raw::number)?,
        output: last.get(b"output_tokens").and_then(Raw::number).unwrap_or(0),
        window: info.get(b"model_context_window").and_then(Raw::number),
    })
}
