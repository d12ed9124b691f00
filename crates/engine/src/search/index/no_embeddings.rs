//! Replaces the vectors in a build without the feature `semantic`.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use super::VectorStatus;
use super::table::Rows;
use super::update::IndexProgress;
use crate::ctx::Ctx;
use crate::sessions::catalog::Catalog;

pub(crate) fn place_of(_: &str, _: u32) -> Option<Range<usize>> {
    None
}

pub(crate) fn make(
    _: &Ctx,
    _: &mut Catalog,
    _: &Rows,
    _: Option<Instant>,
    _: bool,
    _: &dyn IndexProgress,
) -> Result<Vec<String>, String> {
    Ok(Vec::new())
}

pub(crate) fn status(_: &Path, _: &mut Catalog, _: &Rows, _: &mut Vec<String>) -> Option<VectorStatus> {
    None
}
