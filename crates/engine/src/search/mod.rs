//! Finding past conversations by their words and by their meaning.
//!
//! `words` says what a word is, `query` what was asked (`pieces` takes it apart), `document` what of a turn goes into the
//! index, `index` keeps it, `update` brings it up to date (`upkeep` when, `helpers` for subagents), `find` asks it (`known` for
//! each word alone), and `absent` tells what is nowhere; `stumble` catches what they panic over. `results` says
//! whose hits they are (`queue` in which order), and `snippet` shows why, by the words that are `wanted` (`sieve` tells
//! where they can't be); `gone` lists those
//! that only an exported file is left of. `vectors` keeps what
//! the chunks of prose mean (`embeddable` says which, `making` makes them), and `hybrid` puts that together with what `find` found; without the feature `semantic`,
//! `words_only` stands in.

pub(crate) mod absent;
pub(crate) mod branch;
pub(crate) mod cover;
pub(crate) mod document;
#[cfg(feature = "semantic")]
pub(crate) mod embeddable;
pub(crate) mod error;
pub(crate) mod find;
pub(crate) mod folder;
pub(crate) mod gone;
pub(crate) mod helpers;
#[cfg(feature = "semantic")]
pub(crate) mod hybrid;

pub use error::{Error, IndexTrouble, Result};
#[cfg(not(feature = "semantic"))]
#[path = "words_only.rs"]
pub(crate) mod hybrid;
pub(crate) mod index;
pub(crate) mod known;
#[cfg(feature = "semantic")]
pub(crate) mod language;
#[cfg(feature = "semantic")]
pub(crate) mod making;
pub(crate) mod notices;
pub(crate) mod pieces;
pub(crate) mod qmd;
pub(crate) mod query;
pub(crate) mod queue;
pub(crate) mod results;
#[cfg(test)]
pub(crate) mod seed_tests;
pub(crate) mod sieve;
pub(crate) mod slips;
pub(crate) mod smart;
pub(crate) mod snippet;
pub(crate) mod stumble;
pub(crate) mod turns;
pub(crate) mod update;
pub(crate) mod upkeep;
#[cfg(feature = "semantic")]
pub(crate) mod vectors;
pub(crate) mod view;
pub(crate) mod wanted;
pub(crate) mod words;

use std::time::{Duration, Instant};

pub use find::Correction;
use find::Hits;
use index::Words;
pub use pieces::FILTERS;
pub use qmd::{DEFAULT_COLLECTION, RECENT};
pub use query::{Engine, Limits, Now, Query, time as query_time, without_line};
use results::Sessions;
pub use snippet::Snippet;
pub use stumble::{distrust_index, is_panic_caught};
use tantivy::Searcher;
use update::Budget;
pub use update::{IndexProgress, Missing};
pub use upkeep::IndexStatus;
use upkeep::Look;
pub use view::{ResultView, SearchView, SuggestionsView, rounded};

use crate::ctx::Ctx;
use crate::sessions::catalog::{Entry, Progress};
use crate::sessions::session::Session;

/// How long a search works on the index before it answers.
const BEFORE: Duration = Duration::from_secs(5);

/// How long a search embeds sessions before it answers: a person does not wait longer than a second for all of it.
pub const EMBEDDING: Duration = Duration::from_millis(500);

/// What a search found.
#[derive(Debug)]
pub struct Answer {
    /// What was asked.
    pub query: String,
    /// What answered: `words` or `hybrid`.
    pub engine: &'static str,
    /// What the meaning of the results rests on.
    pub grounds: Grounds,
    /// The sessions, best first.
    pub results: Vec<Found>,
    /// Whether there is no session at all.
    pub no_sessions: bool,
    /// Words that were taken for others.
    corrections: Vec<Correction>,
    /// Words that are nowhere.
    unknown: Vec<String>,
    /// What is not in the index yet.
    pub missing: Missing,
    /// Lines of transcripts that are too long to be searched.
    left_out: u64,
    /// Folders of agents that could not be looked into, and why.
    unlisted: Vec<String>,
    /// What else there is to say of the index.
    notices: Vec<String>,
    /// What was asked before this engine, and why it did not answer.
    pub errors: Vec<EngineError>,
    /// What it was made from. To take thousands of sessions apart takes a while: a process that ends now had better
    /// forget the whole answer.
    remains: Option<Remains>,
}

