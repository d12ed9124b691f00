//! `SESSION`, wherever it stands on the command line: a name, an id, a unique beginning of one, a path, `.` or `-`.

use std::path::{Path, PathBuf};

use transcript::{At, SessionName, parse_spec, text};

use crate::Tine;
use crate::error::{Error, Result};
use crate::project::Project;
use crate::session::Session;

/// A session and a point in it.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The session.
    pub session: Session,
    /// How many of its turns are meant; nothing for all of it.
    pub turns: Option<u32>,
}

/// Finds what `spec` means among `sessions`, which are newest first.
pub(crate) fn resolve(tine: &Tine, sessions: &[Session], spec: &str) -> Result<Selection> {
    let (word, at) = parse_spec(spec).map_err(Error::BadPoint)?;
    let session = find(tine, sessions, word)?;
    let turns = match at {
        At::End => None,
        at => Some(
            at.resolve(session.view.turns)
                .map_err(|source| Error::NoTurn { session: session.view.label().to_owned(), source })?,
        ),
    };
    Ok(Selection { session, turns })
}

fn find(tine: &Tine, sessions: &[Session], word: &str) -> Result<Session> {
    match word {
        "." => {
            let project = Project::of(&tine.context().cwd);
            let here = |session: &&Session| session.view.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
            return sessions.iter().find(here).cloned().ok_or_else(|| Error::NoSessionHere(tine.context().cwd.clone()));
        }
        "-" => {
            let last = tine.last_used()?.ok_or(Error::NoLastSession)?;
            return sessions
                .iter()
                .find(|session| session.key() == last)
                .or_else(|| {
                    sessions.iter().find(|session| session.view.agent == last.agent && session.view.id == last.id)
                })
                .cloned()
                .ok_or(Error::UnknownSession { spec: last.id.to_string(), similar: Vec::new() });
        }
        _ => {}
    }
    if word.contains('/') || word.ends_with(".jsonl") || word.ends_with(".jsonl.zst") {
        return by_path(tine, sessions, word);
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
    if matches.is_empty()
        && let Some(session) = tine.unlisted(word)?
    {
        return Ok(session);
    }
    match matches.as_slice() {
        [] => Err(Error::UnknownSession { spec: word.to_owned(), similar: similar(sessions, word) }),
        [one] => Ok((*one).clone()),
        several => Err(Error::Ambiguous {
            spec: word.to_owned(),
            matches: several.iter().map(|session| session.view.clone()).collect(),
        }),
    }
}

fn by_path(tine: &Tine, sessions: &[Session], word: &str) -> Result<Session> {
    let path = tine.context().cwd.join(word);
    let resolved = path.canonicalize().map_err(|source| Error::Unreadable { path: path.clone(), source })?;
    let same =
        |other: &PathBuf| *other == path || *other == resolved || other.canonicalize().is_ok_and(|p| p == resolved);
    let file_name = resolved.file_name();
    if let Some(session) =
        sessions.iter().find(|session| session.view.path.file_name() == file_name && same(&session.view.path))
    {
        return Ok(session.clone());
    }
    tine.outside_session(&resolved)
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

/// Which agent wrote the file at `path`, by its first record.
pub(crate) fn agent_of_file(path: &Path) -> Option<transcript::Agent> {
    use transcript::Agent;
    let name = path.file_name()?.to_string_lossy().into_owned();
    if name.ends_with(".jsonl.zst") {
        return Some(Agent::Codex);
    }
    let mut lines = agents::LineReader::open(path, 0, None).ok()?;
    let mut looked = 0;
    while let Ok(Some(line)) = lines.next_line() {
        let raw = agents::Raw(line.bytes?);
        if raw.get(b"type").is_some_and(|kind| kind.0 == b"\"session_meta\"") {
            return Some(Agent::Codex);
        }
        if raw.get(b"sessionId").is_some() || raw.get(b"parentUuid").is_some() {
            return Some(Agent::Claude);
        }
        looked += 1;
        if looked > 100 {
            break;
        }
    }
    None
}
