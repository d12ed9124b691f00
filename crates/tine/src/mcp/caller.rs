//! Who calls: the session of the agent that has this server.
//!
//! Codex says with each call which thread it is. Claude Code says which call of a tool it is, which stands in the
//! transcript; quicker to find is the process around us, of which it keeps which session it has.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use engine::{Session, Tine};
use rmcp::model::RequestMetaObject;
use transcript::Agent;

/// How much of the end of a transcript a call of a tool is looked for in.
const END: u64 = 1 << 20;
/// In how many transcripts.
const MOST: usize = 16;

/// What a call says of who makes it.
#[derive(Debug, Clone, Default)]
pub(super) struct Caller {
    thread: Option<String>,
    tool_use: Option<String>,
}

impl Caller {
    pub(super) fn of(meta: &RequestMetaObject) -> Self {
        let text = |key: &str| meta.0.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        Caller { thread: text("threadId").or_else(|| text("sessionId")), tool_use: text("claudecode/toolUseId") }
    }

    /// The session that calls.
    pub(super) fn session(&self, tine: &Tine, sessions: &[Session]) -> Option<Session> {
        let of = |agent: Agent, id: &str| {
            sessions.iter().find(|session| session.view.agent == agent && session.view.id.as_str() == id).cloned()
        };
        if let Some(thread) = &self.thread {
            return of(Agent::Codex, thread);
        }
        let around = || {
            let proc = tine.context().surroundings.proc.as_deref()?;
            let own = std::process::id();
            let is_around = |session: &&Session| {
                session.live.as_ref().and_then(|live| live.pid).is_some_and(|pid| agents::is_below(proc, own, pid))
            };
            sessions.iter().find(is_around).cloned()
        };
        let calls = || {
            let tool_use = self.tool_use.as_deref()?;
            let claude = sessions.iter().filter(|session| session.view.agent == Agent::Claude);
            claude.take(MOST).find(|session| ends_with_call(&session.view.path, tool_use)).cloned()
        };
        let started = || of(Agent::Claude, &tine.context().variable("CLAUDE_CODE_SESSION_ID")?);
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
