//! Names that people give: adopting a session, renaming it, and what becomes of names whose sessions are gone.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, params};
use transcript::{Agent, ParentSource, SessionId, SessionName};

use crate::Tine;
use crate::error::{Error, Result};
use crate::names;
use crate::operations::{self, Effects, Operation};
use crate::registry::{Lineage, Registry, SessionKey};
use crate::session::Session;

/// A name whose session has no transcript is not given away within so many milliseconds: it may be about to be written.
const WRITTEN_WITHIN: i64 = 60_000;

/// How much of an id is shown where there is little room.
const SHORTEST_ID: usize = 8;

impl Tine {
    /// Makes a session known to tine under a name.
    pub fn adopt(&self, session: &Session, name: Option<SessionName>, parent: Option<&Session>) -> Result<SessionName> {
        let name = self.plan_adoption(session, name, parent, &HashSet::new())?;
        let (view, now) = (&session.view, self.context().clock.now());
        let what = format!("adopt {} as {name}", view.id);
        let effects = Effects {
            named: Some((session.key().into(), None)),
            new_name: Some(name.clone()),
            noted_parent: parent.is_some(),
            ..Effects::default()
        };
        self.release_name(&name)?;
        let operation = self.registry().begin_operation("adopt", &what, &effects, now)?;
        if !self.registry().set_name(&session.key(), Some(&name), now)? {
            self.registry().end_operation(operation, "failed", None)?;
            return Err(Error::NameTaken(name));
        }
        if let Some(parent) = parent {
            let (agent, id) = (parent.view.agent, parent.view.id.clone());
            let lineage = Lineage { agent, id, turn: None, source: ParentSource::Tine };
            self.registry().note_lineage(&[((view.agent, view.id.clone()), lineage)], now)?;
        }
        self.registry().end_operation(operation, "done", None)?;
        Ok(name)
    }

    /// The name under which a session would be adopted, or why it would not. `taken` are names that others of the same
    /// run will have.
    pub fn plan_adoption(
        &self,
        session: &Session,
        name: Option<SessionName>,
        parent: Option<&Session>,
        taken: &HashSet<SessionName>,
    ) -> Result<SessionName> {
        let view = &session.view;
        if let Some(tracked) = self.registry().holder(view.agent, &view.id, &view.path)? {
            return Err(Error::Tracked { id: view.id.clone(), name: tracked });
        }
        if let Some(parent) = parent {
            self.check_parent(session, parent)?;
        }
        match name {
            Some(name) if !self.is_free(&name)? => Err(Error::NameTaken(name)),
            Some(name) => Ok(name),
            None => self.name_for(session, taken),
        }
    }

    /// Nobody descends from itself.
    fn check_parent(&self, session: &Session, parent: &Session) -> Result<()> {
        let lineage = self.registry().lineage()?;
        let child = (session.view.agent, session.view.id.clone());
        let mut at = (parent.view.agent, parent.view.id.clone());
        for _ in 0..=lineage.len() {
            if at == child {
                let (session, parent) = (session.view.label().to_owned(), parent.view.label().to_owned());
                return Err(Error::OwnAncestor { session, parent });
            }
            match lineage.get(&at) {
                Some(above) => at = (above.agent, above.id.clone()),
                None => break,
            }
        }
        Ok(())
    }

    /// A name for a session that nobody named: what its title says, else anything readable.
    fn name_for(&self, session: &Session, others: &HashSet<SessionName>) -> Result<SessionName> {
        let names = self.registry().names()?;
        let taken: HashSet<&str> = names.values().chain(others).map(SessionName::as_str).collect();
        let title = transcript::text::one_line(session.view.title.as_deref().unwrap_or_default());
        let title = transcript::secrets::mask(&title).0;
        let words: Vec<&str> = title.split(' ').take(5).collect();
        names::from_text(&words.join(" "), &taken)
            .or_else(|| names::readable(|name| taken.contains(name)))
            .ok_or(Error::NoNameLeft)
    }

    /// Gives a session another name, in tine and in the agent's own list.
    pub fn rename(&self, session: &Session, name: &SessionName) -> Result<i64> {
        let (view, now) = (&session.view, self.context().clock.now());
        if view.name.as_ref() == Some(name) {
            return Err(Error::SameName(name.clone()));
        }
        self.check_name(name)?;
        let what = format!("rename {} to {name}", view.label());
        let effects = Effects {
            named: Some((session.key().into(), view.name.clone())),
            new_name: Some(name.clone()),
            old_title: session.details.custom_title.clone(),
            ..Effects::default()
        };
        self.release_name(name)?;
        let operation = self.registry().begin_operation("rename", &what, &effects, now)?;
        if !self.registry().set_name(&session.key(), Some(name), now)? {
            self.registry().end_operation(operation, "failed", None)?;
            return Err(Error::NameTaken(name.clone()));
        }
        self.registry().end_operation(operation, "done", None)?;
        self.show_title(session, name.as_str());
        Ok(operation)
    }

