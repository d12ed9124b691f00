//! Finds past sessions for something that a user or an agent wants to build; the best ones can be forked.
//!
//! Only the choice is made here. What a fork is and how it is made is the same as for any other, see `fork`.

pub(crate) mod choice;

use std::path::PathBuf;
use std::time::Duration;

pub use choice::{CanFork, Choice, Refusal};

use crate::ctx::Ctx;
use crate::search::error::{Error, Result};
use crate::search::index::update::IndexProgress;
use crate::search::qmd::{self, RECENT};
use crate::search::query::{Limits, Query};
use crate::search::request::{self, SearchRequest};
use crate::search::show::Answer;
use crate::sessions::catalog::Progress;
use crate::sessions::session::Session;
use crate::sessions::survey::Filter;

/// How long sessions are embedded before an intent is answered: here, meaning counts for more than a moment does.
const UNDERSTANDING: Duration = Duration::from_secs(3);

/// An intent, in plain words.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The words. Nothing in them is a filter or a sign.
    pub text: String,
    /// Only sessions of the project around this directory.
    pub project: Option<PathBuf>,
    /// At most this many.
    pub limit: usize,
    /// Leave out what fits less than this, from 0 to 1.
    pub min_score: Option<f32>,
    /// Ask this collection of qmd first.
    pub collection: Option<String>,
}

/// The sessions that suit an intent.
#[derive(Debug)]
pub struct Suggestions {
    /// Those that suit it, best first, and how they were found.
    pub answer: Answer,
    /// The scores of those that were left out as too weak, best first.
    pub weak: Vec<f32>,
    /// The most recent sessions, if no session matches.
    pub recent: Vec<Session>,
}

impl Suggestions {
    /// Whether what was asked first did not answer, and something else did.
    pub fn fallback_used(&self) -> bool {
        !self.answer.errors.is_empty()
    }
}

/// Ranks past sessions by how well they fit an intent. Changes nothing but the index.
pub(crate) fn suggest(
    ctx: &Ctx,
    intent: &Intent,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
) -> Result<Suggestions> {
    let query = Query::plain(&intent.text).map_err(|error| match error {
        Error::EmptyQuery => Error::EmptyIntent,
        Error::OnlyCommonWords(words) => Error::CommonIntent(words),
        other => other,
    })?;
    let limits = Limits { directory: intent.project.clone(), ..Limits::default() };
    let mut answer = ask(ctx, intent, &query, &limits, progress, indexing)?;
    let weak = match intent.min_score {
        Some(least) => {
            let (good, weak): (Vec<_>, Vec<_>) =
                std::mem::take(&mut answer.results).into_iter().partition(|found| found.score >= least);
            answer.results = good;
            weak.into_iter().map(|found| found.score).collect()
        }
        None => Vec::new(),
    };
    let recent = match answer.results.is_empty() {
        true => {
            let filter = Filter { agent: None, directory: intent.project.clone() };
            let started =
                crate::sessions::survey::listing(ctx, &filter, progress)?.filter(|session| !session.view.unstarted);
            started.take(intent.limit).collect()
        }
        false => Vec::new(),
    };
    Ok(Suggestions { answer, weak, recent })
}

/// Queries qmd if requested, and tine's own index if qmd does not answer.
fn ask(
    ctx: &Ctx,
    intent: &Intent,
    query: &Query,
    limits: &Limits,
    progress: &dyn Progress,
    indexing: &dyn IndexProgress,
) -> Result<Answer> {
    let mut errors = Vec::new();
    if let Some(collection) = &intent.collection {
        let asked = qmd::search_qmd(ctx, query, limits, collection, intent.limit, progress)?;
        if asked.engine != RECENT {
            return Ok(asked);
        }
        errors = asked.errors;
    }
    let (limit, embedding) = (intent.limit, UNDERSTANDING);
    let mut answer = request::search(ctx, SearchRequest { query, limits, limit, embedding, progress, indexing })?;
    answer.errors = errors;
    Ok(answer)
}
