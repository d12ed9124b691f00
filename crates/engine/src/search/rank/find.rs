//! Queries the index: which turns contain the words, and how well they match.

use std::collections::HashSet;

use tantivy::collector::{Collector, Count, SegmentCollector};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, Query as Matcher, RegexQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Searcher, SegmentOrdinal, TERMINATED, Term};

use super::cover::WordCoverage;
use super::known::{KnownWord, is_corrected, known_word};
use super::turns::Turns;
use crate::search::index::Words;
use crate::search::index::schema::{Fields, place_key};
use crate::search::query::paths::normal_path;
use crate::search::query::{AskedWord, Limits, Query, words};

/// Prose ranks before tool output.
const PROSE: f32 = 3.0;
const STEM: f32 = 1.5;
const TOOLS: f32 = 0.7;
/// This many best hits per segment are enough, unless they belong to few sessions.
const MOST: usize = 1000;
/// How many of the best hits are examined more closely,
const LOOKED_AT: usize = 200;
/// and the score that a turn approaches if it contains the whole query, however rarely and wherever.
const ALL_SAID: f32 = 0.9;
/// How much a corrected word counts, compared with one that occurs nowhere.
const CORRECTED: f32 = 0.3;
/// How many hits are sorted at once.
const AT_ONCE: usize = 500;
/// If this many sessions contain all words, those that contain only some are left out.
const ENOUGH: usize = 10;

/// A matching turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    /// The score, from 0 to 1.
    pub score: f32,
    pub file: u64,
    pub turn: u32,
    pub offset: u64,
    pub at: i64,
    /// The chunk of the turn that is nearest in meaning.
    pub part: Option<u32>,
    /// Its address in the index.
    pub address: DocAddress,
}

/// A word that was corrected.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Correction {
    /// The word in the query.
    pub asked: String,
    /// The word that was searched for.
    pub taken: String,
}

/// The result of a query.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// Sorted only as far as [`Hits::best_first`] has been called.
    pub hits: Vec<Hit>,
    sorted: usize,
    /// Words that occur nowhere, and what was searched for instead.
    pub corrections: Vec<Correction>,
    /// Words that occur nowhere and have no similar word.
    pub unknown: Vec<String>,
    /// Excluded words without which more would have been found.
    pub left_out: Vec<String>,
    /// The share of the query that occurs anywhere, from 0 to 1; rare words weigh more, and a word that occurs nowhere
    /// weighs most.
    pub coverage: f32,
    /// The largest share that a single turn contains.
    pub best_cover: f32,
    /// Whether the query is a single identifier.
    pub is_identifier: bool,
    /// The terms that count as matches in a text: as written, and stemmed.
    pub terms: Vec<Vec<String>>,
}

impl Hits {
    /// Replaces the hits.
    pub(crate) fn replace(&mut self, hits: Vec<Hit>) {
        self.hits = hits;
        self.sorted = 0;
    }

    /// The hit at this position, best first. Of tens of thousands, only the first few are needed.
    pub(crate) fn best_first(&mut self, position: usize) -> Hit {
        let order = |a: &Hit, b: &Hit| {
            let by_score = b.score.total_cmp(&a.score).then(b.at.cmp(&a.at));
            by_score.then(a.file.cmp(&b.file)).then(a.turn.cmp(&b.turn))
        };
        while position >= self.sorted && self.sorted < self.hits.len() {
            let rest = &mut self.hits[self.sorted..];
            let count = rest.len().min(AT_ONCE);
            if count < rest.len() {
                rest.select_nth_unstable_by(count, order);
            }
            rest[..count].sort_unstable_by(order);
            self.sorted += count;
        }
        self.hits[position]
    }
}

