//! Gemini CLI's own program: its fork, messages without a terminal, and chats.

use std::fs;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;
use jiff::Timestamp;
use serde_json::Value;
use transcript::SessionId;

use super::Gemini;
use super::chat::GEMINI;
use super::home::id_inside;
use crate::chat::{AcpChat, ChatOrder, Protocol};
use crate::ids;
use crate::launch::Launch;
use crate::program::{
    ANSWER_PATIENCE, ForkRequest, HeadlessMessage, NewSession, Program, ProgramError, Reply, SessionRef,
};

impl Launch for Gemini {
    fn start_command(
        &self,
        id: &SessionId,
        _title: &str,
        _directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(&["--session-id", id.as_str()], options, prompt)
    }

    fn resume_command(
        &self,
        session: SessionRef<'_>,
        _directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(&["--resume", session.id.as_str()], options, prompt)
    }

    /// Two files whose names have the same characters of an id are one session for the client, and it deletes both.
    fn new_id(&self, _now: Timestamp) -> SessionId {
        let files = self.home.discover().files;
        loop {
            let id = ids::random_id();
            if !files.iter().any(|file| file.is_called(id.as_str())) {
                return id;
            }
        }
    }

    fn accepts_ids(&self) -> bool {
        true
    }

    fn forked_session(&self, words: &[String]) -> Option<Option<SessionId>> {
        forked_by(words)
    }

    fn fork(&self, program: &Program, _request: &ForkRequest<'_>) -> Result<NewSession, ProgramError> {
        Err(program.unable("fork a session without a request to its model"))
    }

    fn send(&self, program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
        let before = message.session.map(|session| SecondName::of(session.path));
        let reply = send(program, message);
        if let (Some(kept), Some(session)) = (before, message.session) {
            kept.restore_if_lost(session.path);
            self.remove_stubs(session.id, session.path);
        }
        reply
    }

    fn chat(&self, _program: &Program, order: ChatOrder) -> Result<Box<dyn Protocol>, ProgramError> {
        Ok(Box::new(AcpChat::new(&GEMINI, order)))
    }

    fn context_window(&self, model: Option<&str>, _version: Option<&str>) -> u64 {
        super::windows::window_of(model)
    }

    fn context_windows(&self) -> &'static [u64] {
        super::windows::SIZES
    }

    fn input_limit(&self) -> Option<usize> {
        Some(INPUT_LIMIT)
    }
}

/// What the client takes on standard input; it cuts off the rest.
const INPUT_LIMIT: usize = 8_388_608;

impl Gemini {
    /// Removes the files without messages that a headless resume leaves behind. The client's next clean-up would delete
    /// them together with the session itself, because their names have the same part of the id (0.61.0).
    fn remove_stubs(&self, id: &SessionId, path: &Path) {
        for stub in self.home.stubs_of(id, path) {
            let summary = super::scan::scan(&stub);
            if summary.turns == 0 && summary.id == *id {
                fs::remove_file(&stub).or_log(format_args!("remove {}", stub.display()));
            }
        }
    }
}

/// A second name for a session's file while a program runs that may delete it.
struct SecondName(Option<PathBuf>);

impl SecondName {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kept = path.with_file_name(format!(".{name}.tine-kept"));
        // A link costs nothing, and the client appends to the file that it names.
        let linked = fs::hard_link(path, &kept).or_log(format_args!("keep {}", path.display()));
        SecondName(linked.map(|()| kept))
    }

    fn restore_if_lost(&self, path: &Path) {
        let Some(kept) = &self.0 else { return };
        if path.exists() {
            fs::remove_file(kept).or_log(format_args!("remove {}", kept.display()));
        } else {
            fs::rename(kept, path).or_log(format_args!("restore {}", path.display()));
        }
    }
}

/// A command for a terminal, with something to say first.
fn command(session: &[&str], options: &[String], prompt: Option<&str>) -> Vec<String> {
    let mut command = vec!["gemini".to_owned()];
    command.extend(session.iter().map(|word| (*word).to_owned()));
    command.extend(options.iter().cloned());
    // In one word, so that a prompt may begin with a dash.
    command.extend(prompt.map(|prompt| format!("--prompt-interactive={prompt}")));
    command
}

