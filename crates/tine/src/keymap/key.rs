//! Keys, in one form for all the encodings that terminals use.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers. Shift is part of the character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A character.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// A character with Alt.
    Alt(char),
    Enter,
    /// Enter with Alt or Shift.
    AltEnter,
    Escape,
    Backspace,
    Delete,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    AltUp,
    AltDown,
    AltLeft,
    AltRight,
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
            KeyCode::Enter if has(KeyModifiers::ALT) || has(KeyModifiers::SHIFT) => Key::AltEnter,
            KeyCode::Enter => Key::Enter,
            KeyCode::Esc => Key::Escape,
            KeyCode::Backspace => Key::Backspace,
            KeyCode::Delete => Key::Delete,
            KeyCode::BackTab => Key::BackTab,
            KeyCode::Tab if has(KeyModifiers::SHIFT) => Key::BackTab,
            KeyCode::Tab => Key::Tab,
            KeyCode::Up if has(KeyModifiers::ALT) => Key::AltUp,
            KeyCode::Down if has(KeyModifiers::ALT) => Key::AltDown,
            KeyCode::Left if has(KeyModifiers::ALT) => Key::AltLeft,
            KeyCode::Right if has(KeyModifiers::ALT) => Key::AltRight,
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

/// The names of keys that are not characters.
const NAMES: &[(&str, Key)] = &[
    ("enter", Key::Enter),
    ("alt+enter", Key::AltEnter),
    ("esc", Key::Escape),
    ("backspace", Key::Backspace),
    ("delete", Key::Delete),
    ("tab", Key::Tab),
    ("backtab", Key::BackTab),
    ("up", Key::Up),
    ("down", Key::Down),
    ("left", Key::Left),
    ("right", Key::Right),
    ("alt+up", Key::AltUp),
    ("alt+down", Key::AltDown),
    ("alt+left", Key::AltLeft),
    ("alt+right", Key::AltRight),
    ("pageup", Key::PageUp),
    ("pagedown", Key::PageDown),
    ("home", Key::Home),
    ("end", Key::End),
    ("space", Key::Char(' ')),
];

impl Key {
    /// A key as written in the configuration, such as `f`, `ctrl+p`, `alt+shift+f` or `f1`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        if let Some((_, key)) = NAMES.iter().find(|(name, _)| *name == lower) {
            return Some(*key);
        }
        let single = |text: &str| {
            let mut chars = text.chars();
            chars.next().filter(|c| chars.next().is_none() && !c.is_control() && *c != ' ')
        };
        if let Some(rest) = lower.strip_prefix("alt+shift+") {
            return single(rest).map(|c| Key::Alt(upper(c)));
        }
        if let Some(rest) = lower.strip_prefix("ctrl+") {
            return single(rest).map(Key::Ctrl);
        }
        if lower.starts_with("alt+") {
            return single(text.get(4..)?).map(Key::Alt);
        }
        let number = lower.strip_prefix('f').and_then(|number| number.parse().ok());
        match number.filter(|number| (1..=12).contains(number)) {
            Some(number) => Some(Key::Function(number)),
            None => single(text).map(Key::Char),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMES.iter().find(|(_, key)| key == self) {
            return f.write_str(name);
        }
        match self {
            Key::Char(c) => write!(f, "{c}"),
            Key::Ctrl(c) => write!(f, "ctrl+{c}"),
            Key::Alt(c) if c.is_uppercase() => write!(f, "alt+shift+{}", c.to_lowercase()),
            Key::Alt(c) => write!(f, "alt+{c}"),
            Key::Function(number) => write!(f, "f{number}"),
            _ => f.write_str("?"),
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

    #[test]
    fn keys_are_written_as_they_are_read() {
        for name in
            ["f", "G", "?", "ctrl+p", "alt+f", "alt+shift+f", "f1", "f12", "esc", "space", "alt+up", "[", "backtab"]
        {
            let key = Key::parse(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(key.to_string(), name);
        }
        for wrong in ["", "ff", "hyper+f", "ctrl+", "f13", "alt+shift+"] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
    }
}
