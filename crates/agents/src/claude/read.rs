//! A Claude Code session as blocks, streamed.
//!
//! The scan has determined which records are active and which of them start turns; this pass parses only those.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use transcript::{Block, BlockKind, DefectKind, Defects, NoticeKind, TokenUse};

use super::acts;
use super::home;
use super::long_record::huge_record;
use super::order::Order;
use super::record::{Kind, Record, UserPart, key_of};
use super::scan::Scan;
use super::sidechains::{Root, Sidechains, Task, input_of_task};
use super::subagents::Subagents;
use super::tool_result;
use super::words::{prompt_text, string};
use crate::acts::{Act, ActSink, FileAct};
use crate::fields::Raw;
use crate::files::open_regular;
use crate::lines::LineReader;
use crate::{Blocks, Part, PlainScan, TurnStart};

/// The deepest nesting of subagents that is followed.
const DEEPEST: u8 = 8;

/// The answer that the client inserts if a history ends in a prompt and continues with another.
const FILLER: &str = "No response requested.";

/// The blocks of one transcript.
pub(super) struct ClaudeBlocks {
    path: PathBuf,
    lines: LineReader<File>,
    history: RecordFilter,
    index: u32,
    order: Order<Piece>,
    /// The next record that opens a turn, as a position in the scan's prompts.
    next_prompt: usize,
    turn: u32,
    until: Option<u32>,
    prose_only: bool,
    with_media: bool,
    /// Whether something was left out for that.
    leaves_tools_out: bool,
    /// Where the turn began that is being read, in a file that is its own history.
    began: Option<TurnStart>,
    depth: u8,
    ready: VecDeque<Item>,
    /// The names of tools whose results are still to come.
    calls: HashMap<String, String>,
    /// What was done to files.
    acts: ActSink,
    /// What the calls ask a shell for whose results are still to come.
    commands: HashMap<String, FileAct>,
    /// The id of the prompt that opened the turn.
    prompt: Option<u64>,
    subagents: Subagents,
    sidechains: Sidechains,
    /// The subagents that were handed out.
    shown: HashSet<String>,
    /// Those of them that were handed out before the result of the call.
    shown_early: HashSet<String>,
    /// Where the line that was read last begins and ends.
    offset: u64,
    end: u64,
    /// The token use of the last answer.
    tokens: Option<TokenUse>,
    defects: Defects,
    ended: bool,
}

/// What is handed out next.
enum Item {
    Block(Block),
    Subagent(Box<ClaudeBlocks>),
}

/// A record, or what is left of one that is too long to be held.
pub(super) enum Piece {
    Line(Vec<u8>),
    Huge(u64),
}

impl Piece {
    pub(super) fn len(&self) -> usize {
        match self {
            Piece::Line(bytes) => bytes.len(),
            Piece::Huge(_) => 0,
        }
    }
}

/// Which records count.
enum RecordFilter {
    /// Those of the active history.
    Active(Box<Scan>),
    /// Every chain record: the history is the file.
    Chain,
    /// Every record of a subagent's file.
    Sidechain,
    /// The records of a sidechain inside a session's file: the first one, and those that follow one of these.
    Inline(HashSet<u64>),
}

impl ClaudeBlocks {
    /// Reads a session.
    pub(super) fn session(path: &Path, scan: Scan, part: &Part) -> io::Result<Self> {
        let lines = LineReader::open(path, 0, Some(scan.size))?;
        let defects = defects_of_scan(&scan.summary.defects);
        let order = Order::new(scan.history.spans());
        let history = RecordFilter::Active(Box::new(scan));
        let (until, prose_only, with_media) = (part.until, part.prose_only, part.media);
        let new = Self::new(path, lines, history, Subagents::of(path));
        Ok(ClaudeBlocks { order, until, prose_only, with_media, acts: ActSink::new(part.acts), defects, ..new })
    }

    /// Reads a session whose history is its file.
    pub(super) fn plain(path: &Path, known: &PlainScan, part: &Part) -> io::Result<Self> {
        let lines = LineReader::open(path, part.from.map_or(0, |from| from.offset), Some(known.size))?;
        let defects = defects_of_scan(&known.defects);
        let turn = part.from.map_or(0, |from| from.turn.saturating_sub(1));
        let (until, prose_only, with_media) = (part.until, part.prose_only, part.media);
        let new = Self::new(path, lines, RecordFilter::Chain, Subagents::of(path));
        Ok(ClaudeBlocks { turn, until, prose_only, with_media, acts: ActSink::new(part.acts), defects, ..new })
    }