impl Hits {
    /// Rescores the best hits by the share of the query that they contain, in any field.
    fn rescore_best(&mut self, cover: &WordCoverage, searcher: &Searcher) -> tantivy::Result<()> {
        if cover.mass <= 0.0 || self.hits.is_empty() {
            self.best_cover = 1.0;
            return Ok(());
        }
        self.best_first(0);
        let count = self.hits.len().min(LOOKED_AT);
        let addresses: Vec<DocAddress> = self.hits[..count].iter().map(|hit| hit.address).collect();
        let covers = cover.of_turns(searcher, &addresses)?;
        for (hit, cover) in self.hits.iter_mut().zip(covers) {
            // Half of the words often occur by chance; all of them do not.
            hit.score += (1.0 - hit.score) * ALL_SAID * cover.powi(3);
            self.best_cover = self.best_cover.max(cover);
        }
        self.sorted = 0;
        Ok(())
    }
}

/// Searches the turns that `limits` allow for the words of the query: for all of them, or for enough to show this many
/// sessions.
pub(crate) fn find(
    words: &Words,
    searcher: &Searcher,
    query: &Query,
    limits: &Limits,
    shown: usize,
) -> tantivy::Result<Hits> {
    let mut found = Hits::default();
    let mut asked: Vec<AskedWord> = Vec::new();
    let known = query.words.iter().map(|word| known_word(words.fields, searcher, word));
    let known: Vec<KnownWord> = known.collect::<tantivy::Result<_>>()?;
    let is_any_there = known.iter().any(|known| matches!(known, KnownWord::Yes));
    for (word, known) in query.words.iter().zip(known) {
        match known {
            KnownWord::Yes => asked.push(word.clone()),
            KnownWord::Like { other, is_proper } if is_corrected(query, word, is_proper && is_any_there) => {
                found.corrections.push(Correction { asked: text_of_word(word), taken: other.clone() });
                let taken = words::words(&other).into_iter().next();
                asked.extend(taken.map(|taken| AskedWord { word: taken, required: word.required }));
            }
            KnownWord::Like { .. } | KnownWord::No => found.unknown.push(text_of_word(word)),
        }
    }
    found.terms =
        asked.iter().map(terms_of).chain(query.phrases.iter().flat_map(|phrase| phrase_terms(phrase))).collect();
    let must_have = query.words.iter().any(|word| word.required) && !found.unknown.is_empty();
    if must_have || asked.is_empty() && query.phrases.is_empty() && !query.words.is_empty() {
        return Ok(found);
    }
    let says_something = !asked.is_empty() || !query.phrases.is_empty();
    let matcher = Match { fields: words.fields, searcher, query, files: known_files(words.fields, searcher, query)? };
    // A few words belong together; a sentence is about its meaning.
    let together = asked.len() > 1 && asked.len() <= 3 && found.unknown.is_empty();
    let best = matcher.best_score(&asked)?;
    let cover = WordCoverage::of(words.fields, searcher, &asked)?;
    let nowhere = found.unknown.len() as f32 + CORRECTED * found.corrections.len() as f32;
    found.is_identifier = matches!(asked.as_slice(), [only] if only.word.whole.is_some()) && nowhere == 0.0;
    let rarest = (searcher.num_docs().max(1) as f32 * 2.0).ln_1p();
    found.coverage = if cover.mass > 0.0 { cover.mass / (cover.mass + nowhere * rarest) } else { 1.0 };
    // The shown sessions are chosen later; if that may exclude many, all must be known.
    let is_open = *limits == Limits::default() && query.phrases.is_empty() && query.without_phrases.is_empty();
    let collector = Turns { most: if is_open { MOST } else { usize::MAX }, ..Turns::within(limits) };
    // `file:` selects sessions that touched the file in any turn; without words, the turns in which they did.
    let touching = matcher.touching(limits);
    if let (Some(touching), false) = (&touching, says_something) {
        found.hits = searcher.search(touching, &collector)?;
        found.hits.iter_mut().for_each(|hit| hit.score = 1.0);
        return Ok(found);
    }
    let touched: Option<HashSet<u64>> = match &touching {
        Some(touching) => {
            let turns = searcher.search(touching, &Turns { since: None, until: None, most: usize::MAX })?;
            Some(turns.into_iter().map(|hit| hit.file).collect())
        }
        None => None,
    };
    let search = |together: bool| {
        let matcher = matcher.build(&asked, together);
        let hits = searcher.search(&matcher, &collector)?;
        match hits.len() >= collector.most && sessions_of(&hits) < shown.max(ENOUGH).saturating_mul(2) {
            true => searcher.search(&matcher, &Turns { most: usize::MAX, ..collector }),
            false => Ok(hits),
        }
    };
    let mut hits = if together { search(true)? } else { Vec::new() };
    if sessions_of(&hits) < ENOUGH {
        let known: HashSet<(u64, u32)> = hits.iter().map(|hit| (hit.file, hit.turn)).collect();
        let more = search(false)?;
        hits.extend(more.into_iter().filter(|hit| !known.contains(&(hit.file, hit.turn))));
    }
    found.left_out = matcher.left_out(&asked)?;
    if let Some(touched) = &touched {
        hits.retain(|hit| touched.contains(&hit.file));
    }
    for hit in &mut hits {
        hit.score = if best > 0.0 { (hit.score / best).clamp(0.0, 1.0) } else { 1.0 };
    }
    found.hits = hits;
    found.rescore_best(&cover, searcher)?;
    Ok(found)
}

