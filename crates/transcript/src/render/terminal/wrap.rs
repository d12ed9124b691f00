//! Breaking lines: prose at words, output at columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::paint::{Line, Span, TextStyle, push};

/// Breaks `spans` at white space into lines of at most `width` columns.
///
/// A word that is longer than a line is not split, so that an address can still be copied. Wide characters, as in
/// Chinese and Japanese, are separate words, except for marks that may not start a line.
pub(super) fn at_words(spans: &[Span], width: usize) -> impl Iterator<Item = Line> {
    let mut words = words(spans);
    let mut next: Option<Word> = None;
    let mut is_first = true;
    std::iter::from_fn(move || {
        let mut line = Line::new();
        let mut used = 0;
        while let Some(word) = next.take().or_else(|| words.next()) {
            if used > 0 && used + word.gap + word.width > width {
                next = Some(word);
                break;
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
        let is_empty_text = std::mem::take(&mut is_first);
        (is_empty_text || !line.is_empty()).then_some(line)
    })
}

/// Breaks a line into pieces of at most `width` columns, wherever that is.
pub(super) fn at_columns(line: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut used = 0;
        for (at, grapheme) in line.grapheme_indices(true) {
            let columns = grapheme.width();
            if used + columns > width && used > 0 {
                rest = Some(&line[at..]);
                return Some(&line[..at]);
            }
            used += columns;
        }
        rest.take()
    })
}

/// Something that is not broken, and the white space before it.
#[derive(Default)]
struct Word {
    spans: Line,
    width: usize,
    gap: usize,
    gap_look: TextStyle,
}

fn words(spans: &[Span]) -> impl Iterator<Item = Word> {
    let mut graphemes = spans.iter().flat_map(|span| span.text.graphemes(true).map(|grapheme| (grapheme, span.look)));
    let mut word = Word::default();
    let mut ends_wide = false;
    std::iter::from_fn(move || {
        for (grapheme, look) in graphemes.by_ref() {
            let columns = grapheme.width();
            let mut ended = None;
            if is_space(grapheme) {
                if !word.spans.is_empty() {
                    ended = Some(std::mem::take(&mut word));
                }
                word.gap += columns;
                word.gap_look = look;
            } else {
                let wide = columns > 1;
                if !word.spans.is_empty() && (wide || ends_wide) && !may_not_begin_a_line(grapheme) {
                    ended = Some(std::mem::take(&mut word));
                }
                push(&mut word.spans, grapheme, look);
                word.width += columns;
                ends_wide = wide;
            }
            if ended.is_some() {
                return ended;
            }
        }
        let last = std::mem::take(&mut word);
        (!last.spans.is_empty()).then_some(last)
    })
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
        let spans = [Span::plain("go to "), Span::new("bold", TextStyle::BOLD), Span::plain("ly now")];
        let second = at_words(&spans, 9).nth(1).unwrap();
        assert_eq!(second, vec![Span::new("bold", TextStyle::BOLD), Span::plain("ly")]);
    }

    #[test]
    fn output_is_broken_at_columns() {
        let check = |line: &str, width: usize, expected: &[&str]| {
            assert_eq!(at_columns(line, width).collect::<Vec<_>>(), expected, "{line:?} at {width}");
        };
        check("abcdef", 4, &["abcd", "ef"]);
        check("漢字漢", 3, &["漢", "字", "漢"]);
        check("", 4, &[""]);
    }
}
