//! The sessions on this machine: finding them, where each came from, which one a word means, and exporting them.

pub(crate) mod branches;
pub(crate) mod catalog;
pub(crate) mod error;
pub(crate) mod export;
pub(crate) mod lineage;
pub(crate) mod listing;
pub(crate) mod marks;
pub(crate) mod moved;
pub(crate) mod outline;
pub(crate) mod pages;
pub(crate) mod project;
pub(crate) mod refresh;
pub(crate) mod resolve;
pub(crate) mod seeded;
pub(crate) mod session;
pub(crate) mod settle;
pub(crate) mod survey;
pub(crate) mod tree;
pub(crate) mod view;
pub(crate) mod watch;

pub use error::{Error, Result};
