//! A row of the database, and its form in a file: one line of JSON for each row.
//!
//! A file with the rows of a session is what a copy is before it is put into the database, and what a deleted session is in
//! the trash. Values keep their types and every byte, so that a session that is put back is what it was.

use std::io::{self, BufRead, BufReader, Read, Write};

use rusqlite::types::{Value as Stored, ValueRef};
use serde_json::{Map, Value, json};

/// The version of the form.
const VERSION: u64 = 1;

/// The first line of a file with the rows of a session.
pub(super) fn header() -> String {
    json!({ "opencode_rows": VERSION }).to_string()
}

/// Whether a line is the first one of such a file.
pub(super) fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"{\"opencode_rows\":")
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The table.
    pub table: String,
    /// The values by column, in the order of the table.
    pub values: Map<String, Value>,
}

impl Row {
    pub(super) fn new(table: &str, values: Map<String, Value>) -> Self {
        Row { table: table.to_owned(), values }
    }

    /// The text in a column.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        self.values.get(column)?.as_str()
    }

    /// The number in a column.
    pub(super) fn number(&self, column: &str) -> Option<i64> {
        self.values.get(column)?.as_i64()
    }

    /// The JSON that a message or a part consists of. Damaged rows may hold anything.
    pub(super) fn data(&self) -> &str {
        self.text("data").unwrap_or_default()
    }

    pub(super) fn set(&mut self, column: &str, value: impl Into<Value>) {
        self.values.insert(column.to_owned(), value.into());
    }

    /// Changes a column if the table has it.
    pub(super) fn replace(&mut self, column: &str, value: impl Into<Value>) {
        if let Some(old) = self.values.get_mut(column) {
            *old = value.into();
        }
    }

    /// Its line, without the line break.
    pub(super) fn to_line(&self) -> String {
        json!({ "table": self.table, "row": self.values }).to_string()
    }

    fn from_line(line: &[u8]) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Line {
            table: String,
            row: Map<String, Value>,
        }
        let Line { table, row } = serde_json::from_slice(line).ok()?;
        Some(Row { table, values: row })
    }
}

/// A value as JSON. Text that is not UTF-8 and blobs are written in hexadecimal.
pub(super) fn to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "bad_text": hex(bytes) }),
        },
        ValueRef::Blob(bytes) => json!({ "blob": hex(bytes) }),
    }
}

/// The value that [`to_json`] wrote; nothing for anything else. Text that is not UTF-8 comes back as a blob, because it
/// can't be anything else here.
pub(super) fn to_stored(value: &Value) -> Option<Stored> {
    Some(match value {
        Value::Null => Stored::Null,
        Value::Bool(truth) => Stored::Integer(i64::from(*truth)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Stored::Integer(whole),
            None => Stored::Real(number.as_f64()?),
        },
        Value::String(text) => Stored::Text(text.clone()),
        Value::Object(map) => Stored::Blob(unhex(map.get("blob").or_else(|| map.get("bad_text"))?.as_str()?)?),
        Value::Array(_) => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    if text.len() % 2 == 1 { None } else { (0..text.len()).step_by(2).map(byte).collect() }
}

/// Writes rows as lines and counts the bytes.
pub(super) struct RowLines<'a> {
    out: &'a mut dyn Write,
    pub bytes: u64,
}

impl<'a> RowLines<'a> {
    /// Begins with the header.
    pub(super) fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        let mut lines = RowLines { out, bytes: 0 };
        lines.line(&header())?;
        Ok(lines)
    }

    pub(super) fn row(&mut self, row: &Row) -> io::Result<()> {
        self.line(&row.to_line())
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }
}

/// Reads rows from lines. One row is held at a time.
pub(super) struct RowReader<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    /// How many bytes were read.
    pub bytes: u64,
}

impl<R: Read> RowReader<R> {
    /// Checks the header.
    pub(super) fn new(source: R) -> io::Result<Self> {
        let mut reader = RowReader { source: BufReader::with_capacity(128 << 10, source), line: Vec::new(), bytes: 0 };
        if !reader.next_line()? || !is_header(&reader.line) {
            return Err(invalid("it does not contain rows of OpenCode's database"));
        }
        if reader.line != header().as_bytes() {
            return Err(invalid("its rows are in a format of a newer version of tine"));
        }
        Ok(reader)
    }

    /// The next row, or nothing at the end.
    pub(super) fn next_row(&mut self) -> io::Result<Option<Row>> {
        if !self.next_line()? {
            return Ok(None);
        }
        Row::from_line(&self.line).map(Some).ok_or_else(|| invalid("a line is not a row"))
    }

    fn next_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let count = self.source.read_until(b'\n', &mut self.line)?;
        self.bytes += count as u64;
        if count > 0 && self.line.pop() != Some(b'\n') {
            return Err(invalid("its last line is incomplete"));
        }
        Ok(count > 0)
    }
}

/// What is wrong with data.
pub(super) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let check = |value: Stored| {
            let line = serde_json::to_string(&to_json(ValueRef::from(&value))).unwrap();
            assert_eq!(to_stored(&serde_json::from_str(&line).unwrap()), Some(value), "{line}");
        };
        check(Stored::Null);
        check(Stored::Integer(i64::MIN));
        check(Stored::Real(1.0));
        check(Stored::Real(0.1));
        check(Stored::Text("{\"a\":\"\\u0000 \u{1F600}\"}\n".into()));
        check(Stored::Blob(vec![0, 255, 16]));
    }

    #[test]
    fn damaged_files_are_refused() {
        let check = |text: &str, expected: &str| {
            let read = || -> io::Result<()> {
                let mut reader = RowReader::new(text.as_bytes())?;
                while reader.next_row()?.is_some() {}
                Ok(())
            };
            assert_eq!(read().unwrap_err().to_string(), expected, "{text}");
        };
        let row = Row::new("session", Map::from_iter([("id".to_owned(), json!("ses_1"))])).to_line();
        check("", "it does not contain rows of OpenCode's database");
        check("{}\n", "it does not contain rows of OpenCode's database");
        check("{\"opencode_rows\":2}\n", "its rows are in a format of a newer version of tine");
        check(&format!("{}\n{}", header(), &row[..9]), "its last line is incomplete");
        check(&format!("{}\nno\n", header()), "a line is not a row");
        check(&format!("{}\n{row}", header()), "its last line is incomplete");
    }
}
