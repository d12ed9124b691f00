//! What the agents' own hooks tell: a session began, was forked, cleared, moved, ended.
//!
//! A hook touches the registry and nothing else, in one transaction; it costs a few indexed lookups however many
//! sessions there are. An agent tells only the id that it has now. Which session that was before is known by the process:
//! the registry remembers which id each running agent had last.

use std::fs;
use std::path::{Path, PathBuf};

use agents::{Runner, Store};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::Deserialize;
use transcript::{Agent, SessionId, SessionName};

use crate::error::Result;
use crate::names;
use crate::profile::NAME_VARIABLE;
use crate::registry::Registry;

/// What happened in an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A session began, was resumed, forked, cleared or compacted.
    SessionStart,
    /// A session is left.
    SessionEnd,
    /// Something was asked.
    UserPromptSubmit,
    /// The agent has answered.
    Stop,
    /// The agent wants attention.
    Notification,
    /// The agent asks whether it may.
    PermissionRequest,
}

impl Event {
    /// Every event that tine listens to.
    pub const ALL: [Event; 6] = [
        Event::SessionStart,
        Event::SessionEnd,
        Event::UserPromptSubmit,
        Event::Stop,
        Event::Notification,
        Event::PermissionRequest,
    ];

    /// The word on tine's command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Event::SessionStart => "session-start",
            Event::SessionEnd => "session-end",
            Event::UserPromptSubmit => "user-prompt-submit",
            Event::Stop => "stop",
            Event::Notification => "notification",
            Event::PermissionRequest => "permission-request",
        }
    }

    /// The event of a word.
    pub fn of(word: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.as_str() == word)
    }
}

/// What an agent says with an event. Unknown fields are passed over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Payload {
    /// The agent's id of the session.
    pub session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    source: Option<String>,
    prompt_id: Option<String>,
    turn_id: Option<String>,
    notification_type: Option<String>,
}

/// Who calls.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The name under which the agent was started (`TINE_SESSION`).
    pub name: Option<String>,
    /// Where the agent reads variables for later commands from (`CLAUDE_ENV_FILE`).
    pub env_file: Option<PathBuf>,
    /// The agent's process.
    pub runner: Runner,
}

impl Caller {
    /// The agent's process, and when it began.
    fn process(&self) -> Option<(u32, &str)> {
        match &self.runner {
            Runner::Agent { pid, start, .. } => Some((*pid, start)),
            Runner::Daemon | Runner::Unknown => None,
        }
    }

