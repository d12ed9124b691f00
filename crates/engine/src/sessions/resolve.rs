//! Resolves `SESSION` on the command line: a name, an id, a unique id prefix, a path, `.` or `-`.

use std::path::{Path, PathBuf};

use transcript::{At, SessionName, Spec, parse_spec, text};

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::sessions::branches;
use crate::sessions::catalog::{self, Quiet};
use crate::sessions::project::Project;
use crate::sessions::session::Session;
use crate::sessions::survey;
use crate::sessions::{Error, Result};

/// A session and a point in it.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The session.
    pub session: Session,
    /// How many of its turns are meant; nothing for all of it.
    pub turns: Option<u32>,
}

/// Finds what `spec` means among `sessions`, which are newest first.
pub(crate) fn resolve(ctx: &Ctx, sessions: &[Session], spec: &str) -> Result<Selection> {
    let Spec { session: word, branch, at } = parse_spec(spec).map_err(Error::BadPoint)?;
    let mut session = find(ctx, sessions, word)?;
    if let Some(branch) = branch {
        session = branches::on_branch(ctx, session, branch)?;
    }
    let turns = match at {
        // A command for a whole session must not get a branch of it.
        At::End => branch.map(|_| session.view.turns),
        at => Some(
            at.resolve(session.view.turns)
                .map_err(|source| Error::NoTurn { session: session.view.label().to_owned(), source })?,
        ),
    };
    Ok(Selection { session, turns })
}

/// The newest session of the project around a directory. `sessions` are in order, the newest first.
pub fn newest_in<'a>(sessions: impl IntoIterator<Item = &'a Session>, directory: &Path) -> Option<&'a Session> {
    let project = Project::of(directory);
    let is_in = |session: &&Session| session.view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
    sessions.into_iter().find(is_in)
}

fn find(ctx: &Ctx, sessions: &[Session], word: &str) -> Result<Session> {
    match word {
        "." => {
            let here = &ctx.context().cwd;
            return newest_in(sessions, here).cloned().ok_or_else(|| Error::NoSessionHere(here.clone()));
        }
        "-" => {
            let last = crate::sessions::survey::last_used(ctx)?.ok_or(Error::NoLastSession)?;
            return sessions
                .iter()
                .find(|session| session.key() == last)
                .or_else(|| {
                    sessions.iter().find(|session| session.view.agent == last.agent && session.view.id == last.id)
                })
                .cloned()
                .ok_or(Error::Unknown { spec: last.id.to_string(), similar: Vec::new() });
        }
        _ => {}
    }
    if word.contains('/') || word.ends_with(".jsonl") || word.ends_with(".jsonl.zst") {
        return by_path(ctx, sessions, word);
    }
    let named = |session: &&Session| session.view.name.as_ref().map(SessionName::as_str) == Some(word);
    if let Some(session) = sessions.iter().find(named) {
        return Ok(session.clone());
    }
    let exact: Vec<&Session> = sessions.iter().filter(|session| session.view.id.as_str() == word).collect();
    let matches = if exact.is_empty() && !word.is_empty() {
        sessions.iter().filter(|session| session.view.id.as_str().starts_with(word)).collect()
    } else {
        exact
    };
    if matches.is_empty() {
        if let Some(session) = unlisted(ctx, word)? {
            return Ok(session);
        }
        if let Some(session) = hidden(ctx, word)? {
            return Ok(session);
        }
        if ctx.registry().is_unread() && word.parse::<SessionName>().is_ok() {
            return Err(Error::UnreadNames { spec: word.to_owned() });
        }
        return Err(Error::Unknown { spec: word.to_owned(), similar: similar(sessions, word) });
    }
    match matches.as_slice() {
        [one] => Ok((*one).clone()),
        several => Err(Error::Ambiguous {
            spec: word.to_owned(),
            matches: several.iter().map(|session| session.view.clone()).collect(),
        }),
    }
}

/// A session that lists leave out, because it is a subagent's or empty, by its id or the beginning of it.
fn hidden(ctx: &Ctx, word: &str) -> Result<Option<Session>> {
    // A shorter word is a mistyped name.
    if word.len() < 8 {
        return Ok(None);
    }
    let catalog = catalog::refresh(ctx.adapters(), &ctx.context().paths.cache, &Quiet);
    let hidden = catalog.entries.iter().filter(|entry| !entry.is_shown());
    let mut matches =
        hidden.filter(|entry| entry.summary.id.as_str().starts_with(word)).map(|entry| &entry.summary.path);
    let (Some(path), None) = (matches.next(), matches.next()) else {
        return Ok(None);
    };
    crate::sessions::survey::outside_session(ctx, path).map(Some)
}

fn by_path(ctx: &Ctx, sessions: &[Session], word: &str) -> Result<Session> {
    let path = ctx.context().cwd.join(word);
    let resolved = path.canonicalize().map_err(|source| FileError::Read { path: path.clone(), source })?;
    let same =
        |other: &PathBuf| *other == path || *other == resolved || other.canonicalize().is_ok_and(|p| p == resolved);
    let file_name = resolved.file_name();
    if let Some(session) =
        sessions.iter().find(|session| session.view.path.file_name() == file_name && same(&session.view.path))
    {
        return Ok(session.clone());
    }
    crate::sessions::survey::outside_session(ctx, &resolved)
}

/// Names and titles that a mistyped word may have meant.
fn similar(sessions: &[Session], word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    let mut close = Vec::new();
    for session in sessions {
        let by_name =
            session.view.name.as_ref().is_some_and(|name| distance(name.as_str(), &lower) <= 1 + lower.len() / 5);
        let by_title = lower.chars().count() >= 3
            && session.view.title.as_ref().is_some_and(|title| title.to_lowercase().contains(&lower));
        if by_name || by_title {
            let title = session.view.title.as_deref().map(text::one_line).unwrap_or_default();
            close.push(format!("`{}` ({})", session.view.label(), text::clip(&title, 40)));
        }
        if close.len() == 3 {
            break;
        }
    }
    close
}

/// The number of single-character changes between two words, counted no further than needed for short names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// What a name means that no listed session has.
fn unlisted(ctx: &Ctx, word: &str) -> Result<Option<Session>> {
    let Ok(name) = SessionName::new(word) else {
        return Ok(None);
    };
    let row = ctx.registry().named(&name)?;
    match row {
        None => Ok(None),
        Some(row) if row.is_unbegun => Err(Error::EmptySession(name)),
        Some(row) if agents::is_session(&row.key.path) => survey::outside_session(ctx, &row.key.path).map(Some),
        Some(row) => Err(Error::TranscriptGone { name, path: row.key.path }),
    }
}
