//! Dialogs over the screen.

use std::path::Path;

use engine::Session;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use transcript::text::one_line;

use super::{BOLD, DIM, search, sessions, transcript as transcript_view};
use crate::workbench::graph::short;
use crate::workbench::state::{ForkDialog, Screen, State};

/// An empty box in the middle of the screen.
fn open(frame: &mut Frame<'_>, title: String, width: u16, height: u16) -> Rect {
    let all = frame.area();
    let (width, height) = (width.min(all.width), height.min(all.height));
    let area = Rect { x: (all.width - width) / 2, y: (all.height - height) / 2, width, height };
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inner
}

pub(super) fn help(frame: &mut Frame<'_>, state: &State) {
    let keys = match &state.screen {
        Screen::Sessions { .. } => sessions::KEYS,
        Screen::Transcript(_) => transcript_view::KEYS,
        Screen::Search(_) => search::KEYS,
    };
    let more = [("F1 ?", "this help"), ("ctrl+l", "refresh the list"), ("ctrl+c", "quit")];
    let lines: Vec<Line<'_>> = keys
        .iter()
        .chain(&more)
        .map(|(key, what)| Line::from(vec![Span::styled(format!(" {key:>12}  "), BOLD), Span::raw(*what)]))
        .collect();
    let inner = open(frame, " Keys ".to_owned(), 50, lines.len() as u16 + 2);
    frame.render_widget(Paragraph::new(lines), inner);
}

pub(super) fn rename(frame: &mut Frame<'_>, session: &Session, name: &str) {
    let inner = open(frame, format!(" Rename {} ", one_line(session.view.label())), 60, 3);
    super::prompt_line(frame, inner, "name: ", name, true);
}

/// The complete plan, before Enter creates the fork.
pub(super) fn fork(frame: &mut Frame<'_>, dialog: &ForkDialog, home: &Path) {
    let source = &dialog.request.source.view;
    let at = dialog.request.turns.unwrap_or(source.turns);
    let mut lines = Vec::new();
    let mut fact = |word: &str, value: String| {
        let value: String = one_line(&value);
        lines.push(Line::from(vec![Span::styled(format!(" {word:<8} "), DIM), Span::raw(value)]));
    };
    fact("At", format!("turn {at} of {}   (↑↓)", source.turns));
    match &dialog.plan {
        None => fact("", "planning…".to_owned()),
        Some(Err(trouble)) => {
            fact("Error", trouble.message.clone());
            trouble.hint.iter().for_each(|hint| fact("Hint", hint.clone()));
        }
        Some(Ok(plan)) => {
            fact("Agent", format!("{}   (alt+a)", plan.agent.product_name()));
            fact("Method", format!("{}: {}", plan.method.as_str(), plan.why));
            fact("Where", format!("{}   (tab)", short(&plan.workspace.path, home)));
            if let Some(tokens) = plan.tokens {
                let window = plan.context_window.map(|window| format!(" of {window}")).unwrap_or_default();
                fact("Tokens", format!("about {tokens}{window}"));
            }
            plan.requests.iter().for_each(|request| fact("Request", request.clone()));
            plan.losses.iter().for_each(|loss| fact("Lost", loss.clone()));
            plan.warnings.iter().for_each(|warning| fact("Warning", warning.clone()));
            if plan.leaves_changes {
                let carry = if dialog.request.carry { "copied" } else { "not copied" };
                fact("Changes", format!("{carry}   (alt+c)"));
            }
        }
    }
    let planned = match &dialog.plan {
        Some(Ok(plan)) => plan.name.to_string(),
        _ => String::new(),
    };
    let height = lines.len() as u16 + 5;
    let width = frame.area().width.min(90);
    let inner = open(frame, format!(" Fork {} ", one_line(source.label())), width, height);
    let [name, body, keys] = ratatui::layout::Layout::vertical([
        ratatui::layout::Constraint::Length(1),
        ratatui::layout::Constraint::Min(1),
        ratatui::layout::Constraint::Length(1),
    ])
    .areas(inner);
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), body);
    frame.render_widget(super::key_line(&[("enter", "fork"), ("esc", "cancel")], keys.width), keys);
    if dialog.name.is_empty() {
        let shown = Line::from(vec![Span::styled(" Name     ", DIM), Span::raw(planned)]);
        frame.render_widget(Paragraph::new(shown), name);
        frame.set_cursor_position((name.x + 10, name.y));
    } else {
        super::prompt_line(frame, name, "Name     ", &dialog.name, true);
    }
}
