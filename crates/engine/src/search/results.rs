//! Turns hits into results: which session a hit belongs to, why it matched, and which sessions match by name.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use jiff::Timestamp;
use tantivy::DocAddress;
use transcript::{SessionName, Summary, secrets};

use super::branch;
use super::find::{Hit, Hits};
use super::index;
use super::query::{Limits, Query};
use super::queue::ReadingQueue;
use super::snippet::{self, Snippet};
use super::wanted::Wanted;
use super::words::Same;
use super::{Answer, Found, Look};
use crate::ctx::Ctx;
use crate::registry::Seeded;
use crate::sessions::branches;
use crate::sessions::catalog::Entry;
use crate::sessions::project::Project;
use crate::sessions::session::handles;

/// How many turns are read to verify a phrase.
const OPENED: usize = 300;
/// A score that would be shown as 0.00 is not a match.
const SHOWN: f32 = 0.005;
/// The score of a name that consists of the query's words.
const NAMED: f32 = 0.8;

/// Groups hits by session and reads what is shown for each.
pub(super) fn results(
    ctx: &Ctx,
    look: &Look,
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
            let offset = if at.file() == hit.file { hit.offset } else { index::NO_OFFSET };
            let (adapter, turns) = (ctx.adapter(at.summary.agent), at.summary.turns.max(1));
            if let Some((branch, turn)) = branch::split(hit.turn) {
                let branches = adapter.branches(&at.summary.path)?;
                let branch = branches.get(branch).ok_or(std::io::ErrorKind::NotFound)?;
                return snippet::look(adapter, (&branch.summary, Some(branch.tip)), turn, offset, None, &wanted);
            }
            snippet::look(adapter, (&at.summary, None), hit.turn.min(turns), offset, hit.part, &wanted)
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
        let of_title = || snippet::look_at_title(at.summary.title().unwrap_or_default(), &wanted);
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

/// The score of a name that contains all of these words. A fork's name shows only what it was forked from.
fn worth_of_name(name: &str, words: &HashSet<&str>) -> Option<f32> {
    let parts: Vec<&str> = name.split('-').collect();
    let has_all = words.iter().all(|word| parts.contains(word));
    (has_all && !is_of_a_fork(name)).then(|| NAMED * words.len() as f32 / parts.len() as f32)
}

/// Whether a name was generated for a fork from the name of its source.
fn is_of_a_fork(name: &str) -> bool {
    name.rsplit_once("-fork-")
        .is_some_and(|(source, number)| !source.contains(' ') && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a word may be an id prefix. A short one is a word first, and an id only if no transcript contains it.
fn is_beginning_of_id(word: &str, is_nowhere: bool) -> bool {
    let is_hexadecimal = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_short = || word.len() >= 4 && is_hexadecimal(word) && word.bytes().any(|byte| byte.is_ascii_digit());
    word.len() >= 8 || is_nowhere && is_short()
}

/// The warning for a session whose history starts in the file of another one.
fn incomplete(entry: &Entry) -> Option<String> {
    let missing = entry.summary.missing_base.as_deref()?;
    let gone = entry.summary.bases.iter().find(|base| !base.exists());
    let which = gone.map_or_else(|| missing.to_owned(), |base| base.display().to_string());
    Some(format!("part of its transcript is missing: {}", transcript::text::one_line(&which)))
}

/// The selected sessions, and which of them share turns.
pub(super) struct Sessions {
    by_file: HashMap<u64, usize, BuildHasherDefault<Same>>,
    /// By their positions in the catalog.
    asked: Vec<bool>,
    /// The forks of a session.
    forks: HashMap<u64, Vec<Fork>, BuildHasherDefault<Same>>,
    /// Sessions that started with the transcript of another one, by file: that session, and the last turn it handed
    /// over.
    seeds: HashMap<u64, (u64, u32)>,
    /// Whether only turns with a certain file or tool are selected.
    is_narrowed: bool,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// A session that contains turns of another one.
#[derive(Debug, Clone, Copy)]
struct Fork {
    entry: usize,
    file: u64,
    /// The last of these turns.
    turns: u32,
    /// Whether all of them are in its first turn, as a seed.
    is_seeded: bool,
}

/// Where a fork contains a turn that was found in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    entry: usize,
    /// The number of that turn in the fork.
    turn: u32,
    /// Whether it is in a seed: then the text is read in the source.
    is_seeded: bool,
}

/// Sessions that match by name.
#[derive(Default)]
struct Named {
    /// By an exact name,
    exact: Vec<usize>,
    /// by an id,
    is_id: bool,
    /// or by a name that contains these words, with its score.
    like: Vec<(usize, f32)>,
}

impl Sessions {
    pub(super) fn of(look: &Look, limits: &Limits, seeds: &[Seeded]) -> Sessions {
        let project = limits.directory.as_deref().map(Project::of);
        let count = look.catalog.entries.len();
        let mut sessions = Sessions {
            by_file: HashMap::with_capacity_and_hasher(count, BuildHasherDefault::default()),
            asked: vec![false; count],
            forks: HashMap::default(),
            seeds: HashMap::new(),
            is_narrowed: limits.narrow_turns(),
            since: limits.since,
            until: limits.until,
        };
        let rows = look.words.as_ref().map(|words| &words.table.rows);
        for (index, entry) in look.catalog.entries.iter().enumerate().filter(|(_, entry)| entry.is_shown()) {
            let file = entry.file();
            sessions.by_file.insert(file, index);
            let in_project = |project: &Project| entry.summary.cwd.as_deref().is_some_and(|cwd| project.contains(cwd));
            if limits.agent.is_none_or(|agent| agent == entry.agent())
                && project.as_ref().is_none_or(in_project)
                && limits.branch.as_ref().is_none_or(|branch| entry.summary.was_on(branch))
            {
                sessions.asked[index] = true;
            }
            if let Some(row) = rows.and_then(|rows| rows.get(&file)).filter(|row| row.shared > 0) {
                let fork = Fork { entry: index, file, turns: row.shared, is_seeded: false };
                sessions.forks.entry(row.owner).or_default().push(fork);
            }
        }
        let file_of = |agent, id| Some(look.catalog.with_id(agent, id).find(|entry| entry.is_shown())?.file());
        for seeded in seeds {
            let source =
                file_of(seeded.parent_agent, &seeded.parent).filter(|file| sessions.by_file.contains_key(file));
            let Some((file, source)) = file_of(seeded.agent, &seeded.id).zip(source) else { continue };
            let Some(entry) = sessions.entry(file) else { continue };
            sessions.seeds.insert(file, (source, seeded.turn));
            // A fork of a seeded session shares its first turn with that one and is listed with it.
            if rows.and_then(|rows| rows.get(&file)).is_none_or(|row| row.shared == 0) {
                let fork = Fork { entry, file, turns: seeded.turn, is_seeded: true };
                sessions.forks.entry(source).or_default().push(fork);
            }
        }
        sessions
    }

    /// The session that owns the first turns of this one, and the last shared turn. `until` is the last turn of this
    /// one that counts.
    pub(super) fn inherited(&self, look: &Look, file: u64, until: u32) -> Option<(u64, u32)> {
        let rows = look.words.as_ref().map(|words| &words.table.rows)?;
        match rows.get(&file).filter(|row| row.shared > 0) {
            Some(row) => Some((row.owner, until.min(row.shared))),
            None => self.seeds.get(&file).copied().filter(|_| until > 0),
        }
    }

    /// The position of a transcript in the catalog.
    pub(super) fn entry(&self, file: u64) -> Option<usize> {
        self.by_file.get(&file).copied()
    }

    /// The session in which the first turns of this one were written.
    fn source(&self, look: &Look, entry: usize) -> Option<usize> {
        let (owner, _) = self.inherited(look, look.catalog.entries[entry].file(), u32::MAX)?;
        self.entry(owner)
    }

    /// Whether a turn passes the filters.
    pub(super) fn is_asked(&self, file: u64, turn: u32) -> bool {
        self.shown_for(&Hit { score: 0.0, file, turn, offset: 0, at: 0, part: None, address: DocAddress::new(0, 0) })
            .is_some()
    }

    /// Whether anything in a session may be shown, for it or for a fork of it.
    pub(super) fn could_match(&self, file: u64, entry: &Entry) -> bool {
        let is_timed = self.since.is_some() || self.until.is_some();
        self.is_asked(file, 1) && (!is_timed || self.is_in_time(&entry.summary))
    }

    /// The session that a hit is shown for: the original, or a fork if only the fork is selected.
    fn shown_for(&self, hit: &Hit) -> Option<Held> {
        let own = self.by_file.get(&hit.file).copied()?;
        if self.asked[own] {
            return Some(Held { entry: own, turn: hit.turn, is_seeded: false });
        }
        self.forks_with(hit).into_iter().find(|held| self.asked[held.entry])
    }

    /// The forks that contain the turn of a hit, and their forks.
    fn forks_with(&self, hit: &Hit) -> Vec<Held> {
        let mut found: Vec<Held> = Vec::new();
        let mut files = vec![(hit.file, hit.turn, false)];
        while let Some((file, turn, is_seeded)) = files.pop() {
            for fork in self.forks.get(&file).into_iter().flatten() {
                if turn > 0 && turn <= fork.turns && !found.iter().any(|held| held.entry == fork.entry) {
                    let is_seeded = is_seeded || fork.is_seeded;
                    let turn = if fork.is_seeded { 1 } else { turn };
                    found.push(Held { entry: fork.entry, turn, is_seeded });
                    files.push((fork.file, turn, is_seeded));
                }
            }
        }
        found
    }

    /// Sessions that match by name or id.
    fn by_name(&self, look: &Look, query: &Query, found: &Hits) -> Named {
        let is_nowhere = !found.unknown.is_empty() || !found.corrections.is_empty();
        let asked = query.typed.trim();
        let is_plain = query.phrases.is_empty() && query.without.is_empty() && !query.words.is_empty();
        let mut named = Named::default();
        if !is_plain || self.is_narrowed {
            return named;
        }
        let is_timed = self.since.is_some() || self.until.is_some();
        let begins = |id: &str| id.get(..asked.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(asked));
        let is_beginning = is_beginning_of_id(asked, is_nowhere);
        let words: HashSet<&str> =
            query.words.iter().flat_map(|asked| asked.word.parts.iter().map(String::as_str)).collect();
        let is_named = look.knowledge.who_may_be_named();
        let typed = &asked.as_bytes()[..asked.len().min(8)];
        let may_begin = |entry: &Entry| entry.beginning().to_be_bytes()[..typed.len()].eq_ignore_ascii_case(typed);
        let may_be = |entry: &Entry| is_beginning && may_begin(entry) || is_named.contains(&entry.beginning());
        let entries = look.catalog.entries.iter().enumerate();
        for (index, entry) in entries.filter(|(index, entry)| self.asked[*index] && may_be(entry)) {
            let summary = &entry.summary;
            let id = summary.id.as_str();
            let name = look.knowledge.name(summary).map(SessionName::as_str);
            if is_beginning && begins(id) {
                if self.is_in_time(&entry.summary) {
                    named.exact.push(index);
                    named.is_id = true;
                }
            } else if is_timed {
                // A name's score does not depend on time.
            } else if name == Some(asked) {
                named.exact.push(index);
            } else if let Some(worth) = name.and_then(|name| worth_of_name(name, &words)) {
                named.like.push((index, worth));
            }
        }
        named.exact.sort_unstable();
        named.like.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        named
    }

    /// Whether a session was active in the requested period.
    fn is_in_time(&self, summary: &Summary) -> bool {
        let after = self.since.is_none_or(|since| summary.updated.is_none_or(|updated| updated >= since));
        after && self.until.is_none_or(|until| summary.created.is_none_or(|created| created < until))
    }
}
