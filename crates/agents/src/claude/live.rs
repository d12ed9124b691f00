//! Which Claude Code sessions are open in a process, and whether they are busy.
//!
//! `<config>/sessions/<pid>.json` contains process, session and status. The file remains when the process is killed, so
//! it counts only while a process with that number and start time runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use transcript::{SessionId, State};

use super::home::project_folder;
use super::{Claude, commands};
use crate::live::{ends_with_line, has_choices, with_closed_end};
use crate::process::is_running;
use crate::{ExitKey, Holder, Live, LiveSession, LiveState, Screen};

impl LiveState for Claude {
    fn live(&self) -> Live {
        live(&self.config, self.proc.as_deref())
    }

    fn read_screen(&self, screen: &str) -> Screen {
        const TRUST: [&str; 2] =
            ["Is this a project you created or one you trust", "Do you trust the files in this folder"];
        const PERMISSION: [&str; 2] = ["Do you want to proceed?", "Do you want to make this edit"];
        let has_choices = has_choices(screen, '❯') || ends_with_line(screen, "Esc to cancel");
        let shows = |all: &[&str]| has_choices && all.iter().any(|words| screen.contains(words));
        match () {
            () if shows(&TRUST) => Screen::Asks("an answer to its folder trust prompt"),
            () if shows(&PERMISSION) => Screen::Asks("a permission"),
            () if ends_with_line(screen, "Showing detailed transcript") => Screen::Reading(ExitKey::Escape),
            () => Screen::Unknown,
        }
    }

    fn as_plain_input(&self, text: &str) -> String {
        let is_command = commands::is_command(text, &self.config);
        let text = with_closed_end(text);
        // A leading space keeps text from being treated as a command; before the name of a command, it does not help.
        match text.trim_start().chars().next() {
            // What cannot be seen is taken out; an empty pattern of Braille is a letter to it.
            _ if is_command => format!("\u{2800}{text}"),
            Some('/' | '!') => format!(" {text}"),
            _ => text,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    pid: u32,
    session_id: SessionId,
    cwd: Option<PathBuf>,
    status: Option<String>,
    waiting_for: Option<String>,
    proc_start: Option<serde_json::Value>,
}

fn live(config: &Path, proc: Option<&Path>) -> Live {
    let mut live = Live::default();
    let Some(proc) = proc else {
        live.weak = Some("without /proc, a killed Claude Code may still be shown as running");
        return with_processes(config, live, |_| true);
    };
    with_processes(config, live, |process| {
        let started = process.proc_start.as_ref().map(|start| match start {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        is_running(proc, process.pid, started.as_deref())
    })
}

fn with_processes(config: &Path, mut live: Live, runs: impl Fn(&Process) -> bool) -> Live {
    for entry in fs::read_dir(config.join("sessions")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let Some(process) =
            crate::files::read_regular(&path).ok().and_then(|bytes| serde_json::from_slice::<Process>(&bytes).ok())
        else {
            continue;
        };
        if !runs(&process) {
            continue;
        }
        let state = match process.status.as_deref() {
            Some("idle") => Some(State::Idle),
            Some("busy") => Some(State::Busy),
            Some("waiting") => Some(State::Waiting),
            _ => None,
        };
        let session = LiveSession {
            pid: Some(process.pid),
            holder: Holder::Agent,
            state,
            since: fs::metadata(&path).ok().map(|metadata| crate::files::stamp(&metadata).modified),
            waiting_for: process.waiting_for,
            // The process may have moved into a subdirectory of its project.
            folders: process.cwd.iter().flat_map(|cwd| cwd.ancestors()).map(project_folder).collect(),
            cwd: process.cwd,
        };
        // Agents do not lock: two processes may have a session open. The one that needs attention most is shown.
        let known = live.sessions.get(&process.session_id);
        if known.is_none_or(|known| urgency(known.state) <= urgency(session.state)) {
            live.sessions.insert(process.session_id, session);
        }
    }
    live
}

fn urgency(state: Option<State>) -> u8 {
    match state {
        None | Some(State::Stopped) => 0,
        Some(State::Idle) => 1,
        Some(State::Busy) => 2,
        Some(State::Waiting) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_left_by_a_killed_process_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let (config, proc) = (folder.path().join("config"), folder.path().join("proc"));
        fs::create_dir_all(config.join("sessions")).unwrap();
        let write = |pid: u32, id: &str, status: &str, start: &str| {
            let text = format!(r#"{{"pid":{pid},"sessionId":"{id}","cwd":"/p","procStart":"{start}"{status}}}"#);
            fs::write(config.join(format!("sessions/{pid}.json")), text).unwrap();
        };
        write(1, "alive", r#","status":"waiting","waitingFor":"permission prompt""#, "50");
        write(2, "killed", r#","status":"busy""#, "50");
        write(3, "number-given-again", r#","status":"busy""#, "50");
        write(4, "silent", "", "50");
        fs::write(config.join("sessions/5.json"), "{").unwrap();
        for (pid, start) in [(1, "50"), (3, "51"), (4, "50")] {
            fs::create_dir_all(proc.join(pid.to_string())).unwrap();
            let stat = format!("{pid} (claude) S 1 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 {start} 0");
            fs::write(proc.join(format!("{pid}/stat")), stat).unwrap();
        }
        let live = live(&config, Some(&proc));
        let state = |id: &str| live.sessions.get(&SessionId::new(id).unwrap()).map(|session| session.state);
        assert_eq!(state("alive"), Some(Some(State::Waiting)));
        assert_eq!(state("silent"), Some(None));
        assert_eq!(live.sessions.len(), 2);
        assert!(super::live(&config, None).weak.is_some());
    }
}
