//! Estimates the tokens of a history: the number that the agent reported or the number by characters, whichever is
//! larger.

use transcript::BlockKind;

use super::Request;
use crate::ctx::Ctx;
use crate::fork::Result;

/// Default number of characters per token. Code and prose have three to four.
const CHARACTERS_PER_TOKEN: f64 = 3.5;
/// A longer transcript is not read for an estimate; the reported number must do.
const READ_AT_MOST: u64 = 64 << 20;

/// What is known about a history's size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub tokens: Option<u64>,
    /// The number of characters per token in this session.
    pub per_token: f64,
    /// The context window that the agent reported.
    pub window: Option<u64>,
    /// The largest context that the session has had so far, including after the turn at which it is forked.
    pub largest: u64,
    /// Whether it ends with a compaction, so that the model sees only the summary.
    pub ends_compacted: bool,
}

/// `told`: the history will be sent to the agent as text, so its own ratio of characters per token is needed.
pub(super) fn count_tokens(ctx: &Ctx, request: &Request, turns: u32, told: bool) -> Result<Count> {
    let source = &request.source;
    let reported = source.details.tokens;
    let window = reported.and_then(|tokens| tokens.window);
    let total = reported.map(|tokens| tokens.context());
    let largest = source.details.largest_context.max(total.unwrap_or(0));
    let whole = turns == source.view.turns;
    // After a compaction, the last report may count text that the model no longer sees.
    let is_known = whole && total.is_some() && !source.details.mid_turn && !source.details.compacted && !told;
    if is_known || source.size > READ_AT_MOST {
        let share =
            |total: u64| if whole { total } else { total * u64::from(turns) / u64::from(source.view.turns.max(1)) };
        return Ok(Count {
            tokens: total.map(share),
            per_token: CHARACTERS_PER_TOKEN,
            window,
            largest,
            ends_compacted: false,
        });
    }
    let mut blocks = crate::sessions::survey::read_all(ctx, source, Some(turns))?;
    let (mut characters, mut at_report, mut last) = (0_u64, 0_u64, None);
    // A report from before a compaction shows the ratio, but not the size of what is left.
    let (mut stale, mut per_token) = (None, None);
    let mut ends_compacted = false;
    while let Some(block) = blocks.next_block() {
        if matches!(block.kind, BlockKind::Compaction { .. }) {
            (characters, at_report, last, stale) = (0, 0, None, blocks.tokens());
        }
        ends_compacted = match block.kind {
            BlockKind::Compaction { .. } => true,
            BlockKind::Notice { .. } => ends_compacted,
            _ => false,
        };
        if block.depth == 0 {
            characters += characters_of(&block.kind);
        }
        let said = blocks.tokens().filter(|said| Some(*said) != stale);
        if said.is_some() && said != last {
            last = said;
            at_report = characters;
            per_token = said.map(|said| characters as f64 / said.context().max(1) as f64);
        }
    }
    let reported = last.map(|tokens| tokens.context());
    let window = last.or(stale).and_then(|tokens| tokens.window).or(window);
    // Instructions and other extra tokens make the first turns look cheap in characters.
    let per_token = per_token.unwrap_or(CHARACTERS_PER_TOKEN).clamp(1.0, 6.0);
    let beyond = characters.saturating_sub(at_report) as f64 / per_token;
    let estimate = match reported {
        Some(reported) => reported + beyond as u64,
        None => (characters as f64 / per_token) as u64,
    };
    Ok(Count { tokens: Some(estimate.max(reported.unwrap_or(0))), per_token, window, largest, ends_compacted })
}

fn characters_of(kind: &BlockKind) -> u64 {
    let length = match kind {
        BlockKind::Prompt { text, .. }
        | BlockKind::Answer { text, .. }
        | BlockKind::Thinking { text }
        | BlockKind::Output { text, .. }
        | BlockKind::Notice { text, .. } => text.chars().count(),
        BlockKind::Compaction { summary } => summary.chars().count(),
        BlockKind::Call { name, input, .. } => name.len() + input.to_string().chars().count(),
        // An image has about 1,500 tokens.
        BlockKind::Media { .. } => 5_000,
        BlockKind::Subagent { .. } => 0,
    };
    length as u64
}
