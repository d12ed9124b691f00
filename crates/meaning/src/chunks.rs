//! Cuts prose into chunks of a size that one vector can represent.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::words::Words;

/// The tokens of a chunk; with the two special tokens around every text, 64.
const FULL: usize = 62;
/// A cut at the end of a sentence may leave a chunk that small.
const ENOUGH: usize = FULL / 2;
/// This many more tokens at the end of a text stay in the last chunk: a vector for three words would be worth little.
const TAIL: usize = 16;

/// The chunks of a text, in order, as ranges of its bytes: about 64 tokens each, cut at the ends of paragraphs,
/// sentences and lines if possible, otherwise between words. Between the ranges, there are only spaces and control
/// characters. Created lazily: the text is read once, and only the words of one chunk are held.
pub fn chunks(text: &str) -> Chunks<'_> {
    Chunks { text, words: Words::new(text), ahead: VecDeque::new(), tokens: 0, scratch: Vec::new() }
}

/// See [`chunks`].
pub struct Chunks<'t> {
    text: &'t str,
    words: Words<'t>,
    /// Words that are read and not given out.
    ahead: VecDeque<Ahead>,
    /// How many tokens those are.
    tokens: usize,
    scratch: Vec<u32>,
}

struct Ahead {
    range: Range<usize>,
    tokens: usize,
    /// How good it would be to cut before this word.
    cut: Cut,
}

/// Places to cut, from bad to good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// Never: it would split a character, or separate it from its mark.
    Never,
    /// Between parts of what is written without a space: `a.b`, Chinese.
    Glued,
    /// Between words.
    Word,
    /// Where a line ends, or a part of a sentence.
    Clause,
    Sentence,
    Paragraph,
}

impl Iterator for Chunks<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while self.tokens <= FULL + TAIL && self.read() {}
        let start = self.ahead.front()?.range.start;
        let count = if self.tokens <= FULL + TAIL { self.ahead.len() } else { self.best_cut() };
        let mut end = start;
        for word in self.ahead.drain(..count) {
            self.tokens -= word.tokens;
            end = word.range.end;
        }
        Some(start..end)
    }
}

impl Chunks<'_> {
    /// Reads one more word, if there is one.
    fn read(&mut self) -> bool {
        self.scratch.clear();
        let Some(word) = self.words.next(&mut self.scratch) else { return false };
        let cut = match self.ahead.back() {
            Some(before) => self.cut_between(&before.range, &word.range),
            None => Cut::Paragraph,
        };
        self.tokens += word.tokens;
        self.ahead.push_back(Ahead { range: word.range, tokens: word.tokens, cut });
        true
    }

    fn cut_between(&self, before: &Range<usize>, after: &Range<usize>) -> Cut {
        let Some(gap) = self.text.get(before.end..after.start) else { return Cut::Never };
        let first = self.text[after.start..].chars().next();
        let last = self.text[before.clone()].chars().next_back();
        if gap.is_empty() && first.is_some_and(|c| c.general_category_group() == GeneralCategoryGroup::Mark) {
            return Cut::Never;
        }
        let lines = gap.bytes().filter(|byte| *byte == b'\n').count();
        let closes = first.is_some_and(|c| matches!(c, ')' | ']' | '"' | '\'' | '」' | '』' | '”' | '’' | '»'));
        match last {
            _ if lines > 1 => Cut::Paragraph,
            Some('。' | '！' | '？' | '．') if !closes => Cut::Sentence,
            Some('.' | '!' | '?' | '…' | '।') if !gap.is_empty() => Cut::Sentence,
            // The sentence ended inside a quotation or parenthesis.
            Some(')' | ']' | '"' | '\'' | '”' | '’' | '»') if !gap.is_empty() && self.ends_before(before.start) => {
                Cut::Sentence
            }
            _ if lines == 1 => Cut::Clause,
            Some(',' | ';' | ':' | '—' | '–') if !gap.is_empty() => Cut::Clause,
            Some('，' | '；' | '：' | '、') => Cut::Clause,
            _ if gap.is_empty() => Cut::Glued,
            _ => Cut::Word,
        }
    }

    fn ends_before(&self, at: usize) -> bool {
        self.text[..at].ends_with(['.', '!', '?', '…', '。', '！', '？'])
    }

    /// How many words make the next chunk, when there are too many for one: up to the best place to cut among those that make
    /// a chunk neither small nor too large; the last of equals.
    fn best_cut(&self) -> usize {
        let (mut best, mut tokens) = (None, 0);
        for (index, word) in self.ahead.iter().enumerate() {
            if tokens > FULL && best.is_some() {
                break;
            }
            let rank = (tokens >= ENOUGH, word.cut);
            if index > 0 && word.cut > Cut::Never && best.is_none_or(|(found, _)| rank >= found) {
                best = Some((rank, index));
            }
            tokens += word.tokens;
        }
        best.map_or(self.ahead.len(), |(_, index)| index)
    }
}

#[cfg(test)]
mod tests;
