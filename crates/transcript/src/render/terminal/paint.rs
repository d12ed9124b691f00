//! Text with a look, and the escape sequences that give it that look. Without colour none is written.

/// How a piece of text looks: any of the looks below together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TextStyle(u16);

impl TextStyle {
    pub(super) const PLAIN: TextStyle = TextStyle(0);
    pub(super) const BOLD: TextStyle = TextStyle(1);
    pub(super) const DIM: TextStyle = TextStyle(1 << 1);
    pub(super) const ITALIC: TextStyle = TextStyle(1 << 2);
    pub(super) const UNDERLINE: TextStyle = TextStyle(1 << 3);
    pub(super) const STRUCK: TextStyle = TextStyle(1 << 4);
    pub(super) const RED: TextStyle = TextStyle(1 << 5);
    pub(super) const CYAN: TextStyle = TextStyle(1 << 6);
    pub(super) const GREEN: TextStyle = TextStyle(1 << 7);
    pub(super) const MAGENTA: TextStyle = TextStyle(1 << 8);

    /// What each bit is to a terminal.
    const CODES: [u8; 9] = [1, 2, 3, 4, 9, 31, 36, 32, 35];

    /// Both looks together.
    pub(super) fn and(self, other: TextStyle) -> TextStyle {
        TextStyle(self.0 | other.0)
    }

    fn sequence(self) -> String {
        let set = Self::CODES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let codes: Vec<String> = set.map(|(_, code)| code.to_string()).collect();
        format!("\u{1b}[{}m", codes.join(";"))
    }
}

/// Some text of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) look: TextStyle,
}

impl Span {
    pub(super) fn new(text: impl Into<String>, look: TextStyle) -> Self {
        Span { text: text.into(), look }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Span::new(text, TextStyle::PLAIN)
    }
}

/// A line of text. Invariant: its text is clean and has no line breaks.
pub(super) type Line = Vec<Span>;

/// Adds text to a line, to the last span where the look is the same.
pub(super) fn push(line: &mut Line, text: &str, look: TextStyle) {
    match line.last_mut() {
        Some(last) if last.look == look => last.text.push_str(text),
        _ => line.push(Span::new(text, look)),
    }
}

/// The line as written, without trailing blanks. Every style ends within the line, so that a pager may start anywhere.
pub(super) fn painted(line: &[Span], color: bool) -> String {
    let mut out = String::new();
    let content = line.iter().rposition(|span| !span.text.trim_end().is_empty()).map_or(0, |last| last + 1);
    for span in &line[..content] {
        if color && span.look != TextStyle::PLAIN {
            out.push_str(&span.look.sequence());
            out.push_str(&span.text);
            out.push_str("\u{1b}[0m");
        } else {
            out.push_str(&span.text);
        }
    }
    if !color {
        out.truncate(out.trim_end().len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_end_with_their_text() {
        let line = vec![Span::plain("a "), Span::new("b", TextStyle::BOLD.and(TextStyle::RED)), Span::plain(" ")];
        assert_eq!(painted(&line, true), "a \u{1b}[1;31mb\u{1b}[0m");
        assert_eq!(painted(&line, false), "a b");
    }
}
