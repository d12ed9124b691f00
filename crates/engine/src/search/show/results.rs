//! Turns hits into results: which session a hit belongs to, why it matched, and which sessions match by name.

use std::collections::HashSet;

use transcript::secrets;

use super::queue::ReadingQueue;
use super::snippet::{self, Snippet};
use super::wanted::Wanted;
use super::{Answer, Found};
use crate::ctx::Ctx;
use crate::search::index::branch;
use crate::search::index::schema::NO_OFFSET;
use crate::search::index::upkeep::OpenIndex;
use crate::search::query::Query;
use crate::search::rank::find::{Hit, Hits};
use crate::search::rank::sessions::{Named, Sessions, is_of_a_fork};
use crate::sessions::branches;
use crate::sessions::catalog::Entry;
use crate::sessions::session::handles;

/// How many turns are read to verify a phrase.
const OPENED: usize = 300;
/// A score that would be shown as 0.00 is not a match.
const SHOWN: f32 = 0.005;

/// Groups hits by session and reads what is shown for each.
pub(crate) fn results(
    ctx: &Ctx,
    look: &OpenIndex,
    query: &Query,
    sessions: &Sessions,
    found: &mut Hits,
    limit: usize,
    answer: &mut Answer,
) {
    let terms = std::mem::take(&mut found.terms);
    let wanted = Wanted::of(&terms, query, found);
    let must_look = !query.phrases.is_empty() || !query.without_phrases.is_empty();
    let mut seen: HashSet<usize> = HashSet::new();
    let entries = &look.catalog.entries;
    let view = |entry: usize| {
        let entry = &entries[entry];
        let mut session = look.knowledge.session(entry.clone());
        let is_alike = |other: &&Entry| other.is_shown() && other.beginning() == entry.beginning();
        if let Some(handle) =
            handles(entries.iter().filter(is_alike).map(|other| &other.summary.id)).remove(&session.view.id)
        {
            session.view.handle = handle;
        }
        if let Some(title) = &mut session.view.title {
            *title = secrets::mask(title).0.into_owned();
        }
        session
    };
    let named = |entry: usize, score: f32| {
        let session = view(entry);
        let snippet = snippet::of_text(session.view.title.as_deref().unwrap_or_default(), &wanted);
        let turn = session.view.turns;
        let warning = incomplete(&look.catalog.entries[entry]);
        Found { score, session, turn, snippet, warning, forks: Vec::new(), source: None }
    };
    let Named { exact, is_id, like } = sessions.by_name(look, query, found);
    for entry in exact {
        if answer.results.len() < limit && seen.insert(entry) {
            answer.results.push(named(entry, 1.0));
        }
    }
    if !answer.results.is_empty() {
        // It was found, so none of its parts is a typo.
        (found.corrections, found.unknown) = (Vec::new(), Vec::new());
    }
    // A query for an id asks for nothing else.
    if is_id {
        return;
    }
    let mut opened = 0;
    let mut queue = ReadingQueue::of(found);
    while let Some(hit) = queue.next().filter(|hit| answer.results.len() < limit && hit.score >= SHOWN) {
        let Some(held) = sessions.shown_for(&hit).filter(|held| !seen.contains(&held.entry)) else { continue };
        let entry = held.entry;
        if must_look && opened >= OPENED {
            answer.notices.push(format!("searched only the best {OPENED} turns for the phrase"));
            break;
        }
        let at = &look.catalog.entries[entry];
        // A fork's title is its name if it has no other.
        if hit.turn == 0 && at.summary.title().is_some_and(is_of_a_fork) {
            continue;
        }
        opened += 1;
        let turns = at.summary.turns.max(1);
        let read = |hit: &Hit| {
            // Text from a seed is read in the source.
            let source = sessions.entry(hit.file).filter(|_| held.is_seeded);
            let at = source.map_or(at, |source| &look.catalog.entries[source]);
            // A fork shown in place of its source has the same turns, but another file.
            let offset = if at.file() == hit.file { hit.offset } else { NO_OFFSET };
            let (adapter, turns) = (ctx.adapter(at.summary.agent), at.summary.turns.max(1));
            if let Some((branch, turn)) = branch::split(hit.turn) {
                let branches = adapter.branches(&at.summary.path)?;
                let branch = branches.get(branch).ok_or(std::io::ErrorKind::NotFound)?;
                return snippet::find_snippet(
                    adapter,
                    (&branch.summary, Some(branch.tip)),
                    turn,
                    offset,
                    None,
                    &wanted,
                );
            }
            snippet::find_snippet(adapter, (&at.summary, None), hit.turn.min(turns), offset, hit.part, &wanted)
        };
        // A title shows that a session is about something, but not where: the result shows the best of its turns.
        let mut shown = Some(hit);
        if hit.turn == 0 {
            shown = queue.best_turn(hit.file, u32::MAX);
            let is_better = |turn: &Hit| shown.is_none_or(|own| own.score < turn.score);
            match queue.best_shared(look, sessions, hit.file).filter(is_better) {
                Some(turn) if sessions.shown_for(&turn).is_some_and(|held| held.entry == entry) => {
                    shown = Some(turn);
                }
                Some(turn) if turn.score <= hit.score => {
                    queue.put_behind(hit, &turn);
                    continue;
                }
                _ => {}
            }
        }
        let of_title = || snippet::snippet_of_title(at.summary.title().unwrap_or_default(), &wanted);
        let looked = match (shown, hit.turn) {
            (Some(turn), 1..) => read(&turn),
            (_, 0) if must_look && !of_title().holds => continue,
            (Some(turn), _) => match read(&turn) {
                Ok(looked) if !looked.holds => {
                    shown = None;
                    Ok(of_title())
                }
                looked => looked,
            },
            (None, _) => Ok(of_title()),
        };
        // Nothing follows the last turn.
        let turn_of = |hit: Hit| if held.is_seeded { held.turn } else { hit.turn };
        let on_branch = shown.and_then(|shown| branch::split(shown.turn));
        let turn = match on_branch {
            Some((_, turn)) => turn,
            None => shown.map_or(turns, |shown| turn_of(shown).min(turns)),
        };
        let (snippet, warning) = match looked {
            Ok(looked) if looked.holds => (looked.snippet, None),
            Ok(_) => continue,
            Err(error) => (Snippet::default(), Some(format!("the transcript cannot be read: {}", error.kind()))),
        };
        seen.insert(entry);
        let mut session = view(entry);
        if let Some((branch, _)) = on_branch {
            // It was just read along this branch.
            match branches::on_numbered_branch(ctx, session.clone(), branch) {
                Ok(found) => session = found,
                Err(_) => continue,
            }
        }
        let warning = warning.or_else(|| incomplete(at));
        let forks = sessions.forks_with(shown.as_ref().unwrap_or(&hit)).into_iter().map(|held| held.entry);
        let forks = forks.filter(|fork| *fork != entry).map(|fork| view(fork).view.label().to_owned()).collect();
        answer.results.push(Found { score: hit.score, session, turn, snippet, warning, forks, source: None });
    }
    let place = |entry: usize, answer: &Answer| {
        let path = &look.catalog.entries[entry].summary.path;
        answer.results.iter().position(|result| result.session.view.path == *path)
    };
    for (entry, score) in like {
        // A fork's name weighs less than its source's text.
        let source = sessions.source(look, entry).and_then(|source| place(source, answer));
        let score = source.map_or(score, |source| score.min(answer.results[source].score.next_down()));
        match place(entry, answer).map(|at| &mut answer.results[at]) {
            Some(result) => result.score = result.score.max(score),
            None => answer.results.push(named(entry, score)),
        }
    }
    answer.results.sort_by(|a, b| b.score.total_cmp(&a.score));
    answer.results.truncate(limit);
}

/// The warning for a session whose history starts in the file of another one.
fn incomplete(entry: &Entry) -> Option<String> {
    let missing = entry.summary.missing_base.as_deref()?;
    let gone = entry.summary.bases.iter().find(|base| !base.exists());
    let which = gone.map_or_else(|| missing.to_owned(), |base| base.display().to_string());
    Some(format!("part of its transcript is missing: {}", transcript::text::one_line(&which)))
}
