//! Defines words: the only place that does, for the index, for queries and for marking matches in a snippet.
//!
//! Identifiers are found by their parts: `parseConfig` and `parse_config` are `parse`, `config` and `parseconfig`. Text
//! in scripts without spaces is split into pairs of characters.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::ops::Range;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::char::decompose_canonical;

/// Longer words are never typed: hashes, keys, base64.
const LONGEST: usize = 64;
/// How many stems each thread caches.
const REMEMBERED: usize = 20_000;

/// Words in almost every text; a query of only these is meaningless.
const COMMON: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "had", "has", "have",
    "how", "i", "if", "in", "is", "it", "its", "me", "my", "not", "of", "on", "or", "our", "so", "that", "the", "then",
    "there", "these", "this", "to", "was", "we", "were", "what", "when", "where", "which", "why", "will", "with",
    "you", "your",
];

/// Whether a word is meaningless by itself.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// A word of a text: its parts, and its spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The parts in lower case, in order; most words have one.
    pub parts: Vec<String>,
    /// All parts joined, if there are several.
    pub whole: Option<String>,
    /// As it is in the text.
    pub said: String,
}

/// Splits a text into words.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    each_word(text, |run, range| {
        let parts: Vec<String> = run.parts().map(str::to_owned).collect();
        let whole = run.whole().map(str::to_owned);
        found.push(Word { parts, whole, said: text[range].to_owned() });
    });
    found
}

/// Calls `found` with every word of a text and its position.
pub(crate) fn each_word(text: &str, mut found: impl FnMut(&WordRun, Range<usize>)) {
    runs(text, &mut WordRun::default(), &mut found);
}

/// Calls `found` with every term of a text: the parts of its words, and compound words as a whole.
pub(crate) fn each_term(text: &str, mut found: impl FnMut(&str)) {
    thread_local! {
        static RUN: RefCell<WordRun> = RefCell::default();
    }
    RUN.with_borrow_mut(|kept| {
        runs(text, kept, &mut |run, _| {
            for part in run.parts() {
                found(part);
            }
            if let Some(whole) = run.whole() {
                found(whole);
            }
        });
    });
}

/// Calls `found` with the stem of a word in lower case.
pub(crate) fn with_stem<T>(word: &str, found: impl FnOnce(&str) -> T) -> T {
    thread_local! {
        static STEMMER: Stemmer = Stemmer::new(Algorithm::English);
        static KNOWN: RefCell<HashMap<u64, String, BuildHasherDefault<IdentityHasher>>> = RefCell::default();
    }
    // Snowball's English stemmer does not handle digits or other scripts.
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return found(word);
    }
    // Texts have few distinct words, and stemming takes ten times as long as a cache lookup.
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let stem = || STEMMER.with(|stemmer| stemmer.stem(word).into_owned());
        found(known.entry(hash(word.as_bytes())).or_insert_with(stem))
    })
}

/// The stem of a word in lower case.
pub(crate) fn stem(word: &str) -> String {
    with_stem(word, str::to_owned)
}

/// One run of letters, digits and underscores, in lower case and without the underscores.
#[derive(Default)]
pub(crate) struct WordRun {
    text: String,
    /// The start of each part but the first in `text`.
    cuts: Vec<usize>,
    /// Pairs of characters overlap, so they are stored as they are.
    pairs: Vec<String>,
}

impl WordRun {
    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain(std::iter::once(self.text.len()));
        let cut = starts.zip(ends).map(|(start, end)| &self.text[start..end]);
        cut.filter(|part| !part.is_empty() && part.len() <= LONGEST).chain(self.pairs.iter().map(String::as_str))
    }

    /// Queries include the text before a number: `test_7880` is found by its parts alone.
    pub(crate) fn whole(&self) -> Option<&str> {
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_whole = !self.cuts.is_empty() && self.text.len() <= LONGEST && !self.parts().any(is_number);
        is_whole.then_some(self.text.as_str())
    }

    /// Whether it is in a script without spaces: its parts are overlapping pairs of characters.
    pub(crate) fn is_unspaced(&self) -> bool {
        !self.pairs.is_empty()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cuts.clear();
        self.pairs.clear();
    }

    fn cut(&mut self) {
        if !self.text.is_empty() && self.cuts.last() != Some(&self.text.len()) {
            self.cuts.push(self.text.len());
        }
    }
}

