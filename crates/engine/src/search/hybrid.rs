//! Words and meaning together: what a search by words found gets a second score, and what only means the same is added.
//!
//! A turn's meaning is that of its chunk which is nearest to the question. Where a turn has no vector, because it is not
//! made yet or because the model cannot read it, its words speak for its meaning, too.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agents::Store;
use meaning::{Embedder, Vector};
use tantivy::Searcher;

use super::find::{self, Hit, Hits};
use super::index::{NO_OFFSET, Rows, Words};
use super::language::foreignness;
use super::query::{Engine, Limits, Query};
use super::update::IndexProgress;
use super::vectors::{self, Standing, Vectors, chunks_of_turn, document, key, short, turn};
use super::{Grounds, Sessions, VectorStatus};
use crate::Tine;
use crate::catalog::Catalog;

/// Whether this build has it.
pub(super) const IS_THERE: bool = true;

/// The most that words count for where the model understands the question; meaning is the rest.
const WORDS: f32 = 0.95;
/// How quickly words lose weight where even the best turn says only a part of the question.
const STEEP: f32 = 2.5;
/// What words count for however little of the question is said: one who says some of it, and means none of the rest, is there.
const FLOOR: f32 = 0.1;
/// Words decide about a question in another language as long as so much of it is said anywhere.
const COVERED: f32 = 0.05;
/// What shares no word with the question has to be this near to it,
const NEAR: f32 = 0.25;
/// or this, where no word of the question is said anywhere: it may mean nothing.
const NEAR_ALONE: f32 = 0.3;
/// and worth this much in the end.
const LEAST: f32 = 0.1;
/// How many chunks that are near are looked at.
const NEAREST: usize = 200;
/// How many of the best turns by words are compared with the question, if they have no vectors yet,
const RERANKED: usize = 50;
/// by how many chunks of each,
const CHUNKS: usize = 6;
/// and how long that may take.
const TIME: Duration = Duration::from_millis(800);
/// How many chunks are made into vectors between two looks at the clock.
const BATCH: usize = 16;

/// What is asked, on its way to becoming a vector while the index is looked at.
pub(super) struct Question(JoinHandle<(Embedder, Vector)>);

impl Question {
    /// Nothing, where words alone are to answer or there is nothing to be understood.
    pub(super) fn of(query: &Query) -> Option<Question> {
        if query.engine == Engine::Words || query.said.trim().is_empty() {
            return None;
        }
        let said = query.said.clone();
        let embed = move || {
            let embedder = Embedder::new();
            let vector = embedder.embed(&said);
            (embedder, vector)
        };
        std::thread::Builder::new().spawn(embed).ok().map(Question)
    }
}

/// A search.
pub(super) struct Asked<'a> {
    pub question: Question,
    pub query: &'a Query,
    pub limits: &'a Limits,
    pub sessions: &'a Sessions,
}

/// How near a turn is, and by which of its chunks.
#[derive(Debug, Clone, Copy)]
struct Near {
    cosine: f32,
    part: u32,
}

type Meanings = HashMap<(u64, u32), Near>;

/// Puts the hits of words and what is near in meaning in one order.
pub(super) fn rank(
    tine: &Tine,
    asked: Asked<'_>,
    words: &Words,
    searcher: &Searcher,
    catalog: &mut Catalog,
    found: &mut Hits,
) -> tantivy::Result<(Grounds, Vec<String>)> {
    let Asked { question, query, limits, sessions } = asked;
    let vectors = Vectors::open(&tine.context().paths.cache);
    let standing = vectors.standing(catalog, &words.table.rows);
    let mut grounds = Grounds { missing: standing.missing, ..Grounds::default() };
    let mut notices: Vec<String> = vectors.damage.iter().map(|why| damaged(why)).collect();
    let Ok((embedder, vector)) = question.0.join() else { return Ok((grounds, notices)) };
    if vector == Vector::NOTHING {
        grounds.unknown_language = true;
        return Ok((grounds, notices));
    }
    let mut meanings = Meanings::new();
    let bad = near_vectors(&vectors, &standing, &vector, found, sessions, query.is_strict(limits), &mut meanings);
    if bad > 0 && vectors.damage.is_none() {
        notices.push(damaged("a vector is not as it was written"));
        grounds.missing = grounds.missing.max(1);
    }
    if standing.missing > 0 {
        let is_missing = |hit: &Hit| standing.sessions.get(&short(hit.file)).is_none_or(|(_, until)| hit.turn > *until);
        let candidates = best_without_vectors(found, sessions, is_missing);
        grounds.reranked = rerank(tine, catalog, sessions, &embedder, &vector, &candidates, &mut meanings);
    }
    if query.engine == Engine::Meaning {
        found.hits.clear();
    }
    let by_words: HashSet<(u64, u32)> = found.hits.iter().map(|hit| (hit.file, hit.turn)).collect();
    let near_enough = if found.coverage > 0.0 { NEAR } else { NEAR_ALONE };
    let others = meanings.iter().filter(|(place, near)| near.cosine >= near_enough && !by_words.contains(place));
    let others: Vec<(u64, u32)> = others.map(|(place, _)| *place).collect();
    let mut hits = std::mem::take(&mut found.hits);
    hits.extend(find::turns_at(words, searcher, limits, &others)?);
    if query.engine == Engine::Meaning {
        fuse(&mut hits, &meanings, 0.0, 0.0);
    } else {
        let share = share_of_words(found, foreignness(&query.said));
        fuse(&mut hits, &meanings, share, found.coverage);
    }
    // What shares no word with the question and means little like it was not asked for.
    hits.retain(|hit| hit.score >= LEAST || by_words.contains(&(hit.file, hit.turn)));
    found.replace(hits);
    Ok((grounds, notices))
}

