//! Dialogs over the screen.

use transcript::SessionName;
use transcript::text::{clean, one_line};

use super::{chat, fork};
use crate::workbench::event::{Effect, Trouble};
use crate::workbench::keys::Key;
use crate::workbench::state::{Message, Popup, State};

pub(super) fn pressed(state: &mut State, key: Key) -> Vec<Effect> {
    match &mut state.popup {
        Some(Popup::Fork(_)) => fork::pressed(state, key),
        Some(Popup::Rename { .. }) => rename(state, key),
        Some(Popup::Confirm { words, .. }) => match key {
            Key::Char('y') | Key::Enter => {
                let words = std::mem::take(words);
                state.popup = None;
                vec![Effect::Run(words)]
            }
            Key::Char('n' | 'q') | Key::Escape => {
                state.popup = None;
                Vec::new()
            }
            _ => Vec::new(),
        },
        Some(Popup::Choose(choose)) => {
            let last = choose.values.len().saturating_sub(1);
            match key {
                Key::Down | Key::Tab | Key::Char('j') => choose.selected = (choose.selected + 1).min(last),
                Key::Up | Key::BackTab | Key::Char('k') => choose.selected = choose.selected.saturating_sub(1),
                Key::Enter => return chat::chosen(state),
                Key::Escape => state.popup = None,
                _ => {}
            }
            Vec::new()
        }
        Some(Popup::Output { lines, top, .. }) => {
            match key {
                Key::Down | Key::Char('j') => *top = (*top + 1).min(lines.len().saturating_sub(1)),
                Key::Up | Key::Char('k') => *top = top.saturating_sub(1),
                Key::PageDown | Key::Char(' ') => *top = (*top + 10).min(lines.len().saturating_sub(1)),
                Key::PageUp => *top = top.saturating_sub(10),
                _ => state.popup = None,
            }
            Vec::new()
        }
        Some(Popup::Help) => {
            state.popup = None;
            Vec::new()
        }
        None => Vec::new(),
    }
}

fn rename(state: &mut State, key: Key) -> Vec<Effect> {
    let Some(Popup::Rename { session, name }) = &mut state.popup else { return Vec::new() };
    match key {
        Key::Escape => state.popup = None,
        Key::Enter => match SessionName::new(name.clone()) {
            Ok(name) => {
                let effect = Effect::Rename(session.clone(), name);
                state.popup = None;
                return vec![effect];
            }
            Err(error) => {
                state.message = Some(Message::Failed(Trouble { message: error.to_string(), hint: None }));
            }
        },
        _ => drop(super::edit(name, key)),
    }
    Vec::new()
}

/// A command has run: one line becomes a message, more lines a dialog.
pub(super) fn ran(state: &mut State, words: &[String], success: bool, output: &str) -> Vec<Effect> {
    let text = clean(output);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !success {
        let mut parts = lines.iter().filter_map(|line| line.split_once(": "));
        let message = parts.clone().find(|(kind, _)| *kind == "error").map_or(text.as_str(), |(_, message)| message);
        let hint = parts.find(|(kind, _)| *kind == "hint").map(|(_, hint)| hint.to_owned());
        state.message = Some(Message::Failed(Trouble { message: one_line(message), hint }));
    } else if lines.len() <= 1 {
        state.message = Some(Message::Done(one_line(&text)));
    } else {
        state.popup = Some(Popup::Output { title: one_line(&words.join(" ")), lines, top: 0 });
    }
    vec![Effect::LoadSessions]
}