struct Remains {
    _look: Look,
}

impl std::fmt::Debug for Remains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

/// Why an engine did not answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EngineError {
    /// The engine, or the step of it.
    pub engine: &'static str,
    /// What it said, on one line and safe to print.
    pub message: String,
}

/// What a search by meaning rests on. Where it says nothing, on the vectors of everything that was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grounds {
    /// Sessions that could match and are not embedded yet, so that words alone found them.
    pub missing: usize,
    /// Whether the question is in a language that the model does not know, so that words alone decided.
    pub unknown_language: bool,
}

/// What there is of vectors.
#[derive(Debug, Clone, serde::Serialize)]
pub struct VectorStatus {
    /// Vectors.
    pub vectors: usize,
    /// Sessions that have all of theirs.
    pub sessions: usize,
    /// Sessions that do not.
    pub missing: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

/// A session that was found.
#[derive(Debug)]
pub struct Found {
    /// From 0 to 1.
    pub score: f32,
    /// The session.
    pub session: Session,
    /// The turn that fits best.
    pub turn: u32,
    /// Why it was found.
    pub snippet: Snippet,
    /// What is wrong with its transcript.
    pub warning: Option<String>,
    /// The forks that hold this turn, too.
    pub forks: Vec<String>,
    /// Where it was found, if not in the transcript.
    pub source: Option<String>,
}

/// A search as somebody asks for it.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// What is looked for.
    pub query: &'a Query,
    /// What else is asked of the sessions, beside what the query says.
    pub limits: &'a Limits,
    /// How many sessions are shown at most.
    pub limit: usize,
    /// How long sessions that could match are embedded before the answer, where some are not; see [`EMBEDDING`].
    pub embedding: Duration,
    /// Told while sessions are read.
    pub progress: &'a dyn Progress,
    /// Told while the index is built.
    pub indexing: &'a dyn IndexProgress,
}

/// Looks for sessions. The index is brought up to date first, as far as a few seconds go; one that turns out to be
/// damaged is built anew. Where a phrase is nowhere, its words are looked for, and that is said.
pub(crate) fn search(ctx: &Ctx, asking: Asking<'_>) -> Result<Answer> {
    let query = asking.query;
    let answer = search_whole(ctx, asking)?;
    let Some(looser) = query.with_phrases_as_words().filter(|_| answer.results.is_empty()) else {
        return Ok(answer);
    };
    let mut again = search_whole(ctx, Asking { query: &looser, ..asking })?;
    let phrases: Vec<String> = query.phrases.iter().map(|phrase| format!("\"{phrase}\"")).collect();
    let (named, whose) = match phrases.as_slice() {
        [only] => (format!("{only} was not found"), "its"),
        several => (format!("no turn contains all of {}", several.join(" and ")), "their"),
    };
    again
        .notices
        .extend(answer.notices.into_iter().filter(|notice| !again.notices.contains(notice)).collect::<Vec<_>>());
    again.notices.push(match again.results.is_empty() {
        true => named,
        false => format!("{named}; searched for {whose} words instead"),
    });
    Ok(again)
}

/// What is asked of the sessions by the query and beside it. A directory in a query is relative to where the person
/// is, and `~` is their home.
fn limits(ctx: &Ctx, query: &Query, given: &Limits) -> Limits {
    let mut limits = query.limits.clone();
    let context = ctx.context();
    limits.directory = limits.directory.map(|directory| match directory.strip_prefix("~") {
        Ok(inside) => context.surroundings.home.join(inside),
        Err(_) => context.cwd.join(directory),
    });
    limits.or(given.clone())
}

