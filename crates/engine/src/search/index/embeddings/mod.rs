//! The vectors of all prose, which search by meaning compares with a query.
//!
//! `selection` chooses the text to embed, `create` creates the missing vectors, and `vectors` stores them.

pub(crate) mod create;
pub(crate) mod selection;
pub(crate) mod vectors;

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use meaning::Embedder;

use self::vectors::{Vectors, key};
use crate::ctx::Ctx;
use crate::search::index::VectorStatus;
use crate::search::index::table::Rows;
use crate::search::index::update::IndexProgress;
use crate::sessions::catalog::Catalog;

/// Creates the missing vectors, all of them or until time is up. Returns notices.
pub(crate) fn make(
    ctx: &Ctx,
    catalog: &mut Catalog,
    words: &Rows,
    until: Option<Instant>,
    rebuild: bool,
    progress: &dyn IndexProgress,
) -> Result<Vec<String>, String> {
    let cache = &ctx.context().paths.cache;
    if rebuild {
        create::throw_away(cache)?;
    }
    let (adapters, embedder) = (ctx.adapters(), &Embedder::new());
    create::update(
        &create::EmbeddingRequest { cache, words, adapters, embedder, until, files: None },
        catalog,
        progress,
    )
}

/// The state of the vectors.
pub(crate) fn status(
    cache: &Path,
    catalog: &mut Catalog,
    words: &Rows,
    notices: &mut Vec<String>,
) -> Option<VectorStatus> {
    let vectors = Vectors::open(cache);
    notices.extend(vectors.damage.iter().map(|why| damaged(why)));
    let missing = vectors.coverage(catalog, words).missing.len();
    Some(VectorStatus {
        vectors: vectors.file.as_ref().map_or(0, meaning::VectorFile::len),
        sessions: vectors.sessions(words),
        missing,
        bytes: std::fs::metadata(vectors::path(cache)).map_or(0, |metadata| metadata.len()),
    })
}

/// The position of the chunk with this fingerprint in a text without secrets.
pub(crate) fn place_of(text: &str, part: u32) -> Option<Range<usize>> {
    meaning::chunks(text).find(|range| key(0, 0, &text[range.clone()]).is_some_and(|key| key.part == part))
}

/// The notice about damaged vectors.
pub(crate) fn damaged(why: &str) -> String {
    format!("the embeddings are damaged and will be rebuilt: {why}")
}