    /// The session whose name an operation changed, if that can be taken back. It is known by its name: it may have another
    /// id or place by now.
    pub(crate) fn check_name_back(&self, operation: &Operation) -> Result<Option<SessionKey>> {
        let effects = &operation.effects;
        let Some((key, old)) = &effects.named else {
            return Ok(None);
        };
        let key: SessionKey = key.clone().into();
        let now_at = match &effects.new_name {
            Some(name) => self.registry().named(name)?.map(|row| row.key),
            None => Some(key),
        };
        let key = now_at.ok_or(Error::NotUndoable { id: operation.id, state: "overtaken by another name".into() })?;
        match old {
            Some(old) if !self.is_free(old)? => Err(Error::NameTaken(old.clone())),
            _ => Ok(Some(key)),
        }
    }

    /// Takes back an adoption or a renaming.
    pub(crate) fn name_back(&self, operation: &mut Operation) -> Result<()> {
        let key = match self.check_name_back(operation) {
            // It has its old name already; only that was not noted before this was cut off.
            Err(Error::NotUndoable { .. }) => None,
            other => other?,
        };
        if let Some(key) = key {
            let old = operation.effects.named.as_ref().and_then(|(_, old)| old.as_ref());
            if let Some(old) = old {
                self.release_name(old)?;
            }
            let now = self.context().clock.now();
            self.registry().set_name(&key, old, now)?;
            if operation.effects.noted_parent {
                self.registry().forget_parent(key.agent, &key.id)?;
            }
            let title = operation.effects.old_title.clone().or_else(|| old.map(ToString::to_string));
            if let (Some(title), Ok(session)) = (title, self.outside_session(&key.path)) {
                self.show_title(&session, &title);
            }
        }
        operation.effects.undoing = None;
        self.registry().end_operation(operation.id, "undone", Some(&operation.effects))
    }

    /// Writes a title for the agent's own list. That it cannot be written is no reason to fail.
    fn show_title(&self, session: &Session, title: &str) {
        let view = &session.view;
        let program = self.program(view.agent).ok();
        let before = operations::stamp_of(&view.path);
        if let Err(error) = self.store(view.agent).set_title(program.as_ref(), &view.id, &view.path, title) {
            self.warn(format!("the agent's own list keeps the old title: {error}"));
        }
        // A title is nothing that somebody said.
        let moved = before.map(|before| self.registry().move_stamp(&view.id, before, &view.path));
        if let Some(Err(error)) = moved {
            self.warn(error.to_string());
        }
    }

    /// Refuses a name that another session has.
    pub fn check_name(&self, name: &SessionName) -> Result<()> {
        match self.is_free(name)? {
            true => Ok(()),
            false => Err(Error::NameTaken(name.clone())),
        }
    }

    /// Whether a name can be given: nobody has it, or a session whose transcript is gone.
    pub(crate) fn is_free(&self, name: &SessionName) -> Result<bool> {
        let row = self.registry().named(name)?;
        Ok(row.is_none_or(|row| self.is_gone(&row)) && !self.is_id(name))
    }

    /// Whether a name looks like an id and is the beginning of one. Such a name would hide the session that is meant.
    fn is_id(&self, name: &SessionName) -> bool {
        let name = name.as_str();
        let may_be = name.len() >= SHORTEST_ID && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let is_called = |file: &agents::SessionFile| file.ids().any(|id| id.starts_with(name));
        may_be && self.stores().iter().any(|store| store.discover().files.iter().any(is_called))
    }

    /// Takes a name away from a session whose transcript is gone, so that it can be given. Plans do without.
    pub(crate) fn release_name(&self, name: &SessionName) -> Result<()> {
        let row = self.registry().named(name)?;
        if let Some(row) = row.filter(|row| self.is_gone(row)) {
            self.registry().forget_name(name)?;
            self.warn(format!("`{name}` was a session whose transcript is gone ({})", row.key.path.display()));
        }
        Ok(())
    }

    fn is_gone(&self, row: &NameRow) -> bool {
        let now = self.context().clock.now().as_millisecond();
        let is_gone = !row.is_unbegun && !row.key.path.exists() && now - row.created > WRITTEN_WITHIN;
        is_gone && !self.store(row.key.agent).live().sessions.contains_key(&row.key.id)
    }

