//! What the workbench knows.

use std::path::{Path, PathBuf};

use engine::{Clock, Plan, Project, Request, Session};
use jiff::tz::TimeZone;
use transcript::{Agent, SessionView};

use super::document::Document;
use super::event::{Effect, Hit, Trouble};
use super::graph::{self, Row};

/// Everything that is shown, and everything that decides what a key does.
pub(crate) struct State {
    pub size: (u16, u16),
    pub clock: Clock,
    pub zone: TimeZone,
    pub home: PathBuf,
    pub project: Project,
    /// The sessions, newest first; nothing before they were read.
    pub sessions: Option<Vec<Session>>,
    pub rows: Vec<Row>,
    /// The selected row.
    pub selected: usize,
    /// The first row on the screen.
    pub top: usize,
    pub scope: Scope,
    pub agent: Option<Agent>,
    /// What the list is narrowed to, and whether it is being typed.
    pub filter: String,
    pub screen: Screen,
    pub popup: Option<Popup>,
    /// The transcript next to the list.
    pub preview: Option<Reader>,
    /// What happened last.
    pub message: Option<Message>,
    ticket: u64,
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those of this directory, its repository and all its worktrees.
    Here,
    /// All.
    Everywhere,
}

/// What fills the screen.
pub(crate) enum Screen {
    /// The list of sessions.
    Sessions {
        /// Whether letters go to the filter.
        filtering: bool,
    },
    /// One transcript.
    Transcript(Box<Reader>),
    /// Search as you type.
    Search(SearchState),
}

/// A transcript that is read.
pub(crate) struct Reader {
    pub session: Session,
    /// Nothing before it was read.
    pub document: Option<Document>,
    /// The first line on the screen.
    pub top: usize,
    /// Whether tool calls and thinking are shown in full.
    pub full: bool,
    /// The requested turn, until the user scrolls away from it.
    pub chosen: Option<u32>,
    pub ticket: u64,
}

/// A search.
#[derive(Default)]
pub(crate) struct SearchState {
    pub query: String,
    pub hits: Vec<Hit>,
    pub selected: usize,
    /// Whether an answer is still to come.
    pub is_running: bool,
    pub ticket: u64,
}

/// The popup over the screen.
pub(crate) enum Popup {
    /// The keys of the screen.
    Help,
    /// A fork that is being prepared.
    Fork(Box<ForkDialog>),
    /// A new name.
    Rename {
        /// The session.
        session: Box<Session>,
        /// The name so far.
        name: String,
    },
}

/// A fork that is being prepared.
pub(crate) struct ForkDialog {
    pub request: Request,
    /// The name as typed; the engine chooses one if it is empty.
    pub name: String,
    /// The plan for the request, or why it is impossible; `None` while it is being made.
    pub plan: Option<Result<Box<Plan>, Trouble>>,
    pub ticket: u64,
    /// Whether the user has chosen the workspace.
    pub workspace_is_chosen: bool,
}

/// What happened last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    Done(String),
    Failed(Trouble),
}

impl State {
    pub(crate) fn new(directory: &Path, home: PathBuf, clock: Clock, zone: TimeZone) -> Self {
        State {
            size: (80, 24),
            clock,
            zone,
            home,
            project: Project::of(directory),
            sessions: None,
            rows: Vec::new(),
            selected: 0,
            top: 0,
            scope: Scope::Here,
            agent: None,
            filter: String::new(),
            screen: Screen::Sessions { filtering: false },
            popup: None,
            preview: None,
            message: None,
            ticket: 0,
        }
    }

