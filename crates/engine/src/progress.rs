//! Progress that nobody looks at.

/// Nobody is watching.
pub struct Quiet;