    /// Reads a subagent's file as a part of the turn that is being read.
    fn subagent(path: &Path, parent: &ClaudeBlocks) -> io::Result<Self> {
        let lines = LineReader::new(open_regular(path)?, 0, None);
        let (turn, depth, prose_only) = (parent.turn, parent.depth + 1, parent.prose_only);
        let new = Self::new(path, lines, RecordFilter::Sidechain, parent.subagents.clone());
        Ok(ClaudeBlocks { turn, depth, prose_only, acts: parent.acts.clone(), ..new })
    }

    /// Reads a subagent inside the session's own file, up to the point where that was read.
    fn sidechain(root: &Root, parent: &ClaudeBlocks) -> io::Result<Self> {
        let lines = LineReader::open(&parent.path, root.offset, Some(parent.end))?;
        let (turn, depth, prose_only) = (parent.turn, parent.depth + 1, parent.prose_only);
        let new = Self::new(&parent.path, lines, RecordFilter::Inline(HashSet::new()), parent.subagents.clone());
        Ok(ClaudeBlocks { turn, depth, prose_only, acts: parent.acts.clone(), ..new })
    }

    fn new(path: &Path, lines: LineReader<File>, history: RecordFilter, subagents: Subagents) -> Self {
        ClaudeBlocks {
            path: path.to_owned(),
            lines,
            history,
            index: 0,
            order: Order::new(&[]),
            next_prompt: 0,
            turn: 0,
            until: None,
            prose_only: false,
            with_media: false,
            leaves_tools_out: false,
            began: None,
            depth: 0,
            ready: VecDeque::new(),
            calls: HashMap::new(),
            acts: ActSink::default(),
            commands: HashMap::new(),
            prompt: None,
            subagents,
            sidechains: Sidechains::default(),
            shown: HashSet::new(),
            shown_early: HashSet::new(),
            offset: 0,
            end: 0,
            tokens: None,
            defects: Defects::default(),
            ended: false,
        }
    }

