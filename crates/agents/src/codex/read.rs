//! A thread as blocks, streamed: from the messages to the model, and from events for everything else.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{Block, BlockKind, DefectKind, Defects, NoticeKind, SessionId, TokenUse};

use super::acts::{self, Running};
use super::home::{Home, Name};
use super::message::{Media, Message, shell_command};
use super::record::{Kind, Record};
use super::scan::{Scan, scan};
use super::source::{Source, beginning_of_line, is_compressed};
use super::subagents::{self, Spawn};
use super::tools;
use super::turns::{Place, Step, Turns};
use crate::acts::{Act, ActSink, FileAct, Ran};
use crate::fields::Raw;
use crate::lines::{Line, LineReader};
use crate::{Blocks, Part, PlainScan, TurnStart};

/// The deepest nesting of subagents that is followed.
const DEEPEST: u8 = 8;

/// The blocks of one thread.
pub(super) struct CodexBlocks {
    home: Home,
    thread: SessionId,
    files: Vec<(PathBuf, u64)>,
    /// The file that is being read, as an index.
    file: usize,
    lines: Option<LineReader<Source>>,
    taken_back: Vec<(Place, Place)>,
    turns: Turns,
    steps: Vec<Step>,
    until: Option<u32>,
    prose_only: bool,
    with_media: bool,
    /// Whether something was left out for that.
    leaves_tools_out: bool,
    /// Where reading begins in the only file, and whether it may begin anywhere but at the start.
    from: u64,
    can_begin_anywhere: bool,
    /// Set in a subagent's thread.
    nested: Option<Nested>,
    model: Option<String>,
    queue: VecDeque<Item>,
    /// The calls of the running task, by id.
    calls: HashMap<String, Called>,
    /// Calls that failed according to an event, which comes before the output.
    failed: HashSet<String>,
    /// The turns of this thread, which a subagent's thread may begin with a copy of; worked out when one does.
    turn_keys: Option<Vec<u64>>,
    /// What was done to files.
    acts: ActSink,
    /// What may change files and has not ended, by the call, with its time.
    pending: HashMap<String, (Option<Timestamp>, Running)>,
    /// The calls whose patches were recorded.
    patched: HashSet<String>,
    /// The directory of the turn.
    directory: Option<PathBuf>,
    spawned: HashSet<String>,
    /// When a review began whose prompt is still to come.
    review: Option<Timestamp>,
    /// A compaction was shown, and its event is still to come.
    compacted: bool,
    /// The token use that Codex last reported.
    tokens: Option<TokenUse>,
    defects: Defects,
    ended: bool,
}

enum Item {
    Block(Block),
    Thread(Box<CodexBlocks>),
}

struct Called {
    name: String,
    /// What a subagent was started for.
    task: Option<String>,
}

/// What a subagent's thread knows of the threads around it.
struct Nested {
    turn: u32,
    depth: u8,
    ancestors: Vec<String>,
    /// The turns that are copies of the parent's.
    copied: HashSet<u64>,
    skipping: bool,
}

impl CodexBlocks {
    /// Reads the thread whose file was scanned, up to and including the turn `until`.
    pub(super) fn thread(home: &Home, scan: Scan, part: &Part) -> Self {
        let mut turns = Turns::default();
        turns.helper = scan.meta.helper.is_some();
        turns.with_media = part.media;
        CodexBlocks {
            taken_back: scan.taken_back,
            turns,
            until: part.until,
            prose_only: part.prose_only,
            acts: ActSink::new(part.acts),
            directory: scan.summary.cwd.clone(),
            with_media: part.media,
            turn_keys: Some(scan.summary.turn_keys),
            defects: scan.summary.defects,
            ..CodexBlocks::new(home, scan.summary.id, scan.files)
        }
    }

    /// Reads a thread whose history is its file.
    fn plain(home: &Home, thread: SessionId, path: &Path, known: &PlainScan, part: &Part) -> Self {
        let files = vec![(path.to_owned(), known.size)];
        let can_begin_anywhere = !is_compressed(path);
        let from = part.from.filter(|_| can_begin_anywhere);
        let mut turns = from.map_or_else(Turns::default, |from| Turns::before(from.turn));
        turns.with_media = part.media;
        CodexBlocks {
            turns,
            until: part.until,
            prose_only: part.prose_only,
            acts: ActSink::new(part.acts),
            with_media: part.media,
            from: from.map_or(0, |from| from.offset),
            can_begin_anywhere,
            defects: known.defects.clone(),
            ..CodexBlocks::new(home, thread, files)
        }
    }

