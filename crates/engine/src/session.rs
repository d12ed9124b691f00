//! A session as the engine sees it: the agent's facts, tine's knowledge, and whether a process has it open.

use std::collections::HashMap;
use std::path::Path;

use agents::{Live, LiveSession, Notes};
use jiff::Timestamp;
use transcript::{Agent, ParentView, SessionId, SessionName, SessionView, State, Summary};

use crate::catalog::Entry;
use crate::registry::{Lineage, SessionKey};

/// One session with everything known of it.
#[derive(Debug, Clone)]
pub struct Session {
    /// What people and programs see.
    pub view: SessionView,
    /// What the agent's files say.
    pub summary: Summary,
    /// The process that has it open.
    pub live: Option<LiveSession>,
    /// The transcript's size in bytes.
    pub size: u64,
}

impl Session {
    /// How the registry knows it.
    pub fn key(&self) -> SessionKey {
        SessionKey { agent: self.view.agent, id: self.view.id.clone(), path: self.view.path.clone() }
    }

    /// What orders a listing: the last record, else the file's own time.
    pub fn updated(&self) -> Timestamp {
        self.view.updated.unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Everything beside the session files that a session's view is made from.
pub(crate) struct Knowledge {
    pub names: HashMap<SessionKey, SessionName>,
    pub lineage: HashMap<(Agent, SessionId), Lineage>,
    pub notes: HashMap<Agent, Notes>,
    pub live: HashMap<Agent, Live>,
    /// Names by agent and id, for parents, whose path is not known.
    names_by_id: HashMap<(Agent, SessionId), SessionName>,
}

impl Knowledge {
    pub(crate) fn new(
        names: HashMap<SessionKey, SessionName>,
        lineage: HashMap<(Agent, SessionId), Lineage>,
        notes: HashMap<Agent, Notes>,
        live: HashMap<Agent, Live>,
    ) -> Self {
        let names_by_id = names.iter().map(|(key, name)| ((key.agent, key.id.clone()), name.clone())).collect();
        Knowledge { names, lineage, notes, live, names_by_id }
    }

    /// Puts one session together.
    pub(crate) fn session(&self, entry: Entry) -> Session {
        let mut summary = entry.summary;
        let identity = (summary.agent, summary.id.clone());
        if let Some(title) = self.notes.get(&summary.agent).and_then(|notes| notes.titles.get(&summary.id)) {
            summary.custom_title = Some(title.clone());
        }
        let modified = Timestamp::from_nanosecond(i128::from(entry.stamp.modified)).ok();
        let live = self.live.get(&summary.agent).and_then(|live| live.sessions.get(&summary.id));
        let live = live.filter(|live| is_of_project(live, &summary)).cloned();
        let parent = self.lineage.get(&identity).map(|parent| ParentView {
            agent: parent.agent,
            id: parent.id.clone(),
            name: self.names_by_id.get(&(parent.agent, parent.id.clone())).cloned(),
            turn: parent.turn,
            source: parent.source,
        });
        let key = SessionKey { agent: summary.agent, id: summary.id.clone(), path: summary.path.clone() };
        let view = SessionView {
            agent: summary.agent,
            id: summary.id.clone(),
            handle: summary.id.short().to_owned(),
            name: self.names.get(&key).cloned(),
            title: summary.title().map(str::to_owned),
            cwd: summary.cwd.clone(),
            branch: summary.branch.clone(),
            path: summary.path.clone(),
            created: summary.created,
            updated: summary.updated.or(modified),
            turns: summary.turns,
            state: state_of(live.as_ref(), &summary),
            parent,
        };
        Session { view, summary, live, size: entry.stamp.size }
    }
}

/// The agent's own word counts; where it gives none, the transcript tells.
fn state_of(live: Option<&LiveSession>, summary: &Summary) -> State {
    match live {
        None => State::Stopped,
        Some(LiveSession { state: Some(state), .. }) => *state,
        Some(_) if summary.mid_turn => State::Busy,
        Some(_) => State::Idle,
    }
}

/// Two projects may hold a session of the same id; the process belongs to the one whose directory it is in.
fn is_of_project(live: &LiveSession, summary: &Summary) -> bool {
    match (live.cwd.as_deref(), summary.agent) {
        (Some(cwd), Agent::Claude) => is_in_folder_of(cwd, &summary.path) || summary.cwd.as_deref() == Some(cwd),
        _ => true,
    }
}

fn is_in_folder_of(cwd: &Path, transcript: &Path) -> bool {
    let folder = transcript.parent().and_then(Path::file_name).unwrap_or_default();
    // The process may have moved below its project's directory.
    cwd.ancestors().any(|directory| agents::claude::project_folder(directory).as_str() == folder)
}

/// The shortest beginnings of ids that tell all of them apart, at least eight characters long.
///
/// Codex's ids begin with the time, so those of one minute share their first eight characters.
pub(crate) fn handles<'a>(ids: impl Iterator<Item = &'a SessionId>) -> HashMap<SessionId, String> {
    let mut sorted: Vec<&SessionId> = ids.collect();
    sorted.sort_unstable();
    sorted.dedup();
    let shared =
        |a: &SessionId, b: &SessionId| a.as_str().bytes().zip(b.as_str().bytes()).take_while(|(a, b)| a == b).count();
    let mut handles = HashMap::with_capacity(sorted.len());
    let mut before = 0;
    for (index, id) in sorted.iter().enumerate() {
        let after = sorted.get(index + 1).map_or(0, |next| shared(id, next));
        let needed = (before.max(after) + 1).max(8).min(id.as_str().len());
        // Only those that differ from the usual are worth keeping.
        if needed > 8 {
            handles.insert((*id).clone(), id.as_str()[..needed].to_owned());
        }
        before = after;
    }
    handles
}
