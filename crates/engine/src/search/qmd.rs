//! Queries qmd, a search engine for Markdown files, on a collection that the user created from `tine export`.
//!
//! qmd has three search modes. `query` and `vsearch` need models of a few gigabytes, and `vsearch` needs vectors;
//! `search` needs nothing. They are tried in this order, and tine reports why one did not answer. Measured with qmd
//! 2.8.3: without its models and offline, `query` tries for minutes, so each step has a time limit; without vectors,
//! `vsearch` succeeds with an empty list and a warning; with an unknown collection, it fails immediately.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use diagnostics::OrLog;
use serde::Deserialize;
use transcript::{BlockKind, SessionId, text};

use crate::ctx::Ctx;
use crate::search::error::Result;
use crate::search::index::work::Missing;
use crate::search::query::{Limits, Query, limits};
use crate::search::rank::Grounds;
use crate::search::show::snippet::Snippet;
use crate::search::show::{Answer, EngineError, Found, exported};
use crate::sessions::catalog::Progress;
use crate::sessions::project::Project;
use crate::sessions::session::Session;
use crate::sessions::survey::{self, SeedText};

/// The default collection.
pub const DEFAULT_COLLECTION: &str = "claude-sessions";
/// The engine of a fallback answer: the most recent sessions.
pub const RECENT: &str = "recent";

/// The search modes, best first: the name of the step and qmd's command.
const STEPS: [(&str, &str); 3] = [("qmd-query", "query"), ("qmd-vsearch", "vsearch"), ("qmd-search", "search")];
/// The time limit of each; `TINE_QMD_TIMEOUT` overrides it.
const PATIENCE: Duration = Duration::from_secs(20);
/// The maximum output that is read.
const MOST: u64 = 16 << 20;
/// A collection may contain several files per session, and other files.
const SURPLUS: usize = 3;

/// A document in qmd's output.
#[derive(Debug, Deserialize)]
struct Document {
    file: String,
    #[serde(default)]
    score: f32,
    #[serde(default)]
    snippet: String,
}

/// Searches a qmd collection. If qmd does not answer, returns the most recent sessions instead.
pub(crate) fn search_qmd(
    ctx: &Ctx,
    query: &Query,
    given: &Limits,
    collection: &str,
    limit: usize,
    progress: &dyn Progress,
) -> Result<Answer> {
    let limits = limits::resolved(ctx, query, given);
    let mut answer = Answer {
        query: query.text.clone(),
        engine: RECENT,
        grounds: Grounds::default(),
        results: Vec::new(),
        no_sessions: false,
        corrections: Vec::new(),
        unknown: Vec::new(),
        missing: Missing::default(),
        notices: Vec::new(),
        errors: Vec::new(),
        left_out: 0,
        unlisted: Vec::new(),
        remains: None,
    };
    let mut sessions = crate::sessions::survey::all_sessions(ctx, progress)?;
    let known = sessions.iter().map(|session| session.view.id.as_str().to_lowercase()).collect();
    let lower = |id: &SessionId| id.as_str().to_lowercase();
    let seeds = ctx.registry().seeds()?;
    let sources = seeds.iter().map(|seeded| (lower(&seeded.id), lower(&seeded.parent))).collect();
    let project = limits.directory.as_deref().map(Project::of);
    sessions.retain(|session| {
        let branches = session.view.branch.iter().chain(&session.details.earlier_branches).collect::<Vec<_>>();
        let in_project = |project: &Project| session.view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
        limits.agent.is_none_or(|agent| agent == session.view.agent)
            && project.as_ref().is_none_or(in_project)
            && limits.branch.as_ref().is_none_or(|branch| branches.contains(&branch))
            && limits.since.is_none_or(|since| session.updated() >= since)
            && limits.until.is_none_or(|until| session.view.created.is_none_or(|created| created < until))
    });
    if limits.file.is_some() || limits.tool.is_some() {
        answer.notices.push("qmd does not support the filters `file:` and `tool:`; they were ignored".to_owned());
    }
    match ctx.context().find_program("qmd") {
        Some(program) => {
            let patience = ctx.context().variable("TINE_QMD_TIMEOUT").and_then(|seconds| seconds.parse().ok());
            let qmd = Qmd {
                program: &program,
                directory: &ctx.context().cwd,
                collection,
                patience: patience.map_or(PATIENCE, Duration::from_secs),
            };
            let asked = QmdQuestion { text: &query.typed, limits: &limits, sessions: &sessions, known, sources, limit };
            ask_qmd(ctx, &qmd, &asked, &mut answer);
        }
        None => {
            let message = format!(
                "qmd is not installed: `npm install -g @tobilu/qmd`, then {}",
                how_to_create_collection(collection)
            );
            answer.errors.push(EngineError { engine: "qmd", message });
        }
    }
    if answer.engine == RECENT {
        answer.results = sessions.into_iter().take(limit).map(recent).collect();
    }
    Ok(answer)
}