/// The kind of the previous character in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Lower,
    Upper,
    Digit,
}

fn runs(text: &str, run: &mut WordRun, found: &mut dyn FnMut(&WordRun, Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // Between words: most bytes of tool output are not letters.
        let byte = bytes[at];
        if byte < 0x80 && !byte.is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        run.clear();
        let mut last = Last::Nothing;
        let mut too_long = false;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii_lowercase() {
                // `HTTPServer`: the last capital starts the next part.
                if last == Last::Upper && run.text.len() > 1 + run.cuts.last().copied().unwrap_or(0) {
                    let begin = run.text.len() - 1;
                    run.cuts.push(begin);
                }
                run.text.push(byte as char);
                (last, at) = (Last::Lower, at + 1);
            } else if byte.is_ascii_digit() {
                run.text.push(byte as char);
                (last, at) = (Last::Digit, at + 1);
            } else if byte.is_ascii_uppercase() {
                if matches!(last, Last::Lower | Last::Digit) {
                    run.cut();
                }
                run.text.push(byte.to_ascii_lowercase() as char);
                (last, at) = (Last::Upper, at + 1);
            } else if byte == b'_' {
                run.cut();
                (last, at) = (Last::Nothing, at + 1);
            } else if byte < 0x80 {
                break;
            } else {
                let Some(c) = text[at..].chars().next() else { break };
                if is_unspaced(c) {
                    // A separate run.
                    if at == start {
                        at = pairs(text, at, run);
                    }
                    break;
                }
                if is_accent(c) {
                    at += c.len_utf8();
                    continue;
                }
                if !c.is_alphanumeric() && !is_mark(c) {
                    break;
                }
                if c.is_uppercase() && matches!(last, Last::Lower | Last::Digit) {
                    run.cut();
                }
                fold(c, &mut run.text);
                (last, at) = (if c.is_uppercase() { Last::Nothing } else { Last::Lower }, at + c.len_utf8());
            }
            if run.text.len() > 4 * LONGEST {
                too_long = true;
                run.clear();
            }
        }
        if at == start {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        if run.cuts.last() == Some(&run.text.len()) {
            run.cuts.pop();
        }
        let is_empty = run.text.is_empty() && run.pairs.is_empty();
        if !too_long && !is_empty {
            found(run, start..at);
        }
    }
}

/// Splits a run in a script without spaces into pairs; returns its end.
fn pairs(text: &str, start: usize, run: &mut WordRun) -> usize {
    let mut before: Option<char> = None;
    let mut end = start;
    for c in text[start..].chars().take_while(|c| is_unspaced(*c)) {
        if let Some(before) = before {
            run.pairs.push(String::from_iter([before, c]));
        }
        before = Some(c);
        end += c.len_utf8();
    }
    if run.pairs.is_empty() {
        run.pairs.extend(before.map(String::from));
    }
    end
}

/// Whether a word is a single character in a script without spaces, which is part of the indexed pairs.
pub(crate) fn is_single(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(is_unspaced) && chars.next().is_none()
}

/// Chinese, Japanese, Thai and the like; in Korean, words carry their particles.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{ac00}'..='\u{d7a3}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{2fa1f}')
}

/// Appends a character in its comparison form: in lower case, and without accents, which users leave out and which have
/// two encodings.
pub(crate) fn fold(c: char, out: &mut String) {
    if c.is_ascii() {
        return out.push(c.to_ascii_lowercase());
    }
    for lower in c.to_lowercase() {
        match lower {
            // These are not letters with an accent.
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' => out.push('d'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            _ => decompose_canonical(lower, |part| {
                if !is_accent(part) {
                    out.push(part);
                }
            }),
        }
    }
}

/// Combining accents.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036f}')
}

/// Combining vowels and joiners inside a word.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{0900}'..='\u{0dff}' | '\u{200c}' | '\u{200d}')
}

/// Terms for the index, joined by spaces.
#[derive(Default)]
pub(crate) struct Terms {
    pub text: String,
    seen: SeenRuns,
    /// Runs that were split already.
    runs: SeenRuns,
}

type SeenRuns = HashSet<u64, BuildHasherDefault<IdentityHasher>>;

