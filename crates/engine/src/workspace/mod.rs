//! Where sessions work: git worktrees, copied directories, and repositories that moved.

pub(crate) mod directory;
pub(crate) mod encoded;
pub(crate) mod error;
pub(crate) mod git;

pub use error::{Error, Result};
