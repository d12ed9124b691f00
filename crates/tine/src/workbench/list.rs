//! The list of sessions: which are shown, in which order, and which one is selected.

use std::ops::Range;
use std::path::Path;

use engine::{Project, Session, SessionKey};
use transcript::{SessionView, State as Activity};

use super::graph::{self, Row};
use super::state::State;

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those of this directory.
    Directory,
    /// Those of its repository and all its worktrees.
    Repository,
    /// All.
    Everywhere,
}

impl Scope {
    /// The next one. Without a repository, the directory is all there is.
    pub(crate) fn next(self, project: &Project) -> Self {
        match self {
            Scope::Repository => Scope::Everywhere,
            Scope::Everywhere if project.trees().is_empty() => Scope::Repository,
            Scope::Everywhere => Scope::Directory,
            Scope::Directory => Scope::Repository,
        }
    }
}

/// The order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortOrder {
    /// Newest first.
    Age,
    /// By name or title.
    Name,
    /// Most turns first.
    Turns,
}

impl SortOrder {
    /// The next one.
    pub(crate) fn next(self) -> Self {
        match self {
            SortOrder::Age => SortOrder::Name,
            SortOrder::Name => SortOrder::Turns,
            SortOrder::Turns => SortOrder::Age,
        }
    }

    /// What people read.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SortOrder::Age => "newest first",
            SortOrder::Name => "by name",
            SortOrder::Turns => "most turns first",
        }
    }
}

impl State {
    /// The selected session.
    pub(crate) fn selection(&self) -> Option<&Session> {
        match self.rows.get(self.selected)? {
            Row::Session { index, .. } => self.sessions.as_ref()?.get(*index),
            Row::Heading(_) => None,
        }
    }

    /// Takes the sessions as they are now. Returns whether anything is different.
    pub(crate) fn take_sessions(&mut self, sessions: Vec<Session>, project: Project) -> bool {
        let is_same = |(old, new): (&Session, &Session)| old.view == new.view && wish(old) == wish(new);
        let unchanged = |old: &Vec<Session>| old.len() == sessions.len() && old.iter().zip(&sessions).all(is_same);
        if self.project == project && self.sessions.as_ref().is_some_and(unchanged) {
            return false;
        }
        let kept = self.selection().map(Session::key);
        (self.sessions, self.project) = (Some(sessions), project);
        self.arrange_around(kept.as_ref());
        true
    }

    /// Lays the list out again and keeps the selection on the same session.
    pub(crate) fn arrange(&mut self) {
        let kept = self.selection().map(Session::key);
        self.arrange_around(kept.as_ref());
    }

    fn arrange_around(&mut self, kept: Option<&SessionKey>) {
        let sessions = self.sessions.as_deref().unwrap_or_default();
        let views: Vec<&SessionView> = sessions.iter().map(|session| &session.view).collect();
        let order = self.order();
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let fits = |view: &SessionView| {
            self.agent.is_none_or(|agent| agent == view.agent)
                && (words.is_empty() || words.iter().all(|word| searchable(view).contains(word)))
        };
        let is_in = |cwd: &Path| match self.scope {
            Scope::Directory => cwd.starts_with(&self.directory),
            Scope::Repository => self.project.contains(cwd),
            Scope::Everywhere => true,
        };
        let is_shown = |index: usize| {
            let view = views[index];
            (self.scope == Scope::Everywhere || view.cwd.as_deref().is_some_and(is_in)) && fits(view)
        };
        // Someone who is waited for wants to know it in any project.
        let waiting: Vec<usize> =
            (0..views.len()).filter(|index| is_waiting(views[*index]) && fits(views[*index])).collect();
        self.rows = graph::rows(&views, &order, &waiting, is_shown, &self.home);
        let is_kept = |row: &Row| match row {
            Row::Session { index, .. } => kept.is_some_and(|kept| sessions[*index].key() == *kept),
            Row::Heading(_) => false,
        };
        let first = || self.rows.iter().position(|row| matches!(row, Row::Session { .. }));
        // A session that waits has two rows.
        let same = Some(self.selected).filter(|row| self.rows.get(*row).is_some_and(is_kept));
        let found = same.or_else(|| self.rows.iter().rposition(is_kept)).or_else(first);
        self.selected = found.unwrap_or(0);
        self.keep_in_sight();
    }

