//! The fork dialog: the fields, and everything that the engine's plan says, before Enter creates the fork.

use std::path::Path;

use engine::{CacheState, CodeChoice, Plan, Where};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use transcript::text::{clip, one_line, width};

use super::chat::thousands;
use super::{BOLD, DIM, SELECTED, wrap};
use crate::workbench::fork_dialog::{ForkDialog, ForkField};
use crate::workbench::graph::short;

/// The columns of the names of fields.
const LABEL: usize = 11;
/// How many turns the picker shows around the chosen one.
const NEARBY: usize = 5;

/// A row of the dialog.
struct DialogRow {
    field: Option<ForkField>,
    line: Line<'static>,
    /// The column of the caret, if text is typed here.
    caret: Option<usize>,
}

pub(super) fn draw(frame: &mut Frame<'_>, dialog: &ForkDialog, home: &Path) {
    let source = &dialog.request.source.view;
    let columns = frame.area().width.min(100);
    let room = usize::from(columns.saturating_sub(2));
    let mut rows: Vec<DialogRow> = Vec::new();
    for field in dialog.fields() {
        rows.push(field_row(dialog, field, home, room));
        if field == ForkField::Turn && dialog.field == field {
            rows.extend(picker(dialog, room));
        }
    }
    rows.push(DialogRow { field: None, line: Line::raw(""), caret: None });
    rows.extend(facts(dialog, room).into_iter().map(|line| DialogRow { field: None, line, caret: None }));
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(3);
    let inner = super::popup::open(frame, format!(" Fork {} ", one_line(source.label())), columns, height);
    let [body, keys] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(inner);
    // The field that is changed stays visible.
    let shown = usize::from(body.height);
    let at = rows.iter().position(|row| row.field == Some(dialog.field)).unwrap_or(0);
    let top = (at + 1 + NEARBY).min(rows.len()).saturating_sub(shown).min(at);
    for (place, row) in rows.iter().skip(top).take(shown).enumerate() {
        let area = Rect { y: body.y + place as u16, height: 1, ..body };
        frame.render_widget(Paragraph::new(row.line.clone()), area);
        if let Some(caret) = row.caret {
            let column = u16::try_from(caret).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
            frame.set_cursor_position(Position { x: area.x + column, y: area.y });
        }
    }
    let line = match &dialog.progress {
        Some(progress) => Line::styled(format!(" forking… {progress}"), BOLD),
        None => {
            let enter = if dialog.failure.is_some() { "try again" } else { "fork" };
            let hints = [("enter", enter), ("↑↓", "field"), ("←→", "change"), ("esc", "cancel")];
            let hints: Vec<(String, &str)> = hints.iter().map(|(key, what)| ((*key).to_owned(), *what)).collect();
            super::key_line(&hints, keys.width)
        }
    };
    frame.render_widget(line, keys);
}

