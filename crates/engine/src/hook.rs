//! What the agents' own hooks tell: a session began, was forked, cleared, moved, ended.
//!
//! A hook touches the registry and nothing else, in one transaction; it costs a few indexed lookups however many
//! sessions there are. An agent tells only the id that it has now. Which session that was before is known by the process:
//! the registry remembers which id each running agent had last.

use std::fs;
use std::path::{Path, PathBuf};

use agents::Store;
use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Deserialize;
use transcript::{Agent, SessionId, SessionName};

use crate::error::Result;
use crate::names;
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
    session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    source: Option<String>,
    reason: Option<String>,
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
    /// The agent's process, and when it began.
    pub process: Option<(u32, String)>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The session's name, where it has one.
    pub name: Option<SessionName>,
    /// What a person should know.
    pub notice: Option<String>,
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
        let path = payload.transcript_path.clone().unwrap_or_default();
        // Files are looked at before the transaction begins, and only where a session is new.
        let pointer = if self.is_known(agent, &id)? { None } else { store.origin(&id, &path) };
        let existed = path.is_file();
        self.write(|transaction| {
            let hearing = Hearing { transaction, agent, id: &id, path: &path, event, payload, caller, now };
            hearing.take(pointer.as_ref(), existed)
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
    fn take(&self, pointer: Option<&SessionId>, existed: bool) -> rusqlite::Result<Heard> {
        let before = self.process_had()?;
        let mut heard = Heard::default();
        let mut row = self.row_by_id(self.id.as_str())?;
        let mut forked = false;
        if row.is_none() && !self.is_previous()? {
            match self.origin(before.as_deref(), pointer, existed)? {
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
        self.note(heard.name.as_ref(), forked)?;
        Ok(heard)
    }

    /// The id that this process had when it was last heard of.
    fn process_had(&self) -> rusqlite::Result<Option<String>> {
        let Some((pid, start)) = &self.caller.process else {
            return Ok(None);
        };
        self.transaction
            .prepare_cached("SELECT id FROM processes WHERE agent = ?1 AND pid = ?2 AND start = ?3")?
            .query_row(params![self.agent.as_str(), pid, start], |row| row.get(0))
            .optional()
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

    fn origin(&self, before: Option<&str>, pointer: Option<&SessionId>, existed: bool) -> rusqlite::Result<Origin> {
        let source = self.payload.source.as_deref();
        let launched = match self.launching_name() {
            Some(name) => self.row_by_name(&name)?.map(|row| (name, row)),
            None => None,
        };
        if let Some((name, row)) = &launched
            && row.id.starts_with(UNKNOWN_ID)
        {
            return Ok(Origin::Started(name.clone()));
        }
        let launched_id = launched.as_ref().map(|(_, row)| row.id.as_str());
        let had = before.or(launched_id).filter(|had| *had != self.id.as_str());
        if source == Some("clear") {
            return Ok(had.map_or(Origin::Unknown, |had| Origin::Cleared(had.to_owned())));
        }
        if let Some(parent) = pointer.filter(|parent| *parent != self.id) {
            return Ok(Origin::Fork(parent.to_string()));
        }
        // An older client says "resume" for its own branches, too. What is resumed was there before.
        let is_new = source == Some("fork") || !existed || self.event != Event::SessionStart;
        let is_fork = source != Some("startup") && is_new;
        match had {
            Some(had) if is_fork => Ok(Origin::Fork(had.to_owned())),
            _ => Ok(Origin::Unknown),
        }
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
            Event::Stop => Some("idle"),
            Event::PermissionRequest => Some("waiting"),
            Event::Notification => is_permission.then_some("waiting"),
            Event::SessionEnd => Some("stopped"),
        }
    }

    /// Notes what happened, and which id the process has now. Each hook writes two pages and no more.
    fn note(&self, name: Option<&SessionName>, forked: bool) -> rusqlite::Result<()> {
        let now = self.now.as_millisecond();
        let mark = self.payload.prompt_id.as_deref().or(self.payload.turn_id.as_deref());
        let mark = mark.or(self.payload.source.as_deref()).unwrap_or_default();
        let agent = self.agent.as_str();
        if let Some((pid, start)) = &self.caller.process {
            // Installed for the person and for the project, a hook runs twice; what happened, happened once.
            let query = "SELECT at FROM processes
                         WHERE agent = ?1 AND pid = ?2 AND start = ?3 AND id = ?4 AND kind = ?5 AND mark = ?6";
            let last: Option<i64> = self
                .transaction
                .prepare_cached(query)?
                .query_row(params![agent, pid, start, self.id.as_str(), self.event.as_str(), mark], |row| row.get(0))
                .optional()?;
            if last.is_some_and(|at| now - at < TWICE_WITHIN) {
                return Ok(());
            }
            let goes_on = matches!(self.payload.reason.as_deref(), Some("clear" | "resume"));
            if self.event == Event::SessionEnd && !goes_on {
                let query = "DELETE FROM processes WHERE agent = ?1 AND pid = ?2";
                self.transaction.prepare_cached(query)?.execute(params![agent, pid])?;
            } else {
                let query = "INSERT OR REPLACE INTO processes (agent, pid, start, id, kind, mark, at)
                             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
                let values = params![agent, pid, start, self.id.as_str(), self.event.as_str(), mark, now];
                self.transaction.prepare_cached(query)?.execute(values)?;
            }
        }
        let query = "INSERT INTO events (at, hook, kind, agent, id, name) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let name = name.map(SessionName::as_str);
        let values = params![now, self.event.as_str(), self.kind(forked), agent, self.id.as_str(), name];
        self.transaction.prepare_cached(query)?.execute(values)?;
        let number = self.transaction.last_insert_rowid();
        if number % 1_000 == 0 {
            self.transaction.execute("DELETE FROM events WHERE number <= ?1", [number - EVENTS_KEPT])?;
        }
        Ok(())
    }
}

/// The same event of the same process within so many milliseconds is one that was told twice.
const TWICE_WITHIN: i64 = 5_000;

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

/// Leaves a session's name where the agent's later commands find it.
pub fn write_name(file: &Path, name: &SessionName) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    // Names are made of letters, digits and dashes; nothing in them means anything to a shell.
    writeln!(file, "export TINE_SESSION={name}")
}