    /// Reads on until something is ready; false at the end.
    fn advance(&mut self) -> bool {
        while self.ready.is_empty() {
            if let Some((index, piece)) = self.order.next_held() {
                if !self.emit(index, &piece) {
                    return false;
                }
                continue;
            }
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => {
                    // Whatever still waits is handed out in the order of the file.
                    if self.order.give_up() {
                        self.defects.add(DefectKind::BrokenLink);
                        continue;
                    }
                    self.end_turn();
                    return false;
                }
                Err(_) => {
                    self.defects.add(DefectKind::Unreadable);
                    return false;
                }
            };
            let offset = line.offset;
            (self.offset, self.end) = (offset, offset + line.len + u64::from(line.terminated));
            let (piece, takes, index) = match line.bytes {
                Some(bytes) => {
                    let record = Record::of(bytes);
                    let index = self.index;
                    let takes = record.complete && takes(&mut self.history, &mut self.index, &record);
                    if self.acts.is_wanted() && record.complete {
                        Self::backups(&self.path, (self.turn, self.prompt), &self.acts, &record, bytes);
                    }
                    if self.depth == 0 && record.complete {
                        self.sidechains.pass(&record, offset);
                        if !takes && record.is_chain() && record.kind == Kind::Assistant {
                            self.sidechains.call_elsewhere(&record);
                        }
                    }
                    // The line is given up before the next is read, so an active one is copied.
                    (if takes { Piece::Line(bytes.to_vec()) } else { Piece::Huge(0) }, takes, index)
                }
                None => {
                    let record = huge_record(&self.path, &line).ok().flatten();
                    let index = self.index;
                    let takes = record.is_some_and(|record| takes(&mut self.history, &mut self.index, &record));
                    (Piece::Huge(line.len >> 20), takes, index)
                }
            };
            if !takes {
                continue;
            }
            if self.order.waits(index) {
                let bytes = piece.len();
                self.order.hold(index, piece, bytes);
                continue;
            }
            let turn = self.turn;
            if !self.emit(index, &piece) {
                return false;
            }
            if self.turn != turn && matches!(self.history, RecordFilter::Chain) {
                self.began = Some(TurnStart { turn: self.turn, offset });
            }
        }
        true
    }

    /// Makes blocks of an active record; false where the asked turns are over.
    fn emit(&mut self, index: u32, piece: &Piece) -> bool {
        self.order.passed(index);
        let bytes = match piece {
            Piece::Line(bytes) => bytes,
            Piece::Huge(megabytes) => {
                let text = format!("a record of {megabytes} MB is not shown");
                self.push(None, None, BlockKind::Notice { notice: NoticeKind::Unreadable, text });
                return true;
            }
        };
        let record = Record::of(bytes);
        let opens = self.opens_turn(index, &record);
        if opens {
            self.end_turn();
        }
        if opens && self.until.is_some_and(|until| self.turn >= until) {
            return false;
        }
        self.record(&record, opens);
        true
    }

    fn opens_turn(&mut self, index: u32, record: &Record<'_>) -> bool {
        match &self.history {
            RecordFilter::Active(scan) => {
                let opens = scan.prompts.get(self.next_prompt) == Some(&index);
                self.next_prompt += usize::from(opens);
                opens
            }
            RecordFilter::Chain | RecordFilter::Sidechain | RecordFilter::Inline(_) => {
                record.kind == Kind::User && record.user_part() == UserPart::Prompt
            }
        }
    }

    fn record(&mut self, record: &Record<'_>, opens: bool) {
        let at = record.timestamp.and_then(Raw::plain).and_then(|time| std::str::from_utf8(time).ok()?.parse().ok());
        match record.kind {
            Kind::User => self.user(record, at, opens),
            Kind::Assistant => {
                self.tokens = tokens_of(record).or(self.tokens);
                self.assistant(record, at);
            }
            Kind::System => self.system(record, at),
            Kind::Attachment => self.attachment(record, at),
            _ => {}
        }
    }

    fn user(&mut self, record: &Record<'_>, at: Option<Timestamp>, opens: bool) {
        let Some(content) = record.message.and_then(|message| message.get(b"content")) else {
            return;
        };
        if opens {
            if self.depth == 0 {
                self.turn += 1;
                self.prompt = record.uuid;
            }
            let text = prompt_text(content);
            self.push(at, None, BlockKind::Prompt { text, steer: false });
            for element in content.elements() {
                self.media(element, at);
            }
            return;
        }
        match record.user_part() {
            UserPart::ToolResult => self.results(record, content, at),
            UserPart::Summary => self.push(at, None, BlockKind::Compaction { summary: prompt_text(content) }),
            UserPart::Interrupted => {
                let text = prompt_text(content);
                self.push(at, None, BlockKind::Notice { notice: NoticeKind::Interrupted, text });
            }
            UserPart::Command | UserPart::CommandOutput => {
                let text = prompt_text(content);
                let command = text.strip_prefix("<bash-input>").and_then(|text| text.split("</bash-input>").next());
                if let Some(command) = command {
                    self.act(record, at, acts::ran(command.to_owned(), false));
                }
                if !text.is_empty() {
                    self.push(at, None, BlockKind::Notice { notice: NoticeKind::Command, text });
                }
            }
            UserPart::Prompt | UserPart::FromSdk | UserPart::Injected | UserPart::Caveat => {}
        }
    }

    fn results(&mut self, record: &Record<'_>, content: Raw<'_>, at: Option<Timestamp>) {
        for element in content.elements() {
            if element.get(b"type").and_then(Raw::plain) != Some(b"tool_result") {
                continue;
            }
            let call = string(element.get(b"tool_use_id")).unwrap_or_default();
            let name = self.calls.remove(&call);
            if self.acts.is_wanted() {
                let command = self.commands.remove(&call).map(|ran| (ran.at, ran.act));
                let (begun, command) = command.map_or((at, None), |(begun, act)| match act {
                    Act::Ran(ran) => (begun, Some(ran.command)),
                    Act::Touch(_) => (begun, None),
                });
                for act in acts::of_result(record.tool_result, command) {
                    let at = if matches!(act, Act::Ran(_)) { begun } else { at };
                    self.act(record, at, act);
                }
            }
            let agent = record.tool_result.and_then(|result| string(result.get(b"agentId")));
            if self.prose_only {
                self.leaves_tools_out = true;
                self.nest(&call, agent.as_deref(), at);
                continue;
            }
            let result = tool_result::read(element, name.as_deref(), &self.subagents.side_folder(), self.with_media);
            self.push(
                at,
                None,
                BlockKind::Output {
                    call: call.clone(),
                    name,
                    text: result.text,
                    error: result.error,
                    exit_code: result.exit_code,
                },
            );
            for media in result.media {
                self.push(at, None, media);
            }
            self.nest(&call, agent.as_deref(), at);
        }
    }

    /// Hands out the subagents of the turn whose calls have no result, and those that no call started.
    fn end_turn(&mut self) {
        // Commands without a result were interrupted, or are running.
        let mut unfinished: Vec<FileAct> = self.commands.drain().map(|(_, act)| act).collect();
        unfinished.sort_by_key(|act| act.at);
        unfinished.into_iter().for_each(|act| self.acts.push(act));
        if self.depth > 0 {
            return;
        }
        for (call, task) in self.sidechains.unfinished() {
            if let Some(id) = self.nest_task(&call, None, Some(task), None) {
                self.shown_early.insert(id);
            }
        }
        for root in self.sidechains.rest() {
            let kind = BlockKind::Subagent { id: root.id.clone(), role: None, description: None };
            let nested = ClaudeBlocks::sidechain(&root, self);
            self.begin_subagent(root.id, kind, nested, None);
        }
    }

    /// Begins the transcript of the subagent that `call` started, if there is one.
    fn nest(&mut self, call: &str, agent: Option<&str>, at: Option<Timestamp>) {
        if self.depth < DEEPEST {
            let task = self.sidechains.task(call);
            self.nest_task(call, agent, task, at);
        }
    }

    /// The same, where it is known what the call says. Returns the subagent's id.
    fn nest_task(
        &mut self,
        call: &str,
        agent: Option<&str>,
        task: Option<Task>,
        at: Option<Timestamp>,
    ) -> Option<String> {
        let found = self.subagents.started_by(call, agent).or_else(|| {
            // The result of a call that was interrupted doesn't name the subagent.
            let task = task.as_ref().filter(|_| agent.is_none())?;
            self.subagents.subagent_with_prompt(task.prompt, task.at, &self.shown)
        });
        if let Some(found) = found {
            if self.shown_early.contains(&found.id) {
                return None;
            }
            let told = task.map_or((None, None), |task| (task.role, task.description));
            let (role, description) = (found.role.or(told.0), found.description.or(told.1));
            let kind = BlockKind::Subagent { id: found.id.clone(), role, description };
            let nested = ClaudeBlocks::subagent(&found.path, self);
            return Some(self.begin_subagent(found.id, kind, nested, at));
        }
        let Some((task, root)) = task.and_then(|task| self.sidechains.started_by(&task).map(|root| (task, root)))
        else {
            if agent.is_some() {
                self.defects.add(DefectKind::MissingSubagent);
            }
            return None;
        };
        let kind = BlockKind::Subagent { id: root.id.clone(), role: task.role, description: task.description };
        let nested = ClaudeBlocks::sidechain(&root, self);
        Some(self.begin_subagent(root.id, kind, nested, at))
    }

    fn begin_subagent(
        &mut self,
        id: String,
        kind: BlockKind,
        nested: io::Result<ClaudeBlocks>,
        at: Option<Timestamp>,
    ) -> String {
        self.push(at, None, kind);
        match nested {
            Ok(nested) => self.ready.push_back(Item::Subagent(Box::new(nested))),
            Err(_) => self.defects.add(DefectKind::MissingSubagent),
        }
        self.shown.insert(id.clone());
        id
    }

    fn assistant(&mut self, record: &Record<'_>, at: Option<Timestamp>) {
        let Some(message) = record.message else {
            return;
        };
        let id = string(message.get(b"id"));
        let model = string(message.get(b"model")).filter(|model| model != "<synthetic>");
        let Some(content) = message.get(b"content") else {
            return;
        };
        if record.api_error {
            let text = prompt_text(content);
            self.push(at, id, BlockKind::Notice { notice: NoticeKind::Error, text });
            return;
        }
        if content.0.starts_with(b"\"") {
            let text = content.string().unwrap_or_default().into_owned();
            self.push(at, id, BlockKind::Answer { text, model });
            return;
        }
        for element in content.elements() {
            if self.depth == 0
                && let (Some(call), Some(input)) = (string(element.get(b"id")), input_of_task(element))
            {
                self.sidechains.call(&call, input, at, self.offset);
            }
            let kind = match element.get(b"type").and_then(Raw::plain) {
                Some(b"text") => {
                    let text = string(element.get(b"text")).unwrap_or_default();
                    if model.is_none() && text == FILLER {
                        continue;
                    }
                    BlockKind::Answer { text, model: model.clone() }
                }
                Some(b"thinking") => BlockKind::Thinking { text: string(element.get(b"thinking")).unwrap_or_default() },
                Some(b"redacted_thinking") => BlockKind::Thinking { text: String::new() },
                Some(b"tool_use" | b"server_tool_use" | b"mcp_tool_use") if self.prose_only => {
                    self.note_command(record, element, at);
                    self.leaves_tools_out = true;
                    continue;
                }
                Some(b"tool_use" | b"server_tool_use" | b"mcp_tool_use") => {
                    self.note_command(record, element, at);
                    let id = string(element.get(b"id")).unwrap_or_default();
                    let name = string(element.get(b"name")).unwrap_or_default();
                    self.calls.insert(id.clone(), name.clone());
                    let input = element.get(b"input").and_then(Raw::parse).unwrap_or(Value::Null);
                    BlockKind::Call { id, name, input }
                }
                _ => {
                    self.media(element, at);
                    continue;
                }
            };
            self.push(at, id.clone(), kind);
        }
    }

    fn system(&mut self, record: &Record<'_>, at: Option<Timestamp>) {
        let subtype = record.subtype.and_then(Raw::plain).unwrap_or_default();
        let notice = match subtype {
            b"local_command" => NoticeKind::Command,
            b"api_error" => NoticeKind::Error,
            b"informational" => NoticeKind::Info,
            _ => return,
        };
        let text = record.content.map(prompt_text).unwrap_or_default();
        if !text.is_empty() {
            self.push(at, None, BlockKind::Notice { notice, text });
        }
    }

    /// A prompt that was added while the agent was busy is stored as an attachment.
    fn attachment(&mut self, record: &Record<'_>, at: Option<Timestamp>) {
        let Some(attachment) = record.attachment else {
            return;
        };
        if attachment.get(b"type").and_then(Raw::plain) != Some(b"queued_command") {
            return;
        }
        let text = attachment.get(b"prompt").map(prompt_text).unwrap_or_default();
        let by_person = !text.is_empty() && !text.starts_with("<task-notification>");
        if by_person {
            self.push(at, None, BlockKind::Prompt { text, steer: true });
        }
    }

    fn media(&mut self, element: Raw<'_>, at: Option<Timestamp>) {
        if let Some(media) = tool_result::media(element, self.with_media) {
            self.push(at, None, media);
        }
    }

    /// Keeps what a call asks a shell for until its result is there.
    fn note_command(&mut self, record: &Record<'_>, call: Raw<'_>, at: Option<Timestamp>) {
        let name = call.get(b"name").and_then(Raw::plain).and_then(|name| std::str::from_utf8(name).ok());
        let is_shell = name.is_some_and(|name| name.starts_with("mcp__") || matches!(name, "Bash" | "PowerShell"));
        let Some(name) = name.filter(|_| is_shell && self.acts.is_wanted()) else { return };
        let input = call.get(b"input").and_then(Raw::parse).unwrap_or(Value::Null);
        if let (Some(id), Some(command)) = (string(call.get(b"id")), acts::command_of(name, &input)) {
            let act = self.file_act(record, at, acts::ran(command, false));
            self.commands.insert(id, act);
        }
    }

    fn act(&self, record: &Record<'_>, at: Option<Timestamp>, act: Act) {
        if self.acts.is_wanted() {
            self.acts.push(self.file_act(record, at, act));
        }
    }

    fn file_act(&self, record: &Record<'_>, at: Option<Timestamp>, act: Act) -> FileAct {
        let directory = record.cwd.and_then(Raw::string).map(|cwd| PathBuf::from(cwd.into_owned()));
        FileAct { turn: self.turn, depth: self.depth, at, directory, act }
    }

    /// The files that were backed up when the turn's prompt came. The record follows the prompt.
    fn backups(path: &Path, (turn, prompt): (u32, Option<u64>), sink: &ActSink, record: &Record<'_>, line: &[u8]) {
        if record.word.and_then(Raw::plain) != Some(b"file-history-snapshot") {
            return;
        }
        let line = Raw(line);
        let key = line.get(b"messageId").and_then(Raw::plain).map(key_of);
        let snapshot = line.get(b"snapshot").filter(|_| !line.get(b"isSnapshotUpdate").is_some_and(Raw::is_true));
        let (Some(snapshot), Some(folder)) = (snapshot, home::backups_of(path)) else { return };
        if key.is_none() || key != prompt {
            return;
        }
        let at =
            snapshot.get(b"timestamp").and_then(Raw::plain).and_then(|at| std::str::from_utf8(at).ok()?.parse().ok());
        for touch in acts::backups(snapshot, &folder) {
            sink.push(FileAct { turn, depth: 0, at, directory: None, act: Act::Touch(touch) });
        }
    }

    fn push(&mut self, at: Option<Timestamp>, message: Option<String>, kind: BlockKind) {
        let block = Block { turn: self.turn, depth: self.depth, at, message, kind };
        self.ready.push_back(Item::Block(block));
    }
}

