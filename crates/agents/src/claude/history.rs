//! Which records of a transcript make up the history that a resumed session continues, and in which order.
//!
//! Records form a tree by `parentUuid`; a rewind, a second process or a retry leaves side branches in the file. The
//! active history runs from the tip to the root:
//! - The tip is the last leaf in file order whose branch has text; but if the last `last-prompt` names a record that is
//!   in the file and is not an ancestor of that tip, that record is the tip. A branch without a prompt, an answer or a
//!   result is not a conversation: 1.0.5x appended the records of `/export`, `#memory` and `!command` to the first
//!   caveat, at the end of the file. The clients (2.1.325, 2.1.197) still take the last leaf and send only what is
//!   there, so it is noted where their tip is another one.
//! - A compaction boundary has no parent but a logical one; earlier records stay part of the visible history, so the
//!   walk continues there. 1.0.x wrote no boundary, only a summary without a parent: it follows the tip of the
//!   preceding records.
//! - A dangling link is joined to the tip of the preceding records.
//! - Each result of parallel calls is linked to its own call, so only one of them is on the path to the root. The
//!   client sends them all; so results of active calls, and further lines of an active message, are active as well.
//! - Lines are buffered, so a record can precede its parent (seen with 2.1.197: the first answer before the first
//!   prompt). Links define the order of the history, not the order in the file.
//!
//! Nearly every record's parent is the record before it. Only the others are stored, so that the history of a
//! transcript of 10 GB takes a few bits per record.

use std::collections::{HashMap, HashSet};

/// How far back a parent is searched in the first pass; a more distant one needs a second pass over the file.
const WINDOW: usize = 4096;

/// The active records of a transcript, by their index among its chain records.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    active: Bits,
    /// Whether every chain record is active, in file order.
    whole: bool,
    /// Ranges of indices in history order; empty if that is the order of the file.
    spans: Vec<Span>,
}

/// The result of following the links of a file.
#[derive(Debug, Default)]
pub(super) struct ResolvedHistory {
    pub history: History,
    /// Records whose parent is not in the file, in file order.
    pub broken: Vec<Broken>,
    /// The last records of other branches that say something, the latest first.
    pub branches: Vec<u32>,
    /// How many roots of other conversations with text are not part of the history.
    pub lost_roots: u64,
    /// Whether the client would continue from another record, that no message follows.
    pub tip_differs: bool,
}

/// A record whose parent is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken {
    pub child: u32,
    /// The record that takes the parent's place.
    pub parent: Option<u32>,
    /// Whether the missing one is what a compaction boundary goes back to, which clients do not follow.
    pub is_boundary: bool,
}

/// Consecutive records, first and last.
type Span = (u32, u32);

impl History {
    pub(super) fn is_active(&self, index: u32) -> bool {
        self.whole || self.active.get(index)
    }

    /// Whether the history is every chain record, in file order.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// The ranges of indices in history order, if that differs from the order of the file.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The position of an active record in the history; larger is later.
    pub(super) fn rank(&self, index: u32) -> u64 {
        let mut before = 0;
        for (first, last) in &self.spans {
            if (*first..=*last).contains(&index) {
                return before + u64::from(index - first);
            }
            before += u64::from(last - first) + 1;
        }
        u64::from(index)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Root,
    At(u32),
    /// The id, and the tip of the preceding records, which replaces it if the record does not exist.
    Unknown(u64, Option<u32>),
}

/// What the history needs to know of a chain record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub key: u64,
    /// The parent, or what takes its place on a compaction boundary.
    pub parent: Option<u64>,
    /// Whether the parent is that of a compaction boundary, which a native fork drops.
    pub is_boundary: bool,
    /// Whether it is the summary of a compaction that names no parent (1.0.x).
    pub is_summary: bool,
    /// Whether it is a part of the conversation: a prompt, an answer or a result.
    pub talks: bool,
    /// Whether it is what a tool gave back.
    pub is_result: bool,
    /// The message that it is a line of, or 0.
    pub message: u64,
}