    fn new(home: &Home, thread: SessionId, files: Vec<(PathBuf, u64)>) -> Self {
        CodexBlocks {
            home: home.clone(),
            thread,
            files,
            file: 0,
            lines: None,
            taken_back: Vec::new(),
            turns: Turns::default(),
            steps: Vec::new(),
            until: None,
            prose_only: false,
            with_media: false,
            leaves_tools_out: false,
            from: 0,
            can_begin_anywhere: false,
            nested: None,
            model: None,
            queue: VecDeque::new(),
            calls: HashMap::new(),
            failed: HashSet::new(),
            turn_keys: None,
            acts: ActSink::default(),
            pending: HashMap::new(),
            patched: HashSet::new(),
            directory: None,
            spawned: HashSet::new(),
            review: None,
            compacted: false,
            tokens: None,
            defects: Defects::default(),
            ended: false,
        }
    }

    /// The turns of this thread, all of them, also those that are still to be read.
    fn turn_keys(&mut self) -> HashSet<u64> {
        let (home, files) = (&self.home, &self.files);
        let keys = self.turn_keys.get_or_insert_with(|| match files.last() {
            Some((path, _)) => scan(home, path).summary.turn_keys,
            None => Vec::new(),
        });
        keys.iter().copied().collect()
    }

    /// Reads on by one line, or notes the end.
    fn advance(&mut self) {
        let mut lines = match self.lines.take() {
            Some(lines) => lines,
            None => {
                match self.files.get(self.file).map(|(path, end)| Source::lines_from(path, self.from, Some(*end))) {
                    Some(Ok(lines)) => lines,
                    Some(Err(_)) => return self.next_file(true),
                    None => {
                        self.turns.finish(&mut self.steps);
                        self.take_steps();
                        self.abandon_commands();
                        self.ended = true;
                        return;
                    }
                }
            }
        };
        match lines.next_line() {
            Ok(Some(line)) => {
                self.line(&line);
                self.lines = Some(lines);
            }
            Ok(None) => self.next_file(false),
            Err(_) => self.next_file(true),
        }
    }

    fn next_file(&mut self, broken: bool) {
        if broken && self.defects.count(DefectKind::Unreadable) == 0 {
            self.defects.add(DefectKind::Unreadable);
        }
        self.file += 1;
    }

    fn line(&mut self, line: &Line<'_>) {
        let place = Place { segment: self.file, offset: line.offset };
        if self.taken_back.iter().any(|(from, to)| (*from..=*to).contains(&place)) {
            return;
        }
        if line.bytes.is_some() {
            if let Some(record) = Record::of_line(line) {
                self.record(&record, place);
            }
            return;
        }
        let beginning = beginning_of_line(&self.files[self.file].0, line.offset);
        let record = beginning.as_deref().and_then(Record::of);
        if record.is_some_and(|record| record.kind == Kind::Other || !self.shows(&record, place)) {
            return;
        }
        let text = format!("a record of {} MB is not shown", line.len >> 20);
        self.push(None, None, BlockKind::Notice { notice: NoticeKind::Unreadable, text });
    }

    /// Counts a record that is too long to be shown; whether anything would have been shown of it.
    fn shows(&mut self, record: &Record<'_>, place: Place) -> bool {
        self.turns.add_record(record, place, &mut self.steps);
        self.take_steps();
        !matches!(
            record.kind,
            Kind::ToolItem | Kind::ToolEvent | Kind::SessionMeta | Kind::TurnContext | Kind::WorldState
        )
    }

    fn record(&mut self, record: &Record<'_>, place: Place) {
        self.turns.add_record(record, place, &mut self.steps);
        self.take_steps();
        if self.ended {
            return;
        }
        match record.kind {
            Kind::TurnContext => {
                self.model = record.text(b"model").or(self.model.take());
                self.directory = record.text(b"cwd").map(PathBuf::from).or(self.directory.take());
            }
            Kind::SessionMeta if self.directory.is_none() => {
                self.directory = record.text(b"cwd").map(PathBuf::from);
            }
            Kind::TaskStarted => {
                self.abandon_commands();
                self.calls.clear();
                self.failed.clear();
            }
            Kind::TokenCount => self.tokens = token_use(record).or(self.tokens),
            Kind::TaskComplete => self.task_complete(record),
            Kind::TurnAborted => {
                let text = record.text(b"reason").unwrap_or_default();
                self.push_of(record, BlockKind::Notice { notice: NoticeKind::Interrupted, text });
            }
            Kind::Error => {
                let text = record.text(b"message").unwrap_or_default();
                self.push_of(record, BlockKind::Notice { notice: NoticeKind::Error, text });
            }
            Kind::Answer => self.answer(record),
            Kind::Reasoning => self.push_of(record, BlockKind::Thinking { text: thinking(record) }),
            Kind::Call => self.call(record),
            Kind::Output if self.prose_only && !self.is_of_spawn(record) && !self.acts.is_wanted() => {
                self.leaves_tools_out = true;
            }
            Kind::Output => self.output(record),
            Kind::ToolEvent | Kind::ToolItem if self.patch(record) => {}
            Kind::ToolEvent | Kind::ToolItem if self.prose_only => self.leaves_tools_out = true,
            Kind::ToolEvent | Kind::ToolItem => self.failed.extend(tools::failure(record)),
            Kind::SubagentItem | Kind::SubagentEvent => {
                for spawn in subagents::spawns(record) {
                    self.subagent(record.at(), spawn);
                }
            }
            Kind::ReviewEntered => self.review = record.at(),
            // Usually the review's prompt came before, and with it the review was shown.
            Kind::ReviewExited => self.show_review(record.at()),
            Kind::Compacted => self.compaction(record),
            Kind::CompactionEvent => self.compaction_event(record),
            _ => {}
        }
    }

