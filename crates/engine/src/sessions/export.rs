//! Sessions as Markdown files, for other tools to read: one file per session, written again only when it changed.
//!
//! The folder contains all state: each file starts with a mark of its source. Other files in the folder are never
//! touched, and recognized secrets are redacted unless the user wants to keep them.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jiff::Timestamp;
use transcript::render::{Markdown, Part, Renderer, Tools};
use transcript::{SessionView, secrets, text};

use crate::ctx::Ctx;
use crate::private;
use crate::sessions::catalog::Progress;
use crate::sessions::session::Session;
use crate::sessions::survey::Filter;
use crate::sessions::{Error, Result};

/// Changes with every change of what is written.
const FORMAT: u32 = 2;
/// The prefix of the line that records the source of a file.
const MARK: &str = "tine: ";

/// What to export, and where to.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    /// The folder of the files.
    pub folder: PathBuf,
    /// Which sessions.
    pub filter: Filter,
    /// Only sessions that were written to since.
    pub since: Option<Timestamp>,
    /// How much of the tools.
    pub tools: Tools,
    /// Whether secrets of known shapes stay.
    pub keep_secrets: bool,
    /// Whether to remove files of sessions that no longer exist.
    pub prune: bool,
}

/// What an export did.
#[derive(Debug, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exported {
    /// Files that were written.
    pub written: usize,
    /// Files that were up to date.
    pub unchanged: usize,
    /// Files removed because their sessions no longer exist.
    pub removed: usize,
    /// Secrets that were masked in the files that were written.
    pub masked: usize,
    /// What did not work.
    pub errors: Vec<String>,
}

