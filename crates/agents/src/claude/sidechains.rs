//! Subagents inside the session's own file, as written by 1.0.x: records with `isSidechain`, among those of the
//! session, from the call to its result. Only the prompt shows which call started which subagent.

use std::collections::HashMap;

use super::record::Record;
use super::words::{prompt_text, string};
use crate::fields::Raw;
use crate::files::fingerprint;

/// The sidechains that were passed, and the calls that may have started them.
#[derive(Debug, Default)]
pub(super) struct Sidechains {
    roots: Vec<Root>,
    tasks: HashMap<String, Task>,
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
    prompt: u64,
    /// The position of the call.
    offset: u64,
}

impl Sidechains {
    /// Notes a record if a sidechain begins with it.
    pub(super) fn pass(&mut self, record: &Record<'_>, offset: u64) {
        if !record.sidechain || record.parent.is_some() {
            return;
        }
        let content = record.message.and_then(|message| message.get(b"content"));
        if let (Some(id), Some(content)) = (string(record.id), content) {
            self.roots.push(Root { id, offset, prompt: fingerprint(prompt_text(content).as_bytes()) });
        }
    }

    /// Notes a call that starts a subagent.
    pub(super) fn call(&mut self, call: &str, input: Raw<'_>, offset: u64) {
        let Some(prompt) = string(input.get(b"prompt")) else { return };
        let (role, description) = (string(input.get(b"subagent_type")), string(input.get(b"description")));
        let task = Task { role, description, prompt: fingerprint(prompt.as_bytes()), offset };
        self.tasks.insert(call.to_owned(), task);
    }

    /// The sidechain that a call started, once: the one with the call's own prompt, or the only one since the call.
    pub(super) fn started_by(&mut self, call: &str) -> Option<(Root, Task)> {
        let task = self.tasks.remove(call)?;
        let same = self.roots.iter().position(|root| root.prompt == task.prompt);
        let found = same.or_else(|| {
            let mut since = (0..self.roots.len()).filter(|root| self.roots[*root].offset > task.offset);
            since.next().filter(|_| since.next().is_none())
        });
        Some((self.roots.remove(found?), task))
    }
}
