//! Operations: undoing them, deleting sessions, and cleaning up after interruptions.

pub(crate) mod clean_up;
pub(crate) mod delete;
pub(crate) mod error;
pub(crate) mod free_names;
pub(crate) mod growth;
pub(crate) mod leftovers;
pub(crate) mod restored;
pub(crate) mod trash;
pub(crate) mod undo;
pub(crate) mod unstarted;

pub use error::{Error, Result};
