//! Combines words and meaning: hits by words get a second score, and turns with a similar meaning are added.
//!
//! A turn's score by meaning is that of its chunk nearest to the query. If a turn has no vector, because it is not
//! embedded yet or the model does not support it, its keyword score is used instead.

use std::collections::{HashMap, HashSet};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use meaning::{Embedder, Vector};
use tantivy::Searcher;

use super::Grounds;
use super::find::{self, Hit, Hits};
use super::sessions::Sessions;
use crate::ctx::Ctx;
use crate::search::index::embeddings::selection::each_chunk;
use crate::search::index::embeddings::vectors::{VectorCoverage, Vectors, chunks_of_turn, document, key, short, turn};
use crate::search::index::embeddings::{self, create};
use crate::search::index::schema::NO_OFFSET;
use crate::search::index::update::IndexProgress;
use crate::search::index::{Words, branch};
use crate::search::query::language::language_mismatch;
use crate::search::query::{Engine, Limits, Query};
use crate::sessions::catalog::Catalog;

/// Whether this build has search by meaning.
pub(crate) const IS_THERE: bool = true;

/// The largest weight of words if the model understands the query; the rest is meaning.
const WORDS: f32 = 0.95;
/// How quickly words lose weight if even the best turn contains only part of the query.
const STEEP: f32 = 2.5;
/// The smallest weight of words, however little of the query matches: a turn that contains some of the words and means
/// none of the rest is still shown.
const FLOOR: f32 = 0.1;
/// For a query in an unsupported language, words decide if at least this share of it occurs anywhere.
const COVERED: f32 = 0.05;
/// A turn that shares no word with the query must be this near to it,
const NEAR: f32 = 0.25;
/// or this near if no word of the query occurs anywhere, because the query may mean nothing,
const NEAR_ALONE: f32 = 0.3;
/// and must have at least this score in the end.
const LEAST: f32 = 0.1;
/// How many of the nearest chunks are considered.
const NEAREST: usize = 200;
/// How many of the best turns by words are compared with the query if they have no vectors yet,
const RERANKED: usize = 50;
/// how many chunks of each,
const CHUNKS: usize = 6;
/// and which share of the time is reserved for that if it is too short to embed all sessions.
const LEFT: u32 = 3;
/// How many chunks are embedded between two checks of the clock.
const BATCH: usize = 16;

/// A query that is embedded while the index is searched.
pub(crate) struct Question(JoinHandle<(Embedder, Vector)>);

impl Question {
    /// `None` if only words should answer or the query has no meaning.
    pub(crate) fn of(query: &Query) -> Option<Question> {
        if query.engine == Engine::Words || query.said.trim().is_empty() {
            return None;
        }
        let said = query.said.clone();
        let embed = move || {
            let embedder = Embedder::new();
            let vector = embedder.embed(&said);
            (embedder, vector)
        };
        std::thread::Builder::new().spawn(embed).or_log("start a thread for the model").map(Question)
    }
}

/// A search.
pub(crate) struct RankRequest<'a> {
    pub question: Question,
    pub query: &'a Query,
    pub limits: &'a Limits,
    pub sessions: &'a Sessions,
    /// How long sessions without vectors may be embedded.
    pub embedding: Duration,
    pub indexing: &'a dyn IndexProgress,
}

/// How near a turn is, and its nearest chunk.
#[derive(Debug, Clone, Copy)]
struct NearestChunk {
    cosine: f32,
    part: u32,
}

type NearestChunks = HashMap<(u64, u32), NearestChunk>;

