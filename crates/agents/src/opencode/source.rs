//! The messages of a session in order, from the database or from a file with its rows.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::database::SessionRows;
use super::home;
use super::row::{Row, RowReader, invalid};
use crate::fields::Raw;

/// A session that is being read.
pub(super) struct SessionSource {
    rows: Rows,
    session: Row,
    revert: Option<Revert>,
    ended: bool,
}

enum Rows {
    Database(Box<SessionRows>),
    File(Box<FileRows<File>>),
}

/// Where the user has gone back to. OpenCode removes what follows with the next prompt.
struct Revert {
    message: String,
    part: Option<String>,
}

impl SessionSource {
    /// Opens the session at a path: in the database, or a file with its rows.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (session, rows) = match home::split(path) {
            Some(_) => {
                let rows = SessionRows::open(path)?;
                (rows.session().clone(), Rows::Database(Box::new(rows)))
            }
            None => {
                let mut rows = FileRows::new(crate::files::open_regular(path)?)?;
                (rows.session()?, Rows::File(Box::new(rows)))
            }
        };
        let revert = revert_of(&session);
        Ok(SessionSource { rows, session, revert, ended: false })
    }

    /// Its row in the table of sessions.
    pub(super) fn session(&self) -> &Row {
        &self.session
    }

    /// The database, if it is read from there.
    pub(super) fn database(&self) -> Option<&SessionRows> {
        match &self.rows {
            Rows::Database(rows) => Some(rows),
            Rows::File(_) => None,
        }
    }

    /// The next message with its parts, up to where the user has gone back to.
    pub(super) fn next_message(&mut self) -> io::Result<Option<(Row, Vec<Row>)>> {
        if self.ended {
            return Ok(None);
        }
        let next = match &mut self.rows {
            Rows::Database(rows) => rows.next_message()?,
            Rows::File(rows) => rows.next_message()?,
        };
        let Some((message, mut parts)) = next else { return Ok(None) };
        let Some(revert) = self.revert.as_ref().filter(|revert| message.text("id") == Some(&revert.message)) else {
            return Ok(Some((message, parts)));
        };
        self.ended = true;
        let kept = revert.part.as_ref().and_then(|part| parts.iter().position(|row| row.text("id") == Some(part)));
        parts.truncate(kept.unwrap_or(0));
        Ok((!parts.is_empty()).then_some((message, parts)))
    }
}

fn revert_of(session: &Row) -> Option<Revert> {
    let revert = Raw(session.text("revert")?.as_bytes());
    let text = |key: &[u8]| revert.get(key).and_then(Raw::string).map(|text| text.into_owned());
    Some(Revert { message: text(b"messageID")?, part: text(b"partID") })
}

/// The messages in a file with rows.
pub(super) struct FileRows<R> {
    reader: RowReader<R>,
    /// The row after the last one that was used.
    next: Option<Row>,
}

impl<R: Read> FileRows<R> {
    pub(super) fn new(source: R) -> io::Result<Self> {
        Ok(FileRows { reader: RowReader::new(source)?, next: None })
    }

    /// How many bytes were read.
    pub(super) fn bytes(&self) -> u64 {
        self.reader.bytes
    }

    /// The first session.
    pub(super) fn session(&mut self) -> io::Result<Row> {
        while let Some(row) = self.reader.next_row()? {
            if row.table == "session" {
                return Ok(row);
            }
        }
        Err(invalid("it contains no session"))
    }

    /// The next message of this session with its parts.
    pub(super) fn next_message(&mut self) -> io::Result<Option<(Row, Vec<Row>)>> {
        let message = loop {
            let Some(row) = self.take()? else { return Ok(None) };
            match row.table.as_str() {
                "message" => break row,
                // What follows belongs to a subagent.
                "session" => {
                    self.next = Some(row);
                    return Ok(None);
                }
                _ => {}
            }
        };
        let mut parts = Vec::new();
        while let Some(row) = self.take()? {
            if row.table != "part" {
                self.next = Some(row);
                break;
            }
            parts.push(row);
        }
        Ok(Some((message, parts)))
    }

    /// Reads on to the end.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        while self.take()?.is_some() {}
        Ok(())
    }

    fn take(&mut self) -> io::Result<Option<Row>> {
        match self.next.take() {
            Some(row) => Ok(Some(row)),
            None => self.reader.next_row(),
        }
    }
}
