//! OpenCode's own program: its fork, messages without a terminal, and its command lines.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use transcript::SessionId;

use super::chat::OpenCodeChat;
use super::http::Server;
use super::message::{Meaning, StoredMessage};
use super::source::SessionSource;
use super::{OpenCode, ids, title, windows};
use crate::chat::{ChatOrder, Protocol};
use crate::launch::Launch;
use crate::options::Choice;
use crate::program::{
    ANSWER_PATIENCE, ForkRequest, HeadlessMessage, NewSession, Program, ProgramError, Reply, SessionRef,
};

impl Launch for OpenCode {
    fn start_command(
        &self,
        _id: &SessionId,
        _title: &str,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(directory, &[], options, prompt)
    }

    fn resume_command(
        &self,
        session: SessionRef<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(directory, &["--session", session.id.as_str()], options, prompt)
    }

    fn new_id(&self, now: Timestamp) -> SessionId {
        ids::new_session(now)
    }

    fn accepts_ids(&self) -> bool {
        false
    }

    fn forked_session(&self, words: &[String]) -> Option<Option<SessionId>> {
        let given = super::options::LAUNCH_OPTIONS.read(words.get(1..).unwrap_or_default());
        let chosen = |wanted: Choice| given.chosen.iter().find(|chosen| chosen.choice == wanted);
        chosen(Choice::Fork)?;
        Some(chosen(Choice::Resume).and_then(|chosen| SessionId::new(chosen.value.clone()?).ok()))
    }

    fn fork(&self, program: &Program, request: &ForkRequest<'_>) -> Result<NewSession, ProgramError> {
        let failed = |error: std::io::Error| program.failed(error.to_string());
        let source = SessionSource::open(request.source).map_err(failed)?;
        // The agent's own fork always works in the directory of its source.
        let directory = source.session().text("directory").unwrap_or_default().to_owned();
        if Path::new(&directory) != request.directory {
            return Err(program.unable("fork into another directory"));
        }
        let body = match request.turns.map(|turns| prompt_after(source, turns)).transpose().map_err(failed)?.flatten() {
            Some(next) => json!({ "messageID": next }),
            None => json!({}),
        };
        let server = Server::start(program, request.directory)?;
        let path = format!("/session/{}/fork?directory={}", request.source_id, escaped(&directory));
        let made = server.post(&path, &body)?;
        let id = made["id"].as_str().and_then(|id| SessionId::new(id).ok());
        let id = id.ok_or_else(|| program.failed("it reported no session id"))?;
        drop(server);
        let path = self.home.path_of(&id);
        title::set(&path, request.title, None).map_err(failed)?;
        Ok(NewSession { id, path })
    }

    fn send(&self, program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
        send(program, message)
    }

    fn chat(&self, _program: &Program, order: ChatOrder) -> Result<Box<dyn Protocol>, ProgramError> {
        Ok(Box::new(OpenCodeChat::new(order)))
    }

    fn context_window(&self, model: Option<&str>, _version: Option<&str>) -> u64 {
        windows::window_of(&self.home, model)
    }

    fn context_windows(&self) -> &'static [u64] {
        windows::SIZES
    }
}

/// A command for a terminal. The directory is the first argument, so that the session is found wherever it is run.
fn command(directory: &Path, session: &[&str], options: &[String], prompt: Option<&str>) -> Vec<String> {
    let mut command = vec!["opencode".to_owned(), directory.to_string_lossy().into_owned()];
    command.extend(session.iter().map(|word| (*word).to_owned()));
    command.extend(options.iter().cloned());
    command.extend(prompt.map(|prompt| format!("--prompt={prompt}")));
    command
}

/// The id of the message with which the turn after `turns` begins.
fn prompt_after(mut source: SessionSource, turns: u32) -> std::io::Result<Option<String>> {
    let mut count = 0;
    while let Some((message, parts)) = source.next_message()? {
        if matches!(StoredMessage::of(&message, &parts).meaning(), Meaning::Prompt(_)) {
            count += 1;
        }
        if count > turns {
            return Ok(message.text("id").map(str::to_owned));
        }
    }
    Ok(None)
}

/// Sends a message with `opencode run`. Standard input is taken verbatim, unlike an argument.
fn send(program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
    let mut command = program.command(message.directory);
    command.args(["run", "--format", "json"]).args(message.options);
    match (message.session, message.title) {
        (Some(session), _) => {
            command.args(["--session", session.id.as_str()]);
        }
        (None, Some(title)) => {
            command.arg(format!("--title={title}"));
        }
        (None, None) => {}
    }
    let told = program.run_telling(command, message.text, ANSWER_PATIENCE, failure_in)?;
    if let Some(failure) = failure_in(&told) {
        return Err(program.failed(failure));
    }
    let (mut id, mut answer) = (None, String::new());
    for event in events(&told) {
        id = event["sessionID"].as_str().and_then(|id| SessionId::new(id).ok()).or(id);
        match event["type"].as_str() {
            Some("text") => answer = event["part"]["text"].as_str().unwrap_or_default().to_owned(),
            Some("tool_use") => answer.clear(),
            _ => {}
        }
    }
    let id = id.ok_or_else(|| program.failed("it reported no session id"))?;
    Ok(Reply { id, answer, windows: Vec::new() })
}

fn events(told: &str) -> impl Iterator<Item = Value> {
    told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok())
}

/// The error among the events.
fn failure_in(told: &str) -> Option<String> {
    let error = events(told).filter(|event| event["type"] == "error").last()?["error"].take();
    let said = error["data"]["message"].as_str().or(error["message"].as_str()).or(error["name"].as_str());
    Some(said.unwrap_or("it reported an error").to_owned())
}

/// A path in the query of an address.
fn escaped(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
