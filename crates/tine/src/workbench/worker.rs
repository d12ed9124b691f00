//! Threads that carry out effects and report back. One reads and changes, one searches; each has its own engine, so
//! that a slow search doesn't block the list.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use engine::{Asking, Context, EMBEDDING, Engine, Limits, Now, Project, Query, Quiet, Session, Tine};
use jiff::tz::TimeZone;
use transcript::render::{Part, Renderer, Style, Terminal, Tools};

use diagnostics::OrLog;

use super::document::Document;
use super::event::{Effect, Event, Hit, Trouble};
use crate::environment::Surface;

/// How many hits a search shows.
const HITS: usize = 50;

/// The threads that take effects.
pub(crate) struct Workers {
    desk: Sender<Effect>,
    search: Sender<Effect>,
}

/// Starts the threads.
pub(crate) fn start(context: &Context, surface: &Surface, events: &Sender<Event>) -> Workers {
    let begin = |run: fn(&Worker, Effect, &Sender<Event>) -> Result<Event, engine::Error>| {
        let (sender, effects) = mpsc::channel();
        let (context, events, zone) = (context.clone(), events.clone(), surface.zone.clone());
        let color = surface.color;
        thread::spawn(move || work(context, color, zone, &effects, &events, run));
        sender
    };
    Workers { desk: begin(Worker::at_desk), search: begin(Worker::search) }
}

impl Workers {
    pub(crate) fn send(&self, effects: Vec<Effect>) {
        for effect in effects {
            let to = if matches!(effect, Effect::Search { .. }) { &self.search } else { &self.desk };
            // A thread that has ended has reported why.
            let _ = to.send(effect);
        }
    }
}

/// One thread's engine.
pub(crate) struct Worker {
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
    run: fn(&Worker, Effect, &Sender<Event>) -> Result<Event, engine::Error>,
) {
    let tine = match Tine::open(context) {
        Ok(tine) => tine,
        Err(error) => return drop(events.send(Event::Failed(trouble(&error)))),
    };
    let worker = Worker::new(tine, color, zone);
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

impl Worker {
    pub(crate) fn new(tine: Tine, color: bool, zone: TimeZone) -> Self {
        Worker { tine, color, zone }
    }

    /// Carries out an effect and returns what it leads to.
    #[cfg(test)]
    pub(crate) fn carry_out(&self, effect: Effect) -> Event {
        let (events, _) = mpsc::channel();
        let run = if matches!(effect, Effect::Search { .. }) { Worker::search } else { Worker::at_desk };
        run(self, effect, &events).unwrap_or_else(|error| Event::Failed(trouble(&error)))
    }

    fn at_desk(&self, effect: Effect, _events: &Sender<Event>) -> Result<Event, engine::Error> {
        match effect {
            Effect::LoadSessions => {
                let project = Project::of(&self.tine.context().cwd);
                Ok(Event::Sessions(self.tine.all_sessions(&Quiet)?, project))
            }
            Effect::Read { ticket, session, width, full } => {
                Ok(Event::Transcript { ticket, document: self.read(&session, width, full)? })
            }
            Effect::Plan { ticket, request } => {
                let plan = self.tine.plan_fork(&request).map(Box::new).map_err(|error| trouble(&error));
                Ok(Event::Planned { ticket, plan })
            }
            Effect::Fork(plan) => Ok(Event::Forked(Box::new(self.tine.apply_fork(&plan, &Quiet)?))),
            Effect::Rename(session, name) => {
                let old = session.view.label().to_owned();
                self.tine.rename(&session, &name)?;
                Ok(Event::Done(format!("renamed {old} to {name}; u undoes it")))
            }
            Effect::Undo => {
                let undone = self.tine.undo(None, false)?;
                Ok(Event::Done(format!("undid: {}", undone.what)))
            }
            Effect::Search { .. } | Effect::Quit => Ok(Event::Ignored),
        }
    }

    fn read(&self, session: &Session, width: u16, full: bool) -> Result<Document, engine::Error> {
        let mut blocks = self.tine.read(session, None)?;
        let tools = if full { Tools::Full } else { Tools::Brief };
        let style = Style { color: self.color, width: width.into(), zone: self.zone.clone() };
        let mut document = Document::default();
        let text = Shared::default();
        let mut renderer = Terminal::new(text.clone(), tools, style);
        renderer.begin(&session.view, Part::Whole).or_log("lay out a transcript");
        text.take();
        while let Some(block) = blocks.next_block() {
            renderer.block(&block).or_log("lay out a block");
            document.add(block.turn, &text.take());
        }
        Ok(document)
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

/// Text that a renderer writes and the reader takes.
#[derive(Clone, Default)]
struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Shared {
    fn take(&self) -> String {
        String::from_utf8_lossy(&self.0.take()).into_owned()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
