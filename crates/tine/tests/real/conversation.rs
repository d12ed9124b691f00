//! A conversation as tine shows it and as the model saw it, to compare the two, and running tine in a sandbox.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use testkit::Sandbox;
use testkit::model::{Block, Request};
use testkit::sandbox::expect_success;

/// Runs tine in the sandbox and returns what it printed.
pub(crate) fn tine(sandbox: &Sandbox, directory: &Path, arguments: &[&str]) -> String {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    expect_success(&command.current_dir(directory).args(arguments).output().expect("tine"))
}

/// Runs tine and parses what it printed.
pub(crate) fn tine_json(sandbox: &Sandbox, directory: &Path, arguments: &[&str]) -> Value {
    let output = tine(sandbox, directory, arguments);
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error} in {output}"))
}

/// What `tine status` says of a session; nothing as long as there is no such session.
pub(crate) fn state(sandbox: &Sandbox, directory: &Path, session: &str) -> String {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    let output = command.current_dir(directory).args(["status", session]).output().expect("tine");
    testkit::sandbox::text(&output.stdout).trim().to_owned()
}

/// A source that is at work is not forked unless at its last complete turn, of which there is one.
pub(crate) fn assert_forked_only_now(sandbox: &Sandbox, directory: &Path, session: &str) {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    let refused = command.current_dir(directory).args(["fork", session]).output().expect("tine");
    let output = testkit::sandbox::text(&refused.stderr);
    assert!(!refused.status.success() && output.contains("is busy") && output.contains("--now"), "{output}");
    let made = tine_json(sandbox, directory, &["fork", session, "--now", "--json"]);
    assert_eq!(made["session"]["turns"], 1, "{made:#}");
}

/// The words, calls and results of a conversation.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Conversation {
    pub prompts: Vec<String>,
    pub answers: Vec<String>,
    pub calls: BTreeMap<String, (String, Value)>,
    pub results: BTreeMap<String, String>,
}

impl Conversation {
    /// What `tine show --json` prints up to the last prompt.
    pub(crate) fn from_show(sandbox: &Sandbox, directory: &Path, session: &str) -> Conversation {
        let shown = tine_json(sandbox, directory, &["show", session, "--json"]);
        let mut conversation = Conversation::default();
        let turns = shown["turns"].as_array().expect("turns");
        for (index, turn) in turns.iter().enumerate() {
            conversation.prompts.extend(turn["prompt"].as_str().map(str::to_owned));
            if index + 1 < turns.len() {
                for block in turn["blocks"].as_array().expect("blocks") {
                    conversation.note(block);
                }
            }
        }
        conversation
    }

    fn note(&mut self, block: &Value) {
        let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        match block["kind"].as_str().expect("a kind") {
            "prompt" => self.prompts.push(text("text")),
            "answer" => self.answers.push(text("text")),
            "call" => {
                self.calls.insert(text("id"), (text("name"), block["input"].clone()));
            }
            "output" => {
                self.results.insert(text("call"), text("text"));
            }
            _ => {}
        }
    }

    /// What the model saw in the request for the last prompt.
    pub(crate) fn from_request(request: &Request) -> Conversation {
        let mut conversation =
            Conversation { prompts: request.prompts(), answers: request.texts("assistant"), ..Conversation::default() };
        for message in request.messages() {
            for block in message.blocks {
                match block {
                    Block::ToolUse { id, name, input } => {
                        conversation.calls.insert(id, (name, input));
                    }
                    Block::ToolResult { id, text } => {
                        conversation.results.insert(id, text);
                    }
                    _ => {}
                }
            }
        }
        conversation
    }

    /// Compares what tine shows with what the model saw.
    pub(crate) fn assert_matches(&self, seen: &Conversation) {
        assert_eq!(self.prompts, seen.prompts, "prompts");
        assert_eq!(self.answers, seen.answers, "answers");
        assert_eq!(self.calls, seen.calls, "calls");
        assert_eq!(self.results.keys().collect::<Vec<_>>(), seen.results.keys().collect::<Vec<_>>(), "results");
        for (call, result) in &self.results {
            let sent = &seen.results[call];
            // A large output is stored in a file and sent as a preview; tine tells all of it.
            let preview = sent.starts_with("<persisted-output>") && result.len() > sent.len();
            // Codex sends a header before the output, which tine leaves out.
            assert!(
                preview || sent.trim_end().ends_with(result.trim_end()),
                "result of {call}: {result:?} for {sent:?}"
            );
        }
    }
}

/// The session with this id out of `tine list --all --json`.
pub(crate) fn listed(sandbox: &Sandbox, directory: &Path, id: &str) -> Value {
    let sessions = tine_json(sandbox, directory, &["list", "--all", "--json"]);
    let found = sessions.as_array().expect("an array").iter().find(|session| session["id"] == id).cloned();
    found.unwrap_or_else(|| panic!("{id} is not in {sessions:#}"))
}
