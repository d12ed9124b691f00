//! A fork by copy: the rows of a session up to a turn, under new ids, as lines of a file that is put into the database when
//! it is complete. See [`super::row`].
//!
//! Everything else in a row is carried, also columns that tine doesn't know. What the user has gone back behind is left out;
//! OpenCode's own fork would bring it back.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::database::{self, SessionRows};
use super::ids;
use super::message::{Meaning, StoredMessage};
use super::project::Project;
use super::row::{Row, RowLines, invalid};
use super::scan::FactScan;
use super::source::{FileRows, SessionSource};
use crate::copy::{Copied, CopyRequest, ReadBack};
use crate::fields::Raw;
use crate::follow::{FileGrowth, Following};
use crate::seal::Seal;

/// Columns in which messages and parts of a copy have their own values.
const OWN: [&str; 3] = ["id", "session_id", "message_id"];

/// The fields of a row's data that refer to messages of the same session.
const REFERENCES: [&[u8]; 2] = [b"parentID", b"tail_start_id"];

/// Writes the rows of the copy that `order` describes to `out`.
pub(super) fn copy(source: &Path, order: &CopyRequest, out: &mut dyn io::Write) -> io::Result<Copied> {
    let mut source = SessionSource::open(source)?;
    let mut copier = Copier { lines: RowLines::new(out)?, order, seal: Seal::default(), turn_keys: Vec::new() };
    let project = project_row(&source, order)?;
    let session = session_row(source.session(), &project, order);
    copier.lines.row(&project)?;
    copier.lines.row(&session)?;
    while let Some((message, parts)) = source.next_message()? {
        if !copier.message(&message, &parts)? {
            break;
        }
    }
    Ok(Copied { bytes: copier.lines.bytes, turn_keys: copier.turn_keys, seal: copier.seal })
}

struct Copier<'a> {
    lines: RowLines<'a>,
    order: &'a CopyRequest,
    seal: Seal,
    turn_keys: Vec<u64>,
}

impl Copier<'_> {
    /// Copies a message with its parts. Returns false where the copy ends before it.
    fn message(&mut self, message: &Row, parts: &[Row]) -> io::Result<bool> {
        let is_full = self.order.turns.is_some_and(|turns| self.turn_keys.len() >= turns as usize);
        match StoredMessage::of(message, parts).meaning() {
            Meaning::Prompt(_) if is_full => return Ok(false),
            Meaning::Prompt(prompt) => self.turn_keys.push(prompt.key),
            _ => {}
        }
        for row in std::iter::once(message).chain(parts) {
            carry(&mut self.seal, row);
            let mut copy = row.clone();
            copy.set("session_id", self.order.id.as_str());
            for column in ["id", "message_id"] {
                if let Some(old) = row.text(column) {
                    copy.replace(column, ids::of_copy(old, &self.order.id));
                }
            }
            if let Cow::Owned(data) = with_new_references(row.data(), self.order) {
                copy.replace("data", data);
            }
            self.lines.row(&copy)?;
        }
        Ok(true)
    }
}

/// The data of a row, with references to the copied messages.
fn with_new_references<'a>(data: &'a str, order: &CopyRequest) -> Cow<'a, str> {
    let mut found: Vec<(usize, &str)> = references(data);
    found.sort_unstable();
    let mut new = Cow::Borrowed(data);
    // From the last to the first, so that positions stay valid.
    for (at, id) in found.into_iter().rev() {
        new.to_mut().replace_range(at..at + id.len(), &ids::of_copy(id, &order.id));
    }
    new
}

/// The ids of messages in the data of a row, each with its position.
fn references(data: &str) -> Vec<(usize, &str)> {
    let fields = Raw(data.as_bytes()).fields();
    let ids = fields.filter(|(key, _)| REFERENCES.contains(key)).filter_map(|(_, value)| value.plain());
    let ids = ids.filter_map(|id| std::str::from_utf8(id).ok()).filter(|id| id.starts_with("msg_"));
    ids.map(|id| (id.as_ptr() as usize - data.as_ptr() as usize, id)).collect()
}

/// Seals what a copied row has in common with its original.
fn carry(seal: &mut Seal, row: &Row) {
    seal.stretch(row.table.as_bytes());
    for (column, value) in row.values.iter().filter(|(column, _)| !OWN.contains(&column.as_str())) {
        seal.stretch(column.as_bytes());
        match value {
            Value::String(text) if column == "data" => {
                let mut from = 0;
                let mut found = references(text);
                found.sort_unstable();
                for (at, id) in found {
                    seal.stretch(&text.as_bytes()[from..at]);
                    from = at + id.len();
                }
                seal.stretch(&text.as_bytes()[from..]);
            }
            Value::String(text) => seal.stretch(text.as_bytes()),
            other => seal.stretch(other.to_string().as_bytes()),
        }
    }
    seal.end_record();
}

