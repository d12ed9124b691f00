//! Keys, in one form for all the encodings that terminals use.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers. Shift is part of the character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// A character with Alt.
    Alt(char),
    Enter,
    Escape,
    Backspace,
    Delete,
    Tab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// A function key.
    Function(u8),
    /// One that the workbench doesn't use.
    Other,
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        let has = |modifier| event.modifiers.contains(modifier);
        match event.code {
            // Alt+Shift+F arrives as `F` with Alt and Shift, as `f` with Alt and Shift, and as `F` with Alt.
            KeyCode::Char(c) if has(KeyModifiers::ALT) && has(KeyModifiers::SHIFT) => Key::Alt(upper(c)),
            KeyCode::Char(c) if has(KeyModifiers::ALT) => Key::Alt(c),
            KeyCode::Char(c) if has(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
            KeyCode::Char(c) if has(KeyModifiers::SHIFT) => Key::Char(upper(c)),
            KeyCode::Char(c) => Key::Char(c),
            KeyCode::Enter => Key::Enter,
            KeyCode::Esc => Key::Escape,
            KeyCode::Backspace => Key::Backspace,
            KeyCode::Delete => Key::Delete,
            KeyCode::Tab => Key::Tab,
            KeyCode::Up => Key::Up,
            KeyCode::Down => Key::Down,
            KeyCode::Left => Key::Left,
            KeyCode::Right => Key::Right,
            KeyCode::PageUp => Key::PageUp,
            KeyCode::PageDown => Key::PageDown,
            KeyCode::Home => Key::Home,
            KeyCode::End => Key::End,
            KeyCode::F(number) => Key::Function(number),
            _ => Key::Other,
        }
    }
}

fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alt_shift_f_is_one_key_in_every_encoding() {
        let check = |code: char, modifiers: KeyModifiers, expected: Key| {
            assert_eq!(Key::from(KeyEvent::new(KeyCode::Char(code), modifiers)), expected);
        };
        check('F', KeyModifiers::ALT | KeyModifiers::SHIFT, Key::Alt('F'));
        check('f', KeyModifiers::ALT | KeyModifiers::SHIFT, Key::Alt('F'));
        check('F', KeyModifiers::ALT, Key::Alt('F'));
        check('f', KeyModifiers::ALT, Key::Alt('f'));
        check('g', KeyModifiers::SHIFT, Key::Char('G'));
        check('G', KeyModifiers::NONE, Key::Char('G'));
        check('C', KeyModifiers::CONTROL | KeyModifiers::SHIFT, Key::Ctrl('c'));
    }
}
