//! Branches of a transcript besides its main history: abandoned by a rewind, or written by a second process.
//!
//! `SESSION@ID` selects one by the id of its last record. Such a session is read and forked like any other.

use agents::{Branch, Part};
use serde::Serialize;
use transcript::{BlockKind, State, secrets, text};

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::sessions::session::Session;
use crate::sessions::{Error, Result};

/// The length of an id prefix, unless it looks like a turn number.
const HANDLE: usize = 8;
/// How much of a prompt is shown.
const PROMPT: usize = 200;

/// A branch of a session that is not its history.
#[derive(Debug, Clone, Serialize)]
pub struct BranchView {
    /// The id of its last record.
    pub id: String,
    /// How people name it: `SESSION@HANDLE`.
    pub handle: String,
    /// How many turns it has.
    pub turns: u32,
    /// How many of them it shares with the history.
    pub shared: u32,
    /// The first prompt that it doesn't share.
    pub prompt: Option<String>,
}

/// The branches of a session that are not its history, the latest first.
pub(crate) fn branches(ctx: &Ctx, session: &Session) -> Result<Vec<BranchView>> {
    if session.details.branches == 0 {
        return Ok(Vec::new());
    }
    let own = ctx.adapter(session.view.agent).scan(&session.view.path).turn_keys;
    let view = |branch: Branch| {
        let keys = &branch.summary.turn_keys;
        let shared = own.iter().zip(keys).take_while(|(own, key)| own == key).count() as u32;
        let turns = branch.summary.turns;
        Ok(BranchView {
            handle: handle(&branch.id).to_owned(),
            prompt: prompt_of(ctx, session, branch.tip, (shared + 1).min(turns))?,
            id: branch.id,
            turns,
            shared,
        })
    };
    branches_of(ctx, session)?.into_iter().map(view).collect()
}

/// The same session along another branch, which is named by the beginning of the id of its last record.
pub(crate) fn on_branch(ctx: &Ctx, session: Session, id: &str) -> Result<Session> {
    let mut found = branches_of(ctx, &session)?.into_iter().filter(|branch| branch.id.starts_with(id));
    let (Some(branch), None) = (found.next(), found.next()) else {
        return Err(Error::NoBranch { session: session.view.label().to_owned(), branch: text::one_line(id) });
    };
    Ok(along(session, branch))
}

/// The same by the branch's place among all of them.
pub(crate) fn on_numbered_branch(ctx: &Ctx, session: Session, number: usize) -> Result<Session> {
    match branches_of(ctx, &session)?.into_iter().nth(number) {
        Some(branch) => Ok(along(session, branch)),
        None => Err(Error::NoBranch { session: session.view.label().to_owned(), branch: number.to_string() }),
    }
}

fn branches_of(ctx: &Ctx, session: &Session) -> Result<Vec<Branch>> {
    let path = &session.view.path;
    let branches = ctx.adapter(session.view.agent).branches(path);
    Ok(branches.map_err(|source| FileError::Read { path: path.clone(), source })?)
}

fn prompt_of(ctx: &Ctx, session: &Session, tip: u64, turn: u32) -> Result<Option<String>> {
    let path = &session.view.path;
    let part = Part { until: Some(turn), prose_only: true, tip: Some(tip), ..Part::default() };
    let blocks = ctx.adapter(session.view.agent).read_part(path, &part, None);
    let mut blocks = blocks.map_err(|source| FileError::Read { path: path.clone(), source })?;
    let prompt = std::iter::from_fn(|| blocks.next_block()).find_map(|block| match block.kind {
        BlockKind::Prompt { text, steer: false } if block.turn == turn && block.depth == 0 => Some(text),
        _ => None,
    });
    Ok(prompt.map(|prompt| text::clip(&text::one_line(&secrets::mask(&prompt).0), PROMPT)))
}

/// The session along a branch.
fn along(mut session: Session, branch: Branch) -> Session {
    let summary = *branch.summary;
    // An abandoned branch is not open.
    (session.live, session.view.state, session.is_settled) = (None, State::Stopped, true);
    session.view.turns = summary.turns;
    let details = &mut session.details;
    (details.known, details.tip) = (None, Some(branch.tip));
    details.branch = Some(handle(&branch.id).to_owned());
    (details.model, details.tokens) = (summary.model, summary.tokens);
    (details.mid_turn, details.disordered) = (summary.mid_turn, summary.disordered);
    details.defects = summary.defects;
    session
}

/// The id prefix by which users refer to a branch. If it could be a turn number, it is longer.
fn handle(id: &str) -> &str {
    let digits = id.bytes().take_while(u8::is_ascii_digit).count();
    id.get(..HANDLE.max(digits + 1)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_no_number() {
        assert_eq!(handle("1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21"), "1f3a5c60");
        assert_eq!(handle("12345678-7d2e-4b1a-9c3d-5e8f7a6b4c21"), "12345678-");
        assert_eq!(handle("abc"), "abc");
    }
}