/// Whether a word is one of the language that the model was taught, as far as its vocabulary goes.
pub(super) fn is_proper_word(word: &str) -> bool {
    meaning::is_word(word)
}

fn damaged(why: &str) -> String {
    format!("the vectors are damaged and will be made anew: {why}")
}

/// What words count for. The more of the question the best hit says in its own words, the more they do: a message or a file
/// name that was pasted is found by them, and a paraphrase is not. Where the model does not know the question's language,
/// meaning says little.
fn share_of_words(found: &Hits, foreignness: f32) -> f32 {
    let said = found.best_cover * found.coverage;
    // Words that nobody said decide nothing.
    let foreignness = if found.coverage < COVERED || said <= 0.0 { 0.0 } else { foreignness };
    // An identifier that is there means itself.
    let most = if found.is_identifier { 1.0 } else { WORDS };
    said.powf(STEEP).min(most).max(foreignness)
}

/// One score of two. Words count half by how many of them are there, and half by how they compare with the best hit, which
/// is what lets a message that stands only in tool output win; both as far as what was asked is said anywhere at all.
fn fuse(hits: &mut [Hit], meanings: &Meanings, share: f32, coverage: f32) {
    let best_words = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let best_cosine = meanings.values().map(|near| near.cosine).fold(0.0, f32::max);
    // What words say of a turn whose meaning is not known is worth what they are worth at all.
    let trust = (2.0 * best_words * coverage).min(1.0);
    for hit in hits {
        let relative = if best_words > 0.0 { hit.score / best_words } else { 0.0 };
        let words = coverage * (hit.score + relative) / 2.0;
        let near = meanings.get(&(hit.file, hit.turn));
        let meaning = match near {
            Some(near) => near.cosine.max(0.0),
            None => best_cosine * relative * trust,
        };
        hit.part = near.map(|near| near.part);
        hit.score = FLOOR * hit.score + (1.0 - FLOOR) * (share * words + (1.0 - share) * meaning);
    }
}

/// Looks up what the vectors say of the hits of words, and what else is near. Gives how many are damaged.
fn near_vectors(
    vectors: &Vectors,
    standing: &Standing,
    question: &Vector,
    found: &Hits,
    sessions: &Sessions,
    is_strict: bool,
    meanings: &mut Meanings,
) -> usize {
    let Some(file) = &vectors.file else { return 0 };
    let place = |document: u64| {
        let (file, until) = *standing.sessions.get(&short(document))?;
        let turn = turn(document);
        (turn <= until).then_some((file, turn))
    };
    let by_words: HashSet<u64> = found.hits.iter().filter_map(|hit| document(hit.file, hit.turn)).collect();
    let mut near = file.cosines(question, |key| by_words.contains(&key.document));
    if !is_strict {
        let is_asked = |place: (u64, u32)| sessions.is_asked(place.0, place.1);
        let nearest = file.nearest(question, NEAREST, |key| place(key.document).is_some_and(is_asked));
        near.hits.extend(nearest.hits);
        near.damaged += nearest.damaged;
    }
    for hit in near.hits {
        if let Some(place) = place(hit.key.document) {
            take(meanings, place, Near { cosine: hit.score, part: hit.key.part });
        }
    }
    near.damaged
}

/// Where the chunk with this fingerprint stands in a text without secrets.
pub(super) fn place_of(text: &str, part: u32) -> Option<Range<usize>> {
    meaning::chunks(text).find(|range| key(0, 0, &text[range.clone()]).is_some_and(|key| key.part == part))
}

/// A turn is as near as its nearest chunk.
fn take(meanings: &mut Meanings, place: (u64, u32), near: Near) {
    let best = meanings.entry(place).or_insert(near);
    if near.cosine > best.cosine {
        *best = near;
    }
}

/// The best turns by words, as far as their meaning is not known.
fn best_without_vectors(found: &mut Hits, sessions: &Sessions, is_missing: impl Fn(&Hit) -> bool) -> Vec<Hit> {
    let mut candidates = Vec::new();
    let mut count = 0;
    for position in 0..found.hits.len() {
        let hit = found.best_first(position);
        if !sessions.is_asked(hit.file, hit.turn) {
            continue;
        }
        if is_missing(&hit) {
            candidates.push(hit);
        }
        count += 1;
        if count >= RERANKED {
            break;
        }
    }
    candidates
}

