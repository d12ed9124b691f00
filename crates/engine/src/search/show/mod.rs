//! What a search shows: which sessions its hits belong to, the text that matched, and notices.
//!
//! `results` assigns hits to sessions (`queue` sorts them), and `snippet` shows the match, using the `wanted` terms
//! (`sieve` skips text that cannot contain them). `exported` lists sessions of which only an exported file is left.

pub(crate) mod exported;
pub(crate) mod notices;
pub(crate) mod queue;
pub(crate) mod results;
pub(crate) mod sieve;
pub(crate) mod snippet;
pub(crate) mod wanted;

use self::snippet::Snippet;
use crate::search::index::upkeep::OpenIndex;
use crate::search::index::work::Missing;
use crate::search::rank::Grounds;
use crate::search::rank::find::Correction;
use crate::sessions::session::Session;

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
    pub(crate) corrections: Vec<Correction>,
    /// Words that occur nowhere.
    pub(crate) unknown: Vec<String>,
    /// What is not in the index yet.
    pub missing: Missing,
    /// Lines of transcripts that are too long to index.
    pub(crate) left_out: u64,
    /// Folders of agents that could not be listed, and why.
    pub(crate) unlisted: Vec<String>,
    /// Other notices about the index.
    pub(crate) notices: Vec<String>,
    /// Engines that were tried before this one, and why they did not answer.
    pub errors: Vec<EngineError>,
    /// The data behind the answer. Freeing thousands of sessions takes time, so a process that is about to exit should
    /// leak the answer.
    pub(crate) remains: Option<DeferredDrop>,
}

pub(crate) struct DeferredDrop {
    pub _look: OpenIndex,
}

impl std::fmt::Debug for DeferredDrop {
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
