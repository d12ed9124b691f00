//! Recording an event: what it means for the session's name, id and lineage.

use std::path::Path;

use agents::{Adapter, HookEvent};
use jiff::Timestamp;
use transcript::{Agent, SessionId, SessionName};

use super::event::{HookCaller, HookPayload};
use super::origin::{Evidence, Origin};
use crate::names;
use crate::registry::Result;
use crate::registry::{HookReport, HookTables, HookedSession, LastReport, NewEvent, Registry};

/// A process that reports the same event again within this time, in milliseconds, has the hook installed twice.
const REPEATED_WITHIN: i64 = 5_000;

/// The session of an event, as registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookResult {
    /// The session's name, if it has one.
    pub name: Option<SessionName>,
    /// A message for the user.
    pub notice: Option<String>,
    /// Whether the same event was recorded a moment ago, by a hook that is installed twice.
    pub is_repeated: bool,
}

/// Records an event.
pub fn record_hook(
    registry: &mut Registry,
    adapter: &dyn Adapter,
    event: HookEvent,
    payload: &HookPayload,
    caller: &HookCaller,
    now: Timestamp,
) -> Result<HookResult> {
    let agent = adapter.agent();
    let Ok(id) = SessionId::new(payload.session_id.clone()) else {
        return Ok(HookResult::default());
    };
    // An agent that makes a fork for tine: the operation registers the fork when it is complete, and a fork that fails
    // must leave no trace.
    if let Some(mark) = &caller.mark
        && registry.is_mark_of_operation(mark)?
    {
        return Ok(HookResult::default());
    }
    let caller = &caller.checked(agent);
    let path = payload.transcript_path.clone().unwrap_or_default();
    // Files are read before the transaction begins, and only once for each session that is not registered.
    let last = caller.process().map(|process| registry.last_report(agent, &process)).transpose()?.flatten();
    let is_same = last.as_ref().is_some_and(|last| last.id == id.as_str());
    let evidence = if is_same || registry.is_known_to_hooks(agent, &id)? {
        Evidence::default()
    } else {
        Evidence::collect(adapter, &id, &path, payload, caller)
    };
    let tables = registry.begin_hook(agent, now)?;
    let recording = Recording { tables: &tables, id: &id, path: &path, event, payload, caller };
    let result = recording.record(last.as_ref().filter(|_| !is_same), &evidence, is_same)?;
    tables.commit()?;
    Ok(result)
}

/// When a hook last ran, in milliseconds since 1970.
pub fn last_run(registry: &Registry, agent: Agent, event: HookEvent) -> Result<Option<i64>> {
    registry.last_hook(agent, event.as_str())
}

/// One event that is being recorded.
pub(super) struct Recording<'a> {
    pub(super) tables: &'a HookTables<'a>,
    pub(super) id: &'a SessionId,
    pub(super) path: &'a Path,
    pub(super) event: HookEvent,
    pub(super) payload: &'a HookPayload,
    pub(super) caller: &'a HookCaller,
}

/// The session that a fork was made from.
#[derive(Debug)]
struct ForkedFrom {
    id: String,
    name: Option<String>,
}

