//! Finding past conversations by their words and by their meaning.
//!
//! `words` defines words, `query` parses queries (with `pieces`), `document` selects the text of a turn for the index,
//! `index` stores it, `update` updates it (`upkeep` decides when, `helpers` handles subagents), `find` queries it
//! (`known` looks up single words), and `absent` reports filters that match nothing; `stumble` catches panics of
//! tantivy. `results` assigns hits to sessions (`queue` sorts them), and `snippet` shows the match, using the `wanted`
//! terms (`sieve` skips text that cannot contain them); `gone` lists sessions of which only an exported file is left.
//! `vectors` stores embeddings of prose (`embeddable` selects it, `making` creates them), and `hybrid` combines them
//! with the hits of `find`; without the feature `semantic`, `words_only` replaces it.

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
pub use view::{BriefSession, BriefSuggestions, ResultView, SearchView, SmartForkView, SuggestionsView, rounded};

use crate::ctx::Ctx;
use crate::sessions::catalog::{Entry, Progress};
use crate::sessions::session::Session;

/// How long a search updates the index before it answers.
const BEFORE: Duration = Duration::from_secs(5);

/// How long a search embeds sessions before it answers: a user does not wait longer than a second in all.
pub const EMBEDDING: Duration = Duration::from_millis(500);

/// The result of a search.
#[derive(Debug)]
pub struct Answer {
    /// The query.
    pub query: String,
    /// The engine that answered: `words` or `hybrid`.
    pub engine: &'static str,
    /// How complete the search by meaning was.
    pub grounds: Grounds,
    /// The sessions, best first.
    pub results: Vec<Found>,
    /// Whether no session exists at all.
    pub no_sessions: bool,
    /// Words that were corrected.
    corrections: Vec<Correction>,
    /// Words that occur nowhere.
    unknown: Vec<String>,
    /// What is not in the index yet.
    pub missing: Missing,
    /// Lines of transcripts that are too long to index.
    left_out: u64,
    /// Folders of agents that could not be listed, and why.
    unlisted: Vec<String>,
    /// Other notices about the index.
    notices: Vec<String>,
    /// Engines that were tried before this one, and why they did not answer.
    pub errors: Vec<EngineError>,
    /// The data behind the answer. Freeing thousands of sessions takes time, so a process that is about to exit should
    /// leak the answer.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineError {
    /// The engine, or its step.
    pub engine: &'static str,
    /// Its message, on one line and safe to print.
    pub message: String,
}

/// How complete a search by meaning was. By default, it used the vectors of all prose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grounds {
    /// Sessions that could match and are not embedded yet, so only words could find them.
    pub missing: usize,
    /// Whether the query is in a language that the model does not support, so only words counted.
    pub unknown_language: bool,
}

/// The state of the vectors.
#[derive(Debug, Clone, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VectorStatus {
    /// Vectors.
    pub vectors: usize,
    /// Sessions that have all their vectors.
    pub sessions: usize,
    /// Sessions that lack some.
    pub missing: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

/// A matching session.
#[derive(Debug)]
pub struct Found {
    /// The score, from 0 to 1.
    pub score: f32,
    /// The session.
    pub session: Session,
    /// The best matching turn.
    pub turn: u32,
    /// The text that matched.
    pub snippet: Snippet,
    /// A problem with its transcript.
    pub warning: Option<String>,
    /// Other sessions (forks) that contain this turn.
    pub forks: Vec<String>,
    /// Where it was found, if not in the transcript.
    pub source: Option<String>,
}

/// A search request.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The query.
    pub query: &'a Query,
    /// More filters, in addition to those of the query.
    pub limits: &'a Limits,
    /// The maximum number of sessions to show.
    pub limit: usize,
    /// How long to embed sessions that could match before answering; see [`EMBEDDING`].
    pub embedding: Duration,
    /// Called while sessions are read.
    pub progress: &'a dyn Progress,
    /// Called while the index is built.
    pub indexing: &'a dyn IndexProgress,
}

/// Searches sessions. Updates the index first, for a few seconds at most, and rebuilds it if it is damaged. If a phrase
/// is not found, searches for its words and adds a notice.
pub(crate) fn search(ctx: &Ctx, asking: Asking<'_>) -> Result<Answer> {
    let query = asking.query;
    if let Some(collection) = &query.collection {
        return qmd::search_qmd(ctx, query, asking.limits, collection, asking.limit, asking.progress);
    }
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

/// The filters of the query and of the options. A directory in a query is relative to the user's directory, and `~` is
/// their home.
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
        let asked = hybrid::RankRequest { question, query, limits: &limits, sessions: &sessions, embedding, indexing };
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
