//! A session as the engine sees it: the agent's facts, tine's records, and the process that has it open.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use agents::{Adapter, Holder, Live, LiveSession, Notes, PlainScan, Stamp, Terminal};
use jiff::Timestamp;
use transcript::{Agent, Defects, ParentView, SessionId, SessionName, SessionView, State, Summary, TokenUse};

use crate::context::NAME_VARIABLE;
use crate::ctx::Ctx;
use crate::registry;
use crate::registry::{CompletedFork, Lineage, Registry, SessionKey, UnstartedFork};
use crate::sessions::catalog::Entry;
use crate::sessions::project;

/// A session with everything known about it.
#[derive(Debug, Clone)]
pub struct Session {
    /// What users and programs see.
    pub view: SessionView,
    /// Other facts from the agent's files.
    pub details: Details,
    /// The process that has it open.
    pub live: Option<LiveSession>,
    /// The transcript's size in bytes.
    pub size: u64,
    /// The state of the file when it was read.
    pub(crate) stamp: Stamp,
    /// Whether its last turn is final: complete, or interrupted before the session was last opened.
    pub is_settled: bool,
    /// Its position in the order in which forks were registered, if it is a fork.
    pub(crate) number: Option<i64>,
}

/// Facts from the agent's files beyond the view.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// The title that the user gave it inside the agent.
    pub custom_title: Option<String>,
    /// The title that the agent generated.
    pub agent_title: Option<String>,
    /// The first prompt.
    pub first_prompt: Option<String>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// The version of the agent that wrote last.
    pub version: Option<String>,
    /// Other branches that it worked on before, if the agent records them.
    pub earlier_branches: Vec<String>,
    /// The token use that the agent last reported.
    pub tokens: Option<TokenUse>,
    /// The longest context that it reported at any time.
    pub largest_context: u64,
    /// Whether the last record leaves a turn unfinished.
    pub mid_turn: bool,
    /// Whether part of the history was replaced by a summary.
    pub compacted: bool,
    /// What speeds up reading and copying, if the file is in history order.
    pub known: Option<PlainScan>,
    /// Whether records precede others that they follow.
    pub disordered: bool,
    /// Whether the agent itself would continue from another record than the history's last, and not find the messages.
    pub tip_differs: bool,
    /// The turn of each record on the history that names a missing parent and follows another record instead.
    pub gaps: Vec<u32>,
    /// How many other branches of the transcript have text.
    pub branches: u32,
    /// The last record of the selected branch, if the agent would resume another one.
    pub tip: Option<u64>,
    /// The label of that branch: [`crate::BranchView::handle`].
    pub branch: Option<String>,
    /// Defects found in the files.
    pub defects: Defects,
}

impl Session {
    /// Its key in the registry.
    pub fn key(&self) -> SessionKey {
        SessionKey { agent: self.view.agent, id: self.view.id.clone(), path: self.view.path.clone() }
    }

    /// Whether a process has it open for a user. A session that only a daemon keeps can be opened.
    pub fn is_open(&self) -> bool {
        self.live.is_some() && self.view.state != State::Stopped
    }

    /// The process that has it open.
    pub fn holder(&self) -> Option<Holder> {
        self.live.as_ref().map(|live| live.holder)
    }

