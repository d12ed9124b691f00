//! The JSON of what a search found. It is a contract.

use serde::Serialize;
use transcript::SessionView;

use super::smart::{Choice, Suggestions};
use super::{Answer, EngineError, RECENT};
use crate::fork::ForkView;
use crate::sessions::session::Session;

/// What a search found.
#[derive(Debug, Clone, Serialize)]
pub struct SearchView {
    query: String,
    engine: &'static str,
    results: Vec<ResultView>,
    errors: Vec<EngineError>,
}

/// One result.
#[derive(Debug, Clone, Serialize)]
pub struct ResultView {
    rank: usize,
    score: f64,
    session: SessionView,
    turn: u32,
    branch: Option<String>,
    snippet: String,
    can_fork: bool,
    warning: Option<String>,
    forks: Vec<String>,
    /// It did not match, but exists.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    recent: bool,
    /// The command that forks it as asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
}

impl Answer {
    /// The JSON of the answer; `choices` are its results, the first of them with rank `first`.
    pub fn view(&self, choices: &[Choice], first: usize) -> SearchView {
        let mut results: Vec<ResultView> = choices.iter().zip(first..).map(|(one, rank)| one.view(rank)).collect();
        results.iter_mut().for_each(|result| result.recent = self.engine == RECENT);
        SearchView { query: self.query.clone(), engine: self.engine, results, errors: self.all_errors() }
    }
}

impl Choice {
    fn view(&self, rank: usize) -> ResultView {
        let found = &self.found;
        ResultView {
            rank,
            score: rounded(found.score),
            session: found.session.view.clone(),
            turn: found.turn,
            branch: found.session.details.branch.clone(),
            snippet: found.snippet.text.clone(),
            can_fork: self.can_fork(),
            warning: self.warning().map(str::to_owned),
            forks: found.forks.clone(),
            recent: false,
            command: None,
        }
    }
}

/// A score with the three digits that mean something.
pub fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1000.0).round() / 1000.0
}

/// The sessions that suit an intent, and the fork of one of them.
#[derive(Debug, Clone, Serialize)]
pub struct SuggestionsView {
    intent: String,
    query: String,
    engine: &'static str,
    fallback_used: bool,
    results: Vec<ResultView>,
    errors: Vec<EngineError>,
    left_out: usize,
    fallback_sessions: Vec<RecentSession>,
    picked: Option<usize>,
    fork: Option<ForkView>,
}

impl SuggestionsView {
    /// The same with the fork of the result that has this rank.
    #[must_use]
    pub fn with_fork(&self, rank: usize, fork: ForkView) -> Self {
        SuggestionsView { picked: Some(rank), fork: Some(fork), ..self.clone() }
    }
}

/// A fallback session, listed if no session matches.
#[derive(Debug, Clone, Serialize)]
struct RecentSession {
    #[serde(flatten)]
    view: SessionView,
    project_path: Option<String>,
    last_modified: Option<jiff::Timestamp>,
}

impl Suggestions {
    /// The JSON of what suits an intent; `command` is how each of the choices is forked.
    pub fn view(&self, choices: &[Choice], command: impl Fn(&Choice) -> Vec<String>) -> SuggestionsView {
        let result =
            |(at, choice): (usize, &Choice)| ResultView { command: Some(command(choice)), ..choice.view(at + 1) };
        let recent = |session: &Session| RecentSession {
            view: session.view.clone(),
            project_path: session.view.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
            last_modified: session.view.updated,
        };
        SuggestionsView {
            intent: self.answer.query.clone(),
            query: self.answer.query.clone(),
            engine: self.answer.engine,
            fallback_used: self.fallback_used(),
            results: choices.iter().enumerate().map(result).collect(),
            errors: self.answer.all_errors(),
            left_out: self.weak.len(),
            fallback_sessions: self.recent.iter().map(recent).collect(),
            picked: None,
            fork: None,
        }
    }
}
