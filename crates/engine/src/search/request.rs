//! Answers a search request: updates the index, finds and ranks turns, and reads what is shown of them.

use std::time::{Duration, Instant};

use tantivy::Searcher;

use crate::ctx::Ctx;
use crate::search::error::{Error, IndexProblem, Result};
use crate::search::index::table::Row;
use crate::search::index::update::{Budget, IndexProgress};
use crate::search::index::upkeep::{self, BEFORE};
use crate::search::index::{Words, panics};
use crate::search::qmd;
use crate::search::query::{self, Engine, Limits, Query, limits};
use crate::search::rank::find::{self, Hits};
use crate::search::rank::sessions::Sessions;
use crate::search::rank::{Grounds, absent, hybrid, known};
use crate::search::show::{Answer, DeferredDrop, results};
use crate::sessions::catalog::{Entry, Progress};

/// How long a search embeds sessions before it answers: a user does not wait longer than a second in all.
pub const EMBEDDING: Duration = Duration::from_millis(500);

/// A search request.
#[derive(Clone, Copy)]
pub struct SearchRequest<'a> {
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
pub(crate) fn search(ctx: &Ctx, asking: SearchRequest<'_>) -> Result<Answer> {
    let query = asking.query;
    if let Some(collection) = &query.collection {
        return qmd::search_qmd(ctx, query, asking.limits, collection, asking.limit, asking.progress);
    }
    let answer = search_whole(ctx, asking)?;
    let Some(looser) = query.with_phrases_as_words().filter(|_| answer.results.is_empty()) else {
        return Ok(answer);
    };
    let mut again = search_whole(ctx, SearchRequest { query: &looser, ..asking })?;
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

fn search_whole(ctx: &Ctx, asking: SearchRequest<'_>) -> Result<Answer> {
    let why = match panics::catch(|| search_once(ctx, asking)) {
        Ok(Err(Error::Index { trouble: IndexProblem::Damaged, message, .. })) | Err(message) => message,
        Ok(answered) => return answered,
    };
    let notice = upkeep::remove_damaged(ctx, &why)?;
    let mut answer = search_once(ctx, asking)?;
    answer.notices.splice(0..0, notice);
    Ok(answer)
}

fn search_once(ctx: &Ctx, asking: SearchRequest<'_>) -> Result<Answer> {
    let SearchRequest { query, limits: given, limit, embedding, progress, indexing } = asking;
    let limits = limits::resolved(ctx, query, given);
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
    let (mut look, asked) = upkeep::open_index_and_query(ctx, budget, progress, indexing, ask)?;
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
        answer.notices.extend(absent::blocking_filters(&look, &limits, searcher.as_ref()).map_err(failed)?);
    }
    if !answer.results.is_empty() {
        known::keep_what_says_something(query, &mut found.unknown);
    }
    if let Some(words) = look.words.as_ref().filter(|_| !found.unknown.is_empty()) {
        answer.left_out = words.table.rows.values().map(Row::left_out).sum();
    }
    answer.corrections = std::mem::take(&mut found.corrections);
    answer.unknown = std::mem::take(&mut found.unknown);
    answer.notices.splice(0..0, std::mem::take(&mut look.notices));
    answer.notices.extend(look.failed.take().map(|error| error.to_string()));
    answer.remains = Some(DeferredDrop { _look: look });
    Ok(answer)
}
