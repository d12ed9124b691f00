//! The facts in single lines of a transcript, independent of other lines.
//!
//! Parsing lines is almost all of the work of a scan, and blocks of lines are parsed in parallel; so nothing here
//! depends on other lines. The scan interprets them together.

use std::path::Path;

use transcript::{DefectKind, Defects};

use super::history::Link;
use super::kept::is_of_the_source;
use super::layout::Layout;
use super::long_record::LongRecord;
use super::read::tokens_of;
use super::record::{Kind, Record, UserPart, key_of};
use super::scan::Watch;
use super::summaries;
use super::words::string;
use crate::blocks::Block;
use crate::fields::Raw;
use crate::lines::Line;

/// The facts in some lines.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub defects: Defects,
    /// How many records there are.
    pub seen: u64,
    /// What the history is made of, in order.
    pub steps: Vec<Step>,
    /// The earliest and the latest time. All are written in UTC with equal precision, so the order of bytes is the order
    /// of time.
    pub first_time: Vec<u8>,
    pub last_time: Vec<u8>,
    /// The directories of chain records, as they are written, each time that another one follows.
    pub cwds: Vec<Vec<u8>>,
    /// Their branches, likewise.
    pub branches: Vec<Vec<u8>>,
    // For each of these, the last one counts.
    pub version: Option<Vec<u8>>,
    pub forked_from: Option<Vec<u8>>,
    pub relocated: Option<Vec<u8>>,
    pub custom_title: Option<Vec<u8>>,
    pub agent_title: Option<Vec<u8>>,
    /// Subagents that results name: the record, the call and the subagent's id.
    pub subagents: Vec<(u64, String, String)>,
    /// Titles for conversations that end with these records.
    pub summaries: Vec<(u64, String)>,
    pub compacted: bool,
    /// The longest reported context.
    pub largest_context: u64,
    /// The layout of the lines, if requested.
    pub layout: Option<Layout>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A record of the chain.
    Chain(Link, ChainRecord),
    /// A record of the chain that is too long to parse.
    Long(Link),
    /// The record from which the client would continue.
    LastPrompt(u64),
}

/// What a chain record means to the user, and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainRecord {
    pub kind: Kind,
    pub user: Option<UserPart>,
    pub meta: bool,
    /// Whether the client generated an answer, for an error or to fill a gap; it is not from the model.
    pub synthetic: bool,
    pub offset: u64,
    pub len: u64,
}

impl Facts {
    /// Nothing yet. `notes`: whether the layout is recorded.
    pub(super) fn new(notes: bool) -> Self {
        Facts { layout: notes.then(Layout::default), ..Facts::default() }
    }

    /// The facts in a block of the file at `path`, including its layout.
    pub(super) fn of(path: &Path, block: &Block) -> Self {
        let mut facts = Facts::new(true);
        block.lines().for_each(|line| facts.line(path, &line, &mut ()));
        facts
    }

    /// Looks at the next line of the file at `path`.
    pub(super) fn line(&mut self, path: &Path, line: &Line<'_>, watch: &mut impl Watch) {
        match line.bytes {
            Some(bytes) => self.held(line, bytes, watch),
            None => self.long(path, line, watch),
        }
    }

    fn held(&mut self, line: &Line<'_>, bytes: &[u8], watch: &mut impl Watch) {
        let record = Record::of(bytes);
        if !record.complete {
            self.note(|layout| layout.left_out(line.len));
            if line.is_blank() {
                return;
            }
            let kind = if line.terminated { DefectKind::BadLine } else { DefectKind::TruncatedLine };
            self.defects.add(kind);
            return;
        }
        watch.held(&record, bytes);
        // Telling ASCII is several times faster than telling UTF-8.
        if !bytes.is_ascii() && std::str::from_utf8(bytes).is_err() {
            self.defects.add(DefectKind::InvalidUtf8);
        }
        self.seen += 1;
        if let Some(time) = record.timestamp.and_then(Raw::plain) {
            self.time(time);
        }
        if record.is_chain() {
            let user = self.chain(&record, line);
            self.note(|layout| layout.carried(bytes, &record, user == Some(UserPart::Prompt)));
        } else {
            self.side(&record);
            self.note(|layout| match is_of_the_source(&record) {
                true => layout.left_out(line.len),
                false => layout.carried(bytes, &record, false),
            });
        }
    }

    fn note(&mut self, note: impl FnOnce(&mut Layout)) {
        if let Some(layout) = &mut self.layout {
            note(layout);
        }
    }

