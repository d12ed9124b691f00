//! About how many tokens a history is: what the agent reported of it, or what its own characters per token say, whichever
//! is more.

use transcript::BlockKind;

use super::Request;
use crate::Tine;
use crate::error::Result;

/// What a token has where a session tells nothing of its own. Code and prose have three to four.
const CHARACTERS_PER_TOKEN: f64 = 3.5;
/// A transcript that is longer than this is not read for an estimate; what was reported has to do.
const READ_AT_MOST: u64 = 64 << 20;

/// What is known of a history's size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub tokens: Option<u64>,
    /// How many characters a token has in this session.
    pub per_token: f64,
    pub window: Option<u64>,
}

impl Tine {
    /// `told` says that the history is told to the agent anew, so that its own characters per token have to be known.
    pub(super) fn count_tokens(&self, request: &Request, turns: u32, told: bool) -> Result<Count> {
        let source = &request.source;
        let reported = source.details.tokens;
        let window = reported.and_then(|tokens| tokens.window).or_else(|| window_of(source.details.model.as_deref()));
        let total = reported.map(|tokens| tokens.input + tokens.output);
        let whole = turns == source.view.turns;
        let is_known = whole && total.is_some() && !source.details.mid_turn && !told;
        if is_known || source.size > READ_AT_MOST {
            let share =
                |total: u64| if whole { total } else { total * u64::from(turns) / u64::from(source.view.turns.max(1)) };
            return Ok(Count { tokens: total.map(share), per_token: CHARACTERS_PER_TOKEN, window });
        }
        let mut blocks = self.read_all(source, Some(turns))?;
        let (mut characters, mut at_report, mut last) = (0_u64, 0_u64, None);
        while let Some(block) = blocks.next_block() {
            if matches!(block.kind, BlockKind::Compaction { .. }) {
                // The model has seen nothing of what stands before it since.
                characters = 0;
                at_report = 0;
                last = None;
            }
            if block.depth == 0 {
                characters += characters_of(&block.kind);
            }
            let said = blocks.tokens();
            if said != last {
                last = said;
                at_report = characters;
            }
        }
        let reported = last.map(|tokens| tokens.input + tokens.output);
        let window = last.and_then(|tokens| tokens.window).or(window);
        let seen = reported.filter(|tokens| *tokens > 0).map(|tokens| at_report as f64 / tokens as f64);
        // What an agent sends besides the words, such as its instructions, makes the first tokens cheap in characters.
        let per_token = seen.unwrap_or(CHARACTERS_PER_TOKEN).clamp(1.0, 6.0);
        let beyond = characters.saturating_sub(at_report) as f64 / per_token;
        let estimate = match reported {
            Some(reported) => reported + beyond as u64,
            None => (characters as f64 / per_token) as u64,
        };
        Ok(Count { tokens: Some(estimate.max(reported.unwrap_or(0))), per_token, window })
    }
}

/// Models that say by their name how much they take.
fn window_of(model: Option<&str>) -> Option<u64> {
    model.filter(|model| model.ends_with("[1m]")).map(|_| 1_000_000)
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
        // A picture is about 1,500 tokens.
        BlockKind::Media { .. } => 5_000,
        BlockKind::Subagent { .. } => 0,
    };
    length as u64
}
