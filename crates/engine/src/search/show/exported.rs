//! Sessions that no longer exist, from the Markdown files of `tine export`.

use std::path::PathBuf;

use agents::Stamp;
use transcript::{Agent, SessionId, SessionView, State, text};

use super::Found;
use super::snippet::Snippet;
use crate::search::query::Limits;
use crate::sessions::project::Project;
use crate::sessions::session::{Details, Session};

/// The warning for a result without a transcript.
const WARNING: &str = "the transcript no longer exists; only the exported file is left";

/// The first lines of an exported file.
pub(crate) struct Header<'a>(pub &'a str);

impl Header<'_> {
    /// The value of a line such as `title: "A title"`. Whatever prints the file may number its lines.
    fn value(&self, name: &str) -> Option<String> {
        let mut lines = self.0.lines().map(|line| {
            let numbered = line.split_once(": ").filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
            numbered.map_or(line, |(_, line)| line)
        });
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?.trim();
        // Every text is quoted as in JSON.
        let text = serde_json::from_str(value).unwrap_or_else(|_| value.to_owned());
        Some(text::one_line(&text)).filter(|text| !text.is_empty())
    }

    /// The session that the file was made from, according to the file.
    pub(crate) fn session(&self, id: SessionId, file: &str) -> Session {
        let named = Agent::ALL.into_iter().find(|agent| file.starts_with(&format!("{agent}-")));
        let written = || self.value("agent").and_then(|agent| agent.parse().ok());
        let time = |name| self.value(name).and_then(|time| time.parse().ok());
        let view = SessionView {
            agent: named.or_else(written).unwrap_or_default(),
            handle: id.short().to_owned(),
            name: None,
            title: self.value("title"),
            cwd: self.value("directory").map(PathBuf::from),
            branch: self.value("branch"),
            path: PathBuf::new(),
            created: time("created"),
            updated: time("updated"),
            turns: self.value("turns").and_then(|turns| turns.parse().ok()).unwrap_or(0),
            state: State::Stopped,
            parent: None,
            unstarted: false,
            id,
        };
        Session {
            view,
            details: Details::default(),
            live: None,
            size: 0,
            stamp: Stamp::default(),
            is_settled: true,
            number: None,
        }
    }
}

/// A result for a session that no longer exists.
pub(crate) fn found(session: Session, snippet: Snippet, score: f32, source: String) -> Found {
    let (warning, turn) = (Some(WARNING.to_owned()), session.view.turns);
    Found { score, session, turn, snippet, warning, forks: Vec::new(), source: Some(source) }
}

/// Whether a session that no longer exists matches the filters.
pub(crate) fn is_asked(view: &SessionView, limits: &Limits) -> bool {
    let in_project = |directory: &PathBuf| view.cwd.as_deref().is_some_and(|cwd| Project::of(directory).contains(cwd));
    limits.agent.is_none_or(|agent| agent == view.agent)
        && limits.directory.as_ref().is_none_or(in_project)
        && limits.branch.as_ref().is_none_or(|branch| view.branch.as_ref() == Some(branch))
        && limits.since.is_none_or(|since| view.updated.is_some_and(|updated| updated >= since))
        && limits.until.is_none_or(|until| view.created.is_none_or(|created| created < until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_with_and_without_line_numbers() {
        let id = || SessionId::new("1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21").unwrap();
        let lines = [
            "---",
            "session: \"1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21\"",
            "agent: codex",
            "title: \"A \\\"title\\\": here\"",
            "directory: \"/work/shop\"",
            "updated: \"2026-11-10T12:00:00Z\"",
            "turns: 7",
            "---",
        ];
        let numbered: Vec<String> = lines.iter().enumerate().map(|(at, line)| format!("{}: {line}", at + 1)).collect();
        for text in [lines.join("\n"), numbered.join("\n")] {
            let view = Header(&text).session(id(), "notes.md").view;
            assert_eq!((view.agent, view.title.as_deref(), view.turns), (Agent::Codex, Some("A \"title\": here"), 7));
            assert_eq!(view.cwd.as_deref(), Some(std::path::Path::new("/work/shop")));
            assert_eq!(view.updated.unwrap().to_string(), "2026-11-10T12:00:00Z");
        }
        assert_eq!(Header("").session(id(), "codex-1f3a.md").view.agent, Agent::Codex);
    }
}