/// Tries every mode until one answers.
fn ask_qmd(ctx: &Ctx, qmd: &Qmd<'_>, asked: &QmdQuestion<'_>, answer: &mut Answer) {
    for (step, word) in STEPS {
        let count = asked.limit.saturating_mul(SURPLUS).to_string();
        let documents = match qmd.run(&[word, "--json", "-n", &count, "-c", qmd.collection, "--", asked.text]) {
            Ok(printed) => printed.documents(),
            Err(message) => Err(message),
        };
        let message = match documents {
            Ok(documents) => {
                let unknown = results_of_qmd(ctx, qmd, documents, asked, answer);
                if unknown > 0 {
                    let what = if unknown == 1 { "one qmd document that belongs" } else { "qmd documents that belong" };
                    answer.notices.push(format!("ignored {what} to no matching session"));
                }
                answer.engine = step;
                return;
            }
            Err(message) => message,
        };
        let is_missing = message.contains("Collection not found");
        let hint = if is_missing { format!("; {}", how_to_create_collection(qmd.collection)) } else { String::new() };
        answer.errors.push(EngineError { engine: step, message: format!("{message}{hint}") });
        if is_missing {
            return;
        }
    }
}

/// Adds the documents that belong to sessions; returns how many do not.
fn results_of_qmd(
    ctx: &Ctx,
    qmd: &Qmd<'_>,
    documents: Vec<Document>,
    asked: &QmdQuestion<'_>,
    answer: &mut Answer,
) -> usize {
    let by_id: HashMap<String, &Session> =
        asked.sessions.iter().rev().map(|session| (session.view.id.as_str().to_lowercase(), session)).collect();
    let (mut seen, mut unknown) = (HashSet::new(), 0);
    for document in documents {
        if answer.results.len() >= asked.limit {
            break;
        }
        let file = file_name(&document.file);
        let mut header = None;
        let named = ids_in(file).find(|id| by_id.contains_key(id) || asked.known.contains(id));
        let id = named.or_else(|| {
            header = qmd.header(&document.file);
            header.as_deref().and_then(id_of_header).or_else(|| ids_in(file).next())
        });
        let lines = said_lines(&document.snippet);
        let snippet = text::one_line(&transcript::secrets::mask(&lines.join(" ")).0);
        let snippet = Snippet { text: text::prefix(&snippet, 400).to_owned(), marks: Vec::new() };
        let score = if document.score.is_finite() { document.score.clamp(0.0, 1.0) } else { 0.0 };
        let found = match id.as_ref().map(|id| (id, by_id.get(id).copied())) {
            Some((id, Some(session))) => {
                let turn = turn_that_says(ctx, session, &lines);
                // A match that is only in a session's seed belongs to the source.
                let source = asked.sources.get(id).filter(|_| turn.is_none()).and_then(|source| by_id.get(source));
                let session = source.copied().unwrap_or(session);
                let turn = turn.or_else(|| turn_that_says(ctx, session, &lines)).unwrap_or(session.view.turns);
                let source = Some(document.file.clone());
                Some(Found { score, turn, snippet, source, ..recent(session.clone()) })
            }
            Some((id, None)) if !asked.known.contains(id) => SessionId::new(id.clone()).ok().and_then(|id| {
                let session = exported::Header(header.as_deref().unwrap_or_default()).session(id, file);
                let is_asked = exported::is_asked(&session.view, asked.limits);
                is_asked.then(|| exported::found(session, snippet, score, document.file.clone()))
            }),
            _ => None,
        };
        match found {
            Some(found) if seen.insert(found.session.view.id.clone()) => answer.results.push(found),
            Some(_) => {}
            None => unknown += 1,
        }
    }
    unknown
}

