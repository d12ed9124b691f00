//! Markdown that arrives in pieces, as a model writes it.
//!
//! What is finished is laid out once. Only the last block can still change, so the cost of a piece depends on that block,
//! not on the whole answer. Whatever the pieces are, the lines are those of the whole text.

use super::paint::{Line, painted};
use super::prose::Layout;
use super::{LEAST_COLUMNS, PROSE_COLUMNS, Style};
use crate::render::segments::{Fence, Segment, last_block};
use crate::text::clean;

/// A block of code that is longer than this is laid out as it grows, instead of as a whole.
const LONG_CODE: usize = 2 << 10;

/// An answer that is still being written.
#[derive(Debug)]
pub struct StreamingText {
    columns: usize,
    color: bool,
    /// All of the text, as it arrived.
    raw: String,
    /// Whether blocks can be laid out before the text is complete.
    can_settle: bool,
    /// What isn't laid out for good yet, cleaned.
    rest: String,
    /// The block of code that `rest` continues: the line that opens it.
    fence: Option<String>,
    /// Whether `rest` continues a block.
    continues: bool,
    settled: Vec<String>,
    /// How often settled lines were replaced.
    revision: u64,
}

impl StreamingText {
    /// Nothing has arrived yet.
    pub fn new(style: &Style) -> Self {
        StreamingText {
            columns: style.width.clamp(LEAST_COLUMNS, PROSE_COLUMNS),
            color: style.color,
            raw: String::new(),
            can_settle: true,
            rest: String::new(),
            fence: None,
            continues: false,
            settled: Vec::new(),
            revision: 0,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) {
        self.raw.push_str(piece);
        // An escape sequence can be split between two pieces, and a link can refer to what follows much later.
        let is_split = |c: char| matches!(c, '\r' | '\u{1b}' | '\u{80}'..='\u{9f}');
        if self.can_settle && !piece.contains(is_split) {
            self.rest.push_str(&clean(piece));
            self.can_settle = !self.rest.contains("]:");
        } else {
            self.can_settle = false;
        }
        if self.can_settle {
            self.settle();
        } else {
            self.rest = clean(&self.raw);
            (self.fence, self.continues) = (None, false);
            self.revision += u64::from(!self.settled.is_empty());
            self.settled.clear();
        }
    }

    /// The text, as it arrived.
    pub fn text(&self) -> &str {
        &self.raw
    }

    /// The final lines, and a number that changes if they change after all.
    pub fn settled(&self) -> (&[String], u64) {
        (&self.settled, self.revision)
    }

    /// The lines that follow them for now.
    pub fn unsettled(&self) -> Vec<String> {
        let text = match &self.fence {
            Some(fence) => format!("{fence}{}", self.rest),
            None => self.rest.clone(),
        };
        self.laid_out(&text, self.continues)
    }

    /// Lays out what is finished: all blocks but the last one, and the lines of long code. A line that isn't complete can
    /// still turn out to belong to the block before it.
    fn settle(&mut self) {
        loop {
            let complete = self.rest.rfind('\n').map_or(0, |end| end + 1);
            let complete = &self.rest[..complete];
            if let Some(fence) = self.fence.clone() {
                let Some(mark) = Fence::of(&fence) else { return };
                let mut end = 0;
                let closing = complete.split_inclusive('\n').find(|line| {
                    end += line.len();
                    mark.is_closed_by(line)
                });
                if end == 0 {
                    return;
                }
                let (code, is_closed) = (self.rest[..end].to_owned(), closing.is_some());
                // Without its end, the block would take the line break that its last line has.
                let close = if is_closed { "" } else { mark.mark };
                let lines = self.laid_out(&format!("{fence}{code}{close}"), true);
                self.settled.extend(lines);
                self.rest.drain(..end);
                self.continues = !is_closed;
                self.fence = self.fence.take().filter(|_| !is_closed);
                if is_closed {
                    continue;
                }
                return;
            }
            match last_block(complete) {
                Some((start, _)) if start > 0 => {
                    let lines = self.laid_out(&self.rest[..start], self.continues);
                    self.settled.extend(lines);
                    self.rest.drain(..start);
                    self.continues = false;
                }
                Some((_, true)) if complete.len() > LONG_CODE => {
                    let Some(fence) = Fence::of(complete).map(|fence| fence.line.to_owned()) else { return };
                    // The blank line before the block comes with its first line of code.
                    let first = complete[fence.len()..].split_inclusive('\n').next().unwrap_or_default().to_owned();
                    let mark = Fence::of(&fence).map(|fence| fence.mark.to_owned()).unwrap_or_default();
                    if Fence::of(&fence).is_some_and(|fence| fence.is_closed_by(&first)) {
                        return;
                    }
                    let lines = self.laid_out(&format!("{fence}{first}{mark}"), self.continues);
                    self.settled.extend(lines);
                    self.rest.drain(..fence.len() + first.len());
                    (self.fence, self.continues) = (Some(fence), true);
                }
                _ => return,
            }
        }
    }

    fn laid_out(&self, text: &str, continues: bool) -> Vec<String> {
        let mut layout = Layout::after(self.columns, self.color, !self.settled.is_empty());
        let lines = layout.lines_of(&Segment { text: text.into(), continues });
        lines.iter().map(|line: &Line| painted(line, self.color)).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn style() -> Style {
        Style { color: true, width: 30, zone: TimeZone::UTC, highlight: None }
    }

    fn lines(growing: &StreamingText) -> Vec<String> {
        let (settled, _) = growing.settled();
        settled.iter().cloned().chain(growing.unsettled()).collect()
    }

    fn whole(text: &str) -> Vec<String> {
        let mut layout = Layout::new(30, true);
        let text = clean(text);
        let lines = layout.lines_of(&Segment { text: text.as_str().into(), continues: false });
        lines.iter().map(|line| painted(line, true)).collect()
    }

    /// The lines are those of the whole text after every piece, not only after the last one.
    fn check(pieces: &[&str]) -> Result<(), TestCaseError> {
        let mut growing = StreamingText::new(&style());
        let mut text = String::new();
        for piece in pieces {
            growing.push(piece);
            text.push_str(piece);
            prop_assert_eq!(lines(&growing), whole(&text), "{:?}", text);
        }
        Ok(())
    }

    #[test]
    fn pieces_that_once_differed() {
        for pieces in [
            &["a\n#", "x"][..],
            &["> a\n#", "x"],
            &["- a\n\n", "-", "x"],
            &["[a]\n\nb\n\n", "[a]: http://x"],
            &["a\u{1b}[3", "1mb"],
            &["a\n\nb\u{1b}", "[1mc"],
            &["a\n|", "-|\n"],
        ] {
            check(pieces).unwrap();
        }
    }

    #[test]
    fn code_settles_line_by_line() {
        let code = (0..400).map(|line| format!("let x{line} = {line};\n")).collect::<String>();
        let text = format!("Here:\n\n```rust\n{code}```\n\nDone.");
        let mut growing = StreamingText::new(&style());
        for (at, _) in text.char_indices().step_by(5) {
            growing.push(&text[at..(at + 5).min(text.len())]);
            assert!(growing.rest.len() < LONG_CODE + 100, "{}", growing.rest.len());
        }
        assert_eq!(lines(&growing), whole(&text));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn the_lines_are_those_of_the_whole_text_for_any_pieces(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "\n", "\n\n", " ", "    ", "```", "```\n", "\n~~~\n", "`", "**", "- ", "\n- ", "\n  - ", "\n1. ", "> ",
                "\n# ", "#", "|", "\n|-|\n", "<", "<!--", "-->", "\n<pre>\n", "[", "](", "]: ", "http://a.b", "\n---\n",
                "\n===\n", "漢字", "a", "word", "one two three four\n\n", "\u{1b}", "[31m", "\r\n", "\t", "\u{202e}", "\u{9b}",
            ]), 0..40),
        ) {
            check(&pieces)?;
        }

        #[test]
        fn long_code_is_the_same_for_any_pieces(
            lines in prop::collection::vec("[a-z `~#]{0,60}", 60..90),
            size in 20usize..200,
        ) {
            let text = format!("# A\n\n~~~ py\n{}\n~~~\nafter *it*\n", lines.join("\n"));
            let mut growing = StreamingText::new(&style());
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(size));
                growing.push(piece);
                rest = after;
            }
            prop_assert_eq!(self::lines(&growing), whole(&text));
        }
    }
}