    /// Somebody else who calls a hook, as a test or a wrapper does, may do so for many sessions.
    fn checked(&self, agent: Agent) -> Self {
        let mut caller = self.clone();
        if let Runner::Agent { words, .. } = &self.runner
            && !words.iter().take(2).any(|word| word.contains(agent.as_str()))
        {
            caller.runner = Runner::Unknown;
        }
        caller
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The session's name, where it has one.
    pub name: Option<SessionName>,
    /// What a person should know.
    pub notice: Option<String>,
    /// Whether the same was told just before, by a hook that is installed twice.
    pub is_repeated: bool,
}

/// A row of the table of sessions.
#[derive(Debug, Clone)]
struct Row {
    key: i64,
    id: String,
    path: String,
    name: Option<String>,
    profile: Option<String>,
}

/// What a process was when it was last heard of.
#[derive(Debug, Clone)]
struct Before {
    id: String,
    /// The event that told of it.
    hook: String,
}

/// What the files and the command line tell of a session that nobody knows yet.
#[derive(Debug, Default)]
struct Traces {
    /// The agent's own word for the parent.
    pointer: Option<SessionId>,
    /// The session that the agent's command line forks.
    forks: Option<Option<SessionId>>,
    /// Whether there is a transcript.
    existed: bool,
    /// The name under which the only terminal in the session's directory was started, where a daemon works for it.
    terminal: Option<String>,
}

/// Where a session that nobody knew came from.
#[derive(Debug)]
enum Origin {
    /// It takes the place of this one, which was cleared.
    Cleared(String),
    /// It is a fork of the session with this id.
    Fork(String),
    /// It is the session that was started under this name, whose id was not known.
    Started(String),
    /// Nobody knows, or it was there before.
    Unknown,
}

impl Registry {
    /// Takes note of an event.
    pub fn hear(
        &mut self,
        store: &dyn Store,
        event: Event,
        payload: &Payload,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Heard> {
        let agent = store.agent();
        let Ok(id) = SessionId::new(payload.session_id.clone()) else {
            return Ok(Heard::default());
        };
        let caller = &caller.checked(agent);
        let path = payload.transcript_path.clone().unwrap_or_default();
        // Files are looked at before the transaction begins, and only once for a session that nobody knows.
        let before = self.ask(|connection| process_had(connection, agent, caller))?;
        let is_seen = before.as_ref().is_some_and(|before| before.id == id.as_str());
        let traces = match is_seen || self.is_known(agent, &id)? {
            true => Traces::default(),
            false => Traces {
                pointer: store.origin(&id, &path).filter(|parent| *parent != id),
                forks: match &caller.runner {
                    Runner::Agent { words, .. } => store.forked_by(words),
                    Runner::Daemon | Runner::Unknown => None,
                },
                existed: path.is_file(),
                terminal: match (&caller.runner, &payload.cwd) {
                    (Runner::Daemon, Some(cwd)) if payload.source.as_deref() == Some("clear") => {
                        store.lone_terminal(cwd, NAME_VARIABLE)
                    }
                    _ => None,
                },
            },
        };
        self.write(|transaction| {
            let hearing = Hearing { transaction, agent, id: &id, path: &path, event, payload, caller, now };
            hearing.take(before.as_ref().filter(|_| !is_seen), &traces, is_seen)
        })
    }

    /// When a hook last ran, in milliseconds since 1970.
    pub fn last_heard(&self, agent: Agent, event: Event) -> Result<Option<i64>> {
        self.ask(|connection| {
            let query = "SELECT max(at) FROM events WHERE agent = ?1 AND hook = ?2";
            connection.query_row(query, [agent.as_str(), event.as_str()], |row| row.get(0))
        })
    }

    fn is_known(&self, agent: Agent, id: &SessionId) -> Result<bool> {
        self.ask(|connection| {
            let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE agent = ?1 AND id = ?2)
                             OR EXISTS (SELECT 1 FROM lineage WHERE agent = ?1 AND id = ?2)";
            connection.prepare_cached(query)?.query_row([agent.as_str(), id.as_str()], |row| row.get(0))
        })
    }
}

struct Hearing<'a> {
    transaction: &'a Transaction<'a>,
    agent: Agent,
    id: &'a SessionId,
    path: &'a Path,
    event: Event,
    payload: &'a Payload,
    caller: &'a Caller,
    now: Timestamp,
}

