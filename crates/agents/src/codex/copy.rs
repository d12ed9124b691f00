//! A fork by copy: the thread's history up to a turn, flattened into one file under a new id.
//!
//! The first line is the copy's own identity; references to other files are removed, because their history is in the
//! copy. Records change only where they name the thread itself (`thread_id`, `session_id` of a payload), or the
//! directory of a turn, by which Codex lists its threads; everything else is copied byte for byte, including unknown
//! records. Turns removed by going back to an earlier prompt are left out.

use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::home::{Home, Name};
use super::meta::Meta;
use super::record::{Kind, Record};
use super::scan::{Watch, scan, scan_copy};
use super::source::{Source, beginning_of_line, is_compressed};
use super::turns::{Place, Step, Turns};
use crate::PlainScan;
use crate::blocks::{ReadOptions, read_ahead};
use crate::copy::{Copied, CopyRequest, ReadBack};
use crate::fields::{Raw, walk};
use crate::follow::FileGrowth;
use crate::huge::fields_of;
use crate::lines::Line;
use crate::rewrite::{Change, Rewrite, Text, string};

/// Writes the copy that `order` describes to `out`.
pub(super) fn copy(
    home: &Home,
    source: &Path,
    order: &CopyRequest,
    known: Option<&PlainScan>,
    out: &mut dyn io::Write,
) -> io::Result<Copied> {
    let history = History::of(home, source, known);
    let cut = match order.turns {
        Some(turns) if history.turns.is_none_or(|all| turns < all) => Some(cut_after(&history, turns)?),
        _ => None,
    };
    let threads = history.files.iter().filter_map(|(path, _)| Name::of_path(path)).map(|name| name.thread);
    let mut copier = Copier {
        order,
        threads: threads.chain([order.source_id.to_string()]).collect(),
        rewrite: Rewrite::to(out, values(order), None),
        knows_world: false,
        turns: Turns::default(),
        steps: Vec::new(),
        turn_keys: Vec::new(),
    };
    copier.identity(source)?;
    let mut is_cut = false;
    for (segment, (path, end)) in history.files.iter().enumerate() {
        if is_cut {
            break;
        }
        // Another thread is only worth its overhead if a file must be decompressed.
        let means = ReadOptions::for_size(if is_compressed(path) { *end } else { 0 });
        read_ahead(Source::open(path)?, *end, means, |line| {
            let place = Place { segment, offset: line.offset };
            if cut.is_some_and(|cut| place >= cut) {
                is_cut = true;
                return Ok(ControlFlow::Break(()));
            }
            if !history.is_taken_back(place) {
                copier.line(path, line)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    copier.turns.finish(&mut copier.steps);
    copier.note_turns();
    let bytes = copier.rewrite.finish()?;
    Ok(Copied { bytes, turn_keys: copier.turn_keys, seal: copier.rewrite.seal })
}

/// Reads a copy back from `path`, where it may still be growing.
pub(super) fn read_back(home: &Home, path: &Path, order: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack {
    let rewrite = Rewrite::checking(values(order), None);
    let mut check = Check { order, path, rewrite, knows_world: false, is_first: true, end: 0, fault: None };
    let scan = scan_copy(home, (path, &order.target), growing, &mut check);
    let wrong = check.rewrite.wrong.map(|value| format!("a record has a different {}", NAMES[value]));
    ReadBack { summary: scan.summary, bytes: check.end, seal: check.rewrite.seal, fault: check.fault.or(wrong) }
}

/// The indices and names of the copy's own values.
const ID: usize = 0;
const DIRECTORY: usize = 1;
const NAMES: [&str; 2] = ["thread", "directory"];

/// The copy's own values.
fn values(order: &CopyRequest) -> Vec<Vec<u8>> {
    vec![string(order.id.as_str()), string(&order.cwd.to_string_lossy())]
}

/// Where the records of a thread are.
struct History {
    /// The files, oldest first, each with its end.
    files: Vec<(PathBuf, u64)>,
    /// Rolled-back ranges: from the first position up to and including the second.
    taken_back: Vec<(Place, Place)>,
    /// How many turns there are, if they were counted.
    turns: Option<u32>,
}

impl History {
    fn of(home: &Home, source: &Path, known: Option<&PlainScan>) -> Self {
        if let Some(known) = known {
            return History { files: vec![(source.to_owned(), known.size)], taken_back: Vec::new(), turns: None };
        }
        let scan = scan(home, source);
        History { files: scan.files, taken_back: scan.taken_back, turns: Some(scan.summary.turns) }
    }

    fn is_taken_back(&self, place: Place) -> bool {
        self.taken_back.iter().any(|(from, to)| (*from..=*to).contains(&place))
    }
}

/// Where the turn after `turns` starts, including the records of its task or context before its prompt.
fn cut_after(history: &History, turns: u32) -> io::Result<Place> {
    let mut counted = Turns::default();
    let mut steps = Vec::new();
    let next = |steps: &mut Vec<Step>| {
        steps.drain(..).find_map(|step| match step {
            Step::Prompt { steer: false, turn, from, .. } if turn > turns => Some(from),
            _ => None,
        })
    };
    for (segment, (path, end)) in history.files.iter().enumerate() {
        let mut lines = Source::lines(path, Some(*end))?;
        while let Some(line) = lines.next_line()? {
            let place = Place { segment, offset: line.offset };
            if history.is_taken_back(place) {
                continue;
            }
            let huge = line.bytes.is_none().then(|| beginning_of_line(path, line.offset)).flatten();
            let Some(record) = line.bytes.or(huge.as_deref()).and_then(Record::of) else {
                continue;
            };
            counted.add_record(&record, place, &mut steps);
            if let Some(next) = next(&mut steps) {
                return Ok(next);
            }
        }
    }
    // A prompt that ends the file is only known now.
    counted.finish(&mut steps);
    if let Some(next) = next(&mut steps) {
        return Ok(next);
    }
    let (segment, end) = (history.files.len().saturating_sub(1), history.files.last().map_or(0, |(_, end)| *end));
    Ok(Place { segment, offset: end })
}

struct Copier<'a> {
    order: &'a CopyRequest,
    /// The threads whose records are copied; the copy's own id takes the place of theirs.
    threads: HashSet<String>,
    rewrite: Rewrite<'a>,
    knows_world: bool,
    /// The turns of what was written, counted over the source's records.
    turns: Turns,
    steps: Vec<Step>,
    turn_keys: Vec<u64>,
}

impl Copier<'_> {
    /// The first line: the identity of the copy. It is parsed and rewritten, keeping unknown fields.
    fn identity(&mut self, source: &Path) -> io::Result<()> {
        let mut lines = Source::lines(source, None)?;
        let mut first = Map::from_iter([("type".to_owned(), json!("session_meta"))]);
        while let Some(line) = lines.next_line()? {
            let record: Option<Map<String, Value>> = line.bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
            if let Some(record) = record.filter(|record| record.get("type").is_some_and(|kind| kind == "session_meta"))
            {
                first = record;
                break;
            }
        }
        first.insert("timestamp".to_owned(), json!(self.order.now));
        if first.contains_key("ordinal") {
            first.insert("ordinal".to_owned(), json!(0));
        }
        // Foreign files hold anything. A payload that is not an object has no fields to keep.
        let mut payload = match first.get_mut("payload").map(Value::take) {
            Some(Value::Object(payload)) => payload,
            _ => Map::new(),
        };
        for (key, value) in [
            ("id", json!(self.order.id)),
            ("session_id", json!(self.order.id)),
            ("forked_from_id", json!(self.order.source_id)),
            ("timestamp", json!(self.order.now)),
            ("cwd", json!(self.order.cwd.to_string_lossy())),
        ] {
            payload.insert(key.to_owned(), value);
        }
        if let (Some(branch), Some(git)) = (&self.order.branch, payload.get_mut("git").and_then(Value::as_object_mut)) {
            git.insert("branch".to_owned(), json!(branch));
        }
        for reference in ["history_base", "forked_from_ordinal_exclusive"] {
            payload.shift_remove(reference);
        }
        first.insert("payload".to_owned(), Value::Object(payload));
        let line = Value::Object(first).to_string();
        self.rewrite.own_line(line.as_bytes());
        if let Some(record) = Record::of(line.as_bytes()) {
            self.turns.helper = Meta::of(&record).helper.is_some();
            self.turns.add_record(&record, Place::default(), &mut self.steps);
        }
        Ok(())
    }

    fn line(&mut self, path: &Path, line: &Line<'_>) -> io::Result<()> {
        let beginning = match line.bytes {
            Some(_) => Vec::new(),
            None => beginning(path, line)?,
        };
        let Some(record) = Record::of(line.bytes.unwrap_or(&beginning)) else {
            // Damaged lines are not copied: Codex skips them too.
            return Ok(());
        };
        // A legacy thread keeps the identities of its ancestors after its own, and so does its copy. In numbered
        // rollouts, one identity is for the whole history.
        if record.kind == Kind::SessionMeta && record.ordinal.is_some() {
            return Ok(());
        }
        let threads = &self.threads;
        let names_thread = |value: Raw<'_>| value.string().is_some_and(|id| threads.contains(id.as_ref()));
        self.knows_world |= record.kind == Kind::WorldState;
        let part = SplitRecord { path, line, kind: record.kind, knows_world: self.knows_world };
        if take(&mut self.rewrite, &part, names_thread)? {
            self.turns.add_record(&record, Place { segment: 0, offset: line.offset }, &mut self.steps);
            self.note_turns();
        }
        Ok(())
    }

    fn note_turns(&mut self) {
        for step in self.steps.drain(..) {
            if let Step::Prompt { steer: false, key, .. } = step {
                self.turn_keys.push(key);
            }
        }
    }
}

/// A record that is being split.
struct SplitRecord<'a> {
    path: &'a Path,
    line: &'a Line<'a>,
    kind: Kind,
    /// Whether Codex records in `world_state` what the model knows about its environment. Without it, Codex compares
    /// the last turn's directory with its own to decide whether to tell the model about a new one.
    knows_world: bool,
}

impl SplitRecord<'_> {
    /// Which of the copy's own values takes the place of a payload's field.
    fn new_value(&self, key: &[u8], value: Raw<'_>, is_own: impl Fn(Raw<'_>) -> bool) -> Option<usize> {
        match (self.kind, key) {
            (Kind::TurnContext, b"cwd") if self.knows_world && value.string().is_some() => Some(DIRECTORY),
            (Kind::SessionMeta, _) => None,
            (_, b"thread_id" | b"session_id") if is_own(value) => Some(ID),
            _ => None,
        }
    }
}

