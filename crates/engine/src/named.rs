//! Sessions by name: starting, resuming, adopting, renaming.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use agents::{Holder, Message, Resumed};
use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use transcript::{Agent, DefectKind, SessionId, SessionName};

use crate::Tine;
use crate::catalog::Catalog;
use crate::drive::Target;
use crate::error::{Error, Result};
use crate::hook::UNKNOWN_ID;
use crate::names;
use crate::profile::{Launch, Profile};
use crate::project;
use crate::registry::{Lineage, Registry, SessionKey};
use crate::session::Session;

/// How long a session that was named and never begun keeps its name, where no process tells that it is given up.
const UNBEGUN_SECONDS: i64 = 24 * 60 * 60;

/// A session that is about to be started.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its agent.
    pub agent: Agent,
    /// Its name.
    pub name: SessionName,
    /// Its id, where the agent takes one.
    pub id: Option<SessionId>,
    /// Where it works.
    pub directory: PathBuf,
    /// How it is launched.
    pub profile: Profile,
    /// The arguments of this launch.
    options: Vec<String>,
    /// The command, for a terminal.
    pub words: Vec<String>,
    /// Whether that says something.
    pub says_something: bool,
    key: SessionKey,
}

impl Tine {
    /// Decides how a new session is started. Without a name it is called after the branch, else anything readable.
    pub(crate) fn plan_start_in(
        &self,
        directory: &Path,
        agent: Agent,
        name: Option<SessionName>,
        launch: Launch,
    ) -> Result<Start> {
        self.program(agent)?;
        let names = self.registry().names()?;
        let taken: HashSet<&str> = names.values().map(SessionName::as_str).collect();
        let directory = directory.to_owned();
        let name = match name {
            Some(name) => {
                self.check_name(&name)?;
                name
            }
            None => project::current_branch(&directory)
                .and_then(|branch| names::from_text(&branch, &taken))
                .or_else(|| names::readable(|name| taken.contains(name)))
                .ok_or(Error::NoNameLeft)?,
        };
        let store = self.store(agent);
        let now = self.context().clock.now();
        let id = crate::fork::new_id(agent, now);
        let options = launch.options();
        let words = store.start_command(&id, name.as_str(), &directory, &options, launch.prompt.as_deref());
        let words = self.as_configured(agent, words);
        let key = match store.takes_ids() {
            true => SessionKey { agent, id: id.clone(), path: store.place_for(&id, &directory, now) },
            // Nobody knows the id before the agent has made it up.
            false => {
                let placeholder = SessionId::new(format!("{UNKNOWN_ID}{id}")).expect("a legal id");
                SessionKey { agent, id: placeholder, path: PathBuf::new() }
            }
        };
        let id = store.takes_ids().then_some(id);
        let says_something = launch.prompt.is_some();
        Ok(Start { agent, name, id, directory, profile: launch.profile, options, words, says_something, key })
    }

    /// Decides how a new session is started and takes its name. Where none was chosen, one that somebody else takes at
    /// the same time gives way to the next.
    pub fn begin(
        &self,
        agent: Agent,
        name: Option<&SessionName>,
        launch: &Launch,
        becomes_agent: bool,
    ) -> Result<Start> {
        // Names of sessions that were started and given up are free.
        self.all_sessions(&crate::catalog::Quiet)?;
        loop {
            let start = self.plan_start_in(&self.context().cwd, agent, name.cloned(), launch.clone())?;
            match self.register_start(&start, becomes_agent) {
                Err(Error::NameTaken(_)) if name.is_none() => {}
                registered => return registered.map(|()| start),
            }
        }
    }

    /// Where a session works that was started and in which nothing was said.
    pub fn directory_of_unbegun(&self, name: &SessionName) -> Result<Option<PathBuf>> {
        Ok(self.registry().unbegun(name.as_str())?.map(|(_, directory, _)| directory))
    }

