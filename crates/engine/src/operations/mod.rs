//! The log of changes: what each one did, taking it back, deleting, and finishing what was cut off.

pub(crate) mod clean_up;
pub(crate) mod delete;
pub(crate) mod error;
pub(crate) mod free_names;
pub(crate) mod growth;
pub(crate) mod leftovers;
pub(crate) mod trash;
pub(crate) mod undo;
pub(crate) mod unstarted;

pub use error::{Error, Result};