    fn take_steps(&mut self) {
        for step in std::mem::take(&mut self.steps) {
            if self.ended {
                return;
            }
            match step {
                Step::Prompt { message, steer, turn, key, .. } => self.prompt(message, steer, turn, key),
                Step::Shell(message) => {
                    let text = shell_command(&message.text);
                    let command = text.lines().next().unwrap_or_default().trim_start_matches("$ ").to_owned();
                    let ran = Ran { command, is_reported: false };
                    self.act(message.at, None, Act::Ran(ran));
                    self.push(message.at, message.id, BlockKind::Notice { notice: NoticeKind::Command, text });
                }
                Step::Injected(Message { at, id, text, media }) => {
                    if !text.trim().is_empty() {
                        self.push(at, id, BlockKind::Notice { notice: NoticeKind::Info, text });
                    }
                    self.pictures(at, media);
                }
                // The scan has already excluded rolled-back records.
                Step::TakenBack(_) => {}
            }
        }
    }

    fn prompt(&mut self, message: Message, steer: bool, turn: u32, key: u64) {
        if self.nested.is_none() && self.until.is_some_and(|until| turn > until) {
            self.ended = true;
            return;
        }
        if let Some(nested) = &mut self.nested {
            nested.skipping = nested.copied.contains(&key);
        }
        let (context, request) = message.request();
        let (context, text) = (context.map(str::to_owned), request.to_owned());
        let Message { at, id, media, .. } = message;
        self.push(at, id, BlockKind::Prompt { text, steer });
        if let Some(text) = context {
            self.push(at, None, BlockKind::Notice { notice: NoticeKind::Info, text });
        }
        self.pictures(at, media);
        self.show_review(at);
    }

    /// Shows the thread of a review that began and was not shown yet.
    fn show_review(&mut self, at: Option<Timestamp>) {
        if let Some(began) = self.review.take()
            && let Some((own, _)) = self.files.last()
            && let Some(id) = subagents::review(&self.home, (&self.thread, own), began, &self.spawned)
        {
            self.subagent(at, Spawn { thread: id, role: Some("review".to_owned()), task: None });
        }
    }

    fn task_complete(&mut self, record: &Record<'_>) {
        let message = record.get(b"error").and_then(|error| error.get(b"message")).and_then(Raw::string);
        if let Some(message) = message {
            let text = message.into_owned();
            self.push_of(record, BlockKind::Notice { notice: NoticeKind::Error, text });
        }
    }

    fn answer(&mut self, record: &Record<'_>) {
        let mut text = String::new();
        for element in record.get(b"content").map(Raw::elements).into_iter().flatten() {
            let words = element.get(b"text").or_else(|| element.get(b"refusal")).and_then(Raw::string);
            text.push_str(&words.unwrap_or_default());
        }
        if !text.is_empty() {
            let model = self.model.clone();
            self.push_of(record, BlockKind::Answer { text, model });
        }
    }

    /// Whether a record is the output of a call that started a subagent.
    fn is_of_spawn(&self, record: &Record<'_>) -> bool {
        let called = record.text(b"call_id").and_then(|id| self.calls.get(&id));
        called.is_some_and(|called| called.name == subagents::SPAWN)
    }