/// The first turn that contains one of these lines, longest line first.
fn turn_that_says(ctx: &Ctx, session: &Session, lines: &[String]) -> Option<u32> {
    let longest = folded(lines.iter().max_by_key(|line| line.len())?);
    if longest.len() < 8 {
        return None;
    }
    let mut blocks = survey::read(ctx, session, None, SeedText::Folded).ok()?;
    while let Some(block) = blocks.next_block() {
        let (BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. }) = &block.kind else { continue };
        if folded(text).contains(&longest) {
            return Some(block.turn.max(1));
        }
    }
    None
}

/// How to create a collection.
fn how_to_create_collection(collection: &str) -> String {
    let collection = text::one_line(collection);
    format!("create a collection with `tine export DIR` and `qmd collection add DIR --name {collection}`")
}

/// A session as a result without a match.
fn recent(session: Session) -> Found {
    let turn = session.view.turns;
    Found { score: 0.0, turn, snippet: Snippet::default(), warning: None, forks: Vec::new(), source: None, session }
}

/// The search.
struct QmdQuestion<'a> {
    text: &'a str,
    limits: &'a Limits,
    /// The selected sessions.
    sessions: &'a [Session],
    /// The ids of all sessions, in lower case: sessions that exist and are not selected are not missing.
    known: HashSet<String>,
    /// Sessions that started with the transcript of another one, and that session, also in lower case.
    sources: HashMap<String, String>,
    limit: usize,
}

/// The id of the session that a document was exported from, in its header.
fn id_of_header(text: &str) -> Option<String> {
    let mut lines = text.lines().filter(|line| line.to_lowercase().contains("session"));
    lines.find_map(|line| ids_in(line).next())
}

/// qmd, and its query.
struct Qmd<'a> {
    program: &'a Path,
    directory: &'a Path,
    collection: &'a str,
    patience: Duration,
}

/// Its output.
struct Printed {
    out: String,
    err: String,
}

impl Printed {
    /// The documents. An empty list counts as no answer: another mode may find some.
    fn documents(&self) -> std::result::Result<Vec<Document>, String> {
        // If models are loaded, other output may precede the list.
        let from = self.out.find('[').unwrap_or(0);
        let documents: Vec<Document> =
            serde_json::from_str(&self.out[from..]).map_err(|error| format!("cannot read its output: {error}"))?;
        if documents.is_empty() {
            return Err(last_line(&self.err).unwrap_or_else(|| "no results".to_owned()));
        }
        Ok(documents)
    }
}

impl Qmd<'_> {
    /// The first lines of a document.
    fn header(&self, file: &str) -> Option<String> {
        self.run(&["get", &format!("{file}:1:15")]).ok().map(|printed| printed.out)
    }

    /// Runs it until it ends or the time limit is reached.
    fn run(&self, arguments: &[&str]) -> std::result::Result<Printed, String> {
        let mut command = Command::new(self.program);
        command.args(arguments).current_dir(self.directory).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // qmd starts another process; both must end at the time limit.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| format!("cannot start it: {error}"))?;
        let (out, err) = (read_aside(child.stdout.take()), read_aside(child.stderr.take()));
        let status = self.wait(&mut child)?;
        let printed = Printed { out: collect(out), err: collect(err) };
        if status.success() {
            return Ok(printed);
        }
        let said = last_line(&printed.err).or_else(|| last_line(&printed.out));
        Err(said.unwrap_or_else(|| format!("it failed: {status}")))
    }

    fn wait(&self, child: &mut Child) -> std::result::Result<ExitStatus, String> {
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if begun.elapsed() < self.patience => thread::sleep(Duration::from_millis(5)),
                Ok(None) => {
                    end(child);
                    let seconds = self.patience.as_secs();
                    return Err(format!("it did not answer within {seconds} seconds; `qmd pull` fetches its models"));
                }
                Err(error) => return Err(format!("cannot wait for it: {error}")),
            }
        }
    }
}

