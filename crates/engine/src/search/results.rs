//! What is shown of a search: which session a hit belongs to, why it was found, and who is called what was asked for.

use std::collections::{HashMap, HashSet};

use transcript::{SessionName, secrets};

use super::find::{Hit, Hits};
use super::index::{self, file_key};
use super::query::{Limits, Query};
use super::snippet::{self, Snippet, Wanted};
use super::{Answer, Found, Look, is_shown};
use crate::Tine;
use crate::catalog::Entry;
use crate::project::Project;
use crate::session::handles;

/// How many turns are opened to look for a phrase.
const OPENED: usize = 300;
/// What is shown as 0.00 fits in nothing.
const SHOWN: f32 = 0.005;
/// What a name is worth that has nothing but the words that were asked for.
const NAMED: f32 = 0.8;

impl Tine {
    /// Groups hits by session and reads what is shown of each.
    pub(super) fn results(
        &self,
        look: &Look,
        query: &Query,
        sessions: &Sessions,
        found: &mut Hits,
        limit: usize,
        answer: &mut Answer,
    ) {
        let terms = std::mem::take(&mut found.terms);
        let wanted = Wanted { terms: &terms, phrases: &query.phrases, without: &query.without_phrases };
        let must_look = !query.phrases.is_empty() || !query.without_phrases.is_empty();
        let mut seen: HashSet<usize> = HashSet::new();
        let handles =
            handles(look.catalog.entries.iter().filter(|entry| is_shown(entry)).map(|entry| &entry.summary.id));
        let view = |entry: usize| {
            let mut session = look.knowledge.session(look.catalog.entries[entry].clone());
            if let Some(handle) = handles.get(&session.view.id) {
                session.view.handle.clone_from(handle);
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
            let can_fork = warning.is_none() && turn > 0;
            Found { score, session, turn, snippet, can_fork, warning, forks: Vec::new(), source: None }
        };
        let Named { exact, is_id, like } = sessions.by_name(look, query);
        for entry in exact {
            if answer.results.len() < limit && seen.insert(entry) {
                answer.results.push(named(entry, 1.0));
            }
        }
        if is_id {
            // Who asks for an id asks for nothing else.
            (found.corrections, found.unknown) = (Vec::new(), Vec::new());
            return;
        }
        let mut opened = 0;
        for position in 0..found.hits.len() {
            if answer.results.len() >= limit {
                break;
            }
            let hit = &found.best_first(position);
            if hit.score < SHOWN {
                break;
            }
            let Some(entry) = sessions.shown_for(hit).filter(|entry| !seen.contains(entry)) else { continue };
            if must_look && opened >= OPENED {
                answer.notices.push(format!("only the best {OPENED} turns were looked through for the phrase"));
                break;
            }
            opened += 1;
            let at = &look.catalog.entries[entry];
            let turn = hit.turn.max(1).min(at.summary.turns.max(1));
            // A fork that stands for its source counts the shared turns alike, but its file is another.
            let offset = if file_key(&at.summary.path) == hit.file { hit.offset } else { index::NO_OFFSET };
            let store = self.store(at.summary.agent);
            let looked = match hit.turn {
                0 => Ok(snippet::look_at_title(at.summary.title().unwrap_or_default(), &wanted)),
                _ => snippet::look(store, &at.summary, turn, offset, &wanted),
            };
            let (snippet, warning) = match looked {
                Ok(looked) if looked.holds => (looked.snippet, None),
                Ok(_) => continue,
                Err(error) => (Snippet::default(), Some(format!("the transcript cannot be read: {}", error.kind()))),
            };
            seen.insert(entry);
            let session = view(entry);
            let warning = warning.or_else(|| incomplete(at));
            let can_fork = warning.is_none() && session.view.turns > 0;
            let forks = sessions.forks_with(hit).into_iter().filter(|fork| *fork != entry);
            let forks = forks.map(|fork| view(fork).view.label().to_owned()).collect();
            answer.results.push(Found {
                score: hit.score,
                session,
                turn,
                snippet,
                can_fork,
                warning,
                forks,
                source: None,
            });
        }
        for (entry, score) in like {
            match answer
                .results
                .iter_mut()
                .find(|result| result.session.view.path == look.catalog.entries[entry].summary.path)
            {
                Some(result) => result.score = result.score.max(score),
                None => answer.results.push(named(entry, score)),
            }
        }
        answer.results.sort_by(|a, b| b.score.total_cmp(&a.score));
        answer.results.truncate(limit);
    }
}

/// What it is worth that all of these words are in a name. That of a fork says only whose fork it is.
fn worth_of_name(name: &str, words: &HashSet<&str>) -> Option<f32> {
    let parts: Vec<&str> = name.split('-').collect();
    let is_fork =
        name.rsplit_once("-fork-").is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
    let has_all = words.iter().all(|word| parts.contains(word));
    (has_all && !is_fork).then(|| NAMED * words.len() as f32 / parts.len() as f32)
}

/// What is wrong with a session whose beginning stands in the file of another one.
fn incomplete(entry: &Entry) -> Option<String> {
    let missing = entry.summary.missing_base.as_deref()?;
    let gone = entry.summary.bases.iter().find(|base| !base.exists());
    let which = gone.map_or_else(|| missing.to_owned(), |base| base.display().to_string());
    Some(format!("a part of its transcript is gone: {}", transcript::text::one_line(&which)))
}

/// The sessions that are asked for, and which of them holds whose turns.
pub(super) struct Sessions {
    by_file: HashMap<u64, usize>,
    asked: HashSet<usize>,
    /// The forks of a session, with their files and the number of turns that each shares with it.
    forks: HashMap<u64, Vec<(usize, u64, u32)>>,
    /// Whether anything narrows them.
    is_narrowed: bool,
}

/// Sessions that are called what was asked for.
#[derive(Default)]
struct Named {
    /// Exactly that,
    exact: Vec<usize>,
    /// by an id,
    is_id: bool,
    /// or by a name that has these words in it, with what that is worth.
    like: Vec<(usize, f32)>,
}

impl Sessions {
    pub(super) fn of(look: &Look, limits: &Limits) -> Sessions {
        let project = limits.directory.as_deref().map(Project::of);
        let is_narrowed = limits.narrow_turns() || limits.since.is_some() || limits.until.is_some();
        let mut sessions =
            Sessions { by_file: HashMap::new(), asked: HashSet::new(), forks: HashMap::new(), is_narrowed };
        let rows = look.words.as_ref().map(|words| &words.table.rows);
        for (index, entry) in look.catalog.entries.iter().enumerate().filter(|(_, entry)| is_shown(entry)) {
            let summary = &entry.summary;
            let file = file_key(&summary.path);
            sessions.by_file.insert(file, index);
            let in_project = |project: &Project| summary.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
            if limits.agent.is_none_or(|agent| agent == summary.agent)
                && project.as_ref().is_none_or(in_project)
                && limits.branch.is_none() | (limits.branch == summary.branch)
            {
                sessions.asked.insert(index);
            }
            if let Some(row) = rows.and_then(|rows| rows.get(&file)).filter(|row| row.shared > 0) {
                sessions.forks.entry(row.owner).or_default().push((index, file, row.shared));
            }
        }
        sessions
    }

