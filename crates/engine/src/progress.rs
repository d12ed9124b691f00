//! Progress that is not shown.

/// Shows nothing.
pub struct Quiet;
