//! What happens to the workbench, and what it wants done.

use std::path::PathBuf;
use std::sync::Arc;

use engine::chat::{Action, ChatEvent, Image};
use engine::{ChatRequest, Extent, Forked, Plan, Project, Request, Session, TabRecord, WorkbenchConfig};
use transcript::{Block, SessionId, SessionName};

use super::document::Document;
use super::page::{Page, PageLayout, PageStyle};
use super::reader::PageRequest;
use crate::keymap::Key;

/// Something that happened.
pub(crate) enum Event {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size.
    Resize(u16, u16),
    /// The configuration was read.
    Configured(Box<WorkbenchConfig>),
    /// The sessions were read, and the directories of this project.
    Sessions(Vec<Session>, Project),
    /// A page of a transcript was read.
    Page {
        /// The request that this answers.
        ticket: u64,
        /// What was wanted.
        wish: PageRequest,
        /// The page, if it exists.
        page: Option<Box<Page>>,
    },
    /// Pages of a transcript were laid out again.
    LaidOut {
        /// The request that this answers.
        ticket: u64,
        /// The new lines.
        layouts: Vec<(Extent, PageLayout)>,
    },
    /// Code can have colours now.
    Highlighted,
    /// A search was answered.
    Found {
        /// The request that this answers.
        ticket: u64,
        /// The hits, best first.
        hits: Vec<Hit>,
        /// Whether meaning was compared as well, not only keywords.
        complete: bool,
    },
    /// A fork was planned.
    Planned {
        /// The request that this answers.
        ticket: u64,
        /// The plan, or why the fork is impossible.
        plan: Result<Box<Plan>, ErrorText>,
        /// The last prompt that the fork gets.
        prompt: Option<String>,
    },
    /// A fork was made.
    Forked {
        /// The fork.
        forked: Box<Forked>,
        /// Its session.
        session: Option<Box<Session>>,
        /// The prompt that was taken from the source, to be changed.
        prompt: Option<String>,
    },
    /// Something happened in a chat.
    Chat {
        /// Its tab.
        tab: u64,
        /// What.
        event: ChatEvent,
    },
    /// A chat was opened.
    ChatOpened {
        /// Its tab.
        tab: u64,
        /// The session's name.
        name: Option<SessionName>,
    },
    /// A chat could not be opened.
    ChatFailed {
        /// Its tab.
        tab: u64,
        /// Why.
        trouble: ErrorText,
    },
    /// The session of a tab, as it is now. Nothing if it has no transcript.
    TabSession {
        /// The tab.
        tab: u64,
        /// The session.
        session: Option<Box<Session>>,
    },
    /// The transcript of a session from before its tab was opened.
    TabHistory {
        /// The request that this answers.
        ticket: u64,
        /// The transcript, laid out.
        document: Document,
        /// The prompts in it.
        prompts: Vec<String>,
    },
    /// The sessions whose tabs were open when the workbench was closed.
    Tabs(Vec<Session>),
    /// A watched transcript has changed.
    Changed(PathBuf),
    /// A turn as Markdown.
    Taken(String),
    /// A text was copied.
    Copied {
        /// Its lines.
        lines: usize,
        /// The program that has it.
        program: String,
    },
    /// No program took a text for the clipboard; the terminal may.
    NotCopied(String),
    /// Completions for a command.
    CommandCompletions {
        /// The words that were completed.
        words: Vec<String>,
        /// The last word, completed.
        choices: Vec<(String, String)>,
    },
    /// Completions for a word in a prompt box.
    Completions {
        /// The tab.
        tab: u64,
        /// The word.
        word: String,
        /// The replacements.
        choices: Vec<(String, String)>,
    },
    /// A picture was read for a prompt.
    Picture {
        /// The tab.
        tab: u64,
        /// The picture.
        image: Image,
    },
    /// A text was written in the user's editor.
    Edited {
        /// The tab.
        tab: u64,
        /// The text.
        text: String,
    },
    /// The agent's own screen was left.
    Returned {
        /// The tab.
        tab: u64,
    },
    /// A command of tine has run.
    Ran {
        /// Its words.
        words: Vec<String>,
        /// Whether it succeeded.
        success: bool,
        /// Its output.
        output: String,
    },
    /// Something worked.
    Done(String),
    /// Something didn't work.
    Failed(ErrorText),
    /// tine received a signal to end, or its terminal was closed.
    Terminated,
    /// Something that doesn't matter.
    Ignored,
}

