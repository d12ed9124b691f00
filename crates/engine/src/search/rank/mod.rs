//! Which turns match a query, and how well.
//!
//! `find` queries the index (`known` looks up single words, `cover` computes how much of a query a turn contains, and
//! `turns` collects the best), and `absent` reports filters that match nothing. `hybrid` combines the hits with search
//! by meaning; without the feature `semantic`, `words_only` replaces it. `sessions` knows which sessions are selected.

pub(crate) mod absent;
pub(crate) mod cover;
pub(crate) mod find;
#[cfg(feature = "semantic")]
pub(crate) mod hybrid;
#[cfg(not(feature = "semantic"))]
#[path = "words_only.rs"]
pub(crate) mod hybrid;
pub(crate) mod known;
pub(crate) mod sessions;
pub(crate) mod turns;

/// How complete a search by meaning was. By default, it used the vectors of all prose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grounds {
    /// Sessions that could match and are not embedded yet, so only words could find them.
    pub missing: usize,
    /// Whether the query is in a language that the model does not support, so only words counted.
    pub unknown_language: bool,
}
