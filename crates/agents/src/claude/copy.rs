//! A fork by copy: the source's records up to a turn, under a new id, as the client's own fork would write them.
//!
//! What changes in a record is its own `sessionId`, `cwd` and `gitBranch`, its `forkedFrom`, and paths into the source's
//! side folder. Everything else is carried byte for byte, records of unknown kinds included. Left out are records that
//! speak of the running source: `worktree-state` (it would put the fork into the source's worktree),
//! `queue-operation`, `api-request*`, `last-prompt`, and titles, of which the fork gets its own.

use std::io::{self, Write};
use std::path::Path;

use memchr::memmem;

use super::home;
use super::record::Record;
use super::scan::{Scan, huge_record, scan};
use crate::copy::{Copied, CopyOrder, copy_range};
use crate::fields::{Fields, Raw};
use crate::lines::{Line, LineReader};
use crate::rewrite::{Rewrite, string};

/// Writes the copy that `order` describes to `out`.
pub(super) fn copy(source: &Path, order: &CopyOrder, out: &mut dyn Write) -> io::Result<Copied> {
    let scan = scan(source, order.source_id.clone());
    let mut copier = Copier {
        order,
        cut: cut_rank(&scan, order.turns),
        index: 0,
        past_cut: false,
        old_side: side_text(source),
        new_side: side_text(&order.target),
        line: Vec::new(),
        bytes: 0,
        out,
    };
    let mut lines = LineReader::open(source, 0, Some(scan.size))?;
    while let Some(line) = lines.next_line()? {
        copier.line(source, &scan, &line)?;
    }
    if let Some(title) = &order.title {
        let record = serde_json::json!({ "type": "custom-title", "customTitle": title, "sessionId": order.id });
        copier.write(record.to_string().as_bytes())?;
    }
    Ok(Copied { bytes: copier.bytes, turns: order.turns.unwrap_or(scan.summary.turns) })
}

/// What belongs to a session outside of its transcript, copied for the fork: subagents, which get the new id, and large
/// tool results.
pub(super) fn copy_side(source: &Path, order: &CopyOrder, target_side: &Path) -> io::Result<()> {
    let side = home::side_folder(source);
    for folder in ["subagents", "tool-results"] {
        for entry in read_dir_if_any(&side.join(folder))? {
            let entry = entry?;
            if !entry.file_type()?.is_file() {
                continue;
            }
            let to = target_side.join(folder);
            std::fs::create_dir_all(&to)?;
            let to = to.join(entry.file_name());
            if folder == "subagents" && entry.path().extension().is_some_and(|extension| extension == "jsonl") {
                copy_subagent(&entry.path(), order, &to)?;
            } else {
                std::fs::copy(entry.path(), to)?;
            }
        }
    }
    Ok(())
}

