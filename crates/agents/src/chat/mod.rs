//! Live chats over the agents' structured streams: what can happen in one, and what the user can do.
//!
//! Each agent has its own protocol (`claude/chat.rs`, `codex/chat.rs`). A protocol is pure: it turns lines of the agent
//! into [`ChatEvent`]s and [`Action`]s into lines for the agent. `process` runs the agent's program around it.
//!
//! A protocol never answers for the user. A request that it doesn't understand becomes [`Ask::Unknown`], which can only
//! be refused.

mod acp;
pub(crate) mod form;
mod process;
pub(crate) mod unattended;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use transcript::{BlockKind, SessionId};

pub(crate) use acp::{AcpAgent, AcpChat};
pub use process::{Chat, ChatEnd};

/// A chat to open.
#[derive(Debug, Clone)]
pub struct ChatOrder {
    /// A new session or one that exists.
    pub session: ChatSession,
    /// Where the agent works.
    pub directory: PathBuf,
    /// The title of a new session.
    pub title: Option<String>,
    /// The model; the agent's choice if nothing is given.
    pub model: Option<String>,
    /// The permission mode; the agent's choice if nothing is given.
    pub mode: Option<String>,
    /// Further options for the agent's program.
    pub options: Vec<String>,
    /// Whether a user can answer requests. Otherwise the agent denies itself what it would ask for.
    pub is_attended: bool,
}

/// The session of a chat.
#[derive(Debug, Clone)]
pub enum ChatSession {
    /// A new one. The id counts for agents that let their sessions' ids be chosen.
    New(SessionId),
    /// One that exists.
    Existing {
        /// Its id.
        id: SessionId,
        /// Its transcript.
        path: PathBuf,
    },
}

/// An event in an agent's stream, the same for all agents.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// The agent is ready, and this is what it offers.
    Ready(ChatCapabilities),
    /// The session that the following events belong to. `/clear` and the like change it.
    Session {
        /// Its id.
        id: SessionId,
        /// Its transcript, if the agent reports it.
        path: Option<PathBuf>,
    },
    /// The model or the permission mode, each if it is known.
    Settings {
        /// The model.
        model: Option<String>,
        /// The permission mode.
        mode: Option<String>,
    },
    /// The agent begins a turn.
    TurnStarted,
    /// The next piece of something that isn't finished.
    Delta {
        /// The subagent that it belongs to.
        subagent: Option<String>,
        /// What it is a piece of.
        part: StreamPart,
        /// The piece.
        text: String,
    },
    /// Something is finished. It takes the place of the deltas of the same part.
    Block {
        /// The subagent that it belongs to.
        subagent: Option<String>,
        /// What it is.
        kind: BlockKind,
    },
    /// The agent asks for something and waits.
    Request(AgentRequest),
    /// The agent no longer waits for an answer to this request.
    Withdrawn(String),
    /// How full the context is.
    Context(ContextUse),
    /// The agent summarises the history.
    Compacting,
    /// It has done so.
    Compacted,
    /// A request to the model failed, and the agent tries again.
    Retrying {
        /// Which attempt follows.
        attempt: u64,
        /// When.
        after: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// The turn is over.
    TurnEnded(TurnEnd),
    /// A notice for the user.
    Notice(String),
    /// The agent refused an action.
    Refused(String),
    /// The agent's program has ended. Nothing follows.
    Ended(ChatEnd),
}

/// What deltas are pieces of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamPart {
    /// An answer.
    Answer,
    /// What the agent thinks.
    Thinking,
    /// The output of a tool call.
    Output {
        /// The call.
        call: String,
    },
}

/// What an agent offers in a chat.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatCapabilities {
    /// The slash commands that it understands.
    pub commands: Vec<SlashCommand>,
    /// The models to choose from.
    pub models: Vec<ModelChoice>,
    /// The permission modes to choose from.
    pub modes: Vec<&'static str>,
}

/// A slash command of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub argument: String,
}

/// A model that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// What the agent takes.
    pub value: String,
    /// What people read.
    pub name: String,
}

/// How full the context is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextUse {
    /// Tokens in the context.
    pub used: u64,
    /// The context window, if the agent reports it.
    pub window: Option<u64>,
    /// Tokens that came out of the provider's cache with the last request.
    pub cached: u64,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// How.
    pub outcome: TurnOutcome,
    /// The cost of all turns of this session so far, in dollars, if the agent reports it.
    pub total_cost: Option<f64>,
    /// The context windows of the models that took part, if the agent reports them.
    pub windows: Vec<(String, u64)>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// With an answer.
    Completed,
    /// It was interrupted.
    Interrupted,
    /// With an error.
    Failed(String),
}

