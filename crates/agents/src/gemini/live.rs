//! Which sessions a process has open. Gemini CLI keeps no lock, no port and no file with its process.
//!
//! A process is recognized by its command line, and its session by the id on it. Without one, it is the session that was
//! written last in the project of the directory in which the process works, if it was written since the process
//! began; a new session is also a new file. What it is doing is reported by hooks.

use std::fs;
use std::path::{Path, PathBuf};

use transcript::SessionId;

use super::Gemini;
use super::home::{directory_of, id_inside};
use crate::live::{has_choices, with_closed_end};
use crate::process::{began_at, directory_of as works_in, name_of, tty_of};
use crate::{Holder, Live, LiveSession, LiveState, Screen, SessionFile};

/// How much the time of a process and that of a file may differ, in nanoseconds.
const CLOCKS_DIFFER: i64 = 1_000_000_000;

impl LiveState for Gemini {
    fn live(&self) -> Live {
        let mut live = Live::default();
        let Some(proc) = self.proc.as_deref() else {
            live.weak = Some("without /proc, tine cannot see running Gemini CLI sessions");
            return live;
        };
        let running = running(proc);
        if running.is_empty() {
            return live;
        }
        let files = self.home.discover().files;
        for process in running {
            if let Some(id) = process.session(&files) {
                live.sessions.insert(id, process.live());
            }
        }
        live
    }

    fn reports_state(&self) -> bool {
        false
    }

    fn read_screen(&self, screen: &str) -> Screen {
        let shows = |words: &[&str]| has_choices(screen, '●') && words.iter().any(|words| screen.contains(words));
        match () {
            () if shows(&["Do you trust"]) => Screen::Asks("an answer to its folder trust prompt"),
            () if shows(&["Allow once", "Apply this change?", "Allow execution"]) => Screen::Asks("a permission"),
            () if has_choices(screen, '●') => Screen::Asks("an answer"),
            () if screen.contains("Type your message") => Screen::Ready,
            () => Screen::Unknown,
        }
    }

    fn as_plain_input(&self, text: &str) -> String {
        // A zero-width space keeps `/`, `?` and `!` from being a command.
        let text = with_closed_end(text);
        match text.trim_start().chars().next() {
            Some('/' | '?' | '!') => format!("\u{200b}{text}"),
            _ => text,
        }
    }
}

/// A running client.
struct Process {
    pid: u32,
    words: Vec<String>,
    directory: Option<PathBuf>,
    /// When it began, in nanoseconds since 1970.
    began: Option<i64>,
}

impl Process {
    fn live(&self) -> LiveSession {
        let is_server = self.words.iter().any(|word| word == "--acp" || word == "--experimental-acp");
        LiveSession {
            pid: Some(self.pid),
            holder: if is_server { Holder::Server } else { Holder::Agent },
            state: None,
            since: self.began,
            waiting_for: None,
            cwd: self.directory.clone(),
            folders: Vec::new(),
        }
    }

    fn session(&self, files: &[SessionFile]) -> Option<SessionId> {
        let option = |name: &str| {
            let glued = format!("{name}=");
            let place = self.words.iter().position(|word| word == name || word.starts_with(&glued))?;
            let word = &self.words[place];
            word.strip_prefix(&glued).map(str::to_owned).or_else(|| self.words.get(place + 1).cloned())
        };
        let named = ["--session-id", "--resume", "-r"].into_iter().find_map(option);
        let is_id = |id: &String| id.len() == 36 && SessionId::is_legal(id);
        if let Some(id) = named.filter(is_id) {
            return SessionId::new(id).ok();
        }
        let directory = self.directory.as_deref()?;
        // When it starts, the client writes a title into the session before, so a new session must also be a new file.
        let resumes = ["--resume", "-r"].into_iter().any(|name| option(name).is_some());
        let written = |file: &SessionFile| match file.stamp.born.filter(|_| !resumes) {
            Some(born) => born + CLOCKS_DIFFER,
            None => file.stamp.modified,
        };
        let is_its = |file: &&SessionFile| {
            self.began.is_none_or(|began| written(file) >= began)
                && directory_of(&file.path).as_deref() == Some(directory)
        };
        let newest = files.iter().filter(is_its).max_by_key(|file| file.stamp.modified)?;
        SessionId::new(id_inside(&newest.path)?).ok()
    }
}

/// The clients that run. The client starts itself again with more memory, and only the inner process counts.
fn running(proc: &Path) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let name = name_of(&entry.path());
        if ![&b"node"[..], b"gemini", b"MainThread"].iter().any(|program| name.starts_with(program)) {
            continue;
        }
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<String> =
            words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        if is_client(&words) {
            let (directory, began) = (works_in(proc, pid), began_at(proc, pid));
            found.push(Process { pid, words, directory, began });
        }
    }
    let is_outer = |process: &Process| {
        found.iter().any(|other| other.pid != process.pid && crate::process::is_below(proc, other.pid, process.pid))
    };
    let outer: Vec<u32> = found.iter().filter(|process| is_outer(process)).map(|process| process.pid).collect();
    found.retain(|process| !outer.contains(&process.pid));
    // One at a terminal is more likely to be the user's.
    found.sort_by_key(|process| tty_of(proc, process.pid).is_some());
    found
}

/// Whether a command line is that of the client: `gemini`, or Node.js with the client's script.
fn is_client(words: &[String]) -> bool {
    let program =
        words.iter().map(String::as_str).enumerate().find(|(place, word)| *place > 0 && !word.starts_with('-'));
    let is_gemini = |word: &str| {
        let name = Path::new(word).file_name().unwrap_or_default();
        name == "gemini" || name == "gemini.js" || word.contains("gemini-cli/")
    };
    words.first().is_some_and(|first| is_gemini(first)) || program.is_some_and(|(_, script)| is_gemini(script))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 0.61.0 showed them.
    #[test]
    fn screens_are_understood() {
        let gemini = Gemini::new(&crate::AgentEnvironment::default());
        let check = |screen: &str, expected: Screen| assert_eq!(gemini.read_screen(screen), expected, "{screen}");
        check(" Shift+Tab to accept edits\n >   Type your message or @path/to/file\n workspace", Screen::Ready);
        let dialog = "│ ? Shell  touch x │\n│ Allow execution of [Shell]? │\n│ ● 1. Allow once │\n│   2. Allow for this session │";
        check(dialog, Screen::Asks("a permission"));
        check(
            "Do you trust the files in this folder?\n ● 1. Trust folder",
            Screen::Asks("an answer to its folder trust prompt"),
        );
        check("Allow once\n Type your message", Screen::Ready);
        check("", Screen::Unknown);
    }

    #[test]
    fn the_client_is_recognized_by_its_command_line() {
        let check = |line: &str, expected: bool| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_client(&words), expected, "{line}");
        };
        check("node /usr/bin/gemini -m x", true);
        check("node --max-old-space-size=4096 /opt/gemini-0.61.0/bundle/gemini.js", true);
        check("/usr/bin/node /x/node_modules/@google/gemini-cli/dist/index.js --acp", true);
        check("gemini", true);
        check("node server.js gemini", false);
        check("vim gemini", true);
        check("node", false);
    }
}