fn read_dir_if_any(folder: &Path) -> io::Result<Vec<io::Result<std::fs::DirEntry>>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => Ok(entries.collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A subagent's records name the session that it works for.
fn copy_subagent(from: &Path, order: &CopyOrder, to: &Path) -> io::Result<()> {
    let mut out = io::BufWriter::new(std::fs::File::create(to)?);
    let mut lines = LineReader::open(from, 0, None)?;
    let mut rewritten = Vec::new();
    while let Some(line) = lines.next_line()? {
        let Some(bytes) = line.bytes else {
            copy_range(from, line.offset, line.len, &mut out)?;
            out.write_all(b"\n")?;
            continue;
        };
        let mut rewrite = Rewrite::default();
        if let Some(id) = Raw(bytes).get(b"sessionId") {
            rewrite.replace(bytes, id, string(order.id.as_str()));
        }
        rewritten.clear();
        rewrite.apply(bytes, &mut rewritten);
        out.write_all(&rewritten)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Where the turn after the last that is kept begins, in the order of the history.
fn cut_rank(scan: &Scan, turns: Option<u32>) -> Option<u64> {
    let next = scan.prompts.get(turns? as usize)?;
    Some(scan.history.rank(*next))
}

/// The side folder as it stands in JSON, with the slash behind it, so that no other session's folder begins alike.
fn side_text(transcript: &Path) -> Vec<u8> {
    let folder = home::side_folder(transcript);
    let quoted = string(&format!("{}/", folder.to_string_lossy()));
    quoted[1..quoted.len() - 1].to_vec()
}

struct Copier<'a> {
    order: &'a CopyOrder,
    cut: Option<u64>,
    index: u32,
    /// Whether the first record behind the cut was seen; what stands behind it beside the chain belongs to later turns.
    past_cut: bool,
    old_side: Vec<u8>,
    new_side: Vec<u8>,
    line: Vec<u8>,
    bytes: u64,
    out: &'a mut dyn Write,
}

impl Copier<'_> {
    fn line(&mut self, source: &Path, scan: &Scan, line: &Line<'_>) -> io::Result<()> {
        let Some(bytes) = line.bytes else {
            return self.huge(source, scan, line);
        };
        let record = Record::of(bytes);
        if !record.complete {
            // Damage is not carried along: the client passes over it, and a cut line would glue itself to the next.
            return Ok(());
        }
        let is_chain = record.is_chain();
        if is_chain {
            if !self.takes(scan) {
                return Ok(());
            }
        } else if self.past_cut || is_of_the_source(bytes) {
            return Ok(());
        }
        self.rewrite(bytes, is_chain)
    }

    /// Whether the next chain record is active and stands before the cut.
    fn takes(&mut self, scan: &Scan) -> bool {
        let index = self.index;
        self.index += 1;
        if !scan.history.is_active(index) {
            return false;
        }
        let kept = self.cut.is_none_or(|cut| scan.history.rank(index) < cut);
        self.past_cut |= !kept;
        kept
    }

    fn rewrite(&mut self, bytes: &[u8], is_chain: bool) -> io::Result<()> {
        let mut rewrite = Rewrite::default();
        let mut uuid = None;
        let mut forked = false;
        for (key, value) in Fields::of(bytes) {
            match key {
                b"sessionId" => rewrite.replace(bytes, value, string(self.order.id.as_str())),
                b"cwd" if is_chain => rewrite.replace(bytes, value, string(&self.order.cwd.to_string_lossy())),
                b"gitBranch" if is_chain => {
                    rewrite.replace(bytes, value, string(self.order.branch.as_deref().unwrap_or("HEAD")));
                }
                b"forkedFrom" if is_chain => forked = true,
                b"uuid" => uuid = Some(value),
                _ => {}
            }
        }
        if let (true, Some(uuid)) = (is_chain, uuid) {
            let mut from = b"{\"sessionId\":".to_vec();
            from.extend(string(self.order.source_id.as_str()));
            from.extend_from_slice(b",\"messageUuid\":");
            from.extend_from_slice(uuid.0);
            from.push(b'}');
            match forked.then(|| Raw(bytes).get(b"forkedFrom")).flatten() {
                Some(old) => rewrite.replace(bytes, old, from),
                None => rewrite.add_field(bytes, "forkedFrom", &from),
            }
        }
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        rewrite.apply(bytes, &mut line);
        self.repoint(&mut line);
        let written = self.write(&line);
        self.line = line;
        written
    }

    /// Paths into the source's side folder lead into the fork's, which holds a copy of it.
    fn repoint(&self, line: &mut Vec<u8>) {
        let finder = memmem::Finder::new(&self.old_side);
        let Some(first) = finder.find(line) else {
            return;
        };
        let mut out = line[..first].to_vec();
        let mut at = first;
        while let Some(found) = finder.find(&line[at..]) {
            out.extend_from_slice(&line[at..at + found]);
            out.extend_from_slice(&self.new_side);
            at += found + self.old_side.len();
        }
        out.extend_from_slice(&line[at..]);
        *line = out;
    }

    /// A line that does not fit into memory is copied as it is. Its `sessionId` stays the source's, which the client
    /// does not mind: the file's name decides.
    fn huge(&mut self, source: &Path, scan: &Scan, line: &Line<'_>) -> io::Result<()> {
        let is_chain = huge_record(source, line)?.is_some_and(|record| record.is_chain());
        if is_chain && !self.takes(scan) || !is_chain && self.past_cut {
            return Ok(());
        }
        self.bytes += copy_range(source, line.offset, line.len, self.out)? + 1;
        self.out.write_all(b"\n")
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }
}

/// Whether a side record speaks of the running source and not of the conversation.
fn is_of_the_source(line: &[u8]) -> bool {
    const LEFT_OUT: [&[u8]; 7] = [
        b"worktree-state",
        b"queue-operation",
        b"last-prompt",
        b"custom-title",
        b"agent-name",
        b"relocated",
        b"session-owner",
    ];
    let kind = Raw(line).get(b"type").and_then(Raw::plain).unwrap_or_default();
    LEFT_OUT.contains(&kind) || kind.starts_with(b"api-request")
}
