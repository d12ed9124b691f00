//! Search as you type.

use engine::Request;

use super::{fork, transcript};
use crate::keymap::Action;
use crate::keymap::Key;
use crate::workbench::event::Effect;
use crate::workbench::state::{Screen, State};

pub(super) fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    // Letters belong to the query.
    if !matches!(key, Key::Char(_))
        && let Some(action) = state.keymap.action(state.context(), key)
    {
        return super::perform(state, action);
    }
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    if !super::edit(&mut search.query, key) {
        return Vec::new();
    }
    search.selected = 0;
    let query = search.query.trim().to_owned();
    search.is_running = !query.is_empty();
    if query.is_empty() {
        search.hits.clear();
    }
    let ticket = state.next_ticket();
    if let Screen::Search(search) = &mut state.screen {
        search.ticket = ticket;
    }
    if query.is_empty() { Vec::new() } else { vec![Effect::Search { ticket, query }] }
}

pub(super) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let Screen::Search(search) = &mut state.screen else { return Vec::new() };
    match action {
        Action::LeaveSearch => state.screen = Screen::Sessions { filtering: false },
        Action::NextHit => search.selected = (search.selected + 1).min(search.hits.len().saturating_sub(1)),
        Action::PreviousHit => search.selected = search.selected.saturating_sub(1),
        Action::OpenHit => return transcript::open(state),
        Action::ForkHit => {
            let hit = search.hits.get(search.selected).cloned();
            let request = hit.map(|hit| Request { turns: Some(hit.turn), ..Request::of(hit.session) });
            return request.map(|request| fork::open(state, request, None)).unwrap_or_default();
        }
        _ => {}
    }
    Vec::new()
}
