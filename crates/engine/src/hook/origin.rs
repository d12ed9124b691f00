//! Where a session came from that was not known before the hook.

use std::path::Path;

use agents::{Adapter, HookEvent, Runner};
use transcript::SessionId;

use super::environment_file;
use super::event::{HookCaller, HookPayload};
use super::record::Recording;
use crate::context::NAME_VARIABLE;
use crate::registry::LastReport;
use crate::registry::Result;

/// How much earlier than its start the time in a session's id may be, in milliseconds.
const CLOCK_TOLERANCE: i64 = 1_000;

/// Where a session came from.
#[derive(Debug)]
pub(super) enum Origin {
    /// It replaces the session with this id, which was cleared.
    Cleared(String),
    /// It is a fork of the session with this id.
    Fork(String),
    /// It is the session that was started under this name, whose id was not known.
    Started(String),
    /// Unknown, or it existed before.
    Unknown,
}

/// What the agent's files and its command line show of a session that is not registered.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The parent that the agent recorded.
    parent: Option<SessionId>,
    /// Set if the agent's command line forks a session; the id may be missing.
    forks: Option<Option<SessionId>>,
    /// Whether the transcript existed.
    existed: bool,
    /// The name under which the only terminal in the session's directory was started, if a daemon works for it.
    terminal: Option<String>,
}

impl Evidence {
    pub(super) fn collect(
        adapter: &dyn Adapter,
        id: &SessionId,
        path: &Path,
        payload: &HookPayload,
        caller: &HookCaller,
    ) -> Self {
        Evidence {
            parent: adapter.fork_parent(id, path).filter(|parent| parent != id),
            forks: match &caller.runner {
                Runner::Agent { words, .. } => adapter.forked_session(words),
                Runner::Daemon | Runner::Unknown => None,
            },
            existed: agents::is_session(path),
            terminal: match (&caller.runner, &payload.cwd) {
                (Runner::Daemon, Some(cwd)) if payload.source.as_deref() == Some("clear") => {
                    adapter.variable_of_only_terminal(cwd, NAME_VARIABLE)
                }
                _ => None,
            },
        }
    }
}

impl Recording<'_> {
    /// Where a session came from that is not registered. The agent's own records and its command line are certain; what
    /// the same process did before comes next. Everything that an agent starts inherits its environment, so the
    /// environment comes last, and it doesn't count at all where a daemon works for many sessions.
    pub(super) fn origin(&self, last: Option<&LastReport>, evidence: &Evidence) -> Result<Origin> {
        let source = self.payload.source.as_deref();
        if let Some(name) = self.started_name()? {
            return Ok(Origin::Started(name));
        }
        let launched = match self.launch_name().filter(|_| self.caller.runner != Runner::Daemon) {
            Some(name) => self.tables.session_with_name(&name)?.map(|session| session.id),
            None => None,
        };
        let previous = last.map(|last| last.id.clone()).or(launched).filter(|previous| previous != self.id.as_str());
        if let (Some("clear"), Some(name)) = (source, &evidence.terminal) {
            return Ok(self.shown_in_terminal(name)?.map_or(Origin::Unknown, Origin::Cleared));
        }
        if source == Some("clear") {
            return Ok(previous.map_or(Origin::Unknown, Origin::Cleared));
        }
        // The command line is what the process did first; it may have done other things since.
        if let (None, Some(Some(parent))) = (last, &evidence.forks)
            && parent != self.id
        {
            return Ok(Origin::Fork(parent.to_string()));
        }
        if let Some(parent) = &evidence.parent {
            return Ok(Origin::Fork(parent.to_string()));
        }
        let is_fork = match self.event {
            // An older client reports "resume" for its own branches, too. A session that is resumed existed before.
            HookEvent::SessionStart => source == Some("fork") || source == Some("resume") && !evidence.existed,
            // An older client starts its own fork under the id of the source. Other forks that no hook reported are
            // found in the files.
            _ => evidence.forks.is_some() && last.is_some_and(|last| last.hook == HookEvent::SessionStart.as_str()),
        };
        Ok(previous.filter(|_| is_fork).map_or(Origin::Unknown, Origin::Fork))
    }

    /// The session that is shown in the terminal that was started under a name: that one, or the fork made inside it that
    /// was reported last.
    fn shown_in_terminal(&self, name: &str) -> Result<Option<String>> {
        Ok(match self.tables.last_reported_in_family(name)? {
            Some(id) => Some(id),
            None => self.tables.session_with_name(name)?.map(|session| session.id),
        })
    }

    /// The name of a session that was started without an id, if this is its first report.
    fn started_name(&self) -> Result<Option<String>> {
        if self.caller.runner != Runner::Daemon {
            let Some(name) = self.launch_name() else {
                return Ok(None);
            };
            let session = self.tables.session_with_name(&name)?;
            return Ok(session.filter(|session| session.is_pending).map(|_| name));
        }
        if self.payload.source.as_deref() != Some("startup") {
            return Ok(None);
        }
        // A daemon doesn't report which terminal it works for: take the last start in this directory before the session
        // began.
        let began = agents::time_in_id(self.id).map_or(self.tables.now.as_millisecond(), |time| time / 1_000_000);
        self.tables.start_without_id(self.payload.cwd.as_deref(), began + CLOCK_TOLERANCE)
    }

    /// The name under which this agent was started. The file for later commands is newer than the environment.
    fn launch_name(&self) -> Option<String> {
        let written = self.caller.env_file.as_deref().and_then(environment_file::read_name);
        written.or_else(|| self.caller.name.clone())
    }
}
