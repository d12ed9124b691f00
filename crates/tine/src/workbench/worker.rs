//! Threads that carry out effects and report back. One changes things, one reads transcripts, one searches, one holds
//! the chats; each has its own engine, so that a slow search blocks neither the list nor a chat.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use engine::chat::ChatEvent;
use engine::{
    Asking, ChatRequest, Context, EMBEDDING, Engine, Limits, Now, OpenChat, Plan, Project, Query, Quiet, SeedText,
    Session, TabRecord, Target, Tine,
};
use jiff::tz::TimeZone;
use transcript::render::{Part, Renderer, Style, Terminal, Tools};
use transcript::{Block, BlockKind, State};

use diagnostics::OrLog;

use super::document::{Document, RenderedText};
use super::event::{Effect, Event, Hit, Trouble};
use crate::environment::Surface;

/// How many hits a search shows.
const HITS: usize = 50;

/// Of sessions that are larger, only the last turns are laid out at first.
const LARGE: u64 = 16 << 20;
const LAST_TURNS: u32 = 40;

/// How long the last turn of a session may take to be written.
const SETTLES_WITHIN: Duration = Duration::from_millis(1500);

/// How many files a completion offers.
const FILES: usize = 50;

/// The size limit for pictures in prompts.
const LARGEST_PICTURE: u64 = 5 << 20;

/// The threads that take effects.
pub(crate) struct Workers {
    desk: Sender<Effect>,
    search: Sender<Effect>,
    reader: Sender<Effect>,
    watch: Sender<Effect>,
    chats: Option<Sender<Effect>>,
    closing: Option<JoinHandle<()>>,
}

/// Starts the threads.
pub(crate) fn start(context: &Context, surface: &Surface, events: &Sender<Event>) -> Workers {
    let begin = |run: fn(&EngineThread, Effect, &Sender<Event>) -> Result<Event, engine::Error>| {
        let (sender, effects) = mpsc::channel();
        let (context, events, zone) = (context.clone(), events.clone(), surface.zone.clone());
        let color = surface.color;
        thread::spawn(move || work(context, color, zone, &effects, &events, run));
        sender
    };
    let (chats, effects) = mpsc::channel();
    let (own, reports) = (context.clone(), events.clone());
    let closing = thread::spawn(move || hold_chats(own, &effects, &reports));
    let (watch, effects) = mpsc::channel();
    let reports = events.clone();
    thread::spawn(move || keep_watch(&effects, &reports));
    let (desk, search, reader) =
        (begin(EngineThread::at_desk), begin(EngineThread::search), begin(EngineThread::at_desk));
    Workers { desk, search, reader, watch, chats: Some(chats), closing: Some(closing) }
}

/// How often a transcript that is followed is checked.
const LOOK: Duration = Duration::from_millis(500);

/// A file's size and time.
type FileStamp = (u64, Option<SystemTime>);

