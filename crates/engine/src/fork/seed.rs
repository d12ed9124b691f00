//! The method `seed`: the transcript is the first prompt of a new session, of any agent.
//!
//! The agent's own program is told it, by standard input, so that what comes out is a session like any other. What is
//! remembered of a seed is whose it is, how large and its hash; never the text.

use agents::{Blocks, Made, Message};
use serde::Serialize;
use transcript::seed::{ACKNOWLEDGEMENT, Fit, SEED_MARKER, Seed, SeedSizes, SeedSource, SeedWriter};
use transcript::{Agent, BlockKind};

use super::{Plan, Request};
use crate::Tine;
use crate::error::{Error, Result};
use crate::operations::Effects;

/// Of the window, what a seed may fill; the rest is for what is said next.
const SHARE_OF_WINDOW: f64 = 0.75;

/// What is decided about a seed before it is written.
#[derive(Debug, Clone)]
pub struct SeedPlan {
    pub(super) fit: Fit,
    pub(super) masks: bool,
    /// How many secrets there are to mask.
    pub(super) secrets: usize,
    /// The mark of its lines, made up for it.
    pub(super) nonce: String,
}

/// What is remembered of a seed.
#[derive(Debug, Clone, Serialize)]
pub struct SeedNote {
    /// The agent whose transcript it was.
    pub parent_agent: Agent,
    /// The session whose transcript it was.
    pub parent: String,
    /// Up to which turn.
    pub turn: u32,
    /// A hash of the text.
    pub hash: String,
    /// About how many tokens it is.
    pub tokens: u64,
    /// The window that it was made for.
    pub window: Option<u64>,
    /// Whether the agent answered as asked, so that the answer is not shown.
    pub hidden: bool,
}

impl Tine {
    /// Measures the transcript and decides what is shortened. `per_token` is how many characters a token has in it.
    pub(super) fn plan_seed(
        &self,
        request: &Request,
        turns: u32,
        agent: Agent,
        window: Option<u64>,
        per_token: f64,
    ) -> Result<SeedPlan> {
        let mut sizes = SeedSizes::default();
        let mut blocks = self.read_all(&request.source, Some(turns))?;
        while let Some(block) = blocks.next_block() {
            sizes.note(&block);
        }
        // Headings may be longer than they are taken for.
        let input = self.store(agent).input_limit().map(|limit| limit - limit / 50);
        let window = window.map(|window| (window as f64 * SHARE_OF_WINDOW * per_token) as usize);
        let limit = [input, window].into_iter().flatten().min();
        let masks = agent != request.source.view.agent && !request.keep_secrets;
        let secrets = if masks { sizes.secrets() } else { 0 };
        let nonce = uuid::Uuid::new_v4().simple().to_string()[..16].to_owned();
        Ok(SeedPlan { fit: sizes.fit(limit), masks, secrets, nonce })
    }

    /// Writes the seed, gives it to the agent and looks at what came of it.
    pub(super) fn fork_by_seed(&self, plan: &Plan, effects: &mut Effects) -> Result<(Made, SeedNote)> {
        let store = self.store(plan.agent);
        let program = self.marked_program(plan)?;
        let seed = self.write_seed(plan)?;
        let message = Message {
            session: None,
            id: store.takes_ids().then_some(&plan.id),
            title: Some(plan.name.as_str()),
            directory: &plan.workspace.path,
            options: &[],
            text: &seed.text,
        };
        let said = store.say(&program, &message)?;
        let path = store.find(&said.id, &plan.workspace.path).ok_or_else(|| Error::CopyDiffers {
            what: format!("{} kept no session of it", plan.agent.product_name()),
        })?;
        effects.note(&path);
        let made = Made { id: said.id, path };
        self.check_seed(plan, &made, &seed)?;
        let note = SeedNote {
            parent_agent: plan.source.agent,
            parent: plan.source.id.to_string(),
            turn: plan.turns,
            hash: format!("{:032x}", xxhash_rust::xxh3::xxh3_128(seed.text.as_bytes())),
            tokens: plan.tokens.unwrap_or_default(),
            window: plan.context_window,
            hidden: is_acknowledgement(&said.answer),
        };
        Ok((made, note))
    }

    fn write_seed(&self, plan: &Plan) -> Result<Seed> {
        let Some(decided) = &plan.seed else {
            unreachable!("a plan by seed has measured it");
        };
        let path = &plan.source.path;
        let mut blocks = self
            .store(plan.source.agent)
            .read(path, Some(plan.turns), None)
            .map_err(|source| Error::Unreadable { path: path.clone(), source })?;
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
    fn check_seed(&self, plan: &Plan, made: &Made, seed: &Seed) -> Result<()> {
        let store = self.store(plan.agent);
        let unreadable = |source| Error::Unreadable { path: made.path.clone(), source };
        let mut blocks = store.read(&made.path, Some(1), None).map_err(unreadable)?;
        let (mut told, mut answered) = (false, false);
        while let Some(block) = blocks.next_block() {
            match &block.kind {
                BlockKind::Prompt { text, .. } => told |= text.trim() == seed.text.trim(),
                BlockKind::Answer { text, .. } => answered |= told && !text.trim().is_empty(),
                _ => {}
            }
        }
        match (told, answered) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::CopyDiffers { what: "the seed did not arrive whole".into() }),
            (true, false) => Err(Error::CopyDiffers { what: "the agent did not answer the seed".into() }),
        }
    }
}

pub(crate) fn is_acknowledgement(answer: &str) -> bool {
    answer.trim().trim_matches('"') == ACKNOWLEDGEMENT
}

/// The conversation of a seeded session: the seed is shown as one line, and the answer to it not at all.
pub(crate) struct Unseeded {
    blocks: Box<dyn Blocks>,
    /// What is shown for the seed.
    line: String,
    /// The answer to the seed, which is hidden once.
    hides: bool,
}

impl Unseeded {
    pub(crate) fn new(blocks: Box<dyn Blocks>, note: &SeedNote) -> Self {
        let line = format!("(the transcript of {} up to turn {})", note.parent, note.turn);
        Unseeded { blocks, line, hides: note.hidden }
    }
}

impl Blocks for Unseeded {
    fn next_block(&mut self) -> Option<transcript::Block> {
        loop {
            let mut block = self.blocks.next_block()?;
            match &mut block.kind {
                BlockKind::Prompt { text, .. } if text.starts_with(SEED_MARKER) => {
                    text.clone_from(&self.line);
                }
                BlockKind::Answer { text, .. } if self.hides && block.turn == 1 && is_acknowledgement(text) => {
                    self.hides = false;
                    continue;
                }
                _ => {}
            }
            return Some(block);
        }
    }

    fn tokens(&self) -> Option<transcript::TokenUse> {
        self.blocks.tokens()
    }

    fn defects(&self) -> &transcript::Defects {
        self.blocks.defects()
    }
}
