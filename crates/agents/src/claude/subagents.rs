//! The transcripts of a session's subagents: `<session>/subagents/agent-<id>.jsonl` with a `.meta.json` for each. 2.0.x
//! kept them next to the session's own file, as `agent-<id>.jsonl`, those of all sessions together.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Deserialize;
use transcript::SessionId;

use super::home;
use crate::fields::Raw;
use crate::files::read_regular;
use crate::lines::LineReader;

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

/// The names of all subagents' transcripts next to a session's own file.
pub(super) fn files_beside(transcript: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(transcript.parent().unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let names = entries.map(|entry| PathBuf::from(entry.file_name()));
    let mut names: Vec<PathBuf> = names
        .filter(|name| name.to_str().is_some_and(|name| name.starts_with("agent-") && name.ends_with(".jsonl")))
        .collect();
    names.sort();
    names
}

/// Those of them that belong to a session, by what their first records say.
pub(super) fn files_beside_of(session: &SessionId, transcript: &Path) -> Vec<PathBuf> {
    let paths = files_beside(transcript).into_iter().map(|name| transcript.with_file_name(name));
    let is_of_session = |path: &PathBuf| {
        let first = LineReader::open(path, 0, None).ok().and_then(|mut lines| {
            let line = lines.next_line().ok()??;
            Raw(line.bytes?).get(b"sessionId").and_then(Raw::string).map(|id| id.into_owned())
        });
        first.is_some_and(|id| id == session.as_str())
    };
    paths.filter(is_of_session).collect()
}

/// The metadata next to a subagent's transcript.
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
    /// Lists the side folder of a transcript.
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

    /// The subagent that a call started; identified by the call's result if the meta file does not.
    pub(super) fn started_by(&self, call: &str, agent: Option<&str>) -> Option<Subagent> {
        if let Some(found) = self.by_call.get(call) {
            return Some(found.clone());
        }
        let id = agent?;
        Some(Subagent { id: id.to_owned(), role: None, description: None, path: file_of(&self.side, id)? })
    }
}

/// The transcript of the subagent with this id, if no meta file describes it.
pub(super) fn file_of(side: &Path, id: &str) -> Option<PathBuf> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let name = is_id.then(|| format!("agent-{id}.jsonl"))?;
    [side.join("subagents").join(&name), side.with_file_name(&name)].into_iter().find(|path| path.is_file())
}