impl Hearing<'_> {
    fn take(&self, before: Option<&Before>, traces: &Traces, is_seen: bool) -> rusqlite::Result<Heard> {
        let mut heard = Heard::default();
        let mut row = self.row_by_id(self.id.as_str())?;
        let mut forked = false;
        if row.is_none() && !is_seen && !self.is_previous()? {
            match self.origin(before, traces)? {
                Origin::Cleared(old) => row = self.clear(&old)?,
                Origin::Fork(parent) => {
                    (row, heard.notice) = self.fork(&parent)?;
                    forked = true;
                }
                Origin::Started(name) => row = self.learn(&name)?,
                Origin::Unknown => {}
            }
        } else if let Some(known) = &row {
            self.follow(known)?;
        }
        heard.name = row.as_ref().and_then(|row| row.name.clone()).and_then(|name| SessionName::new(name).ok());
        heard.is_repeated = self.note(heard.name.as_ref(), forked)?;
        Ok(heard)
    }

    /// The session of an id. Two projects may have sessions with the same id; the transcript tells them apart.
    fn row_by_id(&self, id: &str) -> rusqlite::Result<Option<Row>> {
        let query = "SELECT key, id, path, name, profile FROM sessions WHERE agent = ?1 AND id = ?2";
        let mut statement = self.transaction.prepare_cached(query)?;
        let rows = statement.query_map(params![self.agent.as_str(), id], Row::of)?;
        let mut rows: Vec<Row> = rows.collect::<rusqlite::Result<_>>()?;
        let exact = rows.iter().position(|row| Path::new(&row.path) == self.path);
        Ok(match (exact, rows.len()) {
            (Some(index), _) => Some(rows.swap_remove(index)),
            // A transcript that is not where it was has been moved; one that is still there is another session's.
            (None, 1) if id != self.id.as_str() || !Path::new(&rows[0].path).is_file() => rows.pop(),
            // Of several, a relative is the one in the same project.
            (None, _) if id != self.id.as_str() => {
                let near = rows.iter().position(|row| Path::new(&row.path).parent() == self.path.parent());
                near.map(|index| rows.swap_remove(index))
            }
            _ => None,
        })
    }

    fn row_by_name(&self, name: &str) -> rusqlite::Result<Option<Row>> {
        let query = "SELECT key, id, path, name, profile FROM sessions WHERE agent = ?1 AND name = ?2";
        self.transaction.prepare_cached(query)?.query_row(params![self.agent.as_str(), name], Row::of).optional()
    }

    /// Whether a session had this id before it was cleared.
    fn is_previous(&self) -> rusqlite::Result<bool> {
        self.transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM previous_ids WHERE agent = ?1 AND id = ?2)")?
            .query_row(params![self.agent.as_str(), self.id.as_str()], |row| row.get(0))
    }

    /// Where a session that nobody knows came from. What the agent writes and what it was told on its command line is
    /// certain; then counts what the same process did before. Whatever an agent starts inherits its environment, so that
    /// counts last, and nothing where a daemon works for many.
    fn origin(&self, before: Option<&Before>, traces: &Traces) -> rusqlite::Result<Origin> {
        let source = self.payload.source.as_deref();
        if let Some(name) = self.started()? {
            return Ok(Origin::Started(name));
        }
        let launched = match self.launching_name().filter(|_| self.caller.runner != Runner::Daemon) {
            Some(name) => self.row_by_name(&name)?.map(|row| row.id),
            None => None,
        };
        let had = before.map(|before| before.id.clone()).or(launched).filter(|had| had != self.id.as_str());
        if let (Some("clear"), Some(name)) = (source, &traces.terminal) {
            return Ok(self.shown_in(name)?.map_or(Origin::Unknown, Origin::Cleared));
        }
        if source == Some("clear") {
            return Ok(had.map_or(Origin::Unknown, Origin::Cleared));
        }
        // What the command line says was done first; the process may have done other things since.
        if let (None, Some(Some(parent))) = (before, &traces.forks)
            && parent != self.id
        {
            return Ok(Origin::Fork(parent.to_string()));
        }
        if let Some(parent) = &traces.pointer {
            return Ok(Origin::Fork(parent.to_string()));
        }
        let is_fork = match self.event {
            // An older client says "resume" for its own branches, too. What is resumed was there before.
            Event::SessionStart => source == Some("fork") || source == Some("resume") && !traces.existed,
            // An older client begins its own fork under the id of the source. Anything else that was missed is told by
            // the files.
            _ => traces.forks.is_some() && before.is_some_and(|before| before.hook == Event::SessionStart.as_str()),
        };
        Ok(had.filter(|_| is_fork).map_or(Origin::Unknown, Origin::Fork))
    }

    /// The session that a terminal shows which was started under a name: that one, or the fork made inside of it of which
    /// was heard last.
    fn shown_in(&self, name: &str) -> rusqlite::Result<Option<String>> {
        let query = "WITH RECURSIVE family(id) AS (
                         SELECT id FROM sessions WHERE agent = ?1 AND name = ?2
                         UNION SELECT p.id FROM previous_ids p JOIN sessions s ON s.key = p.key
                               WHERE s.agent = ?1 AND s.name = ?2
                         UNION SELECT l.id FROM lineage l JOIN family f ON l.parent_id = f.id
                               WHERE l.agent = ?1 AND l.parent_agent = ?1 AND l.source = 'agent')
                     SELECT e.id FROM events e JOIN family f ON e.id = f.id WHERE e.agent = ?1
                     ORDER BY e.number DESC LIMIT 1";
        let values = params![self.agent.as_str(), name];
        let heard = self.transaction.prepare_cached(query)?.query_row(values, |row| row.get(0)).optional()?;
        Ok(match heard {
            Some(id) => Some(id),
            None => self.row_by_name(name)?.map(|row| row.id),
        })
    }

    /// The name of a session that was started without an id, if this is its first word.
    fn started(&self) -> rusqlite::Result<Option<String>> {
        if self.caller.runner != Runner::Daemon {
            let Some(name) = self.launching_name() else {
                return Ok(None);
            };
            let row = self.row_by_name(&name)?;
            return Ok(row.filter(|row| row.id.starts_with(UNKNOWN_ID)).map(|_| name));
        }
        // A daemon does not say for whom it works: it is the last one that was started there before the session was.
        let began = crate::lineage::uuid_time(self.id).map_or(self.now.as_millisecond(), |time| time / 1_000_000);
        let query = "SELECT name, launch FROM sessions WHERE agent = ?1 AND cwd = ?2 AND launch IS NOT NULL
                     AND substr(id, 1, ?3) = ?4 AND created <= ?5 ORDER BY created DESC";
        let mut statement = self.transaction.prepare_cached(query)?;
        let cwd = self.payload.cwd.as_deref().map(Path::to_string_lossy);
        let values = params![self.agent.as_str(), cwd, UNKNOWN_ID.len() as i64, UNKNOWN_ID, began + CLOCKS_DIFFER];
        let rows = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(String, String)> = rows.collect::<rusqlite::Result<_>>()?;
        let source = self.payload.source.as_deref();
        let mut waiting = rows.into_iter().filter(|(_, launch)| source == Some("startup") && is_alive(launch));
        Ok(waiting.next().map(|(name, _)| name))
    }

    /// The name under which this agent was started. What a hook wrote for later commands is newer than the environment.
    fn launching_name(&self) -> Option<String> {
        let written = self.caller.env_file.as_deref().and_then(name_in);
        written.or_else(|| self.caller.name.clone())
    }

    /// The session goes on under a new id; the old one is one of its previous ones.
    fn clear(&self, old: &str) -> rusqlite::Result<Option<Row>> {
        let Some(row) = self.row_by_id(old)? else {
            return Ok(None);
        };
        self.transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO previous_ids (agent, id, path, key, since) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![self.agent.as_str(), row.id, row.path, row.key, self.now.as_millisecond()])?;
        // It is a fork of the same session as before.
        self.transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO lineage (agent, id, parent_agent, parent_id, parent_turn, source, noted)
                 SELECT agent, ?3, parent_agent, parent_id, parent_turn, source, noted FROM lineage
                 WHERE agent = ?1 AND id = ?2",
            )?
            .execute(params![self.agent.as_str(), row.id, self.id.as_str()])?;
        self.set_identity(&row)
    }

    /// The id of a session that was started without one.
    fn learn(&self, name: &str) -> rusqlite::Result<Option<Row>> {
        match self.row_by_name(name)? {
            Some(row) => self.set_identity(&row),
            None => Ok(None),
        }
    }

    fn set_identity(&self, row: &Row) -> rusqlite::Result<Option<Row>> {
        let path = self.path.to_string_lossy();
        self.transaction
            .prepare_cached("UPDATE OR IGNORE sessions SET id = ?2, path = ?3 WHERE key = ?1")?
            .execute(params![row.key, self.id.as_str(), path])?;
        Ok(Some(Row { id: self.id.to_string(), path: path.into_owned(), ..row.clone() }))
    }

    /// Registers a fork that was made inside the agent.
    fn fork(&self, parent: &str) -> rusqlite::Result<(Option<Row>, Option<String>)> {
        self.transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO lineage (agent, id, parent_agent, parent_id, parent_turn, source, noted)
             VALUES (?1, ?2, ?1, ?3, NULL, 'agent', ?4)",
            )?
            .execute(params![self.agent.as_str(), self.id.as_str(), parent, self.now.as_millisecond()])?;
        let Some((parent, parent_name)) = self.parent(parent)? else {
            return Ok((None, None));
        };
        let Some(name) = names::for_fork(&parent_name, |name| self.is_taken(name)) else {
            return Ok((None, None));
        };
        let path = self.path.to_string_lossy().into_owned();
        self.transaction.prepare_cached(
            "INSERT INTO sessions (agent, id, path, name, created, cwd, profile) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (agent, id, path) DO UPDATE SET name = coalesce(sessions.name, excluded.name)",
        )?
        .execute(params![
            self.agent.as_str(),
            self.id.as_str(),
            path,
            name.as_str(),
            self.now.as_millisecond(),
            self.payload.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
            parent.profile
        ])?;
        let notice = format!("this is now {name}, forked from {parent_name}");
        let row = Row {
            key: self.transaction.last_insert_rowid(),
            id: self.id.to_string(),
            path,
            name: Some(name.to_string()),
            profile: parent.profile,
        };
        Ok((Some(row), Some(notice)))
    }

    /// The session with an id, or that had it before it was cleared, if it has a name.
    fn parent(&self, id: &str) -> rusqlite::Result<Option<(Row, String)>> {
        let row = match self.row_by_id(id)? {
            Some(row) => Some(row),
            None => self
                .transaction
                .prepare_cached(
                    "SELECT s.key, s.id, s.path, s.name, s.profile FROM previous_ids p JOIN sessions s ON s.key = p.key
                     WHERE p.agent = ?1 AND p.id = ?2",
                )?
                .query_row(params![self.agent.as_str(), id], Row::of)
                .optional()?,
        };
        Ok(row.and_then(|row| row.name.clone().map(|name| (row, name))))
    }

    fn is_taken(&self, name: &str) -> bool {
        let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1)";
        let statement = self.transaction.prepare_cached(query);
        statement.and_then(|mut statement| statement.query_row([name], |row| row.get(0))).unwrap_or(true)
    }

    /// `/cd` moves a transcript.
    fn follow(&self, row: &Row) -> rusqlite::Result<()> {
        if Path::new(&row.path) == self.path || self.path.as_os_str().is_empty() {
            return Ok(());
        }
        let path = self.path.to_string_lossy();
        self.transaction
            .prepare_cached("UPDATE OR IGNORE sessions SET path = ?2 WHERE key = ?1")?
            .execute(params![row.key, path])?;
        Ok(())
    }

    /// What the event means for the session, where it means something.
    fn kind(&self, forked: bool) -> Option<&'static str> {
        let is_permission = self.payload.notification_type.as_deref() == Some("permission_prompt");
        match self.event {
            Event::SessionStart | Event::UserPromptSubmit if forked => Some("forked"),
            Event::SessionStart => Some("session_started"),
            Event::UserPromptSubmit => Some("busy"),
            Event::Stop => Some("answered"),
            Event::PermissionRequest => Some("waiting"),
            Event::Notification => is_permission.then_some("waiting"),
            Event::SessionEnd => Some("stopped"),
        }
    }

    /// Notes what happened, and which id the process has now; true where that was known already. Each hook writes two
    /// pages and no more.
    fn note(&self, name: Option<&SessionName>, forked: bool) -> rusqlite::Result<bool> {
        let now = self.now.as_millisecond();
        let mark = self.payload.prompt_id.as_deref().or(self.payload.turn_id.as_deref());
        let mark = mark.or(self.payload.source.as_deref()).unwrap_or_default();
        let agent = self.agent.as_str();
        if let Some((pid, start)) = self.caller.process() {
            // Installed for the person and for the project, a hook runs twice; what happened, happened once.
            let query = "SELECT at FROM processes
                         WHERE agent = ?1 AND pid = ?2 AND start = ?3 AND id = ?4 AND kind = ?5 AND mark = ?6";
            let last: Option<i64> = self
                .transaction
                .prepare_cached(query)?
                .query_row(params![agent, pid, start, self.id.as_str(), self.event.as_str(), mark], |row| row.get(0))
                .optional()?;
            if last.is_some_and(|at| now - at < TWICE_WITHIN) {
                return Ok(true);
            }
            let query = "INSERT OR REPLACE INTO processes (agent, pid, start, id, kind, mark, at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let values = params![agent, pid, start, self.id.as_str(), self.event.as_str(), mark, now];
            self.transaction.prepare_cached(query)?.execute(values)?;
        }
        let query = "INSERT INTO events (at, hook, kind, agent, id, name) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let name = name.map(SessionName::as_str);
        let values = params![now, self.event.as_str(), self.kind(forked), agent, self.id.as_str(), name];
        self.transaction.prepare_cached(query)?.execute(values)?;
        if self.event == Event::Stop {
            // Who has answered is idle again: one word of the agent, two things that happened.
            let values = params![now, self.event.as_str(), "idle", agent, self.id.as_str(), name];
            self.transaction.prepare_cached(query)?.execute(values)?;
        }
        let number = self.transaction.last_insert_rowid();
        if number % 1_000 < 2 {
            self.transaction.execute("DELETE FROM events WHERE number <= ?1", [number - EVENTS_KEPT])?;
            self.transaction.execute("DELETE FROM processes WHERE at < ?1", [now - PROCESSES_KEPT])?;
        }
        Ok(false)
    }
}

