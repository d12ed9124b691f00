//! Threads that carry out effects and report back. One changes things, one forks, one reads transcripts, one searches,
//! one holds the chats; each has its own engine, so that a slow search blocks neither the list nor a chat.

mod chats;
mod clipboard;
mod command;
mod completion;
mod engine_thread;
mod picture;
mod progress;
mod reading;
mod watch;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use engine::{Context, Tine};
use jiff::tz::TimeZone;

use self::chats::hold_chats;
pub(crate) use self::engine_thread::EngineThread;
use self::engine_thread::error_text;
pub(crate) use self::picture::base64;
use self::watch::{ListWatch, keep_watch};
use super::event::{Effect, ErrorText, Event};
use super::reader::PageRequest;
use crate::environment::Streams;

/// The threads that take effects.
pub(crate) struct Workers {
    desk: Sender<Effect>,
    search: Sender<Effect>,
    reader: Sender<Effect>,
    forks: Sender<Effect>,
    watch: Sender<Effect>,
    chats: Option<Sender<Effect>>,
    closing: Option<JoinHandle<()>>,
    context: Context,
    events: Sender<Event>,
}

/// Starts the threads.
pub(crate) fn start(context: &Context, surface: &Streams, events: &Sender<Event>) -> Workers {
    let list = Arc::new(ListWatch::new(context));
    let watched = Arc::clone(&list);
    let begin = |run: fn(&EngineThread, Effect, &Sender<Event>) -> Result<Event, engine::Error>| {
        let (sender, effects) = mpsc::channel();
        let (context, events, zone) = (context.clone(), events.clone(), surface.zone.clone());
        let (color, list) = (surface.color, Arc::clone(&list));
        thread::spawn(move || work(context, (color, zone), list, &effects, &events, run));
        sender
    };
    let (chats, effects) = mpsc::channel();
    let (own, reports) = (context.clone(), events.clone());
    let closing = thread::spawn(move || hold_chats(own, &effects, &reports));
    let (watch, effects) = mpsc::channel();
    let reports = events.clone();
    thread::spawn(move || keep_watch(&effects, &watched, &reports));
    let (desk, search) = (begin(EngineThread::at_desk), begin(EngineThread::search));
    let (reader, forks) = (begin(EngineThread::at_desk), begin(EngineThread::at_desk));
    let (context, events) = (context.clone(), events.clone());
    Workers { desk, search, reader, forks, watch, chats: Some(chats), closing: Some(closing), context, events }
}

impl Workers {
    pub(crate) fn send(&self, effects: Vec<Effect>) {
        for effect in effects {
            let effect = match effect {
                // A command may wait for an agent, and nothing else should wait for it.
                Effect::Run(words) => {
                    let (context, events) = (self.context.clone(), self.events.clone());
                    thread::spawn(move || drop(events.send(command::run(&context, words))));
                    continue;
                }
                effect => effect,
            };
            let to = match effect {
                Effect::Search { .. } => Some(&self.search),
                Effect::Plan { .. } | Effect::Fork { .. } | Effect::ReadTurns(_) => Some(&self.forks),
                Effect::Watch(_) => Some(&self.watch),
                Effect::ReadPage { .. } | Effect::LayOut { .. } | Effect::ReadTab { .. } => Some(&self.reader),
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

fn work(
    context: Context,
    (color, zone): (bool, TimeZone),
    list: Arc<ListWatch>,
    effects: &Receiver<Effect>,
    events: &Sender<Event>,
    run: fn(&EngineThread, Effect, &Sender<Event>) -> Result<Event, engine::Error>,
) {
    // Most threads have nothing to do at first, and opening the registry takes a moment.
    let Ok(mut first) = effects.recv() else { return };
    let tine = match Tine::open(context) {
        Ok(tine) => tine,
        Err(error) => return drop(events.send(Event::Failed(error_text(&error)))),
    };
    let worker = EngineThread::new(tine, color, zone).watching(list);
    loop {
        let waiting: Vec<Effect> = std::iter::once(first).chain(effects.try_iter()).collect();
        for effect in without_outdated(waiting) {
            let event = run(&worker, effect, events).unwrap_or_else(|error| Event::Failed(error_text(&error)));
            let warnings = worker.tine.take_warnings().into_iter();
            let warnings = warnings.map(|message| Event::Failed(ErrorText { message, hint: None }));
            for event in std::iter::once(event).chain(warnings) {
                if events.send(event).is_err() {
                    return;
                }
            }
        }
        let Ok(next) = effects.recv() else { return };
        first = next;
    }
}

/// Moving through a list requests more transcripts than can be read: only the last request of each kind counts.
fn without_outdated(effects: Vec<Effect>) -> Vec<Effect> {
    let kind = |effect: &Effect| match effect {
        Effect::LoadSessions => Some(0),
        // Pages next to loaded ones are all needed.
        Effect::ReadPage { wish: PageRequest::Before(_) | PageRequest::After(_), .. } => None,
        Effect::ReadPage { .. } => Some(1),
        Effect::LayOut { .. } => Some(4),
        Effect::Search { .. } => Some(2),
        Effect::Plan { .. } => Some(3),
        _ => None,
    };
    let kinds: Vec<Option<u8>> = effects.iter().map(kind).collect();
    let is_last = |place: usize| kinds[place].is_none() || !kinds[place + 1..].contains(&kinds[place]);
    effects.into_iter().enumerate().filter(|(place, _)| is_last(*place)).map(|(_, effect)| effect).collect()
}
