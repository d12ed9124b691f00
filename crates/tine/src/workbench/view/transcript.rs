//! One transcript.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use transcript::text::one_line;

use super::{BOLD, DIM, MARKED};
use crate::keymap::Action;
use crate::workbench::reader::Reader;
use crate::workbench::state::MARGIN;

pub(super) const ACTIONS: &[Action] = &[
    Action::Back,
    Action::ForkTurn,
    Action::NextTurn,
    Action::PreviousTurn,
    Action::Toggle,
    Action::Tools,
    Action::Focus,
    Action::Find,
    Action::EditAndFork,
    Action::ChatHere,
    Action::Copy,
    Action::Help,
];

pub(super) fn header(reader: &Reader) -> Line<'static> {
    let view = &reader.session.view;
    let turn = reader.turn().map(|turn| format!(" · turn {turn} of {}", reader.turns())).unwrap_or_default();
    let label: String = one_line(view.label());
    let title: String = one_line(view.title.as_deref().unwrap_or_default());
    let focus = if reader.folds.focus { " · prompts and final answers" } else { "" };
    let thinking = if reader.folds.thinking { " · with thinking" } else { "" };
    let rest = format!(" · {}{turn}{focus}{thinking} · {title}", view.agent.product_name());
    Line::from(vec![Span::styled(format!(" {label}"), BOLD), Span::raw(rest)])
}

/// Draws the lines on the screen, and no others. The margin has the numbers of turns and a mark at the selected block.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, reader: &Reader) {
    if reader.pages.is_none() {
        frame.render_widget(Paragraph::new(Line::styled(" reading…", DIM)), area);
        return;
    }
    let margin = MARGIN.min(area.width);
    let now = reader.turn();
    let mut is_selected = false;
    for (row, (number, line)) in reader.lines_from(reader.top).take(usize::from(area.height)).enumerate() {
        let row = Rect { y: area.y + row as u16, height: 1, ..area };
        if let Some(turn) = reader.turn_beginning_at(number) {
            let style = if now == Some(turn) { BOLD } else { DIM };
            let width = usize::from(MARGIN - 2);
            frame.render_widget(Line::styled(format!("{turn:>width$}"), style), Rect { width: margin, ..row });
        }
        is_selected = reader.cursor == Some(number) || is_selected && !reader.begins_block(number);
        let text = Rect { x: row.x + margin, width: row.width - margin, ..row };
        if is_selected && margin == MARGIN && line.width() > 0 {
            frame.render_widget(Line::styled("▎", BOLD), Rect { x: row.x + margin - 1, width: 1, ..row });
        }
        frame.render_widget(line, text);
        mark(frame.buffer_mut(), text, &reader.words);
        if reader.found == Some(number) {
            frame.buffer_mut().set_style(text, super::SELECTED);
        }
    }
}

/// Marks words on a row of the screen, in any case.
fn mark(buffer: &mut Buffer, row: Rect, words: &[String]) {
    if words.is_empty() {
        return;
    }
    // The text of the row, and the column of each of its bytes.
    let (mut text, mut columns) = (String::new(), Vec::new());
    for column in row.x..row.x + row.width {
        let symbol = buffer[(column, row.y)].symbol().to_lowercase();
        columns.extend(std::iter::repeat_n(column, symbol.len()));
        text.push_str(&symbol);
    }
    for word in words.iter().filter(|word| !word.is_empty()) {
        for (at, found) in text.match_indices(word.as_str()) {
            for column in &columns[at..at + found.len()] {
                buffer[(*column, row.y)].set_style(MARKED);
            }
        }
    }
}