/// What this process was when it was last heard of.
fn process_had(connection: &Connection, agent: Agent, caller: &Caller) -> rusqlite::Result<Option<Before>> {
    let Some((pid, start)) = caller.process() else {
        return Ok(None);
    };
    connection
        .prepare_cached("SELECT id, kind FROM processes WHERE agent = ?1 AND pid = ?2 AND start = ?3")?
        .query_row(params![agent.as_str(), pid, start], |row| Ok(Before { id: row.get(0)?, hook: row.get(1)? }))
        .optional()
}

/// Whether the process of a start still runs; one that somebody else is to run may.
pub(crate) fn is_alive(launch: &str) -> bool {
    launch.split_once(' ').is_some_and(|(pid, start)| match pid.parse() {
        Ok(0) => true,
        Ok(pid) => agents::process_start(pid).as_deref() == Some(start),
        Err(_) => false,
    })
}

/// The same event of the same process within so many milliseconds is one that was told twice.
const TWICE_WITHIN: i64 = 5_000;

/// By how many milliseconds the time in an id may lie before that of its start.
const CLOCKS_DIFFER: i64 = 1_000;

/// For how many milliseconds processes are remembered.
const PROCESSES_KEPT: i64 = 30 * 24 * 3600 * 1000;

/// How many events are kept.
const EVENTS_KEPT: i64 = 20_000;

