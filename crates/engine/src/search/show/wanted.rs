//! The words to find in a text: which of them count, and where most of them are close together.
//!
//! A whole identifier scores higher than all of its parts, and those higher than some. The replacement of a secret is
//! not a word.

use std::ops::Range;

use transcript::secrets;

use super::sieve::Sieve;
use crate::search::query::Query;
use crate::search::query::words::{self, Word, WordRun};
use crate::search::rank::find::Hits;

/// How long a snippet is, in bytes, about two lines.
pub(crate) const LENGTH: usize = 200;

/// The score of a word that occurs as typed,
const FULL: usize = 6;
/// and an identifier of which all parts are there.
const ALL_PARTS: usize = 4;
/// Stands for the whole of a word.
const WHOLE: usize = usize::MAX;

/// The words to find in a turn.
pub(crate) struct Wanted<'a> {
    /// For each word that was asked, the terms that count as it,
    terms: &'a [Vec<String>],
    /// and its parts, if it has several.
    compounds: Vec<Option<Word>>,
    sieve: Option<Sieve>,
    /// The number of words in the query, including those that occur nowhere.
    pub asked: usize,
    pub phrases: &'a [String],
    pub without: &'a [String],
}

/// A place in a text.
#[derive(Debug, Default)]
pub(crate) struct SnippetWindow {
    /// How many of the words are there,
    pub words: usize,
    /// and its score.
    pub worth: usize,
    pub place: Range<usize>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(terms: &'a [Vec<String>], query: &'a Query, found: &Hits) -> Wanted<'a> {
        let taken = found.corrections.iter().flat_map(|correction| words::words(&correction.taken));
        let quoted = query.phrases.iter().flat_map(|phrase| words::words(phrase));
        let asked = query.words.iter().map(|asked| asked.word.clone());
        let compounds: Vec<Word> = asked.chain(quoted).chain(taken).filter(|word| word.parts.len() > 1).collect();
        let compound = |terms: &Vec<String>| {
            let is_it = |word: &&Word| word.parts.iter().chain(&word.whole).all(|part| terms.contains(part));
            compounds.iter().filter(is_it).max_by_key(|word| word.parts.len()).cloned()
        };
        Wanted {
            terms,
            compounds: terms.iter().map(compound).collect(),
            sieve: Sieve::of(terms.iter().flatten()),
            asked: terms.len() + found.unknown.len(),
            phrases: &query.phrases,
            without: &query.without_phrases,
        }
    }

    /// Words without signs, of which none is an identifier.
    #[cfg(test)]
    pub(crate) fn plain(terms: &'a [Vec<String>]) -> Wanted<'a> {
        let (compounds, sieve) = (vec![None; terms.len()], Sieve::of(terms.iter().flatten()));
        Wanted { terms, compounds, sieve, asked: terms.len(), phrases: &[], without: &[] }
    }

    /// How many words must occur to show what the query is about. A few words belong together; half of a sentence is
    /// enough.
    pub(crate) fn enough(&self) -> usize {
        if self.terms.len() > 3 { self.terms.len().div_ceil(2) } else { self.terms.len() }
    }

    /// What all words are worth.
    pub(crate) fn most(&self) -> usize {
        FULL * self.terms.len()
    }

    /// Whether one of the words may be in a text.
    pub(crate) fn may_be_in(&self, text: &str) -> bool {
        self.sieve.as_ref().is_none_or(|sieve| sieve.may_hold(text))
    }

    /// The place with the most of the words close together.
    pub(crate) fn best_window(&self, text: &str) -> Option<SnippetWindow> {
        let mut hits: Vec<(usize, usize, Range<usize>)> = Vec::new();
        self.each_hit(text, |word, part, place| hits.push((word, part, place)));
        let mut best: Option<SnippetWindow> = None;
        let mut there: Vec<(usize, usize)> = Vec::new();
        let mut from = 0;
        for to in 0..hits.len() {
            while hits[to].2.end - hits[from].2.start > LENGTH && from < to {
                from += 1;
            }
            there.clear();
            there.extend(hits[from..=to].iter().map(|(word, part, _)| (*word, *part)));
            there.sort_unstable();
            there.dedup();
            let (mut words, mut worth) = (0, 0);
            for parts in there.chunk_by(|a, b| a.0 == b.0) {
                let (is_there, word_worth) = self.worth(parts);
                words += usize::from(is_there);
                worth += word_worth;
            }
            if best.as_ref().is_none_or(|best| worth > best.worth) {
                best = Some(SnippetWindow { words, worth, place: hits[from].2.start..hits[to].2.end });
                if worth == self.most() {
                    break;
                }
            }
        }
        best
    }

    /// Where the words are in a line.
    pub(crate) fn marks(&self, line: &str) -> Vec<Range<usize>> {
        let mut marks: Vec<Range<usize>> = Vec::new();
        self.each_hit(line, |_, _, place| match marks.last_mut() {
            // The pairs of a script without spaces overlap.
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => marks.push(place),
        });
        marks
    }

    /// Whether these parts of a word are as good as the word, and what they are worth.
    fn worth(&self, parts: &[(usize, usize)]) -> (bool, usize) {
        let compound = parts.first().and_then(|(word, _)| self.compounds[*word].as_ref());
        let Some(compound) = compound.filter(|_| parts.iter().all(|(_, part)| *part != WHOLE)) else {
            return (true, FULL);
        };
        let is_new = |(at, part): (usize, &String)| !compound.parts[..at].contains(part);
        let all = compound.parts.iter().enumerate().filter(|part| is_new(*part)).count();
        match (parts.len() >= all, compound.whole.is_some()) {
            (true, true) => (false, ALL_PARTS),
            (true, false) => (true, FULL),
            // A run of a script without spaces is several words.
            (false, false) if !compound.parts[0].is_ascii() => {
                (2 * parts.len() >= all, 1 + ALL_PARTS * parts.len() / all)
            }
            (false, _) => (false, 1 + 2 * parts.len() / all),
        }
    }

    /// Calls `found` with every word of a text that is wanted: which word, which part of it, and where.
    fn each_hit(&self, text: &str, mut found: impl FnMut(usize, usize, Range<usize>)) {
        match &self.sieve {
            Some(sieve) => sieve.parts(text).into_iter().for_each(|part| self.each_hit_in(text, part, &mut found)),
            None => self.each_hit_in(text, 0..text.len(), &mut found),
        }
    }

    /// The same in a part of a text.
    fn each_hit_in(&self, text: &str, part: Range<usize>, found: &mut impl FnMut(usize, usize, Range<usize>)) {
        let start = part.start;
        words::each_word(&text[part], |run, range| {
            let range = start + range.start..start + range.end;
            if is_masked(text, &range) {
                return;
            }
            if run.is_unspaced() {
                return self.in_run(run, range.start, found);
            }
            if let Some(whole) = run.whole()
                && self.each_of(whole, |word, part| found(word, part, range.clone()))
            {
                return;
            }
            for part in run.parts() {
                if !self.each_of(part, |word, part| found(word, part, range.clone())) && self.could_have_stem(part) {
                    words::with_stem(part, |stem| self.each_of(stem, |word, part| found(word, part, range.clone())));
                }
            }
        });
    }

    /// The same of a run of a script without spaces, of which single pairs count.
    fn in_run(&self, run: &WordRun, start: usize, found: &mut impl FnMut(usize, usize, Range<usize>)) {
        let mut at = start;
        for pair in run.parts() {
            self.each_of(pair, |word, part| found(word, part, at..at + pair.len()));
            // A single character matches anywhere.
            for (word, terms) in self.terms.iter().enumerate() {
                for term in terms.iter().filter(|term| *term != pair && words::is_single(term)) {
                    if let Some(inside) = pair.find(term.as_str()) {
                        found(word, WHOLE, at + inside..at + inside + term.len());
                    }
                }
            }
            at += pair.chars().next().map_or(0, char::len_utf8);
        }
    }

    /// Calls `found` with each word that a term counts as, and which part of it; whether there is one.
    fn each_of(&self, term: &str, mut found: impl FnMut(usize, usize)) -> bool {
        let mut is_any = false;
        for (word, terms) in self.terms.iter().enumerate() {
            if terms.iter().any(|wanted| wanted == term) {
                let compound = self.compounds[word].as_ref();
                let part = compound.and_then(|word| word.parts.iter().position(|part| part == term));
                found(word, part.unwrap_or(WHOLE));
                is_any = true;
            }
        }
        is_any
    }

    /// A stem begins as its word does.
    fn could_have_stem(&self, part: &str) -> bool {
        self.terms.iter().flatten().any(|term| term.as_bytes().first() == part.as_bytes().first())
    }
}