/// An error, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorText {
    /// What went wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// One result of a search.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    /// The session.
    pub session: Session,
    /// The best matching turn.
    pub turn: u32,
    /// Words around the match.
    pub snippet: String,
}

/// Something to do outside.
pub(crate) enum Effect {
    /// Read the configuration.
    Configure,
    /// Read the sessions.
    LoadSessions,
    /// Read a page of a transcript and lay it out.
    ReadPage {
        /// Names the request in the answer.
        ticket: u64,
        /// The session.
        session: Box<Session>,
        /// Which page.
        wish: PageRequest,
        /// How it is laid out.
        looks: PageStyle,
    },
    /// Lay loaded pages out again.
    LayOut {
        /// Names the request in the answer.
        ticket: u64,
        /// The pages.
        pages: Vec<(Extent, Arc<Vec<Block>>)>,
        /// How they are laid out.
        looks: PageStyle,
    },
    /// Watch a transcript for changes, until another one is watched.
    Watch(Option<PathBuf>),
    /// Render a turn as Markdown, for the clipboard.
    TakeTurn {
        /// The session.
        session: Box<Session>,
        /// The turn.
        turn: u32,
    },
    /// Find completions for a command.
    CompleteCommand(Vec<String>),
    /// Search.
    Search {
        /// Names the request in the answer.
        ticket: u64,
        /// What for.
        query: String,
    },
    /// Plan a fork.
    Plan {
        /// Names the request in the answer.
        ticket: u64,
        /// The request.
        request: Box<Request>,
    },
    /// Make a fork.
    Fork {
        /// The plan.
        plan: Box<Plan>,
        /// The turn of the source whose prompt the user changes in the fork, and the source.
        edit: Option<(u32, Box<Session>)>,
    },
    /// Open a chat.
    OpenChat {
        /// Its tab.
        tab: u64,
        /// The request.
        request: Box<ChatRequest>,
    },
    /// Do something in a chat.
    Act {
        /// Its tab.
        tab: u64,
        /// What.
        action: Action,
    },
    /// Record which session a new chat has become.
    SettleChat {
        /// Its tab.
        tab: u64,
        /// The session.
        id: SessionId,
    },
    /// End the agent of a chat.
    CloseChat {
        /// Its tab.
        tab: u64,
    },
    /// Send a message to a session that runs elsewhere.
    SendElsewhere {
        /// Its tab.
        tab: u64,
        /// The session.
        session: Box<Session>,
        /// The message.
        text: String,
    },
    /// Read the session of a tab again.
    RefreshTab {
        /// The tab.
        tab: u64,
        /// The path, name or id of the session.
        session: String,
    },
    /// Read a session's transcript for a tab.
    ReadTab {
        /// Names the request in the answer.
        ticket: u64,
        /// The session.
        session: Box<Session>,
        /// The columns to lay it out for.
        width: u16,
        /// Whether tool calls and thinking are shown in full.
        full: bool,
        /// Whether the acknowledgement of a seed is left out.
        hide_acknowledgement: bool,
    },
    /// Find the tabs that were open when the workbench was closed.
    RestoreTabs,
    /// Store the open tabs.
    RememberTabs(Vec<TabRecord>),
    /// Find files that could complete a word.
    Complete {
        /// The tab.
        tab: u64,
        /// The word, with `@` before it.
        word: String,
        /// Where to look.
        directory: PathBuf,
    },
    /// Read a picture.
    ReadPicture {
        /// The tab.
        tab: u64,
        /// The file.
        path: PathBuf,
    },
    /// Run a tine command and show its output.
    Run(Vec<String>),
    /// Write a text in the user's editor, which takes over the screen.
    Edit {
        /// The tab.
        tab: u64,
        /// The text so far.
        text: String,
    },
    /// Open the agent's own screen in place of the workbench.
    HandOver {
        /// The tab.
        tab: u64,
        /// The session.
        session: Box<Session>,
    },
    /// Bring the pane of a session to the front.
    FocusPane(Box<Session>),
    /// Put a text on the clipboard.
    Copy(String),
    /// Ask the terminal to put a text on the clipboard.
    TerminalClipboard(String),
    /// Give a session a name.
    Rename(Box<Session>, SessionName),
    /// Undo the last operation.
    Undo,
    /// Leave.
    Quit,
}
