//! Dialogs over the screen.

use engine::Session;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use transcript::text::one_line;

use super::{BOLD, DIM};
use crate::keymap::{ACTIONS, ActionInfo, Context, Keymap};
use crate::workbench::state::{ChatChoice, Choose, Palette, Screen, State};
use crate::workbench::update::palette_actions;

/// An empty box in the middle of the screen.
pub(super) fn open(frame: &mut Frame<'_>, title: String, width: u16, height: u16) -> Rect {
    let all = frame.area();
    let (width, height) = (width.min(all.width), height.min(all.height));
    let area = Rect { x: (all.width - width) / 2, y: (all.height - height) / 2, width, height };
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inner
}

/// All keys of the current screen.
pub(super) fn help(frame: &mut Frame<'_>, state: &State) {
    let contexts: &[Context] = match &state.screen {
        Screen::Chat(_) => &[Context::Chat, Context::Request, Context::Everywhere],
        _ => &[state.context(), Context::Everywhere],
    };
    let room = usize::from(frame.area().height).saturating_sub(2);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for info in contexts.iter().flat_map(|context| ACTIONS.iter().filter(move |info| info.context == *context)) {
        let keys: Vec<String> = state.keymap.keys(info.action).map(|key| key.to_string()).collect();
        if !keys.is_empty() {
            lines
                .push(Line::from(vec![Span::styled(format!(" {:>20}  ", keys.join(" ")), BOLD), Span::raw(info.what)]));
        }
    }
    // In two columns, if one doesn't fit.
    let columns = if lines.len() > room { 2 } else { 1 };
    let rows = lines.len().div_ceil(columns).min(room.max(1));
    let inner = open(frame, " Keys ".to_owned(), 60 * columns as u16, rows as u16 + 2);
    let width = inner.width / columns as u16;
    for (column, part) in lines.chunks(rows.max(1)).take(columns).enumerate() {
        let area = Rect { x: inner.x + width * column as u16, width, ..inner };
        frame.render_widget(Paragraph::new(part.to_vec()), area);
    }
}

/// A question that a key answers.
pub(super) fn confirm(frame: &mut Frame<'_>, question: &str) {
    let question = one_line(question);
    let width = u16::try_from(transcript::text::width(&question)).unwrap_or(u16::MAX).saturating_add(4).max(30);
    let inner = open(frame, String::new(), width, 4);
    let keys = super::key_line(&[("y".to_owned(), "yes"), ("n".to_owned(), "no")], inner.width);
    frame.render_widget(Paragraph::new(vec![Line::raw(format!(" {question}")), keys]), inner);
}

/// Actions by name, or a command with its completions.
pub(super) fn palette(frame: &mut Frame<'_>, palette: &Palette, keymap: &Keymap, context: Context) {
    let is_command = palette.text.starts_with([':', '@']);
    let rows: Vec<(String, String)> = if is_command {
        palette.completions.iter().map(|(word, what)| (one_line(word), one_line(what))).collect()
    } else {
        let row = |info: &&ActionInfo| {
            let keys: Vec<String> = keymap.keys(info.action).map(|key| key.to_string()).collect();
            (info.what.to_owned(), keys.join(" "))
        };
        palette_actions(context, &palette.text).iter().map(row).collect()
    };
    let inner = open(frame, if is_command { " Command " } else { " Actions " }.to_owned(), 70, 16);
    let [line, list] = ratatui::layout::Layout::vertical([
        ratatui::layout::Constraint::Length(1),
        ratatui::layout::Constraint::Min(0),
    ])
    .areas(inner);
    let label = if is_command { "" } else { "> " };
    super::prompt_line(frame, line, label, &palette.text, true);
    let first = (palette.selected + 1).saturating_sub(usize::from(list.height.max(1)));
    let lines: Vec<Line<'_>> = rows
        .into_iter()
        .enumerate()
        .skip(first)
        .take(usize::from(list.height))
        .map(|(place, (word, what))| {
            let line = Line::from(vec![Span::raw(format!(" {word}  ")), Span::styled(what, DIM)]);
            if place == palette.selected { line.style(super::SELECTED) } else { line }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), list);
}

/// Values to choose from.
pub(super) fn choose(frame: &mut Frame<'_>, choose: &Choose) {
    let title = match choose.what {
        ChatChoice::Model => " Model ",
        ChatChoice::Mode => " Permission mode ",
        ChatChoice::Agent => " New chat with ",
    };
    let inner = open(frame, title.to_owned(), 50, choose.values.len() as u16 + 2);
    let first = (choose.selected + 1).saturating_sub(usize::from(inner.height.max(1)));
    let lines: Vec<Line<'_>> = choose
        .values
        .iter()
        .enumerate()
        .skip(first)
        .map(|(place, (_, name))| {
            let line = Line::raw(format!(" {}", one_line(name)));
            if place == choose.selected { line.style(super::SELECTED) } else { line }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The output of a command.
pub(super) fn output(frame: &mut Frame<'_>, title: &str, lines: &[String], top: usize) {
    let all = frame.area();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(all.height.saturating_sub(2));
    let inner = open(frame, format!(" {} ", one_line(title)), all.width.saturating_sub(4), height);
    let shown: Vec<Line<'_>> =
        lines.iter().skip(top).take(usize::from(inner.height)).map(|line| Line::raw(line.as_str())).collect();
    frame.render_widget(Paragraph::new(shown), inner);
}

pub(super) fn rename(frame: &mut Frame<'_>, session: &Session, name: &str) {
    let inner = open(frame, format!(" Rename {} ", one_line(session.view.label())), 60, 3);
    super::prompt_line(frame, inner, "name: ", name, true);
}
