//! Records that don't fit into memory, parsed by streaming over their line.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::record::Record;
use crate::fields::Raw;
use crate::huge::{LongField, fields_of};
use crate::lines::Line;

/// A record that does not fit into memory: its fields, of which only the short ones are held.
#[derive(Debug)]
pub(super) struct LongRecord {
    pub fields: Vec<LongField>,
    /// The position of its closing brace in the line.
    pub brace: u64,
}

impl LongRecord {
    /// Streams over the line; `None` if it is damaged.
    pub(super) fn read(path: &Path, line: &Line<'_>) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(line.offset))?;
        let found = fields_of(file.take(line.len), None)?;
        Ok(found.map(|(fields, brace)| LongRecord { fields, brace }))
    }

    /// What is known of it; a long value is known to be there.
    pub(super) fn record(&self) -> Record<'_> {
        let mut record = Record { complete: true, ..Record::default() };
        for field in &self.fields {
            record.note(&field.key, Raw(field.value.as_deref().unwrap_or(b"{}")));
        }
        record
    }
}

/// The place of a line in the chain, read by streaming over it.
pub(super) fn huge_record(path: &Path, line: &Line<'_>) -> io::Result<Option<Record<'static>>> {
    let Some(long) = LongRecord::read(path, line)? else {
        return Ok(None);
    };
    let Record { kind, uuid, parent, has_parent, logical_parent, sidechain, .. } = long.record();
    let tool_result = long.record().tool_result.map(|_| Raw(&b"{}"[..]));
    let known = Record { kind, uuid, parent, has_parent, logical_parent, sidechain, tool_result, ..Record::default() };
    Ok(Some(Record { complete: true, ..known }))
}
