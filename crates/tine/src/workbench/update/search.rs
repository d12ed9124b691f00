//! Search as you type.

use engine::Request;

use super::{chat, fork, sessions, transcript};
use crate::keymap::Action;
use crate::keymap::Key;
use crate::workbench::event::{Effect, Hit};
use crate::workbench::state::{Screen, SearchState, State};

pub(super) fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    // Letters belong to the query, unless the user has turned to the hits.
    if (search.is_in_hits || !matches!(key, Key::Char(_)))
        && let Some(action) = state.keymap.action(state.context(), key)
    {
        return super::perform(state, action);
    }
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    if search.is_in_hits || !super::edit(&mut search.query, key) {
        return Vec::new();
    }
    ask(state)
}

fn ask(state: &mut State) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    let query = search.query.trim().to_owned();
    (search.selected, search.ticket, search.is_running) = (0, ticket, !query.is_empty());
    if query.is_empty() {
        search.hits.clear();
        search.notices.clear();
        return sessions::preview(state);
    }
    vec![Effect::Search { ticket, query }]
}

/// A search was answered, first by keywords and then also by meaning.
pub(super) fn found(
    state: &mut State,
    ticket: u64,
    hits: Vec<Hit>,
    notices: Vec<String>,
    complete: bool,
) -> Vec<Effect> {
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    if search.ticket != ticket {
        return Vec::new();
    }
    // Someone who has moved on from the first hit stays with theirs.
    let kept = search.hits.get(search.selected).filter(|_| search.selected > 0).map(|hit| hit.session.key());
    let place = kept.and_then(|kept| hits.iter().position(|hit| hit.session.key() == kept));
    search.selected = place.unwrap_or(search.selected).min(hits.len().saturating_sub(1));
    (search.hits, search.notices, search.is_running) = (hits, notices, !complete);
    sessions::preview(state)
}

/// Moves the selection.
pub(super) fn select(state: &mut State, steps: isize) -> Vec<Effect> {
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    search.selected = search.selected.saturating_add_signed(steps).min(search.hits.len().saturating_sub(1));
    sessions::preview(state)
}

/// Selects the hit at a row of the list, and opens it with the second click.
pub(super) fn click(state: &mut State, row: usize) -> Vec<Effect> {
    let (list, _) = state.split();
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    let place = search.top(usize::from(list.height)) + row / SearchState::ROWS;
    if place >= search.hits.len() {
        return Vec::new();
    }
    search.is_in_hits = true;
    if std::mem::replace(&mut search.selected, place) == place {
        return transcript::open(state);
    }
    sessions::preview(state)
}

pub(super) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    match action {
        Action::EditQuery => search.is_in_hits = false,
        Action::InHits => search.is_in_hits = !search.is_in_hits && !search.hits.is_empty(),
        Action::LeaveSearch => return chat::show_sessions(state),
        Action::NextHit => return select(state, 1),
        Action::PreviousHit => return select(state, -1),
        Action::OpenHit => return transcript::open(state),
        Action::ForkHit | Action::ChatHit => {
            let Some(hit) = search.hits.get(search.selected).cloned() else { return Vec::new() };
            return match action {
                Action::ChatHit => chat::open(state, hit.session),
                _ => fork::open(state, Request { turns: Some(hit.turn), ..Request::of(hit.session) }, None),
            };
        }
        _ => {}
    }
    Vec::new()
}
