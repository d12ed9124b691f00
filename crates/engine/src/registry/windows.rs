//! The context windows that agents reported for the models of a session.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use transcript::{Agent, SessionId};

use super::Registry;
use crate::registry::Result;

impl Registry {
    /// Notes what an agent reported in an answer.
    pub(crate) fn note_windows(
        &mut self,
        agent: Agent,
        id: &SessionId,
        windows: &[(String, u64)],
        now: Timestamp,
    ) -> Result<()> {
        if windows.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            let mut statement = transaction.prepare(
                "INSERT INTO windows (agent, id, model, window, reported) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (agent, id, model) DO UPDATE SET window = excluded.window, reported = excluded.reported",
            )?;
            for (model, window) in windows {
                let window = i64::try_from(*window).unwrap_or(i64::MAX);
                statement.execute(params![agent.as_str(), id.as_str(), model, window, now.as_millisecond()])?;
            }
            Ok(())
        })
    }

    /// The window of a model, as the agent last reported it in a session.
    pub(crate) fn reported_window(&self, agent: Agent, id: &SessionId, model: &str) -> Result<Option<u64>> {
        let window: Option<i64> = self.ask(|connection| {
            let query = "SELECT window FROM windows WHERE agent = ?1 AND id = ?2 AND model = ?3";
            connection.query_row(query, params![agent.as_str(), id.as_str(), model], |row| row.get(0)).optional()
        })?;
        Ok(window.and_then(|window| u64::try_from(window).ok()))
    }
}
