//! A transcript as lines for the screen, laid out by the renderer of `tine show`.
//!
//! That renderer writes lines with its own escape sequences for looks; here they become styles.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// A transcript, laid out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// Its lines.
    pub lines: Vec<Line<'static>>,
    /// Where each turn begins: the turn and the line.
    pub turns: Vec<(u32, usize)>,
}

/// A document without lines.
pub(crate) static EMPTY: Document = Document { lines: Vec::new(), turns: Vec::new() };

impl Document {
    /// Adds lines of the renderer, which belong to a turn.
    pub(crate) fn add(&mut self, turn: u32, text: &str) {
        let first = self.lines.len();
        let mut style = Style::default();
        self.lines.extend(text.lines().map(|line| styled(line, &mut style)));
        if turn > 0 && self.turns.last().is_none_or(|(last, _)| *last < turn) && self.lines.len() > first {
            // A blank line before a turn belongs to what comes before it.
            let is_blank = |line: &Line<'_>| line.spans.iter().all(|span| span.content.trim().is_empty());
            let blank = self.lines[first..].iter().take_while(|line| is_blank(line)).count();
            self.turns.push((turn, (first + blank).min(self.lines.len() - 1)));
        }
    }

    /// The turn at a line.
    pub(crate) fn turn_at(&self, line: usize) -> Option<u32> {
        let after = self.turns.partition_point(|(_, start)| *start <= line);
        self.turns[..after].last().map(|(turn, _)| *turn)
    }

    /// The line where a turn begins.
    pub(crate) fn line_of(&self, turn: u32) -> Option<usize> {
        self.turns.iter().find(|(own, _)| *own == turn).map(|(_, line)| *line)
    }
}

/// One line with its escape sequences turned into styles. PageStyle last until they are reset, across lines.
fn styled(line: &str, style: &mut Style) -> Line<'static> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some((text, after)) = rest.split_once("\u{1b}[") {
        push(&mut spans, text, *style);
        let Some((codes, after)) = after.split_once('m') else {
            rest = "";
            break;
        };
        for code in codes.split(';') {
            *style = apply(*style, code.parse().unwrap_or(0));
        }
        rest = after;
    }
    push(&mut spans, rest, *style);
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    if !text.is_empty() {
        spans.push(Span::styled(text.to_owned(), style));
    }
}

fn apply(style: Style, code: u8) -> Style {
    match code {
        0 => Style::default(),
        1 => style.add_modifier(Modifier::BOLD),
        2 => style.add_modifier(Modifier::DIM),
        3 => style.add_modifier(Modifier::ITALIC),
        4 => style.add_modifier(Modifier::UNDERLINED),
        7 => style.add_modifier(Modifier::REVERSED),
        9 => style.add_modifier(Modifier::CROSSED_OUT),
        22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
        23 => style.remove_modifier(Modifier::ITALIC),
        24 => style.remove_modifier(Modifier::UNDERLINED),
        29 => style.remove_modifier(Modifier::CROSSED_OUT),
        30..=37 => style.fg(Color::Indexed(code - 30)),
        39 => Style { fg: None, ..style },
        90..=97 => style.fg(Color::Indexed(code - 82)),
        _ => style,
    }
}

/// A buffer that a renderer writes and the workbench reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct RenderedText(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl RenderedText {
    /// The text written since it was last taken.
    pub(crate) fn take(&self) -> String {
        String::from_utf8_lossy(&self.0.take()).into_owned()
    }
}

impl std::io::Write for RenderedText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_styles() {
        let mut document = Document::default();
        document.add(1, "\n\u{1b}[1mbold\u{1b}[0m plain \u{1b}[31mred\nstill red\u{1b}[0m");
        let [_, first, second] = document.lines.as_slice() else { panic!("{document:?}") };
        assert_eq!(first.to_string(), "bold plain red");
        assert!(first.spans[0].style.add_modifier.contains(Modifier::BOLD));
        assert_eq!(first.spans[1].style, Style::default());
        assert_eq!(second.spans[0].style.fg, Some(Color::Indexed(1)));
        assert_eq!((document.line_of(1), document.turn_at(2), document.turn_at(0)), (Some(1), Some(1), None));
    }
}
