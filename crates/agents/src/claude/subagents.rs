//! The transcripts of a session's subagents: `<session>/subagents/agent-<id>.jsonl` with a `.meta.json` for each. 2.0.x
//! kept them next to the session's own file, as `agent-<id>.jsonl`, those of all sessions together and without a `.meta.json`. The
//! call's result names the one that it started, unless it was interrupted; then only the prompt tells.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jiff::Timestamp;
use serde::Deserialize;
use transcript::SessionId;

use super::home;
use super::record::Record;
use super::words::prompt_text;
use crate::fields::Raw;
use crate::files::{fingerprint, read_regular};
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
    transcript: PathBuf,
    side: PathBuf,
    by_call: Rc<HashMap<String, Subagent>>,
    /// Those of which no meta file tells, once one was requested.
    untold: Rc<OnceCell<Vec<UnlinkedSubagent>>>,
}

/// A subagent without a meta file.
#[derive(Debug)]
struct UnlinkedSubagent {
    id: String,
    path: PathBuf,
    /// The [`fingerprint`] of its prompt.
    prompt: u64,
    began: Option<Timestamp>,
}

impl UnlinkedSubagent {
    fn read(path: PathBuf) -> Option<UnlinkedSubagent> {
        let id = path.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
        let first = First::read(&path)?;
        Some(UnlinkedSubagent { id, prompt: fingerprint(first.prompt.as_bytes()), began: first.at, path })
    }
}

/// What the first record of a subagent's transcript says.
#[derive(Debug)]
pub(super) struct First {
    /// The session that it works for.
    pub session: Option<String>,
    /// Its prompt.
    pub prompt: String,
    /// The same as in the file, with its quotation marks, if it is a string.
    pub quoted: Option<String>,
    pub at: Option<Timestamp>,
}

impl First {
    pub(super) fn read(path: &Path) -> Option<First> {
        let mut lines = LineReader::open(path, 0, None).ok()?;
        let record = Record::of(lines.next_line().ok()??.bytes?);
        let content = record.message?.get(b"content")?;
        let is_string = content.0.starts_with(b"\"");
        Some(First {
            session: record.session.and_then(Raw::string).map(|id| id.into_owned()),
            prompt: prompt_text(content),
            quoted: std::str::from_utf8(content.0).ok().filter(|_| is_string).map(str::to_owned),
            at: record.timestamp.and_then(Raw::plain).and_then(|at| std::str::from_utf8(at).ok()?.parse().ok()),
        })
    }
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
        Subagents { transcript: transcript.to_owned(), side, by_call: Rc::new(by_call), untold: Rc::default() }
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

    /// A subagent that was asked the same as in a call, and of which neither a meta file nor a result tells: the first since
    /// the call, else the last before. `shown` are those of other calls.
    pub(super) fn subagent_with_prompt(
        &self,
        prompt: u64,
        since: Option<Timestamp>,
        shown: &HashSet<String>,
    ) -> Option<Subagent> {
        let all = self.untold.get_or_init(|| self.find_unlinked()).iter();
        let mut same = all.filter(|untold| untold.prompt == prompt && !shown.contains(&untold.id));
        let is_later = |untold: &&UnlinkedSubagent| untold.began.zip(since).is_none_or(|(began, since)| began >= since);
        let found = same.clone().find(is_later).or_else(|| same.next_back())?;
        Some(Subagent { id: found.id.clone(), role: None, description: None, path: found.path.clone() })
    }

    /// Searches for subagents without a meta file, next to the session's file and in its side folder.
    fn find_unlinked(&self) -> Vec<UnlinkedSubagent> {
        let name = self.transcript.file_name().unwrap_or_default().to_string_lossy();
        let session = home::session_id_of_name(&name);
        let beside = session.into_iter().flat_map(|session| files_beside_of(&session, &self.transcript));
        let told: HashSet<&Path> = self.by_call.values().map(|told| told.path.as_path()).collect();
        let within = transcripts(&self.transcript).into_iter().map(|(_, path)| path);
        let paths = beside.chain(within).filter(|path| !told.contains(path.as_path()));
        let mut found: Vec<UnlinkedSubagent> = paths.filter_map(UnlinkedSubagent::read).collect();
        found.sort_by(|a, b| a.began.cmp(&b.began).then_with(|| a.id.cmp(&b.id)));
        found
    }
}

/// The transcript of the subagent with this id, if no meta file describes it.
pub(super) fn file_of(side: &Path, id: &str) -> Option<PathBuf> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let name = is_id.then(|| format!("agent-{id}.jsonl"))?;
    [side.join("subagents").join(&name), side.with_file_name(&name)].into_iter().find(|path| path.is_file())
}
