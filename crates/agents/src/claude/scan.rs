//! One pass over a transcript for the facts of the session and for the index that the reader needs.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use transcript::{Agent, DefectKind, ParentPointer, ParentSource, SessionId, Summary, text};

use super::facts::{ChainRecord, Facts, Step};
use super::history::{Broken, History, HistoryBuilder, Link, ResolvedHistory};
use super::home;
use super::layout::Layout;
use super::long_record::{LongRecord, huge_record};
use super::message::{Usage, first_prompt, last_message};
use super::record::{Kind, Record, UserPart, is_common};
use super::subagents::{self, Subagents};
use super::summaries;
use super::words::string;
use crate::blocks::{Block, ReadOptions};
use crate::fields::Raw;
use crate::files::open_regular;
use crate::follow::{FileGrowth, Following};
use crate::lines::{Line, LineReader};
use crate::share::map_in_parallel;

/// How many of the latest messages are remembered, to find the last one of the active history among them.
const TAIL: usize = 512;
/// What a title needs of a prompt.
pub(super) const TITLE_BYTES: usize = 200;
/// How many lines are parsed before their facts are used.
const AT_ONCE: usize = 1024;

/// What one pass over a transcript finds.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Scan {
    pub summary: Summary,
    pub history: History,
    /// The chain records that open turns, by index, in the order of the history.
    pub prompts: Vec<u32>,
    /// Records whose parent is not in the file.
    pub broken: Vec<Broken>,
    /// The last records of other branches, the latest first.
    pub branches: Vec<u32>,
    /// The ids of the last records of the history, where another file may have a title for one of them.
    pub latest: Vec<u64>,
    /// The file's size when the pass started; later bytes were not read.
    pub size: u64,
}

