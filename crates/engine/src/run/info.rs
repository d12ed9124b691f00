//! Everything known about one session.

use serde::{Serialize, Serializer};
use transcript::translate::Receipt;
#[cfg(feature = "schema")]
use transcript::translate::ReceiptView;
use transcript::{Agent, Defects, SessionId, SessionName, SessionView, TokenUse};

use crate::ctx::Ctx;
use crate::registry::SeedNote;
use crate::run::Result;
use crate::run::drive::{self, pane};
use crate::run::places::Pane;
use crate::run::profile::{self, Profile};
use crate::sessions::session::Session;
use crate::sessions::tree;

/// Everything known about a session. Its JSON is a contract: the session, with more fields.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Info {
    /// The session.
    #[serde(flatten)]
    pub view: SessionView,
    /// The title that the user gave it inside the agent.
    pub custom_title: Option<String>,
    /// The title that the agent generated.
    pub agent_title: Option<String>,
    /// The first prompt.
    pub first_prompt: Option<String>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// The version of the agent that wrote last.
    pub agent_version: Option<String>,
    /// The transcript's size in bytes.
    pub size: u64,
    /// The token use that the agent reported last.
    pub tokens: Option<TokenUse>,
    /// The process that has it open.
    pub pid: Option<u32>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// The pane that it runs in.
    pub pane: Option<Pane>,
    /// The last prompt, without secrets.
    pub last_prompt: Option<String>,
    /// Whether its last turn is unfinished.
    pub mid_turn: bool,
    /// How it is launched, without passwords.
    pub profile: Profile,
    /// The ids that it had before it was cleared.
    pub previous_ids: Vec<SessionId>,
    /// The transcript that it began with.
    pub seed: Option<SeedNote>,
    /// What became of the parts of the conversation, if it was translated from another agent's session.
    #[serde(serialize_with = "receipt_view")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<ReceiptView>"))]
    pub receipt: Option<Receipt>,
    /// How many other branches of the transcript there are.
    pub branches: u32,
    /// What is wrong in its files.
    pub defects: Defects,
    /// Its forks.
    #[serde(serialize_with = "brief")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Fork<'static>>"))]
    pub forks: Vec<SessionView>,
}

/// Collects everything; its forks are searched in `sessions`.
pub(crate) fn info(ctx: &Ctx, session: &Session, sessions: &[Session]) -> Result<Info> {
    let (agent, id, details) = (session.view.agent, &session.view.id, &session.details);
    let previous = ctx.registry().previous_ids(&session.key())?;
    let seed = ctx.registry().seed(agent, id)?;
    let receipt = ctx.registry().translation(agent, id)?;
    let live = session.live.as_ref();
    Ok(Info {
        view: session.view.clone(),
        custom_title: details.custom_title.clone(),
        agent_title: details.agent_title.clone(),
        first_prompt: details.first_prompt.clone(),
        model: details.model.clone(),
        agent_version: details.version.clone(),
        size: session.size,
        tokens: details.tokens,
        pid: live.and_then(|live| live.pid),
        waiting_for: live.and_then(|live| live.waiting_for.clone()),
        pane: pane::pane_of(ctx, session).ok(),
        last_prompt: drive::last_prompt(ctx, session)?,
        mid_turn: details.mid_turn,
        profile: profile::profile_of(ctx, agent, id)?.shown(),
        previous_ids: previous.into_iter().map(|(id, _, _)| id).collect(),
        seed,
        receipt,
        branches: details.branches,
        defects: details.defects.clone(),
        forks: tree::forks_of(ctx, session, sessions)?.into_iter().cloned().collect(),
    })
}

fn receipt_view<S: Serializer>(receipt: &Option<Receipt>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    receipt.as_ref().map(Receipt::view).serialize(serializer)
}

/// A fork as its source lists it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Fork<'a> {
    agent: Agent,
    id: &'a SessionId,
    name: Option<&'a SessionName>,
    turn: Option<u32>,
}

fn brief<S: Serializer>(forks: &[SessionView], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(forks.iter().map(|fork| Fork {
        agent: fork.agent,
        id: &fork.id,
        name: fork.name.as_ref(),
        turn: fork.parent.as_ref().and_then(|parent| parent.turn),
    }))
}
