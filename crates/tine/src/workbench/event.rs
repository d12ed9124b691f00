//! What happens to the workbench, and what it wants done.

use engine::{Forked, Plan, Project, Request, Session};
use transcript::SessionName;

use super::document::Document;
use super::keys::Key;

/// Something that happened.
pub(crate) enum Event {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size.
    Resize(u16, u16),
    /// The sessions were read, and the directories of this project.
    Sessions(Vec<Session>, Project),
    /// A transcript was read.
    Transcript {
        /// The request that this answers.
        ticket: u64,
        /// The transcript, laid out.
        document: Document,
    },
    /// A search was answered.
    Found {
        /// The request that this answers.
        ticket: u64,
        /// The hits, best first.
        hits: Vec<Hit>,
        /// Whether meaning was compared as well, not only keywords.
        complete: bool,
    },
    /// A fork was planned.
    Planned {
        /// The request that this answers.
        ticket: u64,
        /// The plan, or why the fork is impossible.
        plan: Result<Box<Plan>, Trouble>,
    },
    /// A fork was made.
    Forked(Box<Forked>),
    /// Something worked.
    Done(String),
    /// Something didn't work.
    Failed(Trouble),
    /// Something that doesn't matter.
    Ignored,
}

/// An error, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What went wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// One result of a search.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    /// The session.
    pub session: Session,
    /// The turn that fits best.
    pub turn: u32,
    /// Words around the match.
    pub snippet: String,
}

/// Something to do outside.
pub(crate) enum Effect {
    /// Read the sessions.
    LoadSessions,
    /// Read a transcript and lay it out.
    Read {
        /// Names the request in the answer.
        ticket: u64,
        /// The session.
        session: Box<Session>,
        /// The columns to lay it out for.
        width: u16,
        /// Whether tool calls and thinking are shown in full.
        full: bool,
    },
    /// Search.
    Search {
        /// Names the request in the answer.
        ticket: u64,
        /// What for.
        query: String,
    },
    /// Plan a fork.
    Plan {
        /// Names the request in the answer.
        ticket: u64,
        /// The request.
        request: Box<Request>,
    },
    /// Make a fork.
    Fork(Box<Plan>),
    /// Give a session a name.
    Rename(Box<Session>, SessionName),
    /// Undo the last operation.
    Undo,
    /// Leave.
    Quit,
}
