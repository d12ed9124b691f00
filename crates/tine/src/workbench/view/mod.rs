//! Draws the state. Nothing here changes anything.

mod chat;
mod fork;
mod popup;
mod search;
mod sessions;
mod transcript;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::layout::Areas;
use super::state::{Message, Popup, Screen, State};
use crate::keymap::{Action, Key, Keymap};

/// The looks of the workbench. Only those that every theme of a terminal has.
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(crate) const MARKED: Style = Style::new().add_modifier(Modifier::BOLD).add_modifier(Modifier::UNDERLINED);

/// Draws a frame.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &State, color: bool) {
    let Areas { tabs, header, body, keys, message } = Areas::of(frame.area(), state.tab_bar_height());
    if !state.tabs.is_empty() {
        chat::tab_bar(frame, tabs, state);
    }
    // In text fields, letter keys are not actions.
    let is_text = match &state.screen {
        Screen::Search(search) => !search.is_in_hits,
        Screen::Chat(_) => true,
        Screen::Sessions { .. } | Screen::Transcript(_) => false,
    };
    frame.render_widget(key_line(&named(&state.keymap, screen_actions(state), is_text), keys.width), keys);
    match &state.screen {
        Screen::Sessions { filtering } => {
            frame.render_widget(sessions::header(state, header.width), header);
            sessions::draw(frame, body, state);
            if *filtering || !state.filter.is_empty() {
                prompt_line(frame, message, "filter: ", &state.filter, *filtering);
            }
        }
        Screen::Transcript(reader) => {
            frame.render_widget(transcript::header(reader), header);
            transcript::draw(frame, body, reader);
            if let Some((text, is_typed)) = &reader.find {
                prompt_line(frame, message, "find: ", text, *is_typed);
            }
        }
        Screen::Search(search) => search::draw(frame, header, body, search, state),
        Screen::Chat(_) => {
            if let Some(tab) = state.chat() {
                frame.render_widget(chat::header(tab, header.width), header);
                chat::draw(frame, body, tab, &state.keymap);
            }
        }
    }
    if let Some(shown) = &state.message {
        let (text, style) = match shown {
            Message::Done(text) => (text.clone(), Style::new()),
            Message::Failed(trouble) => {
                let hint = trouble.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                (format!("error: {}{hint}", trouble.message), BOLD)
            }
        };
        draw_message(frame, message, &::transcript::text::one_line(&text), style);
    }
    match &state.popup {
        Some(Popup::Help) => popup::help(frame, state),
        Some(Popup::Fork(dialog)) => fork::draw(frame, dialog, &state.home),
        Some(Popup::Rename { session, name }) => popup::rename(frame, session, name),
        Some(Popup::Confirm { question, .. }) => popup::confirm(frame, question),
        Some(Popup::Choose(choose)) => popup::choose(frame, choose),
        Some(Popup::Palette(palette)) => popup::palette(frame, palette, &state.keymap, state.context()),
        Some(Popup::Output { title, lines, top }) => popup::output(frame, title, lines, *top),
        None => {}
    }
    if !color {
        for cell in &mut frame.buffer_mut().content {
            cell.fg = ratatui::style::Color::Reset;
            cell.bg = ratatui::style::Color::Reset;
        }
    }
}

/// What happened last. A long text takes rows of what is above.
fn draw_message(frame: &mut Frame<'_>, line: Rect, text: &str, style: Style) {
    const MOST: usize = 4;
    let mut lines = wrap(text, usize::from(line.width.saturating_sub(2)).max(1));
    lines.truncate(MOST.min(usize::from(line.y) + 1));
    let height = u16::try_from(lines.len()).unwrap_or(1);
    let area = Rect { y: (line.y + 1).saturating_sub(height), height, ..line };
    let lines: Vec<Line<'_>> = lines.into_iter().map(|line| Line::styled(format!(" {line}"), style)).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines), area);
}

/// A text in lines of at most this many columns, broken between words.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    use ::transcript::text::width;
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() || width(line) + 1 + width(word) <= columns {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The actions in the key line, most useful first.
fn screen_actions(state: &State) -> &'static [Action] {
    match &state.screen {
        Screen::Sessions { .. } => sessions::ACTIONS,
        Screen::Transcript(_) => transcript::ACTIONS,
        Screen::Search(_) => search::ACTIONS,
        Screen::Chat(_) => chat::ACTIONS,
    }
}

/// Actions with their first keys.
fn named(keymap: &Keymap, shown: &[Action], is_text: bool) -> Vec<(String, &'static str)> {
    let works = |key: &Key| !(is_text && matches!(key, Key::Char(_)));
    let key = |action: &Action| keymap.keys(*action).find(works).map(|key| key.to_string());
    shown.iter().filter_map(|action| Some((key(action)?, crate::keymap::info(*action).what))).collect()
}

/// One line of keys, as `enter open`: as many as fit. Help is the last one, and always among them.
fn key_line(keys: &[(String, &str)], columns: u16) -> Line<'static> {
    let length = |(key, what): &(String, &str)| ::transcript::text::width(key) + ::transcript::text::width(what) + 4;
    let mut room = usize::from(columns).saturating_sub(keys.last().map_or(0, length));
    let mut spans = vec![Span::raw(" ")];
    for (place, entry) in keys.iter().enumerate() {
        let is_last = place + 1 == keys.len();
        if !is_last && length(entry) > room {
            room = 0;
            continue;
        }
        room = room.saturating_sub(length(entry));
        spans.extend([Span::styled(entry.0.clone(), BOLD), Span::raw(format!(" {}   ", entry.1))]);
    }
    Line::from(spans)
}

/// A line in which something is typed, with the terminal's own cursor at its end.
fn prompt_line(frame: &mut Frame<'_>, area: Rect, label: &str, text: &str, is_active: bool) {
    let shown: String = ::transcript::text::one_line(text);
    let line = Line::from(vec![Span::styled(format!(" {label}"), DIM), Span::raw(shown.clone())]);
    frame.render_widget(Paragraph::new(line), area);
    if is_active {
        let column = 1 + label.len() + ::transcript::text::width(&shown);
        let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
        frame.set_cursor_position((area.x + column, area.y));
    }
}