    /// The sort key of a listing: the time of the last record, otherwise of the file.
    pub fn updated(&self) -> Timestamp {
        self.view.updated.unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Everything besides the session files that goes into a session's view.
pub(crate) struct Knowledge {
    /// Names by id; sessions with the same id are distinguished by agent and path.
    names: HashMap<SessionId, Vec<(SessionKey, SessionName)>>,
    /// The sessions that had another id before they were cleared.
    holders: HashMap<(Agent, SessionId), SessionId>,
    lineage: HashMap<SessionId, Vec<(Agent, Lineage)>>,
    /// Forks whose origin is known.
    made: HashMap<SessionId, Vec<(SessionKey, CompletedFork)>>,
    /// Forks that have not started.
    unstarted: Vec<UnstartedFork>,
    notes: HashMap<Agent, Notes>,
    live: HashMap<Agent, Live>,
    /// Sessions whose last event was a permission request, with its time in nanoseconds since 1970.
    asks: HashMap<(Agent, SessionId), i64>,
    /// The terminals of a daemon that has sessions open.
    terminals: Vec<Terminal>,
    /// In nanoseconds since 1970.
    now: i64,
}

/// The facts that determine what the process that has a session open is doing.
struct ActivityFacts<'a> {
    agent: Agent,
    id: &'a SessionId,
    path: &'a Path,
    cwd: Option<&'a Path>,
    name: Option<&'a SessionName>,
    mid_turn: bool,
    /// When the transcript was last written, in nanoseconds since 1970.
    written: i64,
}

/// The process that has a session open, and what it does.
struct Activity {
    live: Option<LiveSession>,
    state: State,
    is_settled: bool,
}

impl Knowledge {
    /// The knowledge about one session that was read before, looked up by its key.
    pub(super) fn of_one(ctx: &Ctx, session: &Session) -> registry::Result<Self> {
        let (key, registry) = (session.key(), ctx.registry());
        let live = ctx.adapter(key.agent).live_session(&key.id);
        let is_silent = live.as_ref().is_some_and(|live| live.state.is_none());
        let asked = if is_silent { registry.asked_at(key.agent, &key.id)? } else { None };
        let name = registry.name_of(&key)?;
        let made = registry.made_fork(&key)?;
        let lineage = session.view.parent.as_ref().map(|parent| {
            let ParentView { agent, turn, source, .. } = *parent;
            (key.agent, Lineage { agent, id: parent.id.clone(), turn, source })
        });
        let one = |live| Live { sessions: HashMap::from([(key.id.clone(), live)]), weak: None };
        let mut knowledge = Knowledge {
            names: name.map(|name| (key.id.clone(), vec![(key.clone(), name)])).into_iter().collect(),
            holders: HashMap::new(),
            lineage: lineage.map(|lineage| (key.id.clone(), vec![lineage])).into_iter().collect(),
            made: made.map(|made| (key.id.clone(), vec![(key.clone(), made)])).into_iter().collect(),
            unstarted: Vec::new(),
            notes: HashMap::new(),
            live: live.map(|live| (key.agent, one(live))).into_iter().collect(),
            asks: asked.map(|asked| ((key.agent, key.id.clone()), asked)).into_iter().collect(),
            terminals: Vec::new(),
            now: nanoseconds_now(),
        };
        knowledge.look_for_terminals(ctx.adapters());
        Ok(knowledge)
    }

    pub(crate) fn new(
        registry: &Registry,
        notes: HashMap<Agent, Notes>,
        live: HashMap<Agent, Live>,
    ) -> registry::Result<Self> {
        let (names, lineage, holders) = (registry.names()?, registry.lineage()?, registry.holders()?);
        let mut by_id: HashMap<SessionId, Vec<(SessionKey, SessionName)>> = HashMap::new();
        for (key, name) in names {
            by_id.entry(key.id.clone()).or_default().push((key, name));
        }
        let mut parents: HashMap<SessionId, Vec<(Agent, Lineage)>> = HashMap::new();
        for ((agent, id), parent) in lineage {
            parents.entry(id).or_default().push((agent, parent));
        }
        let mut made: HashMap<SessionId, Vec<(SessionKey, CompletedFork)>> = HashMap::new();
        for (key, fork) in registry.completed_forks()? {
            made.entry(key.id.clone()).or_default().push((key, fork));
        }
        let now = nanoseconds_now();
        let is_silent = |live: &Live| live.sessions.values().any(|session| session.state.is_none());
        let asks = if live.values().any(is_silent) { registry.last_asked()? } else { HashMap::new() };
        let unstarted = registry.unstarted_forks()?;
        let (names, lineage, terminals) = (by_id, parents, Vec::new());
        Ok(Knowledge { names, holders, lineage, made, unstarted, notes, live, asks, terminals, now })
    }

