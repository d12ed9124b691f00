//! Dialogs over the screen.

use engine::Session;
use transcript::SessionName;
use transcript::text::{clean, one_line};

use super::{chat, fork};
use crate::keymap::{ACTIONS, Action, ActionInfo, Context, Key};
use crate::workbench::event::{Effect, ErrorText};
use crate::workbench::state::{Message, Palette, Popup, State};

/// How many names are offered after `@`.
const NAMES: usize = 50;

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
        Some(Popup::Palette(_)) => palette(state, key),
        Some(Popup::Help) => {
            state.popup = None;
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Opens the palette, or the command line if the text starts with `:`.
pub(super) fn open_palette(state: &mut State, text: &str) -> Vec<Effect> {
    state.popup = Some(Popup::Palette(Palette { text: text.to_owned(), ..Palette::default() }));
    Vec::new()
}

/// The actions that the palette offers here: those of this screen first.
pub(in crate::workbench) fn palette_actions(context: Context, text: &str) -> Vec<&'static ActionInfo> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let fits = |info: &&ActionInfo| {
        words.iter().all(|word| info.what.contains(word.as_str()) || info.name.contains(word.as_str()))
    };
    let of = |context: Context| ACTIONS.iter().filter(move |info| info.context == context);
    of(context).chain(of(Context::Everywhere)).filter(fits).collect()
}

/// Splits a command line into words. Quotes work as in a shell.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn palette(state: &mut State, key: Key) -> Vec<Effect> {
    let context = state.context();
    let Some(Popup::Palette(palette)) = &mut state.popup else { return Vec::new() };
    let is_command = palette.text.starts_with([':', '@']);
    let count = if is_command { palette.completions.len() } else { palette_actions(context, &palette.text).len() };
    match key {
        Key::Escape => state.popup = None,
        Key::Down => palette.selected = (palette.selected + 1).min(count.saturating_sub(1)),
        Key::Up => palette.selected = palette.selected.saturating_sub(1),
        Key::Tab if is_command => {
            if let Some((choice, _)) = palette.completions.get(palette.selected) {
                let kept = palette.text.rfind(char::is_whitespace).map_or(1, |space| space + 1);
                palette.text.truncate(kept);
                palette.text.push_str(&format!("{choice} "));
                return complete(palette, state.sessions.as_deref().unwrap_or_default());
            }
        }
        Key::Enter if is_command => {
            let text = std::mem::take(&mut palette.text);
            state.popup = None;
            return command(state, &text);
        }
        Key::Enter => {
            let action = palette_actions(context, &palette.text).get(palette.selected).map(|info| info.action);
            state.popup = None;
            return action.map(|action| super::perform(state, action)).unwrap_or_default();
        }
        _ if super::edit(&mut palette.text, key) => {
            palette.selected = 0;
            return complete(palette, state.sessions.as_deref().unwrap_or_default());
        }
        _ => {}
    }
    Vec::new()
}

/// Completes the name of a session after `@`.
fn complete_name(palette: &mut Palette, sessions: &[Session]) {
    let Some(typed) = palette.text.strip_prefix('@').filter(|rest| !rest.contains(char::is_whitespace)) else { return };
    let named = sessions.iter().filter_map(|session| Some((session.view.name.as_ref()?, &session.view.title)));
    let fits = named.filter(|(name, _)| name.as_str().starts_with(typed));
    let row = |(name, title): (&SessionName, &Option<String>)| (name.to_string(), title.clone().unwrap_or_default());
    palette.completions = fits.take(NAMES).map(row).collect();
}

/// Requests completions for the last word of a command.
fn complete(palette: &mut Palette, sessions: &[Session]) -> Vec<Effect> {
    palette.completions.clear();
    complete_name(palette, sessions);
    let Some(line) = palette.text.strip_prefix(':') else { return Vec::new() };
    let mut words = words_of(line);
    if line.is_empty() || line.ends_with(char::is_whitespace) {
        words.push(String::new());
    }
    vec![Effect::CompleteCommand(words)]
}

pub(super) fn completed(state: &mut State, words: &[String], choices: Vec<(String, String)>) -> Vec<Effect> {
    if let Some(Popup::Palette(palette)) = &mut state.popup {
        let line = palette.text.strip_prefix(':').unwrap_or_default();
        let mut now = words_of(line);
        if line.is_empty() || line.ends_with(char::is_whitespace) {
            now.push(String::new());
        }
        if now == words {
            (palette.completions, palette.selected) = (choices, 0);
        }
    }
    Vec::new()
}

/// Runs a command line: `:fork auth@3 cookies -w` as in a shell, `@auth text` sends a message.
fn command(state: &mut State, text: &str) -> Vec<Effect> {
    if let Some((name, message)) = text.strip_prefix('@').and_then(|rest| rest.split_once(char::is_whitespace)) {
        return vec![Effect::Run(vec!["send".to_owned(), name.to_owned(), message.trim().to_owned()])];
    }
    let words = words_of(text.trim_start_matches([':', '@']));
    match words.first().map(String::as_str) {
        None => Vec::new(),
        Some("q" | "quit") => super::perform(state, Action::Quit),
        // These need the terminal.
        Some("mcp" | "demo" | "events" | "setup") => {
            super::refuse(state, format!("`{}` doesn't work here", words.join(" ")), Some("run it in a shell"))
        }
        Some(_) => vec![Effect::Run(words)],
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
                state.message = Some(Message::Failed(ErrorText { message: error.to_string(), hint: None }));
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
        state.message = Some(Message::Failed(ErrorText { message: one_line(message), hint }));
    } else if lines.len() <= 1 {
        state.message = Some(Message::Done(one_line(&text)));
    } else {
        state.popup = Some(Popup::Output { title: one_line(&words.join(" ")), lines, top: 0 });
    }
    vec![Effect::LoadSessions]
}

#[cfg(test)]
mod tests {
    use super::words_of;

    #[test]
    fn a_command_line_is_split_as_in_a_shell() {
        let check = |line: &str, expected: &[&str]| assert_eq!(words_of(line), expected, "{line}");
        check("fork auth@3 cookies -w", &["fork", "auth@3", "cookies", "-w"]);
        check("  send auth \"two words\" a' b'c", &["send", "auth", "two words", "a bc"]);
        check("start \"\"", &["start", ""]);
        check("", &[]);
    }
}
