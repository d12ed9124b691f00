//! The list of sessions.

use engine::Request;
use transcript::Agent;

use super::{chat, fork, transcript as transcript_view};
use crate::keymap::Action;
use crate::keymap::Key;
use crate::workbench::event::Effect;
use crate::workbench::page::{Folds, PageStyle};
use crate::workbench::reader::PageRequest;
use crate::workbench::state::{Popup, Reader, Screen, SearchState, State};

pub(super) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let page = state.body_height() as isize;
    match action {
        Action::Leave if state.filter.is_empty() => return super::perform(state, Action::Quit),
        Action::Leave => {
            state.filter.clear();
            state.arrange();
        }
        Action::Down => state.select(1),
        Action::Up => state.select(-1),
        Action::PageDown => state.select(page),
        Action::PageUp => state.select(-page),
        Action::First => state.select(isize::MIN),
        Action::Last => state.select(isize::MAX),
        Action::Parent => state.select_parent(),
        Action::Child => state.select_child(),
        Action::Search => {
            state.screen = Screen::Search(SearchState::default());
            return Vec::new();
        }
        Action::Filter => state.screen = Screen::Sessions { filtering: true },
        Action::Waiting if state.select_waiting() => {}
        Action::Waiting => return super::refuse(state, "no session needs you", None),
        Action::Scope => {
            state.scope = state.scope.next(&state.project);
            state.arrange();
        }
        Action::Agent => {
            state.agent = next_agent(state.agent);
            state.arrange();
        }
        Action::Open => return transcript_view::open(state),
        Action::Chat => {
            let session = state.selection().cloned();
            return session.map(|session| chat::open(state, session)).unwrap_or_default();
        }
        Action::Fork => {
            let session = state.selection().cloned();
            return session.map(|session| fork::open(state, Request::of(session), None)).unwrap_or_default();
        }
        Action::Rename | Action::Adopt => {
            let session = state.selection().cloned();
            state.popup = session.map(|session| {
                let name = session.view.name.as_ref().map(ToString::to_string).unwrap_or_default();
                Popup::Rename { session: Box::new(session), name }
            });
        }
        Action::Delete => {
            state.popup = state.selection().map(|session| Popup::Confirm {
                question: format!("Delete {}? u brings it back.", session.view.label()),
                words: vec!["delete".to_owned(), session.view.id.to_string(), "--yes".to_owned()],
            });
        }
        Action::Clone => {
            let session = state.selection().cloned();
            return session
                .map(|session| {
                    let workspace = engine::Where::Copy(Default::default());
                    fork::open_with(state, Request { workspace, ..Request::of(session) }, None, true)
                })
                .unwrap_or_default();
        }
        Action::OpenPane => {
            let id = state.selection().map(|session| session.view.id.to_string());
            let words = |id: String| vec!["resume".to_owned(), id, "--in".to_owned(), "auto".to_owned()];
            return id.map(|id| vec![Effect::Run(words(id))]).unwrap_or_default();
        }
        Action::Samples => return vec![Effect::Samples],
        Action::Undo => return vec![Effect::Undo],
        Action::Log => return vec![Effect::Run(vec!["log".to_owned()])],
        Action::Sort => {
            state.sort = state.sort.next();
            state.arrange();
        }
        Action::Reload => return vec![Effect::LoadSessions],
        _ => {}
    }
    preview(state)
}

pub(super) fn filter(state: &mut State, key: Key) -> Vec<Effect> {
    match key {
        Key::Enter => state.screen = Screen::Sessions { filtering: false },
        Key::Escape => {
            state.filter.clear();
            state.screen = Screen::Sessions { filtering: false };
        }
        Key::Down => state.select(1),
        Key::Up => state.select(-1),
        _ if super::edit(&mut state.filter, key) => {}
        _ => return Vec::new(),
    }
    state.arrange();
    preview(state)
}

/// Reads what is selected for the preview, unless it is loaded: a session, or the turn of a hit.
pub(super) fn preview(state: &mut State) -> Vec<Effect> {
    let shown = match &state.screen {
        Screen::Search(search) => {
            search.hits.get(search.selected).map(|hit| (hit.session.clone(), Some(hit.turn), hit.words()))
        }
        _ => state.selection().map(|session| (session.clone(), None, Vec::new())),
    };
    let Some((session, turn, words)) = shown.filter(|_| state.has_preview()) else {
        state.preview = None;
        return Vec::new();
    };
    let is_of = |reader: &Reader| reader.session.key() == session.key() && reader.wanted == turn;
    let is_same = |reader: &Reader| is_of(reader) && reader.session.view.updated == session.view.updated;
    if let Some(reader) = state.preview.as_mut().filter(|reader| is_same(reader)) {
        reader.words = words;
        return Vec::new();
    }
    let ticket = state.next_ticket();
    let looks = PageStyle { width: state.preview_width(), folds: Folds::default() };
    let boxed = Box::new(session.clone());
    // What has only grown stays until the new page arrives.
    let pages = state.preview.take().filter(is_of).and_then(|reader| reader.pages);
    state.preview = Some(Reader { pages, words, ..Reader::new(session, turn, ticket) });
    vec![Effect::ReadPage { ticket, session: boxed, wish: turn.map_or(PageRequest::Last, PageRequest::Turn), looks }]
}

/// All agents in turn, then none in particular.
pub(super) fn next_agent(agent: Option<Agent>) -> Option<Agent> {
    let place = agent.and_then(|agent| Agent::ALL.iter().position(|other| *other == agent));
    Agent::ALL.get(place.map_or(0, |place| place + 1)).copied()
}