fn sessions_of(hits: &[Hit]) -> usize {
    hits.iter().map(|hit| hit.file).collect::<HashSet<u64>>().len()
}

pub(crate) fn text_of_word(asked: &AskedWord) -> String {
    let word = &asked.word;
    match &word.whole {
        // Without accents, it would look like another word.
        _ if !word.said.is_ascii() && !is_run(word) => word.said.to_lowercase(),
        Some(whole) => whole.clone(),
        None => word.parts.join(" "),
    }
}

/// The terms that match this word in a text.
fn terms_of(asked: &AskedWord) -> Vec<String> {
    let word = &asked.word;
    let mut terms: Vec<String> = word.whole.iter().cloned().collect();
    if word.parts.len() == 1 {
        terms.extend(word.parts.iter().cloned());
        terms.extend(word.parts.iter().map(|part| words::stem(part)));
    } else {
        terms.extend(word.parts.iter().cloned());
    }
    terms.sort();
    terms.dedup();
    terms
}

fn phrase_terms(phrase: &str) -> Vec<Vec<String>> {
    words::words(phrase).into_iter().map(|word| terms_of(&AskedWord { word, required: true })).collect()
}

struct Match<'a> {
    fields: Fields,
    searcher: &'a Searcher,
    query: &'a Query,
    /// The files named in the query that were touched anywhere, with their weights.
    files: Vec<(&'a str, f32)>,
}

type Clause = (Occur, Box<dyn Matcher>);

