//! Subagents inside the session's own file, as written by 1.0.x: records with `isSidechain`, among those of the
//! session, from the call to its result. Only the prompt shows which call started which subagent. There may be no
//! result, if the user interrupted the call or the file ends, and no call.

use std::collections::HashMap;

use jiff::Timestamp;

use super::record::Record;
use super::words::{prompt_text, string};
use crate::fields::Raw;
use crate::files::fingerprint;

/// The sidechains that were passed, and the calls that may have started them.
#[derive(Debug, Default)]
pub(super) struct Sidechains {
    roots: Vec<Root>,
    tasks: HashMap<String, Task>,
    /// The prompts of calls on other branches, whose sidechains are still to come.
    elsewhere: Vec<u64>,
}

/// The first record of a sidechain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    /// Its id.
    pub id: String,
    /// Its position.
    pub offset: u64,
    prompt: u64,
}

/// The subagent that a call starts.
#[derive(Debug)]
pub(super) struct Task {
    pub role: Option<String>,
    pub description: Option<String>,
    /// The [`fingerprint`] of the subagent's prompt.
    pub prompt: u64,
    /// The time of the call.
    pub at: Option<Timestamp>,
    /// The position of the call.
    offset: u64,
}

impl Sidechains {
    /// Notes a record if a sidechain begins with it. Returns whether one begins that belongs to another branch.
    pub(super) fn pass(&mut self, record: &Record<'_>, offset: u64) -> bool {
        if !record.sidechain || record.parent.is_some() {
            return false;
        }
        let content = record.message.and_then(|message| message.get(b"content"));
        let (Some(id), Some(content)) = (string(record.id), content) else { return false };
        let prompt = fingerprint(prompt_text(content).as_bytes());
        if let Some(found) = self.elsewhere.iter().position(|elsewhere| *elsewhere == prompt) {
            self.elsewhere.remove(found);
            return true;
        }
        self.roots.push(Root { id, offset, prompt });
        false
    }

    /// Notes a call that starts a subagent.
    pub(super) fn call(&mut self, call: &str, input: Raw<'_>, at: Option<Timestamp>, offset: u64) {
        let Some(prompt) = string(input.get(b"prompt")) else { return };
        let (role, description) = (string(input.get(b"subagent_type")), string(input.get(b"description")));
        let task = Task { role, description, prompt: fingerprint(prompt.as_bytes()), at, offset };
        self.tasks.insert(call.to_owned(), task);
    }

    /// Notes the calls in a record of another branch.
    pub(super) fn call_elsewhere(&mut self, record: &Record<'_>) {
        let content = record.message.and_then(|message| message.get(b"content"));
        for input in content.into_iter().flat_map(Raw::elements).filter_map(input_of_task) {
            self.elsewhere.extend(string(input.get(b"prompt")).map(|prompt| fingerprint(prompt.as_bytes())));
        }
    }

    /// What a call says of the subagent that it starts, once.
    pub(super) fn task(&mut self, call: &str) -> Option<Task> {
        self.tasks.remove(call)
    }

    /// The calls that have no result yet, in their order, each once.
    pub(super) fn unfinished(&mut self) -> Vec<(String, Task)> {
        let mut tasks: Vec<(String, Task)> = self.tasks.drain().collect();
        tasks.sort_by_key(|(_, task)| task.offset);
        tasks
    }

    /// The sidechain that a call started, once: the one with the call's own prompt, or the only one since the call.
    pub(super) fn started_by(&mut self, task: &Task) -> Option<Root> {
        let same = self.roots.iter().position(|root| root.prompt == task.prompt);
        let found = same.or_else(|| {
            let mut since = (0..self.roots.len()).filter(|root| self.roots[*root].offset > task.offset);
            since.next().filter(|_| since.next().is_none())
        });
        Some(self.roots.remove(found?))
    }

    /// The sidechains that no call started, each once.
    pub(super) fn rest(&mut self) -> Vec<Root> {
        std::mem::take(&mut self.roots)
    }
}

/// What an element of an answer asks a subagent, if it is a call that starts one.
pub(super) fn input_of_task(element: Raw<'_>) -> Option<Raw<'_>> {
    let name = element.get(b"name").and_then(Raw::plain);
    matches!(name, Some(b"Task" | b"Agent")).then(|| element.get(b"input")).flatten()
}
