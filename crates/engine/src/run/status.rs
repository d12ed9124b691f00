//! What sessions are doing now.

use std::path::{Path, PathBuf};

use agents::Screen;
use diagnostics::OrLog;
use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, SessionView, State};

use crate::ctx::Ctx;
use crate::run::drive::{self, Target, pane};
use crate::run::places::{OpenPane, Pane};
use crate::run::{Error, Result};
use crate::sessions::catalog::Progress;
use crate::sessions::session::Session;
use crate::sessions::survey;

/// What a session is doing. Its JSON is a contract: the session, with more fields.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The session.
    #[serde(flatten)]
    pub session: StatusSession,
    /// The process that has it open.
    pub pid: Option<u32>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// The pane that it runs in.
    pub pane: Option<Pane>,
    /// The last prompt, without secrets.
    pub last_prompt: Option<String>,
}

/// Whose status it is.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum StatusSession {
    /// A session with a transcript.
    Session(Box<SessionView>),
    /// One that was started and has no transcript yet.
    Started(Box<StartedSession>),
}

/// A session that was started and has no transcript yet, in the shape of one that has. The agent may choose its id later.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartedSession {
    /// Its agent.
    pub agent: Agent,
    id: Option<SessionId>,
    /// Its name.
    pub name: SessionName,
    title: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    path: Option<String>,
    created: Option<String>,
    updated: Option<String>,
    turns: u32,
    /// Whether it can take a prompt.
    pub state: State,
    parent: Option<SessionId>,
}

impl Status {
    /// Whether its agent is busy.
    pub fn state(&self) -> State {
        match &self.session {
            StatusSession::Session(view) => view.state,
            StatusSession::Started(started) => started.state,
        }
    }

    /// Where it works.
    pub fn directory(&self) -> Option<&Path> {
        match &self.session {
            StatusSession::Session(view) => view.cwd.as_deref(),
            StatusSession::Started(started) => started.cwd.as_deref().map(Path::new),
        }
    }

    /// What people call it.
    pub fn label(&self) -> &str {
        match &self.session {
            StatusSession::Session(view) => view.label(),
            StatusSession::Started(started) => started.name.as_str(),
        }
    }
}

/// The current state of a session. Its pane and its last prompt are only looked up if it is open.
pub(crate) fn status(ctx: &Ctx, target: &Target) -> Result<Status> {
    match target {
        Target::Session(session) => Ok(of_session(ctx, session)),
        Target::EmptySession(name) => {
            let started = ctx.registry().all_empty()?.into_iter().find(|(known, _, _)| known == name);
            let (agent, cwd) =
                started.map_or((drive::agent_of_empty(ctx, name)?, None), |(_, agent, cwd)| (agent, cwd));
            of_started(ctx, name, agent, cwd)
        }
    }
}

/// What every open session is doing: those without a transcript first, then the others, newest first.
pub(crate) fn open_sessions(ctx: &Ctx, progress: &dyn Progress) -> Result<Vec<Status>> {
    let sessions = survey::all_sessions(ctx, progress)?;
    let started = ctx.registry().all_empty()?;
    let mut found = Vec::new();
    for (name, agent, cwd) in started {
        found.extend(
            of_started(ctx, &name, agent, cwd)
                .or_log(format_args!("look up {name}"))
                .filter(|status| status.state() != State::Stopped),
        );
    }
    let open = sessions.iter().filter(|session| session.view.state != State::Stopped);
    found.extend(open.map(|session| of_session(ctx, session)));
    Ok(found)
}

fn of_session(ctx: &Ctx, session: &Session) -> Status {
    let mut view = session.view.clone();
    let live = session.live.as_ref();
    let asks = drive::asks_in_pane(ctx, session);
    if asks.is_some() {
        view.state = State::Waiting;
    }
    let open = Some(session).filter(|session| session.is_open());
    Status {
        session: StatusSession::Session(Box::new(view)),
        pid: live.and_then(|live| live.pid),
        waiting_for: live.and_then(|live| live.waiting_for.clone()).or(asks),
        pane: open.and_then(|session| pane::pane_of(ctx, session).ok()),
        last_prompt: open.and_then(|session| drive::last_prompt(ctx, session).or_log("read the last prompt").flatten()),
    }
}

fn of_started(ctx: &Ctx, name: &SessionName, agent: Agent, cwd: Option<PathBuf>) -> Result<Status> {
    let (pane, state, waiting_for) = match pane::agent_pane_of_empty(ctx, name) {
        Ok(held) => {
            // One terminal that hangs doesn't hide the others.
            let (state, asks) = shown_in_pane(ctx, agent, &held.pane).unwrap_or((State::Idle, None));
            (Some(held.pane), state, asks)
        }
        Err(Error::NoPane { runs: true, .. }) => (None, State::Idle, None),
        Err(Error::NoPane { runs: false, .. }) => (None, State::Stopped, None),
        Err(error) => return Err(error),
    };
    let started = StartedSession {
        agent,
        id: None,
        name: name.clone(),
        title: None,
        cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        branch: None,
        path: None,
        created: None,
        updated: None,
        turns: 0,
        state,
        parent: None,
    };
    Ok(Status {
        session: StatusSession::Started(Box::new(started)),
        pid: pane::process_of_empty(ctx, name)?,
        waiting_for,
        pane,
        last_prompt: None,
    })
}

/// The state of an agent as its pane shows it, and what it asks.
fn shown_in_pane(ctx: &Ctx, agent: Agent, pane: &Pane) -> Result<(State, Option<String>)> {
    let screen = OpenPane::new(ctx.context(), pane)?.screen()?;
    Ok(match ctx.adapter(agent).read_screen(&screen) {
        Screen::Asks(what) => (State::Waiting, Some(what.to_owned())),
        Screen::Ready | Screen::Reading(_) | Screen::Unknown => (State::Idle, None),
    })
}
