//! Codex's own program: its fork, messages without a terminal, and its list of threads.

use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jiff::Timestamp;
use serde_json::{Value, json};
use transcript::SessionId;

use super::Codex;
use super::app_server::AppServer;
use super::chat::CodexChat;
use super::home::Home;
use super::record::{Kind, Record};
use super::scan::scan;
use super::settings::ThreadSettings;
use super::source::{Source, beginning_of_line};
use super::turns::{Place, Step, Turns};
use crate::chat::unattended::converse;
use crate::chat::{ChatOrder, Protocol};
use crate::fields::Raw;
use crate::ids;
use crate::launch::Launch;
use crate::program::{
    ANSWER_PATIENCE, ForkRequest, HeadlessMessage, NewSession, Program, ProgramError, Reply, START_PATIENCE, SessionRef,
};

impl Launch for Codex {
    fn start_command(
        &self,
        _id: &SessionId,
        _title: &str,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(&[], directory, options, prompt)
    }

    fn resume_command(
        &self,
        session: SessionRef<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(&["resume", session.id.as_str()], directory, options, prompt)
    }

    fn new_id(&self, now: Timestamp) -> SessionId {
        ids::timed_id(now)
    }

    fn accepts_ids(&self) -> bool {
        false
    }

    fn fork(&self, program: &Program, request: &ForkRequest<'_>) -> Result<NewSession, ProgramError> {
        fork(&self.home, program, request)
    }

    fn send(&self, program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
        let order = message.order(ids::random_id);
        let settings = ThreadSettings::of(&order.options);
        if settings.unsupported.is_some() {
            return send_by_exec(program, message);
        }
        // A thread can be named once it has a turn, by another call.
        let protocol = Box::new(CodexChat::new(ChatOrder { title: None, ..order }, settings));
        converse(program, message.directory, protocol, message.text)
    }

    fn queue(&self, program: &Program, id: &SessionId, text: &str) -> Result<(), ProgramError> {
        queue(program, id, text)
    }

    fn chat(&self, program: &Program, order: ChatOrder) -> Result<Box<dyn Protocol>, ProgramError> {
        let settings = ThreadSettings::of(&order.options);
        match settings.unsupported {
            Some(option) => Err(program.failed(format!("`{option}` works only in its own terminal interface"))),
            None => Ok(Box::new(CodexChat::new(order, settings))),
        }
    }

    fn context_window(&self, _model: Option<&str>, _version: Option<&str>) -> u64 {
        super::windows::USUAL
    }

    fn context_windows(&self) -> &'static [u64] {
        super::windows::SIZES
    }

    fn input_limit(&self) -> Option<usize> {
        Some(INPUT_LIMIT)
    }
}

/// What Codex takes in one message.
const INPUT_LIMIT: usize = 1_048_576;

/// A command for a terminal, with something to say first. Without a directory Codex asks whether it is to work in the
/// thread's own or in the current one.
fn command(thread: &[&str], directory: &Path, options: &[String], prompt: Option<&str>) -> Vec<String> {
    let mut command = vec!["codex".to_owned()];
    command.extend(thread.iter().map(|word| (*word).to_owned()));
    command.extend(["-C".to_owned(), directory.to_string_lossy().into_owned()]);
    command.extend(options.iter().cloned());
    command.extend(prompt.into_iter().flat_map(|prompt| ["--".to_owned(), prompt.to_owned()]));
    command
}

/// Queues a message for a thread that the daemon has open. After an interrupted turn, the daemon holds back queued
/// messages, even if it resumes the thread.
fn queue(program: &Program, id: &SessionId, text: &str) -> Result<(), ProgramError> {
    let mut command = program.command(std::path::Path::new("/"));
    command.args(["queue", "--thread", id.as_str()]).arg(format!("--message={text}"));
    program.run(command, "", START_PATIENCE).map(|_| ())
}

