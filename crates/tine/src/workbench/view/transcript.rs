//! One transcript.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use transcript::text::one_line;

use super::{BOLD, DIM};
use crate::keymap::Action;
use crate::workbench::state::Reader;

pub(super) const ACTIONS: &[Action] = &[
    Action::Back,
    Action::NextTurn,
    Action::PreviousTurn,
    Action::ForkTurn,
    Action::EditAndFork,
    Action::ChatHere,
    Action::Tools,
    Action::Help,
];

pub(super) fn header(reader: &Reader) -> Line<'static> {
    let view = &reader.session.view;
    let turn = reader.turn().map(|turn| format!(" · turn {turn} of {}", view.turns)).unwrap_or_default();
    let label: String = one_line(view.label());
    let title: String = one_line(view.title.as_deref().unwrap_or_default());
    let rest = format!(" · {}{turn} · {title}", view.agent.product_name());
    Line::from(vec![Span::styled(format!(" {label}"), BOLD), Span::raw(rest)])
}

/// Draws the lines on the screen, and no others.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, reader: &Reader) {
    let Some(document) = &reader.document else {
        frame.render_widget(Paragraph::new(Line::styled(" reading…", DIM)), area);
        return;
    };
    let height = usize::from(area.height);
    let lines = document.lines.iter().enumerate().skip(reader.top).take(height);
    for (row, (number, line)) in lines.enumerate() {
        let row = Rect { y: area.y + row as u16, height: 1, ..area };
        if document.turn_at(number) == reader.turn() {
            frame.render_widget(Line::styled("▎", DIM), Rect { width: row.width.min(1), ..row });
        }
        let text = Rect { x: row.x + 1, width: row.width.saturating_sub(1), ..row };
        frame.render_widget(line, text);
        if reader.found == Some(number) {
            frame.buffer_mut().set_style(text, super::SELECTED);
        }
    }
}
