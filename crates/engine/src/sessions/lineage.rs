//! Finds out which session was forked from which, from the agents' files.
//!
//! Where an agent recorded a pointer, it is taken. Where it did not, sessions that hold the same turns are related, and
//! the one whose file is older is the parent. A pointer can be out of date: Claude Code's `--fork-session` of a branch
//! keeps the branch's own pointer, so an older session that shares more turns than the pointer's target wins.

use std::collections::HashMap;

use agents::Notes;
use transcript::{Agent, ParentPointer, ParentSource, SessionId};

use crate::registry::Lineage;
use crate::sessions::catalog::Entry;

/// Works out the parents of the sessions for which `asked` is true.
pub(crate) fn infer(
    entries: &[Entry],
    notes: &HashMap<Agent, Notes>,
    asked: impl Fn(&Entry) -> bool,
) -> Vec<((Agent, SessionId), Lineage)> {
    let children: Vec<usize> =
        (0..entries.len()).filter(|child| asked(&entries[*child]) && !entries[*child].summary.is_subagent).collect();
    let family = Family::of(entries, &children);
    let parent_of = |child: usize| {
        let summary = &entries[child].summary;
        let noted = notes.get(&summary.agent).and_then(|notes| notes.parents.get(&summary.id));
        let pointer = noted.or(summary.parent.as_ref()).filter(|pointer| pointer.id != summary.id);
        let lineage = family.parent_of(child, pointer, noted.is_some())?;
        Some(((summary.agent, summary.id.clone()), lineage))
    };
    children.iter().copied().filter_map(parent_of).collect()
}

/// Finds the turn at which forks were made whose parents were recorded without one.
pub(crate) fn turns(
    entries: &[Entry],
    known: &HashMap<(Agent, SessionId), Lineage>,
) -> Vec<((Agent, SessionId), Lineage)> {
    let is_without =
        |((agent, _), lineage): &(&(Agent, SessionId), &Lineage)| lineage.turn.is_none() && lineage.agent == *agent;
    let mut asked = known.iter().filter(is_without).peekable();
    if asked.peek().is_none() {
        return Vec::new();
    }
    let family = Family::of(entries, &[]);
    let turn = |((agent, id), lineage): (&(Agent, SessionId), &Lineage)| {
        let (child, parent) = (family.with_id(*agent, id)?, family.with_id(lineage.agent, &lineage.id)?);
        let turn = Some(family.shared(child, parent)?.last);
        Some(((*agent, id.clone()), Lineage { turn, ..lineage.clone() }))
    };
    asked.filter_map(turn).collect()
}

/// Sessions by the turns that they contain. Only the required facts are decoded.
struct Family<'a> {
    entries: &'a [Entry],
    /// Those that hold a turn which one of the children begins with.
    by_turn: HashMap<(Agent, u64), Vec<usize>>,
    /// By the beginning of their ids.
    by_beginning: HashMap<(Agent, u64), Vec<usize>>,
}

/// How much of a child's beginning a candidate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shared {
    turns: u32,
    /// The last shared turn, as the candidate counts it.
    last: u32,
}

impl<'a> Family<'a> {
    fn of(entries: &'a [Entry], children: &[usize]) -> Self {
        let first = |child: &usize| Some((entries[*child].agent(), *entries[*child].turn_keys().first()?));
        let mut by_turn: HashMap<(Agent, u64), Vec<usize>> =
            children.iter().filter_map(first).map(|key| (key, Vec::new())).collect();
        let mut by_beginning: HashMap<(Agent, u64), Vec<usize>> = HashMap::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            by_beginning.entry((entry.agent(), entry.beginning())).or_default().push(index);
            // The threads of subagents are nobody's parents.
            for key in entry.turn_keys().iter().filter(|_| entry.is_shown()) {
                if let Some(holders) = by_turn.get_mut(&(entry.agent(), *key)) {
                    holders.push(index);
                }
            }
        }
        Family { entries, by_turn, by_beginning }
    }

    /// The session with this id; of several, the one that was found last.
    fn with_id(&self, agent: Agent, id: &SessionId) -> Option<usize> {
        let alike = self.by_beginning.get(&(agent, crate::sessions::session::beginning(id.as_str())))?;
        alike.iter().rev().copied().find(|index| self.entries[*index].summary.id == *id)
    }

    fn parent_of(&self, child: usize, pointer: Option<&ParentPointer>, certain: bool) -> Option<Lineage> {
        let summary = &self.entries[child].summary;
        let named = pointer.map(|pointer| (pointer, self.with_id(summary.agent, &pointer.id)));
        let named_shared = named.as_ref().and_then(|(_, index)| *index).and_then(|index| self.shared(child, index));
        let is_direct = agents::about(summary.agent).names_direct_parent;
        let may_differ = !certain && (named.is_none() || !is_direct);
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

    /// Of the older sessions that contain the child's first turn, the one that shares most; of several, the oldest.
    fn oldest_with_most(&self, child: usize) -> Option<(usize, Shared)> {
        let (summary, first) = (&self.entries[child].summary, *self.entries[child].turn_keys().first()?);
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
            let parent = summary.parent.as_ref().and_then(|parent| self.with_id(summary.agent, &parent.id));
            match parent {
                Some(parent) if parent == ancestor => return true,
                Some(parent) if parent != at => at = parent,
                _ => return false,
            }
        }
        false
    }

    fn shared(&self, child: usize, candidate: usize) -> Option<Shared> {
        let (child, candidate) = (self.entries[child].turn_keys(), self.entries[candidate].turn_keys());
        let first = child.first()?;
        let start = candidate.iter().position(|key| key == first)?;
        let common = child.iter().zip(&candidate[start..]).take_while(|(a, b)| a == b).count();
        let turns = u32::try_from(common).ok()?;
        Some(Shared { turns, last: u32::try_from(start).ok()? + turns })
    }

    fn age(&self, index: usize) -> (i64, &str) {
        age(&self.entries[index])
    }
}

/// Sorts sessions by creation. If the id doesn't contain the time, the file system's is used.
pub(crate) fn age(entry: &Entry) -> (i64, &str) {
    let born = agents::time_in_id(&entry.summary.id).or(entry.stamp.born).unwrap_or(entry.stamp.modified);
    (born, entry.summary.id.as_str())
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;
