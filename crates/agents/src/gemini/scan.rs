//! The facts of a session, from its replayed history.

use std::fs::File;
use std::path::Path;

use transcript::{Agent, DefectKind, ParentPointer, ParentSource, SessionId, Summary, TokenUse, text};

use super::history::{Entry, History, load};
use super::home::{directory_of, id_inside, short_id};
use super::message::{Kind, Message};
use crate::fields::Raw;
use crate::files::open_regular;

/// What a title needs of a prompt.
const TITLE_BYTES: usize = 200;

/// Reads a session for its facts.
pub(super) fn scan(path: &Path) -> Summary {
    match History::of(path) {
        Ok(history) => summary_of(path, path, &history),
        Err(_) => {
            let mut summary = Summary::new(Agent::Gemini, id_of(path, None), path.to_owned());
            summary.defects.add(DefectKind::Unreadable);
            summary
        }
    }
}

/// The facts of a session whose messages are in the file at `path`, which belongs at `place`.
pub(super) fn summary_of(path: &Path, place: &Path, history: &History) -> Summary {
    let History { meta, entries, .. } = history;
    let mut summary = Summary::new(Agent::Gemini, id_of(place, meta.id.clone()), place.to_owned());
    let prompts = entries.iter().filter(|entry| entry.kind == Kind::Prompt);
    summary.turn_keys = prompts.map(|entry| entry.key).collect();
    summary.turns = u32::try_from(summary.turn_keys.len()).unwrap_or(u32::MAX);
    summary.is_empty = summary.turns == 0;
    summary.is_subagent = meta.is_subagent;
    summary.custom_title.clone_from(&meta.summary);
    summary.cwd = directory_of(place);
    summary.created = meta.began.or(history.last);
    summary.updated = meta.updated.max(history.last).max(summary.created);
    summary.defects = history.defects.clone();
    summary.parent = meta.imported_from.as_deref().and_then(parent);
    let last = entries
        .iter()
        .rev()
        .find(|entry| !matches!(entry.kind, Kind::Note | Kind::Import | Kind::Other | Kind::Context));
    summary.mid_turn = last.is_some_and(|last| match last.kind {
        Kind::Answer => last.calls_tools,
        _ => true,
    });
    if let Ok(mut file) = open_regular(path) {
        read_messages(&mut file, history, &mut summary);
    }
    summary
}

/// OptionValue the title from the first prompt, and the rest from the last answers.
fn read_messages(file: &mut File, history: &History, summary: &mut Summary) {
    let mut buffer = Vec::new();
    let mut message = |entry: &Entry, see: &mut dyn FnMut(&Message<'_>)| {
        if load(file, entry, &mut buffer).unwrap_or(false)
            && let Some(message) = Message::of(&buffer)
        {
            see(&message);
        }
    };
    for prompt in history.entries.iter().filter(|entry| entry.kind == Kind::Prompt) {
        message(prompt, &mut |prompt| {
            let line = text::one_line(text::prefix(&prompt.prompt().0, 8 * TITLE_BYTES));
            summary.first_prompt = Some(text::prefix(&line, TITLE_BYTES).to_owned()).filter(|line| !line.is_empty());
        });
        if summary.first_prompt.is_some() {
            break;
        }
    }
    /// How many answers may be without a count of tokens: those that were interrupted.
    const ANSWERS: usize = 8;
    for answer in history.entries.iter().rev().filter(|entry| entry.kind == Kind::Answer).take(ANSWERS) {
        message(answer, &mut |answer| {
            summary.model = summary.model.take().or_else(|| answer.text(b"model"));
            summary.tokens = summary.tokens.or_else(|| tokens(answer));
        });
        if summary.model.is_some() && summary.tokens.is_some() {
            break;
        }
    }
}

/// The tokens of one request and its answer.
pub(super) fn tokens(answer: &Message<'_>) -> Option<TokenUse> {
    let tokens = answer.get(b"tokens")?;
    let count = |key: &[u8]| tokens.get(key).and_then(Raw::number);
    let output = count(b"output").unwrap_or(0) + count(b"thoughts").unwrap_or(0);
    Some(TokenUse { input: count(b"input")?, output, window: None })
}

/// The session that the client loaded from a file.
fn parent(path: &Path) -> Option<ParentPointer> {
    let id = SessionId::new(id_inside(path)?).ok()?;
    Some(ParentPointer { id, source: ParentSource::Agent })
}

/// The id of a session; in a damaged file what its name has of it.
fn id_of(path: &Path, known: Option<SessionId>) -> SessionId {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let named = short_id(name).unwrap_or_else(|| name.split('.').next().unwrap_or_default());
    known.or_else(|| SessionId::new(named).ok()).unwrap_or_else(|| SessionId::new("unknown").expect("a legal id"))
}
