//! What happens to the workbench, and what it wants done.

use std::path::PathBuf;
use std::sync::Arc;

use engine::chat::{Action, ChatEvent, Image};
use engine::{
    ChatRequest, Extent, Forked, MouseLevel, Plan, Project, Request, Session, SessionKey, Snippet, TabRecord,
    TurnSummary, WorkbenchConfig,
};
use transcript::{Agent, Block, SessionId, SessionName};

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
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal has another size.
    Resize(u16, u16),
    /// The configuration was read.
    Configured(Box<WorkbenchConfig>),
    /// The sessions were read, and the directories of this project.
    Sessions(Vec<Session>, Project),
    /// The agents whose programs were found.
    Agents(Vec<Agent>),
    /// Sessions have changed elsewhere.
    SessionsChanged,
    /// A minute has passed, so ages on the screen are out of date.
    Minute,
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
        /// Notices about the answer, such as corrected words.
        notices: Vec<String>,
        /// Whether meaning was compared as well, not only keywords.
        complete: bool,
    },
    /// A fork was planned.
    Planned {
        /// The request that this answers.
        ticket: u64,
        /// The plan, or why the fork is impossible.
        plan: Result<Box<Plan>, ErrorText>,
        /// The source as it is now.
        source: Box<Session>,
    },
    /// The turns of a session, for choosing one.
    Turns {
        /// The session's key.
        session: SessionKey,
        /// The turns.
        turns: Vec<TurnSummary>,
    },
    /// How far a fork is.
    Forking(String),
    /// A fork could not be created.
    ForkFailed(ErrorText),
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
        /// If the session runs elsewhere: the number of turns that precede the chat's events.
        follows: Option<u32>,
    },
    /// A chat was closed; its agent has ended.
    ChatClosed {
        /// Its tab.
        tab: u64,
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

/// Something that the mouse did, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mouse {
    pub column: u16,
    pub row: u16,
    pub kind: MouseKind,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseKind {
    WheelUp,
    WheelDown,
    Click,
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
    /// Words around the match, with the positions of the words that matched.
    pub snippet: Snippet,
}

impl Hit {
    /// The words that matched, in lower case.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |mark: &std::ops::Range<usize>| self.snippet.text.get(mark.clone()).map(str::to_lowercase);
        let mut words: Vec<String> = self.snippet.marks.iter().filter_map(word).collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

/// Something to do outside.
pub(crate) enum Effect {
    /// Read the configuration.
    Configure,
    /// Read the sessions.
    LoadSessions,
    /// Look for the agents' programs.
    FindAgents,
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
    /// Read the turns of a session, for choosing one.
    ReadTurns(Box<Session>),
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
    /// Read the session of a tab again.
    RefreshTab {
        /// The tab.
        tab: u64,
        /// The id of the session.
        id: SessionId,
        /// The session as it was, if it was read before.
        known: Option<Box<Session>>,
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
    /// Open another workbench on sample sessions.
    Samples,
    /// Bring the pane of a session to the front.
    FocusPane(Box<Session>),
    /// Put a text on the clipboard.
    Copy(String),
    /// Ask the terminal to put a text on the clipboard.
    TerminalClipboard(String),
    /// Let the mouse do this much.
    SetMouse(MouseLevel),
    /// Give a session a name.
    Rename(Box<Session>, SessionName),
    /// Undo the last operation.
    Undo,
    /// Leave.
    Quit,
}