    /// The place of a transcript in the catalog.
    pub(super) fn entry(&self, file: u64) -> Option<usize> {
        self.by_file.get(&file).copied()
    }

    /// Whether a turn is shown at all.
    pub(super) fn is_asked(&self, file: u64, turn: u32) -> bool {
        self.shown_for(&Hit { score: 0.0, file, turn, offset: 0, at: 0, part: None }).is_some()
    }

    /// The session that a hit is shown for: the one in which it was said first, or a fork where only that is asked for.
    fn shown_for(&self, hit: &Hit) -> Option<usize> {
        let own = self.by_file.get(&hit.file).copied()?;
        if self.asked.contains(&own) {
            return Some(own);
        }
        self.forks_with(hit).into_iter().find(|fork| self.asked.contains(fork))
    }

    /// The forks that hold the turn of a hit, and their forks.
    fn forks_with(&self, hit: &Hit) -> Vec<usize> {
        let mut found = Vec::new();
        let mut files = vec![hit.file];
        while let Some(file) = files.pop() {
            for (fork, own, shared) in self.forks.get(&file).into_iter().flatten() {
                if hit.turn > 0 && hit.turn <= *shared && !found.contains(fork) {
                    found.push(*fork);
                    files.push(*own);
                }
            }
        }
        found
    }

    /// Sessions whose name or id was asked for.
    fn by_name(&self, look: &Look, query: &Query) -> Named {
        let asked = query.typed.trim();
        let is_plain = query.phrases.is_empty() && query.without.is_empty() && !query.words.is_empty();
        let mut found = Named::default();
        if !is_plain || self.is_narrowed {
            return found;
        }
        let words: HashSet<&str> =
            query.words.iter().flat_map(|asked| asked.word.parts.iter().map(String::as_str)).collect();
        for index in &self.asked {
            let summary = &look.catalog.entries[*index].summary;
            let id = summary.id.as_str();
            let name = look.knowledge.name(summary).map(SessionName::as_str);
            if id == asked || asked.len() >= 8 && id.starts_with(asked) {
                found.exact.push(*index);
                found.is_id = true;
            } else if name == Some(asked) {
                found.exact.push(*index);
            } else if let Some(worth) = name.and_then(|name| worth_of_name(name, &words)) {
                found.like.push((*index, worth));
            }
        }
        found.exact.sort_unstable();
        found.like.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }
}
