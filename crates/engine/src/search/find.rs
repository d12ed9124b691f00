//! Asking the index: which turns hold the words, and how well.

use std::collections::HashSet;

use tantivy::collector::{Collector, Count, SegmentCollector};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, Query as Matcher, RegexQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Searcher, SegmentOrdinal, TERMINATED, Term};

use super::cover::Cover;
use super::document::normal_path;
use super::index::{Fields, Words, place_key};
use super::known::{KnownWord, is_corrected, known_word};
use super::query::{AskedWord, Limits, Query};
use super::turns::Turns;
use super::words;

/// Prose ranks before what tools did.
const PROSE: f32 = 3.0;
const STEM: f32 = 1.5;
const TOOLS: f32 = 0.7;
/// So many of the best hits of a segment are enough, unless they are all of a few sessions.
const MOST: usize = 1000;
/// How many of the best hits are looked at more closely,
const LOOKED_AT: usize = 200;
/// and what the score of one comes nearest to that says all of the question, however seldom and wherever.
const ALL_SAID: f32 = 0.9;
/// How much a word that was taken for another one counts as one that is nowhere.
const CORRECTED: f32 = 0.3;
/// How many hits are put in order at once.
const AT_ONCE: usize = 500;
/// With so many sessions that have all words, those that have only some are of no interest.
const ENOUGH: usize = 10;

/// A turn that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    /// How well it fits, from 0 to 1.
    pub score: f32,
    pub file: u64,
    pub turn: u32,
    pub offset: u64,
    pub at: i64,
    /// The chunk of the turn that is nearest in meaning.
    pub part: Option<u32>,
    /// Where it stands in the index.
    pub address: DocAddress,
}

/// A word that was taken for another one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Correction {
    /// What was asked.
    pub asked: String,
    /// What was looked for.
    pub taken: String,
}

/// Everything that the index says to a query.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// In order only as far as [`Hits::best_first`] was asked.
    pub hits: Vec<Hit>,
    sorted: usize,
    /// Words that are nowhere, and what was looked for instead.
    pub corrections: Vec<Correction>,
    /// Words that are nowhere, with nothing like them.
    pub unknown: Vec<String>,
    /// Words that must not be there, and without which more would have been found.
    pub left_out: Vec<String>,
    /// How much of what was asked is said anywhere, from 0 to 1; rare words count more, and a word that is nowhere most.
    pub coverage: f32,
    /// How much of it one turn says, the one that says most.
    pub best_cover: f32,
    /// Whether nothing but an identifier was asked for.
    pub is_identifier: bool,
    /// The terms that count as hits in a text: as they are, and their stems.
    pub terms: Vec<Vec<String>>,
}

impl Hits {
    /// Other hits in the place of these.
    pub(super) fn replace(&mut self, hits: Vec<Hit>) {
        self.hits = hits;
        self.sorted = 0;
    }

    /// The hit at this place, best first. Of tens of thousands only the first few are asked for.
    pub(super) fn best_first(&mut self, position: usize) -> Hit {
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
    /// Gives the best hits the score of what they say of the question, wherever they say it.
    fn look_closer(&mut self, cover: &Cover, searcher: &Searcher) -> tantivy::Result<()> {
        if cover.mass <= 0.0 || self.hits.is_empty() {
            self.best_cover = 1.0;
            return Ok(());
        }
        self.best_first(0);
        let count = self.hits.len().min(LOOKED_AT);
        let addresses: Vec<DocAddress> = self.hits[..count].iter().map(|hit| hit.address).collect();
        let covers = cover.of_turns(searcher, &addresses)?;
        for (hit, cover) in self.hits.iter_mut().zip(covers) {
            // Half of the words are often there by chance; all of them are not.
            hit.score += (1.0 - hit.score) * ALL_SAID * cover.powi(3);
            self.best_cover = self.best_cover.max(cover);
        }
        self.sorted = 0;
        Ok(())
    }
}

/// Looks for what was asked in the turns that `limits` leave: for all of them, or for enough to show so many sessions.
pub(super) fn find(
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
                found.corrections.push(Correction { asked: said(word), taken: other.clone() });
                let taken = words::words(&other).into_iter().next();
                asked.extend(taken.map(|taken| AskedWord { word: taken, required: word.required }));
            }
            KnownWord::Like { .. } | KnownWord::No => found.unknown.push(said(word)),
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
    // Few words are meant together; a sentence is meant by its sense.
    let together = asked.len() > 1 && asked.len() <= 3 && found.unknown.is_empty();
    let best = matcher.best_score(&asked)?;
    let cover = Cover::of(words.fields, searcher, &asked)?;
    let nowhere = found.unknown.len() as f32 + CORRECTED * found.corrections.len() as f32;
    found.is_identifier = matches!(asked.as_slice(), [only] if only.word.whole.is_some()) && nowhere == 0.0;
    let rarest = (searcher.num_docs().max(1) as f32 * 2.0).ln_1p();
    found.coverage = if cover.mass > 0.0 { cover.mass / (cover.mass + nowhere * rarest) } else { 1.0 };
    // Who is shown is decided later; where that may leave out many, all have to be known.
    let is_open = *limits == Limits::default() && query.phrases.is_empty() && query.without_phrases.is_empty();
    let collector = Turns { most: if is_open { MOST } else { usize::MAX }, ..Turns::within(limits) };
    // Sessions that touched a file are meant, whenever they did; without words, the turns in which they did it.
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
    found.look_closer(&cover, searcher)?;
    Ok(found)
}