    fn call(&mut self, record: &Record<'_>) {
        let (call, pictures) = tools::call(record, self.with_media);
        if let BlockKind::Call { id, name, input } = &call {
            if let Some(running) = Running::of(name, input).filter(|_| self.acts.is_wanted()) {
                self.pending.insert(id.clone(), (record.at(), running));
            }
            let task = input.get("message").and_then(|message| message.as_str()).map(str::to_owned);
            let task = task.filter(|_| name == subagents::SPAWN);
            self.calls.insert(id.clone(), Called { name: name.clone(), task });
        }
        if self.prose_only {
            self.leaves_tools_out = true;
            return;
        }
        self.push_of(record, call);
        self.pictures(record.at(), pictures);
    }

    fn output(&mut self, record: &Record<'_>) {
        let called = record.text(b"call_id").and_then(|id| self.calls.remove(&id));
        let is_mcp = called.as_ref().is_some_and(|called| called.name.starts_with("mcp__"));
        let output = tools::output(record, is_mcp, self.with_media);
        let name = called.as_ref().map(|called| called.name.clone());
        if let Some((at, running)) = self.pending.remove(&output.call) {
            let failed = self.failed.contains(&output.call) || output.failed;
            let patched = self.patched.remove(&output.call);
            let directory = running.directory.clone();
            for act in running.acts(&output.text, failed, patched) {
                // A file was seen when it had been read; a command may have changed files from its beginning.
                let at = if matches!(act, Act::Ran(_)) { at } else { record.at().or(at) };
                self.act(at, directory.as_deref(), act);
            }
        }
        if name.as_deref() == Some(subagents::SPAWN)
            && let Some(thread) = subagents::spawned_thread(&output.text)
        {
            let task = called.and_then(|called| called.task);
            self.subagent(record.at(), Spawn { thread, role: None, task });
        }
        if self.prose_only {
            self.leaves_tools_out = true;
            return;
        }
        let error = self.failed.remove(&output.call) || output.failed;
        let (call, text, exit_code) = (output.call, output.text, output.exit_code);
        self.push_of(record, BlockKind::Output { call, name, text, error, exit_code });
        self.pictures(record.at(), output.pictures);
    }

    /// The model's summary is recorded as an answer first; it is shown once.
    fn compaction(&mut self, record: &Record<'_>) {
        let mut summary = record.text(b"message").unwrap_or_default();
        if let Some(Item::Block(Block { kind: BlockKind::Answer { text, .. }, .. })) = self.queue.back()
            && summary.trim_end().ends_with(text.trim_end())
        {
            summary = text.clone();
            self.queue.pop_back();
        }
        self.compacted = true;
        self.push_of(record, BlockKind::Compaction { summary });
    }

    /// The event follows the record; alone, it means that the history was replaced without a record.
    fn compaction_event(&mut self, record: &Record<'_>) {
        if !std::mem::take(&mut self.compacted) {
            self.push_of(record, BlockKind::Compaction { summary: String::new() });
        }
    }

    fn subagent(&mut self, at: Option<Timestamp>, spawn: Spawn) {
        let Spawn { thread, role, task } = spawn;
        if self.skipping() || !self.spawned.insert(thread.clone()) {
            return;
        }
        let scanned = self.home.find_thread(&thread).map(|path| scan(&self.home, &path));
        let meta = scanned.as_ref().map(|scan| scan.meta.clone()).unwrap_or_default();
        let description = task.or(meta.agent_path).or(meta.nickname);
        self.push(at, None, BlockKind::Subagent { id: thread.clone(), role: role.or(meta.role), description });
        let Some(scanned) = scanned else {
            self.defects.add(DefectKind::MissingSubagent);
            return;
        };
        let mut ancestors = self.nested.as_ref().map(|nested| nested.ancestors.clone()).unwrap_or_default();
        ancestors.push(self.thread.as_str().to_owned());
        if self.depth() >= DEEPEST || ancestors.contains(&thread) {
            return;
        }
        let part = Part { prose_only: self.prose_only, ..Part::default() };
        let mut blocks = CodexBlocks::thread(&self.home, scanned, &part);
        blocks.acts = self.acts.clone();
        let copied = if meta.forked_from.is_some() { self.turn_keys() } else { HashSet::new() };
        let nested = Nested { turn: self.turn(), depth: self.depth() + 1, ancestors, copied, skipping: false };
        blocks.nested = Some(nested);
        self.queue.push_back(Item::Thread(Box::new(blocks)));
    }

    /// Takes the changes that a patch made; false if the record is about something else.
    fn patch(&mut self, record: &Record<'_>) -> bool {
        let Some((call, touches)) = acts::of_record(record).filter(|_| self.acts.is_wanted()) else { return false };
        for touch in touches {
            self.act(record.at(), None, Act::Touch(touch));
        }
        self.failed.extend(tools::failure(record));
        self.patched.insert(call);
        true
    }

