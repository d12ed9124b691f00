//! What a session did, in the order of time: a subagent's acts are among those of the session that waited for it.

use agents::{Blocks, FileAct};
use jiff::Timestamp;

/// What happened next.
pub(super) enum Event {
    /// An act, in the turn that ran at its time.
    Act(FileAct),
    /// A turn has ended.
    TurnEnds(TurnEnd),
}

/// The end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnEnd {
    pub turn: u32,
    /// When the agent was done.
    pub at: Option<Timestamp>,
}

/// Reads a session to its end and shows `see` all events in order. No more than the acts of a turn are kept at a time, and
/// those of subagents that run on.
pub(super) fn walk(blocks: &mut dyn Blocks, mut see: impl FnMut(Event)) {
    let mut held: Vec<FileAct> = Vec::new();
    let (mut turn, mut last) = (0, None);
    while let Some(block) = blocks.next_block() {
        held.extend(blocks.take_acts());
        if block.depth > 0 {
            continue;
        }
        if block.turn > turn {
            let ends = flush(&mut held, turn, Some(block.turn), block.at, &mut see);
            see(Event::TurnEnds(TurnEnd { turn, at: last.max(ends) }));
            (turn, last) = (block.turn, None);
        }
        last = last.max(block.at);
    }
    held.extend(blocks.take_acts());
    let ends = flush(&mut held, turn, None, None, &mut see);
    see(Event::TurnEnds(TurnEnd { turn, at: last.max(ends) }));
}

/// Shows the acts that happened before turn `next` began, and returns the time of the last one.
fn flush(
    held: &mut Vec<FileAct>,
    turn: u32,
    next: Option<u32>,
    began: Option<Timestamp>,
    see: &mut impl FnMut(Event),
) -> Option<Timestamp> {
    let is_due = |act: &FileAct| match (next, act.depth) {
        (None, _) => true,
        (Some(next), 0) => act.turn < next,
        (Some(_), _) => act.at.zip(began).is_none_or(|(at, began)| at < began),
    };
    // An act without a time belongs where it was recorded.
    let mut time = None;
    let (mut due, rest): (Vec<_>, Vec<_>) = std::mem::take(held).into_iter().partition(is_due);
    for act in &mut due {
        time = act.at.or(time);
        act.at = time;
    }
    due.sort_by_key(|act| act.at);
    *held = rest;
    for mut act in due {
        if act.depth > 0 {
            act.turn = turn;
        }
        see(Event::Act(act));
    }
    time
}