    /// Registers a session that is about to be started by this process, which becomes the agent.
    pub fn register_start(&self, start: &Start, becomes_agent: bool) -> Result<()> {
        let now = self.context().clock.now();
        self.release_name(&start.name)?;
        let pid = std::process::id();
        let process = becomes_agent.then(|| agents::process_start(pid)).flatten();
        let launch = process.map_or_else(|| "0 -".to_owned(), |begun| format!("{pid} {begun}"));
        if !self.registry().register_start(start, &launch, now)? {
            return Err(Error::NameTaken(start.name.clone()));
        }
        self.note_repository(&start.directory);
        Ok(())
    }

    /// The command that starts it in this terminal.
    pub fn start_command(&self, start: &Start) -> Result<Command> {
        self.launch(start.agent, &start.directory, &start.words, &start.profile, Some(&start.name))
    }

    /// Starts it without a terminal: says something, and returns the answer.
    pub fn start_headless(&self, start: &Start, text: &str) -> Result<String> {
        let message = Message {
            session: None,
            id: start.id.as_ref(),
            title: Some(start.name.as_str()),
            directory: &start.directory,
            options: &start.options,
            text,
        };
        let program = self.program_as(start.agent, &start.profile, Some(&start.name))?;
        let said = match self.store(start.agent).say(&program, &message) {
            Ok(said) => said,
            Err(source) => {
                // An agent that failed may have begun the session all the same; a look at the files settles that.
                let sessions = self.all_sessions(&crate::catalog::Quiet)?;
                self.registry().forget_start(&start.key)?;
                let is_there = sessions.iter().any(|session| session.view.name.as_ref() == Some(&start.name));
                return Err(Error::NotAnswered { session: is_there.then(|| start.name.to_string()), source });
            }
        };
        if let Some(path) = self.store(start.agent).find(&said.id, &start.directory) {
            self.registry().learn(&start.key, &said.id, &path)?;
            let _ = self.store(start.agent).set_title(Some(&program), &said.id, &path, start.name.as_str());
        }
        Ok(said.answer)
    }

    /// The words that resume a session, and the command for this terminal.
    pub fn resume(&self, session: &Session, directory: &Path, launch: &Launch) -> Result<(Vec<String>, Command)> {
        let view = &session.view;
        check_format(session)?;
        self.check_directory(session, directory)?;
        let resumed = Resumed { id: &view.id, path: &view.path };
        let prompt = launch.prompt.as_deref();
        let words = self.store(view.agent).resume_command(resumed, directory, &launch.options(), prompt);
        let words = self.as_configured(view.agent, words);
        let command = self.launch(view.agent, directory, &words, &launch.profile, view.name.as_ref())?;
        Ok((words, command))
    }

    /// Says something in a session without a terminal.
    pub fn resume_headless(&self, session: &Session, directory: &Path, launch: &Launch, text: &str) -> Result<String> {
        let view = &session.view;
        check_format(session)?;
        self.check_directory(session, directory)?;
        // What a daemon keeps open, only the daemon can go on with.
        if session.holder() == Some(Holder::Daemon) {
            let sent = self.send(&Target::Session(Box::new(session.clone())), text, true, None)?;
            return Ok(sent.answer.unwrap_or_default());
        }
        let options = launch.options();
        let session = Some(Resumed { id: &view.id, path: &view.path });
        let message = Message { session, id: None, title: None, directory, options: &options, text };
        let program = self.program_as(view.agent, &launch.profile, view.name.as_ref())?;
        let said = self.store(view.agent).say(&program, &message);
        Ok(said.map_err(|source| Error::NotAnswered { session: Some(view.label().to_owned()), source })?.answer)
    }

    /// Settles sessions that were started: those that began are like any other from now on, and those that were given
    /// up before anything was said leave nothing behind.
    pub(crate) fn settle_starts(&self, catalog: &Catalog) -> Result<()> {
        let started = self.registry().starts()?;
        let now = self.context().clock.now();
        for row in &started {
            let known = SessionId::new(row.id.clone()).ok().filter(|_| !row.id.starts_with(UNKNOWN_ID));
            let begun = match known {
                Some(id) => catalog
                    .entries
                    .iter()
                    .find(|entry| entry.summary.agent == row.agent && entry.summary.id == id)
                    .map(|entry| (id, entry.summary.path.clone())),
                None => self.find_started(row, &started, catalog)?,
            };
            let mut registry = self.registry();
            match begun {
                Some((id, path)) => registry.settle(row.key, &id, &path)?,
                None if row.is_over(now) => registry.remove_row(row.key)?,
                None => {}
            }
        }
        Ok(())
    }

