//! Who was forked from whom, as far as the agents' files tell.
//!
//! Where an agent recorded a pointer, it is taken. Where it did not, sessions that hold the same turns are related, and
//! the one whose file is older is the parent. A pointer can be out of date: Claude Code's `--fork-session` of a branch
//! keeps the branch's own pointer, so an older session that shares more turns than the pointer's target wins.

use std::collections::HashMap;

use agents::Notes;
use transcript::{Agent, ParentPointer, ParentSource, SessionId};

use crate::catalog::Entry;
use crate::registry::Lineage;

/// Works out the parents of the sessions for which `asked` is true.
pub(crate) fn infer(
    entries: &[Entry],
    notes: &HashMap<Agent, Notes>,
    asked: impl Fn(&Entry) -> bool,
) -> Vec<((Agent, SessionId), Lineage)> {
    let family = Family::of(entries);
    entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| asked(entry) && !entry.summary.is_subagent)
        .filter_map(|(child, entry)| {
            let summary = &entry.summary;
            let noted = notes.get(&summary.agent).and_then(|notes| notes.parents.get(&summary.id));
            let pointer = noted.or(summary.parent.as_ref()).filter(|pointer| pointer.id != summary.id);
            let lineage = family.parent_of(child, pointer, noted.is_some())?;
            Some(((summary.agent, summary.id.clone()), lineage))
        })
        .collect()
}

/// After which of their parents' turns forks were made whose parents were told without that.
pub(crate) fn turns(
    entries: &[Entry],
    known: &HashMap<(Agent, SessionId), Lineage>,
) -> Vec<((Agent, SessionId), Lineage)> {
    let without = |entry: &Entry| {
        let lineage = known.get(&(entry.summary.agent, entry.summary.id.clone()))?;
        (lineage.turn.is_none() && lineage.agent == entry.summary.agent).then_some(lineage)
    };
    let asked: Vec<(usize, &Lineage)> =
        entries.iter().enumerate().filter_map(|(index, entry)| Some((index, without(entry)?))).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let family = Family::of(entries);
    let turn = |(child, lineage): (usize, &Lineage)| {
        let parent = *family.by_id.get(&(lineage.agent, &lineage.id))?;
        let turn = Some(family.shared(child, parent)?.last);
        let summary = &entries[child].summary;
        Some(((summary.agent, summary.id.clone()), Lineage { turn, ..lineage.clone() }))
    };
    asked.into_iter().filter_map(turn).collect()
}

/// Sessions by the turns that they hold.
struct Family<'a> {
    entries: &'a [Entry],
    by_turn: HashMap<(Agent, u64), Vec<usize>>,
    by_id: HashMap<(Agent, &'a SessionId), usize>,
}

/// How much of a child's beginning a candidate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shared {
    turns: u32,
    /// The last shared turn, as the candidate counts it.
    last: u32,
}

impl<'a> Family<'a> {
    fn of(entries: &'a [Entry]) -> Self {
        let mut by_turn: HashMap<(Agent, u64), Vec<usize>> = HashMap::new();
        let mut by_id = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            by_id.insert((entry.summary.agent, &entry.summary.id), index);
            if entry.summary.is_subagent {
                continue;
            }
            for key in &entry.summary.turn_keys {
                by_turn.entry((entry.summary.agent, *key)).or_default().push(index);
            }
        }
        Family { entries, by_turn, by_id }
    }

    fn parent_of(&self, child: usize, pointer: Option<&ParentPointer>, certain: bool) -> Option<Lineage> {
        let summary = &self.entries[child].summary;
        let named = pointer.map(|pointer| (pointer, self.by_id.get(&(summary.agent, &pointer.id)).copied()));
        let named_shared = named.as_ref().and_then(|(_, index)| *index).and_then(|index| self.shared(child, index));
        // Codex always names the direct parent; only Claude Code's pointers can be inherited from an ancestor.
        let may_differ = !certain && (named.is_none() || summary.agent == Agent::Claude);
        let better = may_differ.then(|| self.oldest_with_most(child)).flatten().filter(|(_, shared)| {
            named.is_none() || shared.turns > named_shared.map_or(u32::MAX, |shared| shared.turns)
        });
        if let Some((index, shared)) = better {
            let parent = &self.entries[index].summary;
            return Some(Lineage {
                agent: parent.agent,
                id: parent.id.clone(),
                turn: Some(shared.last),
                source: ParentSource::Inferred,
            });
        }
        let (pointer, _) = named?;
        Some(Lineage {
            agent: summary.agent,
            id: pointer.id.clone(),
            turn: named_shared.map(|shared| shared.last),
            source: pointer.source,
        })
    }

    /// Of the older sessions that hold the child's first turn, the one that shares most; of several, the oldest.
    fn oldest_with_most(&self, child: usize) -> Option<(usize, Shared)> {
        let summary = &self.entries[child].summary;
        let first = *summary.turn_keys.first()?;
        let candidates = self.by_turn.get(&(summary.agent, first))?;
        candidates
            .iter()
            .copied()
            .filter(|index| *index != child && self.entries[*index].summary.id != summary.id)
            .filter(|index| self.age(*index) < self.age(child) && !self.descends_from(*index, child))
            .filter_map(|index| Some((index, self.shared(child, index)?)))
            .min_by_key(|(index, shared)| (std::cmp::Reverse(shared.turns), self.age(*index)))
    }

    /// Whether the agents' own pointers lead from `index` up to `ancestor`. A file's age is a hint, a pointer is a word:
    /// after a restore, a fork's file may be older than its parent's.
    fn descends_from(&self, index: usize, ancestor: usize) -> bool {
        let mut at = index;
        for _ in 0..64 {
            let summary = &self.entries[at].summary;
            let parent = summary.parent.as_ref().and_then(|parent| self.by_id.get(&(summary.agent, &parent.id)));
            match parent {
                Some(parent) if *parent == ancestor => return true,
                Some(parent) if *parent != at => at = *parent,
                _ => return false,
            }
        }
        false
    }

    fn shared(&self, child: usize, candidate: usize) -> Option<Shared> {
        let (child, candidate) = (&self.entries[child].summary, &self.entries[candidate].summary);
        let first = child.turn_keys.first()?;
        let start = candidate.turn_keys.iter().position(|key| key == first)?;
        let common = child.turn_keys.iter().zip(&candidate.turn_keys[start..]).take_while(|(a, b)| a == b).count();
        let turns = u32::try_from(common).ok()?;
        Some(Shared { turns, last: u32::try_from(start).ok()? + turns })
    }

    fn age(&self, index: usize) -> (i64, &str) {
        age(&self.entries[index])
    }
}

/// The order in which sessions came to be. Ids of Codex carry their time; elsewhere the file system tells.
pub(crate) fn age(entry: &Entry) -> (i64, &str) {
    let born = match entry.summary.agent {
        Agent::Codex => uuid_time(&entry.summary.id),
        Agent::Claude => None,
    };
    let born = born.or(entry.stamp.born).unwrap_or(entry.stamp.modified);
    (born, entry.summary.id.as_str())
}

/// The time in a version 7 UUID, in nanoseconds since 1970.
pub(crate) fn uuid_time(id: &SessionId) -> Option<i64> {
    let digits: String = id.as_str().chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || digits.as_bytes()[12] != b'7' {
        return None;
    }
    i64::from_str_radix(&digits[..12], 16).ok()?.checked_mul(1_000_000)
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;