fn field_row(dialog: &ForkDialog, field: ForkField, home: &Path, room: usize) -> DialogRow {
    let is_here = dialog.field == field;
    let plan = dialog.possible();
    let planned = |value: Option<String>| value.unwrap_or_default();
    // Typed text, or what the plan has instead.
    let typed = |text: &str, instead: String| match text.is_empty() {
        true => (one_line(&instead), DIM),
        false => (one_line(text), Style::new()),
    };
    let (label, (value, style)) = match field {
        ForkField::Turn => ("Turn", (turn_text(dialog), Style::new())),
        ForkField::Agent => {
            let agent = dialog.request.agent.unwrap_or(dialog.request.source.view.agent);
            ("Agent", (agent.product_name().to_owned(), Style::new()))
        }
        ForkField::Model => {
            let model = plan.and_then(|plan| plan.model.clone());
            ("Model", typed(&dialog.model, model.unwrap_or_else(|| "the agent's default".to_owned())))
        }
        ForkField::Method => ("Method", (method_text(dialog), Style::new())),
        ForkField::Name => ("Name", typed(&dialog.name, planned(plan.map(|plan| plan.name.to_string())))),
        ForkField::Workspace => {
            let kind = match dialog.request.workspace {
                Where::Same => "same directory",
                Where::Worktree { .. } => "new worktree",
                Where::Copy(_) => "copy of the directory",
                Where::Directory(_) => "another directory",
            };
            let path = plan.map(|plan| format!("   {}", short(&plan.workspace.path, home)));
            ("Workspace", (format!("{kind}{}", planned(path)), Style::new()))
        }
        ForkField::Path => {
            let branch = plan.and_then(|plan| plan.workspace.branch.clone());
            let path = plan.map(|plan| short(&plan.workspace.path, home));
            match dialog.request.workspace {
                Where::Worktree { .. } => ("Branch", typed(&dialog.path, planned(branch))),
                Where::Copy(_) => ("Copy to", typed(&dialog.path, planned(path))),
                _ => ("Directory", typed(&dialog.path, String::new())),
            }
        }
        ForkField::Changes => {
            let then = plan.and_then(|plan| plan.code.as_ref()).map(|code| one_line(&code.summary()));
            let is_now = dialog.request.carry || dialog.request.code == CodeChoice::Now;
            let value = match (is_now, plan.is_some_and(|plan| plan.leaves_changes)) {
                (true, _) => "copied to the worktree",
                (false, true) => "uncommitted changes stay behind",
                (false, false) => "nothing uncommitted is copied",
            };
            ("Changes", (then.unwrap_or_else(|| value.to_owned()), Style::new()))
        }
    };
    let is_text = matches!(field, ForkField::Model | ForkField::Name | ForkField::Path);
    let value = clip(&value, room.saturating_sub(LABEL + 7));
    let mut spans = vec![Span::styled(format!(" {label:<LABEL$}"), if is_here { BOLD } else { DIM })];
    let caret = (is_here && is_text && dialog.progress.is_none()).then(|| {
        let is_typed = style == Style::new();
        1 + LABEL + if is_typed { width(&value) } else { 0 }
    });
    match (is_here, is_text) {
        (true, false) => spans.extend([Span::styled("‹ ", BOLD), Span::styled(value, BOLD), Span::styled(" ›", BOLD)]),
        _ => spans.push(Span::styled(value, style)),
    }
    DialogRow { field: Some(field), line: Line::from(spans), caret }
}

fn turn_text(dialog: &ForkDialog) -> String {
    let turns = dialog.request.source.view.turns;
    let edit = dialog.edit.map(|turn| format!("; prompt {turn} is ready to edit")).unwrap_or_default();
    // The picker shows it otherwise.
    let chosen = dialog.turns.iter().find(|turn| turn.turn == dialog.turn() && dialog.field != ForkField::Turn);
    let chosen = chosen.map(|turn| format!("   “{}”", turn.prompt));
    format!("turn {} of {turns}{edit}{}", dialog.turn(), chosen.unwrap_or_default())
}

fn method_text(dialog: &ForkDialog) -> String {
    match (dialog.request.method, &dialog.plan) {
        (_, Some(Ok(plan))) => format!("{}: {}", plan.method.as_str(), plan.why),
        (Some(method), _) => method.as_str().to_owned(),
        (None, _) => "automatic".to_owned(),
    }
}

