//! The prompt box.

use engine::chat::Image;
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, Input, Key as AreaKey, TextArea, WrapMode};
use transcript::text::width;

use crate::keymap::Key;

/// The text being written.
pub(crate) struct PromptBox {
    pub area: TextArea<'static>,
    /// Pictures to send with it.
    pub images: Vec<Image>,
    /// Earlier prompts, oldest first.
    history: Vec<String>,
    /// The shown position in the history, and the text from before.
    recalled: Option<(usize, String)>,
    /// Completions for the word at the cursor.
    pub completion: Option<Completion>,
}

/// Completions for a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The word so far, with the mark before it.
    pub word: String,
    /// Replacements, each with a description.
    pub choices: Vec<(String, String)>,
    /// The selected one.
    pub selected: usize,
}

impl PromptBox {
    pub(crate) fn new() -> Self {
        PromptBox { area: area(""), images: Vec::new(), history: Vec::new(), recalled: None, completion: None }
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty() && self.images.is_empty()
    }

    /// Replaces the text.
    pub(crate) fn set(&mut self, text: &str) {
        self.area = area(text);
        (self.recalled, self.completion) = (None, None);
    }

    /// Takes the text, and adds it to the history.
    pub(crate) fn take(&mut self) -> (String, Vec<Image>) {
        let text = self.text();
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        self.set("");
        (text, std::mem::take(&mut self.images))
    }

    /// Adds a prompt from before the chat was opened to the history.
    pub(crate) fn remember(&mut self, text: String) {
        self.history.push(text);
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.area.insert_str(text);
        self.completion = None;
    }

    pub(crate) fn newline(&mut self) {
        self.area.insert_newline();
        self.completion = None;
    }

    /// Handles a key. Returns whether the box used it.
    pub(crate) fn press(&mut self, key: Key) -> bool {
        if let Some(completion) = &mut self.completion {
            let last = completion.choices.len().saturating_sub(1);
            match key {
                Key::Down => completion.selected = (completion.selected + 1).min(last),
                Key::Up => completion.selected = completion.selected.saturating_sub(1),
                Key::Tab | Key::Enter => self.complete(),
                Key::Escape => self.completion = None,
                _ => return self.edit(key),
            }
            return true;
        }
        let (row, _) = self.cursor();
        match key {
            Key::Up if row == 0 => self.recall(true),
            Key::Down if row + 1 == self.area.lines().len() && self.recalled.is_some() => self.recall(false),
            _ => self.edit(key),
        }
    }

    fn edit(&mut self, key: Key) -> bool {
        let Some(input) = input(key) else { return false };
        self.area.input(input);
        self.recalled = None;
        self.completion = None;
        true
    }

    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// Shows an earlier prompt, or a later one. Returns whether there is one.
    fn recall(&mut self, earlier: bool) -> bool {
        let now = self.recalled.as_ref().map_or(self.history.len(), |(place, _)| *place);
        let place = if earlier { now.checked_sub(1) } else { Some(now + 1) };
        let Some(place) = place.filter(|place| *place <= self.history.len()) else { return true };
        let draft = self.recalled.take().map_or_else(|| self.text(), |(_, draft)| draft);
        match self.history.get(place) {
            Some(text) => {
                self.area = area(text);
                self.recalled = Some((place, draft));
            }
            None => self.area = area(&draft),
        }
        true
    }

    /// The word before the cursor, if it starts with `@`, or the whole text if it starts with `/`.
    pub(crate) fn word(&self) -> Option<String> {
        let (row, column) = self.cursor();
        let line = self.area.lines().get(row)?;
        let before: String = line.chars().take(column).collect();
        if row == 0 && before.starts_with('/') && !before.contains(' ') {
            return Some(before);
        }
        before.rsplit(char::is_whitespace).next().filter(|word| word.starts_with('@')).map(str::to_owned)
    }

    /// Offers completions for the word at the cursor.
    pub(crate) fn offer(&mut self, word: String, choices: Vec<(String, String)>) {
        self.completion = (!choices.is_empty()).then_some(Completion { word, choices, selected: 0 });
    }

    fn complete(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let Some((choice, _)) = completion.choices.into_iter().nth(completion.selected) else { return };
        let length = completion.word.chars().count();
        for _ in 0..length {
            self.area.delete_char();
        }
        self.area.insert_str(format!("{choice} "));
    }

    /// The rows that it needs at this width.
    pub(crate) fn height(&self, columns: u16) -> u16 {
        let columns = usize::from(columns.max(1));
        let rows: usize = self.area.lines().iter().map(|line| width(line) / columns + 1).sum();
        u16::try_from(rows).unwrap_or(u16::MAX)
    }
}

fn area(text: &str) -> TextArea<'static> {
    let lines = transcript::text::clean(text).split('\n').map(str::to_owned).collect();
    let mut area = TextArea::new(lines);
    area.set_cursor_line_style(Style::default());
    // The terminal's own cursor marks the place, so that input methods find it.
    area.set_cursor_style(Style::default());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

fn input(key: Key) -> Option<Input> {
    let plain = |key| Some(Input { key, ctrl: false, alt: false, shift: false });
    match key {
        Key::Char(c) => plain(AreaKey::Char(c)),
        Key::Ctrl(c) => Some(Input { key: AreaKey::Char(c), ctrl: true, alt: false, shift: false }),
        Key::Alt(c) => Some(Input { key: AreaKey::Char(c), ctrl: false, alt: true, shift: false }),
        Key::Backspace => plain(AreaKey::Backspace),
        Key::Delete => plain(AreaKey::Delete),
        Key::Up => plain(AreaKey::Up),
        Key::Down => plain(AreaKey::Down),
        Key::Left => plain(AreaKey::Left),
        Key::Right => plain(AreaKey::Right),
        Key::Home => plain(AreaKey::Home),
        Key::End => plain(AreaKey::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_text(prompt: &mut PromptBox, text: &str) {
        text.chars().for_each(|c| assert!(prompt.press(Key::Char(c))));
    }

    #[test]
    fn earlier_prompts_are_recalled_and_the_draft_is_kept() {
        let mut prompt = PromptBox::new();
        for text in ["one", "two"] {
            type_text(&mut prompt, text);
            assert_eq!(prompt.take().0, text);
        }
        type_text(&mut prompt, "draft");
        let mut shown = |key| {
            prompt.press(key);
            prompt.text()
        };
        assert_eq!([Key::Up, Key::Up, Key::Up].map(&mut shown), ["two", "one", "one"]);
        assert_eq!([Key::Down, Key::Down].map(&mut shown), ["two", "draft"]);
    }

    #[test]
    fn a_word_is_completed_where_the_cursor_is() {
        let mut prompt = PromptBox::new();
        type_text(&mut prompt, "look at @src/ma");
        assert_eq!(prompt.word().as_deref(), Some("@src/ma"));
        prompt.offer("@src/ma".to_owned(), vec![("@src/main.rs".to_owned(), String::new())]);
        assert!(prompt.press(Key::Tab));
        assert_eq!(prompt.text(), "look at @src/main.rs ");
        prompt.set("/co");
        assert_eq!(prompt.word().as_deref(), Some("/co"));
        prompt.set("a /co");
        assert_eq!(prompt.word(), None);
    }

    #[test]
    fn pasted_control_characters_are_removed() {
        let mut prompt = PromptBox::new();
        prompt.set("a\u{1b}[31mb\nc");
        assert_eq!(prompt.text(), "ab\nc");
        assert_eq!(prompt.height(80), 2);
    }
}