    /// Forks that have not started, as entries like those from the agents' files. Forks in the trash are left out.
    pub(crate) fn unstarted_entries(&self) -> impl Iterator<Item = Entry> {
        self.unstarted.iter().filter_map(|fork| {
            let metadata = std::fs::metadata(&fork.key.path).ok()?;
            let mut summary = Summary::new(fork.key.agent, fork.key.id.clone(), fork.key.path.clone());
            summary.created = Timestamp::from_millisecond(fork.at).ok();
            summary.updated = summary.created;
            summary.branch = fork.cwd.as_deref().and_then(project::current_branch);
            summary.cwd.clone_from(&fork.cwd);
            summary.is_empty = false;
            Some(Entry::fresh(summary, agents::stamp(&metadata)))
        })
    }

    fn is_unstarted(&self, summary: &Summary) -> bool {
        self.unstarted.iter().any(|fork| fork.key.id == summary.id && fork.key.path == summary.path)
    }

    /// Finds the terminals that show what a daemon has open.
    pub(crate) fn look_for_terminals(&mut self, adapters: &[Box<dyn Adapter>]) {
        for (agent, live) in &self.live {
            let has_daemon = live.sessions.values().any(|session| session.holder == Holder::Daemon);
            let adapter = adapters.iter().find(|adapter| has_daemon && adapter.agent() == *agent);
            self.terminals.extend(adapter.into_iter().flat_map(|adapter| adapter.terminals(NAME_VARIABLE)));
        }
    }

    /// Whether a daemon keeps a session that no terminal shows. A terminal that tine opened shows its own session; any
    /// other may show any session of its directory.
    fn is_left(&self, live: &LiveSession, facts: &ActivityFacts<'_>) -> bool {
        let name = facts.name.map(SessionName::as_str);
        let shows = |terminal: &Terminal| match terminal.mark.as_deref() {
            Some(mark) => Some(mark) == name,
            None => facts.cwd.is_none_or(|cwd| *cwd == terminal.directory),
        };
        live.holder == Holder::Daemon && !self.terminals.iter().any(shows)
    }

    pub(crate) fn name(&self, summary: &Summary) -> Option<&SessionName> {
        let mut named = self.names.get(&summary.id)?.iter();
        let own = named.find(|(key, _)| key.agent == summary.agent && key.path == summary.path)?;
        Some(&own.1)
    }

    /// The first characters of the ids of sessions with names.
    pub(crate) fn who_may_be_named(&self) -> HashSet<u64> {
        self.names.keys().map(|id| beginning(id.as_str())).collect()
    }

    /// Gives a session the title that its agent keeps elsewhere.
    pub(crate) fn title(&self, summary: &mut Summary) {
        if let Some(title) = self.notes.get(&summary.agent).and_then(|notes| notes.titles.get(&summary.id)) {
            summary.custom_title = Some(title.clone());
        }
    }

    /// Does this for all sessions. For most, only the first characters of the id are compared.
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

    /// Whether a process has any session open.
    pub(super) fn any_live(&self) -> bool {
        self.live.values().any(|live| !live.sessions.is_empty())
    }

    /// What is known about the origin of a session.
    pub(super) fn made(&self, summary: &Summary) -> Option<&CompletedFork> {
        let mut made = self.made.get(&summary.id)?.iter();
        let own = made.find(|(key, _)| key.agent == summary.agent && key.path == summary.path)?;
        Some(&own.1)
    }

    /// Gives forks their own time and directory if their records still have those of the source. For most sessions,
    /// only the first characters of the id are compared.
    pub(crate) fn correct_forks(&self, entries: &mut [Entry]) {
        let forks: HashSet<u64> =
            self.made.keys().chain(self.lineage.keys()).map(|id| beginning(id.as_str())).collect();
        for entry in entries.iter_mut().filter(|entry| forks.contains(&entry.beginning())) {
            let stamp = entry.stamp;
            self.correct_fork(&stamp, &mut entry.summary);
        }
    }

    fn correct_fork(&self, stamp: &agents::Stamp, summary: &mut Summary) {
        let made = self.made(summary);
        if let Some((cwd, turns)) = made.and_then(|made| made.cwd.as_ref().zip(made.turns))
            && summary.turns <= turns
        {
            // The fork has no prompts yet, so every record of a directory comes from the source.
            summary.cwd = Some(cwd.clone());
        }
        let made = made.and_then(|made| Timestamp::from_millisecond(made.at).ok());
        let Some(born) = made.or_else(|| self.file_of_fork_began(stamp, summary)) else {
            return;
        };
        summary.created = Some(born);
        summary.updated = summary.updated.max(Some(born));
    }

