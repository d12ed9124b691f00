//! Live chats, each through a driver: an agent behind its structured stream, in an existing or new session, or a session
//! that runs elsewhere.

use std::path::{Path, PathBuf};

use agents::chat::{Action, Chat, ChatEvent, ChatOrder, ChatSession};
use diagnostics::OrLog;
use serde::{Deserialize, Serialize};
use transcript::{Agent, SessionId, SessionName, State};

use crate::ctx::Ctx;
use crate::naming::follow::Follower;
use crate::naming::start::{self, Start};
use crate::naming::{Error, Result};
use crate::registry::SessionKey;
use crate::run;
use crate::run::headless::check_format;
use crate::run::launch;
use crate::run::place::Place;
use crate::run::profile::{self, LaunchRequest};
use crate::sessions::moved;
use crate::sessions::session::Session;

/// A chat to open.
#[derive(Debug, Clone)]
pub enum ChatRequest {
    /// In a session that exists.
    Resume {
        /// The session.
        session: Box<Session>,
        /// Where its agent works.
        directory: PathBuf,
    },
    /// In a new session, in the current directory.
    Start {
        /// Its agent.
        agent: Agent,
        /// Its name; a free one if nothing is given.
        name: Option<SessionName>,
        /// How it is launched.
        launch: LaunchRequest,
    },
}

/// What carries a chat. It ends when this is dropped.
pub(super) trait ChatDriver: Send {
    /// Carries out an action, and returns what follows from it at once.
    fn act(&self, action: Action) -> Vec<ChatEvent>;
    /// Ends it without waiting.
    fn close(&self);
}

impl ChatDriver for Chat {
    fn act(&self, action: Action) -> Vec<ChatEvent> {
        Chat::act(self, action)
    }

    fn close(&self) {
        Chat::close(self);
    }
}

/// A chat that is open. If its agent was started for it, the agent ends when this is dropped.
pub struct OpenChat {
    driver: Box<dyn ChatDriver>,
    /// If the session runs elsewhere: the number of turns that precede the events.
    pub follows: Option<u32>,
    /// The agent.
    pub agent: Agent,
    /// The session's name.
    pub name: Option<SessionName>,
    /// Where the agent works.
    pub directory: PathBuf,
    /// A session without a transcript, from the registry.
    unbegun: Option<SessionKey>,
}

impl OpenChat {
    /// Carries out an action, and returns what follows from it at once.
    pub fn act(&self, action: Action) -> Vec<ChatEvent> {
        self.driver.act(action)
    }

    /// Lets the agent finish without waiting for it.
    pub fn end_soon(&self) {
        self.driver.close();
    }
}

/// Opens a chat. Its events are passed to `report`, on a thread of the chat.
pub(crate) fn open_chat(
    ctx: &Ctx,
    request: &ChatRequest,
    report: impl Fn(ChatEvent) + Send + 'static,
) -> Result<OpenChat> {
    match request {
        ChatRequest::Resume { session, directory } => resume_chat(ctx, session, directory, report),
        ChatRequest::Start { agent, name, launch } => {
            let start = start::begin(ctx, *agent, name.as_ref(), launch, Place::None)?;
            let opened = start_chat(ctx, &start, report);
            if opened.is_err() {
                ctx.registry().forget_start(start.key())?;
            }
            opened
        }
    }
}

