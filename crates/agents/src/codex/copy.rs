//! A fork by copy: the thread's history up to a turn, flattened into one file under a new id.
//!
//! The first line is the copy's own identity; references to other files are gone, because the history that they stood for
//! is in the file. Records change only where they name the thread itself (`thread_id`, `session_id` of a payload);
//! everything else is carried byte for byte, records of unknown kinds included. What was taken back by going back to an
//! earlier prompt is left out.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::home::{Home, Name};
use super::record::{Kind, Record};
use super::scan::{Scan, scan};
use super::source::{Source, beginning_of_line};
use super::turns::{Place, Step, Turns};
use crate::copy::{Copied, CopyOrder};
use crate::fields::{Fields, Raw};
use crate::lines::Line;
use crate::rewrite::{Rewrite, string};

/// Writes the copy that `order` describes to `out`.
pub(super) fn copy(home: &Home, source: &Path, order: &CopyOrder, out: &mut dyn Write) -> io::Result<Copied> {
    let scan = scan(home, source);
    let cut = match order.turns {
        Some(turns) if turns < scan.summary.turns => Some(cut_after(&scan, turns)?),
        _ => None,
    };
    let threads = scan.files.iter().filter_map(|(path, _)| Name::of_path(path)).map(|name| name.thread);
    let mut copier = Copier {
        order,
        threads: threads.chain([order.source_id.to_string()]).collect(),
        rewritten: Vec::new(),
        bytes: 0,
        out,
    };
    copier.identity(source)?;
    'files: for (segment, (path, end)) in scan.files.iter().enumerate() {
        let mut lines = Source::lines(path, Some(*end))?;
        while let Some(line) = lines.next_line()? {
            let place = Place { segment, offset: line.offset };
            if cut.is_some_and(|cut| place >= cut) {
                break 'files;
            }
            if scan.taken_back.iter().any(|(from, to)| (*from..=*to).contains(&place)) {
                continue;
            }
            copier.line(path, &line)?;
        }
    }
    Ok(Copied { bytes: copier.bytes, turns: order.turns.unwrap_or(scan.summary.turns).min(scan.summary.turns) })
}

/// Where the turn after `turns` begins: at its task, which stands before its prompt.
fn cut_after(scan: &Scan, turns: u32) -> io::Result<Place> {
    let mut counted = Turns::default();
    let mut steps = Vec::new();
    let mut task = None;
    for (segment, (path, end)) in scan.files.iter().enumerate() {
        let mut lines = Source::lines(path, Some(*end))?;
        while let Some(line) = lines.next_line()? {
            let place = Place { segment, offset: line.offset };
            if scan.taken_back.iter().any(|(from, to)| (*from..=*to).contains(&place)) {
                continue;
            }
            let huge = line.bytes.is_none().then(|| beginning_of_line(path, line.offset)).flatten();
            let Some(record) = line.bytes.or(huge.as_deref()).and_then(Record::of) else {
                continue;
            };
            match record.kind {
                Kind::TaskStarted => task = Some(place),
                Kind::TaskComplete | Kind::TurnAborted => task = None,
                // Without tasks, as in files made by hand, a prompt begins with its own message.
                Kind::UserMessage if task.is_none() => task = Some(place),
                _ => {}
            }
            counted.see(&record, place, &mut steps);
            let opens =
                steps.drain(..).any(|step| matches!(step, Step::Prompt { steer: false, turn, .. } if turn > turns));
            if opens {
                return Ok(task.unwrap_or(place));
            }
        }
    }
    let (segment, end) = (scan.files.len().saturating_sub(1), scan.files.last().map_or(0, |(_, end)| *end));
    Ok(Place { segment, offset: end })
}

struct Copier<'a> {
    order: &'a CopyOrder,
    /// The threads whose records are copied; the copy's own id takes the place of theirs.
    threads: HashSet<String>,
    rewritten: Vec<u8>,
    bytes: u64,
    out: &'a mut dyn Write,
}

impl Copier<'_> {
    /// The first line: who the copy is. It is parsed and written anew, which keeps fields that are not known.
    fn identity(&mut self, source: &Path) -> io::Result<()> {
        let mut lines = Source::lines(source, None)?;
        let mut first = Value::Null;
        while let Some(line) = lines.next_line()? {
            let record: Option<Value> = line.bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
            if let Some(record) = record.filter(|record| record["type"] == "session_meta") {
                first = record;
                break;
            }
        }
        if !first.is_object() {
            first = json!({ "type": "session_meta", "payload": {} });
        }
        first["timestamp"] = json!(self.order.now);
        if first.get("ordinal").is_some() {
            first["ordinal"] = json!(0);
        }
        let payload = &mut first["payload"];
        for (key, value) in [
            ("id", json!(self.order.id)),
            ("session_id", json!(self.order.id)),
            ("forked_from_id", json!(self.order.source_id)),
            ("timestamp", json!(self.order.now)),
            ("cwd", json!(self.order.cwd.to_string_lossy())),
        ] {
            payload[key] = value;
        }
        if let Some(branch) = &self.order.branch
            && payload["git"].is_object()
        {
            payload["git"]["branch"] = json!(branch);
        }
        if let Some(payload) = payload.as_object_mut() {
            for reference in ["history_base", "forked_from_ordinal_exclusive"] {
                payload.shift_remove(reference);
            }
        }
        self.write(first.to_string().as_bytes())
    }

    fn line(&mut self, path: &Path, line: &Line<'_>) -> io::Result<()> {
        let huge = line.bytes.is_none().then(|| beginning_of_line(path, line.offset)).flatten();
        let Some(record) = line.bytes.or(huge.as_deref()).and_then(Record::of) else {
            // Damage is not carried along: Codex passes over it as well.
            return Ok(());
        };
        // A legacy thread keeps the identities of its ancestors behind its own, and so does its copy. Where records are
        // numbered, one identity stands for the whole history.
        if record.kind == Kind::SessionMeta && record.ordinal.is_some() {
            return Ok(());
        }
        let Some(bytes) = line.bytes else {
            self.bytes += crate::copy::copy_range(path, line.offset, line.len, self.out)? + 1;
            return self.out.write_all(b"\n");
        };
        if !line.terminated && !Fields::of(bytes).finish() {
            return Ok(());
        }
        let mut rewrite = Rewrite::default();
        if record.kind != Kind::SessionMeta
            && let Some(payload) = Raw(bytes).get(b"payload")
        {
            for (key, value) in payload.fields() {
                let names_thread = matches!(key, b"thread_id" | b"session_id")
                    && value.string().is_some_and(|id| self.threads.contains(id.as_ref()));
                if names_thread {
                    rewrite.replace(bytes, value, string(self.order.id.as_str()));
                }
            }
        }
        let mut rewritten = std::mem::take(&mut self.rewritten);
        rewritten.clear();
        rewrite.apply(bytes, &mut rewritten);
        let written = self.write(&rewritten);
        self.rewritten = rewritten;
        written
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }
}