    /// When the agent itself created a fork whose records keep the times of the source: the creation time of its file.
    /// A file restored from a backup is newer than the messages in the fork.
    fn file_of_fork_began(&self, stamp: &agents::Stamp, summary: &Summary) -> Option<Timestamp> {
        if !agents::about(summary.agent).native_fork.keeps_times {
            return None;
        }
        let mut parents = self.lineage.get(&summary.id)?.iter();
        let (_, parent) = parents.find(|(agent, _)| *agent == summary.agent)?;
        let born = Timestamp::from_nanosecond(i128::from(stamp.born?)).ok()?;
        let is_of_source = |time: Option<Timestamp>| time.is_some_and(|time| time < born);
        let is_unused = parent.turn == Some(summary.turns);
        (is_of_source(summary.created) && (is_unused || !is_of_source(summary.updated))).then_some(born)
    }

    /// The name of a session whose path is unknown.
    fn name_of(&self, agent: Agent, id: &SessionId) -> Option<SessionName> {
        let named = |id: &SessionId| self.names.get(id)?.iter().find(|(key, _)| key.agent == agent);
        let named = named(id).or_else(|| named(self.holders.get(&(agent, id.clone()))?))?;
        Some(named.1.clone())
    }

    /// The process that has a session open, and what it does.
    fn activity(&self, facts: &ActivityFacts<'_>) -> Activity {
        let live = self.live.get(&facts.agent).and_then(|live| live.sessions.get(facts.id));
        let live = live.filter(|live| live.is_of_project(facts.path, facts.cwd)).cloned();
        let written = facts.written;
        let mut state = state_of(live.as_ref(), facts.mid_turn, written, self.now);
        // A session that only a daemon keeps is at rest, unless it is still busy.
        if state == State::Idle && live.as_ref().is_some_and(|live| self.is_left(live, facts)) {
            state = State::Stopped;
        }
        // An agent without a state file reports by its hooks that it is waiting. Once it writes again, it no longer is.
        let asked = self.asks.get(&(facts.agent, facts.id.clone()));
        if matches!(state, State::Busy | State::Idle) && asked.is_some_and(|asked| *asked >= written - JUST_BEFORE) {
            state = State::Waiting;
        }
        let since = live.as_ref().and_then(|live| live.since);
        let is_silent = live.as_ref().is_some_and(|live| live.state.is_none());
        let is_old = since
            .is_some_and(|since| written < since - CLOCKS_DIFFER && (is_silent || self.now - since > SAYS_SO_WITHIN));
        let is_settled = !facts.mid_turn || live.is_none() || is_old;
        Activity { live, state, is_settled }
    }

    /// The same session with its current state, if its transcript has not changed.
    pub(super) fn with_state_now(&self, session: &Session) -> Session {
        let names = self.names.get(&session.view.id).and_then(|names| names.first());
        let name = names.map(|(_, name)| name.clone());
        let Activity { live, state, is_settled } = self.activity(&ActivityFacts {
            agent: session.view.agent,
            id: &session.view.id,
            path: &session.view.path,
            cwd: session.view.cwd.as_deref(),
            name: name.as_ref(),
            mid_turn: session.details.mid_turn,
            written: session.stamp.modified,
        });
        let mut session = Session { live, is_settled, ..session.clone() };
        (session.view.state, session.view.name) = (state, name);
        session
    }

