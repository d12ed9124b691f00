//! A fork by copy: the source's records up to a turn, under a new id, as the client's own fork would write them.
//!
//! A copy changes a record's own `sessionId`, `cwd` and `gitBranch`, its `forkedFrom`, and paths into the source's side
//! folder; where links are repaired, also its `parentUuid`. Everything else is copied byte for byte, including unknown
//! records. Left out are records about the running source: `worktree-state` (it would put the fork into the source's
//! worktree), `queue-operation`, `api-request*`, `last-prompt`, and titles, because the fork gets a new one.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use transcript::{Agent, Summary};

use super::home;
use super::kept::{Inclusion, Kept, Place};
use super::layout::{Chain, LineUse, Parts};
use super::long_record::LongRecord;
use super::record::Record;
use super::scan::{Watch, layout_of, scan_copy};
use crate::PlainScan;
use crate::copy::{Copied, CopyRequest, ReadBack};
use crate::fields::{Fields, Raw};
use crate::follow::FileGrowth;
use crate::huge::LongField;
use crate::lines::{Line, LineReader};
use crate::rewrite::{Change, Rewrite, Text, string};

/// Writes the copy that `order` describes to `out`.
pub(super) fn copy(
    source: &Path,
    order: &CopyRequest,
    known: Option<&PlainScan>,
    out: &mut dyn Write,
) -> io::Result<Copied> {
    let mut kept = Kept::of(source, order, known);
    let end = kept.end;
    let mut records = Records::new(Rewrite::to(out, values(order), marks(source, &order.target)), order.relink);
    let mut lines = LineReader::open(source, 0, Some(end))?;
    let mut noted = known.filter(|_| !order.relink && order.tip.is_none()).and_then(|known| known.layout.clone());
    // A cut may be near the beginning of a long file.
    if let (None, None, None, Some(known)) = (&noted, order.turns, order.tip, known) {
        noted = layout_of(source, known.size).map(Arc::new);
    }
    let mut parts = Parts(noted.as_deref().map_or(&[], Vec::as_slice));
    while let Some((line, part)) = parts.next_line(&mut lines)? {
        match (line.bytes, part) {
            (Some(bytes), LineUse::Carried { session, chain }) => {
                if !kept.takes_part(chain.as_ref(), bytes) {
                    break;
                }
                records.laid_out(bytes, session, chain.as_ref())?;
                continue;
            }
            (_, LineUse::LeftOut) => continue,
            _ => {}
        }
        let long = match line.bytes {
            Some(_) => None,
            None => LongRecord::read(source, &line)?,
        };
        let record = match (line.bytes, &long) {
            (Some(bytes), _) => Record::of(bytes),
            (None, Some(long)) => long.record(),
            (None, None) => Record::default(),
        };
        if !record.complete {
            // Damaged lines are not copied: the client skips them, and an incomplete line would merge with the next.
            continue;
        }
        match kept.takes(&record, &line) {
            Inclusion::Yes => {}
            Inclusion::Later | Inclusion::No => continue,
            Inclusion::NothingMore => break,
        }
        records.parent = kept.links.pass(kept.last, &record);
        match (line.bytes, &long) {
            (Some(bytes), _) => records.held(&record, bytes)?,
            (None, Some(long)) => records.long(long, source, &line)?,
            (None, None) => {}
        }
        while let Some((index, place)) = kept.next_held() {
            records.at(source, place, |record| kept.links.pass(index, record))?;
        }
    }
    for (index, place) in kept.all_held() {
        records.at(source, place, |record| kept.links.pass(index, record))?;
    }
    if let Some(title) = &order.title {
        let line = serde_json::json!({ "type": "custom-title", "customTitle": title, "sessionId": order.id });
        let line = line.to_string();
        records.held(&Record::of(line.as_bytes()), line.as_bytes())?;
    }
    let bytes = records.rewrite.finish()?;
    Ok(Copied { bytes, turn_keys: kept.turn_keys, seal: records.rewrite.seal })
}