/// Splits a record, when the copy is written and when it is read back: ids of the thread itself, selected by `is_own`,
/// and directories are replaced. Returns false for a damaged line.
fn take(rewrite: &mut Rewrite<'_>, taken: &SplitRecord<'_>, is_own: impl Fn(Raw<'_>) -> bool) -> io::Result<bool> {
    let SplitRecord { path, line, .. } = *taken;
    if let Some(bytes) = line.bytes {
        let whole = walk(bytes, b"payload", |inner, key, value| {
            if inner && let Some(new) = taken.new_value(key, value, &is_own) {
                rewrite.replace(bytes, value, new);
            }
        });
        if !whole {
            rewrite.changes.clear();
            return Ok(false);
        }
        rewrite.record(&Text::Held(bytes))?;
        return Ok(true);
    }
    let open = |from: u64, to: u64| -> io::Result<Box<dyn Read>> {
        Ok(Box::new(Source::range(path, line.offset + from, line.offset + to)?))
    };
    let Some((fields, _)) = fields_of(open(0, line.len)?, Some(b"payload"))? else {
        return Ok(false);
    };
    for field in fields.iter().filter(|field| field.inner) {
        let new = field.value.as_deref().and_then(|value| taken.new_value(&field.key, Raw(value), &is_own));
        rewrite.changes.extend(new.map(|new| Change { start: field.start, end: field.end, new, ..Change::default() }));
    }
    rewrite.record(&Text::Long { len: line.len, open: &open })?;
    Ok(true)
}

/// The beginning of an oversized line, which shows its type.
fn beginning(path: &Path, line: &Line<'_>) -> io::Result<Vec<u8>> {
    let mut beginning = Vec::new();
    Source::range(path, line.offset, line.offset + line.len.min(4096))?.read_to_end(&mut beginning)?;
    Ok(beginning)
}

/// Looks at every record of a copy.
struct Check<'a> {
    order: &'a CopyRequest,
    path: &'a Path,
    rewrite: Rewrite<'a>,
    knows_world: bool,
    is_first: bool,
    /// Where the last record ends.
    end: u64,
    fault: Option<String>,
}