/// Collects the chain records of one file, in file order.
#[derive(Debug, Default)]
pub(super) struct HistoryBuilder {
    count: u32,
    /// Id and message of the latest records, as a ring.
    recent: Vec<(u64, u64)>,
    /// Records whose parent is not the record before, with their parents.
    jumps: Vec<(u32, Parent)>,
    /// Positions in `jumps` that wait for a parent which was not seen yet.
    waiting: HashMap<u64, Vec<usize>>,
    results: Bits,
    /// Records of the same message as their parent.
    continued: Bits,
    parents: Bits,
    talks: Bits,
    boundaries: Bits,
    /// The tip of the records so far, if they are in order.
    tip: Option<u32>,
    leaf: Option<Leaf>,
    /// Whether the history ends with that record, whatever else there is.
    is_chosen: bool,
}

#[derive(Debug, Clone, Copy)]
struct Leaf {
    key: u64,
    at: Option<u32>,
}

impl HistoryBuilder {
    /// Whether no chain record was added.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a chain record and returns its index.
    pub(super) fn push(&mut self, link: Link) -> u32 {
        let Link { key, parent, is_result, mut message, .. } = link;
        let index = self.count;
        self.count += 1;
        let parent = match (parent, self.tip) {
            (None, Some(tip)) if link.is_summary => Parent::At(tip),
            (None, _) => Parent::Root,
            (Some(parent), tip) => self.find(parent, index).map_or(Parent::Unknown(parent, tip), Parent::At),
        };
        match parent {
            Parent::At(at) => {
                self.parents.set(at);
                // The tip before a summary may be further away than the window reaches; it is of another message then.
                let above = if index - at <= WINDOW as u32 { self.recent[at as usize % WINDOW].1 } else { 0 };
                if message != 0 && above == message {
                    self.continued.set(index);
                } else if is_result {
                    // A call that is streamed after the result of an earlier one hangs below that result.
                    message = above;
                }
            }
            Parent::Unknown(parent, _) => self.waiting.entry(parent).or_default().push(self.jumps.len()),
            Parent::Root => {}
        }
        if link.talks {
            self.talks.set(index);
        }
        if link.is_boundary {
            self.boundaries.set(index);
        }
        let follows = match parent {
            Parent::At(at) => self.tip == Some(at),
            Parent::Unknown(..) => true,
            Parent::Root => self.tip.is_none(),
        };
        if link.talks || follows {
            self.tip = Some(index);
        }
        if index == 0 || parent != Parent::At(index - 1) {
            self.jumps.push((index, parent));
        }
        self.arrived(key, index);
        if is_result {
            self.results.set(index);
        }
        if self.recent.len() < WINDOW {
            self.recent.push((key, message));
        } else {
            self.recent[index as usize % WINDOW] = (key, message);
        }
        index
    }

    /// The latest records, with their ids.
    pub(super) fn latest(&self) -> Vec<(u32, u64)> {
        let from = self.count.saturating_sub(WINDOW as u32);
        (from..self.count).map(|index| (index, self.recent[index as usize % WINDOW].0)).collect()
    }

    /// Records a `last-prompt`; the last one counts.
    pub(super) fn last_prompt(&mut self, key: u64) {
        self.leaf = Some(Leaf { key, at: self.find(key, self.count) });
    }

    /// Ends the history with a record of somebody's choice.
    pub(super) fn choose_tip(&mut self, key: u64) {
        self.last_prompt(key);
        self.is_chosen = true;
    }

    /// Settles what waited for the record `key`.
    fn arrived(&mut self, key: u64, index: u32) {
        if let Some(jumps) = (!self.waiting.is_empty()).then(|| self.waiting.remove(&key)).flatten() {
            for jump in jumps {
                self.jumps[jump].1 = Parent::At(index);
            }
            self.parents.set(index);
        }
        if let Some(leaf) = &mut self.leaf
            && leaf.at.is_none()
            && leaf.key == key
        {
            leaf.at = Some(index);
        }
    }

    /// The index of a record among the latest.
    fn find(&self, key: u64, before: u32) -> Option<u32> {
        let from = before.saturating_sub(WINDOW as u32);
        (from..before).rev().find(|index| self.recent[*index as usize % WINDOW].0 == key)
    }