/// The token use of an answer: everything sent for it, and the answer.
pub(super) fn tokens_of(record: &Record<'_>) -> Option<TokenUse> {
    let usage = record.message?.get(b"usage")?;
    let number = |field: &[u8]| usage.get(field).and_then(Raw::number).unwrap_or(0);
    let inputs = [&b"input_tokens"[..], b"cache_creation_input_tokens", b"cache_read_input_tokens"];
    let input = inputs.into_iter().map(number).fold(0, u64::saturating_add);
    Some(TokenUse { input, output: number(b"output_tokens"), window: None }).filter(|tokens| tokens.input > 0)
}

impl Blocks for ClaudeBlocks {
    fn next_block(&mut self) -> Option<Block> {
        loop {
            match self.ready.pop_front() {
                Some(Item::Block(block)) => return Some(block),
                Some(Item::Subagent(mut nested)) => match nested.next_block() {
                    Some(block) => {
                        self.ready.push_front(Item::Subagent(nested));
                        return Some(block);
                    }
                    None => {
                        self.defects.merge(&nested.defects);
                        self.leaves_tools_out |= nested.leaves_tools_out;
                        continue;
                    }
                },
                None => {}
            }
            if self.ended {
                return None;
            }
            // What is ready at the end is still handed out.
            self.ended = !self.advance();
        }
    }

