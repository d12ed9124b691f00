//! A synthetic session of OpenCode: rows of its database, as 1.18.33 wrote them when they were recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::random::Random;
use super::turn::{End, Step, Tool, Turn};

const SCHEMA: &str = include_str!("schema.sql");

/// Describes a session of OpenCode and writes it as the real one would have.
#[derive(Debug, Clone)]
pub struct OpenCodeSession {
    id: String,
    cwd: PathBuf,
    title: Option<String>,
    model: (String, String),
    parent: Option<String>,
    started: i64,
    seed: u64,
    events: Vec<Event>,
    reverted: Option<usize>,
}

#[derive(Debug, Clone)]
enum Event {
    Turn(Turn),
    Compaction(String),
}

impl OpenCodeSession {
    /// A session in `/home/me/app`, begun on 1 November 2026, of the model that the drivers configure.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            cwd: "/home/me/app".into(),
            title: None,
            model: ("mock".to_owned(), "mock-model".to_owned()),
            parent: None,
            started: 1_793_534_400_000,
            seed: id.bytes().fold(11, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
            events: Vec::new(),
            reverted: None,
        }
    }

    /// Where it worked.
    pub fn cwd(mut self, path: impl AsRef<Path>) -> Self {
        self.cwd = path.as_ref().to_owned();
        self
    }

    /// The title that the model found, or that somebody gave it.
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.to_owned());
        self
    }

    /// When it began, in milliseconds since 1970.
    pub fn started(mut self, milliseconds: i64) -> Self {
        self.started = milliseconds;
        self
    }

    /// Adds a turn.
    pub fn turn(mut self, describe: impl FnOnce(Turn) -> Turn) -> Self {
        self.events.push(Event::Turn(describe(Turn::default())));
        self
    }

    /// Adds `/compact` with the summary that the model wrote.
    pub fn compact(mut self, summary: &str) -> Self {
        self.events.push(Event::Compaction(summary.to_owned()));
        self
    }

    /// The user has gone back to this turn, which stays in the database until the next prompt.
    pub fn reverted_to(mut self, turn: usize) -> Self {
        self.reverted = Some(turn);
        self
    }

    /// OpenCode's own fork: the same messages with the same times under other ids.
    pub fn fork(&self, new: &str) -> Self {
        let title = format!("{} (fork #1)", self.title.as_deref().unwrap_or("New session"));
        Self { id: new.to_owned(), seed: self.seed ^ 0xF0, title: Some(title), ..self.clone() }
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Writes the rows into the database in OpenCode's folder for data, and returns the path by which tine knows the
    /// session.
    ///
    /// # Panics
    /// When the database can't be written.
    pub fn write(&self, data: &Path) -> PathBuf {
        std::fs::create_dir_all(data).expect("the folder of the database");
        let database = data.join("opencode.db");
        let mut connection = Connection::open(&database).expect("the database");
        connection.pragma_update(None, "journal_mode", "WAL").expect("the journal");
        let transaction = connection.transaction().expect("a transaction");
        let has_tables = transaction.prepare("SELECT 1 FROM session").is_ok();
        if !has_tables {
            transaction.execute_batch(SCHEMA).expect("the tables");
        }
        self.insert(&transaction).expect("the rows");
        transaction.commit().expect("the rows");
        database.join(&self.id)
    }

    fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        let (project, top) = project_of(&self.cwd);
        let path = self.cwd.strip_prefix(&top).unwrap_or(&self.cwd).to_string_lossy().into_owned();
        connection.execute(
            "INSERT OR IGNORE INTO project (id, worktree, vcs, time_created, time_updated, sandboxes)
             VALUES (?1, ?2, ?3, ?4, ?4, '[]')",
            params![project, top.to_string_lossy(), (project != "global").then_some("git"), self.started],
        )?;
        let mut rows = Rows::of(self, connection);
        rows.session(&project, &path)?;
        let (mut turns, mut revert) = (0, None);
        for event in &self.events {
            match event {
                Event::Turn(turn) => {
                    turns += 1;
                    let user = rows.turn(turn)?;
                    if self.reverted == Some(turns) {
                        revert = Some(json!({ "messageID": user }).to_string());
                    }
                }
                Event::Compaction(summary) => rows.compaction(summary)?,
            }
        }
        let updated = rows.time;
        connection.execute(
            r#"UPDATE session SET time_updated = ?2, "revert" = ?3 WHERE id = ?1"#,
            params![self.id, updated, revert],
        )?;
        Ok(())
    }
}

