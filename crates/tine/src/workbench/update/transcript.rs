//! One transcript.

use engine::Request;

use super::{chat, fork};
use crate::keymap::{Action, Key};
use crate::workbench::event::Effect;
use crate::workbench::state::{Reader, Screen, State};

/// How many more turns of a large session are laid out at the top.
const TURNS_AT_ONCE: u32 = 100;

pub(super) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let height = state.body_height();
    let page = height as isize;
    let Screen::Transcript(reader) = &mut state.screen else { return Vec::new() };
    match action {
        Action::Back if reader.find.is_some() => (reader.find, reader.found) = (None, None),
        Action::Back => {
            state.screen = Screen::Sessions { filtering: false };
            return vec![Effect::Watch(None), Effect::LoadSessions];
        }
        Action::Focus => {
            reader.focus = !reader.focus;
            reader.chosen = reader.turn();
            return reread(state);
        }
        Action::Find => (reader.find, reader.found) = (Some((String::new(), true)), None),
        Action::FindNext | Action::FindPrevious
            if reader.find.is_some() && !reader.find(action == Action::FindNext, height) =>
        {
            return super::refuse(state, "not found in this transcript", None);
        }
        Action::Copy => {
            let session = Box::new(reader.session.clone());
            return reader.turn().map(|turn| vec![Effect::TakeTurn { session, turn }]).unwrap_or_default();
        }
        Action::ScrollDown => reader.scroll(1, height),
        Action::ScrollUp | Action::ScrollPageUp | Action::Begin | Action::PreviousTurn
            if reader.top == 0 && reader.from > 1 =>
        {
            // The turns before are laid out, too, and the one on the screen stays there.
            reader.chosen = reader.turn();
            reader.from = match action {
                Action::Begin => 0,
                _ => reader.from.saturating_sub(TURNS_AT_ONCE),
            };
            return reread(state);
        }
        Action::ScrollUp => reader.scroll(-1, height),
        Action::ScrollPageDown => reader.scroll(page, height),
        Action::ScrollPageUp => reader.scroll(-page, height),
        Action::Begin => reader.scroll(isize::MIN, height),
        Action::End => reader.scroll(isize::MAX, height),
        Action::NextTurn => reader.jump(true, height),
        Action::PreviousTurn => reader.jump(false, height),
        Action::Tools => {
            reader.full = !reader.full;
            reader.chosen = reader.turn();
            return reread(state);
        }
        Action::ForkTurn => {
            let request = Request { turns: reader.turn(), ..Request::of(reader.session.clone()) };
            return fork::open(state, request, None);
        }
        Action::EditAndFork => {
            let (session, turn) = (reader.session.clone(), reader.turn());
            return match turn.filter(|turn| *turn > 1) {
                Some(turn) => {
                    let request = Request { turns: Some(turn - 1), ..Request::of(session) };
                    fork::open(state, request, Some(turn))
                }
                None => super::refuse(state, "the first prompt begins the session", Some("alt+t starts a new one")),
            };
        }
        Action::ChatHere => {
            let session = reader.session.clone();
            return chat::open(state, session);
        }
        _ => {}
    }
    Vec::new()
}

/// Opens the selected session, or the hit of a search at its turn.
pub(super) fn open(state: &mut State) -> Vec<Effect> {
    let (session, chosen) = match &state.screen {
        Screen::Search(search) => match search.hits.get(search.selected) {
            Some(hit) => (hit.session.clone(), Some(hit.turn)),
            None => return Vec::new(),
        },
        _ => match state.selection() {
            Some(session) => (session.clone(), None),
            None => return Vec::new(),
        },
    };
    // A session that runs elsewhere is followed.
    let watched = (session.view.state != transcript::State::Stopped).then(|| session.view.path.clone());
    state.screen = Screen::Transcript(Box::new(Reader::new(session, chosen, 0)));
    let mut effects = reread(state);
    effects.push(Effect::Watch(watched));
    effects
}

/// Edits the search text in a transcript.
pub(super) fn finding(state: &mut State, key: Key) -> Vec<Effect> {
    let height = state.body_height();
    let Some(reader) = reader(&mut state.screen) else { return Vec::new() };
    let Some((text, is_typed)) = &mut reader.find else { return Vec::new() };
    match key {
        Key::Enter => {
            *is_typed = false;
            if !reader.find(true, height) {
                return super::refuse(state, "not found in this transcript", None);
            }
        }
        Key::Escape => (reader.find, reader.found) = (None, None),
        _ => drop(super::edit(text, key)),
    }
    Vec::new()
}

/// A watched transcript has changed: reads it again, and stays at the end if it was there.
pub(super) fn changed(state: &mut State, path: &std::path::Path) -> Vec<Effect> {
    let height = state.body_height();
    let Some(reader) = reader(&mut state.screen).filter(|reader| reader.session.view.path == path) else {
        return Vec::new();
    };
    let length = reader.document.as_ref().map_or(0, |document| document.lines.len());
    let is_at_end = reader.top + height >= length;
    reader.chosen = if is_at_end { None } else { reader.turn() };
    reread(state)
}

/// Lays the open transcript out again.
pub(super) fn reread(state: &mut State) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let width = state.size.0.saturating_sub(2);
    let Some(reader) = reader(&mut state.screen) else { return Vec::new() };
    reader.ticket = ticket;
    let (full, focus) = (reader.full, reader.focus);
    // What is on the screen stays laid out. Without a document, the worker decides where to begin.
    let from = reader.document.is_some().then_some(reader.from);
    vec![Effect::Read { ticket, session: Box::new(reader.session.clone()), width, full, focus, from }]
}

pub(super) fn reader(screen: &mut Screen) -> Option<&mut Reader> {
    match screen {
        Screen::Transcript(reader) => Some(reader),
        _ => None,
    }
}
