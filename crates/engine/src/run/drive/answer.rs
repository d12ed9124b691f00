//! The last turn of a session, and waiting until a message is answered.

use std::time::{Duration, Instant};

use transcript::seed::is_seed;
use transcript::{BlockKind, NoticeKind, State};

use super::{PAUSE, asks};
use crate::ctx::Ctx;
use crate::run::drive;
use crate::run::places::Pane;
use crate::run::{Error, Result};
use crate::sessions::refresh::refresh;
use crate::sessions::session::Session;
use crate::sessions::survey;
use transcript::seed::is_acknowledgement;

/// After this time, a finished turn will not get an answer.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);

/// The last turn of a session.
#[derive(Default)]
pub(super) struct LastTurn {
    pub(super) prompt: Option<String>,
    /// What the agent wrote after its last tool call.
    pub(super) answer: Option<String>,
    pub(super) is_interrupted: bool,
}

/// A message, and the session before it was sent.
pub(super) struct Message<'a> {
    pub(super) text: &'a str,
    pub(super) turns: u32,
    pub(super) size: u64,
    pub(super) pane: Option<&'a Pane>,
}

/// Waits until a message is answered.
pub(super) fn wait_for_answer(
    ctx: &Ctx,
    session: Session,
    message: &Message<'_>,
    timeout: Option<Duration>,
) -> Result<(Session, String)> {
    let begun = Instant::now();
    let mut session = session;
    let mut last_busy = Instant::now();
    let mut done_since: Option<Instant> = None;
    loop {
        if matches!(session.view.state, State::Busy | State::Waiting) {
            last_busy = Instant::now();
        }
        if session.view.state == State::Waiting {
            return Err(asks(&session));
        }
        // Some agents only show on the screen that they wait.
        if let Some(what) = message.pane.and_then(|pane| drive::asks_on_screen(ctx, &session, pane)) {
            return Err(Error::Asks { session: session.view.label().to_owned(), what });
        }
        let (label, runs) = (session.view.label().to_owned(), session.live.is_some());
        let is_at_rest = !runs || drive::is_done(ctx, &session);
        let LastTurn { prompt, answer, .. } =
            if is_at_rest && session.size > message.size { last_turn(ctx, &session)? } else { LastTurn::default() };
        // An interrupted turn isn't counted, so the next one has its number, and an earlier turn may reach the file only
        // now. So the text decides, and the number of turns if the agent has changed the text.
        let is_same = prompt.as_deref().is_some_and(|prompt| is_same_text(prompt, message.text));
        let is_answered = is_same || prompt.is_some() && session.view.turns > message.turns;
        if !is_answered && (!runs || last_busy.elapsed() > SETTLES_WITHIN * 2) {
            return Err(Error::Unanswered { session: label, runs });
        }
        if is_at_rest && is_answered {
            // The prompt may be in the transcript a moment before the agent reports that it is busy.
            let since = *done_since.get_or_insert_with(Instant::now);
            let has_settled = since.elapsed() > SETTLES_WITHIN;
            match answer {
                Some(answer) if is_same || has_settled => return Ok((session, answer)),
                None if has_settled => return Err(Error::Unanswered { session: label, runs }),
                Some(_) | None => {}
            }
        } else {
            done_since = None;
        }
        let waited = begun.elapsed();
        if timeout.is_some_and(|timeout| waited >= timeout) {
            let (state, seconds) = (session.view.state, waited.as_secs_f32().round() as u64);
            return Err(Error::StillAtWork { session: session.view.label().to_owned(), state, seconds });
        }
        ctx.pause(PAUSE)?;
        session = refresh(ctx, &session)?;
    }
}

/// The last prompt of a session, and the answer to it. The acknowledgement of a seed is no answer.
pub(super) fn last_turn(ctx: &Ctx, session: &Session) -> Result<LastTurn> {
    if session.view.unstarted {
        return Err(Error::NotStarted(session.view.label().to_owned()));
    }
    let mut blocks = survey::read_all(ctx, session, None)?;
    let (mut prompt, mut is_interrupted) = (None, false);
    let mut answer: Vec<String> = Vec::new();
    while let Some(block) = blocks.next_block() {
        match block.kind {
            _ if block.depth > 0 => {}
            BlockKind::Answer { text, .. } => answer.push(text),
            BlockKind::Prompt { text, .. } => {
                prompt = Some(text);
                is_interrupted = false;
                answer.clear();
            }
            BlockKind::Notice { notice: NoticeKind::Interrupted, .. } => is_interrupted = true,
            BlockKind::Call { .. } | BlockKind::Output { .. } => answer.clear(),
            _ => {}
        }
    }
    let answer = (!answer.is_empty()).then(|| answer.join("\n\n"));
    let is_seeded = prompt.as_deref().is_some_and(is_seed);
    let answer = answer.filter(|answer| !(is_seeded && is_acknowledgement(answer)));
    Ok(LastTurn { prompt, answer, is_interrupted })
}

/// Whether a prompt is a message that was sent. Whitespace doesn't count, nor the letter before it that keeps an input line
/// from taking it for a command.
pub(super) fn is_same_text(prompt: &str, message: &str) -> bool {
    let prompt = prompt.trim_start_matches(['\u{200b}', '\u{2800}']);
    prompt.split_whitespace().eq(message.split_whitespace())
}