/// Is shown every whole record that a scan comes by.
pub(super) trait Watch {
    fn held(&mut self, _record: &Record<'_>, _line: &[u8]) {}
    fn long(&mut self, _long: &LongRecord, _line: &Line<'_>) {}
}

impl Watch for () {}

/// Reads the transcript at `path` once. The history ends with the record `tip`, or where the client would continue.
pub(super) fn scan(path: &Path, id: SessionId, tip: Option<u64>) -> Scan {
    scan_with(path, id, tip, ReadOptions::for_size)
}

fn scan_with(path: &Path, id: SessionId, tip: Option<u64>, means: impl FnOnce(u64) -> ReadOptions) -> Scan {
    let summary = Summary::new(Agent::Claude, id, path.to_owned());
    let opened = open_regular(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let Ok((size, file)) = opened else {
        return unreadable(summary);
    };
    let mut pass = Pass { layout: Some(Layout::default()), ..Pass::new(summary, path) };
    let means = means(size);
    if means.threads > 1 {
        pass.run_side_by_side(path, file, size, means);
    } else {
        pass.run(path, LineReader::new(file, 0, Some(size)).with_longest(means.longest), &mut ());
    }
    if let Some(tip) = tip {
        pass.builder.choose_tip(tip);
    }
    pass.finish(path, size)
}

/// The layout of the lines of a plain file, if it is so long that scanning on all cores pays off before a copy.
pub(super) fn layout_of(path: &Path, size: u64) -> Option<Vec<u8>> {
    let means = ReadOptions::for_size(size);
    if means.threads == 1 {
        return None;
    }
    let mut layout = Layout::default();
    let look = |block: &Block| Facts::of(path, block).layout.unwrap_or_default();
    map_in_parallel(File::open(path).ok()?, size, means, look, |next| layout.append(&next)).ok()?;
    Some(layout.finish())
}

/// Reads a copy that is being written to `path` and will belong to `summary.path`, showing `watch` all of its records.
pub(super) fn scan_copy(path: &Path, growing: Option<&FileGrowth>, summary: Summary, watch: &mut impl Watch) -> Scan {
    let Ok(file) = Following::open(path, growing) else {
        return unreadable(summary);
    };
    let target = summary.path.clone();
    let mut pass = Pass::new(summary, &target);
    let size = pass.run(path, LineReader::new(file, 0, None), watch);
    pass.finish(path, size)
}

fn unreadable(mut summary: Summary) -> Scan {
    summary.defects.add(DefectKind::Unreadable);
    let (history, prompts, broken, branches, latest) = Default::default();
    Scan { summary, history, prompts, broken, branches, latest, size: 0 }
}

struct Pass {
    summary: Summary,
    folder: String,
    builder: HistoryBuilder,
    prompts: Vec<Mark>,
    /// A record that opens a turn if the agent takes it up.
    pending: Option<Pending>,
    /// Whether such a record started a turn, which only the following records distinguish from the client's own
    /// messages.
    by_pending: bool,
    tail: Vec<Tail>,
    seen: u64,
    first_time: Vec<u8>,
    last_time: Vec<u8>,
    cwd: Vec<u8>,
    first_cwd: Option<PathBuf>,
    home_cwd: Option<PathBuf>,
    /// The directory that `/cd` moved the session to, until the next message there.
    relocated: Option<PathBuf>,
    /// The branches, the last one last, each once.
    branches: Vec<Vec<u8>>,
    version: Vec<u8>,
    /// Titles of conversations, by the record that each ends with.
    summaries: HashMap<u64, String>,
    /// Subagents that results name, with the record and the call.
    subagents: Vec<(u32, String, String)>,
    forked_from: Option<SessionId>,
    /// The layout of the lines, if it is recorded.
    layout: Option<Layout>,
}

/// A record that opens a turn.
#[derive(Debug, Clone, Copy)]
struct Mark {
    index: u32,
    key: u64,
    offset: u64,
    len: u64,
}

/// A record that opens a turn if the agent takes it up.
#[derive(Debug, Clone, Copy)]
struct Pending {
    mark: Mark,
    /// A slash command, which the client may handle itself.
    is_command: bool,
}

/// One of the latest messages.
#[derive(Debug, Clone, Copy)]
struct Tail {
    index: u32,
    offset: u64,
    len: u64,
    part: TailPart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TailPart {
    Assistant,
    /// The agent has something to answer.
    Asked,
    /// The agent has nothing to answer.
    Settled,
}

impl Pass {
    fn new(summary: Summary, path: &Path) -> Self {
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        Pass {
            summary,
            folder,
            builder: HistoryBuilder::default(),
            prompts: Vec::new(),
            pending: None,
            by_pending: false,
            tail: Vec::new(),
            seen: 0,
            first_time: Vec::new(),
            last_time: Vec::new(),
            cwd: Vec::new(),
            first_cwd: None,
            home_cwd: None,
            relocated: None,
            branches: Vec::new(),
            version: Vec::new(),
            summaries: HashMap::new(),
            subagents: Vec::new(),
            forked_from: None,
            layout: None,
        }
    }

    /// Reads all lines and returns where the last one ends.
    fn run<R: Read>(&mut self, path: &Path, mut lines: LineReader<R>, watch: &mut impl Watch) -> u64 {
        let mut end = 0;
        let notes = self.layout.is_some();
        let mut facts = Facts::new(notes);
        let mut looked_at = 0;
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(_) => {
                    self.summary.defects.add(DefectKind::Unreadable);
                    break;
                }
            };
            end = line.offset + line.len + u64::from(line.terminated);
            facts.line(path, &line, watch);
            looked_at += 1;
            if looked_at % AT_ONCE == 0 {
                self.take(std::mem::replace(&mut facts, Facts::new(notes)));
            }
        }
        self.take(facts);
        self.end();
        end
    }

    /// Reads all lines on several threads.
    fn run_side_by_side(&mut self, path: &Path, file: File, size: u64, means: ReadOptions) {
        let look = |block: &Block| Facts::of(path, block);
        if map_in_parallel(file, size, means, look, |facts| self.take(facts)).is_err() {
            self.summary.defects.add(DefectKind::Unreadable);
        }
        self.end();
    }

    fn end(&mut self) {
        if self.seen == 0 {
            self.summary.defects.add(DefectKind::Empty);
        }
    }

    /// Adds the facts of the next lines.
    fn take(&mut self, facts: Facts) {
        self.summary.defects.merge(&facts.defects);
        self.summary.compacted |= facts.compacted;
        self.summary.largest_context = self.summary.largest_context.max(facts.largest_context);
        self.seen += facts.seen;
        if let Some((all, next)) = self.layout.as_mut().zip(facts.layout.as_ref()) {
            all.append(next);
        }
        let mut subagents = facts.subagents.into_iter().peekable();
        for step in facts.steps {
            match step {
                Step::Chain(link, said) => {
                    let index = self.chain(link, &said);
                    while let Some((_, call, agent)) = subagents.next_if(|(key, ..)| *key == link.key) {
                        self.subagents.push((index, call, agent));
                    }
                }
                Step::Long(link) => {
                    self.builder.push(link);
                }
                Step::LastPrompt(leaf) => self.builder.last_prompt(leaf),
            }
        }
        if self.first_time.is_empty() || !facts.first_time.is_empty() && facts.first_time < self.first_time {
            self.first_time = facts.first_time;
        }
        if facts.last_time > self.last_time {
            self.last_time = facts.last_time;
        }
        for cwd in facts.cwds {
            self.work_in(cwd);
        }
        for branch in facts.branches {
            if self.branches.last() != Some(&branch) {
                self.branches.retain(|known| *known != branch);
                self.branches.push(branch);
            }
        }
        if let Some(version) = facts.version {
            self.version = version;
        }
        if let Some(forked_from) = facts.forked_from {
            let id = Raw(&forked_from).get(b"sessionId").and_then(Raw::string);
            self.forked_from = id.and_then(|id| SessionId::new(id).ok());
        }
        if let Some(path) = facts.relocated {
            self.relocated = Raw(&path).string().map(|path| PathBuf::from(path.into_owned()));
        }
        self.summaries.extend(facts.summaries);
        if let Some(title) = facts.custom_title {
            self.summary.custom_title = title_of(Raw(&title));
        }
        if let Some(title) = facts.agent_title {
            self.summary.agent_title = title_of(Raw(&title));
        }
    }

    /// Returns the record's index.
    fn chain(&mut self, link: Link, said: &ChainRecord) -> u32 {
        let index = self.builder.push(link);
        let ChainRecord { kind, user, offset, len, .. } = *said;
        let mark = Mark { index, key: link.key, offset, len };
        let taken_up = self.settle_pending(said);
        let part = match (kind, user) {
            (Kind::Assistant, _) if said.synthetic => TailPart::Settled,
            (Kind::Assistant, _) => TailPart::Assistant,
            (_, Some(UserPart::Prompt)) => {
                self.prompts.push(mark);
                TailPart::Asked
            }
            (_, Some(UserPart::Command)) => {
                self.pending = Some(Pending { mark, is_command: true });
                TailPart::Settled
            }
            (_, Some(UserPart::FromSdk)) => {
                self.pending = (!taken_up).then_some(Pending { mark, is_command: false });
                TailPart::Asked
            }
            (_, Some(UserPart::ToolResult | UserPart::Injected)) => TailPart::Asked,
            (_, Some(UserPart::CommandOutput | UserPart::Interrupted | UserPart::Summary | UserPart::Caveat)) => {
                TailPart::Settled
            }
            _ => return index,
        };
        if self.tail.len() == TAIL {
            self.tail.drain(..TAIL / 2);
        }
        self.tail.push(Tail { index, offset, len, part });
        index
    }

    /// What was pending is a prompt if the agent takes it up now. Returns whether it does.
    fn settle_pending(&mut self, said: &ChainRecord) -> bool {
        let Some(Pending { mark, is_command }) = self.pending else { return false };
        let taken_up = match (said.kind, said.user) {
            (Kind::Attachment, _) => return false,
            (Kind::System, _) if !is_command => return false,
            (_, Some(UserPart::Injected)) => said.meta,
            // The text of a command's prompt.
            (_, Some(UserPart::FromSdk)) => is_command,
            (kind, user) => user.is_none() && kind == Kind::Assistant,
        };
        self.pending = None;
        if taken_up {
            self.prompts.push(mark);
            self.by_pending = true;
        }
        taken_up
    }

    /// Notes the directory of the records that follow.
    fn work_in(&mut self, cwd: Vec<u8>) {
        if cwd == self.cwd {
            return;
        }
        if let Some(path) = Raw(&cwd).string().map(|path| PathBuf::from(path.into_owned())) {
            if home::project_folder(&path) == self.folder {
                self.home_cwd = Some(path.clone());
            }
            self.first_cwd.get_or_insert(path);
        }
        self.cwd = cwd;
    }

    fn finish(mut self, path: &Path, size: u64) -> Scan {
        let Pass { mut summary, builder, prompts, by_pending, tail, .. } = self;
        summary.is_empty = builder.is_empty();
        summary.version = utf8(&self.version);
        let may_have_title = summary.version.as_deref().is_some_and(summaries::are_written_by);
        let latest = if may_have_title { builder.latest() } else { Vec::new() };
        let ResolvedHistory { history, broken, branches, lost_roots, tip_differs } =
            builder.finish(|wanted| locate(path, size, wanted).unwrap_or_default());
        summary.disordered = !history.spans().is_empty();
        summary.tip_differs = tip_differs;
        summary.plain = (history.is_whole() && !by_pending && broken.is_empty()).then_some(size);
        summary.layout = self.layout.map(|layout| Arc::new(layout.finish()));
        let mut latest: Vec<(u32, u64)> = latest.into_iter().filter(|(index, _)| history.is_active(*index)).collect();
        latest.sort_by_key(|(index, _)| history.rank(*index));
        let latest: Vec<u64> = latest.into_iter().map(|(_, key)| key).collect();
        let titles = self.summaries.iter().map(|(key, title)| key ^ crate::files::fingerprint(title.as_bytes()));
        summary.titles_of_others = titles.fold(0, |all, title| all ^ title);
        let own_title = || latest.iter().rev().find_map(|key| self.summaries.remove(key));
        summary.agent_title = summary.agent_title.or_else(own_title);
        summary.defects.add_all(DefectKind::BrokenLink, broken.len() as u64);
        summary.defects.add_all(DefectKind::SeparateRoot, lost_roots);
        self.subagents.retain(|(index, ..)| history.is_active(*index));
        summary.defects.add_all(DefectKind::MissingSubagent, missing(&summary.path, &self.subagents));
        let mut prompts: Vec<Mark> = prompts.into_iter().filter(|mark| history.is_active(mark.index)).collect();
        prompts.sort_by_key(|mark| history.rank(mark.index));
        let linked = broken.iter().filter(|broken| broken.parent.is_some() && !broken.is_boundary);
        let turn = |index: u32| prompts.partition_point(|mark| history.rank(mark.index) <= history.rank(index)) as u32;
        summary.gaps =
            linked.filter(|broken| history.is_active(broken.child)).map(|broken| turn(broken.child)).collect();
        summary.turns = u32::try_from(prompts.len()).unwrap_or(u32::MAX);
        summary.branches = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        summary.turn_keys = prompts.iter().map(|mark| turn_key(path, mark)).collect();
        // A copy of a plain file knows only the ids of its prompts.
        summary.plain = summary.plain.filter(|_| !prompts.iter().any(|mark| is_common(mark.key)));
        summary.first_prompt = prompts.first().and_then(|mark| first_prompt(path, mark.offset, mark.len));
        summary.cwd = self.home_cwd.or(self.relocated).or(self.first_cwd);
        let branch = |name: Vec<u8>| utf8(&name).filter(|branch| branch != "HEAD");
        summary.branch = self.branches.pop().and_then(branch);
        summary.earlier_branches = self.branches.into_iter().filter_map(branch).collect();
        summary.created = time(&self.first_time);
        summary.updated = time(&self.last_time);
        summary.parent = self
            .forked_from
            .map(|id| ParentPointer { id, source: ParentSource::Agent })
            .filter(|parent| parent.id != summary.id);
        let mut tail: Vec<Tail> = tail.into_iter().filter(|tail| history.is_active(tail.index)).collect();
        tail.sort_by_key(|tail| history.rank(tail.index));
        let last = tail.last();
        summary.mid_turn = last.is_some_and(|last| last.part == TailPart::Asked);
        let answer = tail.iter().rev().find(|tail| tail.part == TailPart::Assistant);
        if let Some(answer) = answer
            && let Some(message) = last_message(path, answer.offset, answer.len)
        {
            if last.is_some_and(|last| last.index == answer.index) {
                summary.mid_turn = message.is_unfinished();
            }
            // A proxy that doesn't count tokens reports 0.
            summary.tokens = message.usage.map(Usage::tokens).filter(|tokens| tokens.input > 0);
            summary.model = message.model.filter(|model| model != "<synthetic>");
        }
        let prompts = prompts.into_iter().map(|mark| mark.index).collect();
        Scan { summary, history, prompts, broken, branches, latest, size }
    }
}

/// The fingerprint of a turn. If the prompt's id is not enough, its text counts as well.
fn turn_key(path: &Path, mark: &Mark) -> u64 {
    match is_common(mark.key) {
        true => {
            mark.key
                ^ crate::files::fingerprint(first_prompt(path, mark.offset, mark.len).unwrap_or_default().as_bytes())
        }
        false => mark.key,
    }
}

/// How many of these subagents of the session at `path` are nowhere.
fn missing(path: &Path, subagents: &[(u32, String, String)]) -> u64 {
    let side = home::side_folder(path);
    let mut absent = subagents.iter().filter(|(.., agent)| subagents::file_of(&side, agent).is_none()).peekable();
    if absent.peek().is_none() {
        return 0;
    }
    let all = Subagents::of(path);
    absent
        .filter(|(_, call, agent)| all.started_by(call, Some(agent)).is_none_or(|found| !found.path.is_file()))
        .count() as u64
}

/// The ids of chain records by their indices.
pub(super) fn ids_of(path: &Path, wanted: &[u32]) -> io::Result<Vec<String>> {
    let mut found: HashMap<u32, String> = HashMap::new();
    let mut lines = LineReader::new(open_regular(path)?, 0, None);
    let mut index = 0;
    while let Some(line) = lines.next_line()?.filter(|_| found.len() < wanted.len()) {
        let long = if line.bytes.is_none() { LongRecord::read(path, &line)? } else { None };
        let record = match (line.bytes, &long) {
            (Some(bytes), _) => Record::of(bytes),
            (None, Some(long)) => long.record(),
            (None, None) => continue,
        };
        if record.complete && record.is_chain() {
            if let Some(id) = string(record.id).filter(|_| wanted.contains(&index)) {
                found.insert(index, id);
            }
            index += 1;
        }
    }
    Ok(wanted.iter().filter_map(|index| found.remove(index)).collect())
}

/// The second pass: finds the indices of chain records by their ids.
fn locate(path: &Path, size: u64, wanted: &HashSet<u64>) -> io::Result<HashMap<u64, u32>> {
    let mut lines = LineReader::open(path, 0, Some(size))?;
    let mut found = HashMap::new();
    let mut index = 0;
    while let Some(line) = lines.next_line()? {
        let key = match line.bytes {
            Some(bytes) => {
                let record = Record::of(bytes);
                (record.complete && record.is_chain()).then_some(record.uuid).flatten()
            }
            None => huge_record(path, &line)?.filter(Record::is_chain).and_then(|record| record.uuid),
        };
        if let Some(key) = key {
            if wanted.contains(&key) {
                found.insert(key, index);
            }
            index += 1;
        }
    }
    Ok(found)
}

pub(super) fn title_of(value: Raw<'_>) -> Option<String> {
    let line = text::one_line(text::prefix(&value.string()?, 4 * TITLE_BYTES));
    Some(text::prefix(&line, TITLE_BYTES).to_owned()).filter(|title| !title.is_empty())
}

fn utf8(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

fn time(bytes: &[u8]) -> Option<Timestamp> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
