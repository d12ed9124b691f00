//! PageStyle for changes: of a transcript that is followed, and of the list of sessions.
//!
//! A look costs a `stat` for each folder with sessions. The intervals grow while nothing changes, and with the cost of a
//! look and of reading the list, so that an idle workbench takes practically no time of the processor.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::{Context, Session, SessionWatch, Stamp};

use crate::workbench::event::{Effect, Event};

/// How often a transcript that is followed is checked.
const LOOK: Duration = Duration::from_millis(500);
/// How often the sessions are checked at most.
const OFTEN: Duration = Duration::from_millis(1000);
/// How often they are checked at least.
const SELDOM: Duration = Duration::from_secs(5);
/// How much longer the interval gets while nothing changes.
const GROWTH: f64 = 1.5;
/// The largest part of the time that may be spent on reading the list: one in this many.
const SHARE: u32 = 20;
/// How often ages on the screen are brought up to date.
const MINUTE: Duration = Duration::from_secs(60);

/// The watch over the list of sessions, shared by the thread that reads it and the one that looks for changes.
pub(super) struct ListWatch(Mutex<Listed>);

struct Listed {
    watch: SessionWatch,
    /// What reading the list cost; nothing before it was read.
    cost: Option<Duration>,
}

impl ListWatch {
    pub(super) fn new(context: &Context) -> Self {
        ListWatch(Mutex::new(Listed { watch: SessionWatch::new(context), cost: None }))
    }

    /// Watches what was listed, which took this long to read.
    pub(super) fn follow(&self, sessions: &[Session], cost: Duration) {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listed.watch.follow(sessions);
        listed.cost = Some(cost);
    }

    /// Whether the sessions have changed since the last look, and how long to wait for the next one at least.
    fn look(&self) -> (bool, Duration) {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cost) = listed.cost else { return (false, OFTEN) };
        let begun = Instant::now();
        let has_changed = listed.watch.look();
        let wait = begun.elapsed() * SHARE + if has_changed { cost * SHARE } else { Duration::ZERO };
        (has_changed, OFTEN.max(wait))
    }
}

/// Reports changes of the followed transcript and of the list of sessions.
pub(super) fn keep_watch(effects: &Receiver<Effect>, list: &ListWatch, events: &Sender<Event>) {
    let mut watched: Option<(PathBuf, Option<Stamp>)> = None;
    let mut interval = OFTEN;
    let (mut look_at, mut minute_at) = (Instant::now() + OFTEN, Instant::now() + MINUTE);
    loop {
        let now = Instant::now();
        let next = look_at.min(minute_at).saturating_duration_since(now);
        let wait = if watched.is_some() { next.min(LOOK) } else { next };
        match effects.recv_timeout(wait) {
            Ok(Effect::Watch(path)) => watched = path.map(|path| (path.clone(), stamp(&path))),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let mut found = Vec::new();
                if let Some((path, seen)) = &mut watched {
                    let now = stamp(path);
                    if now != *seen {
                        *seen = now;
                        found.push(Event::Changed(path.clone()));
                    }
                }
                if look_at <= Instant::now() {
                    let (has_changed, least) = list.look();
                    interval = if has_changed { OFTEN } else { interval.mul_f64(GROWTH).min(SELDOM) };
                    look_at = Instant::now() + interval.max(least);
                    found.extend(has_changed.then_some(Event::SessionsChanged));
                }
                if minute_at <= Instant::now() {
                    minute_at = Instant::now() + MINUTE;
                    found.push(Event::Minute);
                }
                for event in found {
                    if events.send(event).is_err() {
                        return;
                    }
                }
            }
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    engine::session_stamp(path).ok()
}
