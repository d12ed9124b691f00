//! A session as the engine sees it: the agent's facts, tine's knowledge, and whether a process has it open.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use agents::{Holder, Known, Live, LiveSession, Notes, Terminal};
use jiff::Timestamp;
use transcript::{Agent, Defects, ParentView, SessionId, SessionName, SessionView, State, Summary, TokenUse};

use crate::catalog::Entry;
use crate::error::Result;
use crate::profile::NAME_VARIABLE;
use crate::registry::{Lineage, Registry, SessionKey};

/// One session with everything known of it.
#[derive(Debug, Clone)]
pub struct Session {
    /// What people and programs see.
    pub view: SessionView,
    /// What else the agent's files say.
    pub details: Details,
    /// The process that has it open.
    pub live: Option<LiveSession>,
    /// The transcript's size in bytes.
    pub size: u64,
    /// Whether nothing more of its last turn is to come: it is complete, or was cut off before anybody opened it again.
    pub is_settled: bool,
}

/// What the agent's files say of a session beyond its view.
#[derive(Debug, Clone)]
pub struct Details {
    /// The title that a person gave inside the agent.
    pub custom_title: Option<String>,
    /// The title that the agent made up.
    pub agent_title: Option<String>,
    /// The first thing that was asked.
    pub first_prompt: Option<String>,
    /// The model that answered last.
    pub model: Option<String>,
    /// The agent's version that wrote last.
    pub version: Option<String>,
    /// Other branches that it was on before, as far as the agent says.
    pub earlier_branches: Vec<String>,
    /// The token use that the agent last reported.
    pub tokens: Option<TokenUse>,
    /// Whether the last record leaves a turn unfinished.
    pub mid_turn: bool,
    /// Whether a part of the history was replaced by a summary for the model.
    pub compacted: bool,
    /// What makes reading and copying it quick, where its file is its own history in its own order.
    pub known: Option<Known>,
    /// Whether records stand before others that they follow.
    pub disordered: bool,
    /// What was wrong in the files.
    pub defects: Defects,
}

impl Session {
    /// How the registry knows it.
    pub fn key(&self) -> SessionKey {
        SessionKey { agent: self.view.agent, id: self.view.id.clone(), path: self.view.path.clone() }
    }

    /// Whether a process has it open for somebody. What a daemon keeps for later can be opened by anybody.
    pub fn is_open(&self) -> bool {
        self.live.is_some() && self.view.state != State::Stopped
    }

    /// What has it open.
    pub fn holder(&self) -> Option<Holder> {
        self.live.as_ref().map(|live| live.holder)
    }