/// What the id of a session begins with that was started and whose id is the agent's to choose.
pub(crate) const UNKNOWN_ID: &str = "unknown-";

impl Row {
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
        Ok(Row { key: row.get(0)?, id: row.get(1)?, path: row.get(2)?, name: row.get(3)?, profile: row.get(4)? })
    }
}

/// The name in an environment file, as [`write_name`] leaves it.
fn name_in(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().rev().find_map(|line| line.strip_prefix("export TINE_SESSION="))?;
    Some(line.trim_matches('\'').to_owned())
}

/// Leaves a session's name where the agent's later commands find it, unless they know it. An older client names the file
/// of the session that it comes from, which belongs to that; its own is beside it.
pub fn write_name(file: &Path, id: &str, name: &SessionName, inherited: Option<&str>) -> std::io::Result<()> {
    use std::io::Write;
    let is_id = |part: &std::ffi::OsStr| uuid::Uuid::try_parse(&part.to_string_lossy()).is_ok();
    let file: PathBuf = file.iter().map(|part| if is_id(part) { std::ffi::OsStr::new(id) } else { part }).collect();
    if let Some(folder) = file.parent() {
        crate::private::create_folder(folder)?;
    }
    let known = name_in(&file);
    if known.as_deref().or(inherited) == Some(name.as_str()) {
        return Ok(());
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    // Names are made of letters, digits and dashes; nothing in them means anything to a shell.
    writeln!(file, "export TINE_SESSION={name}")
}