/// Ends a child process and its children.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).or_log("kill qmd");
    }
    child.kill().or_log("kill a process");
    child.wait().or_log("wait for a process");
}

type Aside = Option<thread::JoinHandle<Vec<u8>>>;

fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Aside {
    pipe.map(|pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.take(MOST).read_to_end(&mut bytes).or_log("read what qmd printed");
            bytes
        })
    })
}

/// The output so far. tine does not wait for processes that keep the pipe open after qmd has ended.
fn collect(aside: Aside) -> String {
    let Some(reader) = aside else { return String::new() };
    let begun = Instant::now();
    while !reader.is_finished() && begun.elapsed() < Duration::from_secs(2) {
        thread::sleep(Duration::from_millis(1));
    }
    let bytes = if reader.is_finished() { reader.join().unwrap_or_default() } else { Vec::new() };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last non-empty line, safe to print.
fn last_line(printed: &str) -> Option<String> {
    let lines = printed.lines().rev().map(text::one_line);
    lines.map(|line| text::clip(line.trim(), 300)).find(|line| !line.is_empty())
}

fn file_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Everything in a text that looks like a session id, which is a UUID for every agent.
fn ids_in(text: &str) -> impl Iterator<Item = String> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    const LENGTH: usize = 36;
    let is_id = |candidate: &str| {
        let mut groups = candidate.split('-');
        GROUPS.iter().all(|length| {
            groups.next().is_some_and(|group| group.len() == *length && group.bytes().all(|b| b.is_ascii_hexdigit()))
        })
    };
    (0..text.len().saturating_sub(LENGTH - 1))
        .filter_map(move |at| text.get(at..at + LENGTH))
        .filter(move |candidate| is_id(candidate))
        .map(str::to_lowercase)
}

/// The lines of a snippet from the conversation, without qmd's own and without Markdown syntax.
fn said_lines(snippet: &str) -> Vec<String> {
    // The lines between the blocks of a seed.
    let is_mark = |line: &str| line.starts_with("<<<") && line.ends_with(">>>");
    let is_said = |line: &&str| {
        !line.is_empty() && !line.starts_with("@@ ") && !line.starts_with('#') && *line != "---" && !is_mark(line)
    };
    let lines = snippet.lines().map(str::trim).filter(is_said);
    lines.map(|line| line.trim_start_matches(['>', '-', '*', ' ']).to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Letters and digits in lower case: what remains without Markdown syntax.
fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_names_and_headers() {
        const ID: &str = "1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21";
        let check = |text: &str, expected: &[&str]| assert_eq!(ids_in(text).collect::<Vec<_>>(), expected, "{text}");
        check(&format!("claude-{ID}.md"), &[ID]);
        check(&format!("codex-{ID}-0a1b2c3d.md"), &[ID]);
        check(&format!("{}.md", ID.to_uppercase()), &[ID]);
        check(&format!("3: session: \"{ID}\""), &[ID]);
        check("2026-11-10-notes.md", &[]);
        check("ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé", &[]);
        check("", &[]);
    }

    #[test]
    fn what_was_said_is_left_of_a_snippet() {
        let lines = said_lines(
            "@@ -7,4 @@ (6 before, 3 after)\n\n## Turn 1\n<<<f00d user, turn 1>>>\n> Why do users land there?\n- **so**",
        );
        assert_eq!(lines, ["Why do users land there?", "so**"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_ends_with_all_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("qmd");
        let script = "#!/bin/sh\necho $$ > pid\nsleep 60 & echo $! > child\nwait\n";
        testkit::sandbox::install_program(&program, script.as_bytes());
        let patience = Duration::from_millis(300);
        let qmd = Qmd { program: &program, directory: folder.path(), collection: "x", patience };
        assert!(qmd.run(&["query"]).err().unwrap().contains("did not answer"));
        let child: i32 = std::fs::read_to_string(folder.path().join("child")).unwrap().trim().parse().unwrap();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        let begun = Instant::now();
        // What was orphaned and ended may wait a moment to be buried.
        let runs = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).unwrap_or_default();
            rustix::process::test_kill_process(child).is_ok() && !state.contains(") Z ")
        };
        while runs() && begun.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!runs());
    }
}