impl Recording<'_> {
    fn record(&self, last: Option<&LastReport>, evidence: &Evidence, is_same: bool) -> Result<HookResult> {
        let mut result = HookResult::default();
        let mut session = self.session_with_id(self.id.as_str())?;
        let mut parent = None;
        if session.is_none() && !is_same && !self.tables.is_previous_id(self.id)? {
            match self.origin(last, evidence)? {
                Origin::Cleared(old) => session = self.replace_cleared(&old)?,
                Origin::Fork(id) => {
                    let named = self.named_parent(&id)?;
                    parent = Some(ForkedFrom { name: named.as_ref().map(|(_, name)| name.clone()), id: id.clone() });
                    (session, result.notice) = self.register_fork(&id, named)?;
                }
                Origin::Started(name) => session = self.identify_start(&name)?,
                Origin::Unknown => {}
            }
        } else if let Some(known) = &session {
            self.update_path(known)?;
        }
        let name = session.and_then(|session| session.name);
        result.name = name.and_then(|name| SessionName::new(name).ok());
        result.is_repeated = self.record_event(result.name.as_ref(), parent.as_ref())?;
        Ok(result)
    }

    /// The session with an id. Two projects may have sessions with the same id; the transcript distinguishes them.
    fn session_with_id(&self, id: &str) -> Result<Option<HookedSession>> {
        let mut sessions = self.tables.sessions_with_id(id)?;
        let exact = sessions.iter().position(|session| Path::new(&session.path) == self.path);
        Ok(match (exact, sessions.len()) {
            (Some(index), _) => Some(sessions.swap_remove(index)),
            // A transcript that is no longer at its path has been moved; if it is still there, this is another session.
            (None, 1) if id != self.id.as_str() || !agents::is_session(Path::new(&sessions[0].path)) => sessions.pop(),
            // Among several, the relative is the one in the same project.
            (None, _) if id != self.id.as_str() => {
                let near = sessions.iter().position(|session| Path::new(&session.path).parent() == self.path.parent());
                near.map(|index| sessions.swap_remove(index))
            }
            _ => None,
        })
    }

    /// A cleared session continues under a new id. It keeps the old one among its previous ids, and its parent.
    fn replace_cleared(&self, old: &str) -> Result<Option<HookedSession>> {
        let Some(session) = self.session_with_id(old)? else {
            return Ok(None);
        };
        self.tables.keep_previous_id(&session, self.id)?;
        self.identify(session).map(Some)
    }

    /// Sets the id of a session that was started without one.
    fn identify_start(&self, name: &str) -> Result<Option<HookedSession>> {
        self.tables.session_with_name(name)?.map(|session| self.identify(session)).transpose()
    }

    fn identify(&self, session: HookedSession) -> Result<HookedSession> {
        let path = self.path.to_string_lossy().into_owned();
        self.tables.set_identity(session.key, self.id, &path)?;
        Ok(HookedSession { id: self.id.to_string(), path, is_pending: false, ..session })
    }

    /// Registers a fork that was made inside the agent, and names it after its parent.
    fn register_fork(
        &self,
        parent: &str,
        named: Option<(HookedSession, String)>,
    ) -> Result<(Option<HookedSession>, Option<String>)> {
        self.tables.record_parent(self.id, parent)?;
        let Some((parent, parent_name)) = named else {
            return Ok((None, None));
        };
        let Some(name) = names::for_fork(&parent_name, |name| self.tables.is_name_taken(name)) else {
            return Ok((None, None));
        };
        let (path, profile) = (self.path.to_string_lossy().into_owned(), parent.profile);
        let key = self.tables.register_fork(self.id, &path, &name, self.payload.cwd.as_deref(), profile.as_deref())?;
        let notice = format!("this session is now {name}, a fork of {parent_name}");
        let (id, name) = (self.id.to_string(), Some(name.to_string()));
        let fork = HookedSession { key, id, path, name, profile, is_pending: false };
        Ok((Some(fork), Some(notice)))
    }

    /// The session that has an id, or had it before it was cleared, if it has a name.
    fn named_parent(&self, id: &str) -> Result<Option<(HookedSession, String)>> {
        let session = match self.session_with_id(id)? {
            Some(session) => Some(session),
            None => self.tables.session_that_had(id)?,
        };
        Ok(session.and_then(|session| session.name.clone().map(|name| (session, name))))
    }

    /// `/cd` moves a transcript.
    fn update_path(&self, session: &HookedSession) -> Result<()> {
        if Path::new(&session.path) == self.path || self.path.as_os_str().is_empty() {
            return Ok(());
        }
        self.tables.set_path(session.key, &self.path.to_string_lossy())
    }

    /// Records the event and the id that the process has now. Returns whether that is a repetition. Each hook writes two
    /// pages at most.
    fn record_event(&self, name: Option<&SessionName>, parent: Option<&ForkedFrom>) -> Result<bool> {
        let HookPayload { prompt_id, turn_id, source, .. } = self.payload;
        let mark = prompt_id.as_deref().or(turn_id.as_deref()).or(source.as_deref()).unwrap_or_default();
        if let Some(process) = self.caller.process() {
            let report = HookReport { process: &process, id: self.id, hook: self.event.as_str(), mark };
            let last = self.tables.reported_at(&report)?;
            if last.is_some_and(|at| self.tables.now.as_millisecond() - at < REPEATED_WITHIN) {
                return Ok(true);
            }
            self.tables.record_report(&report)?;
        }
        let kind = self.event_kind(parent.is_some());
        let parent = parent.filter(|_| kind == Some("forked"));
        let parent = parent.map(|parent| (parent.id.as_str(), parent.name.as_deref()));
        let event = NewEvent { hook: self.event.as_str(), kind, id: self.id, name, parent };
        self.tables.record_event(&event)?;
        if self.event == HookEvent::Stop {
            // An agent that has answered is idle: it reports one event, and two things happened.
            self.tables.record_event(&NewEvent { kind: Some("idle"), parent: None, ..event })?;
        }
        Ok(false)
    }

    /// What the event means for the session, if anything.
    fn event_kind(&self, is_fork: bool) -> Option<&'static str> {
        // Claude Code's word for it, and Gemini CLI's.
        let is_permission =
            matches!(self.payload.notification_type.as_deref(), Some("permission_prompt" | "ToolPermission"));
        match self.event {
            HookEvent::SessionStart | HookEvent::UserPromptSubmit if is_fork => Some("forked"),
            HookEvent::SessionStart => Some("session_started"),
            HookEvent::UserPromptSubmit => Some("busy"),
            HookEvent::Stop => Some("answered"),
            HookEvent::PermissionRequest => Some("waiting"),
            HookEvent::Notification => is_permission.then_some("waiting"),
            HookEvent::SessionEnd => Some("stopped"),
        }
    }
}
