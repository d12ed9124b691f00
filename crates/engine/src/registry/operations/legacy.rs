//! The log as it was up to format 8: the effects of all operations had the same twenty fields, most of them empty, and
//! links between operations stood among them.
//!
//! This rewrites JSON and does not use today's types, because those change and old records don't. A record that can't
//! be rewritten into a readable one is left as it is.

use rusqlite::{Transaction, params};
use serde_json::{Map, Value, json};

use super::{Effects, OperationState};

/// Takes the log from format 8 to 9.
pub(in crate::registry) fn type_operations(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "ALTER TABLE operations ADD COLUMN part_of INTEGER;
         ALTER TABLE operations ADD COLUMN undo TEXT;
         DROP INDEX operations_begun;
         CREATE INDEX operations_under_way ON operations (state) WHERE state IN ('started', 'undoing');
         CREATE INDEX operations_by_whole ON operations (part_of) WHERE part_of IS NOT NULL;",
    )?;
    let mut rows = transaction.prepare("SELECT id, kind, state, effects FROM operations")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let rows: Vec<(i64, String, String, String)> = rows.collect::<rusqlite::Result<_>>()?;
    for (id, kind, state, record) in rows {
        let Some(typed) = Typed::of(&kind, &state, &record) else { continue };
        transaction.execute(
            "UPDATE operations SET state = ?2, effects = ?3, part_of = ?4, undo = ?5 WHERE id = ?1",
            params![id, typed.state, typed.effects, typed.part_of, typed.undo],
        )?;
    }
    Ok(())
}

/// A row in format 9.
struct Typed<'a> {
    state: &'a str,
    effects: String,
    part_of: Option<i64>,
    undo: Option<String>,
}

impl<'a> Typed<'a> {
    fn of(kind: &str, state: &'a str, record: &str) -> Option<Self> {
        let flat = Flat(serde_json::from_str(record).ok()?);
        let effects = flat.effects(kind)?.to_string();
        Effects::from_record(kind, &effects).ok()?;
        // An undo that was under way had the state of an operation under way.
        let undo = flat.0.get("undoing").filter(|undo| !undo.is_null() && state == "started").map(Value::to_string);
        let state = if undo.is_some() { "undoing" } else { state };
        OperationState::from_record(state, undo.as_deref()).ok()?;
        Some(Typed { state, effects, part_of: flat.0.get("part_of").and_then(Value::as_i64), undo })
    }
}

/// The effects of an operation in format 8.
struct Flat(Map<String, Value>);

impl Flat {
    fn field(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn list(&self, name: &str) -> Value {
        Some(self.field(name)).filter(|list| !list.is_null()).unwrap_or_else(|| json!([]))
    }

    fn effects(&self, kind: &str) -> Option<Value> {
        // Every record had this field; without it, the record is not ours.
        self.0.get("made").filter(|made| made.is_array())?;
        match kind {
            "fork" => Some(json!({
                "created": self.created()?,
                "reserves": self.field("reserves"),
                "mark": self.field("mark"),
                "expects": self.field("expects"),
                "fingerprint": {
                    "stamp": self.field("stamp"), "content": self.field("content"), "beside": self.field("beside"),
                },
                "kept": self.field("kept"),
            })),
            "forks" => Some(json!({})),
            "clone" => Some(json!({ "created": self.created()?, "reserves": self.field("reserves") })),
            "worktree" => self.created(),
            "delete" => Some(json!({
                "session": self.field("session"),
                "moved": self.list("moved"),
                "branch": self.field("branch"),
                "name": self.field("name"),
            })),
            "adopt" => Some(json!({
                "name": self.name_change()?,
                "has_parent": self.0.get("noted_parent").and_then(Value::as_bool).unwrap_or(false),
            })),
            "rename" => Some(json!({
                "name": self.name_change()?,
                "old_title": self.field("old_title"),
                "title": self.field("titled"),
            })),
            _ => None,
        }
    }

    fn created(&self) -> Option<Value> {
        let workspace = match (self.field("worktree"), self.field("copy")) {
            (Value::Null, Value::Null) => Value::Null,
            (worktree, Value::Null) => json!({ "worktree": worktree }),
            (Value::Null, copy) => json!({ "copy": copy }),
            // No operation made both.
            _ => return None,
        };
        let notes = self.list("notes");
        let note = |note: &Value| Some(json!({ "path": note.get(0)?, "digest": note.get(1)? }));
        let notes: Option<Vec<Value>> = notes.as_array()?.iter().map(note).collect();
        Some(json!({
            "session": self.field("session"),
            "files": self.field("made"),
            "notes": notes?,
            "folders": self.list("folders"),
            "workspace": workspace,
        }))
    }

    fn name_change(&self) -> Option<Value> {
        let named = self.0.get("named")?;
        Some(json!({ "session": named.get(0)?, "old": named.get(1)?, "new": self.field("new_name") }))
    }
}
