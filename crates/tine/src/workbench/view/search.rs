//! Search as you type.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use transcript::text::{clip, one_line, short_age};

use super::{BOLD, DIM, SELECTED, prompt_line};
use crate::workbench::state::{SearchState, State};

pub(super) const KEYS: &[(&str, &str)] = &[
    ("enter", "open at this turn"),
    ("alt+shift+f", "fork at this turn"),
    ("↑↓", "choose"),
    ("esc", "back"),
    ("F1", "help"),
];

pub(super) fn draw(frame: &mut Frame<'_>, header: Rect, body: Rect, search: &SearchState, state: &State) {
    prompt_line(frame, header, "search: ", &search.query, true);
    if search.hits.is_empty() {
        let text = match (search.query.trim().is_empty(), search.is_running) {
            (true, _) => "Type what you remember: words, \"a phrase\", agent:codex, file:login.ts, since:2w",
            (false, true) => "searching…",
            (false, false) => "No session matches.",
        };
        frame.render_widget(Paragraph::new(Line::styled(format!("  {text}"), DIM)), body);
        return;
    }
    // Two lines for each hit.
    let room = usize::from(body.height) / 2;
    let top = (search.selected + 1).saturating_sub(room.max(1));
    let columns = usize::from(body.width).saturating_sub(4);
    let mut lines = Vec::new();
    for (place, hit) in search.hits.iter().enumerate().skip(top).take(room) {
        let view = &hit.session.view;
        let age = view.updated.map(|updated| short_age(updated, state.clock.now(), &state.zone)).unwrap_or_default();
        let label: String = one_line(view.label());
        let title = one_line(view.title.as_deref().unwrap_or_default());
        let facts = format!("  {} · turn {} of {} · {age} · {title}", view.agent, hit.turn, view.turns);
        let facts = clip(&facts, columns.saturating_sub(label.chars().count()));
        let line = Line::from(vec![Span::styled(format!(" {label}"), BOLD), Span::raw(facts)]);
        lines.push(if place == search.selected { line.style(SELECTED) } else { line });
        lines.push(Line::styled(format!("    {}", clip(&hit.snippet, columns)), DIM));
    }
    frame.render_widget(Paragraph::new(lines), body);
}