    /// Determines the active history. `locate` makes a second pass over the file for the given ids and is called only
    /// if needed.
    pub(super) fn finish(mut self, locate: impl FnOnce(&HashSet<u64>) -> HashMap<u64, u32>) -> ResolvedHistory {
        if self.count == 0 {
            return ResolvedHistory::default();
        }
        let broken = self.settle(locate);
        // The first record starts the history, whatever it names: a fork's parent may not have been copied.
        let bent = self.jumps.iter().any(|(child, parent)| *child > 0 || matches!(parent, Parent::At(_)));
        if !bent && !self.is_chosen {
            let history = History { whole: true, ..History::default() };
            return ResolvedHistory { history, broken, ..ResolvedHistory::default() };
        }
        let said_below = self.records_with_text_below();
        let mut tip = self.last_tip(&said_below);
        let mut walk = self.walk(tip);
        let leaf = self.leaf.and_then(|leaf| leaf.at);
        if let Some(leaf) = leaf.filter(|leaf| self.is_chosen || !walk.active.get(*leaf)) {
            tip = leaf;
            walk = self.walk(leaf);
        }
        let tip_differs = !self.is_chosen && tip != self.client_tip(leaf);
        self.rejoin(&mut walk);
        let is_lost = |root: u32| !walk.active.get(root) && (self.talks.get(root) || said_below.get(root));
        let roots = self.jumps.iter().filter(|(_, parent)| *parent == Parent::Root);
        let lost_roots = roots.filter(|(root, _)| is_lost(*root)).count() as u64;
        let branches = self.branches(&walk, &said_below);
        let spans = if walk.is_ordered() { Vec::new() } else { walk.spans };
        let whole = spans.is_empty() && (0..self.count).all(|index| walk.active.get(index));
        ResolvedHistory {
            history: History { active: walk.active, whole, spans },
            broken,
            lost_roots,
            branches,
            tip_differs,
        }
    }

    /// The records with text below them.
    fn records_with_text_below(&self) -> Bits {
        let mut below = Bits::default();
        for index in (0..self.count).filter(|index| self.talks.get(*index)) {
            let mut above = self.parent_of(index);
            while let Some(at) = above.filter(|at| !below.get(*at)) {
                below.set(at);
                above = self.parent_of(at);
            }
        }
        below
    }

