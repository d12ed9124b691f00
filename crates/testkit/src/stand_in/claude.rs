//! An agent that keeps its sessions as Claude Code does: a transcript in the folder of its project, and a file that tells
//! process and state while it runs. It answers every prompt with `to PROMPT`, and runs the hooks in its settings.
//!
//! Some prompts mean more: `take your time` is answered when the file `go` is in the home directory, and until then can be
//! interrupted; `ask me` waits for a permission; `touch FILE` asks for one in a stream; `tell N`
//! streams N KB; `fall over` ends the program. In a terminal, `/branch` and `/clear` do what
//! they do in Claude Code, and Ctrl+O opens the transcript, where keys are lost until Escape closes it. If the file
//! `untrusted` is in the home directory, it first asks whether it may trust the folder. If `STAND_IN_FAILS` is set, it fails
//! after it has forked.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, process, thread};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use super::pane::CLEARED;
use super::write_at_once;
use crate::build::{Clock, Random, claude_project_directory};

/// How long an escape character may be the beginning of something else.
const ESCAPE_PAUSE: Duration = Duration::from_millis(30);
const PASTE_BEGINS: &str = "\u{1b}[200~";
const PASTE_ENDS: &str = "\u{1b}[201~";

struct Session {
    config: PathBuf,
    id: String,
    cwd: String,
    transcript: PathBuf,
    /// The record that the next one follows.
    last: Option<String>,
    random: Random,
    /// What the screen shows above the input line.
    shown: Vec<String>,
    runs_hooks: bool,
}

/// Keys, as they come from the terminal.
struct Keys {
    bytes: Receiver<Vec<u8>>,
    pending: String,
}

enum Key {
    Text(String),
    Enter,
    Escape,
    Clear,
    Erase,
    Editor,
    Transcript,
    End,
}

pub(super) fn run(words: &[String]) -> ExitCode {
    if words.iter().any(|word| word == "--version" || word == "-v") {
        let _ = writeln!(io::stdout(), "2.1.325 (Claude Code)");
        return ExitCode::SUCCESS;
    }
    let (mut id, mut resumed, mut forks, mut prints, mut prompt) = (None, None, false, false, None);
    let (mut runs_hooks, mut asks) = (true, false);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--session-id" => id = rest.next().cloned(),
            "--resume" | "-r" => resumed = rest.next().cloned(),
            "--fork-session" => forks = true,
            "-p" | "--print" => prints = true,
            "--settings" => runs_hooks = !rest.next().is_some_and(|settings| settings.contains("disableAllHooks")),
            "--permission-prompt-tool" => asks = rest.next().is_some(),
            "--name" | "--model" | "--input-format" | "--output-format" | "--permission-mode" => {
                rest.next();
            }
            "--" => prompt = rest.next().cloned(),
            _ => {}
        }
    }
    let mut session = match Session::open(id, resumed.as_deref(), forks) {
        Ok(session) => session,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            return ExitCode::FAILURE;
        }
    };
    session.runs_hooks = runs_hooks;
    let source = match (&resumed, forks) {
        (Some(_), true) => "fork",
        (Some(_), false) => "resume",
        (None, _) => "startup",
    };
    if prints {
        session.write_state("idle", None);
    }
    session.hook("SessionStart", &json!({"source": source}));
    if forks && env::var_os("STAND_IN_FAILS").is_some() {
        let _ = writeln!(io::stderr(), "it broke");
        return ExitCode::FAILURE;
    }
    match (prints, forks) {
        // A fork is made by a command that asks nothing of the model.
        (true, true) => session.print_result(""),
        (true, false) => session.stream(asks),
        (false, _) => session.talk(prompt),
    }
    session.hook("SessionEnd", &json!({"reason": "other"}));
    let _ = fs::remove_file(session.state_file());
    ExitCode::SUCCESS
}

