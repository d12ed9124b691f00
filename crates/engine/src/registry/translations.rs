//! What became of the parts of conversations that were translated.

use rusqlite::{Transaction, params};
use transcript::translate::{Receipt, ReceiptItem};
use transcript::{Agent, SessionId};

use super::Registry;
use crate::registry::Result;

impl Registry {
    /// The receipt of a session that was translated from another agent's.
    pub(crate) fn translation(&self, agent: Agent, id: &SessionId) -> Result<Option<Receipt>> {
        self.ask(|connection| {
            let query = "SELECT item, count FROM translations WHERE agent = ?1 AND id = ?2";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![agent.as_str(), id.as_str()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })?;
            let mut receipt = None;
            for row in rows {
                let (word, count) = row?;
                // A newer tine may count more.
                if let Some(item) = ReceiptItem::of_word(&word) {
                    let receipt: &mut Receipt = receipt.get_or_insert_default();
                    receipt.add(item, u64::try_from(count).unwrap_or(0));
                }
            }
            Ok(receipt)
        })
    }
}

/// Stores a receipt.
pub(crate) fn record_receipt(
    transaction: &Transaction<'_>,
    agent: Agent,
    id: &SessionId,
    receipt: &Receipt,
) -> rusqlite::Result<()> {
    transaction
        .execute("DELETE FROM translations WHERE agent = ?1 AND id = ?2", params![agent.as_str(), id.as_str()])?;
    let query = "INSERT INTO translations (agent, id, item, count) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = transaction.prepare_cached(query)?;
    for (item, count) in receipt.items() {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        statement.execute(params![agent.as_str(), id.as_str(), item.as_str(), count])?;
    }
    Ok(())
}
