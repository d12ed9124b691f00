//! What happened in the agents: events from their hooks, and those detected by listing the sessions.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use transcript::{Agent, State};

use crate::ctx::Ctx;
use crate::registry::events::SessionEvent;
use crate::run::Result;
use crate::sessions::catalog::Quiet;

/// How long a hook may take to report an event, in milliseconds.
const REPORTED_WITHIN: i64 = 3_000;
/// The shortest time between two looks for what no hook reports.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A position in the list of events. Each read continues where the last one ended.
#[derive(Debug, Clone)]
pub struct EventCursor {
    position: Position,
    /// When to look next for what no hook reports. The more a look costs, the rarer it is.
    look_at: Instant,
}

#[derive(Debug, Clone, Copy)]
enum Position {
    /// Before the newest events, this many of them.
    Newest(u32),
    /// After the event with this number.
    After(i64),
}

impl EventCursor {
    /// Starts with the newest `count` events.
    pub fn newest(count: u32) -> Self {
        EventCursor { position: Position::Newest(count), look_at: Instant::now() }
    }

    /// Starts after the event with this number.
    pub fn after(number: i64) -> Self {
        EventCursor { position: Position::After(number), look_at: Instant::now() }
    }

    /// The number of the last event that was read; 0 without events.
    pub fn number(&self) -> i64 {
        match self.position {
            Position::Newest(_) => 0,
            Position::After(number) => number,
        }
    }
}

/// Reads the events after a position, oldest first.
pub(crate) fn events(ctx: &Ctx, cursor: &mut EventCursor) -> Result<Vec<SessionEvent>> {
    let begun = Instant::now();
    if cursor.look_at <= begun {
        record_unreported(ctx)?;
        cursor.look_at = Instant::now() + LOOK_EVERY.max(begun.elapsed() * 20);
    }
    let (events, before) = match cursor.position {
        Position::Newest(count) => {
            let events = ctx.registry().last_events(count)?;
            let newest = if events.is_empty() { ctx.registry().newest_event()? } else { 0 };
            (events, newest)
        }
        Position::After(number) => (ctx.registry().events_after(number)?, number),
    };
    cursor.position = Position::After(events.last().map_or(before, |event| event.number));
    Ok(events)
}

/// Records what no hook reports: a killed agent has stopped, and an interrupted one is idle.
fn record_unreported(ctx: &Ctx) -> Result<()> {
    let now = ctx.context().clock.now();
    let is_over = |at: Timestamp| now.as_millisecond() - at.as_millisecond() > REPORTED_WITHIN;
    let mut open = ctx.registry().still_open()?;
    open.retain(|event| is_over(event.at));
    if open.is_empty() {
        return Ok(());
    }
    let sessions = crate::sessions::survey::all_sessions(ctx, &Quiet)?;
    let live: HashMap<Agent, agents::Live> =
        ctx.adapters().iter().map(|adapter| (adapter.agent(), adapter.live())).collect();
    for event in open {
        let found = sessions.iter().find(|one| one.view.agent == event.agent && one.view.id == event.id);
        let Some(live) = live.get(&event.agent) else { continue };
        let state = match found {
            Some(session) if is_over(session.updated()) => session.view.state,
            None if !live.sessions.contains_key(&event.id) => State::Stopped,
            _ => continue,
        };
        let kind = match (state, event.event.as_str()) {
            (State::Stopped, _) if live.weak.is_none() => "stopped",
            (State::Idle, "busy" | "waiting") => "idle",
            _ => continue,
        };
        ctx.registry().note_after(&event, kind, now)?;
    }
    Ok(())
}