    fn act(&self, at: Option<Timestamp>, directory: Option<&Path>, act: Act) {
        if self.acts.is_wanted() && !self.skipping() {
            let directory = match (directory, &self.directory) {
                (Some(own), Some(turns)) => Some(turns.join(own)),
                (own, turns) => own.map(Path::to_owned).or_else(|| turns.clone()),
            };
            self.acts.push(FileAct { turn: self.turn(), depth: self.depth(), at, directory, act });
        }
    }

    /// Notes the commands that have no output: they were interrupted, or are running.
    fn abandon_commands(&mut self) {
        let mut pending: Vec<(Option<Timestamp>, Running)> = self.pending.drain().map(|(_, running)| running).collect();
        pending.sort_by_key(|(at, _)| *at);
        for (at, running) in pending {
            self.act(at, running.directory.as_deref(), Act::Ran(Ran { command: running.command, is_reported: false }));
        }
    }

    fn pictures(&mut self, at: Option<Timestamp>, media: Vec<Media>) {
        for Media { media_type, bytes, data } in media {
            self.push(at, None, BlockKind::Media { media_type, bytes, data });
        }
    }

    fn push_of(&mut self, record: &Record<'_>, kind: BlockKind) {
        self.push(record.at(), record.text(b"id"), kind);
    }

    fn push(&mut self, at: Option<Timestamp>, message: Option<String>, kind: BlockKind) {
        if !self.skipping() {
            self.queue.push_back(Item::Block(Block { turn: self.turn(), depth: self.depth(), at, message, kind }));
        }
    }

    fn skipping(&self) -> bool {
        self.nested.as_ref().is_some_and(|nested| nested.skipping)
    }

    /// A subagent's blocks belong to the turn that started it.
    fn turn(&self) -> u32 {
        self.nested.as_ref().map_or(self.turns.count, |nested| nested.turn)
    }

    fn depth(&self) -> u8 {
        self.nested.as_ref().map_or(0, |nested| nested.depth)
    }
}

fn token_use(record: &Record<'_>) -> Option<TokenUse> {
    let info = record.get(b"info")?;
    let last = info.get(b"last_token_usage")?;
    Some(TokenUse {
        input: last.get(b"input_tokens").and_then(Raw::number)?,
        output: last.get(b"output_tokens").and_then(Raw::number).unwrap_or(0),
        window: info.get(b"model_context_window").and_then(Raw::number),
    })
}

impl Blocks for CodexBlocks {
    fn next_block(&mut self) -> Option<Block> {
        loop {
            match self.queue.front_mut() {
                Some(Item::Thread(thread)) => match thread.next_block() {
                    Some(block) => return Some(block),
                    None => {
                        let (defects, leaves_tools_out) = (thread.defects.clone(), thread.leaves_tools_out);
                        self.defects.merge(&defects);
                        self.leaves_tools_out |= leaves_tools_out;
                        self.queue.pop_front();
                    }
                },
                // An answer waits for the next block, which may turn it into a summary.
                Some(Item::Block(block)) => {
                    let may_be_summary = matches!(block.kind, BlockKind::Answer { .. });
                    if may_be_summary && self.queue.len() == 1 && !self.ended {
                        self.advance();
                        continue;
                    }
                    if let Some(Item::Block(block)) = self.queue.pop_front() {
                        return Some(block);
                    }
                }
                None if self.ended => return None,
                None => self.advance(),
            }
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
        self.turns.began().filter(|_| self.can_begin_anywhere)
    }
}

/// The text of a reasoning item: its summary, or otherwise its content.
fn thinking(record: &Record<'_>) -> String {
    for key in [&b"summary"[..], b"content"] {
        let texts: Vec<String> = record
            .get(key)
            .map(Raw::elements)
            .into_iter()
            .flatten()
            .filter_map(|element| element.get(b"text").and_then(Raw::string).map(|text| text.into_owned()))
            .collect();
        if !texts.is_empty() {
            return texts.join("\n\n");
        }
    }
    String::new()
}

/// Opens the thread at `path` for reading.
pub(super) fn open(home: &Home, path: &Path, part: &Part, known: Option<&PlainScan>) -> io::Result<CodexBlocks> {
    // A missing or unreadable file is an error here, because this thread was requested.
    Source::open(path)?;
    let named = Name::of_path(path).and_then(|name| SessionId::new(name.thread).ok());
    Ok(match known.zip(named) {
        Some((known, thread)) => CodexBlocks::plain(home, thread, path, known, part),
        None => CodexBlocks::thread(home, scan(home, path), part),
    })
}
