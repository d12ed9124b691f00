//! Code as it was: the files of a session's working tree at the end of a turn.

pub(crate) mod error;
pub mod snapshots;

pub use error::{Error, Result};
