//! Subagents that continue after the turn that started them. Their messages belong to that turn, and their transcripts
//! can grow while that of their session does not.
//!
//! They are checked only if a session has some, and only while they can still be running: most sessions cost one
//! `stat`.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::path::{Path, PathBuf};

use agents::Adapter;
use serde::{Deserialize, Serialize};

use crate::search::query::words::IdentityHasher;

/// Subagents are not checked if their session was last written this long before the newest session: a day, in
/// nanoseconds. No subagent works that long without a report to its session.
const AT_WORK: i64 = 24 * 60 * 60 * 1_000_000_000;

/// A subagent's transcript, as it was when its session was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Subagent {
    path: PathBuf,
    size: u64,
    modified: i64,
    /// Whether it was started before the last turn. That one is read again whenever there is something new, earlier ones are
    /// not.
    is_earlier: bool,
}

/// The subagents of sessions, by [`crate::sessions::catalog::file_key`].
pub(crate) type Subagents = HashMap<u64, Vec<Subagent>, BuildHasherDefault<IdentityHasher>>;

/// What has become of a session's subagents since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SubagentChange {
    Nothing,
    /// A subagent of the last turn has new messages,
    InLastTurn,
    /// or one of an earlier turn.
    Earlier,
}

/// The subagents of a session, listed before it is read.
pub(crate) fn look_up(adapter: &dyn Adapter, session: &Path) -> Vec<(String, Subagent)> {
    let helpers = adapter.subagents(session).into_iter().filter_map(|(id, path)| {
        let (size, modified) = stamp(&path)?;
        Some((id, Subagent { path, size, modified, is_earlier: true }))
    });
    helpers.collect()
}

/// The same once it is read and known which of them the last turn started.
pub(crate) fn settle(helpers: Vec<(String, Subagent)>, of_last_turn: &[String]) -> Vec<Subagent> {
    let settle = |(id, helper): (String, Subagent)| Subagent { is_earlier: !of_last_turn.contains(&id), ..helper };
    helpers.into_iter().map(settle).collect()
}

/// What has changed of a session that was last written to then; `newest` is when any was.
pub(crate) fn change(helpers: &[Subagent], modified: i64, newest: i64) -> SubagentChange {
    if newest.saturating_sub(modified) > AT_WORK {
        return SubagentChange::Nothing;
    }
    let changes = helpers.iter().map(|helper| match stamp(&helper.path) {
        Some(stamp) if stamp == (helper.size, helper.modified) => SubagentChange::Nothing,
        _ if helper.is_earlier => SubagentChange::Earlier,
        _ => SubagentChange::InLastTurn,
    });
    changes.max().unwrap_or(SubagentChange::Nothing)
}

fn stamp(path: &Path) -> Option<(u64, i64)> {
    let stamp = agents::session_stamp(path).ok()?;
    Some((stamp.size, stamp.modified))
}
