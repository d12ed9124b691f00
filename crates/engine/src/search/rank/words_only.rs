//! Replaces search by meaning in a build without the feature `semantic`.

use std::time::Duration;

use tantivy::Searcher;

use super::Grounds;
use super::find::Hits;
use super::sessions::Sessions;
use crate::ctx::Ctx;
use crate::search::index::Words;
use crate::search::index::update::IndexProgress;
use crate::search::query::{Limits, Query};
use crate::sessions::catalog::Catalog;

/// Whether this build has it.
pub(crate) const IS_THERE: bool = false;

/// It does not exist.
pub(crate) enum Question {}

impl Question {
    pub(crate) fn of(_: &Query) -> Option<Question> {
        None
    }
}

#[expect(dead_code, reason = "as it is with the feature")]
pub(crate) struct RankRequest<'a> {
    pub question: Question,
    pub query: &'a Query,
    pub limits: &'a Limits,
    pub sessions: &'a Sessions,
    pub embedding: Duration,
    pub indexing: &'a dyn IndexProgress,
}

#[expect(clippy::needless_pass_by_value, reason = "as it is with the feature")]
pub(crate) fn rank(
    _: &Ctx,
    asked: RankRequest<'_>,
    _: &Words,
    _: &Searcher,
    _: &mut Catalog,
    _: &mut Hits,
) -> tantivy::Result<(Grounds, Vec<String>)> {
    match asked.question {}
}

/// Unknown without a vocabulary.
pub(crate) fn is_proper_word(_: &str) -> bool {
    false
}