/// The project of a directory and the top of its worktree.
fn project_of(cwd: &Path) -> (String, PathBuf) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(cwd).args(arguments).stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    match (git(&["rev-list", "--max-parents=0", "HEAD"]), git(&["rev-parse", "--show-toplevel"])) {
        (Some(project), Some(top)) => (project, top.into()),
        _ => ("global".to_owned(), "/".into()),
    }
}

/// Writes the rows of one session.
struct Rows<'a> {
    session: &'a OpenCodeSession,
    connection: &'a Connection,
    random: Random,
    time: i64,
    counter: u64,
}

impl<'a> Rows<'a> {
    fn of(session: &'a OpenCodeSession, connection: &'a Connection) -> Self {
        Rows { session, connection, random: Random::new(session.seed), time: session.started, counter: 0 }
    }

    fn session(&mut self, project: &str, path: &str) -> rusqlite::Result<()> {
        let OpenCodeSession { id, cwd, title, model, parent, started, .. } = self.session;
        let placeholder = "New session - 2026-11-01T12:00:00.000Z";
        let model = json!({ "id": model.1, "providerID": model.0 }).to_string();
        self.connection.execute(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, path, title, version, agent, model,
             time_created, time_updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, '1.18.33', 'build', ?8, ?9, ?9)",
            params![
                id,
                project,
                parent,
                format!("slug-{}", &id[4..]),
                cwd.to_string_lossy(),
                path,
                title.as_deref().unwrap_or(placeholder),
                model,
                started
            ],
        )?;
        Ok(())
    }

    /// An id with the time in it, as OpenCode makes them.
    fn id(&mut self, prefix: &str) -> String {
        self.counter += 1;
        let time = (self.time as u64 * 4096 + self.counter % 4096) & 0xffff_ffff_ffff;
        self.random.id(&format!("{prefix}_{time:012x}"), 14)
    }

    fn message(&mut self, data: &Value) -> rusqlite::Result<String> {
        self.time += 1_000;
        let id = self.id("msg");
        let mut data = data.clone();
        data["time"]["created"] = json!(self.time);
        self.connection.execute(
            "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?3, ?4)",
            params![id, self.session.id, self.time, data.to_string()],
        )?;
        Ok(id)
    }

    fn part(&mut self, message: &str, data: &Value) -> rusqlite::Result<()> {
        let id = self.id("prt");
        self.connection.execute(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
             VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
            params![id, message, self.session.id, self.time, data.to_string()],
        )?;
        Ok(())
    }

    fn user(&mut self, part: &Value) -> rusqlite::Result<String> {
        let (provider, model) = &self.session.model;
        let model = json!({ "providerID": provider, "modelID": model });
        let id = self.message(&json!({ "role": "user", "time": {}, "agent": "build", "model": model }))?;
        self.part(&id, part)?;
        Ok(id)
    }

    /// One round of the model.
    fn assistant(&mut self, parent: &str, parts: &[Value], end: Option<&str>, more: &Value) -> rusqlite::Result<()> {
        let (provider, model) = &self.session.model;
        let tokens = json!({ "input": 100, "output": 20, "reasoning": 0, "cache": { "read": 0, "write": 0 } });
        let mut data = json!({
            "role": "assistant", "time": {}, "parentID": parent, "mode": "build", "agent": "build",
            "path": { "cwd": self.session.cwd, "root": self.session.cwd }, "cost": 0, "tokens": tokens,
            "modelID": model, "providerID": provider,
        });
        if let Some(finish) = end {
            data["time"]["completed"] = json!(self.time + 1_500);
            data["finish"] = json!(finish);
        }
        super::merge(&mut data, more.clone());
        let id = self.message(&data)?;
        self.part(&id, &json!({ "type": "step-start" }))?;
        for part in parts {
            self.part(&id, part)?;
        }
        if let Some(finish) = end {
            self.part(&id, &json!({ "type": "step-finish", "reason": finish, "tokens": tokens, "cost": 0 }))?;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> rusqlite::Result<String> {
        let user = self.user(&json!({ "type": "text", "text": turn.prompt }))?;
        let mut parts = Vec::new();
        let steps = turn.steps.len();
        for (at, step) in turn.steps.iter().enumerate() {
            let is_last = at + 1 == steps;
            match step {
                Step::Text(text) => parts.push(self.timed(json!({ "type": "text", "text": text }))),
                Step::Thinking(text) => parts.push(self.timed(json!({ "type": "reasoning", "text": text }))),
                Step::Tools { calls, .. } => {
                    let is_cut = is_last && turn.end == End::Killed;
                    parts.extend(calls.iter().map(|call| self.tool(call, is_cut, &json!({}))).collect::<Vec<_>>());
                    let end = (!is_cut).then_some("tool-calls");
                    self.assistant(&user, &std::mem::take(&mut parts), end, &Value::Null)?;
                }
                Step::Subagent { description, turn } => {
                    let child = self.subagent(description, turn)?;
                    let answer = turn.last_words().to_owned();
                    let input =
                        json!({ "description": description, "prompt": turn.prompt, "subagent_type": "general" });
                    let call = Tool { name: "task".to_owned(), input, output: answer, failed: false };
                    parts.push(self.tool(&call, false, &json!({ "sessionId": child })));
                    self.assistant(&user, &std::mem::take(&mut parts), Some("tool-calls"), &Value::Null)?;
                }
            }
        }
        let aborted = json!({ "error": { "name": "MessageAbortedError", "data": { "message": "Aborted" } } });
        match turn.end {
            End::Killed if parts.is_empty() => {}
            End::Killed => self.assistant(&user, &parts, None, &Value::Null)?,
            End::Interrupted => self.assistant(&user, &parts, Some("stop"), &aborted)?,
            End::Complete => self.assistant(&user, &parts, Some("stop"), &Value::Null)?,
        }
        Ok(user)
    }

    fn timed(&self, mut part: Value) -> Value {
        part["time"] = json!({ "start": self.time + 1_000, "end": self.time + 1_400 });
        part
    }

    fn tool(&mut self, call: &Tool, is_cut: bool, metadata: &Value) -> Value {
        let time = json!({ "start": self.time + 1_100, "end": self.time + 1_200 });
        let Tool { name, input, output, failed } = call;
        let state = match (is_cut, failed) {
            (true, _) => json!({ "status": "running", "input": input, "time": { "start": self.time + 1_100 } }),
            (_, true) => json!({ "status": "error", "input": input, "error": output, "time": time }),
            _ => json!({
                "status": "completed", "input": input, "output": output, "title": name, "metadata": metadata,
                "time": time,
            }),
        };
        json!({ "type": "tool", "callID": self.random.id("call_", 24), "tool": name, "state": state })
    }

    fn subagent(&mut self, description: &str, turn: &Turn) -> rusqlite::Result<String> {
        let id = self.id("ses");
        let child = OpenCodeSession {
            id: id.clone(),
            title: Some(format!("{description} (@general subagent)")),
            parent: Some(self.session.id.clone()),
            started: self.time + 1_100,
            seed: self.random.bits(),
            events: vec![Event::Turn(turn.clone())],
            reverted: None,
            ..self.session.clone()
        };
        child.insert(self.connection)?;
        Ok(id)
    }

    fn compaction(&mut self, summary: &str) -> rusqlite::Result<()> {
        let user = self.user(&json!({ "type": "compaction", "auto": false }))?;
        let text = json!({ "type": "text", "text": summary });
        self.assistant(&user, &[text], Some("stop"), &json!({ "summary": true, "mode": "compaction" }))
    }
}