    /// The first effects.
    pub(crate) fn begin(&mut self) -> Vec<Effect> {
        vec![Effect::LoadSessions]
    }

    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
    }

    /// A number for a request; answers to earlier ones are dropped.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    /// The selected session.
    pub(crate) fn selection(&self) -> Option<&Session> {
        match self.rows.get(self.selected)? {
            Row::Session { index, .. } => self.sessions.as_ref()?.get(*index),
            Row::Heading(_) => None,
        }
    }

    /// Lays the list out again and keeps the selection on the same session.
    pub(crate) fn arrange(&mut self) {
        let kept = self.selection().map(Session::key);
        let sessions = self.sessions.as_deref().unwrap_or_default();
        let views: Vec<&SessionView> = sessions.iter().map(|session| &session.view).collect();
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let is_shown = |index: usize| {
            let view = views[index];
            let is_here = || view.cwd.as_deref().is_some_and(|cwd| self.project.contains(cwd));
            (self.scope == Scope::Everywhere || is_here())
                && self.agent.is_none_or(|agent| agent == view.agent)
                && (words.is_empty() || words.iter().all(|word| searchable(view).contains(word)))
        };
        self.rows = graph::rows(&views, is_shown, &self.home);
        let is_kept = |row: &Row| match row {
            Row::Session { index, .. } => kept.as_ref().is_some_and(|kept| sessions[*index].key() == *kept),
            Row::Heading(_) => false,
        };
        let first = || self.rows.iter().position(|row| matches!(row, Row::Session { .. }));
        self.selected = self.rows.iter().position(is_kept).or_else(first).unwrap_or(0);
        self.keep_in_sight();
    }

    /// Moves the selection over sessions, past headings.
    pub(crate) fn select(&mut self, steps: isize) {
        let is_session = |row: &Row| matches!(row, Row::Session { .. });
        let sessions: Vec<usize> = (0..self.rows.len()).filter(|row| is_session(&self.rows[*row])).collect();
        let Some(last) = sessions.len().checked_sub(1) else { return };
        let now = sessions.iter().position(|row| *row == self.selected).unwrap_or(0);
        self.selected = sessions[now.saturating_add_signed(steps).min(last)];
        self.keep_in_sight();
    }

    /// The rows of the body between the header and the footer.
    pub(crate) fn body_height(&self) -> usize {
        usize::from(self.size.1.saturating_sub(4)).max(1)
    }

    /// Whether a preview fits next to the list.
    pub(crate) fn has_preview(&self) -> bool {
        self.size.0 >= 100
    }

    /// The columns of the list.
    pub(crate) fn list_width(&self) -> u16 {
        if self.has_preview() { self.size.0 / 2 } else { self.size.0 }
    }

    fn keep_in_sight(&mut self) {
        let height = self.body_height();
        // The heading above the first session of a group stays visible.
        let highest = if height > 1 { self.selected.saturating_sub(1) } else { self.selected };
        let lowest = (self.selected + 1).saturating_sub(height).min(highest);
        self.top = self.top.clamp(lowest, highest);
    }
}

impl Reader {
    /// Scrolls by lines, and stays within the document.
    pub(crate) fn scroll(&mut self, lines: isize, height: usize) {
        let length = self.document.as_ref().map_or(0, |document| document.lines.len());
        self.top = self.top.saturating_add_signed(lines).min(length.saturating_sub(height));
        // At the end, the last turn counts, though it may begin below the top.
        let last = self.document.as_ref().and_then(|document| document.turns.last());
        let is_at_end = self.top + height >= length;
        self.chosen = last.filter(|_| is_at_end && lines > 0).map(|(turn, _)| *turn);
    }

    /// Goes to the next turn, or to the one before.
    pub(crate) fn jump(&mut self, forward: bool, height: usize) {
        let (Some(document), Some(now)) = (&self.document, self.turn()) else { return };
        let turns = document.turns.iter().map(|(turn, _)| *turn);
        let found =
            if forward { turns.filter(|turn| *turn > now).min() } else { turns.filter(|turn| *turn < now).max() };
        if let Some(turn) = found {
            self.show(turn, height);
        }
    }

    /// Brings a turn to the top, or as near to it as the document's end allows.
    pub(crate) fn show(&mut self, turn: u32, height: usize) {
        let Some(document) = &self.document else { return };
        let line = document.line_of(turn).unwrap_or(0);
        self.top = line.min(document.lines.len().saturating_sub(height));
        self.chosen = Some(turn);
    }

    /// The current turn: the requested one, or the one at the top of the screen.
    pub(crate) fn turn(&self) -> Option<u32> {
        self.chosen.or_else(|| self.document.as_ref()?.turn_at(self.top))
    }
}

/// What the filter looks at.
fn searchable(view: &SessionView) -> String {
    let directory = view.cwd.as_deref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default();
    let title = view.title.as_deref().unwrap_or_default();
    format!("{} {} {title} {directory}", view.label(), view.agent).to_lowercase()
}