/// Reads a copy back from `path`, where it may still be growing.
pub(super) fn read_back(path: &Path, source: &Path, order: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack {
    let summary = Summary::new(Agent::Claude, order.id.clone(), order.target.clone());
    let records = Records::new(Rewrite::checking(values(order), marks(source, &order.target)), order.relink);
    let mut check = Check { records, path, fault: None };
    let scan = scan_copy(path, growing, summary, &mut check);
    let wrong = check.records.rewrite.wrong.map(|value| format!("a record has a different {}", NAMES[value]));
    let fault = check.fault.or(wrong);
    ReadBack { summary: scan.summary, bytes: scan.size, seal: check.records.rewrite.seal, fault }
}

struct Check<'a> {
    records: Records<'a>,
    path: &'a Path,
    fault: Option<String>,
}

impl Check<'_> {
    fn note(&mut self, record: &Record<'_>, was_taken: bool) {
        if !was_taken {
            self.fault.get_or_insert_with(|| "it cannot be read back".to_owned());
        }
        if record.is_chain() && record.forked_from.is_none() {
            self.fault.get_or_insert_with(|| "a record lacks its parent pointer".to_owned());
        }
    }
}

impl Watch for Check<'_> {
    fn held(&mut self, record: &Record<'_>, line: &[u8]) {
        let taken = self.records.held(record, line);
        self.note(record, taken.is_ok());
    }

    fn long(&mut self, long: &LongRecord, line: &Line<'_>) {
        let taken = self.records.long(long, self.path, line);
        self.note(&long.record(), taken.is_ok());
    }
}

const ID: usize = 0;
const CWD: usize = 1;
const BRANCH: usize = 2;
const ORIGIN: usize = 3;
/// The whole field, if it was missing.
const ORIGIN_FIELD: usize = 4;
const PARENT: usize = 5;
const NAMES: [&str; 6] = ["session", "directory", "branch", "origin", "origin", "parent"];

/// The new values; those of the origin begin with what is the same for all records.
fn values(order: &CopyRequest) -> Vec<Vec<u8>> {
    let id = string(order.id.as_str());
    let cwd = string(&order.cwd.to_string_lossy());
    let branch = string(order.branch.as_deref().unwrap_or("HEAD"));
    let mut origin = b"{\"sessionId\":".to_vec();
    origin.extend(string(order.source_id.as_str()));
    origin.extend_from_slice(b",\"messageUuid\":");
    let field = [b",\"forkedFrom\":", origin.as_slice()].concat();
    vec![id, cwd, branch, origin, field, Vec::new()]
}

/// Paths into the source's side folder are changed to the fork's, which holds a copy. The slash after the folder is
/// part of the pattern, so that no other session's folder matches. Without such a folder, no path can point into it.
pub(super) fn marks(source: &Path, target: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = |transcript: &Path| {
        let quoted = string(&format!("{}/", home::side_folder(transcript).to_string_lossy()));
        quoted[1..quoted.len() - 1].to_vec()
    };
    home::side_folder(source).is_dir().then(|| (text(source), text(target)))
}

/// Splits records, when the copy is written and when it is read back.
struct Records<'a> {
    rewrite: Rewrite<'a>,
    /// How long the origins are without a record's id.
    beginnings: [usize; 2],
    /// Whether links are mended.
    relink: bool,
    /// The new parent of the next record, as JSON.
    parent: Option<Vec<u8>>,
}

impl<'a> Records<'a> {
    fn new(rewrite: Rewrite<'a>, relink: bool) -> Self {
        let beginnings = [rewrite.values[ORIGIN].len(), rewrite.values[ORIGIN_FIELD].len()];
        Records { rewrite, beginnings, relink, parent: None }
    }

