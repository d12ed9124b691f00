//! Search as you type.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Borders, Paragraph};
use transcript::text::{clip, one_line, short_age, width};

use super::sessions::draw_preview;
use super::{BOLD, DIM, MARKED, SELECTED, prompt_line};
use crate::keymap::Action;
use crate::workbench::event::Hit;
use crate::workbench::layout;
use crate::workbench::state::{SearchState, State};

pub(super) const ACTIONS: &[Action] = &[
    Action::OpenHit,
    Action::ForkHit,
    Action::ChatHit,
    Action::InHits,
    Action::EditQuery,
    Action::NextHit,
    Action::PreviousHit,
    Action::LeaveSearch,
    Action::Help,
];

pub(super) fn draw(frame: &mut Frame<'_>, header: Rect, body: Rect, search: &SearchState, state: &State) {
    prompt_line(frame, header, "search: ", &search.query, !search.is_in_hits);
    let progress = match (search.is_running, search.hits.len()) {
        (true, 0) => "searching… ".to_owned(),
        (true, count) => format!("{count} by keyword, searching by meaning… "),
        (false, 0) => String::new(),
        (false, 1) => "1 session ".to_owned(),
        (false, count) => format!("{count} sessions "),
    };
    let used = 9 + width(&search.query);
    if used + width(&progress) < usize::from(header.width) {
        let right =
            Rect { x: header.x + header.width - width(&progress) as u16, width: width(&progress) as u16, ..header };
        frame.render_widget(Line::styled(progress, DIM), right);
    }
    if search.hits.is_empty() {
        let text = match (search.query.trim().is_empty(), search.is_running) {
            (true, _) => "Type what you remember: words, \"a phrase\", agent:codex, file:login.ts, since:2w",
            (false, true) => "searching…",
            (false, false) => "No session matches.",
        };
        let notices = search.notices.iter().map(|notice| Line::styled(format!("  {}", one_line(notice)), DIM));
        let lines: Vec<Line<'_>> = std::iter::once(Line::styled(format!("  {text}"), DIM)).chain(notices).collect();
        frame.render_widget(Paragraph::new(lines), body);
        return;
    }
    let (list, preview) = layout::split(body, true);
    let room = usize::from(list.height) / SearchState::ROWS;
    let columns = usize::from(list.width).saturating_sub(1);
    let mut lines = Vec::new();
    for (place, hit) in search.hits.iter().enumerate().skip(search.top(usize::from(list.height))).take(room.max(1)) {
        let line = facts(hit, state, columns);
        lines.push(if place == search.selected { line.style(SELECTED) } else { line });
        lines.push(snippet(hit, columns));
    }
    frame.render_widget(Paragraph::new(lines), list);
    if let (Some(reader), Some(preview)) = (&state.preview, preview) {
        let is_beside = preview.y == list.y;
        draw_preview(frame, preview, reader, if is_beside { Borders::LEFT } else { Borders::TOP });
    }
}

fn facts(hit: &Hit, state: &State, columns: usize) -> Line<'static> {
    let view = &hit.session.view;
    let age = view.updated.map(|updated| short_age(updated, state.clock.now(), &state.zone)).unwrap_or_default();
    let label = clip(&one_line(view.label()), columns.min(32));
    let title = one_line(view.title.as_deref().unwrap_or_default());
    let facts = format!("  {} · turn {} of {} · {age} · {title}", view.agent, hit.turn, view.turns);
    let facts = clip(&facts, columns.saturating_sub(width(&label) + 1));
    Line::from(vec![Span::styled(format!(" {label}"), BOLD), Span::raw(facts)])
}

/// The words around a match, with those that matched marked.
fn snippet(hit: &Hit, columns: usize) -> Line<'static> {
    let text = &hit.snippet.text;
    let mut room = columns.saturating_sub(4);
    let mut spans = vec![Span::raw("    ")];
    let mut add = |part: &str, style| {
        let part = clip(part, room);
        room = room.saturating_sub(width(&part));
        spans.push(Span::styled(part, style));
    };
    let mut at = 0;
    for mark in &hit.snippet.marks {
        add(text.get(at..mark.start).unwrap_or_default(), DIM);
        add(text.get(mark.clone()).unwrap_or_default(), MARKED);
        at = mark.end;
    }
    add(text.get(at..).unwrap_or_default(), DIM);
    Line::from(spans)
}
