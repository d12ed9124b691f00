//! Finds the lines of a text that can contain a wanted word at all. Almost no lines of tool output can, and finding
//! that out takes a tenth of the time of splitting them into words.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Looks for the beginnings of the wanted terms.
pub(crate) struct Sieve(AhoCorasick);

impl Sieve {
    /// Nothing, where a term is of letters that are compared without their accents: those can be written in several ways.
    pub(crate) fn of<'a>(terms: impl Iterator<Item = &'a String>) -> Option<Sieve> {
        let beginnings: Option<Vec<&str>> = terms.map(|term| beginning(term)).collect();
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA));
        builder.build(beginnings?).ok().map(Sieve)
    }

    /// Whether a wanted word may be in a text. One with other letters than ASCII's may hold everything.
    pub(crate) fn may_hold(&self, text: &str) -> bool {
        // Underscores are no part of a word: `par_se` is `parse`, too.
        let joined: Cow<str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
        !text.is_ascii() || self.0.is_match(joined.as_ref())
    }

    /// The parts of a text that may hold a wanted word, in order: lines that follow each other are one part.
    pub(crate) fn parts(&self, text: &str) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if self.may_hold(line) {
                match parts.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => parts.push(start..end),
                }
            }
            start = end;
        }
        parts
    }
}

/// What a word that counts as this term begins with. A stem differs from its word in the last letters alone.
fn beginning(term: &str) -> Option<&str> {
    term.is_ascii().then(|| &term[..term.len().saturating_sub(2).max(1).min(term.len())]).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::query::words;

    #[test]
    fn a_line_that_has_the_word_is_never_left_out() {
        let check = |asked: &str, line: &str| {
            let terms = [asked.to_owned(), words::stem(asked)];
            let sieve = Sieve::of(terms.iter()).expect("a sieve");
            let text = format!("nothing\n{line}\n{}", "x.\n".repeat(9));
            let parts: Vec<&str> = sieve.parts(&text).into_iter().map(|part| text[part].trim_end()).collect();
            assert_eq!(parts, [line], "{asked}");
        };
        check("handler", "the Handler of it");
        check("handlers", "a HANDLER");
        check("dying", "it may die, as all do");
        check("die", "dying");
        check("hope", "hoping");
        check("skies", "the sky");
        check("happy", "happily");
        check("config", "parseConfig(");
        check("parseconfig", "fn parse_config(");
        check("resume", "un résumé");
        assert!(Sieve::of([String::from("größe")].iter()).is_none());
    }

    #[test]
    fn a_text_without_the_word_has_no_parts() {
        let terms = [String::from("marmalade")];
        let sieve = Sieve::of(terms.iter()).expect("a sieve");
        assert!(sieve.parts("all of it\nis in a_plain text\n").is_empty());
    }
}