impl Session {
    fn open(id: Option<String>, resumed: Option<&str>, forks: bool) -> Result<Self, String> {
        let config = env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home().join(".claude"), PathBuf::from);
        let cwd = env::current_dir().map_err(|error| error.to_string())?.display().to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut random = Random::new(now.as_nanos() as u64 ^ u64::from(process::id()) << 40);
        let folder = claude_project_directory(&config, &cwd);
        let source = resumed.map(|handle| {
            let path = Path::new(handle);
            if path.is_file() { path.to_owned() } else { folder.join(format!("{handle}.jsonl")) }
        });
        if let (Some(source), Some(handle)) = (&source, resumed)
            && !source.is_file()
        {
            return Err(format!("No conversation found with session ID: {handle}"));
        }
        let own = source.as_deref().filter(|_| !forks).and_then(Path::file_stem);
        let id = own.map(|own| own.to_string_lossy().into_owned()).or(id).unwrap_or_else(|| random.uuid());
        let transcript = match &source {
            Some(source) if !forks => source.clone(),
            _ => folder.join(format!("{id}.jsonl")),
        };
        let before = source.map(|source| fs::read_to_string(source).unwrap_or_default()).unwrap_or_default();
        let records = before.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut session =
            Session { config, id, cwd, transcript, last: None, random, shown: Vec::new(), runs_hooks: true };
        for mut record in records {
            if let Some(uuid) = record["uuid"].as_str() {
                session.last = Some(uuid.to_owned());
            }
            if forks && record.is_object() {
                record["sessionId"] = json!(session.id);
                session.append(&record);
            }
        }
        Ok(session)
    }

    fn state_file(&self) -> PathBuf {
        self.config.join("sessions").join(format!("{}.json", process::id()))
    }

    /// Writes its state to `sessions/<pid>.json`.
    fn write_state(&self, status: &str, waits_for: Option<&str>) {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let start = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(19)).map(str::to_owned);
        let mut state = json!({
            "pid": process::id(), "sessionId": self.id, "cwd": self.cwd, "kind": "interactive", "status": status,
            "procStart": start,
        });
        if let Some(waits_for) = waits_for {
            state["waitingFor"] = json!(waits_for);
        }
        let file = self.state_file();
        fs::create_dir_all(file.parent().expect("a folder")).expect("the folder of sessions");
        write_at_once(&file, &state.to_string());
    }

    fn append(&self, record: &Value) {
        fs::create_dir_all(self.transcript.parent().expect("a folder")).expect("the project's folder");
        let file = OpenOptions::new().create(true).append(true).open(&self.transcript);
        file.and_then(|mut file| file.write_all(format!("{record}\n").as_bytes())).expect("the transcript");
    }

    fn record(&mut self, kind: &str, message: &Value) {
        let uuid = self.random.uuid();
        let record = json!({
            "parentUuid": self.last, "isSidechain": false, "type": kind, "uuid": uuid, "sessionId": self.id,
            "cwd": self.cwd, "gitBranch": "main", "version": "2.1.325", "timestamp": now(), "message": message,
        });
        self.last = Some(uuid);
        self.append(&record);
    }

    /// Answers one prompt; nothing where it was interrupted.
    fn answer(&mut self, prompt: &str, keys: Option<&mut Keys>) -> Option<String> {
        self.record("user", &json!({"role": "user", "content": prompt}));
        self.write_state("busy", None);
        self.hook("UserPromptSubmit", &json!({"prompt": prompt, "prompt_id": self.last}));
        let was_interrupted = match prompt.trim() {
            "take your time" => {
                let go = home().join("go");
                !until(keys, || go.exists())
            }
            "ask me" => {
                self.write_state("waiting", Some("permission prompt"));
                !until(keys, || false)
            }
            "fall over" => process::exit(1),
            _ => false,
        };
        if was_interrupted {
            let text = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
            self.record("user", &json!({"role": "user", "content": text}));
            self.write_state("idle", None);
            return None;
        }
        let answer = format!("to {prompt}");
        let content = json!([{"type": "text", "text": answer}]);
        let message = json!({
            "role": "assistant", "id": "message", "model": "stand-in", "content": content, "stop_reason": "end_turn",
        });
        self.record("assistant", &message);
        self.write_state("idle", None);
        self.hook("Stop", &json!({"prompt_id": self.last}));
        Some(answer)
    }

    /// Talks over standard input and output in JSON until the input ends. `asks` is whether it may ask for permissions.
    fn stream(&mut self, asks: bool) {
        let mut lines = io::stdin().lines().map_while(Result::ok);
        while let Some(line) = lines.next() {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["type"] == "control_request" {
                let response = json!({"subtype": "success", "request_id": message["request_id"], "response": {}});
                self.print(json!({"type": "control_response", "response": response}));
            }
            if message["type"] != "user" {
                continue;
            }
            let prompt = message["message"]["content"].as_str().unwrap_or_default().to_owned();
            self.print(json!({"type": "system", "subtype": "init", "model": "stand-in", "permissionMode": "default"}));
            self.print(json!({"type": "user", "isReplay": true, "message": message["message"]}));
            if let Some(file) = prompt.strip_prefix("touch ") {
                let is_allowed = asks && self.asks_to_touch(file, &mut lines);
                let is_made = is_allowed && fs::write(file, "").is_ok();
                self.shown.push(format!("{file}: {is_made}"));
            }
            if let Some(kilobytes) = prompt.strip_prefix("tell ").and_then(|size| size.parse().ok()) {
                self.tell(kilobytes);
            }
            let answer = self.answer(&prompt, None).unwrap_or_default();
            let content = json!([{"type": "text", "text": answer}]);
            self.print(json!({"type": "assistant", "message": {"model": "stand-in", "content": content}}));
            self.print_result(&answer);
        }
    }

    /// Streams words in pieces of five bytes, in paragraphs, then `told`.
    fn tell(&self, kilobytes: usize) {
        let delta = |text: &str| {
            let event = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}});
            self.print(json!({"type": "stream_event", "event": event}));
        };
        let mut told = String::new();
        for number in 1..=kilobytes * 1000 / 5 {
            let piece = if number % 100 == 0 { "end\n\n" } else { "word " };
            delta(piece);
            told.push_str(piece);
        }
        told.push_str("told");
        delta("told");
        let content = json!([{"type": "text", "text": told}]);
        self.print(json!({"type": "assistant", "message": {"model": "stand-in", "content": content}}));
    }

    fn asks_to_touch(&self, file: &str, lines: &mut impl Iterator<Item = String>) -> bool {
        self.write_state("waiting", Some("permission prompt"));
        let request = json!({
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": format!("touch {file}")},
            "tool_use_id": "call",
        });
        self.print(json!({"type": "control_request", "request_id": "permission", "request": request}));
        let answers = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        let mut responses = answers.map(|answer| answer["response"].clone());
        let response = responses.find(|response| response["request_id"] == "permission");
        response.is_some_and(|response| response["response"]["behavior"] == "allow")
    }

    fn print(&self, mut message: Value) {
        message["session_id"] = json!(self.id);
        let mut out = io::stdout();
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    fn print_result(&self, answer: &str) {
        self.print(json!({"type": "result", "subtype": "success", "is_error": false, "result": answer}));
    }

    /// Talks with whoever sits at the terminal, until that is gone.
    fn talk(&mut self, first: Option<String>) {
        let stdin = io::stdin();
        if stdin.is_terminal()
            && let Ok(mut mode) = tcgetattr(&stdin)
        {
            mode.make_raw();
            let _ = tcsetattr(&stdin, OptionalActions::Now, &mode);
        }
        let _ = write!(io::stdout(), "\u{1b}[?2004h");
        let mut keys = Keys::listen();
        let mut line = String::new();
        if home().join("untrusted").exists() && !self.ask_for_trust(&mut keys) {
            return;
        }
        self.write_state("idle", None);
        if let Some(prompt) = first {
            self.take(&prompt, &mut keys);
        }
        loop {
            self.draw(&line);
            match keys.next() {
                Key::Text(text) => line.push_str(&text),
                Key::Enter if line.is_empty() => {}
                Key::Enter => {
                    let prompt = std::mem::take(&mut line);
                    self.take(prompt.trim(), &mut keys);
                }
                Key::Clear => line.clear(),
                Key::Erase => drop(line.pop()),
                Key::Editor => line = edited(&line),
                Key::Transcript => {
                    print_screen("Showing detailed transcript · Ctrl+O to toggle");
                    while !matches!(keys.next(), Key::Escape | Key::End) {}
                }
                Key::Escape => {}
                Key::End => return,
            }
        }
    }

    /// Asks whether it may trust the folder; false if nobody answers yes.
    fn ask_for_trust(&self, keys: &mut Keys) -> bool {
        print_screen("Do you trust the files in this folder?\r\n\r\n❯ 1. Yes, proceed\r\n  2. No, exit");
        loop {
            match keys.next() {
                Key::Enter => return true,
                Key::Escape | Key::End => return false,
                _ => {}
            }
        }
    }

    /// Goes on in a new session in the same process: a fork of this one, or an empty one.
    fn go_on_in_new_session(&mut self, source: &str) {
        let reason = if source == "clear" { "clear" } else { "resume" };
        self.hook("SessionEnd", &json!({"reason": reason}));
        let old = std::mem::replace(&mut self.id, self.random.uuid());
        let records = fs::read_to_string(&self.transcript).unwrap_or_default();
        self.transcript.set_file_name(format!("{}.jsonl", self.id));
        if source == "clear" {
            (self.last, self.shown) = (None, Vec::new());
        } else {
            for mut record in records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                record["forkedFrom"] = json!({"sessionId": old, "messageUuid": record["uuid"]});
                record["sessionId"] = json!(self.id);
                self.append(&record);
            }
        }
        self.write_state("idle", None);
        self.hook("SessionStart", &json!({"source": source}));
    }

    fn take(&mut self, prompt: &str, keys: &mut Keys) {
        match prompt {
            "/branch" => return self.go_on_in_new_session("fork"),
            "/clear" => return self.go_on_in_new_session("clear"),
            _ => {}
        }
        self.shown.push(format!("❯ {prompt}"));
        self.draw("");
        let answer = self.answer(prompt, Some(keys));
        self.shown.push(answer.unwrap_or_else(|| "Interrupted".to_owned()));
    }

    fn draw(&self, line: &str) {
        let mut screen = String::new();
        for shown in &self.shown {
            screen.push_str(&shown.replace('\n', "\r\n"));
            screen.push_str("\r\n");
        }
        screen.push_str(&format!("❯ {}", line.replace('\n', "\r\n")));
        print_screen(&screen);
    }

    /// Runs the hooks of an event, as its settings have them.
    fn hook(&self, event: &str, more: &Value) {
        if !self.runs_hooks {
            return;
        }
        let settings = fs::read_to_string(self.config.join("settings.json")).unwrap_or_default();
        let settings: Value = serde_json::from_str(&settings).unwrap_or_default();
        let mut payload = json!({
            "session_id": self.id, "transcript_path": self.transcript, "cwd": self.cwd, "hook_event_name": event,
        });
        if let (Some(payload), Some(more)) = (payload.as_object_mut(), more.as_object()) {
            payload.extend(more.clone());
        }
        let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
        for hook in groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default()) {
            let mut command = Command::new("sh");
            command.arg("-c").arg(hook["command"].as_str().unwrap_or_default());
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            if let Ok(mut child) = command.spawn() {
                let output = child.stdin.take().map(|mut stdin| stdin.write_all(payload.to_string().as_bytes()));
                drop(output);
                let _ = child.wait();
            }
        }
    }
}

