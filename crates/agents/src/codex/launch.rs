//! Codex's own program: its fork, messages without a terminal, and its list of threads.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript::SessionId;

use super::app_server::AppServer;
use super::home::Home;
use super::record::{Kind, Record};
use super::scan::scan;
use super::source::{Source, beginning_of_line};
use super::turns::{Place, Step, Turns};
use crate::fields::Raw;
use crate::program::{ANSWER_PATIENCE, Made, Message, NativeOrder, Program, ProgramError, START_PATIENCE, Said};

/// What Codex takes in one message.
pub(super) const INPUT_LIMIT: usize = 1_048_576;

/// A command for a terminal, with something to say first. Without a directory Codex asks whether it is to work in the
/// thread's own or in the current one.
pub(super) fn command(thread: &[&str], directory: &Path, options: &[String], prompt: Option<&str>) -> Vec<String> {
    let mut command = vec!["codex".to_owned()];
    command.extend(thread.iter().map(|word| (*word).to_owned()));
    command.extend(["-C".to_owned(), directory.to_string_lossy().into_owned()]);
    command.extend(options.iter().cloned());
    command.extend(prompt.into_iter().flat_map(|prompt| ["--".to_owned(), prompt.to_owned()]));
    command
}

/// Hands something over to a thread that the daemon has open. After a turn that was interrupted the daemon holds back what
/// is queued, also where it is told to resume the thread.
pub(super) fn queue(program: &Program, id: &SessionId, text: &str) -> Result<(), ProgramError> {
    let mut command = program.command(std::path::Path::new("/"));
    command.args(["queue", "--thread", id.as_str()]).arg(format!("--message={text}"));
    program.run(command, "", START_PATIENCE).map(|_| ())
}

/// Says something by `codex exec`; the words go through standard input.
pub(super) fn say(program: &Program, message: &Message<'_>) -> Result<Said, ProgramError> {
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
    let id = id.ok_or_else(|| program.failed("it named no thread"))?;
    // A thread that Codex does not find is a new one to it, without a word.
    if message.session.is_some_and(|session| *session.id != id) {
        return Err(program.failed("it did not find the thread, and began another one"));
    }
    Ok(Said { id, answer })
}

/// Why a turn failed, as its events tell.
fn failure_in(told: &str) -> Option<String> {
    let events = told.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut reasons = events.filter_map(|event| {
        let reason = event["error"]["message"].as_str().or(event["message"].as_str());
        reason.map(str::to_owned)
    });
    reasons.next()
}

/// Lets Codex fork. The id is Codex's choice.
pub(super) fn fork(home: &Home, program: &Program, order: &NativeOrder<'_>) -> Result<Made, ProgramError> {
    let mut params = json!({ "threadId": order.source_id, "cwd": order.directory.to_string_lossy() });
    if let Some(turns) = order.turns {
        let turn = turn_id(home, order.source, turns).ok_or_else(|| program.unable("tell its turns apart"))?;
        params["lastTurnId"] = json!(turn);
    }
    let mut server = AppServer::start(program, order.directory)?;
    let answer = server.call("thread/fork", &params)?;
    let thread = &answer["thread"];
    let id = thread["id"].as_str().and_then(|id| SessionId::new(id).ok());
    let id = id.ok_or_else(|| program.failed("it named no thread"))?;
    let path = thread["path"].as_str().map(PathBuf::from);
    // A name is for Codex's own list; a version that takes none still made the fork.
    let _ = server.call("thread/name/set", &json!({ "threadId": id, "name": order.title }));
    drop(server);
    home.forget();
    let path = path.filter(|path| path.exists()).or_else(|| home.find_thread(id.as_str()));
    let path = path.ok_or_else(|| program.failed("it wrote no file"))?;
    Ok(Made { id, path })
}

/// Makes a thread that Codex did not write itself known to its own list, under a title.
pub(super) fn announce(program: &Program, id: &SessionId, title: &str, directory: &Path) -> Result<(), ProgramError> {
    let mut server = AppServer::start(program, directory)?;
    // A plain list looks at the files and registers what it did not know.
    server.call("thread/list", &json!({ "limit": 1 }))?;
    server.call("thread/name/set", &json!({ "threadId": id, "name": title }))?;
    Ok(())
}

/// A hook as Codex sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHook {
    /// Its name in `hooks.state` of the configuration.
    pub key: String,
    /// What it runs.
    pub command: String,
    /// The file in which it stands.
    pub source: PathBuf,
    /// What has to stand in the configuration for Codex to run it.
    pub hash: String,
    /// Whether that stands there. A hook that is not trusted is passed over without a word.
    pub is_trusted: bool,
    /// Whether it is switched on.
    pub is_enabled: bool,
}

/// The hooks that Codex would run in a directory, and what it does not like about them. A version without hooks fails.
pub fn hooks(program: &Program, directory: &Path) -> Result<(Vec<KnownHook>, Vec<String>), ProgramError> {
    let mut server = AppServer::start(program, directory)?;
    let answer = server.call("hooks/list", &json!({ "cwds": [directory.to_string_lossy()] }))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (mut hooks, mut complaints) = (Vec::new(), Vec::new());
    for place in list(&answer["data"]) {
        hooks.extend(list(&place["hooks"]).iter().map(|hook| KnownHook {
            key: text(&hook["key"]),
            command: text(&hook["command"]),
            source: PathBuf::from(text(&hook["sourcePath"])),
            hash: text(&hook["currentHash"]),
            is_trusted: matches!(hook["trustStatus"].as_str(), Some("trusted" | "managed")),
            is_enabled: hook["enabled"].as_bool().unwrap_or(true),
        }));
        complaints.extend(list(&place["warnings"]).iter().map(text));
        complaints.extend(list(&place["errors"]).iter().map(|error| match &error["message"] {
            Value::String(message) => message.clone(),
            _ => error.to_string(),
        }));
    }
    Ok((hooks, complaints))
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
            counted.see(&record, place, &mut steps);
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
