//! Running agents: their terminals, how to drive them, their launch options, their state and their events.

pub(crate) mod drive;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod headless;
pub(crate) mod info;
pub(crate) mod launch;
pub(crate) mod place;
pub(crate) mod places;
pub(crate) mod profile;
pub(crate) mod status;
pub(crate) mod view;
pub(crate) mod wait;
pub(crate) mod worker;

pub use error::{Error, Result};
