//! The JSON of a conversation and of lineage, in short, as agents get them. It is a contract.

use serde::Serialize;
use transcript::{Agent, SessionId, SessionName, State, text};

use super::session::Session;
use super::tree::{Known, Node};

/// Some turns of a session.
#[derive(Debug, Clone, Serialize)]
pub struct TurnsView {
    session: SessionId,
    name: Option<SessionName>,
    turns: u32,
    first_turn: u32,
    last_turn: u32,
    /// The turn to continue with, if there are more.
    next_turn: Option<u32>,
    text: String,
}

impl TurnsView {
    /// The JSON of the turns from `first` to `last`, which say `text`.
    pub fn new(session: &Session, first: u32, last: u32, text: String) -> Self {
        let view = &session.view;
        TurnsView {
            session: view.id.clone(),
            name: view.name.clone(),
            turns: view.turns,
            first_turn: first,
            last_turn: last,
            next_turn: (last < view.turns).then_some(last + 1),
            text,
        }
    }
}

/// The maximum number of prompts in an outline.
const PROMPTS: usize = 60;
/// The maximum number of characters of a prompt in an outline.
const PROMPT: usize = 160;

/// The prompts of a session, one line each. Of many, those in the middle are left out.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct OutlineView(Vec<OutlineTurn>);

/// A turn in an outline.
#[derive(Debug, Clone, Serialize)]
struct OutlineTurn {
    turn: u32,
    asked: String,
}

impl OutlineView {
    /// Adds the prompt of the next turn.
    pub fn push(&mut self, turn: u32, prompt: &str) {
        self.0.push(OutlineTurn { turn, asked: text::clip(&text::one_line(prompt), PROMPT) });
    }

    /// Keeps the first and the last prompts.
    #[must_use]
    pub(crate) fn shortened(mut self) -> Self {
        if self.0.len() > PROMPTS {
            self.0.drain(PROMPTS / 2..self.0.len() - PROMPTS / 2);
        }
        self
    }
}

/// A tree of forks without details that can be looked up.
#[derive(Debug, Clone, Serialize)]
pub struct BriefNode {
    #[serde(flatten)]
    session: BriefKnown,
    children: Vec<BriefNode>,
}

/// A session of the tree, or the trace of one.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum BriefKnown {
    Here {
        agent: Agent,
        id: SessionId,
        name: Option<SessionName>,
        title: Option<String>,
        state: State,
        turns: u32,
        forked_at_turn: Option<u32>,
    },
    Gone(Known),
}

impl Node {
    /// The JSON of the tree in short.
    pub fn brief(&self) -> BriefNode {
        let session = match &self.session {
            Known::Here(session) => {
                let view = &session.view;
                BriefKnown::Here {
                    agent: view.agent,
                    id: view.id.clone(),
                    name: view.name.clone(),
                    title: view.title.clone(),
                    state: view.state,
                    turns: view.turns,
                    forked_at_turn: view.parent.as_ref().and_then(|parent| parent.turn),
                }
            }
            gone @ Known::Gone(_) => BriefKnown::Gone(gone.clone()),
        };
        BriefNode { session, children: self.children.iter().map(Node::brief).collect() }
    }
}