impl Match<'_> {
    /// The query for all words.
    fn build(&self, asked: &[AskedWord], together: bool) -> BooleanQuery {
        let mut clauses = self.wanted(asked, together);
        clauses.extend(self.query.without.iter().map(|word| (Occur::MustNot, self.unwanted(word))));
        BooleanQuery::new(clauses)
    }

    /// An excluded word, as a whole.
    fn unwanted(&self, word: &AskedWord) -> Box<dyn Matcher> {
        self.word(&AskedWord { required: true, ..word.clone() })
    }

    /// The excluded words that occur together with a required one. An option of a pasted command looks like an
    /// exclusion, and nothing else would explain the missing results.
    fn left_out(&self, asked: &[AskedWord]) -> tantivy::Result<Vec<String>> {
        let mut left_out = Vec::new();
        for word in &self.query.without {
            let mut clauses = self.wanted(asked, false);
            clauses.push((Occur::Must, self.unwanted(word)));
            if self.searcher.search(&BooleanQuery::new(clauses), &Count)? > 0 {
                left_out.push(text_of_word(word));
            }
        }
        Ok(left_out)
    }

    /// What a turn must contain, and what raises its score.
    fn wanted(&self, asked: &[AskedWord], together: bool) -> Vec<Clause> {
        let mut clauses: Vec<Clause> = Vec::new();
        let mut wanted: Vec<Clause> = Vec::new();
        for word in asked {
            if together || word.required {
                clauses.push((Occur::Must, self.word(word)));
            } else {
                wanted.push((Occur::Should, self.word(word)));
            }
        }
        for phrase in &self.query.phrases {
            for word in words::words(phrase) {
                clauses.push((Occur::Must, self.word(&AskedWord { word, required: true })));
            }
        }
        match (wanted.is_empty(), clauses.is_empty()) {
            (true, _) => {}
            (false, true) => clauses.push((Occur::Must, Box::new(BooleanQuery::new(wanted)))),
            (false, false) => clauses.extend(wanted),
        }
        if clauses.is_empty() {
            clauses.push((Occur::Must, Box::new(AllQuery)));
        }
        for (file, worth) in &self.files {
            clauses.push((Occur::Should, exact(self.fields.path, &words::exact(file), *worth)));
        }
        clauses
    }

    /// The turns that touched the requested file and used the requested tool; `None` if the query has neither.
    fn touching(&self, limits: &Limits) -> Option<BooleanQuery> {
        let file = limits.file.as_ref().map(|file| (self.fields.path, normal_path(file)));
        let tool = limits.tool.as_ref().map(|tool| (self.fields.tool, tool.to_lowercase()));
        let clauses =
            file.into_iter().chain(tool).map(|(field, text)| (Occur::Must, exact(field, &words::exact(&text), 1.0)));
        let clauses: Vec<Clause> = clauses.collect();
        (!clauses.is_empty()).then(|| BooleanQuery::new(clauses))
    }

    /// A word in any field, or one with its stem; an identifier as a whole or by all of its parts.
    fn word(&self, asked: &AskedWord) -> Box<dyn Matcher> {
        let Fields { prose, stem, tools, .. } = self.fields;
        let word = &asked.word;
        let mut ways: Vec<Clause> = Vec::new();
        let mut way = |query: Box<dyn Matcher>, boost: f32| {
            ways.push((Occur::Should, Box::new(BoostQuery::new(query, boost)) as Box<dyn Matcher>));
        };
        if let [only] = word.parts.as_slice()
            && words::is_single(only)
        {
            for (field, boost) in [(prose, PROSE + STEM), (tools, TOOLS)] {
                match RegexQuery::from_pattern(&format!("{only}.?|.{only}"), field) {
                    Ok(pairs) => way(Box::new(pairs), boost),
                    Err(_) => way(term(field, only), boost),
                }
            }
        } else if let [only] = word.parts.as_slice() {
            let root = words::stem(only);
            if root == *only {
                way(term(prose, only), PROSE + STEM);
            } else {
                way(term(prose, only), PROSE);
                way(term(prose, &root), STEM);
                way(term(tools, &root), TOOLS * 0.5);
            }
            way(term(stem, &root), STEM);
            way(term(tools, only), TOOLS);
        } else {
            for (field, boost) in [(prose, PROSE + STEM), (tools, TOOLS)] {
                if let Some(whole) = &word.whole {
                    way(term(field, whole), boost);
                }
                let is_run = is_run(word);
                let occur = if is_run { Occur::Should } else { Occur::Must };
                let parts: Vec<Clause> = word.parts.iter().map(|part| (occur, term(field, part))).collect();
                let needed = if is_run { pairs_needed(parts.len(), asked.required) } else { 0 };
                way(Box::new(BooleanQuery::with_minimum_required_clauses(parts, needed)), boost);
            }
        }
        Box::new(BooleanQuery::new(ways))
    }

    /// The score of a turn that contains every word often and little else.
    fn best_score(&self, asked: &[AskedWord]) -> tantivy::Result<f32> {
        let total = self.searcher.num_docs().max(1) as f32;
        let mut best = 0.0;
        let phrases = self.query.phrases.iter().flat_map(|phrase| words::words(phrase));
        let phrases: Vec<AskedWord> = phrases.map(|word| AskedWord { word, required: true }).collect();
        for asked in asked.iter().chain(&phrases) {
            for part in &asked.word.parts {
                let prose = self.searcher.doc_freq(&Term::from_field_text(self.fields.prose, part))?;
                let tools = self.searcher.doc_freq(&Term::from_field_text(self.fields.tools, part))?;
                let count = if prose > 0 { prose } else { tools }.max(1) as f32;
                let fields = if prose > 0 { PROSE + STEM } else { TOOLS };
                // Its rarity, times the limit for a repeated term.
                best += rarity(total, count) * 2.0 * fields;
            }
        }
        Ok(best + self.files.iter().map(|(_, worth)| worth).sum::<f32>())
    }
}

