//! Claude Code's other files about sessions: background jobs name the session that they were forked from.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use transcript::{ParentPointer, ParentSource, SessionId};

use crate::Notes;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    session_id: Option<SessionId>,
    fork_parent_session_id: Option<SessionId>,
}

pub(super) fn read(config: &Path) -> Notes {
    let mut notes = Notes::default();
    for job in fs::read_dir(config.join("jobs")).into_iter().flatten().flatten() {
        let state = crate::files::read_regular(&job.path().join("state.json")).ok();
        let Some(job) = state.and_then(|bytes| serde_json::from_slice::<Job>(&bytes).ok()) else {
            continue;
        };
        if let (Some(id), Some(parent)) = (job.session_id, job.fork_parent_session_id) {
            notes.parents.insert(id, ParentPointer { id: parent, source: ParentSource::Agent });
        }
    }
    notes
}
