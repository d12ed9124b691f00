//! The mouse: its wheel scrolls what is under it, and a click selects or opens.

use engine::MouseLevel;
use ratatui::layout::Position;

use super::{chat, popup, search, sessions, transcript};
use crate::keymap::{Action, Key};
use crate::workbench::event::{Effect, Mouse, MouseKind};
use crate::workbench::layout;
use crate::workbench::state::{Message, Screen, State};

/// The lines that one step of the wheel scrolls.
const STEP: isize = 3;

/// Handles a report of the mouse.
pub(super) fn moved(state: &mut State, mouse: Mouse) -> Vec<Effect> {
    let steps = match mouse.kind {
        MouseKind::WheelUp => -STEP,
        MouseKind::WheelDown => STEP,
        MouseKind::Click if state.mouse == MouseLevel::Full => return clicked(state, mouse),
        MouseKind::Click => return Vec::new(),
    };
    if state.mouse == MouseLevel::Off {
        return Vec::new();
    }
    if state.popup.is_some() {
        return popup::pressed(state, if steps < 0 { Key::Up } else { Key::Down });
    }
    let preview = state.split().1.filter(|area| area.contains(place(mouse)));
    let height = state.body_height();
    match &mut state.screen {
        Screen::Transcript(reader) => {
            reader.scroll(steps, height);
            transcript::read_on(state)
        }
        Screen::Chat(_) => {
            let height = state.chat_height();
            if let Some(tab) = state.chat_mut() {
                tab.scroll(steps, height);
            }
            Vec::new()
        }
        Screen::Sessions { .. } | Screen::Search(_) if preview.is_some() => {
            let height = preview.map_or(0, |area| usize::from(area.height));
            if let Some(reader) = &mut state.preview {
                reader.scroll(steps, height);
            }
            transcript::read_on_in_preview(state, height)
        }
        Screen::Sessions { .. } => {
            state.select(steps.signum());
            sessions::preview(state)
        }
        Screen::Search(_) => search::select(state, steps.signum()),
    }
}

fn clicked(state: &mut State, mouse: Mouse) -> Vec<Effect> {
    if state.popup.is_some() {
        return Vec::new();
    }
    state.message = None;
    let areas = state.areas();
    if areas.tabs.contains(place(mouse)) {
        let labels = layout::tab_labels(state, areas.tabs.width);
        let clicked = labels.into_iter().rev().find(|label| label.column <= mouse.column);
        return match clicked.map(|label| label.number) {
            Some(Some(number)) => chat::show(state, number),
            Some(None) => chat::show_sessions(state),
            None => Vec::new(),
        };
    }
    if !areas.body.contains(place(mouse)) {
        return Vec::new();
    }
    let (list, preview) = state.split();
    let row = usize::from(mouse.row.saturating_sub(list.y));
    if preview.is_some_and(|area| area.contains(place(mouse))) {
        return match &state.screen {
            Screen::Sessions { .. } | Screen::Search(_) => transcript::open(state),
            Screen::Transcript(_) => click_in_transcript(state, usize::from(mouse.row.saturating_sub(areas.body.y))),
            Screen::Chat(_) => Vec::new(),
        };
    }
    match &state.screen {
        Screen::Sessions { .. } => match state.select_at(row) {
            // The second click opens, as a double click does.
            Some(true) => transcript::open(state),
            Some(false) => sessions::preview(state),
            None => Vec::new(),
        },
        Screen::Search(_) => search::click(state, row),
        Screen::Transcript(_) => click_in_transcript(state, row),
        Screen::Chat(_) => Vec::new(),
    }
}

/// Selects the block at a row, and folds or opens it with the second click.
fn click_in_transcript(state: &mut State, row: usize) -> Vec<Effect> {
    let Screen::Transcript(reader) = &mut state.screen else { return Vec::new() };
    if reader.select_at(reader.top + row) { super::perform(state, Action::Toggle) } else { Vec::new() }
}

/// The next level.
pub(super) fn switch(state: &mut State) -> Vec<Effect> {
    let (level, what) = match state.mouse {
        MouseLevel::Off => (MouseLevel::Wheel, "the wheel scrolls; hold shift to select text with the terminal"),
        MouseLevel::Wheel => (MouseLevel::Full, "the wheel scrolls and clicks select and open"),
        MouseLevel::Full => (MouseLevel::Off, "off; the terminal selects text with it"),
    };
    state.mouse = level;
    state.message = Some(Message::Done(format!("mouse: {what}")));
    vec![Effect::SetMouse(level)]
}

fn place(mouse: Mouse) -> Position {
    Position { x: mouse.column, y: mouse.row }
}
