//! Finding past conversations by their words and by their meaning.
//!
//! `query` parses a query and defines words, `index` stores the words and vectors of all sessions, `rank` finds the turns
//! that match, and `show` reads what is shown of them. `request` runs these steps for one search; `qmd` queries another
//! search engine instead. `smart` finds sessions for an intent, and `view` is the JSON of both. Each may use only those
//! before it.

pub(crate) mod error;
pub(crate) mod index;
pub(crate) mod qmd;
pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod request;
#[cfg(test)]
mod seed_tests;
pub(crate) mod show;
pub(crate) mod smart;
pub(crate) mod view;

pub use error::Error;
pub use index::VectorStatus;
pub use index::panics::{is_panic_caught, require_index_check};
pub use index::update::IndexProgress;
pub use index::upkeep::IndexStatus;
pub use index::work::Missing;
pub use qmd::{DEFAULT_COLLECTION, RECENT};
pub use query::limits::time as query_time;
pub use query::pieces::FILTERS;
pub use query::{Engine, Limits, Now, Query, without_line};
pub use rank::Grounds;
pub use rank::find::Correction;
pub use request::{EMBEDDING, SearchRequest};
pub use show::snippet::Snippet;
pub use show::{Answer, EngineError, Found};
pub use view::{BriefSession, BriefSuggestions, ResultView, SearchView, SmartForkView, SuggestionsView, rounded};