impl Check<'_> {
    fn note(&mut self, fault: &str) {
        self.fault.get_or_insert_with(|| fault.to_owned());
    }

    fn identity(&mut self, record: &Record<'_>) {
        let is = |key: &[u8], id: &str| record.get(key).and_then(Raw::string).is_some_and(|found| found == id);
        let (own, source) = (self.order.id.as_str(), self.order.source_id.as_str());
        if record.kind != Kind::SessionMeta || !is(b"id", own) || !is(b"session_id", own) {
            self.note("its first record is not its own identity");
        } else if !is(b"forked_from_id", source) {
            self.note("it lacks its parent pointer");
        } else if !is(b"cwd", &self.order.cwd.to_string_lossy()) {
            self.note("it works in another directory");
        } else if record.get(b"history_base").is_some() {
            self.note("it depends on another file");
        }
    }
}

impl Watch for Check<'_> {
    fn line(&mut self, record: &Record<'_>, line: &Line<'_>) {
        self.end = line.offset + line.len + u64::from(line.terminated);
        if std::mem::take(&mut self.is_first) {
            return self.identity(record);
        }
        let own = self.order.id.as_str();
        let names_copy = |value: Raw<'_>| value.string().is_some_and(|id| id == own);
        self.knows_world |= record.kind == Kind::WorldState;
        let part = SplitRecord { path: self.path, line, kind: record.kind, knows_world: self.knows_world };
        match take(&mut self.rewrite, &part, names_copy) {
            Ok(true) => {}
            Ok(false) => self.note("one of its lines is damaged"),
            Err(_) => self.note("it cannot be read back"),
        }
    }
}
