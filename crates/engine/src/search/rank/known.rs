//! Finds out whether a word of a query occurs in the index, and otherwise which word was meant.

use std::cmp::Reverse;

use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use super::find::{is_run, text_of_word};
use super::hybrid;
use crate::search::index::schema::Fields;
use crate::search::query::typos::TypoAutomaton;
use crate::search::query::{AskedWord, Query, words};

/// How many similar words are considered for one that occurs nowhere.
const SIMILAR: usize = 50;
/// Words with this many letters are corrected only if they are the whole query.
const SHORT: usize = 4;
/// In a query of this many words, each is meant.
const FEW: usize = 3;

/// Whether a word that occurs nowhere is replaced by a similar one. Short words have many similar ones, and proper
/// words are not typos; if the query has other words, they probably just occur nowhere.
pub(crate) fn is_corrected(query: &Query, word: &AskedWord, is_proper: bool) -> bool {
    query.words.len() == 1 || text_of_word(word).chars().count() > SHORT && !is_proper
}

/// Of the words that occur nowhere, those worth reporting. A sentence has filler words, and results without them
/// surprise no one.
pub(crate) fn keep_what_says_something(query: &Query, unknown: &mut Vec<String>) {
    if query.words.len() > FEW {
        unknown.retain(|word| !hybrid::is_proper_word(word));
    }
}

/// What is known about a word.
pub(crate) enum KnownWord {
    /// It occurs.
    Yes,
    /// It does not, but a similar one does; `is_proper` if the unknown part is a word of the language and not a typo.
    Like { other: String, is_proper: bool },
    /// No word is similar.
    No,
}

/// Whether a word occurs in the index, otherwise the most similar word.
pub(crate) fn known_word(fields: Fields, searcher: &Searcher, asked: &AskedWord) -> tantivy::Result<KnownWord> {
    let count = |field: Field, text: &str| searcher.doc_freq(&Term::from_field_text(field, text));
    let word = &asked.word;
    if word.parts.iter().all(|part| words::is_single(part)) {
        return Ok(KnownWord::Yes);
    }
    if let Some(whole) = &word.whole
        && count(fields.prose, whole)? + count(fields.tools, whole)? > 0
    {
        return Ok(KnownWord::Yes);
    }
    let mut unknown: Vec<usize> = Vec::new();
    for (place, part) in word.parts.iter().enumerate() {
        let root = words::stem(part);
        let forms = [(fields.prose, part), (fields.tools, part), (fields.stem, &root)];
        let roots = [(fields.prose, &root), (fields.tools, &root)];
        let mut is_known = false;
        for (field, form) in forms.into_iter().chain(roots) {
            is_known = is_known || count(field, form)? > 0;
        }
        if !is_known {
            unknown.push(place);
        }
    }
    if unknown.is_empty() || is_run(word) && unknown.len() < word.parts.len() {
        return Ok(KnownWord::Yes);
    }
    // A typo in an identifier is a typo in one of its parts.
    let is_proper = unknown.iter().all(|place| hybrid::is_proper_word(&word.parts[*place]));
    let mut parts = word.parts.clone();
    for place in unknown {
        let others = similar(fields, searcher, &parts[place])?;
        let Some(mut taken) = others.first() else { return Ok(KnownWord::No) };
        // Of several candidates, the one that makes an existing identifier wins.
        for other in others.iter().take(if parts.len() > 1 { others.len() } else { 0 }) {
            let whole: String =
                (0..).zip(&parts).map(|(at, part)| if at == place { other } else { part }.as_str()).collect();
            if count(fields.prose, &whole)? + count(fields.tools, &whole)? > 0 {
                taken = other;
                break;
            }
        }
        parts[place].clone_from(taken);
    }
    Ok(KnownWord::Like { other: parts.join("_"), is_proper })
}

/// The words within one typo of this one (two for long words): the fewest typos first, then the most frequent.
fn similar(fields: Fields, searcher: &Searcher, word: &str) -> tantivy::Result<Vec<String>> {
    let Some(slips) = TypoAutomaton::of(word) else { return Ok(Vec::new()) };
    let mut others: Vec<(usize, Reverse<u32>, String)> = Vec::new();
    for field in [fields.prose, fields.tools] {
        for reader in searcher.segment_readers() {
            let inverted = reader.inverted_index(field)?;
            let mut stream = inverted.terms().search(&slips).into_stream()?;
            while stream.advance() {
                let Some((text, count)) = std::str::from_utf8(stream.key()).ok().zip(slips.count(stream.key())) else {
                    continue;
                };
                others.push((count, Reverse(stream.value().doc_freq), text.to_owned()));
            }
        }
        if !others.is_empty() {
            break;
        }
    }
    others.sort_unstable();
    others.truncate(SIMILAR);
    Ok(others.into_iter().map(|(_, _, text)| text).collect())
}
