//! Names: starting a session under a name, naming an existing one, and renaming it.

pub(crate) mod adopt;
pub(crate) mod chat;
pub(crate) mod error;
mod follow;
pub(crate) mod start;

pub use error::{Error, Result};
