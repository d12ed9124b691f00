//! Splits a query into its parts: which words are operators, and which only look like them.
//!
//! Users paste commands and messages. These contain words that are not operators: `-n`, `agent: refused`,
//! `file:///tmp`, the inches of `5" display`.

use super::bad;
use crate::search::error::Result;

/// A part of a query.
pub(crate) struct Piece {
    pub sort: PieceKind,
    pub text: String,
    pub without: bool,
    pub required: bool,
    /// Its position in the query, in bytes.
    pub at: usize,
    pub length: usize,
}

/// The kind of a part.
pub(crate) enum PieceKind {
    Words,
    Phrase,
    And,
    Filter(&'static str),
}

/// The names of the filters, each followed by a colon and a value.
pub const FILTERS: [&str; 9] = ["agent", "file", "since", "until", "after", "before", "branch", "dir", "tool"];

/// The parts of a single-line query.
pub(crate) fn pieces(line: &str) -> Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let is_command = line.split(' ').any(is_of_a_command);
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(' ') {
            at += 1;
            continue;
        }
        let start = at;
        let without = is_exclusion(rest, is_command);
        let required = rest.starts_with('+') && rest.len() > 1 && !rest.starts_with("+ ");
        let inner = usize::from(without || required);
        let body = &rest[inner..];
        let filter = FILTERS.into_iter().find(|name| is_filter(body, name));
        let value = filter.map_or(0, |name| name.len() + 1);
        let body = &body[value..];
        let (text, length, quoted) = match body.strip_prefix('"') {
            Some(inside) => {
                let Some(end) = inside.find('"') else {
                    return Err(bad(line, start + inner + value, 1, "missing closing quote"));
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
            Some(name) => PieceKind::Filter(name),
            None if quoted => PieceKind::Phrase,
            None if text == "AND" && !pieces.is_empty() => PieceKind::And,
            None if text == "OR" && !pieces.is_empty() => continue,
            None => PieceKind::Words,
        };
        pieces.push(Piece { sort, text: text.to_owned(), without, required, at: start, length: whole });
    }
    Ok(pieces)
}

/// The query without filters.
pub(crate) fn without_filters(line: &str, pieces: &[Piece]) -> String {
    let (mut typed, mut from) = (String::new(), 0);
    for filter in pieces.iter().filter(|piece| matches!(piece.sort, PieceKind::Filter(_))) {
        typed.push_str(&line[from..filter.at]);
        from = filter.at + filter.length;
    }
    typed.push_str(&line[from..]);
    typed.trim().to_owned()
}

/// Whether a word is an exclusion: `-windows`. Options of a command are words: `-n` and `-ss` always, `-batch` if
/// another word shows that it is a command; so are numbers such as the error code `-25308`.
fn is_exclusion(rest: &str, is_command: bool) -> bool {
    let Some(word) = rest.strip_prefix('-').map(|rest| &rest[..rest.find(' ').unwrap_or(rest.len())]) else {
        return false;
    };
    // Options are never quoted.
    let is_option = is_short_option(word) || is_command && !word.starts_with('"');
    !word.is_empty() && !word.starts_with('-') && !is_option && !is_number(word)
}

/// Whether such a word occurs only in commands: a short option, a long one, a setting. Nothing is an exclusion in
/// commands.
fn is_of_a_command(word: &str) -> bool {
    let is_setting = word.split_once('=').is_some_and(|(name, value)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-')
            && name.chars().all(is_name)
            && !value.is_empty()
    });
    let is_long = word.strip_prefix("--").is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    is_setting || is_long || word.strip_prefix('-').is_some_and(|word| !word.is_empty() && is_short_option(word))
}

fn is_short_option(word: &str) -> bool {
    word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// `25308`, `1.5`, `0x80070005`, and punctuation after them.
fn is_number(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
    let digits = word.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'_'));
    !word.is_empty() && (digits.is_some() || is_decimal)
}

/// Whether a filter starts here. Text after `agent: ` in a message is not a value, nor is a URL a filter.
fn is_filter(body: &str, name: &str) -> bool {
    let is_named = body.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let value = if is_named { body[name.len()..].strip_prefix(':') } else { None };
    value.is_some_and(|value| !value.starts_with(' ') && !value.starts_with("//"))
}

/// Where a word ends: at a space, or at a quote that starts a phrase. After a letter or digit, a quote starts none.
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
