//! The list of sessions, with a preview of the selected one if it fits.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use transcript::text::{clip, one_line, short_age, width};
use transcript::{SessionView, State as Activity};

use super::{BOLD, DIM, SELECTED, transcript as transcript_view};
use crate::keymap::Action;
use crate::workbench::graph::Row;
use crate::workbench::layout;
use crate::workbench::list;
use crate::workbench::state::{Reader, Scope, State};

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

/// What is listed, and how much of it needs the user.
pub(super) fn header(state: &State, columns: u16) -> Line<'static> {
    let project = state.directory.file_name().map(|name| one_line(&name.to_string_lossy())).unwrap_or_default();
    let scope = match state.scope {
        Scope::Directory => format!("{project} · directory"),
        Scope::Repository if state.project.trees().is_empty() => project,
        Scope::Repository => format!("{project} · repository"),
        Scope::Everywhere => "everywhere".to_owned(),
    };
    let agent = state.agent.map_or("all agents", |agent| agent.product_name());
    let sessions = state.listed();
    let shown = match (&state.sessions, sessions) {
        (None, _) => "reading sessions…".to_owned(),
        (Some(_), 1) => "1 session".to_owned(),
        (Some(_), count) => format!("{count} sessions"),
    };
    let left = format!("   {scope}   {agent}   {}", state.sort.name());
    let needs = match state.waiting() {
        0 => String::new(),
        1 => "1 needs you   ".to_owned(),
        count => format!("{count} need you   "),
    };
    let room = usize::from(columns).saturating_sub(5 + width(&needs) + width(&shown) + 1);
    let left = clip(&left, room);
    let gap = " ".repeat(room.saturating_sub(width(&left)));
    Line::from(vec![
        Span::styled(" tine", BOLD),
        Span::raw(left),
        Span::raw(gap),
        Span::styled(needs, BOLD),
        Span::styled(shown, DIM),
    ])
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let (list, preview) = layout::split(area, false);
    if let Some(text) = nothing_to_list(state) {
        frame.render_widget(Paragraph::new(text), list);
        return;
    }
    let sessions = state.sessions.as_deref().unwrap_or_default();
    let now = state.clock.now();
    let waiting = state.waiting_rows();
    let rows = state.rows.iter().enumerate().skip(state.top).take(usize::from(list.height));
    // Agents and titles are aligned across the branches.
    let length = |(_, row): (usize, &Row)| match row {
        Row::Session { index, branches } => width(branches) + 3 + width(sessions[*index].view.label()),
        Row::Heading(_) => 0,
    };
    let columns = usize::from(list.width);
    let names = rows.clone().map(length).max().unwrap_or(0).min(columns * 2 / 5);
    let lines: Vec<Line<'_>> = rows
        .map(|(place, row)| match row {
            Row::Heading(text) if waiting.contains(&(place + 1)) && place == 0 => {
                Line::styled(format!(" {text}"), BOLD)
            }
            Row::Heading(text) => Line::styled(format!(" {text}"), DIM),
            Row::Session { index, branches } => {
                let session = &sessions[*index];
                let wish = list::wish(session).filter(|_| waiting.contains(&place));
                let is_selected = place == state.selected;
                session_line(&session.view, (wish, branches, is_selected), (columns, names), (now, &state.zone))
            }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), list);
    if let (Some(reader), Some(preview)) = (&state.preview, preview) {
        draw_preview(frame, preview, reader, Borders::LEFT);
    }
}

/// A transcript next to a list.
pub(super) fn draw_preview(frame: &mut Frame<'_>, area: Rect, reader: &Reader, border: Borders) {
    let frame_of_preview = Block::new().borders(border).border_style(DIM);
    let inner = frame_of_preview.inner(area);
    frame.render_widget(frame_of_preview, area);
    transcript_view::draw(frame, inner, reader);
}

/// What always works.
const SAMPLES: &str = "Or press x to try everything with sample sessions.";

/// The text instead of an empty list: the one next thing to do.
fn nothing_to_list(state: &State) -> Option<Vec<Line<'static>>> {
    let all = state.sessions.as_ref()?;
    if !state.rows.is_empty() {
        return None;
    }
    let has_no_agent = state.agents.as_ref().is_some_and(Vec::is_empty);
    let text = if all.is_empty() && has_no_agent {
        ["No sessions, and no coding agent was found. Install one; `tine doctor` lists where tine looks.", SAMPLES]
    } else if all.is_empty() {
        ["No sessions yet. Press alt+t to start a chat with an agent.", SAMPLES]
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
    (wish, branches, is_selected): (Option<&str>, &str, bool),
    (columns, names): (usize, usize),
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
    let room = columns.saturating_sub(width(&right));
    // Deep branches leave at least some of the name.
    let name_room = names.max(width(&left) + 8).min(room);
    let name = clip(&one_line(view.label()), name_room.saturating_sub(width(&left)));
    let used = width(&left) + width(&name);
    let pad = " ".repeat(name_room.saturating_sub(used));
    let room = room.saturating_sub(used + width(&pad));
    let agent = clip(&format!("  {:<7}", view.agent.as_str()), room);
    let room = room.saturating_sub(width(&agent));
    let title = match wish {
        Some(wish) => format!("waits for {}", one_line(wish)),
        None => one_line(view.title.as_deref().unwrap_or_default()),
    };
    let title = clip(&format!("  {title}"), room);
    let gap = " ".repeat(room.saturating_sub(width(&title)));
    // Dim parts would be stripes in the selected row.
    let dim = if is_selected { Style::new() } else { DIM };
    let line = Line::from(vec![
        Span::styled(left, dim),
        Span::styled(name, BOLD),
        Span::raw(pad),
        Span::styled(agent, dim),
        Span::raw(title),
        Span::raw(gap),
        Span::styled(right, dim),
    ]);
    if is_selected { line.style(SELECTED) } else { line }
}