    fn held(&mut self, record: &Record<'_>, line: &[u8]) -> io::Result<()> {
        let is_chain = record.is_chain();
        if record.repeated {
            for (key, value) in Fields::of(line) {
                self.field(key, value, line, is_chain);
            }
        } else {
            if let Some(session) = record.session {
                self.rewrite.replace(line, session, ID);
            }
            if is_chain {
                self.chain_fields(record, line);
            }
        }
        if let (true, true, Some(value)) = (self.relink, is_chain, record.parent_value) {
            self.set_parent(value);
            self.rewrite.replace(line, value, PARENT);
            if let Some(change) = self.rewrite.changes.last_mut() {
                change.sealed = true;
            }
        }
        if let (true, Some(id)) = (is_chain, record.id) {
            self.origin(id);
            if record.forked_from.is_none() {
                let brace = line.iter().rposition(|byte| *byte == b'}').unwrap_or(line.len()) as u64;
                self.rewrite.changes.push(Change { start: brace, end: brace, new: ORIGIN_FIELD, ..Change::default() });
            }
        }
        self.rewrite.record(&Text::Held(line))
    }

    /// Takes a record whose line is laid out already.
    fn laid_out(&mut self, line: &[u8], session: Option<Range<usize>>, chain: Option<&Chain>) -> io::Result<()> {
        let mut replace = |place: Range<usize>, new: usize| self.rewrite.replace(line, Raw(&line[place]), new);
        session.into_iter().for_each(|place| replace(place, ID));
        if let Some(chain) = chain {
            chain.cwd.clone().into_iter().for_each(|place| replace(place, CWD));
            chain.branch.clone().into_iter().for_each(|place| replace(place, BRANCH));
            let brace = line.len() - 1;
            replace(brace..brace, ORIGIN_FIELD);
            self.origin(Raw(&line[chain.uuid.clone()]));
        }
        self.rewrite.record(&Text::Held(line))
    }