    /// What orders a listing: the last record, else the file's own time.
    pub fn updated(&self) -> Timestamp {
        self.view.updated.unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Everything beside the session files that a session's view is made from.
pub(crate) struct Knowledge {
    /// Names by id; sessions that share one are told apart by agent and path.
    names: HashMap<SessionId, Vec<(SessionKey, SessionName)>>,
    /// The sessions that had another id before they were cleared.
    holders: HashMap<(Agent, SessionId), SessionId>,
    lineage: HashMap<SessionId, Vec<(Agent, Lineage)>>,
    notes: HashMap<Agent, Notes>,
    live: HashMap<Agent, Live>,
    /// Sessions of which was heard last that they wait for a permission, and when, in nanoseconds since 1970.
    asks: HashMap<(Agent, SessionId), i64>,
    /// The terminals of a daemon, where one has sessions open.
    terminals: Vec<Terminal>,
    /// In nanoseconds since 1970.
    now: i64,
}

impl Knowledge {
    pub(crate) fn new(registry: &Registry, notes: HashMap<Agent, Notes>, live: HashMap<Agent, Live>) -> Result<Self> {
        let (names, lineage, holders) = (registry.names()?, registry.lineage()?, registry.holders()?);
        let mut by_id: HashMap<SessionId, Vec<(SessionKey, SessionName)>> = HashMap::new();
        for (key, name) in names {
            by_id.entry(key.id.clone()).or_default().push((key, name));
        }
        let mut parents: HashMap<SessionId, Vec<(Agent, Lineage)>> = HashMap::new();
        for ((agent, id), parent) in lineage {
            parents.entry(id).or_default().push((agent, parent));
        }
        let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let is_silent = |live: &Live| live.sessions.values().any(|session| session.state.is_none());
        let asks = if live.values().any(is_silent) { registry.last_asked()? } else { HashMap::new() };
        Ok(Knowledge { names: by_id, holders, lineage: parents, notes, live, asks, terminals: Vec::new(), now })
    }

    /// Finds out who looks at what a daemon has open.
    pub(crate) fn look_for_terminals(&mut self, proc: Option<&Path>) {
        let mut sessions = self.live.values().flat_map(|live| live.sessions.values());
        if let Some(proc) = proc
            && sessions.any(|session| session.holder == Holder::Daemon)
        {
            self.terminals = agents::terminals_of(proc, "codex", NAME_VARIABLE);
        }
    }

    /// Whether a daemon keeps a session that no terminal shows. A terminal that tine opened is that of its session; another
    /// one may show any session of its directory.
    fn is_left(&self, live: &LiveSession, summary: &Summary) -> bool {
        let name = self.name(summary).map(SessionName::as_str);
        let shows = |terminal: &Terminal| match terminal.mark.as_deref() {
            Some(mark) => Some(mark) == name,
            None => summary.cwd.as_ref().is_none_or(|cwd| *cwd == terminal.directory),
        };
        live.holder == Holder::Daemon && !self.terminals.iter().any(shows)
    }

    pub(crate) fn name(&self, summary: &Summary) -> Option<&SessionName> {
        let mut named = self.names.get(&summary.id)?.iter();
        let own = named.find(|(key, _)| key.agent == summary.agent && key.path == summary.path)?;
        Some(&own.1)
    }

    /// How the ids of sessions begin that have names.
    pub(crate) fn who_may_be_named(&self) -> HashSet<u64> {
        self.names.keys().map(|id| beginning(id.as_str())).collect()
    }

    /// Gives a session the title that its agent keeps elsewhere.
    pub(crate) fn title(&self, summary: &mut Summary) {
        if let Some(title) = self.notes.get(&summary.agent).and_then(|notes| notes.titles.get(&summary.id)) {
            summary.custom_title = Some(title.clone());
        }
    }

    /// Gives all sessions such titles. Of most nothing is looked at but how their ids begin.
    pub(crate) fn title_all(&self, entries: &mut [Entry]) {
        let titles = self.notes.iter().flat_map(|(agent, notes)| notes.titles.keys().map(move |id| (*agent, id)));
        let titled: HashSet<(Agent, u64)> = titles.map(|(agent, id)| (agent, beginning(id.as_str()))).collect();
        if titled.is_empty() {
            return;
        }
        for entry in entries.iter_mut().filter(|entry| titled.contains(&(entry.agent(), entry.beginning()))) {
            self.title(&mut entry.summary);
        }
    }

    /// The name of a session, of whose path nothing is known.
    fn name_of(&self, agent: Agent, id: &SessionId) -> Option<SessionName> {
        let named = |id: &SessionId| self.names.get(id)?.iter().find(|(key, _)| key.agent == agent);
        let named = named(id).or_else(|| named(self.holders.get(&(agent, id.clone()))?))?;
        Some(named.1.clone())
    }

    /// Puts one session together.
    pub(crate) fn session(&self, entry: Entry) -> Session {
        let mut summary = entry.summary.into_summary();
        self.title(&mut summary);
        let updated = updated(&entry.stamp, &summary);
        let known = Known::of(&summary);
        let live = self.live.get(&summary.agent).and_then(|live| live.sessions.get(&summary.id));
        let live = live.filter(|live| is_of_project(live, &summary)).cloned();
        let written = entry.stamp.modified;
        let mut state = state_of(live.as_ref(), summary.mid_turn, written, self.now);
        // What a daemon keeps for later is at rest; what it still works on is not.
        if state == State::Idle && live.as_ref().is_some_and(|live| self.is_left(live, &summary)) {
            state = State::Stopped;
        }
        // An agent that says nothing of itself has told it by its hooks; what it writes afterwards is not waiting.
        let asked = self.asks.get(&(summary.agent, summary.id.clone()));
        if state == State::Busy && asked.is_some_and(|asked| *asked >= written - JUST_BEFORE) {
            state = State::Waiting;
        }
        let parents = self.lineage.get(&summary.id).into_iter().flatten();
        let mut parent = parents.filter(|(agent, _)| *agent == summary.agent).map(|(_, parent)| ParentView {
            agent: parent.agent,
            id: parent.id.clone(),
            name: self.name_of(parent.agent, &parent.id),
            turn: parent.turn,
            source: parent.source,
        });
        let parent = parent.next_back();
        let name = self.name(&summary).cloned();
        let since = live.as_ref().and_then(|live| live.since);
        let says_nothing = live.as_ref().is_some_and(|live| live.state.is_none());
        let is_old = since.is_some_and(|since| {
            written < since - CLOCKS_DIFFER && (says_nothing || self.now - since > SAYS_SO_WITHIN)
        });
        let is_settled = !summary.mid_turn || live.is_none() || is_old;
        let view = SessionView {
            agent: summary.agent,
            handle: summary.id.short().to_owned(),
            name,
            title: summary.title().map(str::to_owned),
            created: summary.created,
            updated,
            turns: summary.turns,
            state,
            parent,
            id: summary.id,
            cwd: summary.cwd,
            branch: summary.branch,
            path: summary.path,
        };
        let details = Details {
            known,
            custom_title: summary.custom_title,
            agent_title: summary.agent_title,
            first_prompt: summary.first_prompt,
            model: summary.model,
            version: summary.version,
            earlier_branches: summary.earlier_branches,
            tokens: summary.tokens,
            mid_turn: summary.mid_turn,
            compacted: summary.compacted,
            disordered: summary.disordered,
            defects: summary.defects,
        };
        Session { view, details, live, size: entry.stamp.size, is_settled }
    }
}

/// Sessions, newest first, put together as they are asked for.
pub struct Listing {
    /// The newest last, so that each is given away once it is done with.
    entries: Vec<Entry>,
    knowledge: Knowledge,
    handles: HashMap<SessionId, String>,
}

impl Listing {
    pub(crate) fn new(mut entries: Vec<Entry>, knowledge: Knowledge, handles: HashMap<SessionId, String>) -> Self {
        entries.sort_by(|a, b| {
            let order = updated(&a.stamp, &a.summary).cmp(&updated(&b.stamp, &b.summary));
            order.then_with(|| b.summary.id.cmp(&a.summary.id))
        });
        Listing { entries, knowledge, handles }
    }

    /// The longest name or beginning of an id among them, in characters.
    pub fn label_width(&self) -> usize {
        let label = |entry: &Entry| match self.knowledge.name(&entry.summary) {
            Some(name) => name.as_str().len(),
            None => self.handles.get(&entry.summary.id).map_or(8, String::len),
        };
        self.entries.iter().map(label).max().unwrap_or(0)
    }

    /// Whether a process has one of them open.
    pub fn any_live(&self) -> bool {
        self.knowledge.live.values().any(|live| !live.sessions.is_empty())
    }
}

impl Iterator for Listing {
    type Item = Session;

    fn next(&mut self) -> Option<Session> {
        let mut session = self.knowledge.session(self.entries.pop()?);
        if let Some(handle) = self.handles.get(&session.view.id) {
            session.view.handle.clone_from(handle);
        }
        Some(session)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}

impl ExactSizeIterator for Listing {}

fn updated(stamp: &agents::Stamp, summary: &Summary) -> Option<Timestamp> {
    summary.updated.or_else(|| Timestamp::from_nanosecond(i128::from(stamp.modified)).ok())
}

/// How many nanoseconds an agent may take to say that it is at work on what it has written down.
const SAYS_SO_WITHIN: i64 = 5_000_000_000;

/// An agent that said that it is idle so many nanoseconds after something was written said it of what came before, or is
/// still writing.
const JUST_BEFORE: i64 = 2_000_000_000;
/// By how many nanoseconds the start of a process may be off.
const CLOCKS_DIFFER: i64 = 100_000_000;

/// The agent's own word counts; where it gives none, the transcript tells. A prompt is in the transcript a moment before
/// the agent says that it is at work on it, and the end of a turn a moment after it says that it is idle.
fn state_of(live: Option<&LiveSession>, is_mid_turn: bool, written: i64, now: i64) -> State {
    let is_new = |since: i64| since < written + JUST_BEFORE && now - written < SAYS_SO_WITHIN;
    match live {
        None => State::Stopped,
        Some(LiveSession { state: Some(State::Idle), since: Some(since), .. }) if is_mid_turn && is_new(*since) => {
            State::Busy
        }
        Some(LiveSession { state: Some(state), .. }) => *state,
        // What was cut off before this process began is not what it is at work on. Clocks are not that exact.
        Some(live) if is_mid_turn && live.since.is_none_or(|began| written >= began - CLOCKS_DIFFER) => State::Busy,
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
    // Nearly all differ in their first eight characters; only those that do not are looked at closer.
    let mut all: Vec<(u64, &SessionId)> = ids.map(|id| (beginning(id.as_str()), id)).collect();
    all.sort_unstable_by_key(|(beginning, _)| *beginning);
    let alike = all.chunk_by(|(a, _), (b, _)| a == b).filter(|alike| alike.len() > 1);
    let mut sorted: Vec<&SessionId> = alike.flatten().map(|(_, id)| *id).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let shared =
        |a: &SessionId, b: &SessionId| a.as_str().bytes().zip(b.as_str().bytes()).take_while(|(a, b)| a == b).count();
    let mut handles = HashMap::new();
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

/// The first eight characters as a number.
pub(crate) fn beginning(id: &str) -> u64 {
    let mut bytes = [0; 8];
    for (byte, given) in bytes.iter_mut().zip(id.bytes()) {
        *byte = given;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_down_is_being_worked_on() {
        const SECOND: i64 = 1_000_000_000;
        let said = |state| LiveSession {
            pid: None,
            holder: Holder::Agent,
            state: Some(state),
            since: Some(100 * SECOND),
            waiting_for: None,
            cwd: None,
        };
        let state =
            |is_mid_turn, written, now| state_of(Some(&said(State::Idle)), is_mid_turn, written * SECOND, now * SECOND);
        assert_eq!(state(true, 101, 102), State::Busy);
        assert_eq!(state(false, 101, 102), State::Idle);
        assert_eq!(state(true, 97, 100), State::Idle);
        // It would have said so by now.
        assert_eq!(state(true, 101, 120), State::Idle);
        assert_eq!(state_of(Some(&said(State::Waiting)), true, 101 * SECOND, 102 * SECOND), State::Waiting);
        assert_eq!(state_of(None, true, 101 * SECOND, 102 * SECOND), State::Stopped);
    }
}
