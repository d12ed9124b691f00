//! One thread's engine: carries out effects and says what they lead to.

use std::sync::Arc;
#[cfg(test)]
use std::sync::mpsc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use engine::{
    EMBEDDING, Engine, Limits, Method, Now, Plan, Project, Query, Quiet, SearchRequest, SeedText, Session, TabRecord,
    Target, Tine, TurnSummary,
};
use jiff::tz::TimeZone;
use transcript::{Agent, BlockKind, SessionId, State};

use super::clipboard;
use super::command;
use super::picture::read_picture;
use super::progress::Progress;
use super::watch::ListWatch;
use crate::workbench::event::{Effect, ErrorText, Event, Hit};
use crate::workbench::highlight;

/// How many hits a search shows.
const HITS: usize = 50;

/// How long the last turn of a session may take to be written.
const SETTLES_WITHIN: Duration = Duration::from_millis(1500);

/// How often to look whether it is.
const LOOK: Duration = Duration::from_millis(50);

/// One thread's engine.
pub(crate) struct EngineThread {
    pub(super) tine: Tine,
    pub(super) color: bool,
    pub(super) zone: TimeZone,
    /// Notices that the sessions have changed.
    watch: Option<Arc<ListWatch>>,
}

pub(super) fn error_text(error: &engine::Error) -> ErrorText {
    ErrorText { message: error.to_string(), hint: error.hint() }
}

impl EngineThread {
    pub(crate) fn new(tine: Tine, color: bool, zone: TimeZone) -> Self {
        EngineThread { tine, color, zone, watch: None }
    }

    /// The same, with a watch over the listed sessions.
    pub(super) fn watching(self, watch: Arc<ListWatch>) -> Self {
        EngineThread { watch: Some(watch), ..self }
    }

    /// Carries out an effect and returns what it leads to.
    #[cfg(test)]
    pub(crate) fn carry_out(&self, effect: Effect) -> Event {
        let (events, _) = mpsc::channel();
        let run = if matches!(effect, Effect::Search { .. }) { EngineThread::search } else { EngineThread::at_desk };
        run(self, effect, &events).unwrap_or_else(|error| Event::Failed(error_text(&error)))
    }

    pub(super) fn at_desk(&self, effect: Effect, events: &Sender<Event>) -> Result<Event, engine::Error> {
        match effect {
            Effect::Configure => Ok(Event::Configured(Box::new(self.tine.config()?.workbench.clone()))),
            Effect::FindAgents => {
                let is_there = |agent: &Agent| self.tine.check_start(*agent, None).is_ok();
                Ok(Event::Agents(Agent::ALL.into_iter().filter(is_there).collect()))
            }
            Effect::LoadSessions => {
                let begun = Instant::now();
                let project = Project::of(&self.tine.context().cwd);
                let sessions = self.tine.all_sessions(&Quiet)?;
                if let Some(watch) = &self.watch {
                    watch.follow(&sessions, begun.elapsed());
                }
                Ok(Event::Sessions(sessions, project))
            }
            Effect::ReadPage { ticket, session, wish, looks } => {
                let page = self.read_page(&session, wish, &looks)?.map(Box::new);
                highlight::load_if_wanted(events);
                Ok(Event::Page { ticket, wish, page })
            }
            Effect::LayOut { ticket, pages, looks } => {
                let layouts = self.lay_out_again(&pages, &looks);
                highlight::load_if_wanted(events);
                Ok(Event::LaidOut { ticket, layouts })
            }
            Effect::TakeTurn { session, turn } => Ok(Event::Taken(self.turn_as_markdown(&session, turn)?)),
            Effect::CompleteCommand(words) => {
                let choices = self.complete_command(&words);
                Ok(Event::CommandCompletions { words, choices })
            }
            Effect::Plan { ticket, mut request } => {
                self.settle(&mut request.source);
                let plan = self.tine.plan_fork(&request).map(Box::new).map_err(|error| error_text(&error));
                Ok(Event::Planned { ticket, plan, source: Box::new(request.source) })
            }
            Effect::ReadTurns(session) => {
                let turns = TurnSummary::all(&self.tine, &session)?;
                Ok(Event::Turns { session: session.key(), turns })
            }
            Effect::Fork { plan, edit } => {
                let forked = self.fork(&plan, edit, events);
                Ok(forked.unwrap_or_else(|error| Event::ForkFailed(error_text(&error))))
            }
            Effect::Copy(text) => Ok(clipboard::copy(self.tine.context(), text)),
            Effect::ReadTab { ticket, session, width, full, hide_acknowledgement } => {
                let (document, prompts) = self.read_tab(&session, width, full, hide_acknowledgement)?;
                Ok(Event::TabHistory { ticket, document, prompts })
            }
            Effect::RefreshTab { tab, id, known } => Ok(self.refresh_tab(tab, &id, known.as_deref())),
            Effect::RestoreTabs => self.restore_tabs(),
            Effect::RememberTabs(tabs) => {
                TabRecord::remember(&self.tine, &tabs)?;
                Ok(Event::Ignored)
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
                Err(message) => Event::Failed(ErrorText { message, hint: None }),
            }),
            Effect::Run(words) => Ok(command::run(self.tine.context(), words)),
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
            | Effect::TerminalClipboard(_)
            | Effect::Samples
            | Effect::Watch(_)
            | Effect::SetMouse(_)
            | Effect::Quit => Ok(Event::Ignored),
        }
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
            thread::sleep(LOOK);
        }
    }

    /// Creates a fork, and reads the prompt for the user to change from its source.
    fn fork(
        &self,
        plan: &Plan,
        edit: Option<(u32, Box<Session>)>,
        events: &Sender<Event>,
    ) -> Result<Event, engine::Error> {
        let prompt = edit.map(|(turn, source)| self.prompt_of(&source, turn)).transpose()?.flatten();
        let progress = Progress::new(events, plan.method == Method::Seed);
        let forked = Box::new(self.tine.apply_fork(plan, &progress)?);
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

    /// The session of a tab, as its file says now. One that was read before costs a look at its own file only.
    /// A session that the agent has only begun to write is read again after the next turn.
    fn refresh_tab(&self, tab: u64, id: &SessionId, known: Option<&Session>) -> Event {
        let now = known.and_then(|known| self.tine.refresh(known).or_log("look at a known session"));
        let session = now.or_else(|| self.find(id.as_str()).or_log("look at the session of a tab"));
        Event::TabSession { tab, session: session.map(Box::new) }
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

    /// Keywords first, because they are fast; then meaning as well.
    pub(super) fn search(&self, effect: Effect, events: &Sender<Event>) -> Result<Event, engine::Error> {
        let Effect::Search { ticket, query } = effect else { return Ok(Event::Ignored) };
        let now = Now { time: self.tine.context().clock.now(), zone: self.zone.clone() };
        let limits = Limits::default();
        let mut query = Query::parse(&query, &limits, &now)?;
        let mut ask = |engine| {
            query.engine = engine;
            let asking = SearchRequest {
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
                snippet: found.snippet.clone(),
            };
            Ok::<_, engine::Error>((answer.results.iter().map(hit).collect(), answer.notices()))
        };
        let (hits, notices) = ask(Engine::Words)?;
        let _ = events.send(Event::Found { ticket, hits, notices, complete: false });
        let (hits, notices) = ask(Engine::Auto)?;
        Ok(Event::Found { ticket, hits, notices, complete: true })
    }
}