    /// Assembles one session.
    pub(crate) fn session(&self, entry: Entry) -> Session {
        let mut summary = entry.summary.into_summary();
        self.title(&mut summary);
        self.correct_fork(&entry.stamp, &mut summary);
        let number = self.made(&summary).map(|made| made.number);
        let updated = updated(&entry.stamp, &summary);
        let known = PlainScan::of(&summary);
        let name = self.name(&summary).cloned();
        let Activity { live, state, is_settled } = self.activity(&ActivityFacts {
            agent: summary.agent,
            id: &summary.id,
            path: &summary.path,
            cwd: summary.cwd.as_deref(),
            name: name.as_ref(),
            mid_turn: summary.mid_turn,
            written: entry.stamp.modified,
        });
        let parents = self.lineage.get(&summary.id).into_iter().flatten();
        let mut parent = parents.filter(|(agent, _)| *agent == summary.agent).map(|(_, parent)| ParentView {
            agent: parent.agent,
            id: parent.id.clone(),
            name: self.name_of(parent.agent, &parent.id),
            turn: parent.turn,
            source: parent.source,
        });
        let parent = parent.next_back();
        let unstarted = self.is_unstarted(&summary);
        let title = match (&parent, unstarted) {
            (Some(parent), true) => Some(title_of_unstarted(parent)),
            _ => summary.title_beside(name.as_ref().map(SessionName::as_str)).map(str::to_owned),
        };
        let view = SessionView {
            agent: summary.agent,
            handle: summary.id.short().to_owned(),
            name,
            title,
            created: summary.created,
            updated,
            turns: summary.turns,
            state,
            parent,
            unstarted,
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
            largest_context: summary.largest_context,
            mid_turn: summary.mid_turn,
            compacted: summary.compacted,
            disordered: summary.disordered,
            tip_differs: summary.tip_differs,
            gaps: summary.gaps,
            branches: summary.branches,
            tip: None,
            branch: None,
            defects: summary.defects,
        };
        Session { view, details, live, size: entry.stamp.size, stamp: entry.stamp, is_settled, number }
    }
}

/// The title of a fork that has not started, from the transcript that its agent will receive.
fn title_of_unstarted(parent: &ParentView) -> String {
    let label = parent.name.as_ref().map_or_else(|| parent.id.short(), SessionName::as_str);
    let turn = parent.turn.map(|turn| format!(" up to turn {turn}")).unwrap_or_default();
    format!("transcript of {label}{turn}")
}

fn updated(stamp: &agents::Stamp, summary: &Summary) -> Option<Timestamp> {
    summary.updated.or_else(|| Timestamp::from_nanosecond(i128::from(stamp.modified)).ok())
}

/// How many nanoseconds an agent may take to report that it is busy with what it has written.
const SAYS_SO_WITHIN: i64 = 5_000_000_000;

/// If an agent reported idle within this many nanoseconds after a write, the report is about earlier work, or it is
/// still writing.
const JUST_BEFORE: i64 = 2_000_000_000;
/// The recorded start of a process may be off by this many nanoseconds.
const CLOCKS_DIFFER: i64 = 100_000_000;

/// The agent's own report counts; without one, the transcript decides. A prompt is in the transcript a moment before
/// the agent reports that it is busy, and the end of a turn a moment after it reports that it is idle.
fn state_of(live: Option<&LiveSession>, is_mid_turn: bool, written: i64, now: i64) -> State {
    let is_new = |since: i64| since < written + JUST_BEFORE && now - written < SAYS_SO_WITHIN;
    match live {
        None => State::Stopped,
        Some(LiveSession { state: Some(State::Idle), since: Some(since), .. }) if is_mid_turn && is_new(*since) => {
            State::Busy
        }
        Some(LiveSession { state: Some(state), .. }) => *state,
        // A turn that was interrupted before this process started is not its current work. Clocks are not that exact.
        Some(live) if is_mid_turn && live.since.is_none_or(|began| written >= began - CLOCKS_DIFFER) => State::Busy,
        Some(_) => State::Idle,
    }
}

fn nanoseconds_now() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// The shortest id prefixes that are unique, at least eight characters long.
///
/// Codex's ids begin with the time, so those of one minute share their first eight characters.
pub(crate) fn handles<'a>(ids: impl Iterator<Item = &'a SessionId>) -> HashMap<SessionId, String> {
    let mut sorted: Vec<&SessionId> = ids.collect();
    sorted.sort_unstable();
    sorted.dedup();
    let shared =
        |a: &SessionId, b: &SessionId| a.as_str().bytes().zip(b.as_str().bytes()).take_while(|(a, b)| a == b).count();
    let mut handles = HashMap::new();
    let mut before = 0;
    for (index, id) in sorted.iter().enumerate() {
        let after = sorted.get(index + 1).map_or(0, |next| shared(id, next));
        let needed = (before.max(after) + 1).max(8).min(id.as_str().len());
        // Only exceptional lengths are kept.
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
            folders: Vec::new(),
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