    /// Forgets a name behind which there is no conversation: nothing was said in it, or its transcript is gone.
    pub fn forget(&self, name: &SessionName) -> Result<()> {
        self.registry().forget_name(name)
    }

    /// What a name means that no listed session has.
    pub(crate) fn unlisted(&self, word: &str) -> Result<Option<Session>> {
        let Ok(name) = SessionName::new(word) else {
            return Ok(None);
        };
        let row = self.registry().named(&name)?;
        match row {
            None => Ok(None),
            Some(row) if row.is_unbegun => Err(Error::Unbegun(name)),
            Some(row) if row.key.path.is_file() => self.outside_session(&row.key.path).map(Some),
            Some(row) => Err(Error::TranscriptGone { name, path: row.key.path }),
        }
    }
}

/// Who has a name.
#[derive(Debug, Clone)]
pub(crate) struct NameRow {
    pub key: SessionKey,
    created: i64,
    /// Whether it was started and nothing was heard of it since.
    is_unbegun: bool,
}

impl Registry {
    /// The session with a name.
    pub(crate) fn named(&self, name: &SessionName) -> Result<Option<NameRow>> {
        let row: Option<(String, String, String, i64, bool)> = self.ask(|connection| {
            let query = "SELECT agent, id, path, created, launch IS NOT NULL FROM sessions WHERE name = ?1";
            connection
                .query_row(query, [name.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                })
                .optional()
        })?;
        Ok(row.and_then(|(agent, id, path, created, is_unbegun)| {
            let key = SessionKey { agent: agent.parse().ok()?, id: SessionId::new(id).ok()?, path: path.into() };
            Some(NameRow { key, created, is_unbegun })
        }))
    }

    fn forget_name(&mut self, name: &SessionName) -> Result<()> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM sessions WHERE name = ?1 AND launch IS NOT NULL", [name.as_str()])?;
            transaction.execute("UPDATE sessions SET name = NULL WHERE name = ?1", [name.as_str()])
        })
        .map(|_| ())
    }

    /// Forgets a parent that a person told of; what the files tell is looked at again.
    fn forget_parent(&mut self, agent: Agent, id: &SessionId) -> Result<()> {
        self.write(|transaction| {
            let query = "DELETE FROM lineage WHERE agent = ?1 AND id = ?2 AND source = 'tine'";
            transaction.execute(query, [agent.as_str(), id.as_str()])?;
            transaction.execute("DELETE FROM memory WHERE key = 'catalog'", [])
        })
        .map(|_| ())
    }

    /// The session that has an id, or had it before it was cleared, by its name.
    fn holder(&self, agent: Agent, id: &SessionId, path: &Path) -> Result<Option<String>> {
        self.ask(|connection| {
            let query = "SELECT name FROM sessions WHERE agent = ?1 AND id = ?2 AND path = ?3 AND name IS NOT NULL
                         UNION ALL
                         SELECT s.name FROM previous_ids p JOIN sessions s ON s.key = p.key
                         WHERE p.agent = ?1 AND p.id = ?2 AND p.path = ?3 AND s.name IS NOT NULL";
            let path = path.to_string_lossy();
            connection.query_row(query, params![agent.as_str(), id.as_str(), path], |row| row.get(0)).optional()
        })
    }

    /// The ids that a session had before it was cleared, with their transcripts and the time, in milliseconds.
    pub fn previous_ids(&self, key: &SessionKey) -> Result<Vec<(SessionId, PathBuf, i64)>> {
        self.ask(|connection| {
            let query = "SELECT p.id, p.path, p.since FROM previous_ids p JOIN sessions s ON s.key = p.key
                         WHERE s.agent = ?1 AND s.id = ?2 AND s.path = ?3 ORDER BY p.since";
            let mut statement = connection.prepare_cached(query)?;
            let values = params![key.agent.as_str(), key.id.as_str(), key.path.to_string_lossy()];
            let rows = statement.query_map(values, |row| {
                let (id, path): (String, String) = (row.get(0)?, row.get(1)?);
                let since = row.get(2)?;
                Ok(SessionId::new(id).ok().map(|id| (id, PathBuf::from(path), since)))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }

    /// Every id that a session had before it was cleared, with the one that it has now.
    pub fn holders(&self) -> Result<HashMap<(Agent, SessionId), SessionId>> {
        self.ask(|connection| {
            let query = "SELECT p.agent, p.id, s.id FROM previous_ids p JOIN sessions s ON s.key = p.key";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let (agent, id, now): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let before = agent.parse().ok().zip(SessionId::new(id).ok());
                Ok(before.zip(SessionId::new(now).ok()))
            })?;
            rows.filter_map(|row| row.transpose()).collect()
        })
    }
}