/// The turns around the chosen one, and what is in that one.
fn picker(dialog: &ForkDialog, room: usize) -> Vec<DialogRow> {
    let Some(at) = dialog.turns.iter().position(|turn| turn.turn == dialog.turn()) else { return Vec::new() };
    let first = at.saturating_sub(NEARBY / 2).min(dialog.turns.len().saturating_sub(NEARBY));
    let indent = LABEL + 1;
    let mut lines = Vec::new();
    for turn in dialog.turns.iter().skip(first).take(NEARBY) {
        let is_chosen = turn.turn == dialog.turn();
        let tokens = turn.tokens.map(|tokens| format!(" {:>7}", thousands(tokens))).unwrap_or_default();
        let text = format!("{:>4} ❯ {}", turn.turn, turn.prompt);
        let text = clip(&text, room.saturating_sub(indent + width(&tokens) + 1));
        let gap = " ".repeat(room.saturating_sub(indent + width(&text) + width(&tokens) + 1));
        let style = if is_chosen { SELECTED } else { Style::new() };
        let before = Span::raw(" ".repeat(indent));
        lines.push(Line::from(vec![before, Span::styled(format!("{text}{gap}{tokens}"), style)]));
        if is_chosen {
            let files = match turn.files.as_slice() {
                [] => String::new(),
                [file] => format!("changed {file}"),
                [first, rest @ ..] => format!("changed {first} and {} more", rest.len()),
            };
            let parts = [turn.answer.clone().unwrap_or_default(), one_line(&files)];
            for part in parts.iter().filter(|part| !part.is_empty()) {
                let text = clip(part, room.saturating_sub(indent + 8));
                lines.push(Line::styled(format!("{}{text}", " ".repeat(indent + 7)), DIM));
            }
        }
    }
    lines.into_iter().map(|line| DialogRow { field: None, line, caret: None }).collect()
}

/// What the plan says, and what went wrong.
fn facts(dialog: &ForkDialog, room: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut fact = |word: &str, value: &str, style: Style| {
        for (place, part) in wrap(&one_line(value), room.saturating_sub(LABEL + 2)).into_iter().enumerate() {
            let label = if place == 0 { word } else { "" };
            lines.push(Line::from(vec![Span::styled(format!(" {label:<LABEL$}"), DIM), Span::styled(part, style)]));
        }
    };
    let plain = Style::new();
    match &dialog.plan {
        None => fact("", "planning…", DIM),
        Some(Err(trouble)) if dialog.waits_for_source() => {
            fact("Busy", &trouble.message, BOLD);
            fact("Hint", "wait here, and the fork is planned when it is idle; or choose an earlier turn", plain);
        }
        Some(Err(trouble)) => {
            fact("Error", &trouble.message, BOLD);
            trouble.hint.iter().for_each(|hint| fact("Hint", hint, plain));
        }
        Some(Ok(plan)) => {
            let id = if plan.id_is_chosen { plan.id.to_string() } else { "chosen by the agent".to_owned() };
            fact("Session", &id, plain);
            if let Some(tokens) = plan.tokens {
                fact("Tokens", &tokens_text(tokens, plan), plain);
            }
            fact("Cache", &cache_text(plan), plain);
            plan.requests.iter().for_each(|request| fact("Request", request, plain));
            plan.losses.iter().for_each(|loss| fact("Lost", loss, plain));
            plan.warnings.iter().for_each(|warning| fact("Warning", warning, BOLD));
        }
    }
    if let Some(failure) = &dialog.failure {
        fact("Failed", &failure.message, BOLD);
        failure.hint.iter().for_each(|hint| fact("Hint", hint, plain));
        fact("", "nothing was left behind", DIM);
    }
    lines
}

fn tokens_text(tokens: u64, plan: &Plan) -> String {
    let of = |window: u64| {
        let percent = tokens * 100 / window.max(1);
        let full = match percent {
            100.. => "; it does not fit",
            80.. => "; the window is nearly full",
            _ => "",
        };
        format!(" of {} ({percent} %{full})", thousands(window))
    };
    format!("{}{}", thousands(tokens), plan.context_window.map(of).unwrap_or_default())
}

fn cache_text(plan: &Plan) -> String {
    let state = match plan.cache.state {
        CacheState::Warm => "warm",
        CacheState::Cold => "cold",
        CacheState::Unknown => "not known",
    };
    let most = if plan.cache.state == CacheState::Unknown { "up to" } else { "about" };
    let price = plan.cache.rewritten.map(|tokens| format!(", {most} {} tokens are written again", thousands(tokens)));
    format!("{state}{}: {}", price.unwrap_or_default(), plan.cache.why)
}