    /// Takes a record of `source` that had to wait. `parent` is its new parent.
    fn at(
        &mut self,
        source: &Path,
        Place { offset, len }: Place,
        parent: impl FnOnce(&Record<'_>) -> Option<Vec<u8>>,
    ) -> io::Result<()> {
        let mut lines = LineReader::open(source, offset, Some(offset + len))?;
        let Some(line) = lines.next_line()? else {
            return Ok(());
        };
        match line.bytes {
            Some(bytes) => {
                let record = Record::of(bytes);
                self.parent = parent(&record);
                self.held(&record, bytes)
            }
            None => match LongRecord::read(source, &line)? {
                Some(long) => {
                    self.parent = parent(&long.record());
                    self.long(&long, source, &line)
                }
                None => Ok(()),
            },
        }
    }

    /// Gives the next record the parent that it should have, or the one that it has.
    fn set_parent(&mut self, own: Raw<'_>) {
        self.rewrite.values[PARENT] = self.parent.take().unwrap_or_else(|| own.0.to_vec());
    }

    fn chain_fields(&mut self, record: &Record<'_>, line: &[u8]) {
        for (value, new) in [(record.cwd, CWD), (record.branch, BRANCH)] {
            if let Some(value) = value {
                self.rewrite.replace(line, value, new);
            }
        }
        if let Some(value) = record.forked_from {
            self.field(b"forkedFrom", value, line, true);
        }
    }

    fn field(&mut self, key: &[u8], value: Raw<'_>, line: &[u8], is_chain: bool) {
        let new = match key {
            b"sessionId" => ID,
            b"cwd" if is_chain => CWD,
            b"gitBranch" if is_chain => BRANCH,
            b"forkedFrom" if is_chain => ORIGIN,
            _ => return,
        };
        self.rewrite.replace(line, value, new);
        if let (ORIGIN, Some(change)) = (new, self.rewrite.changes.last_mut()) {
            change.lead = lead(&line[..change.start as usize], key);
        }
    }

    fn long(&mut self, long: &LongRecord, path: &Path, line: &Line<'_>) -> io::Result<()> {
        let record = long.record();
        let is_chain = record.is_chain();
        for field in &long.fields {
            let mut sealed = false;
            let (new, lead) = match field.key.as_slice() {
                b"sessionId" => (ID, 0),
                b"parentUuid" if is_chain && self.relink && is_last(&long.fields, field) => {
                    self.set_parent(Raw(field.value.as_deref().unwrap_or(b"null")));
                    sealed = true;
                    (PARENT, 0)
                }
                b"cwd" if is_chain => (CWD, 0),
                b"gitBranch" if is_chain => (BRANCH, 0),
                b"forkedFrom" if is_chain => (ORIGIN, field.start - field.begins),
                _ => continue,
            };
            self.rewrite.changes.push(Change { start: field.start, end: field.end, lead, new, sealed });
        }
        if let (true, Some(id)) = (is_chain, record.id) {
            self.origin(id);
            if record.forked_from.is_none() {
                let added = Change { start: long.brace, end: long.brace, new: ORIGIN_FIELD, ..Change::default() };
                self.rewrite.changes.push(added);
            }
        }
        take_long(&mut self.rewrite, path, line)
    }

    /// Completes the origin with the id of the record.
    fn origin(&mut self, id: Raw<'_>) {
        for (value, beginning) in [ORIGIN, ORIGIN_FIELD].into_iter().zip(self.beginnings) {
            let text = &mut self.rewrite.values[value];
            text.truncate(beginning);
            text.extend_from_slice(id.0);
            text.push(b'}');
        }
    }
}

/// Whether no field of the same name follows; if one does, it is the one that counts.
fn is_last(fields: &[LongField], field: &LongField) -> bool {
    fields.iter().rfind(|other| other.key == field.key).is_some_and(|last| last.start == field.start)
}

/// How much before a value belongs to its field: key and colon, and the comma unless it is the first.
fn lead(before: &[u8], key: &[u8]) -> u64 {
    let text = before.trim_ascii_end();
    let text = text.strip_suffix(b":").unwrap_or(text).trim_ascii_end();
    let at_key = &text[..text.len().saturating_sub(key.len() + 2)];
    let rest = at_key.trim_ascii_end();
    (before.len() - rest.strip_suffix(b",").map_or(at_key.len(), <[u8]>::len)) as u64
}

fn take_long(rewrite: &mut Rewrite<'_>, path: &Path, line: &Line<'_>) -> io::Result<()> {
    let open = |from: u64, to: u64| -> io::Result<Box<dyn Read>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(line.offset + from))?;
        Ok(Box::new(file.take(to - from)))
    };
    rewrite.record(&Text::Long { len: line.len, open: &open })
}

/// A subagent's records name the session that it works for; nothing else in them changes.
pub(super) fn copy_subagent(from: &Path, source: &Path, order: &CopyRequest, out: &mut dyn Write) -> io::Result<()> {
    let marks = marks(source, &order.target);
    let mut rewrite = Rewrite::to(out, vec![string(order.id.as_str())], marks);
    let mut lines = LineReader::open(from, 0, None)?;
    while let Some(line) = lines.next_line()? {
        let Some(bytes) = line.bytes else {
            let fields = LongRecord::read(from, &line)?.map_or_else(Vec::new, |long| long.fields);
            let sessions = fields.iter().filter(|field| field.key == b"sessionId");
            let change =
                |field: &LongField| Change { start: field.start, end: field.end, new: ID, ..Change::default() };
            rewrite.changes.extend(sessions.map(change));
            take_long(&mut rewrite, from, &line)?;
            continue;
        };
        for (_, session) in Fields::of(bytes).filter(|(key, _)| *key == b"sessionId") {
            rewrite.replace(bytes, session, ID);
        }
        rewrite.record(&Text::Held(bytes))?;
    }
    rewrite.finish().map(|_| ())
}
