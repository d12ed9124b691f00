//! The panes in which sessions were opened, and the processes that became their agents.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use transcript::SessionName;

use super::process::{Launcher, Process};
use super::{Registry, json_column};
use crate::registry::Result;

impl Registry {
    /// Records the pane of a session, and the process that becomes its agent. What a pane is, its owner knows.
    pub(crate) fn record_pane<P: Serialize>(
        &mut self,
        name: &SessionName,
        pane: &P,
        process: Option<Process>,
    ) -> Result<()> {
        let pane = self.encode(pane)?;
        let (pid, start) = process.map(|process| (process.pid, process.start)).unzip();
        // A session that has begun is no longer a pending start.
        let query = "UPDATE sessions SET pane = ?2,
                            launch_pid = iif(is_start, coalesce(?3, launch_pid), launch_pid),
                            launch_start = iif(is_start, coalesce(?4, launch_start), launch_start)
                     WHERE name = ?1";
        self.write(|transaction| transaction.execute(query, params![name.as_str(), pane, pid, start])).map(drop)
    }

    /// The pane in which a session was opened last.
    pub(crate) fn recorded_pane<P: DeserializeOwned>(&self, name: &SessionName) -> Result<Option<P>> {
        let pane = self.ask(|connection| {
            let query = "SELECT pane FROM sessions WHERE name = ?1";
            connection.query_row(query, [name.as_str()], |row| json_column(row, 0)).optional()
        })?;
        Ok(pane.flatten())
    }

    /// The process that becomes the agent of a session without messages.
    pub(crate) fn launcher(&self, name: &SessionName) -> Result<Option<Launcher>> {
        self.ask(|connection| {
            let query = "SELECT launch_pid, launch_start FROM sessions WHERE name = ?1 AND is_start";
            let read = |row: &rusqlite::Row<'_>| Ok(Launcher::recorded(row.get(0)?, row.get(1)?));
            connection.query_row(query, [name.as_str()], read).optional()
        })
    }
}
