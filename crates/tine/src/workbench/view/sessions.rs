//! The list of sessions, with a preview of the selected one if it fits.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use transcript::text::{clip, one_line, short_age, width};
use transcript::{SessionView, State as Activity};

use super::{BOLD, DIM, SELECTED, transcript as transcript_view};
use crate::keymap::Action;
use crate::workbench::graph::Row;
use crate::workbench::state::{Scope, SortOrder, State};

pub(super) const ACTIONS: &[Action] = &[
    Action::Open,
    Action::Chat,
    Action::Fork,
    Action::Search,
    Action::Filter,
    Action::Scope,
    Action::Agent,
    Action::Rename,
    Action::Undo,
    Action::Leave,
    Action::Help,
];

pub(super) fn header(state: &State) -> Line<'static> {
    let scope = match state.scope {
        Scope::Here => "this project",
        Scope::Everywhere => "everywhere",
    };
    let agent = state.agent.map_or("all agents", |agent| agent.product_name());
    let sessions = state.rows.iter().filter(|row| matches!(row, Row::Session { .. })).count();
    let shown = match (&state.sessions, sessions) {
        (None, _) => "reading sessions…".to_owned(),
        (Some(_), 1) => "1 session".to_owned(),
        (Some(_), count) => format!("{count} sessions"),
    };
    let sort = if state.sort == SortOrder::Age { String::new() } else { format!("   {}", state.sort.name()) };
    Line::from(vec![Span::styled(" tine", BOLD), Span::raw(format!("   {scope}   {agent}   {shown}{sort}"))])
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let list_width = state.list_width();
    let [list, preview] = Layout::horizontal([Constraint::Length(list_width), Constraint::Min(0)]).areas(area);
    if let Some(text) = nothing_to_list(state) {
        frame.render_widget(Paragraph::new(text), list);
        return;
    }
    let sessions = state.sessions.as_deref().unwrap_or_default();
    let now = state.clock.now();
    let rows = state.rows.iter().enumerate().skip(state.top).take(usize::from(list.height));
    let lines: Vec<Line<'_>> = rows
        .map(|(place, row)| match row {
            Row::Heading(text) => Line::styled(format!(" {text}"), DIM),
            Row::Session { index, branches } => {
                let view = &sessions[*index].view;
                let line = session_line(view, branches, usize::from(list.width), (now, &state.zone));
                if place == state.selected { line.style(SELECTED) } else { line }
            }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), list);
    if let Some(reader) = state.preview.as_ref().filter(|_| state.has_preview()) {
        let frame_of_preview = Block::new().borders(Borders::LEFT).border_style(DIM);
        let inner = frame_of_preview.inner(preview);
        frame.render_widget(frame_of_preview, preview);
        transcript_view::draw(frame, inner, reader);
    }
}

/// The text instead of an empty list: the one next thing to do.
fn nothing_to_list(state: &State) -> Option<Vec<Line<'static>>> {
    let all = state.sessions.as_ref()?;
    if !state.rows.is_empty() {
        return None;
    }
    let text = if all.is_empty() {
        ["No sessions yet.", "Start one with `tine start`, or take a tour with `tine demo`."]
    } else if !state.filter.is_empty() || state.agent.is_some() {
        ["No session matches.", "Press esc to clear the filter, a for another agent."]
    } else {
        ["No sessions in this project.", "Press tab to list the sessions of all projects."]
    };
    Some(text.map(|line| Line::raw(format!("  {line}"))).to_vec())
}

/// A session in one line: mark, branches, name, agent, title, turns, age.
fn session_line(
    view: &SessionView,
    branches: &str,
    columns: usize,
    (now, zone): (Timestamp, &TimeZone),
) -> Line<'static> {
    let mark = match view.state {
        Activity::Busy => "●",
        Activity::Waiting => "◐",
        Activity::Idle => "○",
        Activity::Stopped => " ",
    };
    let age = view.updated.map(|updated| short_age(updated, now, zone)).unwrap_or_default();
    let turns = view.turns.to_string();
    let right = format!("{turns:>4} {age:>5} ");
    let left = format!(" {mark} {branches}");
    let room = columns.saturating_sub(width(&left) + width(&right));
    let name = clip(&one_line(view.label()), room.min(28));
    let agent = format!("  {:<7}", view.agent.as_str());
    let room = room.saturating_sub(width(&name));
    let agent = clip(&agent, room);
    let room = room.saturating_sub(width(&agent));
    let title = one_line(view.title.as_deref().unwrap_or_default());
    let title = clip(&format!("  {title}"), room);
    let gap = " ".repeat(room.saturating_sub(width(&title)));
    Line::from(vec![
        Span::styled(left, DIM),
        Span::styled(name, BOLD),
        Span::styled(agent, DIM),
        Span::raw(title),
        Span::raw(gap),
        Span::styled(right, DIM),
    ])
}
