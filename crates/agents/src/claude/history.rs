//! Which records of a transcript make up the history that a resumed session continues.
//!
//! Records form a tree by `parentUuid`; a rewind, a second process or a retry leaves side branches in the file. The
//! active history runs from the tip to the root:
//! - The tip is the last chain record in file order, which is always a leaf; but if the last `last-prompt` names a
//!   record that is in the file and is no ancestor of that tip, that record is the tip.
//! - A compaction boundary has no parent but a logical one; what lies before it stays part of the history that people
//!   see, so the walk goes on there.
//! - Calls that ran in parallel hang their results each below its own call, so only one of them lies on the way to the
//!   root. The client sends them all; so results of active calls, and further lines of an active message, are
//!   active as well.
//!
//! Nearly every record's parent is the record before it. Only the others are stored, so that the history of a
//! transcript of 10 GB takes a few bits per record.

use std::collections::{HashMap, HashSet};

use super::record::Record;

/// How far back a parent is looked for at once; one that lies further away costs a second pass over the file.
const WINDOW: usize = 4096;

/// The active records of a transcript, by their index among its chain records.
#[derive(Debug, Default)]
pub(super) struct History {
    active: Bits,
    /// Whether every chain record is active.
    linear: bool,
}

impl History {
    pub(super) fn is_active(&self, index: u32) -> bool {
        self.linear || self.active.get(index)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Root,
    At(u32),
    Far(u64),
}

/// Collects the chain records of one file, in file order.
#[derive(Debug, Default)]
pub(super) struct HistoryBuilder {
    count: u32,
    /// Id and message of the latest records, as a ring.
    recent: Vec<(u64, u64)>,
    /// Records whose parent is not the record before.
    jumps: Vec<(u32, Parent)>,
    results: Bits,
    /// Records of the same message as their parent.
    continued: Bits,
    leaf: Option<Leaf>,
}

#[derive(Debug, Clone, Copy)]
struct Leaf {
    key: u64,
    at: Option<u32>,
}

impl HistoryBuilder {
    /// Adds a chain record and returns its index.
    pub(super) fn push(&mut self, record: &Record<'_>, is_result: bool, message: u64) -> u32 {
        let index = self.count;
        self.count += 1;
        let key = record.uuid.unwrap_or_default();
        let parent_key = record.parent.or(record.logical_parent);
        let parent = match parent_key {
            None => Parent::Root,
            Some(key) => self.find(key, index).map_or(Parent::Far(key), Parent::At),
        };
        // The first record has nothing before it, whatever it names: a fork's parent may not have been copied.
        if index > 0 && parent != Parent::At(index - 1) {
            self.jumps.push((index, parent));
        }
        if let Parent::At(at) = parent
            && message != 0
            && self.recent[at as usize % WINDOW].1 == message
        {
            self.continued.set(index);
        }
        if is_result {
            self.results.set(index);
        }
        if let Some(leaf) = &mut self.leaf
            && leaf.at.is_none()
            && leaf.key == key
        {
            leaf.at = Some(index);
        }
        if self.recent.len() < WINDOW {
            self.recent.push((key, message));
        } else {
            self.recent[index as usize % WINDOW] = (key, message);
        }
        index
    }

    /// Whether no chain record was added.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes what a `last-prompt` record says; the last one counts.
    pub(super) fn last_prompt(&mut self, key: u64) {
        self.leaf = Some(Leaf { key, at: self.find(key, self.count) });
    }

    /// The index of a record among the latest.
    fn find(&self, key: u64, before: u32) -> Option<u32> {
        let from = before.saturating_sub(WINDOW as u32);
        (from..before).rev().find(|index| self.recent[*index as usize % WINDOW].0 == key)
    }

    /// Works out the active history. `locate` makes a second pass over the file for the given ids and is called only
    /// where it is needed. Returns the number of links whose target is nowhere in the file as well.
    pub(super) fn finish(mut self, locate: impl FnOnce(&HashSet<u64>) -> HashMap<u64, u32>) -> (History, u64) {
        let mut wanted: HashSet<u64> = HashSet::new();
        wanted.extend(self.jumps.iter().filter_map(|(_, parent)| match parent {
            Parent::Far(key) => Some(*key),
            _ => None,
        }));
        wanted.extend(self.leaf.filter(|leaf| leaf.at.is_none()).map(|leaf| leaf.key));
        let mut broken = 0;
        if !wanted.is_empty() {
            let found = locate(&wanted);
            for (child, parent) in &mut self.jumps {
                if let Parent::Far(key) = *parent {
                    *parent = match found.get(&key) {
                        Some(at) if *at < *child => Parent::At(*at),
                        // The client goes on with what stands before.
                        _ => {
                            broken += 1;
                            Parent::At(*child - 1)
                        }
                    };
                }
            }
            if let Some(leaf) = &mut self.leaf
                && leaf.at.is_none()
            {
                leaf.at = found.get(&leaf.key).copied();
            }
        }
        if self.jumps.is_empty() {
            return (History { active: Bits::default(), linear: true }, broken);
        }
        let mut active = self.walk(self.count - 1);
        if let Some(leaf) = self.leaf.and_then(|leaf| leaf.at)
            && !active.get(leaf)
        {
            active = self.walk(leaf);
        }
        self.rejoin(&mut active);
        (History { active, linear: false }, broken)
    }

    fn walk(&self, tip: u32) -> Bits {
        let mut active = Bits::default();
        let mut at = tip;
        while !active.get(at) {
            active.set(at);
            match self.parent_of(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        active
    }

    fn parent_of(&self, index: u32) -> Option<u32> {
        match self.jumps.binary_search_by_key(&index, |(child, _)| *child) {
            Ok(found) => match self.jumps[found].1 {
                Parent::At(at) => Some(at),
                Parent::Root | Parent::Far(_) => None,
            },
            Err(_) => index.checked_sub(1),
        }
    }

    /// Takes in results and lines of active messages that do not lie on the way to the root.
    fn rejoin(&self, active: &mut Bits) {
        for index in 0..self.count {
            let may_join = self.results.get(index) || self.continued.get(index);
            if may_join && !active.get(index) && self.parent_of(index).is_some_and(|parent| active.get(parent)) {
                active.set(index);
            }
        }
    }
}

/// A growing set of small numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, index: u32) {
        let word = index as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (index % 64);
    }

    fn get(&self, index: u32) -> bool {
        self.0.get(index as usize / 64).is_some_and(|word| word & 1 << (index % 64) != 0)
    }
}
