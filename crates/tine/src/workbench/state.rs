//! What the workbench knows.

use std::path::{Path, PathBuf};

use engine::{Clock, MouseLevel, Project, Session};
use jiff::tz::TimeZone;
use transcript::Agent;

use super::chat::ChatTab;
pub(crate) use super::dialogs::{ChatChoice, Choose, Palette, Popup};
use super::event::{Effect, ErrorText, Hit};
use super::graph::Row;
pub(crate) use super::list::{Scope, SortOrder};
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
    /// The search that led to the transcript on the screen.
    pub search: Option<SearchState>,
    /// The agents whose programs were found; `None` before the search for them ends.
    pub agents: Option<Vec<Agent>>,
    /// Whether the message on the screen warns that leaving ends busy agents.
    pub is_leaving: bool,
    /// Whether that warning was on the screen before the current key.
    pub may_leave: bool,
    pub mouse: MouseLevel,
    /// Whether the sessions are being read.
    pub is_loading: bool,
    /// Whether the screen must be drawn again.
    pub is_stale: bool,
    ticket: u64,
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
    /// Whether letters are keys for the hits instead of part of the query.
    pub is_in_hits: bool,
    /// Notices about the answer, such as corrected words.
    pub notices: Vec<String>,
    /// Whether an answer is still to come.
    pub is_running: bool,
    pub ticket: u64,
}

impl SearchState {
    /// The rows of a hit.
    pub(crate) const ROWS: usize = 2;

    /// The first hit on the screen.
    pub(crate) fn top(&self, height: usize) -> usize {
        (self.selected + 1).saturating_sub((height / Self::ROWS).max(1))
    }
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
            scope: Scope::Repository,
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
            search: None,
            agents: None,
            is_leaving: false,
            may_leave: false,
            mouse: MouseLevel::default(),
            is_loading: true,
            is_stale: true,
            ticket: 0,
        }
    }

    /// The first effects.
    pub(crate) fn begin(&mut self) -> Vec<Effect> {
        vec![Effect::Configure, Effect::LoadSessions, Effect::RestoreTabs, Effect::FindAgents]
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

    /// Whether a preview fits.
    pub(crate) fn has_preview(&self) -> bool {
        self.split().1.is_some()
    }

    /// The columns of the text in the preview.
    pub(crate) fn preview_width(&self) -> u16 {
        self.split().1.map_or(0, |area| area.width).saturating_sub(1 + MARGIN)
    }

    /// The columns of the text of a transcript.
    pub(crate) fn transcript_width(&self) -> u16 {
        self.size.0.saturating_sub(MARGIN + 1)
    }
}

impl Screen {
    /// Whether it is the chat of this tab.
    pub(crate) fn is_chat(&self, number: u64) -> bool {
        matches!(self, Screen::Chat(shown) if *shown == number)
    }
}
