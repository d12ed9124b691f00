//! The transcripts of a session's subagents: `<session>/subagents/agent-<id>.jsonl` with a `.meta.json` beside each.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Deserialize;

use super::home;
use crate::read_regular;

/// A subagent that was found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subagent {
    pub id: String,
    pub role: Option<String>,
    pub description: Option<String>,
    pub path: PathBuf,
}

/// All subagents of one session, by the call that started each.
#[derive(Debug, Clone)]
pub(super) struct Subagents {
    side: PathBuf,
    by_call: Rc<HashMap<String, Subagent>>,
}

/// The transcripts of a session's subagents, with their ids.
pub(super) fn transcripts(transcript: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(home::side_folder(transcript).join("subagents")).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
        Some((id, entry.path()))
    });
    found.collect()
}

/// What stands beside a subagent's transcript.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    agent_type: Option<String>,
    description: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<String>,
}

impl Meta {
    pub(super) fn read(path: &Path) -> Option<Meta> {
        serde_json::from_slice(&read_regular(path).ok()?).ok()
    }
}

impl Subagents {
    /// Looks into the side folder of a transcript.
    pub(super) fn of(transcript: &Path) -> Self {
        let side = home::side_folder(transcript);
        let mut by_call = HashMap::new();
        for entry in fs::read_dir(side.join("subagents")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_prefix("agent-").and_then(|rest| rest.strip_suffix(".meta.json")) else {
                continue;
            };
            let Some(meta) = Meta::read(&entry.path()) else {
                continue;
            };
            let Some(call) = meta.tool_use_id else {
                continue;
            };
            let path = side.join("subagents").join(format!("agent-{id}.jsonl"));
            let found = Subagent { id: id.to_owned(), role: meta.agent_type, description: meta.description, path };
            by_call.insert(call, found);
        }
        Subagents { side, by_call: Rc::new(by_call) }
    }

    pub(super) fn side_folder(&self) -> PathBuf {
        self.side.clone()
    }

    /// The subagent that a call started; by the id in the call's result where the meta file does not tell.
    pub(super) fn started_by(&self, call: &str, agent: Option<&str>) -> Option<Subagent> {
        if let Some(found) = self.by_call.get(call) {
            return Some(found.clone());
        }
        let id = agent.filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))?;
        let path = self.side.join("subagents").join(format!("agent-{id}.jsonl"));
        path.is_file().then(|| Subagent { id: id.to_owned(), role: None, description: None, path })
    }
}