    /// How many sessions and chats wait for the user.
    pub(crate) fn waiting(&self) -> usize {
        let sessions = self.sessions.iter().flatten().filter(|session| is_waiting(&session.view));
        let asks = |session: &&Session| {
            let mut tabs = self.tabs.iter();
            tabs.any(|tab| {
                tab.request().is_some() && tab.agent == session.view.agent && tab.id.as_ref() == Some(&session.view.id)
            })
        };
        let elsewhere = sessions.filter(|session| !asks(session)).count();
        elsewhere + self.tabs.iter().filter(|tab| tab.request().is_some()).count()
    }

    /// How many sessions are listed.
    pub(crate) fn listed(&self) -> usize {
        let rows = self.rows.iter().skip(self.waiting_rows().len());
        rows.filter(|row| matches!(row, Row::Session { .. })).count()
    }

    /// The rows of the sessions that wait for the user.
    pub(crate) fn waiting_rows(&self) -> Range<usize> {
        let is_heading = |row: &Row| matches!(row, Row::Heading(_));
        match self.rows.first() {
            Some(Row::Heading(text)) if text == graph::NEEDS_YOU => {
                1..1 + self.rows[1..].iter().take_while(|row| !is_heading(row)).count()
            }
            _ => 0..0,
        }
    }

    /// Selects the next session that waits for the user. Returns whether there is one.
    pub(crate) fn select_waiting(&mut self) -> bool {
        let rows = self.waiting_rows();
        let next = self.selected + 1;
        let row = if rows.contains(&next) { Some(next) } else { rows.into_iter().next() };
        if let Some(row) = row {
            self.selected = row;
            self.keep_in_sight();
        }
        row.is_some()
    }

    /// The sessions in the order of the list.
    fn order(&self) -> Vec<usize> {
        let sessions = self.sessions.as_deref().unwrap_or_default();
        let mut order: Vec<usize> = (0..sessions.len()).collect();
        let view = |index: &usize| &sessions[*index].view;
        let name = |view: &SessionView| {
            let name = view.name.as_ref().map(ToString::to_string).or_else(|| view.title.clone());
            name.unwrap_or_default().to_lowercase()
        };
        match self.sort {
            SortOrder::Age => {}
            SortOrder::Name => order.sort_by_cached_key(|index| name(view(index))),
            SortOrder::Turns => order.sort_by_key(|index| std::cmp::Reverse(view(index).turns)),
        }
        order
    }

    /// Selects the session that the selected one was forked from.
    pub(crate) fn select_parent(&mut self) {
        let parent = self.selection().and_then(|session| session.view.parent.as_ref());
        let Some((agent, id)) = parent.map(|parent| (parent.agent, parent.id.clone())) else { return };
        self.select_where(|view| view.agent == agent && view.id == id);
    }

    /// Selects the first fork of the selected session.
    pub(crate) fn select_child(&mut self) {
        let Some((agent, id)) = self.selection().map(|session| (session.view.agent, session.view.id.clone())) else {
            return;
        };
        self.select_where(|view| view.parent.as_ref().is_some_and(|parent| parent.agent == agent && parent.id == id));
    }

    fn select_where(&mut self, fits: impl Fn(&SessionView) -> bool) {
        let sessions = self.sessions.as_deref().unwrap_or_default();
        let is_it = |row: &Row| matches!(row, Row::Session { index, .. } if fits(&sessions[*index].view));
        if let Some(row) = self.rows.iter().position(is_it) {
            self.selected = row;
            self.keep_in_sight();
        }
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

    /// Selects the session at a row of the screen. Returns whether it was selected before; nothing without a session.
    pub(crate) fn select_at(&mut self, row: usize) -> Option<bool> {
        let place = self.top + row;
        let Row::Session { .. } = self.rows.get(place)? else { return None };
        let was_selected = self.selected == place;
        self.selected = place;
        self.keep_in_sight();
        Some(was_selected)
    }

    fn keep_in_sight(&mut self) {
        let height = self.body_height();
        // The heading above the first session of a group stays visible.
        let highest = if height > 1 { self.selected.saturating_sub(1) } else { self.selected };
        let lowest = (self.selected + 1).saturating_sub(height).min(highest);
        self.top = self.top.clamp(lowest, highest);
    }
}

/// Whether a session waits for the user.
pub(crate) fn is_waiting(view: &SessionView) -> bool {
    view.state == Activity::Waiting
}

/// What a session waits for.
pub(crate) fn wish(session: &Session) -> Option<&str> {
    session.live.as_ref().and_then(|live| live.waiting_for.as_deref())
}

/// What the filter looks at.
fn searchable(view: &SessionView) -> String {
    let directory = view.cwd.as_deref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default();
    let title = view.title.as_deref().unwrap_or_default();
    format!("{} {} {title} {directory}", view.label(), view.agent).to_lowercase()
}