    /// The session of a start whose id was the agent's to choose: the one that its process has open, else the first one
    /// that began in its directory since, before somebody was started there again.
    fn find_started(
        &self,
        row: &StartedRow,
        started: &[StartedRow],
        catalog: &Catalog,
    ) -> Result<Option<(SessionId, PathBuf)>> {
        let store = self.store(row.agent);
        let live = store.live();
        let own = live.sessions.iter().find(|(_, session)| session.pid.is_some() && session.pid == row.pid());
        let taken: HashSet<SessionId> = self.registry().names()?.into_keys().map(|key| key.id).collect();
        let cwd = row.cwd.as_deref().map(Path::new);
        let next = started.iter().filter(|other| (other.agent, &other.cwd) == (row.agent, &row.cwd));
        let next = next.map(|other| other.created).filter(|created| *created > row.created).min();
        // A daemon does not tell which of several terminals in one directory a session belongs to.
        let is_alone = started.iter().filter(|other| (other.agent, &other.cwd) == (row.agent, &row.cwd)).count() == 1;
        let is_kept = |id: &SessionId| live.sessions.get(id).is_some_and(|session| session.holder == Holder::Daemon);
        let fits = |entry: &&crate::catalog::Entry| {
            let summary = &entry.summary;
            // Some write down whole seconds; what may have begun with either of two began with the first.
            let began = summary.created.map(|created| created.as_millisecond());
            let began = began.is_some_and(|began| began + 1000 >= row.created && next.is_none_or(|next| began < next));
            summary.agent == row.agent
                && !summary.is_subagent
                && !taken.contains(&summary.id)
                && match own {
                    Some((id, _)) => summary.id == *id,
                    None => {
                        began
                            && summary.parent.is_none()
                            && summary.cwd.as_deref() == cwd
                            && (is_alone || !is_kept(&summary.id))
                    }
                }
                // Whoever was told to start it by hand starts it in a terminal.
                && (row.pid().is_some() || store.client(&summary.path).as_deref() != Some("exec"))
        };
        let first = catalog.entries.iter().filter(fits).min_by_key(|entry| entry.summary.created);
        Ok(first.map(|entry| (entry.summary.id.clone(), entry.summary.path.clone())))
    }

    /// Names forks that were made inside the agents and that no hook told of.
    pub(crate) fn name_forks(&self, found: &[((Agent, SessionId), Lineage)], catalog: &Catalog) -> Result<()> {
        let named = self.registry().names_with_times()?;
        if named.is_empty() {
            return Ok(());
        }
        let has_name: HashSet<(Agent, SessionId)> =
            named.iter().map(|(key, _, _)| (key.agent, key.id.clone())).collect();
        let holders = self.registry().holders()?;
        for ((agent, id), parent) in found {
            let parent_id = (parent.agent, parent.id.clone());
            if !has_name.contains(&parent_id) && !holders.contains_key(&parent_id) {
                continue;
            }
            let Some(entry) = catalog.with_id(*agent, id).next().filter(|entry| entry.is_shown()) else {
                continue;
            };
            // Of sessions that share an id, a relative is the one in the same project.
            let near = |key: &SessionKey| key.path.parent() == entry.summary.path.parent();
            let holds = |agent: Agent, id: &SessionId| {
                let same = || named.iter().filter(|(key, _, _)| key.agent == agent && key.id == *id);
                same().find(|(key, _, _)| near(key)).or_else(|| same().next())
            };
            // What was said before a `/clear` is the same session to people.
            let holder = holders.get(&parent_id);
            let parent_row = holds(parent.agent, &parent.id).or_else(|| holds(parent.agent, holder?));
            let Some((parent_key, parent_name, since)) = parent_row else {
                continue;
            };
            // What was there before the parent had a name keeps to itself.
            let born = entry.stamp.born.unwrap_or(entry.stamp.modified) / 1_000_000;
            if holds(*agent, id).is_some_and(|(key, _, _)| key.path == entry.summary.path) || born + 1000 < *since {
                continue;
            }
            let key = SessionKey { agent: *agent, id: id.clone(), path: entry.summary.path.clone() };
            let profile = self.profile_of(parent_key.agent, &parent_key.id)?;
            let name = self.registry().name_fork(&key, parent_name, &profile, self.context().clock.now())?;
            if let Some(name) = name {
                self.warn(format!("noticed a fork of {parent_name}: it is called {name}"));
            }
        }
        Ok(())
    }
}

