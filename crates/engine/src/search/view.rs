//! The JSON of what a search found. It is a contract.

use jiff::Timestamp;
use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView};

use crate::fork::{ForkView, Method};
use crate::reported::ReportedError;
use crate::run::places::Pane;
use crate::search::qmd::RECENT;
use crate::search::show::{Answer, EngineError};
use crate::search::smart::{Choice, Suggestions};
use crate::sessions::session::Session;

/// What a search found.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchView {
    query: String,
    engine: &'static str,
    results: Vec<ResultView>,
    errors: Vec<EngineError>,
}

/// One result.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RecentSession {
    #[serde(flatten)]
    view: SessionView,
    project_path: Option<String>,
    last_modified: Option<Timestamp>,
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

/// The sessions that suit an intent, in short, as agents get them.
#[derive(Debug, Clone, Serialize)]
pub struct BriefSuggestions {
    intent: String,
    query: String,
    engine: &'static str,
    fallback_used: bool,
    qmd_error: Option<String>,
    errors: Vec<EngineError>,
    results: Vec<BriefResult>,
    fallback_sessions: Vec<BriefSession>,
    forked_session: Option<SmartForkView>,
    /// Why none was forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReportedError>,
}

impl BriefSuggestions {
    /// The same with the fork of a result.
    #[must_use]
    pub fn with_fork(self, fork: SmartForkView) -> Self {
        BriefSuggestions { forked_session: Some(fork), ..self }
    }

    /// The same with the reason why no result was forked.
    #[must_use]
    pub fn with_error(self, error: ReportedError) -> Self {
        BriefSuggestions { error: Some(error), ..self }
    }
}

/// The fork of a result, in short.
#[derive(Debug, Clone, Serialize)]
pub struct SmartForkView {
    session_name: Option<SessionName>,
    session_id: Option<SessionId>,
    terminal_id: Option<String>,
    /// The id of the result.
    resume_session_id: SessionId,
    agent: Agent,
    working_directory: String,
    method: Method,
    command: Option<Vec<String>>,
    operation: Option<i64>,
    warnings: Vec<String>,
}

impl SmartForkView {
    /// The JSON of the fork of a found session, which runs in `pane` if there is one.
    pub fn new(source: &SessionView, fork: ForkView, pane: Option<&Pane>) -> Self {
        SmartForkView {
            session_name: fork.session.name().cloned(),
            session_id: fork.session.id().cloned(),
            terminal_id: pane.map(Pane::terminal_id),
            resume_session_id: source.id.clone(),
            agent: fork.session.agent(),
            working_directory: fork.workspace.path,
            method: fork.method,
            command: fork.command,
            operation: fork.operation,
            warnings: fork.warnings,
        }
    }
}

/// One session that suits.
#[derive(Debug, Clone, Serialize)]
struct BriefResult {
    rank: usize,
    score: f64,
    session_id: SessionId,
    agent: Agent,
    name: Option<SessionName>,
    title: Option<String>,
    working_directory: Option<String>,
    date: Option<Timestamp>,
    turn: u32,
    branch: Option<String>,
    snippet: Option<String>,
    source_path: Option<String>,
    jsonl_path: Option<String>,
    can_fork: bool,
    warning: Option<String>,
}

/// A session in short. Two of its facts have two names each, because agents know both.
#[derive(Debug, Clone, Serialize)]
pub struct BriefSession {
    session_id: SessionId,
    agent: Agent,
    name: Option<SessionName>,
    title: Option<String>,
    working_directory: Option<String>,
    project_path: Option<String>,
    date: Option<Timestamp>,
    last_modified: Option<Timestamp>,
}

impl BriefSession {
    /// A session in short.
    pub fn new(view: &SessionView) -> Self {
        let directory = view.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
        BriefSession {
            session_id: view.id.clone(),
            agent: view.agent,
            name: view.name.clone(),
            title: view.title.clone(),
            working_directory: directory.clone(),
            project_path: directory,
            date: view.updated,
            last_modified: view.updated,
        }
    }
}

impl Choice {
    fn brief(&self, rank: usize, has_snippet: bool) -> BriefResult {
        let found = &self.found;
        let view = &found.session.view;
        let path = Some(view.path.to_string_lossy().into_owned()).filter(|path| !path.is_empty());
        BriefResult {
            rank,
            score: rounded(found.score),
            session_id: view.id.clone(),
            agent: view.agent,
            name: view.name.clone(),
            title: view.title.clone(),
            working_directory: view.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
            date: view.updated,
            turn: found.turn,
            branch: found.session.details.branch.clone(),
            snippet: has_snippet.then(|| found.snippet.text.clone()),
            source_path: found.source.clone().or_else(|| path.clone()),
            jsonl_path: path,
            can_fork: self.can_fork(),
            warning: self.warning().map(str::to_owned),
        }
    }
}

impl Suggestions {
    /// The JSON of what suits an intent, in short.
    pub fn brief(&self, choices: &[Choice], has_snippets: bool) -> BriefSuggestions {
        let answer = &self.answer;
        let of_qmd = answer.errors.iter().filter(|error| error.engine.starts_with("qmd"));
        let of_qmd: Vec<String> = of_qmd.map(|error| format!("{}: {}", error.engine, error.message)).collect();
        BriefSuggestions {
            intent: answer.query.clone(),
            query: answer.query.clone(),
            engine: answer.engine,
            fallback_used: self.fallback_used(),
            qmd_error: (!of_qmd.is_empty()).then(|| of_qmd.join("; ")),
            errors: answer.all_errors(),
            results: choices.iter().zip(1..).map(|(choice, rank)| choice.brief(rank, has_snippets)).collect(),
            fallback_sessions: self.recent.iter().map(|session| BriefSession::new(&session.view)).collect(),
            forked_session: None,
            error: None,
        }
    }
}