    /// A line that does not fit into memory keeps its place in the chain; its content is skipped.
    fn long(&mut self, path: &Path, line: &Line<'_>, watch: &mut impl Watch) {
        self.note(|layout| layout.unknown(line.len));
        self.defects.add(DefectKind::HugeLine);
        self.seen += 1;
        let Ok(Some(long)) = LongRecord::read(path, line) else {
            return;
        };
        watch.long(&long, line);
        let record = long.record();
        if record.is_chain() {
            let talks = matches!(record.kind, Kind::User | Kind::Assistant);
            self.steps.push(Step::Long(Link { talks, ..link(&record, record.tool_result.is_some(), 0) }));
        }
    }

    /// Records a time, if it is not empty.
    fn time(&mut self, time: &[u8]) {
        if time.is_empty() {
            return;
        }
        if self.first_time.is_empty() || time < self.first_time.as_slice() {
            keep(&mut self.first_time, time);
        }
        if time > self.last_time.as_slice() {
            keep(&mut self.last_time, time);
        }
    }

    fn side(&mut self, record: &Record<'_>) {
        let Some(value) = record.value else {
            return;
        };
        match record.kind {
            Kind::LastPrompt => self.steps.extend(value.plain().map(|leaf| Step::LastPrompt(key_of(leaf)))),
            Kind::Relocated => keep(self.relocated.get_or_insert_default(), value.0),
            Kind::CustomTitle => keep(self.custom_title.get_or_insert_default(), value.0),
            Kind::Summary => self.summaries.extend(summaries::read(record)),
            Kind::AiTitle => keep(self.agent_title.get_or_insert_default(), value.0),
            _ => {}
        }
    }

    /// Returns its meaning to the user, if it is a `user` record.
    fn chain(&mut self, record: &Record<'_>, line: &Line<'_>) -> Option<UserPart> {
        let user = (record.kind == Kind::User).then(|| record.user_part());
        let (mut message, mut synthetic) = (0, false);
        if record.kind == Kind::Assistant {
            let id = record.message.and_then(|message| message.get(b"id")).and_then(Raw::plain);
            message = id.map_or(0, crate::files::fingerprint);
            let model = record.message.and_then(|message| message.get(b"model"));
            synthetic = record.api_error || model.is_some_and(|model| model.0 == b"\"<synthetic>\"");
            let context = tokens_of(record).map_or(0, |tokens| tokens.context());
            self.largest_context = self.largest_context.max(context);
        }
        self.compacted |= record.logical_parent.is_some() || user == Some(UserPart::Summary);
        self.place(record);
        let Line { offset, len, .. } = *line;
        let said = ChainRecord { kind: record.kind, user, meta: record.meta, synthetic, offset, len };
        let talks = match user {
            Some(part) => matches!(part, UserPart::Prompt | UserPart::ToolResult),
            None => record.kind == Kind::Assistant && !synthetic,
        };
        if user == Some(UserPart::ToolResult) {
            self.result_of_subagent(record);
        }
        let link = link(record, user == Some(UserPart::ToolResult), message);
        self.steps.push(Step::Chain(Link { talks, ..link }, said));
        user
    }

    /// Records the subagent of a result. The first fields of such results make scanning all others unnecessary.
    fn result_of_subagent(&mut self, record: &Record<'_>) {
        const BEGINNINGS: [&[u8]; 3] = [b"{\"status\"", b"{\"isAsync\"", b"{\"agentId\""];
        let result = record.tool_result.filter(|result| BEGINNINGS.iter().any(|start| result.0.starts_with(start)));
        let Some(agent) = result.and_then(|result| string(result.get(b"agentId"))) else { return };
        let content = record.message.and_then(|message| message.get(b"content"));
        let call = content.and_then(|content| string(content.elements().next()?.get(b"tool_use_id")));
        self.subagents.push((record.uuid.unwrap_or_default(), call.unwrap_or_default(), agent));
    }

    /// Follows directory, branch, version and origin, which most records repeat.
    fn place(&mut self, record: &Record<'_>) {
        if let Some(cwd) = record.cwd
            && self.cwds.last().is_none_or(|last| *last != cwd.0)
        {
            self.cwds.push(cwd.0.to_vec());
        }
        if let Some(branch) = record.branch.and_then(Raw::plain)
            && self.branches.last().is_none_or(|last| last != branch)
        {
            self.branches.push(branch.to_vec());
        }
        if let Some(version) = record.version.and_then(Raw::plain) {
            keep(self.version.get_or_insert_default(), version);
        }
        if let Some(forked_from) = record.forked_from {
            keep(self.forked_from.get_or_insert_default(), forked_from.0);
        }
    }
}

fn link(record: &Record<'_>, is_result: bool, message: u64) -> Link {
    Link {
        key: record.uuid.unwrap_or_default(),
        parent: record.parent.or(record.logical_parent),
        is_boundary: record.parent.is_none() && record.logical_parent.is_some(),
        is_summary: record.compact_summary,
        is_result,
        message,
        talks: false,
    }
}

fn keep(field: &mut Vec<u8>, value: &[u8]) {
    if field != value {
        field.clear();
        field.extend_from_slice(value);
    }
}