fn resume_chat(
    ctx: &Ctx,
    session: &Session,
    directory: &Path,
    report: impl Fn(ChatEvent) + Send + 'static,
) -> Result<OpenChat> {
    let view = &session.view;
    check_format(session)?;
    moved::check_directory(ctx, session, directory)?;
    // Two writers don't see each other's turns, so a session that runs is followed.
    if view.state != State::Stopped {
        let follower = Follower::start(ctx, session.clone(), report);
        return Ok(OpenChat {
            follows: Some(follower.turns_before),
            driver: Box::new(follower),
            agent: view.agent,
            name: view.name.clone(),
            directory: directory.to_owned(),
            unbegun: None,
        });
    }
    let launch = profile::launch_of(ctx, view, &[], None)?;
    let program = launch::program_as(ctx, view.agent, &launch.profile, view.name.as_ref())?;
    let order = ChatOrder {
        session: ChatSession::Existing { id: view.id.clone(), path: view.path.clone() },
        directory: directory.to_owned(),
        title: None,
        model: None,
        mode: None,
        options: launch.options(),
        is_attended: true,
    };
    let protocol = ctx.adapter(view.agent).chat(&program, order);
    let chat = protocol.and_then(|protocol| Chat::start(&program, directory, protocol, report));
    Ok(OpenChat {
        driver: Box::new(chat.map_err(|source| not_started(Some(view.label()), source))?),
        follows: None,
        agent: view.agent,
        name: view.name.clone(),
        directory: directory.to_owned(),
        unbegun: None,
    })
}

fn start_chat(ctx: &Ctx, start: &Start, report: impl Fn(ChatEvent) + Send + 'static) -> Result<OpenChat> {
    let program = launch::program_as(ctx, start.agent, &start.profile, Some(&start.name))?;
    let id = match &start.id {
        Some(id) => id.clone(),
        None => ctx.adapter(start.agent).new_id(ctx.context().clock.now()),
    };
    let order = ChatOrder {
        session: ChatSession::New(id),
        directory: start.directory.clone(),
        title: Some(start.name.to_string()),
        model: None,
        mode: None,
        options: start.options().to_vec(),
        is_attended: true,
    };
    let protocol = ctx.adapter(start.agent).chat(&program, order);
    let chat = protocol.and_then(|protocol| Chat::start(&program, &start.directory, protocol, report));
    Ok(OpenChat {
        driver: Box::new(chat.map_err(|source| not_started(None, source))?),
        follows: None,
        agent: start.agent,
        name: Some(start.name.clone()),
        directory: start.directory.clone(),
        unbegun: Some(start.key().clone()),
    })
}

fn not_started(session: Option<&str>, source: agents::ProgramError) -> Error {
    run::Error::NotAnswered { session: session.map(str::to_owned), source }.into()
}

/// Records which session a new chat has become, once the agent has written its transcript. Returns whether it is known
/// now.
pub(crate) fn settle(ctx: &Ctx, chat: &mut OpenChat, id: &SessionId) -> Result<bool> {
    let Some(key) = &chat.unbegun else { return Ok(true) };
    let Some(path) = ctx.adapter(chat.agent).find_transcript(id, &chat.directory) else { return Ok(false) };
    ctx.registry().record_transcript(key, id, &path)?;
    chat.unbegun = None;
    Ok(true)
}

/// Ends the agent, and forgets the session if it has no messages.
pub(crate) fn close(ctx: &Ctx, chat: OpenChat) {
    let OpenChat { driver, unbegun, .. } = chat;
    drop(driver);
    if let Some(key) = unbegun {
        ctx.registry().forget_start(&key).or_log("discard a chat without messages");
    }
}

/// The key under which the registry remembers the workbench's tabs.
const TABS: &str = "workbench-tabs";

/// A tab of the workbench, as it is remembered. The conversation itself is in the agent's own file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TabRecord {
    /// The agent.
    pub agent: Agent,
    /// The session.
    pub id: SessionId,
}

/// The tabs that were open when the workbench was left. A record that can't be read is no tab.
pub(crate) fn tabs(ctx: &Ctx) -> Result<Vec<TabRecord>> {
    let Some(text) = ctx.registry().recall(TABS)? else { return Ok(Vec::new()) };
    Ok(serde_json::from_str(&text).or_log("read the tabs").unwrap_or_default())
}

/// Remembers the tabs that are open.
pub(crate) fn remember_tabs(ctx: &Ctx, tabs: &[TabRecord]) -> Result<()> {
    let text = serde_json::to_string(tabs).expect("tabs are plain data");
    Ok(ctx.registry().remember(TABS, &text)?)
}