fn search_whole(ctx: &Ctx, asking: Asking<'_>) -> Result<Answer> {
    let why = match stumble::catch(|| search_once(ctx, asking)) {
        Ok(Err(Error::Index { trouble: IndexTrouble::Damaged, message, .. })) | Err(message) => message,
        Ok(answered) => return answered,
    };
    let notice = upkeep::remove_damaged(ctx, &why)?;
    let mut answer = search_once(ctx, asking)?;
    answer.notices.splice(0..0, notice);
    Ok(answer)
}

fn search_once(ctx: &Ctx, asking: Asking<'_>) -> Result<Answer> {
    let Asking { query, limits: given, limit, embedding, progress, indexing } = asking;
    let limits = limits(ctx, query, given);
    let question = hybrid::Question::of(query);
    if question.is_none() && matches!(query.engine, Engine::Hybrid | Engine::Meaning) && !hybrid::IS_THERE {
        return Err(Error::NoMeaning);
    }
    let budget = Budget { tools: false, until: Some(Instant::now() + BEFORE) };
    let ask = |words: &Words| -> tantivy::Result<(Searcher, Hits)> {
        let searcher = words.reader()?.searcher();
        let mut found = find::find(words, &searcher, query, &limits, limit)?;
        absent::missing(words.fields, &searcher, &mut found.unknown)?;
        Ok((searcher, found))
    };
    let (mut look, asked) = upkeep::look_and_ask(ctx, budget, progress, indexing, ask)?;
    let sessions = Sessions::of(&look, &limits, &ctx.registry().seeds()?);
    let mut answer = Answer {
        query: query.text.clone(),
        engine: if question.is_some() { "hybrid" } else { "words" },
        grounds: Grounds::default(),
        results: Vec::new(),
        no_sessions: !look.catalog.entries.iter().any(Entry::is_shown),
        corrections: Vec::new(),
        unknown: Vec::new(),
        missing: look.missing,
        left_out: 0,
        unlisted: look.catalog.unlisted().collect(),
        notices: Vec::new(),
        errors: Vec::new(),
        remains: None,
    };
    let failed = |error: tantivy::TantivyError| upkeep::trouble_as_error(ctx, error.into());
    let asked = look.words.as_ref().map(|words| asked.unwrap_or_else(|| ask(words))).transpose().map_err(failed)?;
    let (searcher, mut found) = asked.unzip();
    let found = found.get_or_insert_default();
    if let (Some(words), Some(searcher), Some(question)) = (&look.words, &searcher, question) {
        let asked = hybrid::Asked { question, query, limits: &limits, sessions: &sessions, embedding, indexing };
        let ranked = hybrid::rank(ctx, asked, words, searcher, &mut look.catalog, found);
        let (grounds, notices) = ranked.map_err(failed)?;
        answer.grounds = grounds;
        look.notices.extend(notices);
    }
    results::results(ctx, &look, query, &sessions, found, limit, &mut answer);
    answer.notices.extend(found.left_out.iter().map(|word| format!("excluded turns that contain `{word}`")));
    if query.is_cut {
        answer.notices.push(format!("the query is long; only its first {} different words were used", query::MOST));
    }
    if answer.results.is_empty() && !answer.no_sessions {
        answer.notices.extend(absent::hindrances(&look, &limits, searcher.as_ref()).map_err(failed)?);
    }
    if !answer.results.is_empty() {
        known::keep_what_says_something(query, &mut found.unknown);
    }
    if let Some(words) = look.words.as_ref().filter(|_| !found.unknown.is_empty()) {
        answer.left_out = words.table.rows.values().map(index::Row::left_out).sum();
    }
    answer.corrections = std::mem::take(&mut found.corrections);
    answer.unknown = std::mem::take(&mut found.unknown);
    answer.notices.splice(0..0, std::mem::take(&mut look.notices));
    answer.notices.extend(look.failed.take().map(|error| error.to_string()));
    answer.remains = Some(Remains { _look: look });
    Ok(answer)
}
