//! A fork by copy: the messages of the history up to a turn, under a new id, in the file of another project.
//!
//! The client sends what is in the file. It stores the result of a tool with its call and again in a message of the
//! user, and so sends it twice when it resumes a session; after that, it stores the results of all parallel calls with
//! each of them. The real API refuses both. A copy has each result once, with its call, and so can be resumed where its
//! source can't. Everything else is copied byte for byte.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3Default;

use super::history::{Entry, History, is_old, load, range};
use super::message::{IMPORTED, Kind, Message, answered_call, parts};
use super::scan::summary_of;
use crate::copy::{Copied, CopyRequest, ReadBack};
use crate::fields::Raw;
use crate::files::{fingerprint, open_regular};
use crate::follow::FileGrowth;
use crate::seal::Seal;

/// How much of a long message is processed at once.
const BLOCK: usize = 64 << 10;

/// Writes the copy that `order` describes to `out`.
pub(super) fn copy(source: &Path, order: &CopyRequest, out: &mut dyn Write) -> io::Result<Copied> {
    let history = History::of(source)?;
    let mut copier = Copier { out, seal: Seal::default(), bytes: 0 };
    for line in own_lines(source, order) {
        copier.line(line.to_string().as_bytes())?;
    }
    let (mut file, mut buffer) = (open_regular(source)?, Vec::new());
    let mut pairing = Pairing { answered: &history.answered, told: HashSet::new() };
    let mut turn_keys = Vec::new();
    for entry in history.up_to(order.turns) {
        if matches!(entry.kind, Kind::Context | Kind::Import) {
            continue;
        }
        if entry.kind == Kind::Prompt {
            turn_keys.push(entry.key);
        }
        if !load(&mut file, entry, &mut buffer)? {
            copier.long_record(source, entry)?;
        } else if let Some(line) = pairing.once(&buffer) {
            let line = if is_old(source) { Cow::Owned(Minify::default().filter(&line)) } else { line };
            copier.record(&line)?;
        }
    }
    Ok(Copied { bytes: copier.bytes, turn_keys, seal: copier.seal })
}

/// Reads a copy back from `path`, where it may still be growing.
pub(super) fn read_back(path: &Path, order: &CopyRequest, growing: Option<&FileGrowth>) -> io::Result<ReadBack> {
    let history = History::of_copy(path, growing)?;
    let mut seal = Seal::default();
    let (mut file, mut buffer) = (File::open(path)?, Vec::new());
    let mut pairing = Pairing { answered: &history.answered, told: HashSet::new() };
    let origin = history.meta.imported_from.is_none().then(|| "it lacks its parent pointer".to_owned());
    let mut fault = origin;
    let mut note = |what: &str| {
        fault.get_or_insert_with(|| what.to_owned());
    };
    for entry in history.entries.iter().filter(|entry| entry.kind != Kind::Import) {
        if entry.kind == Kind::Context {
            note("it contains context from the source's project");
        }
        if !load(&mut file, entry, &mut buffer)? {
            seal.digest(digest(range(path, entry.start, entry.len)?)?);
        } else {
            if pairing.once(&buffer).as_deref() != Some(&buffer) {
                note("it contains the result of a tool call twice");
            }
            seal.stretch(&buffer);
        }
        seal.end_record();
    }
    let summary = summary_of(path, &order.target, &history);
    Ok(ReadBack { summary, bytes: history.size, seal, fault })
}

/// The first lines, which are the copy's own: its identity, and where it comes from, as the client's own fork has it.
fn own_lines(source: &Path, order: &CopyRequest) -> [Value; 2] {
    let project = super::sha256::hex(order.cwd.to_string_lossy().as_bytes());
    let mut identity = json!({
        "sessionId": order.id,
        "projectHash": project,
        "startTime": order.now,
        "lastUpdated": order.now,
        "kind": "main",
    });
    if let Some(title) = &order.title {
        identity["summary"] = json!(title);
    }
    let origin = json!({
        "id": format!("import-{}", order.now.as_millisecond()),
        "type": "info",
        "content": format!("{IMPORTED}{}", source.display()),
        "timestamp": order.now,
    });
    [identity, origin]
}

struct Copier<'a> {
    out: &'a mut dyn Write,
    seal: Seal,
    bytes: u64,
}

