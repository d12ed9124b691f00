//! Breaking lines: prose at words, output at columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::paint::{Line, Look, Span, push};

/// Breaks `spans` at white space into lines of at most `width` columns.
///
/// A word that is longer than a line stays whole, so that an address can still be copied. Wide characters, as in
/// Chinese and Japanese, are words of their own, but for marks that may not begin a line.
pub(super) fn at_words(spans: &[Span], width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::new();
    let mut used = 0;
    for word in words(spans) {
        if used > 0 && used + word.gap + word.width > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 && word.gap > 0 {
            push(&mut line, &" ".repeat(word.gap), word.gap_look);
            used += word.gap;
        }
        for span in &word.spans {
            push(&mut line, &span.text, span.look);
        }
        used += word.width;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Breaks a line into pieces of at most `width` columns, wherever that is.
pub(super) fn at_columns(line: &str, width: usize) -> Vec<String> {
    if line.width() <= width {
        return vec![line.to_owned()];
    }
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut used = 0;
    for grapheme in line.graphemes(true) {
        let columns = grapheme.width();
        if used + columns > width && used > 0 {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push_str(grapheme);
        used += columns;
    }
    pieces.push(piece);
    pieces
}

/// Something that is not broken, and the white space before it.
#[derive(Default)]
struct Word {
    spans: Line,
    width: usize,
    gap: usize,
    gap_look: Look,
}

fn words(spans: &[Span]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut word = Word::default();
    let mut ends_wide = false;
    for span in spans {
        for grapheme in span.text.graphemes(true) {
            let columns = grapheme.width();
            let wide = columns > 1;
            if is_space(grapheme) {
                if !word.spans.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                word.gap += columns;
                word.gap_look = span.look;
                continue;
            }
            if !word.spans.is_empty() && (wide || ends_wide) && !may_not_begin_a_line(grapheme) {
                words.push(std::mem::take(&mut word));
            }
            push(&mut word.spans, grapheme, span.look);
            word.width += columns;
            ends_wide = wide;
        }
    }
    if !word.spans.is_empty() {
        words.push(word);
    }
    words
}

/// White space at which a line may be broken.
fn is_space(grapheme: &str) -> bool {
    grapheme.chars().all(|c| c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}'))
}

fn may_not_begin_a_line(grapheme: &str) -> bool {
    let closing = "。、，．・：；！？）］｝」』】》〉ー々…,.;:!?)]}'\"";
    grapheme.chars().next().is_some_and(|c| closing.contains(c)) || grapheme.width() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_at_words() {
        let check = |text: &str, width: usize, expected: &[&str]| {
            let lines: Vec<String> = at_words(&[Span::plain(text)], width)
                .into_iter()
                .map(|line| line.into_iter().map(|span| span.text).collect())
                .collect();
            assert_eq!(lines, expected, "{text:?} at {width}");
        };
        check("one two three", 7, &["one two", "three"]);
        check("one  two", 20, &["one  two"]);
        check("a unbreakable b", 6, &["a", "unbreakable", "b"]);
        check("漢字漢字。漢", 4, &["漢字", "漢", "字。", "漢"]);
        check("fixed\u{a0}space here", 11, &["fixed\u{a0}space", "here"]);
        check("", 5, &[""]);
        check("   ", 5, &[""]);
    }

    #[test]
    fn a_word_of_several_looks_stays_one_word() {
        let spans = [Span::plain("go to "), Span::new("bold", Look::BOLD), Span::plain("ly now")];
        let lines = at_words(&spans, 9);
        assert_eq!(lines[1], vec![Span::new("bold", Look::BOLD), Span::plain("ly")]);
    }

    #[test]
    fn output_is_broken_at_columns() {
        assert_eq!(at_columns("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(at_columns("漢字漢", 3), ["漢", "字", "漢"]);
        assert_eq!(at_columns("", 4), [""]);
    }
}