/// Merges the hits by words and by meaning into one order.
pub(crate) fn rank(
    ctx: &Ctx,
    asked: RankRequest<'_>,
    words: &Words,
    searcher: &Searcher,
    catalog: &mut Catalog,
    found: &mut Hits,
) -> tantivy::Result<(Grounds, Vec<String>)> {
    let RankRequest { question, query, limits, sessions, embedding, indexing } = asked;
    let cache = &ctx.context().paths.cache;
    let mut vectors = Vectors::open(cache);
    let mut notices: Vec<String> = vectors.damage.iter().map(|why| embeddings::damaged(why)).collect();
    let mut grounds = Grounds::default();
    let Ok((embedder, vector)) = question.0.join() else { return Ok((grounds, notices)) };
    if vector == Vector::NOTHING {
        grounds.unknown_language = true;
        return Ok((grounds, notices));
    }
    let rows = &words.table.rows;
    let is_strict = query.is_strict(limits);
    let mut standing = vectors.coverage(catalog, rows);
    let mut missing = unknown_sessions(&standing, catalog, sessions, found, is_strict);
    let end = Instant::now() + embedding;
    if !missing.is_empty() {
        let until = Some(end - embedding / LEFT);
        let adapters = ctx.adapters();
        let making = create::EmbeddingRequest {
            cache,
            words: rows,
            adapters,
            embedder: &embedder,
            until,
            files: Some(&missing),
        };
        match create::update(&making, catalog, indexing) {
            Ok(made) => notices.extend(made.into_iter().filter(|_| vectors.damage.is_none())),
            Err(why) => notices.push(why),
        }
        vectors = Vectors::open(cache);
        standing = vectors.coverage(catalog, rows);
        missing = unknown_sessions(&standing, catalog, sessions, found, is_strict);
    }
    // If the gist of a session has been embedded, the session was compared; of one that has grown, its new turns were not.
    let is_compared = |file: &u64| standing.sessions.get(&short(*file)).is_some_and(|(_, until)| *until == u32::MAX);
    grounds.missing = missing.iter().filter(|file| !is_compared(file)).count();
    let mut meanings = NearestChunks::new();
    let bad = near_vectors(&vectors, &standing, &vector, found, sessions, is_strict, &mut meanings);
    if bad > 0 && vectors.damage.is_none() {
        notices.push(embeddings::damaged("a vector has changed since it was written"));
        grounds.missing = grounds.missing.max(1);
    }
    if !missing.is_empty() {
        // Other branches have no vectors and are found by words only.
        let is_missing = |hit: &Hit| {
            branch::split(hit.turn).is_none()
                && standing.sessions.get(&short(hit.file)).is_none_or(|(_, until)| hit.turn > *until)
        };
        let candidates = best_without_vectors(found, sessions, is_missing);
        rerank(ctx, catalog, sessions, &embedder, &vector, &candidates, end, &mut meanings);
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
        let share = share_of_words(found, language_mismatch(&query.said));
        fuse(&mut hits, &meanings, share, found.coverage);
    }
    // A turn that shares no word with the query and is not near in meaning is not a match.
    hits.retain(|hit| hit.score >= LEAST || by_words.contains(&(hit.file, hit.turn)));
    found.replace(hits);
    Ok((grounds, notices))
}

/// Sessions that could match by meaning and lack vectors: first those found by words, best first, then the newest.
fn unknown_sessions(
    standing: &VectorCoverage,
    catalog: &Catalog,
    sessions: &Sessions,
    found: &mut Hits,
    is_strict: bool,
) -> Vec<u64> {
    let could_match = |(entry, file): &&(usize, u64)| sessions.could_match(*file, &catalog.entries[*entry]);
    let mut missing: Vec<(usize, u64)> = standing.missing.iter().filter(could_match).copied().collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let mut places: HashMap<u64, usize> = HashMap::new();
    for position in 0..found.hits.len() {
        places.entry(found.best_first(position).file).or_insert(position);
    }
    if is_strict {
        missing.retain(|(_, file)| places.contains_key(file));
    }
    let newest = |entry: usize| std::cmp::Reverse(catalog.entries[entry].stamp.modified);
    missing.sort_by_key(|(entry, file)| (places.get(file).copied().unwrap_or(usize::MAX), newest(*entry)));
    missing.into_iter().map(|(_, file)| file).collect()
}

/// Whether a word belongs to the language of the model, according to its vocabulary.
pub(crate) fn is_proper_word(word: &str) -> bool {
    meaning::is_word(word)
}

/// The weight of words. It grows with the share of the query that the best hit contains: pasted messages and file names
/// are found by words, paraphrases are not. If the model does not support the query's language, meaning has little
/// weight.
fn share_of_words(found: &Hits, foreignness: f32) -> f32 {
    let said = found.best_cover * found.coverage;
    // Words that occur nowhere decide nothing.
    let foreignness = if found.coverage < COVERED || said <= 0.0 { 0.0 } else { foreignness };
    // If an identifier occurs, it is what the query means.
    let most = if found.is_identifier { 1.0 } else { WORDS };
    said.powf(STEEP).min(most).max(foreignness)
}

/// Combines two scores into one. The keyword score counts half absolutely and half relative to the best hit, so that a
/// message that occurs only in tool output can win; both are multiplied by the share of the query that occurs anywhere.
fn fuse(hits: &mut [Hit], meanings: &NearestChunks, share: f32, coverage: f32) {
    let best_words = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let best_cosine = meanings.values().map(|near| near.cosine).fold(0.0, f32::max);
    // If the meaning of a turn is unknown, its keyword score counts as much as keywords count for this query.
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

/// Looks up the vectors of the hits by words, and finds other near ones. Returns how many vectors are damaged.
fn near_vectors(
    vectors: &Vectors,
    standing: &VectorCoverage,
    question: &Vector,
    found: &Hits,
    sessions: &Sessions,
    is_strict: bool,
    meanings: &mut NearestChunks,
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
            take(meanings, place, NearestChunk { cosine: hit.score, part: hit.key.part });
        }
    }
    near.damaged
}

/// A turn is as near as its nearest chunk.
fn take(meanings: &mut NearestChunks, place: (u64, u32), near: NearestChunk) {
    let best = meanings.entry(place).or_insert(near);
    if near.cosine > best.cosine {
        *best = near;
    }
}

/// The best turns by words whose meaning is not known yet.
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

