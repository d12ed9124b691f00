//! The panes in which sessions were opened, and the processes that became their agents.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use transcript::SessionName;

use super::Registry;
use super::process::{Launcher, Process};
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
        let launch = process.map(|process| Launcher::Process(process).to_string());
        // A session that has begun is no longer a pending start.
        let query = "UPDATE sessions SET pane = ?2,
                            launch = CASE WHEN launch IS NULL THEN NULL ELSE coalesce(?3, launch) END
                     WHERE name = ?1";
        self.write(|transaction| transaction.execute(query, params![name.as_str(), pane, launch])).map(drop)
    }

    /// The pane in which a session was opened last.
    pub(crate) fn recorded_pane<P: DeserializeOwned>(&self, name: &SessionName) -> Result<Option<P>> {
        let pane: Option<Option<String>> = self.ask(|connection| {
            let query = "SELECT pane FROM sessions WHERE name = ?1";
            connection.query_row(query, [name.as_str()], |row| row.get(0)).optional()
        })?;
        Ok(pane.flatten().and_then(|pane| serde_json::from_str(&pane).ok()))
    }

    /// The process that becomes the agent of a session without messages.
    pub(crate) fn launcher(&self, name: &SessionName) -> Result<Option<Launcher>> {
        let launch: Option<Option<String>> = self.ask(|connection| {
            let query = "SELECT launch FROM sessions WHERE name = ?1";
            connection.query_row(query, [name.as_str()], |row| row.get(0)).optional()
        })?;
        Ok(launch.flatten().map(|launch| Launcher::parse(&launch)))
    }
}