/// The session that a command line forks: `--session-file` with the path of a chat file.
fn forked_by(words: &[String]) -> Option<Option<SessionId>> {
    const OPTION: &str = "--session-file";
    let mut words = words.iter().take_while(|word| *word != "--");
    let file = words.by_ref().find_map(|word| match word.strip_prefix(OPTION) {
        Some("") => Some(None),
        Some(value) => value.strip_prefix('=').map(|value| Some(value.to_owned())),
        None => None,
    })?;
    let file = file.or_else(|| words.next().cloned());
    Some(file.and_then(|file| SessionId::new(id_inside(Path::new(&file))?).ok()))
}

/// Says something in headless mode; the words go through standard input.
fn send(program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
    let mut command = program.command(message.directory);
    let own = ["-o", "--output-format"];
    let options = message.options.iter().filter(|option| !own.contains(&option.as_str()));
    command.args(options).args(["-o", "stream-json"]);
    if let Some(session) = message.session {
        command.args(["--resume", session.id.as_str()]);
    } else if let Some(id) = message.id {
        command.args(["--session-id", id.as_str()]);
    }
    let told = program.run_telling(command, &plain(message.text), ANSWER_PATIENCE, failure_in)?;
    let (mut id, mut answer, mut failure) = (None, String::new(), None);
    for event in events(&told) {
        match event["type"].as_str() {
            Some("init") => id = event["session_id"].as_str().and_then(|id| SessionId::new(id).ok()),
            Some("message") if event["role"] == "assistant" => {
                answer.push_str(event["content"].as_str().unwrap_or_default());
            }
            // Text before a tool call is not the answer.
            Some("tool_use") => answer.clear(),
            Some("result") if event["status"] != "success" => {
                failure = Some(failure_in(&event.to_string()).unwrap_or_else(|| "its turn failed".to_owned()));
            }
            _ => {}
        }
    }
    if let Some(failure) = failure {
        return Err(program.failed(failure));
    }
    let id = id.ok_or_else(|| program.failed("it reported no session id"))?;
    Ok(Reply { id, answer: answer.trim_end().to_owned(), windows: Vec::new() })
}

/// The client drops prompts that begin with these from what it sends after a resume, and takes them for commands before.
pub(super) fn plain(text: &str) -> String {
    match text.trim_start().chars().next() {
        Some('/' | '?') => format!("\u{200b}{text}"),
        _ => text.to_owned(),
    }
}

fn events(told: &str) -> impl DoubleEndedIterator<Item = Value> + '_ {
    told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok())
}

/// Why a turn failed, according to its events.
fn failure_in(told: &str) -> Option<String> {
    events(told).rev().find_map(|event| {
        let reason = event["error"]["message"].as_str().or(event["message"].as_str());
        reason.map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_forks_is_recognized() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session-x-aaaaaaaa.jsonl");
        fs::write(&file, "{\"sessionId\":\"aaaaaaaa-1\",\"projectHash\":\"x\"}\n").unwrap();
        let path = file.to_string_lossy().into_owned();
        let check = |words: &[&str], expected: Option<Option<&str>>| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let expected = expected.map(|id| id.map(|id| SessionId::new(id).unwrap()));
            assert_eq!(forked_by(&words), expected, "{words:?}");
        };
        check(&["-m", "x", "--session-file", &path], Some(Some("aaaaaaaa-1")));
        check(&[&format!("--session-file={path}")], Some(Some("aaaaaaaa-1")));
        check(&["--session-file", "/nowhere"], Some(None));
        check(&["--resume", "x"], None);
        check(&["--", "--session-file", &path], None);
    }

    #[test]
    fn a_deleted_session_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session.jsonl");
        for is_lost in [true, false] {
            fs::write(&file, "one\n").unwrap();
            let kept = SecondName::of(&file);
            fs::write(&file, "one\ntwo\n").unwrap();
            if is_lost {
                fs::remove_file(&file).unwrap();
            }
            kept.restore_if_lost(&file);
            assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\n");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
