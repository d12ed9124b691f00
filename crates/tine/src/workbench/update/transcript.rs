//! One transcript.

use engine::Request;

use super::{chat, fork};
use crate::keymap::{Action, Key};
use crate::workbench::event::Effect;
use crate::workbench::page::{Page, PageStyle};
use crate::workbench::reader::{Goal, PageRequest, Reader};
use crate::workbench::state::{Screen, State};

pub(super) fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let height = state.body_height();
    let page = height as isize;
    let Screen::Transcript(reader) = &mut state.screen else { return Vec::new() };
    match action {
        Action::Back if reader.find.is_some() => (reader.find, reader.found) = (None, None),
        Action::Back if reader.cursor.is_some() => reader.cursor = None,
        Action::Back => return back(state),
        Action::Focus => {
            // Without the tools, many more turns fit into memory, so they are not kept.
            reader.folds.focus = !reader.folds.focus;
            reader.chosen = reader.turn();
            let extent = reader.extent_at_top();
            return extent.map(|extent| ask(state, PageRequest::Again(extent))).unwrap_or_default();
        }
        Action::Find => (reader.find, reader.found) = (Some((String::new(), true)), None),
        Action::FindNext | Action::FindPrevious if reader.find.is_some() => {
            return find(state, action == Action::FindNext);
        }
        Action::Copy => {
            let Some(turn) = reader.turn() else { return Vec::new() };
            return match reader.source_of(turn) {
                Some(text) => vec![Effect::Copy(text)],
                None => vec![Effect::TakeTurn { session: Box::new(reader.session.clone()), turn }],
            };
        }
        Action::CopyBlock => {
            return match reader.source() {
                Some(text) => vec![Effect::Copy(text)],
                None => super::refuse(state, "no block is selected", Some("tab selects the next one")),
            };
        }
        Action::NextBlock => reader.select_block(true, height),
        Action::PreviousBlock => reader.select_block(false, height),
        Action::Toggle => {
            return match reader.toggle(height) {
                true => lay_out_all(state),
                false => super::refuse(state, "nothing to fold here", Some("tab selects a block")),
            };
        }
        Action::Tools | Action::Thinking => {
            let folds = &mut reader.folds;
            if action == Action::Tools {
                folds.tools = !folds.tools;
                folds.flipped.clear();
            } else {
                folds.thinking = !folds.thinking;
            }
            return lay_out_all(state);
        }
        Action::ScrollDown => reader.scroll(1, height),
        Action::ScrollUp => reader.scroll(-1, height),
        Action::ScrollPageDown => reader.scroll(page, height),
        Action::ScrollPageUp => reader.scroll(-page, height),
        Action::Begin if !reader.has_first() => return ask(state, PageRequest::First),
        Action::Begin => reader.scroll(isize::MIN, height),
        Action::End if reader.pages.iter().flatten().last().is_some_and(|page| !page.is_last) => {
            reader.chosen = None;
            return ask(state, PageRequest::Last);
        }
        Action::End => reader.scroll(isize::MAX, height),
        Action::NextTurn | Action::PreviousTurn => {
            let forward = action == Action::NextTurn;
            reader.goal = (!reader.jump(forward, height)).then_some(Goal::Jump { forward });
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
    read_on(state)
}

/// Opens the selected session, or the hit of a search at its turn.
pub(super) fn open(state: &mut State) -> Vec<Effect> {
    let (session, chosen, words) = match &state.screen {
        Screen::Search(search) => match search.hits.get(search.selected) {
            Some(hit) => (hit.session.clone(), Some(hit.turn), hit.words()),
            None => return Vec::new(),
        },
        _ => match state.selection() {
            Some(session) => (session.clone(), None, Vec::new()),
            None => return Vec::new(),
        },
    };
    // A session that runs elsewhere is followed.
    let watched = (session.view.state != transcript::State::Stopped).then(|| session.view.path.clone());
    let reader = Reader { words, ..Reader::new(session, chosen, 0) };
    let from = std::mem::replace(&mut state.screen, Screen::Transcript(Box::new(reader)));
    state.search = match from {
        Screen::Search(search) => Some(search),
        _ => None,
    };
    let mut effects = ask(state, chosen.map_or(PageRequest::Last, PageRequest::Turn));
    effects.push(Effect::Watch(watched));
    effects
}

/// Goes back to the search that led here, or to the list.
fn back(state: &mut State) -> Vec<Effect> {
    let mut effects = vec![Effect::Watch(None)];
    match state.search.take() {
        Some(search) => {
            state.screen = Screen::Search(search);
            effects.extend(super::sessions::preview(state));
        }
        None => effects.extend(chat::show_sessions(state)),
    }
    effects
}

/// Reads one page in place of those that are loaded.
fn ask(state: &mut State, wish: PageRequest) -> Vec<Effect> {
    let ticket = state.next_ticket();
    let width = state.transcript_width();
    let Some(reader) = reader(&mut state.screen) else { return Vec::new() };
    (reader.ticket, reader.goal) = (ticket, None);
    reader.asked = crate::workbench::reader::PendingPages { before: true, after: true };
    let looks = PageStyle { width, folds: reader.folds.clone() };
    vec![Effect::ReadPage { ticket, session: Box::new(reader.session.clone()), wish, looks }]
}

/// Reads the pages next to the loaded ones, as far as scrolling needs them.
pub(super) fn read_on(state: &mut State) -> Vec<Effect> {
    let (height, width) = (state.body_height(), state.transcript_width());
    reader(&mut state.screen).map(|reader| wishes(reader, height, width)).unwrap_or_default()
}

/// The same for the preview, which has this many lines.
pub(super) fn read_on_in_preview(state: &mut State, height: usize) -> Vec<Effect> {
    let width = state.preview_width();
    state.preview.as_mut().map(|reader| wishes(reader, height, width)).unwrap_or_default()
}

fn wishes(reader: &mut Reader, height: usize, width: u16) -> Vec<Effect> {
    let wishes = reader.wishes(height);
    let effect = |wish| {
        let looks = PageStyle { width, folds: reader.folds.clone() };
        Effect::ReadPage { ticket: reader.ticket, session: Box::new(reader.session.clone()), wish, looks }
    };
    wishes.into_iter().map(effect).collect()
}

/// A page arrived.
pub(super) fn arrived(state: &mut State, ticket: u64, wish: PageRequest, page: Option<Page>) -> Vec<Effect> {
    let is_preview = state.preview.as_ref().is_some_and(|reader| reader.ticket == ticket);
    let height = match state.split().1.filter(|_| is_preview) {
        Some(area) => usize::from(area.height),
        None => state.body_height(),
    };
    let Some(reader) = reader_of(state, ticket) else { return Vec::new() };
    let is_nothing = page.is_none();
    reader.take(wish, page, height);
    let goal = reader.goal;
    match goal {
        Some(Goal::Jump { forward }) if reader.jump(forward, height) => reader.goal = None,
        Some(Goal::Find { forward }) => {
            if reader.find(forward, height, false) {
                reader.goal = None;
            } else if is_at_limit(reader, forward) {
                reader.goal = None;
                return super::refuse(state, "not found in this transcript", None);
            }
        }
        _ if is_nothing => reader.goal = None,
        _ => {}
    }
    read_on(state)
}

/// Whether nothing more can be read in a direction.
fn is_at_limit(reader: &Reader, forward: bool) -> bool {
    let mut pages = reader.pages.iter().flatten();
    if forward {
        pages.last().is_none_or(|page| page.is_last)
    } else {
        pages.next().is_none_or(|page| page.extent.is_first())
    }
}

fn find(state: &mut State, forward: bool) -> Vec<Effect> {
    let height = state.body_height();
    let Some(reader) = reader(&mut state.screen) else { return Vec::new() };
    let is_whole = is_at_limit(reader, true) && is_at_limit(reader, false);
    if reader.find(forward, height, is_whole) {
        return read_on(state);
    }
    if is_at_limit(reader, forward) {
        return super::refuse(state, "not found in this transcript", None);
    }
    reader.goal = Some(Goal::Find { forward });
    // What is loaded has been searched, so the next page may take its place.
    reader.found = Some(if forward { reader.length() } else { 0 });
    reader.top = if forward { reader.length().saturating_sub(height) } else { 0 };
    read_on(state)
}

/// Edits the search text in a transcript.
pub(super) fn finding(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(reader) = reader(&mut state.screen) else { return Vec::new() };
    let Some((text, is_typed)) = &mut reader.find else { return Vec::new() };
    match key {
        Key::Enter => {
            *is_typed = false;
            return find(state, true);
        }
        Key::Escape => (reader.find, reader.found) = (None, None),
        _ => drop(super::edit(text, key)),
    }
    Vec::new()
}

/// A watched transcript has changed: reads its end again.
pub(super) fn changed(state: &mut State, path: &std::path::Path) -> Vec<Effect> {
    let width = state.transcript_width();
    let Some(reader) = reader(&mut state.screen).filter(|reader| reader.session.view.path == path) else {
        return Vec::new();
    };
    // Away from the end, it is read when the user gets there.
    let Some(last) = reader.pages.iter_mut().flatten().last().filter(|page| page.is_last) else { return Vec::new() };
    let wish = PageRequest::Tail(last.extent);
    let looks = PageStyle { width, folds: reader.folds.clone() };
    vec![Effect::ReadPage { ticket: reader.ticket, session: Box::new(reader.session.clone()), wish, looks }]
}

/// Lays the loaded pages of the open transcript and of the preview out again.
pub(super) fn lay_out_all(state: &mut State) -> Vec<Effect> {
    let widths = [state.transcript_width(), state.preview_width()];
    let readers = [reader(&mut state.screen), state.preview.as_mut()];
    let mut effects = Vec::new();
    for (reader, width) in readers.into_iter().zip(widths) {
        let Some((reader, pages)) = reader.and_then(|reader| reader.pages.as_ref().map(|pages| (&*reader, pages)))
        else {
            continue;
        };
        let pages = pages.iter().map(|page| (page.extent, page.blocks.clone())).collect();
        let looks = PageStyle { width, folds: reader.folds.clone() };
        effects.push(Effect::LayOut { ticket: reader.ticket, pages, looks });
    }
    effects
}

pub(super) fn reader(screen: &mut Screen) -> Option<&mut Reader> {
    match screen {
        Screen::Transcript(reader) => Some(reader),
        _ => None,
    }
}

/// The reader that waits for the answer to a request.
pub(super) fn reader_of(state: &mut State, ticket: u64) -> Option<&mut Reader> {
    let readers = [reader(&mut state.screen), state.preview.as_mut()];
    readers.into_iter().flatten().find(|reader| reader.ticket == ticket)
}
