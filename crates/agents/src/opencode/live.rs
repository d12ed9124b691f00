//! Which sessions a process has open, and what it is doing.
//!
//! A process holds the database open and takes no lock, so the system only shows which processes are OpenCode. With tine's
//! plugin, each of them says in a file which sessions it has and what they do. Without it, the session is the one on the
//! command line, or else the one that was written to last in the directory of the process since it began.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::params;
use serde::Deserialize;
use transcript::{SessionId, State};

use super::home::OpenCodeFolders;
use super::{OpenCode, database, options, plugin};
use crate::live::with_closed_end;
use crate::options::Choice;
use crate::process::{arguments_of, began_at, directory_of, is_running, name_of};
use crate::{Holder, Live, LiveSession, LiveState, Screen};

impl LiveState for OpenCode {
    fn live(&self) -> Live {
        let Some(proc) = self.proc.as_deref().filter(|proc| proc.join("self").exists() || proc.is_dir()) else {
            return Live { sessions: HashMap::new(), weak: Some("this system does not list processes") };
        };
        Live { sessions: sessions(&self.home, proc), weak: None }
    }

    fn reports_state(&self) -> bool {
        false
    }

    fn read_screen(&self, screen: &str) -> Screen {
        read_screen(screen)
    }

    fn as_plain_input(&self, text: &str) -> String {
        // `/` opens the list of commands and `!` the shell, but only as the first character.
        let text = with_closed_end(text);
        if text.starts_with(['/', '!']) { format!(" {text}") } else { text }
    }
}

fn sessions(home: &OpenCodeFolders, proc: &Path) -> HashMap<SessionId, LiveSession> {
    let mut open = HashMap::new();
    let Ok(database) = home.database.canonicalize() else { return open };
    let mut reported = reports(home, proc);
    for pid in processes(proc, &database) {
        if let Some(sessions) = reported.remove(&pid) {
            open.extend(sessions);
            continue;
        }
        if let Some((id, session)) = guess(home, proc, pid) {
            open.entry(id).or_insert(session);
        }
    }
    open
}

/// The processes that have the database open.
fn processes(proc: &Path, database: &Path) -> Vec<u32> {
    let all = fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    let own = std::process::id();
    let is_open = |path: &Path| {
        let files = fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == database)
    };
    let is_agent = |path: &Path| {
        let name = name_of(path);
        [&b"opencode"[..], b"bun", b"node"].iter().any(|known| name.windows(known.len()).any(|part| part == *known))
    };
    let found = numbers.filter(|(pid, path)| *pid != own && is_agent(path) && is_open(path));
    found.map(|(pid, _)| pid).collect()
}

/// What the plugin writes for each process.
#[derive(Deserialize)]
struct Report {
    pid: u32,
    start: Option<String>,
    sessions: BTreeMap<String, ReportedSession>,
}

#[derive(Deserialize)]
struct ReportedSession {
    state: State,
    since: i64,
    waiting_for: Option<String>,
    cwd: Option<PathBuf>,
}

/// The sessions that running processes report, by process. Reports of processes that have ended don't count.
fn reports(home: &OpenCodeFolders, proc: &Path) -> HashMap<u32, Vec<(SessionId, LiveSession)>> {
    let mut found = HashMap::new();
    for entry in fs::read_dir(plugin::reports(&home.state)).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let report = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Report>(&text).ok());
        let Some(report) = report.filter(|report| is_running(proc, report.pid, report.start.as_deref())) else {
            continue;
        };
        let pid = report.pid;
        let session = |(id, session): (String, ReportedSession)| {
            let live = LiveSession {
                pid: Some(pid),
                holder: holder(proc, pid),
                state: Some(session.state),
                since: Some(session.since.saturating_mul(1_000_000)),
                waiting_for: session.waiting_for,
                cwd: session.cwd,
                folders: Vec::new(),
            };
            Some((SessionId::new(id).ok()?, live))
        };
        found.insert(pid, report.sessions.into_iter().filter_map(session).collect());
    }
    found
}

/// The session that a process without the plugin probably has open.
fn guess(home: &OpenCodeFolders, proc: &Path, pid: u32) -> Option<(SessionId, LiveSession)> {
    let given = options::LAUNCH_OPTIONS.read(&arguments_of(proc, pid)?);
    let chosen = |wanted: Choice| given.chosen.iter().find(|chosen| chosen.choice == wanted);
    let since = began_at(proc, pid);
    let cwd = directory_of(proc, pid);
    let named = match chosen(Choice::Fork) {
        // Its id is not on the command line.
        Some(_) => None,
        None => chosen(Choice::Resume).and_then(|chosen| SessionId::new(chosen.value.clone()?).ok()),
    };
    let newest = || newest(home, cwd.as_deref()?, since? / 1_000_000).ok()?;
    let id = newest().or(named)?;
    let live = LiveSession {
        pid: Some(pid),
        holder: holder(proc, pid),
        state: None,
        since,
        waiting_for: None,
        cwd: None,
        folders: Vec::new(),
    };
    Some((id, live))
}

/// The session of a directory that got a message last, since that time in milliseconds.
fn newest(home: &OpenCodeFolders, directory: &Path, since: i64) -> io::Result<Option<SessionId>> {
    const QUERY: &str = "SELECT s.id FROM session s JOIN message m ON m.session_id = s.id
        WHERE s.directory = ?1 AND s.parent_id IS NULL AND s.time_updated >= ?2 AND m.time_created >= ?2
        ORDER BY m.time_created DESC LIMIT 1";
    let connection = database::open(&home.database)?;
    let found: Option<String> = database::value(&connection, QUERY, params![directory.to_string_lossy(), since])?;
    Ok(found.and_then(|id| SessionId::new(id).ok()))
}

/// What a process is that has sessions open.
fn holder(proc: &Path, pid: u32) -> Holder {
    let words = arguments_of(proc, pid).unwrap_or_default();
    let is_server = words.iter().take(3).any(|word| ["serve", "web", "acp"].contains(&word.as_str()));
    if is_server { Holder::Server } else { Holder::Agent }
}

fn read_screen(screen: &str) -> Screen {
    let shows = |words: &str| screen.contains(words);
    match () {
        () if shows("Permission required") && shows("Allow once") => Screen::Asks("a permission"),
        () if shows("Always allow") && shows("Confirm") => Screen::Asks("a permission"),
        () if shows("ctrl+p commands") || shows("ctrl+p ") && shows("commands") => Screen::Ready,
        () => Screen::Unknown,
    }
}
