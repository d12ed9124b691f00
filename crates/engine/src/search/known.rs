//! Whether a word of a question is anywhere in the index, and which one was meant where it is not.

use std::cmp::Reverse;

use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use super::find::{is_run, said};
use super::hybrid;
use super::index::Fields;
use super::query::{AskedWord, Query};
use super::slips::Slips;
use super::words;

/// How many words are thought of in the place of one that is nowhere.
const SIMILAR: usize = 50;
/// A word of so few letters is corrected only where it is all that was asked.
const SHORT: usize = 4;
/// Of so few words, each is meant.
const FEW: usize = 3;

/// Whether a word that is nowhere is taken for one that is like it. A short word is like many others, and a proper one was
/// not mistyped; where the question has other words, it is rather one that was never said.
pub(super) fn is_corrected(query: &Query, word: &AskedWord, is_proper: bool) -> bool {
    query.words.len() == 1 || said(word).chars().count() > SHORT && !is_proper
}

/// Of the words of a question that nobody said, those whose absence says something. A sentence has ordinary words that are
/// there to make it one; that something else was found without them surprises nobody.
pub(super) fn keep_what_says_something(query: &Query, unknown: &mut Vec<String>) {
    if query.words.len() > FEW {
        unknown.retain(|word| !hybrid::is_proper_word(word));
    }
}

/// What is known of a word.
pub(super) enum KnownWord {
    /// It is somewhere.
    Yes,
    /// It is not, and this one is like it; whether what is nowhere of it is no slip but a word of the language.
    Like { other: String, is_proper: bool },
    /// Nothing is like it.
    No,
}

/// Whether a word is anywhere in the index; else the word that is most like it.
pub(super) fn known_word(fields: Fields, searcher: &Searcher, asked: &AskedWord) -> tantivy::Result<KnownWord> {
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
    // A slip in an identifier is one in a part of it.
    let is_proper = unknown.iter().all(|place| hybrid::is_proper_word(&word.parts[*place]));
    let mut parts = word.parts.clone();
    for place in unknown {
        let others = similar(fields, searcher, &parts[place])?;
        let Some(mut taken) = others.first() else { return Ok(KnownWord::No) };
        // Of several words that may be meant, it is the one that makes an identifier which is there.
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

/// The words that a slip leads from to this one, two in long words: the fewest slips first, then the most common.
fn similar(fields: Fields, searcher: &Searcher, word: &str) -> tantivy::Result<Vec<String>> {
    let Some(slips) = Slips::of(word) else { return Ok(Vec::new()) };
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
