//! A fork by copy: the source's records up to a turn, under a new id, as the client's own fork would write them.
//!
//! What changes in a record is its own `sessionId`, `cwd` and `gitBranch`, its `forkedFrom`, and paths into the source's
//! side folder. Everything else is carried byte for byte, records of unknown kinds included. Left out are records that
//! speak of the running source: `worktree-state` (it would put the fork into the source's worktree),
//! `queue-operation`, `api-request*`, `last-prompt`, and titles, of which the fork gets its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use transcript::{Agent, Summary};

use super::home;
use super::layout::{Chain, Part, Parts};
use super::order::Order;
use super::record::{Kind, Record, UserPart, key_of};
use super::scan::{LongRecord, Scan, Watch, layout_of, scan, scan_copy};
use crate::Known;
use crate::copy::{Copied, CopyOrder, ReadBack};
use crate::fields::{Fields, Raw};
use crate::follow::Growing;
use crate::huge::LongField;
use crate::lines::{Line, LineReader};
use crate::rewrite::{Change, Rewrite, Text, string};

/// Writes the copy that `order` describes to `out`.
pub(super) fn copy(source: &Path, order: &CopyOrder, known: Option<&Known>, out: &mut dyn Write) -> io::Result<Copied> {
    let mut kept = Kept::of(source, order, known);
    let end = kept.end;
    let mut records = Records::new(Rewrite::to(out, values(order), marks(source, &order.target)));
    let mut lines = LineReader::open(source, 0, Some(end))?;
    let mut noted = known.and_then(|known| known.layout.clone());
    // A cut may be near the beginning of a long file.
    if let (None, None, Some(known)) = (&noted, order.turns, known) {
        noted = layout_of(source, known.size).map(Arc::new);
    }
    let mut parts = Parts(noted.as_deref().map_or(&[], Vec::as_slice));
    while let Some((line, part)) = parts.next_line(&mut lines)? {
        match (line.bytes, part) {
            (Some(bytes), Part::Carried { session, chain }) => {
                if !kept.takes_part(chain.as_ref(), bytes) {
                    break;
                }
                records.laid_out(bytes, session, chain.as_ref())?;
                continue;
            }
            (_, Part::LeftOut) => continue,
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
            // Damage is not carried along: the client passes over it, and a cut line would glue itself to the next.
            continue;
        }
        match kept.takes(&record, &line) {
            Takes::Yes => {}
            Takes::Later | Takes::No => continue,
            Takes::NothingMore => break,
        }
        match (line.bytes, &long) {
            (Some(bytes), _) => records.held(&record, bytes)?,
            (None, Some(long)) => records.long(long, source, &line)?,
            (None, None) => {}
        }
        while let Some(place) = kept.next_held() {
            records.at(source, place)?;
        }
    }
    for place in kept.all_held() {
        records.at(source, place)?;
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
pub(super) fn read_back(path: &Path, source: &Path, order: &CopyOrder, growing: Option<&Growing>) -> ReadBack {
    let summary = Summary::new(Agent::Claude, order.id.clone(), order.target.clone());
    let records = Records::new(Rewrite::checking(values(order), marks(source, &order.target)));
    let mut check = Check { records, path, fault: None };
    let scan = scan_copy(path, growing, summary, &mut check);
    let wrong =
        check.records.rewrite.wrong.map(|value| format!("a record says something else of its {}", NAMES[value]));
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
            self.fault.get_or_insert_with(|| "a record does not say where it was forked from".to_owned());
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
/// The whole field, where there was none.
const ORIGIN_FIELD: usize = 4;
const NAMES: [&str; 5] = ["session", "directory", "branch", "origin", "origin"];

/// The new values; those of the origin begin with what is the same for all records.
fn values(order: &CopyOrder) -> Vec<Vec<u8>> {
    let id = string(order.id.as_str());
    let cwd = string(&order.cwd.to_string_lossy());
    let branch = string(order.branch.as_deref().unwrap_or("HEAD"));
    let mut origin = b"{\"sessionId\":".to_vec();
    origin.extend(string(order.source_id.as_str()));
    origin.extend_from_slice(b",\"messageUuid\":");
    let field = [b",\"forkedFrom\":", origin.as_slice()].concat();
    vec![id, cwd, branch, origin, field]
}

/// Paths into the source's side folder lead into the fork's, which holds a copy of it. The slash behind the folder is
/// part of what is looked for, so that no other session's folder begins alike. Where there is no such folder, there is
/// nothing that a path could lead to.
pub(super) fn marks(source: &Path, target: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = |transcript: &Path| {
        let quoted = string(&format!("{}/", home::side_folder(transcript).to_string_lossy()));
        quoted[1..quoted.len() - 1].to_vec()
    };
    home::side_folder(source).is_dir().then(|| (text(source), text(target)))
}

/// Takes records apart, on their way into the copy or out of it.
struct Records<'a> {
    rewrite: Rewrite<'a>,
    /// How long the origins are without a record's id.
    beginnings: [usize; 2],
}

impl<'a> Records<'a> {
    fn new(rewrite: Rewrite<'a>) -> Self {
        let beginnings = [rewrite.values[ORIGIN].len(), rewrite.values[ORIGIN_FIELD].len()];
        Records { rewrite, beginnings }
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
        if let (true, Some(id)) = (is_chain, record.id) {
            self.origin(id);
            if record.forked_from.is_none() {
                let brace = line.iter().rposition(|byte| *byte == b'}').unwrap_or(line.len()) as u64;
                self.rewrite.changes.push(Change { start: brace, end: brace, lead: 0, new: ORIGIN_FIELD });
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

    /// Takes a record of `source` that had to wait.
    fn at(&mut self, source: &Path, Place { offset, len }: Place) -> io::Result<()> {
        let mut lines = LineReader::open(source, offset, Some(offset + len))?;
        let Some(line) = lines.next_line()? else {
            return Ok(());
        };
        match line.bytes {
            Some(bytes) => self.held(&Record::of(bytes), bytes),
            None => LongRecord::read(source, &line)?.map_or(Ok(()), |long| self.long(&long, source, &line)),
        }
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
            let (new, lead) = match field.key.as_slice() {
                b"sessionId" => (ID, 0),
                b"cwd" if is_chain => (CWD, 0),
                b"gitBranch" if is_chain => (BRANCH, 0),
                b"forkedFrom" if is_chain => (ORIGIN, field.start - field.begins),
                _ => continue,
            };
            self.rewrite.changes.push(Change { start: field.start, end: field.end, lead, new });
        }
        if let (true, Some(id)) = (is_chain, record.id) {
            self.origin(id);
            if record.forked_from.is_none() {
                let added = Change { start: long.brace, end: long.brace, lead: 0, new: ORIGIN_FIELD };
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

/// How much before a value belongs to its field: key and colon, and the comma unless it is the first.
fn lead(before: &[u8], key: &[u8]) -> u64 {
    let text = before.trim_ascii_end();
    let text = text.strip_suffix(b":").unwrap_or(text).trim_ascii_end();
    let at_key = &text[..text.len().saturating_sub(key.len() + 2)];
    let rest = at_key.trim_ascii_end();
    (before.len() - rest.strip_suffix(b",").map_or(at_key.len(), <[u8]>::len)) as u64
}

/// Which records of the source are copied.
struct Kept {
    /// Nothing behind this is looked at.
    end: u64,
    turn_keys: Vec<u64>,
    rule: Rule,
    /// Whether the first record behind the cut was seen; what stands behind it beside the chain belongs to later turns.
    past_cut: bool,
}

enum Rule {
    /// The file is its own history, so the cut is where the next prompt stands.
    Plain { turns: Option<u32> },
    /// The history says what is active, and in which order.
    Scanned { scan: Box<Scan>, cut: Option<u64>, index: u32, order: Order<Place> },
}

/// Where a record stands in the source.
struct Place {
    offset: u64,
    len: u64,
}

enum Takes {
    Yes,
    /// When those before it are there.
    Later,
    No,
    NothingMore,
}

impl Kept {
    fn of(source: &Path, order: &CopyOrder, known: Option<&Known>) -> Self {
        if let Some(known) = known {
            let rule = Rule::Plain { turns: order.turns };
            return Kept { end: known.size, turn_keys: Vec::new(), rule, past_cut: false };
        }
        let scan = scan(source, order.source_id.clone());
        let turns = order.turns.map_or(usize::MAX, |turns| turns as usize);
        let cut = scan.prompts.get(turns).map(|next| scan.history.rank(*next));
        let turn_keys = scan.summary.turn_keys.iter().copied().take(turns).collect();
        let end = scan.size;
        let order = Order::new(scan.history.spans());
        Kept { end, turn_keys, rule: Rule::Scanned { scan: Box::new(scan), cut, index: 0, order }, past_cut: false }
    }

    /// The next record that had to wait and need not any longer.
    fn next_held(&mut self) -> Option<Place> {
        let Rule::Scanned { order, .. } = &mut self.rule else { return None };
        let (index, place) = order.next_held()?;
        order.passed(index);
        Some(place)
    }

    /// What waits for records that never came.
    fn all_held(&mut self) -> Vec<Place> {
        if let Rule::Scanned { order, .. } = &mut self.rule {
            order.give_up();
        }
        std::iter::from_fn(|| self.next_held()).collect()
    }

    /// Whether a line that is laid out, and so belongs to a plain file, is taken; if not, nothing more is.
    fn takes_part(&mut self, chain: Option<&Chain>, line: &[u8]) -> bool {
        match chain.filter(|chain| chain.is_prompt) {
            Some(chain) => self.begins_turn(Raw(&line[chain.uuid.clone()]).plain().map(key_of)),
            None => true,
        }
    }

    /// Notes that a turn begins, unless there are enough of them.
    fn begins_turn(&mut self, key: Option<u64>) -> bool {
        let Rule::Plain { turns } = self.rule else { return true };
        let is_kept = turns.is_none_or(|turns| self.turn_keys.len() < turns as usize);
        if is_kept {
            self.turn_keys.push(key.unwrap_or_default());
        }
        is_kept
    }

    fn takes(&mut self, record: &Record<'_>, line: &Line<'_>) -> Takes {
        if !record.is_chain() {
            return if self.past_cut || is_of_the_source(record) { Takes::No } else { Takes::Yes };
        }
        match &mut self.rule {
            Rule::Plain { .. } => {
                let is_user = line.bytes.is_some() && record.kind == Kind::User;
                let begins = is_user && record.user_part() == UserPart::Prompt;
                match begins && !self.begins_turn(record.uuid) {
                    true => Takes::NothingMore,
                    false => Takes::Yes,
                }
            }
            Rule::Scanned { scan, cut, index, order } => {
                let own = *index;
                *index += 1;
                if !scan.history.is_active(own) {
                    return Takes::No;
                }
                let is_kept = cut.is_none_or(|cut| scan.history.rank(own) < cut);
                self.past_cut |= !is_kept;
                match is_kept {
                    false => Takes::No,
                    // The client looks for parents among what it has read (2.1.197), so they come first.
                    true if order.waits(own) => {
                        order.hold(own, Place { offset: line.offset, len: line.len }, 0);
                        Takes::Later
                    }
                    true => {
                        order.passed(own);
                        Takes::Yes
                    }
                }
            }
        }
    }
}

/// Whether a side record speaks of the running source and not of the conversation.
pub(super) fn is_of_the_source(record: &Record<'_>) -> bool {
    const LEFT_OUT: [&[u8]; 7] = [
        b"worktree-state",
        b"queue-operation",
        b"last-prompt",
        b"custom-title",
        b"agent-name",
        b"relocated",
        b"session-owner",
    ];
    let kind = record.word.and_then(Raw::plain).unwrap_or_default();
    LEFT_OUT.contains(&kind) || kind.starts_with(b"api-request")
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
pub(super) fn copy_subagent(from: &Path, source: &Path, order: &CopyOrder, out: &mut dyn Write) -> io::Result<()> {
    let marks = marks(source, &order.target);
    let mut rewrite = Rewrite::to(out, vec![string(order.id.as_str())], marks);
    let mut lines = LineReader::open(from, 0, None)?;
    while let Some(line) = lines.next_line()? {
        let Some(bytes) = line.bytes else {
            let fields = LongRecord::read(from, &line)?.map_or_else(Vec::new, |long| long.fields);
            let sessions = fields.iter().filter(|field| field.key == b"sessionId");
            let change = |field: &LongField| Change { start: field.start, end: field.end, lead: 0, new: ID };
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