    /// The last records with text on inactive branches. Results of parallel calls are on one.
    fn branches(&self, walk: &Walk, said_below: &Bits) -> Vec<u32> {
        let mut seen = Bits::default();
        let mut tips = Vec::new();
        let is_last = |index: &u32| self.talks.get(*index) && !said_below.get(*index) && !walk.active.get(*index);
        for tip in (0..self.count).rev().filter(is_last) {
            // The first line of the message whose calls these are.
            let mut at = tip;
            while (self.results.get(at) || self.continued.get(at)) && !seen.get(at) {
                seen.set(at);
                match self.parent_of(at) {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            if at == tip || !seen.get(at) {
                tips.push(tip);
            }
            seen.set(at);
        }
        tips
    }

    /// The last leaf whose branch has text that no other branch continues; otherwise the last leaf.
    fn last_tip(&self, said_below: &Bits) -> u32 {
        let mut silent = Bits::default();
        let mut says_its_own = |leaf: u32| {
            let mut at = leaf;
            while !self.talks.get(at) && !said_below.get(at) && !silent.get(at) {
                silent.set(at);
                match self.parent_of(at) {
                    Some(parent) => at = parent,
                    None => return false,
                }
            }
            self.talks.get(at) && !said_below.get(at)
        };
        self.leaves().find(|leaf| says_its_own(*leaf)).unwrap_or_else(|| self.last_leaf())
    }

    /// Where the clients continue: the last leaf, whatever its branch holds, unless `last-prompt` names a record of another.
    fn client_tip(&self, leaf: Option<u32>) -> u32 {
        let last = self.last_leaf();
        leaf.filter(|leaf| !self.walk(last).active.get(*leaf)).unwrap_or(last)
    }

    fn last_leaf(&self) -> u32 {
        self.leaves().next().unwrap_or(self.count - 1)
    }

    /// The records that no other follows, the last one first.
    fn leaves(&self) -> impl Iterator<Item = u32> {
        (0..self.count).rev().filter(|index| !self.parents.get(*index))
    }

    /// Finds the parents that are still unknown. Returns the records whose parents are nowhere.
    fn settle(&mut self, locate: impl FnOnce(&HashSet<u64>) -> HashMap<u64, u32>) -> Vec<Broken> {
        let missing_leaf = self.leaf.filter(|leaf| leaf.at.is_none()).map(|leaf| leaf.key);
        let wanted: HashSet<u64> = self.waiting.keys().copied().chain(missing_leaf).collect();
        // Where all records fit into the window, what was not found there is not in the file.
        let found = match wanted.is_empty() || self.count as usize <= WINDOW {
            true => HashMap::new(),
            false => locate(&wanted),
        };
        let mut missing = Vec::new();
        for jump in 0..self.jumps.len() {
            let (child, Parent::Unknown(key, before)) = self.jumps[jump] else { continue };
            match found.get(&key) {
                Some(at) => self.link(jump, Parent::At(*at)),
                None => missing.push((jump, child, before)),
            }
        }
        let mut broken = Vec::new();
        for (jump, child, before) in missing {
            let parent = before.filter(|before| !self.descends_from(*before, child));
            self.link(jump, parent.map_or(Parent::Root, Parent::At));
            // A native fork drops the records before a compaction.
            let is_boundary = self.boundaries.get(child);
            if child > 0 || !is_boundary {
                broken.push(Broken { child, parent, is_boundary });
            }
        }
        if let Some(leaf) = &mut self.leaf
            && leaf.at.is_none()
        {
            leaf.at = found.get(&leaf.key).copied();
        }
        broken
    }

    fn link(&mut self, jump: usize, parent: Parent) {
        self.jumps[jump].1 = parent;
        if let Parent::At(at) = parent {
            self.parents.set(at);
        }
    }

    /// Whether a record that precedes another follows it in the history, which happens only close by.
    fn descends_from(&self, index: u32, ancestor: u32) -> bool {
        std::iter::successors(Some(index), |at| self.parent_of(*at)).take(WINDOW).any(|at| at == ancestor)
    }

    fn walk(&self, tip: u32) -> Walk {
        let mut walk = Walk::default();
        let mut at = tip;
        let mut last = tip;
        while !walk.active.get(at) {
            walk.active.set(at);
            match self.parent_of(at) {
                Some(parent) if parent + 1 == at && !walk.active.get(parent) => at = parent,
                Some(parent) => {
                    walk.spans.push((at, last));
                    (at, last) = (parent, parent);
                    if walk.active.get(parent) {
                        break;
                    }
                }
                None => {
                    walk.spans.push((at, last));
                    break;
                }
            }
        }
        walk.spans.reverse();
        walk
    }

    fn parent_of(&self, index: u32) -> Option<u32> {
        match self.jumps.binary_search_by_key(&index, |(child, _)| *child) {
            Ok(found) => match self.jumps[found].1 {
                Parent::At(at) => Some(at),
                Parent::Root | Parent::Unknown(..) => None,
            },
            Err(_) => index.checked_sub(1),
        }
    }

    /// Takes in results and lines of active messages that do not lie on the way to the root.
    fn rejoin(&self, walk: &mut Walk) {
        let is_ordered = walk.is_ordered();
        loop {
            let mut joined = false;
            for index in 0..self.count {
                let may_join = self.results.get(index) || self.continued.get(index);
                if may_join
                    && !walk.active.get(index)
                    && let Some(parent) = self.parent_of(index).filter(|at| walk.active.get(*at))
                {
                    walk.active.set(index);
                    joined = true;
                    if !is_ordered {
                        walk.insert(index, parent);
                    }
                }
            }
            // If records precede their parents, one may have been skipped whose parent joined later.
            if is_ordered || !joined {
                return;
            }
        }
    }
}

/// The way from the root to a tip.
#[derive(Debug, Default)]
struct Walk {
    active: Bits,
    spans: Vec<Span>,
}

impl Walk {
    fn is_ordered(&self) -> bool {
        self.spans.windows(2).all(|pair| pair[0].1 < pair[1].0)
    }

    /// Moves a record after its parent and everything between the two in the file. The tip stays the last.
    fn insert(&mut self, index: u32, parent: u32) {
        let Some(mut place) = self.spans.iter().position(|(first, last)| (*first..=*last).contains(&parent)) else {
            return;
        };
        let tip = self.spans.last().map(|(_, last)| *last);
        let mut before = parent;
        while index > self.spans[place].1 {
            before = self.spans[place].1;
            match self.spans.get(place + 1) {
                Some((next, _)) if *next < index => (place, before) = (place + 1, *next),
                _ => break,
            }
        }
        if Some(before) == tip && parent != before {
            let (first, last) = self.spans[place];
            (place, before) = if first < last { (place, last - 1) } else { (place - 1, self.spans[place - 1].1) };
        }
        let (first, last) = self.spans[place];
        self.spans[place] = (first, before);
        self.spans.insert(place + 1, (index, index));
        if before < last {
            self.spans.insert(place + 2, (before + 1, last));
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

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
