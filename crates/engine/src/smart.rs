//! Past sessions for something that a person or an agent wants to build: the best of them are forked.
//!
//! Only the choice is made here. What a fork is and how it is made is the same as for any other, see `fork`.

use std::path::PathBuf;
use std::time::Duration;

use crate::catalog::Progress;
use crate::error::{Error, Result};
use crate::search::{Answer, Asking, IndexProgress, Limits, Query, RECENT};
use crate::session::Session;
use crate::{Filter, Tine};

/// How long vectors are made before an intent is answered: here, meaning counts for more than a moment does.
const UNDERSTANDING: Duration = Duration::from_secs(3);

/// What somebody wants to do, in plain words.
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
    /// The most recent sessions, where nothing suits.
    pub recent: Vec<Session>,
}

impl Suggestions {
    /// Whether what was asked first did not answer, and something else did.
    pub fn fallback_used(&self) -> bool {
        !self.answer.errors.is_empty()
    }
}

impl Tine {
    /// Ranks past sessions by how well they suit an intent. Nothing is touched but the index.
    pub fn suggest(
        &self,
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
        let mut answer = self.ask(intent, &query, &limits, progress, indexing)?;
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
                self.listing(&filter, progress)?.take(intent.limit).collect()
            }
            false => Vec::new(),
        };
        Ok(Suggestions { answer, weak, recent })
    }

    /// Asks qmd where that is wanted, and the own index where it does not answer.
    fn ask(
        &self,
        intent: &Intent,
        query: &Query,
        limits: &Limits,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<Answer> {
        let mut errors = Vec::new();
        if let Some(collection) = &intent.collection {
            let asked = self.search_qmd(query, limits, collection, intent.limit, progress)?;
            if asked.engine != RECENT {
                return Ok(asked);
            }
            errors = asked.errors;
        }
        let search = || self.search(Asking { query, limits, limit: intent.limit, progress, indexing });
        let mut answer = search()?;
        if answer.grounds.missing > 0 {
            self.update_vectors(Some(UNDERSTANDING), false, progress, indexing)?;
            answer = search()?;
        }
        answer.errors = errors;
        Ok(answer)
    }
}
