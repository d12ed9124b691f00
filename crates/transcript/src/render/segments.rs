//! Long Markdown in segments that can be parsed one after the other, so that memory stays small.
//!
//! The parser builds a tree of the whole text, which takes many times the size of the text. Blocks at the top level don't
//! depend on what follows them, so a text can be cut between any two of them without a change in what is shown. Only two
//! things are lost in texts that are longer than one segment: a link doesn't find its reference in another segment, and a
//! single list, table or paragraph that is longer than a segment is cut inside.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::prose::OPTIONS;
use crate::text::prefix;

/// How many bytes are parsed together.
const LARGEST: usize = 64 << 10;

/// A part of a text that is parsed on its own.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether it starts inside the block that the segment before it ends with.
    pub(super) continues: bool,
}

/// The segments of `markdown`, in order.
pub(super) fn segments(markdown: &str) -> impl Iterator<Item = Segment<'_>> {
    segments_of(markdown, LARGEST)
}

fn segments_of(markdown: &str, largest: usize) -> impl Iterator<Item = Segment<'_>> {
    Segments { rest: markdown, largest, fence: None, continues: false }
}

struct Segments<'a> {
    rest: &'a str,
    largest: usize,
    /// The fence of a block of code that is longer than a segment, while it is open.
    fence: Option<Fence<'a>>,
    /// Whether the next segment starts inside a block.
    continues: bool,
}

/// How a fenced block of code begins.
#[derive(Clone, Copy)]
pub(super) struct Fence<'a> {
    /// The whole line, with its line break.
    pub(super) line: &'a str,
    /// What ends the block, at least.
    pub(super) mark: &'a str,
}

impl<'a> Fence<'a> {
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let line = text.split_inclusive('\n').next().filter(|line| line.ends_with('\n'))?;
        let start = line.trim_start_matches(' ');
        let mark = start.trim_start_matches(start.chars().next()?);
        Some(Fence { line, mark: &start[..start.len() - mark.len()] })
    }

    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let mark = line.trim_start_matches(' ');
        let rest = mark.trim_start_matches(self.mark.chars().next().unwrap_or('`'));
        line.len() - mark.len() < 4 && mark.len() - rest.len() >= self.mark.len() && rest.trim().is_empty()
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let continues = std::mem::take(&mut self.continues);
        if let Some(fence) = self.fence {
            return Some(Segment { text: self.code(fence).into(), continues: true });
        }
        if self.rest.len() <= self.largest {
            return Some(Segment { text: std::mem::take(&mut self.rest).into(), continues });
        }
        let window = window(self.rest, self.largest);
        let length = match last_block(window) {
            Some((start, _)) if start > 0 => start,
            Some((_, true)) if let Some(fence) = Fence::of(window) => {
                self.rest = &self.rest[fence.line.len()..];
                self.fence = Some(fence);
                return Some(Segment { text: self.code(fence).into(), continues });
            }
            Some(_) => {
                self.continues = true;
                place_to_cut(window)
            }
            None => window.len(),
        };
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(Segment { text: text.into(), continues })
    }
}

impl Segments<'_> {
    /// Takes the next lines of a code block that is longer than a segment, and makes them a separate block.
    fn code(&mut self, fence: Fence<'_>) -> String {
        let window = window(self.rest, self.largest);
        let mut length = 0;
        for line in window.split_inclusive('\n') {
            if fence.is_closed_by(line) {
                let code = format!("{}{}{line}", fence.line, &window[..length]);
                self.rest = &self.rest[length + line.len()..];
                self.fence = None;
                return code;
            }
            length += line.len();
        }
        self.rest = &self.rest[length..];
        if self.rest.is_empty() {
            // It is open at the end of the text, and stays open.
            return format!("{}{window}", fence.line);
        }
        format!("{}{}\n{}", fence.line, window.strip_suffix('\n').unwrap_or(window), fence.mark)
    }
}

/// The first lines of a text, or the first part of its first line if that is too long.
///
/// The last line is the first one past the limit that isn't blank: it shows whether the block before it has ended.
fn window(text: &str, largest: usize) -> &str {
    let mut end = prefix(text, largest).rfind('\n').map_or(0, |end| end + 1);
    for line in text[end..].split_inclusive('\n') {
        if end + line.len() > largest * 2 {
            break;
        }
        end += line.len();
        if end > largest && !line.trim().is_empty() {
            break;
        }
    }
    // A character has up to 4 bytes.
    if end == 0 { prefix(text, largest.max(4)) } else { &text[..end] }
}