fn sessions_of(hits: &[Hit]) -> usize {
    hits.iter().map(|hit| hit.file).collect::<HashSet<u64>>().len()
}

pub(super) fn said(asked: &AskedWord) -> String {
    let word = &asked.word;
    match &word.whole {
        // Without accents, it would look like another word.
        _ if !word.said.is_ascii() && !is_run(word) => word.said.to_lowercase(),
        Some(whole) => whole.clone(),
        None => word.parts.join(" "),
    }
}

/// What counts as this word in a text.
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
    /// The files that are named in the query and were touched somewhere, with what they are worth.
    files: Vec<(&'a str, f32)>,
}

type Clause = (Occur, Box<dyn Matcher>);

impl Match<'_> {
    /// The matcher of everything that was asked.
    fn build(&self, asked: &[AskedWord], together: bool) -> BooleanQuery {
        let mut clauses = self.wanted(asked, together);
        clauses.extend(self.query.without.iter().map(|word| (Occur::MustNot, self.unwanted(word))));
        BooleanQuery::new(clauses)
    }

    /// A word that must not be there: all of it.
    fn unwanted(&self, word: &AskedWord) -> Box<dyn Matcher> {
        self.word(&AskedWord { required: true, ..word.clone() })
    }

    /// The words that must not be there of which something that is asked for says one. An option of a command that was pasted
    /// looks like such a word, and nothing else would tell why what has it is not found.
    fn left_out(&self, asked: &[AskedWord]) -> tantivy::Result<Vec<String>> {
        let mut left_out = Vec::new();
        for word in &self.query.without {
            let mut clauses = self.wanted(asked, false);
            clauses.push((Occur::Must, self.unwanted(word)));
            if self.searcher.search(&BooleanQuery::new(clauses), &Count)? > 0 {
                left_out.push(said(word));
            }
        }
        Ok(left_out)
    }

    /// What a turn has to say and what it had better say.
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

    /// The turns that touched the file and used the tool that are asked for; nothing where none is.
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
                let needed = if is_run { needed(parts.len(), asked.required) } else { 0 };
                way(Box::new(BooleanQuery::with_minimum_required_clauses(parts, needed)), boost);
            }
        }
        Box::new(BooleanQuery::new(ways))
    }

    /// The score of a turn that has every word often and little else.
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
                // Its rarity, times what a term that is repeated comes to.
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

/// How much it says, by BM25, that so many of all have something. What was deleted may still be counted.
pub(super) fn rarity(total: f32, count: f32) -> f32 {
    (1.0 + (total - count + 0.5).max(0.0) / (count + 0.5)).ln()
}

/// Of the files that a query names, those that were touched; the fewer turns did, the more that says.
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

/// Whether a word is a run of a script without spaces, which is several words.
pub(super) fn is_run(word: &words::Word) -> bool {
    word.parts.len() > 1
        && word.whole.is_none()
        && word.parts.iter().all(|part| !part.is_ascii() && part.chars().count() == 2)
}

/// How many of so many pairs have to be there. A run is a sentence without spaces, as far as anybody knows: of a question,
/// one word is enough to be found, and more are better. What has to be there is there by more than one.
fn needed(pairs: usize, is_required: bool) -> usize {
    match is_required {
        false => 1,
        true if pairs <= 2 => pairs,
        true => pairs.div_ceil(3).max(2),
    }
}

/// The given turns, as the index has them; what is not in it any more is left out.
pub(super) fn turns_at(
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
    // A turn of many words is several documents.
    hits.sort_by_key(|hit| (hit.file, hit.turn, hit.offset));
    hits.dedup_by_key(|hit| (hit.file, hit.turn));
    Ok(hits)
}
