//! What the workbench knows.

use std::path::{Path, PathBuf};

use engine::{Clock, Plan, Project, Request, Session};
use jiff::tz::TimeZone;
use transcript::{Agent, SessionView};

use super::chat::ChatTab;
use super::event::{Effect, ErrorText, Hit};
use super::graph::{self, Row};
pub(crate) use super::reader::Reader;
use crate::keymap::{Context, Keymap};

/// The columns left of a transcript, for the numbers of its turns.
pub(crate) const MARGIN: u16 = 6;

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
    pub keymap: Keymap,
    /// The chats that are open.
    pub tabs: Vec<ChatTab>,
    /// Whether colours are used.
    pub color: bool,
    /// The directory for new sessions.
    pub directory: PathBuf,
    pub sort: SortOrder,
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
    /// A chat, by the number of its tab.
    Chat(u64),
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
    /// A change that the user confirms.
    Confirm {
        /// What is asked.
        question: String,
        /// The effects of a yes.
        words: Vec<String>,
    },
    /// Choosing one of several values for a chat.
    Choose(Box<Choose>),
    /// All actions, or the command line.
    Palette(Palette),
    /// The output of a command.
    Output {
        /// The command.
        title: String,
        /// The lines.
        lines: Vec<String>,
        /// The first line on the screen.
        top: usize,
    },
}

/// Finding an action by its name, or writing a command after `:`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Palette {
    /// The typed text.
    pub text: String,
    /// The selected action or completion.
    pub selected: usize,
    /// Completions for the command.
    pub completions: Vec<(String, String)>,
}

/// Choosing one of several values for a chat.
pub(crate) struct Choose {
    /// The tab.
    pub tab: u64,
    /// The kind of choice.
    pub what: ChatChoice,
    /// The values, with their labels.
    pub values: Vec<(String, String)>,
    /// The selected one.
    pub selected: usize,
}

/// A choice for a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatChoice {
    Model,
    Mode,
    /// The agent of a new chat.
    Agent,
}

/// A fork that is being prepared.
pub(crate) struct ForkDialog {
    pub request: Request,
    /// The name as typed; the engine chooses one if it is empty.
    pub name: String,
    /// The plan for the request, or why it is impossible; `None` while it is being made.
    pub plan: Option<Result<Box<Plan>, ErrorText>>,
    pub ticket: u64,
    /// Whether the user has chosen the workspace.
    pub workspace_is_chosen: bool,
    /// The last prompt that the fork gets.
    pub prompt: Option<String>,
    /// The turn whose prompt the user changes in the fork.
    pub edit: Option<u32>,
    /// Whether the fork is being created.
    pub is_running: bool,
}

/// What happened last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    Done(String),
    Failed(ErrorText),
}

impl State {
    pub(crate) fn new(directory: &Path, home: PathBuf, clock: Clock, zone: TimeZone, color: bool) -> Self {
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
            keymap: Keymap::default(),
            tabs: Vec::new(),
            color,
            directory: directory.to_owned(),
            sort: SortOrder::Age,
            ticket: 0,
        }
    }

    /// The first effects.
    pub(crate) fn begin(&mut self) -> Vec<Effect> {
        vec![Effect::Configure, Effect::LoadSessions, Effect::RestoreTabs]
    }

    /// The receiver of keys.
    pub(crate) fn context(&self) -> Context {
        match &self.screen {
            Screen::Sessions { .. } => Context::Sessions,
            Screen::Transcript(_) => Context::Transcript,
            Screen::Search(_) => Context::Search,
            Screen::Chat(_) => Context::Chat,
        }
    }

    /// The chat on the screen.
    pub(crate) fn chat(&self) -> Option<&ChatTab> {
        match self.screen {
            Screen::Chat(number) => self.tabs.iter().find(|tab| tab.number == number),
            _ => None,
        }
    }

    /// The chat on the screen, to change it.
    pub(crate) fn chat_mut(&mut self) -> Option<&mut ChatTab> {
        match self.screen {
            Screen::Chat(number) => self.tab_mut(number),
            _ => None,
        }
    }

    /// A tab by its number. It may be closed.
    pub(crate) fn tab_mut(&mut self, number: u64) -> Option<&mut ChatTab> {
        self.tabs.iter_mut().find(|tab| tab.number == number)
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
        let order = self.order();
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let is_shown = |index: usize| {
            let view = views[index];
            let is_here = || view.cwd.as_deref().is_some_and(|cwd| self.project.contains(cwd));
            (self.scope == Scope::Everywhere || is_here())
                && self.agent.is_none_or(|agent| agent == view.agent)
                && (words.is_empty() || words.iter().all(|word| searchable(view).contains(word)))
        };
        self.rows = graph::rows(&views, &order, is_shown, &self.home);
        let is_kept = |row: &Row| match row {
            Row::Session { index, .. } => kept.as_ref().is_some_and(|kept| sessions[*index].key() == *kept),
            Row::Heading(_) => false,
        };
        let first = || self.rows.iter().position(|row| matches!(row, Row::Session { .. }));
        self.selected = self.rows.iter().position(is_kept).or_else(first).unwrap_or(0);
        self.keep_in_sight();
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

    /// The rows of the body between the header and the footer.
    pub(crate) fn body_height(&self) -> usize {
        usize::from(self.size.1.saturating_sub(3 + self.tab_bar_height())).max(1)
    }

    /// The rows of the tab bar, which is hidden without tabs.
    pub(crate) fn tab_bar_height(&self) -> u16 {
        u16::from(!self.tabs.is_empty())
    }

    /// The rows of a chat above its prompt box.
    pub(crate) fn chat_height(&self) -> usize {
        self.body_height().saturating_sub(4).max(1)
    }

    /// Whether a preview fits next to the list.
    pub(crate) fn has_preview(&self) -> bool {
        self.size.0 >= 100
    }

    /// The columns of the text in the preview.
    pub(crate) fn preview_width(&self) -> u16 {
        (self.size.0 - self.list_width()).saturating_sub(1 + MARGIN)
    }

    /// The columns of the text of a transcript.
    pub(crate) fn transcript_width(&self) -> u16 {
        self.size.0.saturating_sub(MARGIN + 1)
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

impl Screen {
    /// Whether it is the chat of this tab.
    pub(crate) fn is_chat(&self, number: u64) -> bool {
        matches!(self, Screen::Chat(shown) if *shown == number)
    }
}

/// What the filter looks at.
fn searchable(view: &SessionView) -> String {
    let directory = view.cwd.as_deref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default();
    let title = view.title.as_deref().unwrap_or_default();
    format!("{} {} {title} {directory}", view.label(), view.agent).to_lowercase()
}
