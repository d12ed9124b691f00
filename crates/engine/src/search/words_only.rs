//! Replaces search by meaning in a build without the feature `semantic`.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use tantivy::Searcher;

use super::find::Hits;
use super::index::{Rows, Words};
use super::query::{Limits, Query};
use super::update::IndexProgress;
use super::{Grounds, Sessions, VectorStatus};
use crate::ctx::Ctx;
use crate::sessions::catalog::Catalog;

/// Whether this build has it.
pub(super) const IS_THERE: bool = false;

/// It does not exist.
pub(super) enum Question {}

impl Question {
    pub(super) fn of(_: &Query) -> Option<Question> {
        None
    }
}

#[expect(dead_code, reason = "as it is with the feature")]
pub(super) struct RankRequest<'a> {
    pub question: Question,
    pub query: &'a Query,
    pub limits: &'a Limits,
    pub sessions: &'a Sessions,
    pub embedding: Duration,
    pub indexing: &'a dyn IndexProgress,
}

#[expect(clippy::needless_pass_by_value, reason = "as it is with the feature")]
pub(super) fn rank(
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
pub(super) fn is_proper_word(_: &str) -> bool {
    false
}

pub(super) fn place_of(_: &str, _: u32) -> Option<Range<usize>> {
    None
}

pub(super) fn make(
    _: &Ctx,
    _: &mut Catalog,
    _: &Rows,
    _: Option<Instant>,
    _: bool,
    _: &dyn IndexProgress,
) -> Result<Vec<String>, String> {
    Ok(Vec::new())
}

pub(super) fn status(_: &Path, _: &mut Catalog, _: &Rows, _: &mut Vec<String>) -> Option<VectorStatus> {
    None
}
