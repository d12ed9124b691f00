//! The session that calls this server.
//!
//! Some agents name their session with each call. Others only name the tool call, which is in the transcript; the process
//! around us, whose session is known, is quicker to find.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use agents::about;
use engine::{Session, Tine};
use rmcp::model::RequestMetaObject;
use transcript::{Agent, State};

/// How much of the end of a transcript is searched for a tool call.
const END: u64 = 1 << 20;
/// How many transcripts are searched.
const MOST: usize = 16;

/// How a call identifies its caller.
#[derive(Debug, Clone, Default)]
pub(super) struct Caller {
    session: Option<(Agent, String)>,
    call: Option<(Agent, String)>,
}

impl Caller {
    pub(super) fn of(meta: &RequestMetaObject) -> Self {
        let text = |key: &str| meta.0.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let session = |agent| about(agent).mcp.session.iter().find_map(|key| Some((agent, text(key)?)));
        let call = |agent| Some((agent, text(about(agent).mcp.call?)?));
        Caller { session: Agent::ALL.into_iter().find_map(session), call: Agent::ALL.into_iter().find_map(call) }
    }

    /// The session that calls.
    pub(super) fn session(&self, tine: &Tine, sessions: &[Session]) -> Option<Session> {
        let of = |agent: Agent, id: &str| {
            sessions.iter().find(|session| session.view.agent == agent && session.view.id.as_str() == id).cloned()
        };
        if let Some((agent, id)) = &self.session {
            return of(*agent, id);
        }
        let around = || {
            let proc = tine.context().surroundings.proc.as_deref()?;
            let own = std::process::id();
            let is_around = |session: &&Session| {
                session.live.as_ref().and_then(|live| live.pid).is_some_and(|pid| agents::is_below(proc, own, pid))
            };
            // A process may have several open; the one that calls is busy.
            let around = sessions.iter().filter(is_around);
            around.min_by_key(|session| session.view.state != State::Busy).cloned()
        };
        let calls = || {
            let (agent, call) = self.call.as_ref()?;
            let candidates = sessions.iter().filter(|session| session.view.agent == *agent);
            candidates.take(MOST).find(|session| ends_with_call(&session.view.path, call)).cloned()
        };
        let started = || {
            let named = |agent| of(agent, &tine.context().variable(about(agent).variables.session_id?)?);
            Agent::ALL.into_iter().find_map(named)
        };
        around().or_else(calls).or_else(started)
    }
}

fn ends_with_call(transcript: &Path, call: &str) -> bool {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(transcript)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(END)))?;
        let mut end = Vec::new();
        file.take(END).read_to_end(&mut end)?;
        Ok(end)
    };
    let end = read().unwrap_or_default();
    !call.is_empty() && end.windows(call.len()).any(|window| window == call.as_bytes())
}
