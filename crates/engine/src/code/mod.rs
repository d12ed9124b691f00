//! Code as it was: the files of a session's working tree at the end of a turn.

pub(crate) mod error;
pub(crate) mod rebuild;
pub mod snapshots;
pub(crate) mod verdict;

pub use error::{Error, Result};
pub use verdict::{Doubt, FileVerdict, JudgedFile};
