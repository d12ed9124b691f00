//! One pass over a session for its facts.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use transcript::{Agent, DefectKind, SessionId, Summary, text};

use super::home;
use super::message::{Meaning, StoredMessage};
use super::row::Row;
use super::source::SessionSource;

/// What a title needs of a prompt.
const TITLE_BYTES: usize = 200;

/// Reads a session once. A damaged one gives what could be read.
pub(super) fn scan(path: &Path) -> Summary {
    let mut pass = FactScan::new(path);
    if let Err(error) = pass.read(path) {
        pass.fail(&error);
    }
    pass.finish()
}

/// The facts so far.
pub(super) struct FactScan {
    summary: Summary,
    last: Option<Timestamp>,
    has_messages: bool,
}

impl FactScan {
    pub(super) fn new(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = home::split(path).map_or(name, |(_, id)| id);
        let id = SessionId::new(id).unwrap_or_else(|_| SessionId::new("unknown").expect("a legal id"));
        FactScan { summary: Summary::new(Agent::OpenCode, id, path.to_owned()), last: None, has_messages: false }
    }

    fn read(&mut self, path: &Path) -> io::Result<()> {
        let mut source = SessionSource::open(path)?;
        self.session(source.session());
        while let Some((message, parts)) = source.next_message()? {
            self.message(&StoredMessage::of(&message, &parts));
        }
        Ok(())
    }

    /// Notes that the rest can't be read.
    pub(super) fn fail(&mut self, error: &io::Error) {
        let is_unknown = error.kind() == io::ErrorKind::InvalidData && error.to_string().contains("format");
        self.summary.defects.add(if is_unknown { DefectKind::UnknownFormat } else { DefectKind::Unreadable });
    }

    /// Takes the row of the session.
    pub(super) fn session(&mut self, row: &Row) {
        let summary = &mut self.summary;
        if let Some(id) = row.text("id").and_then(|id| SessionId::new(id).ok()) {
            summary.id = id;
        }
        let time = |column: &str| row.number(column).and_then(|time| Timestamp::from_millisecond(time).ok());
        summary.agent_title = row.text("title").filter(|title| !is_placeholder(title)).map(str::to_owned);
        summary.cwd = row.text("directory").filter(|directory| !directory.is_empty()).map(PathBuf::from);
        summary.version = row.text("version").filter(|version| !version.is_empty()).map(str::to_owned);
        summary.created = time("time_created");
        summary.updated = time("time_updated");
        summary.is_subagent = row.text("parent_id").is_some();
    }

    /// Takes the next message.
    pub(super) fn message(&mut self, message: &StoredMessage<'_>) {
        self.has_messages = true;
        self.last = self.last.max(message.created()).max(message.completed());
        let summary = &mut self.summary;
        match message.meaning() {
            Meaning::Prompt(prompt) => {
                summary.turns += 1;
                summary.turn_keys.push(prompt.key);
                summary.mid_turn = true;
                if summary.first_prompt.is_none() && !prompt.text.trim().is_empty() {
                    summary.first_prompt = Some(text::prefix(prompt.text.trim(), TITLE_BYTES).to_owned());
                }
            }
            Meaning::Injected => {}
            Meaning::CompactionRequest => summary.mid_turn = true,
            meaning @ (Meaning::Answer | Meaning::Summary) => {
                summary.mid_turn = message.leaves_turn_open();
                summary.model = message.model().or(summary.model.take());
                summary.compacted |= meaning == Meaning::Summary && message.completed().is_some();
                if let Some(tokens) = message.tokens() {
                    summary.tokens = Some(tokens);
                    summary.largest_context = summary.largest_context.max(tokens.context());
                }
            }
            Meaning::Damaged => summary.defects.add(DefectKind::BadLine),
        }
    }

    pub(super) fn finish(self) -> Summary {
        let FactScan { mut summary, last, has_messages } = self;
        summary.is_empty = !has_messages && summary.defects.is_empty();
        summary.updated = last.or(summary.updated);
        summary
    }
}

/// Whether a title is what OpenCode writes before the model has found one.
fn is_placeholder(title: &str) -> bool {
    let title = title.trim();
    let is_dated = |start: &str| {
        let rest = title.strip_prefix(start);
        rest.is_some_and(|rest| rest.len() >= 10 && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit))
    };
    title.is_empty() || is_dated("New session - ") || is_dated("Child session - ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_titles() {
        assert!(is_placeholder("New session - 2026-11-19T22:30:00.000Z"));
        assert!(is_placeholder(" "));
        assert!(!is_placeholder("New session - for the login"));
        assert!(!is_placeholder("Fix the login"));
    }
}