/// Whether a word is the replacement of a secret.
fn is_masked(text: &str, range: &Range<usize>) -> bool {
    range.start > 0 && text.get(range.start - 1..range.end + 1) == Some(secrets::MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::query::{Limits, Now};

    fn check(query: &str, text: &str, shown: &str, marked: &[&str]) {
        let now = Now { time: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let query = Query::parse(query, &Limits::default(), &now).unwrap();
        let terms: Vec<Vec<String>> = query.words.iter().map(|asked| terms_of(&asked.word)).collect();
        let wanted = Wanted::of(&terms, &query, &Hits::default());
        let place = wanted.best_window(text).map_or(0..0, |window| window.place);
        assert!(text[place.clone()].contains(shown), "{}", &text[place]);
        let marks: Vec<&str> = wanted.marks(text).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(marks, marked, "{text}");
    }

    fn terms_of(word: &Word) -> Vec<String> {
        let stems = word.parts.iter().map(|part| words::stem(part)).filter(|_| word.parts.len() == 1);
        word.whole.iter().cloned().chain(word.parts.iter().cloned()).chain(stems).collect()
    }

    #[test]
    fn a_whole_identifier_comes_before_its_parts() {
        let far = ". ".repeat(LENGTH);
        let text = format!("requeue dead jobs{far}a dead letter to requeue{far}requeueDeadLetter()");
        let parts = ["requeue", "dead", "dead", "letter", "requeue", "requeueDeadLetter"];
        check("requeue_dead_letter", &text, "requeueDeadLetter", &parts);
        let text = format!("requeue dead jobs{far}a dead letter to requeue");
        check("requeue_dead_letter", &text, "a dead letter".trim_start_matches("a "), &parts[..5]);
        check("test_7880 logins", "the login of test 7880", "login", &["login", "test", "7880"]);
    }

    #[test]
    fn nothing_is_marked_in_the_place_of_a_secret() {
        check("AWS_SECRET_ACCESS_KEY", "key=[secret] AWS_SECRET_ACCESS_KEY", "AWS", &["key", "AWS_SECRET_ACCESS_KEY"]);
    }

    #[test]
    fn of_a_run_without_spaces_the_pairs_that_match_are_marked() {
        check("設定", "この設定を読む", "設定", &["設定"]);
        check("設定を読む", "設定は古い、後で読む", "設定", &["設定", "読む"]);
        check("定", "この設定を", "定", &["定"]);
    }
}
