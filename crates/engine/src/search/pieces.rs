//! Taking a query apart: which of its words are signs, and which only look like some.
//!
//! People paste commands and messages. What stands in those is a word, not a sign: `-n`, `agent: refused`, `file:///tmp`, the
//! inches of `5" display`.

use super::query::bad;
use crate::error::Result;

/// A part of a query.
pub(super) struct Piece {
    pub sort: Sort,
    pub text: String,
    pub without: bool,
    pub required: bool,
    /// Where it stands in the query, in bytes.
    pub at: usize,
    pub length: usize,
}

/// What a part of a query is.
pub(super) enum Sort {
    Words,
    Phrase,
    And,
    Filter(&'static str),
}

const FILTERS: [&str; 9] = ["agent", "file", "since", "until", "after", "before", "branch", "dir", "tool"];

/// The parts of a query that is one line.
pub(super) fn pieces(line: &str) -> Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(' ') {
            at += 1;
            continue;
        }
        let start = at;
        let without = is_exclusion(rest);
        let required = rest.starts_with('+') && rest.len() > 1 && !rest.starts_with("+ ");
        let inner = usize::from(without || required);
        let body = &rest[inner..];
        let filter = FILTERS.into_iter().find(|name| is_filter(body, name));
        let value = filter.map_or(0, |name| name.len() + 1);
        let body = &body[value..];
        let (text, length, quoted) = match body.strip_prefix('"') {
            Some(inside) => {
                let Some(end) = inside.find('"') else {
                    return Err(bad(line, start + inner + value, 1, "this quote is not closed"));
                };
                (&inside[..end], end + 2, true)
            }
            None => {
                let end = word_end(body);
                (&body[..end], end, false)
            }
        };
        let whole = inner + value + length;
        at += whole;
        let sort = match filter {
            Some(name) => Sort::Filter(name),
            None if quoted => Sort::Phrase,
            None if text == "AND" && !pieces.is_empty() => Sort::And,
            None if text == "OR" && !pieces.is_empty() => continue,
            None => Sort::Words,
        };
        pieces.push(Piece { sort, text: text.to_owned(), without, required, at: start, length: whole });
    }
    Ok(pieces)
}

/// What was typed, without filters.
pub(super) fn without_filters(line: &str, pieces: &[Piece]) -> String {
    let (mut typed, mut from) = (String::new(), 0);
    for filter in pieces.iter().filter(|piece| matches!(piece.sort, Sort::Filter(_))) {
        typed.push_str(&line[from..filter.at]);
        from = filter.at + filter.length;
    }
    typed.push_str(&line[from..]);
    typed.trim().to_owned()
}

/// Whether a word is one that must not be there: `-windows`. The short options of a command, `-n` or `-ss`, are words.
fn is_exclusion(rest: &str) -> bool {
    let Some(word) = rest.strip_prefix('-').map(|rest| &rest[..rest.find(' ').unwrap_or(rest.len())]) else {
        return false;
    };
    let is_option = word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    !word.is_empty() && !word.starts_with('-') && !is_option
}

/// Whether a filter begins here. What a message says behind `agent: ` is no value, nor is a URL.
fn is_filter(body: &str, name: &str) -> bool {
    let value = body.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
    value.is_some_and(|value| !value.starts_with(' ') && !value.starts_with("//"))
}

/// Where a word ends: at a space, or at a quote that begins a phrase. Behind a letter or a digit it begins none.
fn word_end(body: &str) -> usize {
    let mut before = None;
    for (at, c) in body.char_indices() {
        if c == ' ' || c == '"' && !before.is_some_and(char::is_alphanumeric) {
            return at;
        }
        before = Some(c);
    }
    body.len()
}