/// Where the line starts in which the last block at the top level begins, and whether that is fenced code.
pub(super) fn last_block(markdown: &str) -> Option<(usize, bool)> {
    let (mut depth, mut last) = (0usize, None);
    for (event, range) in Parser::new_ext(markdown, OPTIONS).into_offset_iter() {
        let is_fenced = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
        if depth == 0 && !matches!(event, Event::End(_)) {
            last = Some((range.start, is_fenced));
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let line_start = |at: usize| markdown[..at].rfind('\n').map_or(0, |end| end + 1);
    last.map(|(start, is_fenced)| (line_start(start), is_fenced))
}

/// Where to cut a block that is too long: before a line that isn't indented, such as the next item of a list, else at the
/// end of a line, else at a space.
fn place_to_cut(window: &str) -> usize {
    let half = window.ceil_char_boundary(window.len() / 2);
    let late = &window[half..];
    let item =
        late.rmatch_indices('\n').map(|(at, _)| at + 1).find(|at| late[*at..].starts_with(|c| c != ' ' && c != '\n'));
    let place = item.or_else(|| late.rfind('\n').map(|at| at + 1)).or_else(|| late.rfind(' ').map(|at| at + 1));
    place.map_or(window.len(), |at| half + at)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A renderer's output must be the same whether Markdown comes as a whole or in segments.
    pub(in crate::render) fn check_segments<T: PartialEq + std::fmt::Debug>(
        render: impl Fn(&mut dyn Iterator<Item = Segment<'_>>) -> T,
    ) {
        let pieces = prop::sample::select(vec![
            "\n",
            "\n\n",
            " ",
            "    ",
            "```",
            "```\n",
            "\n~~~\n",
            "`",
            "**",
            "- ",
            "\n- ",
            "\n  - ",
            "\n1. ",
            "> ",
            "\n# ",
            "|",
            "\n|-|\n",
            "<",
            "<!--",
            "-->",
            "\n<pre>\n",
            "[",
            "](",
            "http://a.b",
            "\n---\n",
            "\n===\n",
            "漢字",
            "a",
            "word",
            "one two three four\n\n",
        ]);
        let markdown = prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat());
        proptest!(ProptestConfig::with_cases(2000), |(markdown in markdown, largest in 20usize..120)| {
            // What is longer than a segment is cut inside, which shows.
            if segments_of(&markdown, largest).all(|segment| !segment.continues) {
                let whole = render(&mut segments_of(&markdown, usize::MAX));
                prop_assert_eq!(render(&mut segments_of(&markdown, largest)), whole, "{:?}", markdown);
            }
        });
    }

    fn cut(markdown: &str, largest: usize) -> Vec<(String, bool)> {
        segments_of(markdown, largest).map(|segment| (segment.text.into_owned(), segment.continues)).collect()
    }

    #[test]
    fn blocks_stay_whole_where_they_fit() {
        let check = |markdown: &str, largest: usize, expected: &[(&str, bool)]| {
            let expected: Vec<_> = expected.iter().map(|(text, continues)| ((*text).to_owned(), *continues)).collect();
            assert_eq!(cut(markdown, largest), expected, "{markdown:?} in {largest}");
        };
        check("", 8, &[]);
        check("one\n\ntwo", 8, &[("one\n\ntwo", false)]);
        check("one\n\ntwo\n\nthree", 8, &[("one\n\n", false), ("two\n\n", false), ("three", false)]);
        check("    a\n\n    b\n\nc\n\nd", 14, &[("    a\n\n    b\n\n", false), ("c\n\nd", false)]);
        // What is longer than a segment.
        check("- a\n- b\n- c\n- d", 9, &[("- a\n- b\n", false), ("- c\n- d", true)]);
        check("- a\n\n  b\n- c\n\n  d", 12, &[("- a\n\n  b\n", false), ("- c\n\n  d", true)]);
        check("one word and another", 9, &[("one word ", false), ("and another", true)]);
        check("漢字漢字漢字", 7, &[("漢字", false), ("漢字漢字", true)]);
    }

    #[test]
    fn long_code_stays_code() {
        let check = |code: &str, largest: usize, expected: &[&str]| {
            let cut: Vec<String> = cut(code, largest).into_iter().map(|(text, _)| text).collect();
            assert_eq!(cut, expected, "{code:?}");
        };
        let code = "```rust\nfn a() {}\n\n# b\n~~~\n````\nafter";
        check(code, 18, &["```rust\nfn a() {}\n\n# b\n~~~\n```", "```rust\n````\n", "after"]);
        check("~~~\nabc\ndef\nghi", 5, &["~~~\nabc\ndef\n~~~", "~~~\nghi"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(markdown in "([ab\n >-]|漢|\n\n|- |[|]a\n){0,60}", largest in 1usize..40) {
            let whole: String = cut(&markdown, largest).into_iter().map(|(text, _)| text).collect();
            prop_assert_eq!(whole, markdown);
        }
    }
}
