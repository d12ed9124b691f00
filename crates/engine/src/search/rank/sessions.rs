//! The sessions that a search may show: which are selected, which of them share turns, and which match by name.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use jiff::Timestamp;
use tantivy::DocAddress;
use transcript::{SessionName, Summary};

use super::find::{Hit, Hits};
use crate::registry::Seeded;
use crate::search::index::upkeep::OpenIndex;
use crate::search::query::words::IdentityHasher;
use crate::search::query::{Limits, Query};
use crate::sessions::catalog::Entry;
use crate::sessions::project::Project;

/// The score of a name that consists of the query's words.
const NAMED: f32 = 0.8;

/// The selected sessions, and which of them share turns.
pub(crate) struct Sessions {
    by_file: HashMap<u64, usize, BuildHasherDefault<IdentityHasher>>,
    /// By their positions in the catalog.
    asked: Vec<bool>,
    /// The forks of a session.
    forks: HashMap<u64, Vec<Fork>, BuildHasherDefault<IdentityHasher>>,
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
pub(crate) struct InheritedTurn {
    pub entry: usize,
    /// The number of that turn in the fork.
    pub turn: u32,
    /// Whether it is in a seed: then the text is read in the source.
    pub is_seeded: bool,
}

/// Sessions that match by name.
#[derive(Default)]
pub(crate) struct Named {
    /// By an exact name,
    pub exact: Vec<usize>,
    /// by an id,
    pub is_id: bool,
    /// or by a name that contains these words, with its score.
    pub like: Vec<(usize, f32)>,
}

impl Sessions {
    pub(crate) fn of(look: &OpenIndex, limits: &Limits, seeds: &[Seeded]) -> Sessions {
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
    pub(crate) fn inherited(&self, look: &OpenIndex, file: u64, until: u32) -> Option<(u64, u32)> {
        let rows = look.words.as_ref().map(|words| &words.table.rows)?;
        match rows.get(&file).filter(|row| row.shared > 0) {
            Some(row) => Some((row.owner, until.min(row.shared))),
            None => self.seeds.get(&file).copied().filter(|_| until > 0),
        }
    }

    /// The position of a transcript in the catalog.
    pub(crate) fn entry(&self, file: u64) -> Option<usize> {
        self.by_file.get(&file).copied()
    }

    /// The session in which the first turns of this one were written.
    pub(crate) fn source(&self, look: &OpenIndex, entry: usize) -> Option<usize> {
        let (owner, _) = self.inherited(look, look.catalog.entries[entry].file(), u32::MAX)?;
        self.entry(owner)
    }

    /// Whether a turn passes the filters.
    pub(crate) fn is_asked(&self, file: u64, turn: u32) -> bool {
        self.shown_for(&Hit { score: 0.0, file, turn, offset: 0, at: 0, part: None, address: DocAddress::new(0, 0) })
            .is_some()
    }

    /// Whether anything in a session may be shown, for it or for a fork of it.
    pub(crate) fn could_match(&self, file: u64, entry: &Entry) -> bool {
        let is_timed = self.since.is_some() || self.until.is_some();
        self.is_asked(file, 1) && (!is_timed || self.is_in_time(&entry.summary))
    }

    /// The session that a hit is shown for: the original, or a fork if only the fork is selected.
    pub(crate) fn shown_for(&self, hit: &Hit) -> Option<InheritedTurn> {
        let own = self.by_file.get(&hit.file).copied()?;
        if self.asked[own] {
            return Some(InheritedTurn { entry: own, turn: hit.turn, is_seeded: false });
        }
        self.forks_with(hit).into_iter().find(|held| self.asked[held.entry])
    }

    /// The forks that contain the turn of a hit, and their forks.
    pub(crate) fn forks_with(&self, hit: &Hit) -> Vec<InheritedTurn> {
        let mut found: Vec<InheritedTurn> = Vec::new();
        let mut files = vec![(hit.file, hit.turn, false)];
        while let Some((file, turn, is_seeded)) = files.pop() {
            for fork in self.forks.get(&file).into_iter().flatten() {
                if turn > 0 && turn <= fork.turns && !found.iter().any(|held| held.entry == fork.entry) {
                    let is_seeded = is_seeded || fork.is_seeded;
                    let turn = if fork.is_seeded { 1 } else { turn };
                    found.push(InheritedTurn { entry: fork.entry, turn, is_seeded });
                    files.push((fork.file, turn, is_seeded));
                }
            }
        }
        found
    }

    /// Sessions that match by name or id.
    pub(crate) fn by_name(&self, look: &OpenIndex, query: &Query, found: &Hits) -> Named {
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

/// The score of a name that contains all of these words. A fork's name shows only what it was forked from.
fn worth_of_name(name: &str, words: &HashSet<&str>) -> Option<f32> {
    let parts: Vec<&str> = name.split('-').collect();
    let has_all = words.iter().all(|word| parts.contains(word));
    (has_all && !is_of_a_fork(name)).then(|| NAMED * words.len() as f32 / parts.len() as f32)
}

/// Whether a name was generated for a fork from the name of its source.
pub(crate) fn is_of_a_fork(name: &str) -> bool {
    name.rsplit_once("-fork-")
        .is_some_and(|(source, number)| !source.contains(' ') && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a word may be an id prefix. A short one is a word first, and an id only if no transcript contains it.
fn is_beginning_of_id(word: &str, is_nowhere: bool) -> bool {
    let is_hexadecimal = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_short = || word.len() >= 4 && is_hexadecimal(word) && word.bytes().any(|byte| byte.is_ascii_digit());
    word.len() >= 8 || is_nowhere && is_short()
}
