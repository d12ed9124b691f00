//! A session as people and programs see it: the agent's facts together with what tine knows. Its JSON is a contract.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Agent, ParentSource, SessionId, SessionName};

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The agent runs and waits for a prompt.
    Idle,
    /// The agent is busy.
    Busy,
    /// The agent waits for a permission or an answer.
    Waiting,
    /// No process has the session open.
    Stopped,
}

impl State {
    /// The word for it in JSON and in listings.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Busy => "busy",
            State::Waiting => "waiting",
            State::Stopped => "stopped",
        }
    }
}

/// One session, in the form of the JSON contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// The agent.
    pub agent: Agent,
    /// The agent's id for it.
    pub id: SessionId,
    /// The shortest unique id prefix; users type it if the session has no name.
    #[serde(skip)]
    pub handle: String,
    /// The name in tine, if it has one.
    pub name: Option<SessionName>,
    /// The title: a person's, the agent's, or the first prompt.
    pub title: Option<String>,
    /// The directory it works in.
    #[serde(serialize_with = "lossy_option")]
    pub cwd: Option<PathBuf>,
    /// The git branch it was last seen on.
    pub branch: Option<String>,
    /// The transcript.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// When it began.
    pub created: Option<Timestamp>,
    /// When it was last written to.
    pub updated: Option<Timestamp>,
    /// How many turns it has.
    pub turns: u32,
    /// Its state.
    pub state: State,
    /// The session that it was forked from.
    pub parent: Option<ParentView>,
    /// Whether it is a fork that has not started: tine keeps the transcript that its agent will be handed, at `path`,
    /// and `id` is tine's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
}

impl SessionView {
    /// How users refer to it: by name, otherwise by id prefix.
    pub fn label(&self) -> &str {
        self.name.as_ref().map(SessionName::as_str).unwrap_or(&self.handle)
    }
}

/// The parent of a session, in the form of the JSON contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParentView {
    /// The parent's agent.
    pub agent: Agent,
    /// The parent's id.
    pub id: SessionId,
    /// The parent's name in tine.
    pub name: Option<SessionName>,
    /// The turn of the parent after which the fork was made, if known.
    pub turn: Option<u32>,
    /// How the parent is known.
    pub source: ParentSource,
}

/// JSON is Unicode and file names need not be: what is not becomes a replacement character instead of an error.
fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn lossy_option<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => lossy(path, serializer),
        None => serializer.serialize_none(),
    }
}