/// Something that the agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    /// Names it in the answer.
    pub id: String,
    /// The tool call that it is about.
    pub call: Option<String>,
    /// Whether a subagent asks.
    pub by_subagent: bool,
    /// What is asked.
    pub ask: Ask,
}

/// What an agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To run a tool.
    Tool {
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
        /// Why it asks, if it gives a reason.
        reason: Option<String>,
        /// Whether other arguments may be given back.
        can_edit: bool,
        /// Whether the agent hears why a call is denied.
        hears_reason: bool,
        /// What may be allowed from now on.
        always: Vec<Always>,
    },
    /// Questions to the user.
    Questions(Vec<Question>),
    /// To carry out a plan.
    Plan {
        /// The plan, in Markdown.
        text: String,
        /// The permission modes to continue in.
        modes: Vec<&'static str>,
    },
    /// To agree to something that an MCP server wants, such as a visit to a page.
    Consent {
        /// The server.
        from: String,
        /// What it says.
        message: String,
        /// The page to visit. tine doesn't open it.
        url: Option<String>,
        /// What else the agent says about it, such as the arguments of a tool.
        details: Value,
    },
    /// An answer on its own screen, because the session runs elsewhere.
    Elsewhere {
        /// What is asked.
        what: String,
    },
    /// Something that tine doesn't know. It can be refused or answered on the agent's own screen.
    Unknown {
        /// What the agent calls it.
        name: String,
    },
}

/// A rule that allows more than one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Always {
    /// What it allows, for people.
    pub label: String,
    /// What the agent gets back.
    pub(crate) rule: Value,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Names it in the answer.
    pub id: String,
    /// A word or two for a heading.
    pub header: String,
    /// The question.
    pub text: String,
    /// What to choose from.
    pub choices: Vec<AnswerChoice>,
    /// Whether several may be chosen.
    pub several: bool,
    /// Whether words of one's own may be given.
    pub free: bool,
}

/// One of the answers to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerChoice {
    /// The answer.
    pub label: String,
    /// What it means.
    pub description: String,
}

/// What the user does in a chat.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Sends a prompt. While the agent works, it joins the running turn.
    Prompt(Prompt),
    /// Answers a request.
    Answer {
        /// The request.
        request: String,
        /// The answer.
        answer: Answer,
    },
    /// Ends what the agent is doing.
    Interrupt,
    /// Changes the model, from the next request on.
    SetModel(String),
    /// Changes the permission mode.
    SetMode(String),
}

/// What the user sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// A random UUID. Claude Code keeps it as the message's id.
    pub id: String,
    /// The words.
    pub text: String,
    /// Pictures.
    pub images: Vec<Image>,
}

/// A picture in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its type, as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub base64: String,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Allows it once, with other arguments if some are given.
    Allow {
        /// The arguments.
        input: Option<Value>,
    },
    /// Allows it and what the rule with this number allows.
    Always(usize),
    /// Denies it. The turn continues unless it is interrupted.
    Deny {
        /// Why, for the agent.
        reason: Option<String>,
        /// Whether the turn is interrupted as well.
        interrupt: bool,
    },
    /// Answers questions: the id of each with what was chosen or written.
    Answers(Vec<(String, Vec<String>)>),
    /// Approves a plan and continues in a permission mode.
    Approve {
        /// The permission mode.
        mode: Option<String>,
    },
}

/// What a protocol makes of a line of the agent.
#[derive(Debug, Default)]
pub struct Received {
    /// What happened.
    pub events: Vec<ChatEvent>,
    /// Lines for the agent.
    pub lines: Vec<Value>,
}

/// What one agent's stream looks like. Nothing in it does any input or output.
pub trait Protocol: Send {
    /// Whether a user can answer requests.
    fn is_attended(&self) -> bool;
    /// The program's arguments.
    fn arguments(&self) -> Vec<String>;
    /// Variables that the program gets.
    fn environment(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// The lines that open the chat.
    fn open(&mut self) -> Vec<Value>;
    /// Takes in one message of the agent.
    fn receive(&mut self, message: &Value) -> Received;
    /// The lines that carry out an action, and its immediate events.
    fn act(&mut self, action: Action) -> Received;
}

impl Received {
    pub(crate) fn event(event: ChatEvent) -> Self {
        Received { events: vec![event], lines: Vec::new() }
    }

    pub(crate) fn line(line: Value) -> Self {
        Received { events: Vec::new(), lines: vec![line] }
    }
}

/// A string in a JSON value, or an empty one.
pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