/// The values are already hashes.
#[derive(Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl std::hash::Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl Terms {
    /// Adds every occurrence of every term, and to `stems` the stems that differ from the terms.
    pub(crate) fn add(&mut self, text: &str, stems: &mut Terms) {
        each_term(text, |term| {
            push(&mut self.text, term);
            with_stem(term, |stem| {
                if stem != term {
                    push(&mut stems.text, stem);
                }
            });
        });
    }

    /// Adds every distinct term: for tool output, only these are kept.
    pub(crate) fn add_new(&mut self, text: &str) {
        let (out, seen) = (&mut self.text, &mut self.seen);
        let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(skipped) = bytes[at..].iter().position(is_inside) {
            let start = at + skipped;
            let length = bytes[start..].iter().position(|byte| !is_inside(byte)).unwrap_or(bytes.len() - start);
            at = start + length;
            // Tool output repeats itself: most runs have been split before.
            if self.runs.insert(hash(&bytes[start..at])) {
                each_term(&text[start..at], |term| {
                    if seen.insert(hash(term.as_bytes())) {
                        push(out, term);
                    }
                });
            }
        }
    }

    /// Adds one exact term, once.
    pub(crate) fn add_exact(&mut self, term: &str) {
        if !term.is_empty() && term.len() < 1000 && self.seen.insert(hash(term.as_bytes())) {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            // Spaces separate terms.
            self.text.extend(term.chars().map(|c| if c.is_whitespace() { '\u{a0}' } else { c }));
        }
    }

    /// Takes the collected terms and resets the collection.
    pub(crate) fn take(&mut self) -> String {
        self.seen.clear();
        self.runs.clear();
        std::mem::take(&mut self.text)
    }
}

/// A term as stored in a field of exact terms.
pub(crate) fn exact(term: &str) -> String {
    term.chars().map(|c| if c.is_whitespace() { '\u{a0}' } else { c }).collect()
}

fn push(out: &mut String, term: &str) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(term);
}

fn hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_term(text, |term| found.push(term.to_owned()));
        found
    }

    #[test]
    fn identifiers_are_found_by_their_parts() {
        let check = |text: &str, expected: &[&str]| assert_eq!(terms(text), expected, "{text}");
        check("parseConfig", &["parse", "config", "parseconfig"]);
        check("parse_config", &["parse", "config", "parseconfig"]);
        check("ParseConfig __init__", &["parse", "config", "parseconfig", "init"]);
        check("HTTPServer2 PARSE_URL", &["http", "server2", "httpserver2", "parse", "url", "parseurl"]);
        check("src/auth.rs:41", &["src", "auth", "rs", "41"]);
        check("don't stop-words", &["don", "t", "stop", "words"]);
        check("Größe ÄRGER Ärger naïve", &["grosse", "arger", "arger", "naive"]);
        check("caféConfig größeÜber", &["cafe", "config", "cafeconfig", "grosse", "uber", "grosseuber"]);
        // The same with accents that are characters of their own.
        check(
            "Gro\u{308}ße nai\u{308}ve caf\u{e9} cafe\u{301}Config",
            &["grosse", "naive", "cafe", "cafe", "config", "cafeconfig"],
        );
        check("ΟΔΌΣ οδός Łódź \u{301}", &["οδοσ", "οδοσ", "lodz"]);
        check("設定を読む a設定", &["設定", "定を", "を読", "読む", "a", "設定"]);
        check("utf8 e2e x86_64", &["utf8", "e2e", "x86", "64"]);
        check("2026-11-03T10:18", &["2026", "11", "03", "t10", "18"]);
        check("", &[]);
        check("— … \u{1b}[31m", &["31m"]);
        check(&"x".repeat(5000), &[]);
        check(&format!("{} b", "a".repeat(70)), &["b"]);
    }

    #[test]
    fn of_tool_text_every_term_is_kept_once() {
        let mut kept = Terms::default();
        kept.add_new("parseConfig x—y parse_config, x parseConfig\u{2502}config");
        assert_eq!(kept.take(), "parse config parseconfig x y");
        kept.add_new("parse");
        assert_eq!(kept.take(), "parse");
    }

    #[test]
    fn words_know_how_they_are_written() {
        let said: Vec<String> = words("a näher parseConfig()").into_iter().map(|word| word.said).collect();
        assert_eq!(said, ["a", "näher", "parseConfig"]);
    }

    #[test]
    fn common_words_are_sorted_for_the_search_in_them() {
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn stems_are_english() {
        assert_eq!(stem("redirects"), stem("redirected"));
        assert_eq!(stem("größe"), "größe");
    }
}