/// The project of the copy. Its row is only inserted if the database lacks it.
fn project_row(source: &SessionSource, order: &CopyRequest) -> io::Result<Row> {
    let now = order.now.as_millisecond();
    let session = source.session();
    let known = |id: &str| match source.database() {
        Some(rows) => database::row(rows.connection(), "project", "SELECT * FROM project WHERE id = ?1", [id]),
        None => Ok(None),
    };
    let project = Project::of(&order.cwd);
    let own = session.text("project_id").unwrap_or_default();
    let is_same_place = session.text("directory").is_some_and(|directory| Path::new(directory) == order.cwd);
    if is_same_place || project.id == own {
        return known(own)?.ok_or_else(|| invalid("the project of the session is missing"));
    }
    if let Some(row) = known(&project.id)? {
        return Ok(row);
    }
    let values = [
        ("id", json!(project.id)),
        ("worktree", json!(project.worktree().to_string_lossy())),
        ("vcs", json!(project.is_repository.then_some("git"))),
        ("time_created", json!(now)),
        ("time_updated", json!(now)),
        ("sandboxes", json!("[]")),
    ];
    let values = values.into_iter().map(|(column, value)| (column.to_owned(), value));
    Ok(Row::new("project", Map::from_iter(values)))
}

fn session_row(source: &Row, project: &Row, order: &CopyRequest) -> Row {
    let mut row = source.clone();
    let now = order.now.as_millisecond();
    let is_same_place = source.text("directory").is_some_and(|directory| Path::new(directory) == order.cwd);
    row.set("id", order.id.as_str());
    row.set("project_id", project.text("id").unwrap_or_default());
    if !is_same_place {
        row.set("directory", order.cwd.to_string_lossy().into_owned());
        row.replace("path", Project::of(&order.cwd).path_of(&order.cwd));
    }
    if let Some(title) = &order.title {
        row.set("title", title.as_str());
    }
    row.replace("slug", format!("fork-{}", order.id.as_str().trim_start_matches("ses_").to_lowercase()));
    for column in ["time_created", "time_updated"] {
        row.set(column, now);
    }
    // It is nobody's subagent, it isn't shared, and what the user has gone back behind is not in it.
    for column in ["workspace_id", "parent_id", "share_url", "revert", "time_compacting", "time_archived"] {
        row.replace(column, Value::Null);
    }
    row
}

/// Reads a copy back from its file, which may still be growing.
pub(super) fn read_back(path: &Path, order: &CopyRequest, growing: Option<&FileGrowth>) -> ReadBack {
    let mut pass = FactScan::new(&order.target);
    let mut check = Check { order, seal: Seal::default(), fault: None };
    let mut bytes = 0;
    let mut read = || -> io::Result<u64> {
        let mut rows = FileRows::new(Following::open(path, growing)?)?;
        let session = rows.session()?;
        check.session(&session);
        pass.session(&session);
        while let Some((message, parts)) = rows.next_message()? {
            check.message(&message, &parts);
            pass.message(&StoredMessage::of(&message, &parts));
        }
        rows.finish()?;
        Ok(rows.bytes())
    };
    match read() {
        Ok(count) => bytes = count,
        Err(error) => {
            pass.fail(&error);
            check.fault.get_or_insert_with(|| error.to_string());
        }
    }
    ReadBack { summary: pass.finish(), bytes, seal: check.seal, fault: check.fault }
}

/// Compares what the rows of a copy have of their own with what they should have.
struct Check<'a> {
    order: &'a CopyRequest,
    seal: Seal,
    fault: Option<String>,
}

impl Check<'_> {
    fn session(&mut self, row: &Row) {
        self.expect(row.text("id") == Some(self.order.id.as_str()), "session id");
        self.expect(row.text("directory").is_some_and(|at| Path::new(at) == self.order.cwd), "directory");
        self.expect(row.text("parent_id").is_none() && row.text("revert").is_none(), "parent");
    }

    fn message(&mut self, message: &Row, parts: &[Row]) {
        let id = message.text("id");
        for row in std::iter::once(message).chain(parts) {
            carry(&mut self.seal, row);
            self.expect(row.text("session_id") == Some(self.order.id.as_str()), "session id");
            let is_part = row.table == "part";
            self.expect(!is_part || row.text("message_id") == id, "message id");
        }
    }

    fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.fault.get_or_insert_with(|| format!("a record has a different {what}"));
        }
    }
}

/// Whether a session has started subagents, whose sessions a copy doesn't have.
pub(super) fn has_subagents(path: &Path) -> bool {
    let found = SessionRows::open(path).and_then(|rows| {
        let id = rows.session().text("id").unwrap_or_default().to_owned();
        database::value::<i64>(rows.connection(), "SELECT 1 FROM session WHERE parent_id = ?1 LIMIT 1", [id])
    });
    found.map_or(true, |found| found.is_some())
}
