//! The JSON of reading, sending and controlling. It is a contract.

use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView, State};

use crate::reported::ReportedError;
use crate::run::drive::{Delivery, LastAnswer, Sent, Target};
use crate::run::info::Info;
use crate::sessions::session::Session;
use crate::sessions::view::OutlineView;

/// A session that something was done to, or one that has no messages yet.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum TargetView {
    /// A session with a transcript.
    Session(Box<SessionView>),
    /// One that was started and has no messages yet.
    EmptySession {
        /// Its name.
        name: SessionName,
        /// What it is doing.
        state: State,
        /// Always 0.
        turns: u32,
    },
}

impl Target {
    /// Its JSON; `state` is that of a session without messages, about which nothing else is known.
    pub fn view(&self, state: State) -> TargetView {
        match self {
            Target::Session(session) => TargetView::Session(Box::new(session.view.clone())),
            Target::EmptySession(name) => TargetView::EmptySession { name: name.clone(), state, turns: 0 },
        }
    }
}

/// What was read from a session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadView {
    session: ReadSession,
    #[serde(flatten)]
    text: ReadText,
}

/// Whose text it is.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum ReadSession {
    Session(Box<SessionView>),
    EmptySession { name: SessionName },
}

/// What a session answered, or what its pane shows.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReadText {
    /// Its last answer.
    Answer(String),
    /// The text of its pane.
    Screen(String),
}

impl ReadText {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        match self {
            ReadText::Answer(text) | ReadText::Screen(text) => text,
        }
    }

    /// The JSON of what was read from a session.
    pub fn view(self, target: &Target) -> ReadView {
        let session = match target {
            Target::Session(session) => ReadSession::Session(Box::new(session.view.clone())),
            Target::EmptySession(name) => ReadSession::EmptySession { name: name.clone() },
        };
        ReadView { session, text: self }
    }
}

/// A message that was sent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentView {
    session: SessionView,
    answer: Option<String>,
    /// Whether it waits until the session has finished its current work.
    queued: bool,
}

impl Sent {
    /// Its JSON.
    pub fn view(&self) -> SentView {
        let queued = self.delivery == Delivery::Queued;
        SentView { session: self.session.view.clone(), answer: self.answer.clone(), queued }
    }
}

/// A session in short, with its last answer, as agents get it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerView {
    session: String,
    id: SessionId,
    name: Option<SessionName>,
    agent: Agent,
    state: State,
    turns: u32,
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_done: Option<bool>,
}

impl AnswerView {
    /// A session with its answer, if there is one; `quote` marks the answer as quoted text.
    pub fn new(session: &Session, answer: Option<&LastAnswer>, quote: impl Fn(&str) -> String) -> Self {
        let view = &session.view;
        AnswerView {
            session: view.name.as_ref().map_or_else(|| view.id.to_string(), ToString::to_string),
            id: view.id.clone(),
            name: view.name.clone(),
            agent: view.agent,
            state: view.state,
            turns: view.turns,
            answer: answer.and_then(LastAnswer::text).map(quote),
            is_done: None,
        }
    }

    /// The same, saying whether the answer is complete.
    #[must_use]
    pub fn with_completeness(self, answer: &LastAnswer) -> Self {
        AnswerView { is_done: Some(answer.is_done()), ..self }
    }
}

/// What became of one of several sessions, as agents get it.
#[derive(Debug, Clone, Serialize)]
pub struct OutcomeView {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReportedError>,
}

impl OutcomeView {
    /// A session that was stopped, or not.
    pub fn stopped(session: &Session, outcome: Result<(), ReportedError>) -> Self {
        let (session, id) = (session.view.label().to_owned(), Some(session.view.id.clone()));
        let state = outcome.is_ok().then_some(State::Stopped);
        OutcomeView { session, id, state, error: outcome.err() }
    }

    /// A session, as the caller named it, to which something could not be done.
    pub fn failed(session: &str, error: ReportedError) -> Self {
        OutcomeView { session: session.to_owned(), id: None, state: None, error: Some(error) }
    }
}

/// Everything known about a session, with an outline of its conversation.
#[derive(Debug, Clone, Serialize)]
pub struct OverviewView {
    #[serde(flatten)]
    info: Info,
    outline: OutlineView,
}

impl Info {
    /// The JSON with an outline.
    pub fn with_outline(self, outline: OutlineView) -> OverviewView {
        OverviewView { info: self, outline: outline.shortened() }
    }
}