/// Sends a message by `codex exec`, which takes options that the app-server doesn't. The text goes through standard input.
fn send_by_exec(program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
    let mut command = program.command(message.directory);
    // What is given twice is refused. Options come first: one that takes several values ends with the next option.
    let own = ["--json", "--skip-git-repo-check"];
    let options = message.options.iter().filter(|option| !own.contains(&option.as_str()));
    command.arg("exec").args(options).args(own);
    if let Some(session) = message.session {
        command.args(["resume", session.id.as_str()]);
    }
    command.arg("-");
    let told = program.run_telling(command, message.text, ANSWER_PATIENCE, failure_in)?;
    let (mut id, mut answer, mut failure) = (None, String::new(), None);
    for event in told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("thread.started") => id = SessionId::new(text(&event["thread_id"])).ok(),
            Some("item.completed") if event["item"]["type"] == "agent_message" => {
                answer = text(&event["item"]["text"]);
            }
            Some("turn.failed") => failure = Some(text(&event["error"]["message"])),
            _ => {}
        }
    }
    if let Some(failure) = failure {
        return Err(program.failed(failure));
    }
    let id = id.ok_or_else(|| program.failed("it reported no thread id"))?;
    // If Codex does not find a thread, it silently starts a new one.
    if message.session.is_some_and(|session| *session.id != id) {
        return Err(program.failed("it did not find the thread and started another one"));
    }
    // Codex writes the window into the transcript.
    Ok(Reply { id, answer, windows: Vec::new() })
}

/// Why a turn failed, according to its events.
fn failure_in(told: &str) -> Option<String> {
    let events = told.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut reasons = events.filter_map(|event| {
        let reason = event["error"]["message"].as_str().or(event["message"].as_str());
        reason.map(str::to_owned)
    });
    reasons.next()
}

/// Lets Codex fork. The id is Codex's choice.
fn fork(home: &Home, program: &Program, request: &ForkRequest<'_>) -> Result<NewSession, ProgramError> {
    let mut params = json!({ "threadId": request.source_id, "cwd": request.directory.to_string_lossy() });
    if let Some(turns) = request.turns {
        let turn = turn_id(home, request.source, turns).ok_or_else(|| program.unable("fork at a turn"))?;
        params["lastTurnId"] = json!(turn);
    }
    let mut server = AppServer::start(program, request.directory)?;
    let answer = server.call("thread/fork", &params)?;
    let thread = &answer["thread"];
    let id = thread["id"].as_str().and_then(|id| SessionId::new(id).ok());
    let id = id.ok_or_else(|| program.failed("it reported no thread id"))?;
    let path = thread["path"].as_str().map(PathBuf::from);
    // A name is for Codex's own list; a version that takes none still made the fork.
    server
        .call("thread/name/set", &json!({ "threadId": id, "name": request.title }))
        .or_log("name the thread in Codex");
    drop(server);
    home.forget();
    let path = path.filter(|path| path.exists()).or_else(|| home.find_thread(id.as_str()));
    let path = path.ok_or_else(|| program.failed("it wrote no file"))?;
    Ok(NewSession { id, path })
}

/// Codex's id of the last task that belongs to `turns`.
fn turn_id(home: &Home, source: &Path, turns: u32) -> Option<String> {
    let scan = scan(home, source);
    let mut counted = Turns::default();
    let (mut steps, mut task, mut kept) = (Vec::new(), None, None);
    for (segment, (path, end)) in scan.files.iter().enumerate() {
        let mut lines = Source::lines(path, Some(*end)).ok()?;
        while let Some(line) = lines.next_line().ok()? {
            let place = Place { segment, offset: line.offset };
            if scan.taken_back.iter().any(|(from, to)| (*from..=*to).contains(&place)) {
                continue;
            }
            let huge = line.bytes.is_none().then(|| beginning_of_line(path, line.offset)).flatten();
            let Some(record) = line.bytes.or(huge.as_deref()).and_then(Record::of) else {
                continue;
            };
            if record.kind == Kind::TaskStarted {
                task = record.get(b"turn_id").and_then(Raw::string).map(|id| id.into_owned());
            }
            counted.add_record(&record, place, &mut steps);
            for step in steps.drain(..) {
                if let Step::Prompt { turn, .. } = step {
                    if turn > turns {
                        return kept;
                    }
                    kept.clone_from(&task);
                }
            }
        }
    }
    kept
}
