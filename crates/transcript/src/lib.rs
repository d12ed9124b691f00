//! What a conversation with a coding agent is: agents and ids, sessions and turns, the blocks that a turn is
//! made of, and how they are rendered for people and programs.
//!
//! This crate is pure: it opens no file and asks no clock. Reading an agent's files into these types is the work
//! of `agents`; deciding what to do with them is the work of `engine`.

mod block;
mod defect;
mod id;
mod point;
pub mod render;
pub mod secrets;
pub mod seed;
mod summary;
pub mod text;
pub mod translate;
mod view;

pub use block::{Block, BlockKind, NoticeKind};
pub use defect::{DefectKind, Defects};
pub use id::{Agent, IdError, NameError, SessionId, SessionName, UnknownAgent};
pub use point::{At, PointError, Spec, parse_spec};
pub use summary::{ParentPointer, ParentSource, Summary, TokenUse};
pub use view::{ParentView, SessionView, State};
