//! One pass over a transcript for the facts of the session and for the index that the reader needs.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use transcript::{Agent, DefectKind, ParentPointer, ParentSource, SessionId, Summary, TokenUse, text};

use super::facts::{Facts, Said, Step};
use super::history::{History, HistoryBuilder, Link};
use super::home;
use super::layout::Layout;
use super::record::{Kind, Record, UserPart};
use crate::blocks::{Block, Means};
use crate::fields::Raw;
use crate::follow::{Following, Growing};
use crate::huge::{LongField, fields_of};
use crate::lines::{Line, LineReader};
use crate::open_regular;
use crate::share::look_at_all;

/// How many of the latest messages are remembered, to find the last one of the active history among them.
const TAIL: usize = 512;
/// What a title needs of a prompt.
const TITLE_BYTES: usize = 200;
/// How many lines are looked at before what they tell is taken.
const AT_ONCE: usize = 1024;

/// What one pass over a transcript finds.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Scan {
    pub summary: Summary,
    pub history: History,
    /// The chain records that open turns, by index, in the order of the history.
    pub prompts: Vec<u32>,
    /// The file's size when the pass began; nothing behind it was looked at.
    pub size: u64,
}

/// Is shown every whole record that a scan comes by.
pub(super) trait Watch {
    fn held(&mut self, _record: &Record<'_>, _line: &[u8]) {}
    fn long(&mut self, _long: &LongRecord, _line: &Line<'_>) {}
}

impl Watch for () {}

/// Reads the transcript at `path` once.
pub(super) fn scan(path: &Path, id: SessionId) -> Scan {
    scan_with(path, id, Means::for_size)
}

fn scan_with(path: &Path, id: SessionId, means: impl FnOnce(u64) -> Means) -> Scan {
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
    pass.finish(path, size)
}

/// How the lines of a plain file are laid out, where it is so long that all cores find that out sooner than one that copies
/// it would come upon it.
pub(super) fn layout_of(path: &Path, size: u64) -> Option<Vec<u8>> {
    let means = Means::for_size(size);
    if means.threads == 1 {
        return None;
    }
    let mut layout = Layout::default();
    let look = |block: &Block| Facts::of(path, block).layout.unwrap_or_default();
    look_at_all(File::open(path).ok()?, size, means, look, |next| layout.append(&next)).ok()?;
    Some(layout.finish())
}

/// Reads a copy that is being written to `path` and will belong to `summary.path`, showing `watch` all of its records.
pub(super) fn scan_copy(path: &Path, growing: Option<&Growing>, summary: Summary, watch: &mut impl Watch) -> Scan {
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
    Scan { summary, history: History::default(), prompts: Vec::new(), size: 0 }
}

struct Pass {
    summary: Summary,
    folder: String,
    builder: HistoryBuilder,
    prompts: Vec<Mark>,
    command: Option<Mark>,
    /// Whether a turn was opened by a command, which only a look ahead can tell from the client's own matters.
    by_command: bool,
    tail: Vec<Tail>,
    seen: u64,
    first_time: Vec<u8>,
    last_time: Vec<u8>,
    cwd: Vec<u8>,
    first_cwd: Option<PathBuf>,
    home_cwd: Option<PathBuf>,
    /// Where `/cd` moved the session, as long as nothing was said there.
    relocated: Option<PathBuf>,
    /// The branches, the last one last, each once.
    branches: Vec<Vec<u8>>,
    version: Vec<u8>,
    forked_from: Option<SessionId>,
    /// How the lines are laid out, where that is noted.
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
            command: None,
            by_command: false,
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
    fn run_side_by_side(&mut self, path: &Path, file: File, size: u64, means: Means) {
        let look = |block: &Block| Facts::of(path, block);
        if look_at_all(file, size, means, look, |facts| self.take(facts)).is_err() {
            self.summary.defects.add(DefectKind::Unreadable);
        }
        self.end();
    }

    fn end(&mut self) {
        if self.seen == 0 {
            self.summary.defects.add(DefectKind::Empty);
        }
    }

    /// Takes what the next lines tell.
    fn take(&mut self, facts: Facts) {
        self.summary.defects.merge(&facts.defects);
        self.summary.compacted |= facts.compacted;
        self.seen += facts.seen;
        if let Some((all, next)) = self.layout.as_mut().zip(facts.layout.as_ref()) {
            all.append(next);
        }
        for step in facts.steps {
            match step {
                Step::Chain(link, said) => self.chain(link, &said),
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
        if let Some(title) = facts.custom_title {
            self.summary.custom_title = title_of(Raw(&title));
        }
        if let Some(title) = facts.agent_title {
            self.summary.agent_title = title_of(Raw(&title));
        }
    }

    fn chain(&mut self, link: Link, said: &Said) {
        let index = self.builder.push(link);
        let Said { kind, user, offset, len, .. } = *said;
        let mark = Mark { index, key: link.key, offset, len };
        self.settle_command(said);
        let part = match (kind, user) {
            (Kind::Assistant, _) if said.synthetic => TailPart::Settled,
            (Kind::Assistant, _) => TailPart::Assistant,
            (_, Some(UserPart::Prompt)) => {
                self.prompts.push(mark);
                TailPart::Asked
            }
            (_, Some(UserPart::Command)) => {
                self.command = Some(mark);
                TailPart::Settled
            }
            (_, Some(UserPart::ToolResult | UserPart::Injected)) => TailPart::Asked,
            (_, Some(UserPart::CommandOutput | UserPart::Interrupted | UserPart::Summary | UserPart::Caveat)) => {
                TailPart::Settled
            }
            _ => return,
        };
        if self.tail.len() == TAIL {
            self.tail.drain(..TAIL / 2);
        }
        self.tail.push(Tail { index, offset, len, part });
    }

    /// A slash command was a prompt if the agent took it up, and the client's own matter otherwise.
    fn settle_command(&mut self, said: &Said) {
        if self.command.is_none() || said.kind == Kind::Attachment {
            return;
        }
        let taken_up = match said.user {
            Some(part) => part == UserPart::Injected && said.meta,
            None => said.kind == Kind::Assistant,
        };
        if let Some(mark) = self.command.take()
            && taken_up
        {
            self.prompts.push(mark);
            self.by_command = true;
        }
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
        let Pass { mut summary, builder, prompts, by_command, tail, .. } = self;
        summary.is_empty = builder.is_empty();
        let (history, broken) = builder.finish(|wanted| locate(path, size, wanted).unwrap_or_default());
        summary.disordered = !history.spans().is_empty();
        summary.plain = (history.is_whole() && !by_command).then_some(size);
        summary.layout = self.layout.map(|layout| Arc::new(layout.finish()));
        for _ in 0..broken {
            summary.defects.add(DefectKind::BrokenLink);
        }
        let mut prompts: Vec<Mark> = prompts.into_iter().filter(|mark| history.is_active(mark.index)).collect();
        prompts.sort_by_key(|mark| history.rank(mark.index));
        summary.turns = u32::try_from(prompts.len()).unwrap_or(u32::MAX);
        summary.turn_keys = prompts.iter().map(|mark| mark.key).collect();
        summary.first_prompt = prompts.first().and_then(|mark| first_prompt(path, mark));
        summary.cwd = self.home_cwd.or(self.relocated).or(self.first_cwd);
        let branch = |name: Vec<u8>| utf8(&name).filter(|branch| branch != "HEAD");
        summary.branch = self.branches.pop().and_then(branch);
        summary.earlier_branches = self.branches.into_iter().filter_map(branch).collect();
        summary.version = utf8(&self.version);
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
            && let Some(message) = last_message(path, answer)
        {
            if last.is_some_and(|last| last.index == answer.index) {
                summary.mid_turn = !matches!(message.stop_reason.as_deref(), Some(reason) if reason != "tool_use");
            }
            // A proxy that counts nothing says 0.
            summary.tokens = message.usage.map(Usage::tokens).filter(|tokens| tokens.input > 0);
            summary.model = message.model.filter(|model| model != "<synthetic>");
        }
        let prompts = prompts.into_iter().map(|mark| mark.index).collect();
        Scan { summary, history, prompts, size }
    }
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

/// A record that does not fit into memory: its fields, of which only the short ones are held.
#[derive(Debug)]
pub(super) struct LongRecord {
    pub fields: Vec<LongField>,
    /// Where its closing brace stands in the line.
    pub brace: u64,
}

impl LongRecord {
    /// Streams over the line; nothing where it is damaged.
    pub(super) fn read(path: &Path, line: &Line<'_>) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(line.offset))?;
        let found = fields_of(file.take(line.len), None)?;
        Ok(found.map(|(fields, brace)| LongRecord { fields, brace }))
    }

    /// What is known of it; a long value is known to be there.
    pub(super) fn record(&self) -> Record<'_> {
        let mut record = Record { complete: true, ..Record::default() };
        for field in &self.fields {
            record.note(&field.key, Raw(field.value.as_deref().unwrap_or(b"{}")));
        }
        record
    }
}

/// The place of a line in the chain, read by streaming over it.
pub(super) fn huge_record(path: &Path, line: &Line<'_>) -> io::Result<Option<Record<'static>>> {
    let Some(long) = LongRecord::read(path, line)? else {
        return Ok(None);
    };
    let Record { kind, uuid, parent, has_parent, logical_parent, sidechain, .. } = long.record();
    let tool_result = long.record().tool_result.map(|_| Raw(&b"{}"[..]));
    let known = Record { kind, uuid, parent, has_parent, logical_parent, sidechain, tool_result, ..Record::default() };
    Ok(Some(Record { complete: true, ..known }))
}

fn read_line(path: &Path, offset: u64, len: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn first_prompt(path: &Path, mark: &Mark) -> Option<String> {
    let bytes = read_line(path, mark.offset, mark.len)?;
    let content = Record::of(&bytes).message?.get(b"content")?;
    let prompt = super::read::prompt_text(content);
    let line = text::one_line(text::prefix(&prompt, 4 * TITLE_BYTES));
    Some(text::prefix(&line, TITLE_BYTES).to_owned())
}

fn last_message(path: &Path, tail: &Tail) -> Option<Message> {
    let bytes = read_line(path, tail.offset, tail.len)?;
    Record::of(&bytes).message?.parse()
}

/// What the last answer says of model and tokens.
#[derive(Deserialize)]
struct Message {
    model: Option<String>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
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
    fn tokens(self) -> TokenUse {
        let input = self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens;
        TokenUse { input, output: self.output_tokens, window: None }
    }
}

fn title_of(value: Raw<'_>) -> Option<String> {
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