/// Reports changes of the followed transcript. Without one, this thread sleeps.
fn keep_watch(effects: &Receiver<Effect>, events: &Sender<Event>) {
    let stamp = |path: &Path| std::fs::metadata(path).map(|file| (file.len(), file.modified().ok())).ok();
    let mut watched: Option<(PathBuf, Option<FileStamp>)> = None;
    loop {
        let received = match watched {
            Some(_) => effects.recv_timeout(LOOK),
            None => effects.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(Effect::Watch(path)) => watched = path.map(|path| (path.clone(), stamp(&path))),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if let Some((path, seen)) = &mut watched {
                    let now = stamp(path);
                    if now != *seen {
                        *seen = now;
                        if events.send(Event::Changed(path.clone())).is_err() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

impl Workers {
    pub(crate) fn send(&self, effects: Vec<Effect>) {
        for effect in effects {
            let to = match effect {
                Effect::Search { .. } => Some(&self.search),
                Effect::Watch(_) => Some(&self.watch),
                Effect::Read { .. } | Effect::ReadTab { .. } => Some(&self.reader),
                Effect::OpenChat { .. } | Effect::Act { .. } | Effect::SettleChat { .. } | Effect::CloseChat { .. } => {
                    self.chats.as_ref()
                }
                _ => Some(&self.desk),
            };
            // A thread that has ended has reported why.
            let _ = to.map(|to| to.send(effect));
        }
    }
}

impl Drop for Workers {
    /// Ends the agents of all chats and waits for them.
    fn drop(&mut self) {
        self.chats = None;
        if let Some(closing) = self.closing.take() {
            let _ = closing.join();
        }
    }
}

/// Holds the chats. Their agents end with this thread.
fn hold_chats(context: Context, effects: &Receiver<Effect>, events: &Sender<Event>) {
    let tine = match Tine::open(context) {
        Ok(tine) => tine,
        Err(error) => return drop(events.send(Event::Failed(trouble(&error)))),
    };
    let mut chats: HashMap<u64, OpenChat> = HashMap::new();
    while let Ok(effect) = effects.recv() {
        match effect {
            Effect::OpenChat { tab, request } => {
                let opened = open_chat(&tine, &request, tab, events);
                let event = match opened {
                    Ok(chat) => {
                        let name = chat.name.clone();
                        chats.insert(tab, chat);
                        Event::ChatOpened { tab, name }
                    }
                    Err(error) => Event::ChatFailed { tab, trouble: trouble(&error) },
                };
                if events.send(event).is_err() {
                    break;
                }
            }
            Effect::Act { tab, action } => {
                let happened = chats.get(&tab).map(|chat| chat.act(action)).unwrap_or_default();
                for event in happened {
                    let _ = events.send(Event::Chat { tab, event });
                }
            }
            Effect::SettleChat { tab, id } => {
                if let Some(chat) = chats.get_mut(&tab) {
                    chat.settle(&tine, &id).or_log("record the session of a chat");
                }
            }
            Effect::CloseChat { tab } => {
                if let Some(chat) = chats.remove(&tab) {
                    chat.close(&tine);
                }
            }
            _ => {}
        }
    }
    // All at once, because each may take a moment to end.
    for (_, chat) in chats {
        chat.end_soon();
        chat.close(&tine);
    }
}

fn open_chat(tine: &Tine, request: &ChatRequest, tab: u64, events: &Sender<Event>) -> Result<OpenChat, engine::Error> {
    let request = match request {
        // A fork that was not started gets its transcript now.
        ChatRequest::Resume { session, directory } if session.view.unstarted => {
            let session = Box::new(tine.start_fork((**session).clone(), Some(directory))?);
            ChatRequest::Resume { session, directory: directory.clone() }
        }
        // It may have been continued or closed elsewhere since it was listed.
        ChatRequest::Resume { session, directory } => {
            ChatRequest::Resume { session: Box::new(tine.refresh(session)?), directory: directory.clone() }
        }
        ChatRequest::Start { .. } => request.clone(),
    };
    let events = events.clone();
    tine.open_chat(&request, move |event: ChatEvent| drop(events.send(Event::Chat { tab, event })))
}

/// One thread's engine.
pub(crate) struct EngineThread {
    tine: Tine,
    color: bool,
    zone: TimeZone,
}

fn work(
    context: Context,
    color: bool,
    zone: TimeZone,
    effects: &Receiver<Effect>,
    events: &Sender<Event>,
    run: fn(&EngineThread, Effect, &Sender<Event>) -> Result<Event, engine::Error>,
) {
    let tine = match Tine::open(context) {
        Ok(tine) => tine,
        Err(error) => return drop(events.send(Event::Failed(trouble(&error)))),
    };
    let worker = EngineThread::new(tine, color, zone);
    while let Ok(first) = effects.recv() {
        let waiting: Vec<Effect> = std::iter::once(first).chain(effects.try_iter()).collect();
        for effect in without_outdated(waiting) {
            let event = run(&worker, effect, events).unwrap_or_else(|error| Event::Failed(trouble(&error)));
            let warnings = worker.tine.take_warnings().into_iter();
            let warnings = warnings.map(|message| Event::Failed(Trouble { message, hint: None }));
            for event in std::iter::once(event).chain(warnings) {
                if events.send(event).is_err() {
                    return;
                }
            }
        }
    }
}

/// Moving through a list requests more transcripts than can be read: only the last request of each kind counts.
fn without_outdated(effects: Vec<Effect>) -> Vec<Effect> {
    let kind = |effect: &Effect| match effect {
        Effect::LoadSessions => Some(0),
        Effect::Read { .. } => Some(1),
        Effect::Search { .. } => Some(2),
        Effect::Plan { .. } => Some(3),
        _ => None,
    };
    let kinds: Vec<Option<u8>> = effects.iter().map(kind).collect();
    let is_last = |place: usize| kinds[place].is_none() || !kinds[place + 1..].contains(&kinds[place]);
    effects.into_iter().enumerate().filter(|(place, _)| is_last(*place)).map(|(_, effect)| effect).collect()
}

fn trouble(error: &engine::Error) -> Trouble {
    Trouble { message: error.to_string(), hint: error.hint() }
}

impl EngineThread {
    pub(crate) fn new(tine: Tine, color: bool, zone: TimeZone) -> Self {
        EngineThread { tine, color, zone }
    }

    /// Carries out an effect and returns what it leads to.
    #[cfg(test)]
    pub(crate) fn carry_out(&self, effect: Effect) -> Event {
        let (events, _) = mpsc::channel();
        let run = if matches!(effect, Effect::Search { .. }) { EngineThread::search } else { EngineThread::at_desk };
        run(self, effect, &events).unwrap_or_else(|error| Event::Failed(trouble(&error)))
    }

    fn at_desk(&self, effect: Effect, _events: &Sender<Event>) -> Result<Event, engine::Error> {
        match effect {
            Effect::LoadSessions => {
                let project = Project::of(&self.tine.context().cwd);
                Ok(Event::Sessions(self.tine.all_sessions(&Quiet)?, project))
            }
            Effect::Read { ticket, session, width, full, focus, from } => {
                let session = self.tine.refresh(&session).unwrap_or(*session);
                let large = || session.view.turns.saturating_sub(LAST_TURNS);
                let from = from.unwrap_or_else(|| if session.size < LARGE { 0 } else { large() });
                let document = match focus {
                    true => self.focused(&session, width, from)?,
                    false => self.lay_out(&session, width, full, |block| block.turn >= from)?,
                };
                Ok(Event::Transcript { ticket, document, from })
            }
            Effect::TakeTurn { session, turn } => Ok(Event::Taken(self.turn_as_markdown(&session, turn)?)),
            Effect::CompleteCommand(words) => {
                let choices = self.complete_command(&words);
                Ok(Event::CommandCompletions { words, choices })
            }
            Effect::Plan { ticket, mut request } => {
                self.settle(&mut request.source);
                let plan = self.tine.plan_fork(&request).map(Box::new).map_err(|error| trouble(&error));
                let turn = request.turns.unwrap_or(request.source.view.turns);
                let is_small = request.source.size < LARGE;
                let prompt = if is_small { self.prompt_of(&request.source, turn)? } else { None };
                Ok(Event::Planned { ticket, plan, prompt })
            }
            Effect::Fork { plan, edit } => self.fork(&plan, edit),
            Effect::ReadTab { ticket, session, width, full, hide_acknowledgement } => {
                let (document, prompts) = self.read_tab(&session, width, full, hide_acknowledgement)?;
                Ok(Event::TabHistory { ticket, document, prompts })
            }
            Effect::RefreshTab { tab, session } => self.refresh_tab(tab, &session),
            Effect::RestoreTabs => self.restore_tabs(),
            Effect::RememberTabs(tabs) => {
                TabRecord::remember(&self.tine, &tabs)?;
                Ok(Event::Ignored)
            }
            Effect::SendElsewhere { tab, session, text } => {
                let path = session.view.path.to_string_lossy().into_owned();
                self.tine.send(&Target::Session(session), &text, false, None)?;
                self.refresh_tab(tab, &path)
            }
            Effect::FocusPane(session) => {
                self.tine.focus(&Target::Session(session))?;
                Ok(Event::Ignored)
            }
            Effect::Complete { tab, word, directory } => {
                let choices = self.files(&directory, word.trim_start_matches('@'));
                Ok(Event::Completions { tab, word, choices })
            }
            Effect::ReadPicture { tab, path } => Ok(match read_picture(&path) {
                Ok(image) => Event::Picture { tab, image },
                Err(message) => Event::Failed(Trouble { message, hint: None }),
            }),
            Effect::Run(words) => Ok(self.run(words)),
            Effect::Rename(session, name) => {
                let old = session.view.label().to_owned();
                self.tine.rename(&session, &name)?;
                Ok(Event::Done(format!("renamed {old} to {name}; u undoes it")))
            }
            Effect::Undo => {
                let undone = self.tine.undo(None, false)?;
                Ok(Event::Done(format!("undid: {}", undone.what)))
            }
            Effect::Search { .. }
            | Effect::OpenChat { .. }
            | Effect::Act { .. }
            | Effect::SettleChat { .. }
            | Effect::CloseChat { .. }
            | Effect::Edit { .. }
            | Effect::HandOver { .. }
            | Effect::Copy(_)
            | Effect::Watch(_)
            | Effect::Quit => Ok(Event::Ignored),
        }
    }

    /// Lays out the prompts and the last answer of each turn.
    fn focused(&self, session: &Session, width: u16, from: u32) -> Result<Document, engine::Error> {
        let mut blocks = self.tine.read(session, None, SeedText::Folded)?;
        let mut last = HashMap::new();
        let mut number = 0usize;
        while let Some(block) = blocks.next_block() {
            if block.depth == 0 && matches!(block.kind, BlockKind::Answer { .. }) {
                last.insert(block.turn, number);
            }
            number += 1;
        }
        let mut number = 0;
        self.lay_out(session, width, false, |block| {
            let is_last = last.get(&block.turn) == Some(&number);
            number += 1;
            let is_prompt = block.depth == 0 && matches!(block.kind, BlockKind::Prompt { .. });
            block.turn >= from && (is_last || is_prompt)
        })
    }

    /// One turn as Markdown, without redaction: it is the user's own text.
    fn turn_as_markdown(&self, session: &Session, turn: u32) -> Result<String, engine::Error> {
        let mut blocks = self.tine.read(session, Some(turn), SeedText::Folded)?;
        let mut parts = Vec::new();
        while let Some(block) = blocks.next_block() {
            match block.kind {
                BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. }
                    if block.turn == turn && block.depth == 0 =>
                {
                    parts.push(transcript::text::clean(&text));
                }
                _ => {}
            }
        }
        Ok(parts.join("\n\n"))
    }

    /// Completions for the last word of a command, from the shell completion.
    fn complete_command(&self, words: &[String]) -> Vec<(String, String)> {
        let mut command = Command::new(&self.tine.context().program);
        command
            .env(crate::environment::COMPLETE_VARIABLE, "fish")
            .args(["--", "tine"])
            .args(words)
            .stdin(Stdio::null());
        let output = command.current_dir(&self.tine.context().cwd).output().or_log("complete a command");
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let choice = |line: &str| {
            let (word, what) = line.split_once('\t').unwrap_or((line, ""));
            (transcript::text::one_line(word), transcript::text::one_line(what))
        };
        text.lines().filter(|line| !line.is_empty()).map(choice).collect()
    }

    /// Lays out the selected blocks of a session.
    fn lay_out(
        &self,
        session: &Session,
        width: u16,
        full: bool,
        mut is_wanted: impl FnMut(&Block) -> bool,
    ) -> Result<Document, engine::Error> {
        let mut blocks = self.tine.read(session, None, SeedText::Folded)?;
        let tools = if full { Tools::Full } else { Tools::Brief };
        let style = Style { color: self.color, width: width.into(), zone: self.zone.clone() };
        let mut document = Document::default();
        let text = RenderedText::default();
        let mut renderer = Terminal::new(text.clone(), tools, style);
        renderer.begin(&session.view, Part::Whole).or_log("lay out a transcript");
        text.take();
        while let Some(block) = blocks.next_block() {
            if is_wanted(&block) {
                renderer.block(&block).or_log("lay out a block");
                document.add(block.turn, &text.take());
            }
        }
        Ok(document)
    }

    /// A session's transcript from before its tab was opened, and the prompts in it. Later turns are in the tab's log.
    fn read_tab(
        &self,
        session: &Session,
        width: u16,
        full: bool,
        hide_acknowledgement: bool,
    ) -> Result<(Document, Vec<String>), engine::Error> {
        let last = session.view.turns;
        let from = if session.size < LARGE { 0 } else { last.saturating_sub(LAST_TURNS) };
        let mut prompts = Vec::new();
        let document = self.lay_out(session, width, full, |block| {
            if let (BlockKind::Prompt { text, steer: false }, 0) = (&block.kind, block.depth)
                && !transcript::seed::is_seed(text)
            {
                prompts.push(text.clone());
            }
            let is_acknowledgement = block.turn == 1 && !matches!(block.kind, BlockKind::Prompt { .. });
            (from..=last).contains(&block.turn) && !(hide_acknowledgement && is_acknowledgement)
        })?;
        Ok((document, prompts))
    }

    /// Reads a session again. An agent may write the end of a turn a moment after reporting it.
    fn settle(&self, session: &mut Session) {
        let begun = Instant::now();
        loop {
            match self.tine.refresh(session).or_log("look at the source of a fork") {
                Some(now) => *session = now,
                None => return,
            }
            if session.view.state != State::Busy || begun.elapsed() > SETTLES_WITHIN {
                return;
            }
            thread::sleep(LOOK / 10);
        }
    }

    /// Creates a fork, and reads the prompt for the user to change from its source.
    fn fork(&self, plan: &Plan, edit: Option<(u32, Box<Session>)>) -> Result<Event, engine::Error> {
        let prompt = edit.map(|(turn, source)| self.prompt_of(&source, turn)).transpose()?.flatten();
        let forked = Box::new(self.tine.apply_fork(plan, &Quiet)?);
        let session = self.find(&forked.session.path.to_string_lossy()).or_log("read the fork again").map(Box::new);
        Ok(Event::Forked { forked, session, prompt })
    }

    fn prompt_of(&self, session: &Session, turn: u32) -> Result<Option<String>, engine::Error> {
        let mut blocks = self.tine.read(session, Some(turn), SeedText::Folded)?;
        let mut found = None;
        while let Some(block) = blocks.next_block() {
            if let (BlockKind::Prompt { text, steer: false }, true) =
                (block.kind, block.turn == turn && block.depth == 0)
            {
                found = Some(text);
            }
        }
        Ok(found)
    }

    /// The session of a tab, as its file says now. A session that the agent has only begun to write is read
    /// again after the next turn.
    fn refresh_tab(&self, tab: u64, session: &str) -> Result<Event, engine::Error> {
        let session = self.find(session).or_log("look at the session of a tab").map(Box::new);
        Ok(Event::TabSession { tab, session })
    }

    /// A session by its id or its path.
    fn find(&self, session: &str) -> Result<Session, engine::Error> {
        Ok(self.tine.resolve_among(&self.tine.all_sessions(&Quiet)?, session)?.session)
    }

    /// The sessions whose tabs were open. Deleted ones get no tab.
    fn restore_tabs(&self) -> Result<Event, engine::Error> {
        let records = TabRecord::all(&self.tine)?;
        if records.is_empty() {
            return Ok(Event::Ignored);
        }
        let sessions = self.tine.all_sessions(&Quiet)?;
        let of = |record: &TabRecord| {
            sessions.iter().find(|session| session.view.agent == record.agent && session.view.id == record.id).cloned()
        };
        Ok(Event::Tabs(records.iter().filter_map(of).collect()))
    }

    /// Files of a directory whose path contains some letters, as git lists them, or those of the directory itself.
    fn files(&self, directory: &Path, part: &str) -> Vec<(String, String)> {
        let listed = self.tine.context().find_program("git").and_then(|git| {
            let words = ["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
            let output = Command::new(git).args(words).current_dir(directory).stdin(Stdio::null()).output();
            output.or_log("list files").filter(|output| output.status.success())
        });
        let names: Vec<String> = match listed {
            Some(output) => {
                let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
            }
            None => {
                let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
        };
        let part = part.to_lowercase();
        let mut fitting: Vec<String> = names
            .into_iter()
            .filter(|name| name.to_lowercase().contains(&part) && !transcript::text::is_deceptive(name))
            .collect();
        // Names that begin with the letters come first.
        let file = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
        fitting.sort_by_key(|name| (!file(name).starts_with(&part), name.len(), name.clone()));
        fitting.into_iter().take(FILES).map(|name| (format!("@{name}"), String::new())).collect()
    }

    /// Runs a tine command, as in a shell without a terminal.
    fn run(&self, words: Vec<String>) -> Event {
        let context = self.tine.context();
        let mut command = Command::new(&context.program);
        command.args(&words).current_dir(&context.cwd).stdin(Stdio::null());
        match command.output() {
            Ok(output) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (out, err) = (text(&output.stdout), text(&output.stderr));
                let output_text = if out.trim().is_empty() { err } else { out };
                Event::Ran { words, success: output.status.success(), output: output_text }
            }
            Err(error) => Event::Failed(Trouble { message: format!("cannot run tine: {error}"), hint: None }),
        }
    }

    /// Keywords first, because they are fast; then meaning as well.
    fn search(&self, effect: Effect, events: &Sender<Event>) -> Result<Event, engine::Error> {
        let Effect::Search { ticket, query } = effect else { return Ok(Event::Ignored) };
        let now = Now { time: self.tine.context().clock.now(), zone: self.zone.clone() };
        let limits = Limits::default();
        let mut query = Query::parse(&query, &limits, &now)?;
        let mut ask = |engine| {
            query.engine = engine;
            let asking = Asking {
                query: &query,
                limits: &limits,
                limit: HITS,
                embedding: EMBEDDING,
                progress: &Quiet,
                indexing: &Quiet,
            };
            let answer = self.tine.search(asking)?;
            let hit = |found: &engine::Found| Hit {
                session: found.session.clone(),
                turn: found.turn,
                snippet: transcript::text::one_line(&found.snippet.text),
            };
            Ok::<_, engine::Error>(answer.results.iter().map(hit).collect())
        };
        let hits = ask(Engine::Words)?;
        let _ = events.send(Event::Found { ticket, hits, complete: false });
        Ok(Event::Found { ticket, hits: ask(Engine::Auto)?, complete: true })
    }
}

/// Reads a picture for a prompt.
fn read_picture(path: &Path) -> Result<engine::chat::Image, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let size = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
    if size > LARGEST_PICTURE {
        return Err(failed(&"the picture is larger than 5 MB"));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
    let media_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, ..] => "image/jpeg",
        [b'G', b'I', b'F', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(failed(&"it is not a picture")),
    };
    Ok(engine::chat::Image { media_type: media_type.to_owned(), base64: base64(&bytes) })
}

/// Bytes in base64, as agents and terminals expect.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let filled = digit <= group.len();
            let place = (bits >> (18 - 6 * digit)) & 63;
            text.push(if filled { char::from(DIGITS[place as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_has_its_usual_form() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
