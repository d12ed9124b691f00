//! The method `seed`: the transcript is the first prompt of a new session, of any agent.
//!
//! The agent's own program receives it on standard input, so that the result is an ordinary session. The registry
//! stores the seed's source, size and hash. The text is kept only until it is sent (`unstarted.rs`).

use std::path::Path;

use agents::{HeadlessMessage, NewSession, Part};
use transcript::seed::{Fit, Seed, SeedSizes, SeedSource, SeedWriter, is_acknowledgement};
use transcript::{Agent, BlockKind, SessionId};

use super::{Plan, Request};
use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::fork::launch;
use crate::fork::{Error, Result};
use crate::program;
use crate::registry::SeedNote;
use crate::registry::operations::Created;

/// The share of the window that a seed may fill; the rest is for the following turns.
const SHARE_OF_WINDOW: f64 = 0.75;

/// What is decided about a seed before it is written.
#[derive(Debug, Clone)]
pub struct SeedPlan {
    pub(super) fit: Fit,
    pub(super) masks: bool,
    /// How many secrets there are to mask.
    pub(super) secrets: usize,
    /// Whether the source has thinking, and whether it has subagents; neither is part of a seed.
    has_thinking: bool,
    has_subagents: bool,
    /// The random marker of its lines.
    pub(super) nonce: String,
}

impl SeedPlan {
    /// What the source has and a seed never does.
    pub(super) fn left_out(&self) -> Option<String> {
        match (self.has_thinking, self.has_subagents) {
            (true, true) => Some("thinking and subagents are left out".into()),
            (true, false) => Some("thinking is left out".into()),
            (false, true) => Some("subagents are left out".into()),
            (false, false) => None,
        }
    }
}

/// Measures the transcript and decides what is shortened. `per_token` is how many characters a token has in it.
pub(super) fn plan_seed(
    ctx: &Ctx,
    request: &Request,
    turns: u32,
    agent: Agent,
    window: Option<u64>,
    per_token: f64,
) -> Result<SeedPlan> {
    let mut sizes = SeedSizes::default();
    let mut blocks = crate::sessions::survey::read_all(ctx, &request.source, Some(turns))?;
    let (mut has_thinking, mut has_subagents) = (false, false);
    while let Some(block) = blocks.next_block() {
        has_subagents |= block.depth > 0 || matches!(block.kind, BlockKind::Subagent { .. });
        has_thinking |= matches!(block.kind, BlockKind::Thinking { .. });
        sizes.note(&block);
    }
    // Headings may be longer than estimated.
    let input = ctx.adapter(agent).input_limit().map(|limit| limit - limit / 50);
    let window = window.map(|window| (window as f64 * SHARE_OF_WINDOW * per_token) as usize);
    let limit = [input, window].into_iter().flatten().min();
    let masks = agent != request.source.view.agent && !request.keep_secrets;
    let secrets = if masks { sizes.secrets() } else { 0 };
    Ok(SeedPlan { fit: sizes.fit(limit), masks, secrets, has_thinking, has_subagents, nonce: new_nonce() })
}

/// Writes the seed, gives it to the agent and looks at what came of it.
pub(super) fn fork_by_seed(ctx: &Ctx, plan: &Plan, created: &mut Created) -> Result<(NewSession, SeedNote)> {
    let seed = write_seed(ctx, plan)?;
    let (made, answer) = hand_over_seed(
        ctx,
        &SeedHandover {
            agent: plan.agent,
            id: &plan.id,
            name: plan.name.as_str(),
            directory: &plan.workspace.path,
            mark: plan.id.as_str(),
            text: &seed.text,
        },
    )?;
    created.add(&made.path);
    check_seed(ctx, plan.agent, &made, &seed.text)?;
    Ok((made, SeedNote { hidden: is_acknowledgement(&answer), ..seed_note(ctx, plan, &seed.text) }))
}

/// Sends a seed to an agent. Returns the session that came of it, and the answer.
pub(super) fn hand_over_seed(ctx: &Ctx, handing: &SeedHandover<'_>) -> Result<(NewSession, String)> {
    let SeedHandover { agent, id, name, directory, mark, text } = *handing;
    let adapter = ctx.adapter(agent);
    let program = launch::marked_program(ctx, agent, mark)?;
    let id = adapter.accepts_ids().then_some(id);
    let message = HeadlessMessage { session: None, id, title: Some(name), directory, options: &[], text };
    let said = program::send(ctx, agent, &program, &message)?;
    let path =
        adapter.find_transcript(&said.id, directory).ok_or(Error::NotSeeded { agent, what: "saved no session" })?;
    Ok((NewSession { id: said.id, path }, said.answer))
}

/// The registry's record of a seed without an answer.
pub(super) fn seed_note(_ctx: &Ctx, plan: &Plan, text: &str) -> SeedNote {
    SeedNote {
        parent_agent: plan.source.agent,
        parent: plan.source.id.to_string(),
        turn: plan.turns,
        hash: hash_of(text),
        tokens: plan.tokens.unwrap_or_default(),
        window: plan.context_window,
        hidden: false,
    }
}

pub(super) fn write_seed(ctx: &Ctx, plan: &Plan) -> Result<Seed> {
    let Some(decided) = &plan.seed else {
        unreachable!("a plan by seed has measured it");
    };
    let path = &plan.source.path;
    let mut blocks = ctx
        .adapter(plan.source.agent)
        .read_part(path, &Part { until: Some(plan.turns), tip: plan.tip, ..Part::default() }, None)
        .map_err(|source| FileError::Read { path: path.clone(), source })?;
    let source = SeedSource {
        agent: plan.source.agent,
        label: plan.source.label(),
        turns: plan.turns,
        directory: plan.source.cwd.as_ref().map(|path| path.to_string_lossy().into_owned()),
    };
    let mut writer = SeedWriter::new(&source, decided.fit.clone(), &decided.nonce, decided.masks);
    while let Some(block) = blocks.next_block() {
        writer.block(&block);
    }
    Ok(writer.finish())
}

/// The agent must have stored exactly what it was given, and an answer to it.
pub(super) fn check_seed(ctx: &Ctx, agent: Agent, made: &NewSession, seed: &str) -> Result<()> {
    let adapter = ctx.adapter(agent);
    let unreadable = |source| FileError::Read { path: made.path.clone(), source };
    let mut blocks = adapter.read(&made.path, Some(1), None).map_err(unreadable)?;
    let (mut told, mut answered) = (false, false);
    while let Some(block) = blocks.next_block() {
        match &block.kind {
            BlockKind::Prompt { text, .. } => told |= text.trim() == seed.trim(),
            BlockKind::Answer { text, .. } => answered |= told && !text.trim().is_empty(),
            _ => {}
        }
    }
    match (told, answered) {
        (true, true) => Ok(()),
        (false, _) => Err(Error::NotSeeded { agent, what: "did not receive the whole transcript" }),
        (true, false) => Err(Error::NotSeeded { agent, what: "did not answer" }),
    }
}

/// A seed on its way to an agent.
pub(super) struct SeedHandover<'a> {
    pub agent: Agent,
    /// The session's id, where the agent takes one.
    pub id: &'a SessionId,
    pub name: &'a str,
    pub directory: &'a Path,
    /// By which the agent is found again.
    pub mark: &'a str,
    pub text: &'a str,
}

/// By which a seed is known; the text itself isn't kept once it was sent.
pub(super) fn hash_of(text: &str) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes()))
}

/// A mark that nothing in a transcript can know.
pub(super) fn new_nonce() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..16].to_owned()
}
