//! Branches of a transcript besides its main history: abandoned by a rewind, or written by a second process.
//!
//! `SESSION@HANDLE` selects one. The handle is the beginning of the id of its last record, or of a fingerprint of that where
//! the id could be the number of a turn. Such a session is read and forked like any other.

use agents::{Branch, Part};
use serde::Serialize;
use transcript::{BlockKind, State, secrets, text};

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::sessions::session::Session;
use crate::sessions::{Error, Result};

/// The length of a handle, unless it looks like a turn number or another branch has the same.
const HANDLE: usize = 8;
/// How much of a prompt is shown.
const PROMPT: usize = 200;

/// A branch of a session that is not its history.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The branches of a session outside its main history, newest first.
pub(crate) fn branches(ctx: &Ctx, session: &Session) -> Result<Vec<BranchView>> {
    if session.details.branches == 0 {
        return Ok(Vec::new());
    }
    let own = ctx.adapter(session.view.agent).scan(&session.view.path).turn_keys;
    let branches = branches_of(ctx, session)?;
    let handles = handles(&branches);
    let view = |(branch, handle): (Branch, String)| {
        let keys = &branch.summary.turn_keys;
        let shared = own.iter().zip(keys).take_while(|(own, key)| own == key).count() as u32;
        let turns = branch.summary.turns;
        Ok(BranchView {
            handle,
            prompt: prompt_of(ctx, session, branch.tip, (shared + 1).min(turns))?,
            id: branch.id,
            turns,
            shared,
        })
    };
    branches.into_iter().zip(handles).map(view).collect()
}

/// The same session along another branch, which is named by its handle, or by the beginning of what that is made of.
pub(crate) fn on_branch(ctx: &Ctx, session: Session, word: &str) -> Result<Session> {
    let branches = branches_of(ctx, &session)?;
    let handles = handles(&branches);
    let found = match handles.iter().position(|handle| handle == word) {
        Some(exact) => vec![exact],
        None => (0..branches.len()).filter(|index| name(&branches[*index]).starts_with(word)).collect(),
    };
    let (label, word) = (|| session.view.label().to_owned(), text::one_line(word));
    match found.as_slice() {
        [] => Err(Error::NoBranch { session: label(), branch: word }),
        [only] => Ok(session_on_branch(session, branches, handles, *only)),
        several => {
            let handles = several.iter().map(|index| handles[*index].clone()).collect();
            Err(Error::AmbiguousBranch { session: label(), branch: word, handles })
        }
    }
}

/// The same by the branch's place among all of them.
pub(crate) fn on_numbered_branch(ctx: &Ctx, session: Session, number: usize) -> Result<Session> {
    let branches = branches_of(ctx, &session)?;
    let handles = handles(&branches);
    match number < branches.len() {
        true => Ok(session_on_branch(session, branches, handles, number)),
        false => Err(Error::NoBranch { session: session.view.label().to_owned(), branch: number.to_string() }),
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
fn session_on_branch(
    mut session: Session,
    mut branches: Vec<Branch>,
    mut handles: Vec<String>,
    index: usize,
) -> Session {
    let (branch, handle) = (branches.swap_remove(index), handles.swap_remove(index));
    let summary = *branch.summary;
    // An abandoned branch is not open.
    (session.live, session.view.state, session.is_settled) = (None, State::Stopped, true);
    session.view.turns = summary.turns;
    let details = &mut session.details;
    (details.known, details.tip) = (None, Some(branch.tip));
    details.branch = Some(handle);
    (details.model, details.tokens) = (summary.model, summary.tokens);
    (details.mid_turn, details.disordered) = (summary.mid_turn, summary.disordered);
    (details.tip_differs, details.gaps) = (summary.tip_differs, summary.gaps);
    details.defects = summary.defects;
    session
}

/// The full name of a branch, of which its handle is a prefix: hexadecimal digits and dashes, as in point notation. Ids
/// that are not UUIDs may be numbers or other words.
fn name(branch: &Branch) -> String {
    let is_uuid = branch.id.len() == 36 && branch.id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match is_uuid {
        true => branch.id.clone(),
        false => format!("{:08x}-{:08x}", branch.tip >> 32, branch.tip & 0xffff_ffff),
    }
}

/// The shortest prefix for each branch of a session that differs from the others and from turn numbers.
fn handles(branches: &[Branch]) -> Vec<String> {
    let names: Vec<String> = branches.iter().map(name).collect();
    let handle = |own: &String| {
        let digits = own.bytes().take_while(u8::is_ascii_digit).count();
        let shared = |other: &String| own.bytes().zip(other.bytes()).take_while(|(own, other)| own == other).count();
        let alike = names.iter().filter(|other| *other != own).map(shared).max().unwrap_or(0);
        own.get(..HANDLE.max(digits + 1).max(alike + 1)).unwrap_or(own).to_owned()
    };
    names.iter().map(handle).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use transcript::{Agent, At, SessionId, Spec, Summary, parse_spec};

    use super::*;

    #[test]
    fn every_handle_names_one_branch_and_no_turn() {
        let check = |ids: &[&str], expected: &[&str]| {
            let summary = || Summary::new(Agent::Claude, SessionId::new("1f3a").unwrap(), PathBuf::new());
            let branch = |(number, id): (usize, &&str)| Branch {
                id: (*id).to_owned(),
                tip: 0x9000_0000_1234_5678 + number as u64,
                summary: Box::new(summary()),
            };
            let branches: Vec<Branch> = ids.iter().enumerate().map(branch).collect();
            let handles = handles(&branches);
            assert_eq!(handles, expected, "{ids:?}");
            for handle in &handles {
                let spec = format!("auth@{handle}");
                assert_eq!(parse_spec(&spec), Ok(Spec { session: "auth", branch: Some(handle), at: At::End }));
            }
        };
        check(&["1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21"], &["1f3a5c60"]);
        check(&["12345678-7d2e-4b1a-9c3d-5e8f7a6b4c21"], &["12345678-"]);
        // Equal beginnings, as in made-up ids.
        check(
            &["c1a00002-0000-4000-8000-000000000004", "c1a00002-0000-4000-8000-000000000008"],
            &["c1a00002-0000-4000-8000-000000000004", "c1a00002-0000-4000-8000-000000000008"],
        );
        check(
            &["1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21", "1f3a5c60-8d2e-4b1a-9c3d-5e8f7a6b4c21"],
            &["1f3a5c60-7", "1f3a5c60-8"],
        );
        // What could be the number of a turn, or a word that is none of a UUID.
        check(&["4"], &["90000000-"]);
        check(&["4", "msg-4", ""], &["90000000-12345678", "90000000-12345679", "90000000-1234567a"]);
    }
}
