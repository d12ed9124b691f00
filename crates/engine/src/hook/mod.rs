//! Hooks: what the agents report while they run. A session began, was forked, cleared, moved, or ended.
//!
//! A hook touches nothing but the registry, in one transaction, and costs a few indexed lookups however many sessions
//! there are. An agent reports only the id that its session has now. Which session that was before is known from the
//! process: the registry remembers the last id of each running agent.

mod environment_file;
mod event;
mod origin;
mod record;

pub use environment_file::write_name;
pub use event::{HookCaller, HookPayload};
pub use record::{HookResult, last_run, record_hook};