/// Reads turns and makes vectors of them, as far as time goes. Gives how many turns that were.
fn rerank(
    tine: &Tine,
    catalog: &Catalog,
    sessions: &Sessions,
    embedder: &Embedder,
    question: &Vector,
    candidates: &[Hit],
    meanings: &mut Meanings,
) -> usize {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut queue: Vec<(u64, u32, u32, String)> = Vec::new();
    let mut flush = |queue: &mut Vec<(u64, u32, u32, String)>| {
        let texts: Vec<&str> = queue.iter().map(|(.., text)| text.as_str()).collect();
        for (vector, (file, turn, part, _)) in embedder.embed_all(&texts, threads).iter().zip(&*queue) {
            if *vector != Vector::NOTHING {
                take(meanings, (*file, *turn), Near { cosine: question.cosine(vector), part: *part });
            }
        }
        queue.clear();
    };
    let mut count = 0;
    for hit in candidates {
        if begun.elapsed() >= TIME {
            break;
        }
        let Some(entry) = sessions.entry(hit.file).map(|entry| &catalog.entries[entry]) else { continue };
        let mut taken = 0;
        let mut take_chunk = |chunk: &str| {
            if let Some(key) = key(hit.file, hit.turn, chunk) {
                queue.push((hit.file, hit.turn, key.part, chunk.to_owned()));
            }
            taken += 1;
            taken < CHUNKS
        };
        if hit.turn == 0 {
            vectors::each_chunk(entry.summary.title().unwrap_or_default(), |chunk| {
                take_chunk(chunk);
            });
        } else {
            let offset = Some(hit.offset).filter(|offset| *offset != NO_OFFSET);
            let store = tine.store(entry.summary.agent);
            // What cannot be read is told where it is shown.
            let _ = chunks_of_turn(store, &entry.summary, hit.turn, offset, take_chunk);
        }
        count += 1;
        if queue.len() >= BATCH {
            flush(&mut queue);
        }
    }
    flush(&mut queue);
    count
}

/// Vectors that are to be made.
pub(super) struct Making<'a> {
    pub cache: &'a Path,
    pub words: &'a Rows,
    pub stores: &'a [Box<dyn Store>],
    pub until: Option<Instant>,
    /// Whether those that are there are thrown away.
    pub rebuild: bool,
}

impl Making<'_> {
    /// Makes them. What there is to say of it comes back.
    pub(super) fn make(&self, catalog: &mut Catalog, progress: &dyn IndexProgress) -> Result<Vec<String>, String> {
        if self.rebuild {
            vectors::throw_away(self.cache)?;
        }
        vectors::update(self.cache, catalog, self.words, self.stores, self.until, progress)
    }
}

/// What there is of vectors.
pub(super) fn status(
    cache: &Path,
    catalog: &mut Catalog,
    words: &Rows,
    notices: &mut Vec<String>,
) -> Option<VectorStatus> {
    let vectors = Vectors::open(cache);
    notices.extend(vectors.damage.iter().map(|why| damaged(why)));
    let missing = vectors.standing(catalog, words).missing;
    Some(VectorStatus {
        vectors: vectors.file.as_ref().map_or(0, meaning::VectorFile::len),
        sessions: vectors.sessions(words),
        missing,
        bytes: std::fs::metadata(vectors::path(cache)).map_or(0, |metadata| metadata.len()),
    })
}

#[cfg(test)]
mod tests {
    use tantivy::DocAddress;

    use super::*;

    #[test]
    fn what_words_find_counts_where_most_of_the_question_is_said_nowhere() {
        let hit = |turn: u32, score: f32| Hit {
            score,
            file: 1,
            turn,
            offset: 0,
            at: 0,
            part: None,
            address: DocAddress::new(0, turn),
        };
        let near = |turn: u32, cosine: f32| ((1, turn), Near { cosine, part: 0 });
        let meanings = Meanings::from([near(1, 0.3), near(2, 0.33), near(3, 0.4)]);
        let mut hits = [hit(1, 0.5), hit(2, 0.0), hit(3, 0.0)];
        // A fifth of what was asked is said by somebody.
        fuse(&mut hits, &meanings, 0.2_f32.powf(STEEP), 0.2);
        assert!(hits[0].score > hits[1].score, "{hits:?}");
        // Other words for all of it are nearer still.
        assert!(hits[2].score > hits[0].score, "{hits:?}");
        let mut all = [hit(1, 1.0)];
        fuse(&mut all, &Meanings::from([near(1, 1.0)]), 0.95, 1.0);
        assert!((all[0].score - 1.0).abs() < 1e-6, "{all:?}");
    }
}
