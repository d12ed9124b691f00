//! Code in the colours of the terminal's theme.

use super::paint::{Line, Span, TextStyle};
use crate::text::clean;

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePart {
    /// Nothing in particular.
    Plain,
    /// A comment.
    Comment,
    /// A text.
    Text,
    /// A keyword, or another word of the language itself.
    Keyword,
    /// A number or another constant.
    Value,
}

/// Splits code in a language into lines, and these into pieces. `None` if it can't, for example because it doesn't know
/// the language.
pub type Highlighter = fn(language: &str, code: &str) -> Option<Vec<Vec<(CodePart, String)>>>;

impl CodePart {
    /// Each is readable on light and on dark backgrounds in the usual themes, so there is neither yellow nor blue.
    fn style(self) -> TextStyle {
        match self {
            CodePart::Plain => TextStyle::PLAIN,
            CodePart::Comment => TextStyle::DIM.and(TextStyle::ITALIC),
            CodePart::Text => TextStyle::GREEN,
            CodePart::Keyword => TextStyle::MAGENTA,
            CodePart::Value => TextStyle::CYAN,
        }
    }
}

/// The lines of a block of code. Its text is what it is without colours.
pub(super) fn code_lines(language: &str, code: &str, highlight: Option<Highlighter>) -> Vec<Line> {
    let code = clean(code);
    let code = code.strip_suffix('\n').unwrap_or(&code);
    let plain = || code.split('\n').map(|line| vec![Span::new(format!("    {line}"), TextStyle::CYAN)]).collect();
    let Some(lines) = highlight.and_then(|highlight| highlight(language, code)) else { return plain() };
    let text = |line: &[(CodePart, String)]| line.iter().map(|(_, text)| text.as_str()).collect::<String>();
    if lines.len() != code.split('\n').count()
        || lines.iter().zip(code.split('\n')).any(|(one, other)| text(one) != other)
    {
        return plain();
    }
    let colored = |line: Vec<(CodePart, String)>| {
        let spans = line.into_iter().map(|(part, text)| Span::new(text, part.style()));
        std::iter::once(Span::plain("    ")).chain(spans).collect()
    };
    lines.into_iter().map(colored).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_never_change_the_text() {
        let text = |highlight| -> Vec<String> {
            let lines = code_lines("rust", "let a = 1;\n\nb\n", highlight);
            lines.iter().map(|line| line.iter().map(|span| span.text.as_str()).collect()).collect()
        };
        let expected = ["    let a = 1;", "    ", "    b"];
        assert_eq!(text(None), expected);
        let part = |text: &str| (CodePart::Keyword, text.to_owned());
        fn ok(_: &str, code: &str) -> Option<Vec<Vec<(CodePart, String)>>> {
            Some(code.split('\n').map(|line| vec![(CodePart::Value, line.to_owned())]).collect())
        }
        fn wrong(_: &str, _: &str) -> Option<Vec<Vec<(CodePart, String)>>> {
            Some(vec![Vec::new(), Vec::new(), vec![(CodePart::Value, "\u{1b}[2J".to_owned())]])
        }
        assert_eq!(part("x").0.style(), TextStyle::MAGENTA);
        assert_eq!(text(Some(ok)), expected);
        assert_eq!(text(Some(wrong)), expected);
    }
}