impl Copier<'_> {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }

    fn record(&mut self, line: &[u8]) -> io::Result<()> {
        self.seal.stretch(line);
        self.seal.end_record();
        self.line(line)
    }

    /// A message that is too long to be held. Only one with pictures is, and it has no results.
    fn long_record(&mut self, source: &Path, entry: &Entry) -> io::Result<()> {
        let mut minify = is_old(source).then(Minify::default);
        let (mut hash, mut block) = (Xxh3Default::new(), vec![0; BLOCK]);
        let mut part = range(source, entry.start, entry.len)?;
        loop {
            let count = part.read(&mut block)?;
            if count == 0 {
                break;
            }
            let piece = match &mut minify {
                Some(minify) => Cow::Owned(minify.filter(&block[..count])),
                None => Cow::Borrowed(&block[..count]),
            };
            hash.update(&piece);
            self.out.write_all(&piece)?;
            self.bytes += piece.len() as u64;
        }
        self.out.write_all(b"\n")?;
        self.bytes += 1;
        self.seal.digest(hash.digest());
        self.seal.end_record();
        Ok(())
    }
}

fn digest(mut part: impl Read) -> io::Result<u64> {
    let (mut hash, mut block) = (Xxh3Default::new(), vec![0; BLOCK]);
    loop {
        match part.read(&mut block)? {
            0 => return Ok(hash.digest()),
            count => hash.update(&block[..count]),
        }
    }
}

/// Sees to it that each result is stored once.
struct Pairing<'a> {
    /// The calls whose results are stored with them.
    answered: &'a HashSet<u64>,
    /// The calls whose results are in a message of the user.
    told: HashSet<u64>,
}

impl Pairing<'_> {
    /// The message with each result once; nothing if that leaves nothing.
    fn once<'a>(&mut self, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(message) = Message::of(bytes) else { return Some(Cow::Borrowed(bytes)) };
        match message.kind {
            Kind::Results => self.results(&message, bytes),
            Kind::Answer => Some(answer(&message, bytes)),
            _ => Some(Cow::Borrowed(bytes)),
        }
    }

    fn results<'a>(&mut self, message: &Message<'_>, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let mut is_wanted = true;
        let mut left = Vec::new();
        for part in parts(message.content) {
            if let Some(id) = answered_call(part) {
                let key = fingerprint(id.as_bytes());
                is_wanted = !self.answered.contains(&key) && self.told.insert(key);
            }
            left.extend(is_wanted.then_some(part));
        }
        match left.len() {
            0 => None,
            count if count == parts(message.content).count() => Some(Cow::Borrowed(bytes)),
            _ => Some(replaced(bytes, &[(message.content, list(&left))])),
        }
    }
}

/// An answer in which each call has its own results only.
fn answer<'a>(message: &Message<'_>, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let mut changes = Vec::new();
    for call in message.calls.elements() {
        let (Some(result), id) = (call.get(b"result"), call.get(b"id").and_then(Raw::string)) else { continue };
        let (mut is_own, mut has_own, mut left) = (true, false, Vec::new());
        for part in parts(result) {
            if part.get(b"functionResponse").is_some() {
                is_own = !has_own && answered_call(part) == id;
                has_own |= is_own;
            }
            left.extend(is_own.then_some(part));
        }
        // A result without an id is the call's own.
        if has_own && left.len() < parts(result).count() {
            changes.push((result, list(&left)));
        }
    }
    replaced(bytes, &changes)
}

fn list(parts: &[Raw<'_>]) -> Vec<u8> {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.0).collect();
    [&b"["[..], &parts.join(&b","[..]), b"]"].concat()
}

/// A line in which values are replaced, given in their order.
fn replaced<'a>(line: &'a [u8], changes: &[(Raw<'_>, Vec<u8>)]) -> Cow<'a, [u8]> {
    if changes.is_empty() {
        return Cow::Borrowed(line);
    }
    let (mut changed, mut at) = (Vec::with_capacity(line.len()), 0);
    for (value, new) in changes {
        let start = value.0.as_ptr().addr() - line.as_ptr().addr();
        changed.extend_from_slice(&line[at..start]);
        changed.extend_from_slice(new);
        at = start + value.0.len();
    }
    changed.extend_from_slice(&line[at..]);
    Cow::Owned(changed)
}

/// Removes white space between values, piece by piece. Old versions wrote one message over many lines.
#[derive(Default)]
struct Minify {
    in_string: bool,
    escaped: bool,
}

impl Minify {
    fn filter(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().copied().filter(|byte| self.keeps(*byte)).collect()
    }

    fn keeps(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ => return self.in_string || !byte.is_ascii_whitespace(),
        }
        true
    }
}