impl Start {
    /// How the registry knows it.
    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }
}

/// Refuses to resume what the agent does not read any more.
fn check_format(session: &Session) -> Result<()> {
    match session.details.defects.count(DefectKind::OldFormat) {
        0 => Ok(()),
        _ => Err(Error::OldFormat(session.view.agent)),
    }
}

/// A session that was started and has not been seen since.
#[derive(Debug, Clone)]
pub(crate) struct StartedRow {
    key: i64,
    agent: Agent,
    id: String,
    cwd: Option<String>,
    created: i64,
    launch: String,
}

impl StartedRow {
    fn pid(&self) -> Option<u32> {
        self.launch.split_once(' ')?.0.parse().ok().filter(|pid| *pid > 0)
    }

    /// Whether nothing will come of it any more.
    fn is_over(&self, now: Timestamp) -> bool {
        match self.pid() {
            Some(_) => !crate::hook::is_alive(&self.launch),
            None => now.as_millisecond() - self.created > UNBEGUN_SECONDS * 1000,
        }
    }
}

impl Registry {
    fn register_start(&mut self, start: &Start, launch: &str, now: Timestamp) -> Result<bool> {
        let profile = serde_json::to_string(&start.profile).unwrap_or_default();
        self.write(|transaction| {
            let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1)";
            if transaction.query_row(query, [start.name.as_str()], |row| row.get(0))? {
                return Ok(false);
            }
            let query = "INSERT INTO sessions (agent, id, path, name, created, cwd, profile, launch)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            transaction.execute(
                query,
                params![
                    start.agent.as_str(),
                    start.key.id.as_str(),
                    start.key.path.to_string_lossy(),
                    start.name.as_str(),
                    now.as_millisecond(),
                    start.directory.to_string_lossy(),
                    profile,
                    launch
                ],
            )?;
            Ok(true)
        })
    }

    /// A session that was started and in which nothing was said: its agent, directory and profile.
    pub(crate) fn unbegun(&self, name: &str) -> Result<Option<(Agent, PathBuf, Profile)>> {
        let row: Option<(String, Option<String>, Option<String>)> = self.ask(|connection| {
            let query = "SELECT agent, cwd, profile FROM sessions WHERE name = ?1 AND launch IS NOT NULL";
            connection.query_row(query, [name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })?;
        Ok(row.and_then(|(agent, cwd, profile)| {
            let profile = profile.and_then(|profile| serde_json::from_str(&profile).ok()).unwrap_or_default();
            Some((agent.parse().ok()?, PathBuf::from(cwd?), profile))
        }))
    }

    fn forget_start(&mut self, key: &SessionKey) -> Result<()> {
        let query = "DELETE FROM sessions WHERE agent = ?1 AND id = ?2 AND launch IS NOT NULL";
        self.write(|transaction| transaction.execute(query, [key.agent.as_str(), key.id.as_str()])).map(|_| ())
    }

    fn learn(&mut self, key: &SessionKey, id: &SessionId, path: &Path) -> Result<()> {
        let query = "UPDATE OR IGNORE sessions SET id = ?3, path = ?4, launch = NULL WHERE agent = ?1 AND id = ?2";
        let path = path.to_string_lossy();
        self.write(|transaction| {
            transaction.execute(query, params![key.agent.as_str(), key.id.as_str(), id.as_str(), path])
        })
        .map(|_| ())
    }

    fn starts(&self) -> Result<Vec<StartedRow>> {
        self.ask(|connection| {
            let query = "SELECT key, agent, id, cwd, created, launch FROM sessions WHERE launch IS NOT NULL";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let agent: String = row.get(1)?;
                Ok(agent.parse().ok().map(|agent| -> rusqlite::Result<StartedRow> {
                    Ok(StartedRow {
                        key: row.get(0)?,
                        agent,
                        id: row.get(2)?,
                        cwd: row.get(3)?,
                        created: row.get(4)?,
                        launch: row.get(5)?,
                    })
                }))
            })?;
            rows.filter_map(|row| row.transpose()).map(|row| row.and_then(|row| row)).collect()
        })
    }

    fn settle(&mut self, key: i64, id: &SessionId, path: &Path) -> Result<()> {
        let query = "UPDATE OR IGNORE sessions SET id = ?2, path = ?3, launch = NULL WHERE key = ?1";
        self.write(|transaction| transaction.execute(query, params![key, id.as_str(), path.to_string_lossy()]))
            .map(|_| ())
    }

    /// Settles a start of which is known what became of it.
    pub(crate) fn settle_named(&mut self, name: &SessionName, session: &SessionKey) -> Result<()> {
        let query = "UPDATE OR IGNORE sessions SET id = ?2, path = ?3, launch = NULL
                     WHERE name = ?1 AND launch IS NOT NULL";
        let values = params![name.as_str(), session.id.as_str(), session.path.to_string_lossy()];
        self.write(|transaction| transaction.execute(query, values)).map(|_| ())
    }

    fn remove_row(&mut self, key: i64) -> Result<()> {
        self.write(|transaction| transaction.execute("DELETE FROM sessions WHERE key = ?1", [key])).map(|_| ())
    }

    /// Every name, with the time since when, in milliseconds.
    fn names_with_times(&self) -> Result<Vec<(SessionKey, SessionName, i64)>> {
        self.ask(|connection| {
            let query = "SELECT agent, id, path, name, created FROM sessions WHERE name IS NOT NULL";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let (agent, id): (String, String) = (row.get(0)?, row.get(1)?);
                let (path, name): (String, String) = (row.get(2)?, row.get(3)?);
                let created: i64 = row.get(4)?;
                let key = agent.parse().ok().zip(SessionId::new(id).ok());
                let key = key.map(|(agent, id)| SessionKey { agent, id, path: PathBuf::from(path) });
                Ok(key.zip(SessionName::new(name).ok()).map(|(key, name)| (key, name, created)))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    /// Names a fork after its parent; nothing where somebody else has named it meanwhile.
    fn name_fork(
        &mut self,
        key: &SessionKey,
        parent: &SessionName,
        profile: &Profile,
        now: Timestamp,
    ) -> Result<Option<SessionName>> {
        let profile = (!profile.is_empty()).then(|| serde_json::to_string(profile).unwrap_or_default());
        self.write(|transaction| {
            let is_taken = |name: &str| {
                let query = "SELECT EXISTS (SELECT 1 FROM sessions WHERE name = ?1)";
                transaction.query_row(query, [name], |row| row.get(0)).unwrap_or(true)
            };
            let Some(name) = names::for_fork(parent.as_str(), is_taken) else {
                return Ok(None);
            };
            let query = "INSERT INTO sessions (agent, id, path, name, created, profile) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                         ON CONFLICT (agent, id, path) DO UPDATE SET name = excluded.name WHERE name IS NULL";
            let path = key.path.to_string_lossy();
            let values =
                params![key.agent.as_str(), key.id.as_str(), path, name.as_str(), now.as_millisecond(), profile];
            Ok((transaction.execute(query, values)? > 0).then_some(name))
        })
    }
}