/// Reads and embeds turns while time permits.
#[expect(clippy::too_many_arguments, reason = "one search")]
fn rerank(
    ctx: &Ctx,
    catalog: &Catalog,
    sessions: &Sessions,
    embedder: &Embedder,
    question: &Vector,
    candidates: &[Hit],
    end: Instant,
    meanings: &mut NearestChunks,
) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut queue: Vec<(u64, u32, u32, String)> = Vec::new();
    let mut flush = |queue: &mut Vec<(u64, u32, u32, String)>| {
        let texts: Vec<&str> = queue.iter().map(|(.., text)| text.as_str()).collect();
        for (vector, (file, turn, part, _)) in embedder.embed_all(&texts, threads).iter().zip(&*queue) {
            if *vector != Vector::NOTHING {
                take(meanings, (*file, *turn), NearestChunk { cosine: question.cosine(vector), part: *part });
            }
        }
        queue.clear();
    };
    for hit in candidates {
        if Instant::now() >= end {
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
            each_chunk(entry.summary.title().unwrap_or_default(), |chunk| {
                take_chunk(chunk);
            });
        } else {
            let offset = Some(hit.offset).filter(|offset| *offset != NO_OFFSET);
            let adapter = ctx.adapter(entry.summary.agent);
            // An unreadable transcript is reported where it is shown.
            chunks_of_turn(adapter, &entry.summary, hit.turn, offset, take_chunk).or_log("read a turn again");
        }
        if queue.len() >= BATCH {
            flush(&mut queue);
        }
    }
    flush(&mut queue);
}

#[cfg(test)]
mod tests {
    use tantivy::DocAddress;
    use testkit::build::ClaudeSession;

    use super::*;
    use crate::Quiet;
    use crate::search::query::Now;
    use crate::search::request::SearchRequest;
    use crate::search::show::Answer;
    use crate::test_world::World;

    /// Sessions that share no word with what is asked, the one that is meant being the oldest.
    fn world() -> World {
        let world = World::new();
        let said = [
            ("The login page redirects in a loop after the password is entered.", "The cookie was never set."),
            ("The invoice PDF has the wrong font.", "I embedded the typeface into the document."),
            ("Make the nightly backup compress its archive.", "It uses zstd now."),
        ];
        for (number, (prompt, answer)) in (1..).zip(said) {
            ClaudeSession::new(&format!("5e55c0de-0000-4000-8000-00000000000{number}"))
                .cwd(&world.repository)
                .seed(number)
                .turn(|turn| turn.prompt(prompt).text(answer))
                .write(&world.claude_home());
        }
        world
    }

    fn ask(world: &World, said: &str, embedding: Duration) -> Answer {
        let now = Now { time: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let limits = Limits::default();
        let query = Query::parse(said, &limits, &now).unwrap();
        let asking =
            SearchRequest { query: &query, limits: &limits, limit: 10, embedding, progress: &Quiet, indexing: &Quiet };
        world.tine().search(asking).unwrap()
    }

    fn first(answer: &Answer) -> Option<&str> {
        answer.results.first().map(|found| found.session.view.id.as_str())
    }

    const STUCK: &str = "visitors are stuck signing in over and over";
    const LOGIN: &str = "5e55c0de-0000-4000-8000-000000000001";

    #[test]
    fn the_first_search_with_an_empty_cache_finds_by_meaning() {
        let world = world();
        let answer = ask(&world, STUCK, Duration::from_secs(600));
        assert_eq!((first(&answer), answer.grounds.missing), (Some(LOGIN), 0), "{answer:?}");
    }

    #[test]
    fn a_search_without_time_to_embed_says_what_it_left_out() {
        let world = world();
        let answer = ask(&world, STUCK, Duration::ZERO);
        assert_eq!((first(&answer), answer.grounds.missing), (None, 3), "{answer:?}");
        // What has to hold certain words cannot be found by its meaning, so nothing is left out.
        let strict = ask(&world, "+stuck signing", Duration::ZERO);
        assert_eq!((first(&strict), strict.grounds.missing), (None, 0), "{strict:?}");
        let narrowed = ask(&world, &format!("agent:codex {STUCK}"), Duration::ZERO);
        assert_eq!(narrowed.grounds.missing, 0, "{narrowed:?}");
        assert_eq!(first(&ask(&world, STUCK, Duration::from_secs(600))), Some(LOGIN));
    }

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
        let near = |turn: u32, cosine: f32| ((1, turn), NearestChunk { cosine, part: 0 });
        let meanings = NearestChunks::from([near(1, 0.3), near(2, 0.33), near(3, 0.4)]);
        let mut hits = [hit(1, 0.5), hit(2, 0.0), hit(3, 0.0)];
        // A fifth of what was asked is said by somebody.
        fuse(&mut hits, &meanings, 0.2_f32.powf(STEEP), 0.2);
        assert!(hits[0].score > hits[1].score, "{hits:?}");
        // Other words for all of it are nearer still.
        assert!(hits[2].score > hits[0].score, "{hits:?}");
        let mut all = [hit(1, 1.0)];
        fuse(&mut all, &NearestChunks::from([near(1, 1.0)]), 0.95, 1.0);
        assert!((all[0].score - 1.0).abs() < 1e-6, "{all:?}");
    }
}