/// Writes sessions as Markdown files.
pub(crate) fn export(ctx: &Ctx, request: &ExportRequest, progress: &dyn Progress) -> Result<Exported> {
    let sessions = crate::sessions::survey::all_sessions(ctx, progress)?;
    let failed = |source| Error::Export { folder: request.folder.clone(), source };
    private::create_folder(&request.folder).map_err(failed)?;
    let names = file_names(&sessions);
    let mut exported = Exported::default();
    let asked: Vec<usize> = (0..sessions.len()).filter(|at| is_asked(request, &sessions[*at])).collect();
    for (done, at) in asked.iter().enumerate() {
        let path = request.folder.join(&names[*at]);
        match export_one(ctx, &sessions[*at], &path, request) {
            Ok(Some(masked)) => {
                exported.written += 1;
                exported.masked += masked;
            }
            Ok(None) => exported.unchanged += 1,
            // A full disk is full for all of them.
            Err(Error::Export { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {
                return Err(failed(source));
            }
            Err(error) => exported.errors.push(error.to_string()),
        }
        progress.step(done + 1, asked.len());
    }
    if request.prune {
        let kept: HashSet<&str> = names.iter().map(String::as_str).collect();
        exported.removed = prune(ctx, &request.folder, &kept, &mut exported.errors).map_err(failed)?;
    }
    Ok(exported)
}

/// Writes one session, unless its file is up to date; returns how many secrets were masked.
fn export_one(ctx: &Ctx, session: &Session, path: &Path, request: &ExportRequest) -> Result<Option<usize>> {
    let failed = |source| Error::Export { folder: path.to_owned(), source };
    let (tools, masks) = (request.tools, !request.keep_secrets);
    let mark = mark(session, request);
    match written_mark(path) {
        Ok(Some(written)) if written == mark => return Ok(None),
        Ok(Some(_)) => {}
        Ok(None) => return Err(failed(io::Error::other("a file with this name exists and was not written by tine"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut blocks = crate::sessions::survey::read_all(ctx, session, None)?;
    let beside = path.with_extension(format!("md.{}.part", std::process::id()));
    let mut write = || -> io::Result<usize> {
        let file = private::open_file(&beside)?;
        file.set_len(0)?;
        let mut out = BufWriter::new(file);
        let view = &session.view;
        let mut masked = 0;
        header(&mut out, view, &mark)?;
        let mut renderer = Markdown::new(&mut out, tools);
        renderer.begin(view, Part::Whole)?;
        while let Some(mut block) = blocks.next_block() {
            if masks {
                masked += secrets::mask_block(&mut block.kind);
            }
            renderer.block(&block)?;
        }
        renderer.end(blocks.defects())?;
        fs::rename(&beside, path)?;
        Ok(masked)
    };
    write().map(Some).map_err(|source| {
        fs::remove_file(&beside).or_log(format_args!("remove {}", beside.display()));
        failed(source)
    })
}

/// Removes the files of sessions that no longer exist. If an agent's folder could not be read, removes nothing.
fn prune(ctx: &Ctx, folder: &Path, kept: &HashSet<&str>, errors: &mut Vec<String>) -> io::Result<usize> {
    if !ctx.warnings.borrow().is_empty() {
        errors.push("removed nothing, because some sessions could not be read".to_owned());
        return Ok(0);
    }
    let mut removed = 0;
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let is_gone = name.to_str().is_some_and(|name| name.ends_with(".md") && !kept.contains(name));
        let is_ours = || matches!(written_mark(&entry.path()), Ok(Some(_)));
        if is_gone && entry.file_type().is_ok_and(|kind| kind.is_file()) && is_ours() {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_asked(request: &ExportRequest, session: &Session) -> bool {
    let project = request.filter.directory.as_deref().map(crate::sessions::project::Project::of);
    let view = &session.view;
    !view.unstarted
        && request.filter.agent.is_none_or(|agent| agent == view.agent)
        && request.since.is_none_or(|since| session.updated() >= since)
        && project.is_none_or(|project| view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd)))
}

/// The name of each session's file: its agent and id, and part of its path if the id is not unique.
fn file_names(sessions: &[Session]) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let plain = |session: &Session| format!("{}-{}", session.view.agent, session.view.id);
    for session in sessions {
        *counts.entry(plain(session)).or_default() += 1;
    }
    let name = |session: &Session| match counts[&plain(session)] {
        1 => format!("{}.md", plain(session)),
        _ => format!("{}-{:08x}.md", plain(session), hash(session.view.path.as_os_str().as_encoded_bytes()) as u32),
    };
    sessions.iter().map(name).collect()
}

/// What a file is made from: it changes whenever the file would.
fn mark(session: &Session, request: &ExportRequest) -> String {
    let view = &session.view;
    let (tools, keep_secrets) = (request.tools, request.keep_secrets);
    let modified = fs::metadata(&view.path).map_or(0, |metadata| agents::stamp(&metadata).modified);
    let made_from = format!("{FORMAT} {tools:?} {keep_secrets} {} {modified} {view:?}", session.size);
    // The state of the session is not part of the file.
    let made_from = made_from.replace(&format!("state: {:?}", view.state), "");
    format!("{:016x}", hash(made_from.as_bytes()))
}

/// The mark of an existing file; `None` if it was not written by tine.
fn written_mark(path: &Path) -> io::Result<Option<String>> {
    let mut head = [0; 64];
    let mut length = 0;
    let mut file = File::open(path)?;
    while length < head.len() {
        match file.read(&mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    let head = String::from_utf8_lossy(&head[..length]);
    let mark = head.strip_prefix("---\n").and_then(|rest| rest.strip_prefix(MARK)).and_then(|rest| rest.lines().next());
    Ok(mark.map(str::to_owned))
}

/// The header for programs: YAML, with every text quoted as in JSON.
fn header(out: &mut impl Write, view: &SessionView, mark: &str) -> io::Result<()> {
    let quoted = |value: &str| serde_json::Value::from(text::one_line(value)).to_string();
    writeln!(out, "---\n{MARK}{mark}\nsession: {}\nagent: {}", quoted(view.id.as_str()), view.agent)?;
    let facts = [
        ("name", view.name.as_ref().map(|name| name.as_str().to_owned())),
        ("title", view.title.as_deref().map(|title| text::clip(title, 200))),
        ("directory", view.cwd.as_deref().map(|cwd| cwd.to_string_lossy().into_owned())),
        ("branch", view.branch.clone()),
        ("created", view.created.map(|time| time.to_string())),
        ("updated", view.updated.map(|time| time.to_string())),
        ("parent", view.parent.as_ref().map(|parent| parent.id.as_str().to_owned())),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            writeln!(out, "{name}: {}", quoted(&value))?;
        }
    }
    writeln!(out, "turns: {}\n---\n", view.turns)
}

fn hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
