//! What tests of other folders do to a registry that nothing else may.

use rusqlite::params;
use transcript::SessionId;

use super::{Registry, SeedNote};

/// A process that doesn't run: its number is larger than any.
const KILLED: &str = "4194305 1";

impl Registry {
    /// Makes an operation look as if the process that carried it out was killed.
    pub(crate) fn simulate_kill(&mut self, operation: i64) {
        let query = "UPDATE operations SET state = 'started', process = ?2 WHERE id = ?1";
        self.write(|transaction| transaction.execute(query, params![operation, KILLED])).expect("the registry");
    }

    /// The same for every operation under way.
    pub(crate) fn simulate_kill_of_all(&mut self) {
        let query = "UPDATE operations SET process = ?1 WHERE state IN ('started', 'undoing')";
        self.write(|transaction| transaction.execute(query, [KILLED])).expect("the registry");
    }

    /// Records that a session of Claude Code began with the transcript of another session.
    pub(crate) fn record_seed(&mut self, id: &str, note: &SeedNote) {
        let id = SessionId::new(id).expect("an id");
        let query = "INSERT INTO seeds (agent, id, parent_agent, parent_id, turn, hash, tokens, window, hidden)
                     VALUES ('claude', ?1, ?2, ?3, ?4, ?5, 1, NULL, ?6)";
        let values = params![id.as_str(), note.parent_agent.as_str(), note.parent, note.turn, note.hash, note.hidden];
        self.write(|transaction| transaction.execute(query, values)).expect("the registry");
    }
}