fn term(field: Field, text: &str) -> Box<dyn Matcher> {
    Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::WithFreqs))
}

fn exact(field: Field, text: &str, score: f32) -> Box<dyn Matcher> {
    let term = TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic);
    Box::new(ConstScoreQuery::new(Box::new(term), score))
}

/// The BM25 weight of a term that occurs in this many of all documents. Deleted documents may still be counted.
pub(crate) fn rarity(total: f32, count: f32) -> f32 {
    (1.0 + (total - count + 0.5).max(0.0) / (count + 0.5)).ln()
}

/// Those files named in a query that were touched; the fewer turns touched one, the more it weighs.
fn known_files<'a>(fields: Fields, searcher: &Searcher, query: &'a Query) -> tantivy::Result<Vec<(&'a str, f32)>> {
    let total = searcher.num_docs().max(1) as f32;
    let mut known = Vec::new();
    for file in &query.files {
        let count = searcher.doc_freq(&Term::from_field_text(fields.path, &words::exact(file)))? as f32;
        if count > 0.0 {
            known.push((file.as_str(), rarity(total, count) * 3.0 * (PROSE + STEM)));
        }
    }
    Ok(known)
}

/// Whether a word is a run in a script without spaces, which means several words.
pub(crate) fn is_run(word: &words::Word) -> bool {
    word.parts.len() > 1
        && word.whole.is_none()
        && word.parts.iter().all(|part| !part.is_ascii() && part.chars().count() == 2)
}

/// How many of this many pairs must match. A run is treated as a sentence without spaces: one word of a query is
/// enough, more score higher. A required run needs more than one pair.
fn pairs_needed(pairs: usize, is_required: bool) -> usize {
    match is_required {
        false => 1,
        true if pairs <= 2 => pairs,
        true => pairs.div_ceil(3).max(2),
    }
}

/// The given turns as they are in the index, without those that are no longer there.
pub(crate) fn turns_at(
    words: &Words,
    searcher: &Searcher,
    limits: &Limits,
    turns: &[(u64, u32)],
) -> tantivy::Result<Vec<Hit>> {
    let collector = Turns::within(limits);
    let mut hits = Vec::new();
    for (ordinal, reader) in searcher.segment_readers().iter().enumerate() {
        let places = reader.inverted_index(words.fields.place)?;
        let mut found = collector.for_segment(SegmentOrdinal::try_from(ordinal).unwrap_or(0), reader)?;
        for &(file, turn) in turns {
            let term = Term::from_field_u64(words.fields.place, place_key(file, turn));
            let Some(mut postings) = places.read_postings(&term, IndexRecordOption::Basic)? else { continue };
            while postings.doc() != TERMINATED {
                if reader.alive_bitset().is_none_or(|alive| alive.is_alive(postings.doc())) {
                    found.collect(postings.doc(), 0.0);
                }
                postings.advance();
            }
        }
        hits.extend(found.harvest());
    }
    // A turn with many words is several documents.
    hits.sort_by_key(|hit| (hit.file, hit.turn, hit.offset));
    hits.dedup_by_key(|hit| (hit.file, hit.turn));
    Ok(hits)
}