fn print_screen(screen: &str) {
    let mut stdout = io::stdout();
    let _ = write!(stdout, "{CLEARED}{screen}").and_then(|()| stdout.flush());
}

fn home() -> PathBuf {
    PathBuf::from(env::var_os("HOME").unwrap_or_default())
}

impl Keys {
    fn listen() -> Self {
        let (send, bytes) = channel();
        thread::spawn(move || {
            let mut chunk = [0_u8; 16 * 1024];
            while let Ok(count @ 1..) = io::stdin().read(&mut chunk) {
                if send.send(chunk[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Keys { bytes, pending: String::new() }
    }

    /// More of what is typed; false where nothing came in time or will come.
    fn more(&mut self, patience: Duration) -> Result<(), RecvTimeoutError> {
        let mut bytes = self.bytes.recv_timeout(patience)?;
        // A letter may arrive in pieces.
        while std::str::from_utf8(&bytes).is_err_and(|error| error.error_len().is_none()) {
            bytes.extend(self.bytes.recv_timeout(patience)?);
        }
        self.pending.push_str(&String::from_utf8_lossy(&bytes));
        Ok(())
    }

    fn next(&mut self) -> Key {
        while self.pending.is_empty() {
            match self.more(Duration::from_secs(3600)) {
                Err(RecvTimeoutError::Disconnected) => return Key::End,
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.pending.starts_with('\u{1b}') {
            // It may be a key of its own, or begin a paste.
            while PASTE_BEGINS.starts_with(&self.pending) && self.more(ESCAPE_PAUSE).is_ok() {}
            if let Some(pasted) = self.pending.strip_prefix(PASTE_BEGINS) {
                let pasted = pasted.to_owned();
                return self.paste(pasted);
            }
        }
        let first = self.pending.remove(0);
        match first {
            '\r' => Key::Enter,
            '\u{1b}' => Key::Escape,
            '\u{15}' => Key::Clear,
            '\u{7f}' => Key::Erase,
            '\u{7}' => Key::Editor,
            '\u{f}' => Key::Transcript,
            letter if letter.is_control() => Key::Text(String::new()),
            letter => Key::Text(letter.to_string()),
        }
    }

    fn paste(&mut self, begun: String) -> Key {
        self.pending = begun;
        while !self.pending.contains(PASTE_ENDS) {
            if self.more(Duration::from_secs(10)).is_err() {
                break;
            }
        }
        let pending = std::mem::take(&mut self.pending);
        let (text, rest) = pending.split_once(PASTE_ENDS).unwrap_or((&pending, ""));
        rest.clone_into(&mut self.pending);
        // Like the real one, which does not take tabs.
        Key::Text(text.replace('\t', "    "))
    }
}

/// Waits until something holds; false where Escape was pressed or the terminal is gone.
fn until(keys: Option<&mut Keys>, holds: impl Fn() -> bool) -> bool {
    let mut keys = keys;
    while !holds() {
        match &mut keys {
            None => thread::sleep(Duration::from_millis(20)),
            Some(keys) => match keys.more(Duration::from_millis(20)) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => process::exit(1),
                Ok(()) if std::mem::take(&mut keys.pending).contains('\u{1b}') => return false,
                Ok(()) => {}
            },
        }
    }
    true
}

/// What the person's editor makes of a line.
fn edited(line: &str) -> String {
    let editor = env::var("VISUAL").or_else(|_| env::var("EDITOR")).unwrap_or_else(|_| "true".to_owned());
    let file = env::temp_dir().join(format!("prompt-{}.md", process::id()));
    fs::write(&file, line).expect("a file for the editor");
    let _ = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&file).status();
    let text = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(&file);
    text
}

/// The time, as records have it.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Clock::at(since.as_millis() as u64).now()
}