    fn tokens(&self) -> Option<TokenUse> {
        self.tokens
    }

    fn take_acts(&mut self) -> Vec<FileAct> {
        self.acts.take()
    }

    fn defects(&self) -> &Defects {
        &self.defects
    }

    fn leaves_tools_out(&self) -> bool {
        self.leaves_tools_out
    }

    fn turn_began(&self) -> Option<TurnStart> {
        self.began
    }
}

/// What a scan met, without what is met again while reading.
fn defects_of_scan(defects: &Defects) -> Defects {
    let mut defects = defects.clone();
    defects.forget(DefectKind::MissingSubagent);
    defects
}

/// Counts a chain record and returns whether it is part of the history.
fn takes(history: &mut RecordFilter, index: &mut u32, record: &Record<'_>) -> bool {
    match history {
        RecordFilter::Sidechain => record.uuid.is_some(),
        RecordFilter::Inline(members) => match record.uuid.filter(|_| record.sidechain) {
            Some(uuid) if members.is_empty() || record.parent.is_some_and(|parent| members.contains(&parent)) => {
                members.insert(uuid)
            }
            _ => false,
        },
        RecordFilter::Chain => record.is_chain(),
        RecordFilter::Active(scan) => {
            if !record.is_chain() {
                return false;
            }
            *index += 1;
            scan.history.is_active(*index - 1)
        }
    }
}
