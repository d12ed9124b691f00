//! The pane and the process that a session runs in.
//!
//! `tine pane` records its own pane and process before it becomes the agent. While that process runs, the pane belongs to
//! the session, whatever the terminal reports about it and however the agent changes its title.

use agents::Holder;
use diagnostics::OrLog;
use serde::{Deserialize, Serialize};
use transcript::SessionName;

use crate::ctx::Ctx;
use crate::registry::{Launcher, Process};
use crate::run::places::{self, OpenPane, Pane};
use crate::run::{Error, Result};
use crate::sessions::session::Session;

/// The pane of an agent, and its process.
#[derive(Debug, Clone)]
pub(crate) struct AgentPane {
    pub(crate) pane: Pane,
    /// The agent's process, if it is known.
    pub(crate) process: Option<u32>,
}

/// What `tine pane` records about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PaneRecord {
    #[serde(flatten)]
    pub(super) pane: Pane,
    pub(super) pid: u32,
    /// When that process started, if the system reports it.
    pub(super) start: Option<String>,
}

impl PaneRecord {
    /// The process, if the system reported its start.
    pub(super) fn process(&self) -> Option<Process> {
        self.start.clone().map(|start| Process { pid: self.pid, start })
    }

    fn is_running(&self) -> bool {
        self.start.is_none() || agents::process_start(self.pid) == self.start
    }
}

/// The pane that a session runs in.
pub(crate) fn pane_of(ctx: &Ctx, session: &Session) -> Result<Pane> {
    Ok(agent_pane(ctx, session)?.pane)
}

/// The pane that a session runs in, and its process.
pub(super) fn agent_pane(ctx: &Ctx, session: &Session) -> Result<AgentPane> {
    let runs = session.is_open();
    let missing = || Error::NoPane { session: session.view.label().to_owned(), runs };
    if !runs && ctx.context().surroundings.proc.is_some() {
        return Err(missing());
    }
    let process = session.live.as_ref().and_then(|live| live.pid);
    // The session may be open in a second process, in another pane. A daemon works for all panes.
    let own = process.filter(|_| session.holder() == Some(Holder::Agent));
    let recorded = session.view.name.as_ref().and_then(|name| recorded_pane(ctx, name, own));
    let found = recorded.or_else(|| pane_around(ctx, process?));
    found.ok_or_else(missing)
}

/// The pane of a session that has no messages yet.
pub(crate) fn agent_pane_of_empty(ctx: &Ctx, name: &SessionName) -> Result<AgentPane> {
    let process = process_of_empty(ctx, name)?;
    let found = recorded_pane(ctx, name, process).or_else(|| pane_around(ctx, process?));
    found.ok_or_else(|| Error::NoPane { session: name.to_string(), runs: process.is_some() })
}

/// The agent's process in a session that has no messages yet.
pub(crate) fn process_of_empty(ctx: &Ctx, name: &SessionName) -> Result<Option<u32>> {
    let launcher = ctx.registry().launcher(name)?;
    Ok(launcher.filter(Launcher::may_begin).and_then(|launcher| launcher.pid()))
}

/// The pane that tine opened for a session, if `process` runs in it, or if no process is known, the one that was recorded.
fn recorded_pane(ctx: &Ctx, name: &SessionName, process: Option<u32>) -> Option<AgentPane> {
    let record = ctx.registry().recorded_pane::<PaneRecord>(name).or_log("read the pane of the session")??;
    let proc = ctx.context().surroundings.proc.as_deref();
    // Some agents are launchers that start the real one.
    let is_its = match (process, proc) {
        (Some(process), Some(proc)) => agents::is_below(proc, process, record.pid),
        _ => true,
    };
    if !is_its || !record.is_running() {
        return None;
    }
    let is_open = OpenPane::new(ctx.context(), &record.pane).is_ok_and(|open| open.info().is_some());
    is_open.then_some(AgentPane { pane: record.pane, process: Some(record.pid) })
}

/// The pane that a process runs in, if tine did not open it.
fn pane_around(ctx: &Ctx, process: u32) -> Option<AgentPane> {
    let pane = places::pane_of(ctx.context(), process)?;
    Some(AgentPane { pane, process: Some(process) })
}
