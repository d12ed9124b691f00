//! The hits of a search in the order in which they are shown, and the best of those that belong to a session.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::search::index::upkeep::OpenIndex;
use crate::search::query::words::IdentityHasher;
use crate::search::rank::find::{Hit, Hits};
use crate::search::rank::sessions::Sessions;

/// How many generations of sources are followed.
const GENERATIONS: usize = 16;

/// The hits, best first.
pub(crate) struct ReadingQueue<'a> {
    found: &'a mut Hits,
    next: usize,
    /// Titles of forks, which come after hits in their sources.
    behind: Vec<Hit>,
    /// The best turn of each transcript. Only titles ask for it.
    best: Option<HashMap<u64, Hit, BuildHasherDefault<IdentityHasher>>>,
    /// The same of turns up to one, where the best of all is a later one.
    earlier: HashMap<(u64, u32), Option<Hit>>,
}

impl<'a> ReadingQueue<'a> {
    pub(crate) fn of(found: &'a mut Hits) -> ReadingQueue<'a> {
        ReadingQueue { found, next: 0, behind: Vec::new(), best: None, earlier: HashMap::new() }
    }

    /// Takes the next one.
    pub(crate) fn next(&mut self) -> Option<Hit> {
        let next = (self.next < self.found.hits.len()).then(|| self.found.best_first(self.next));
        if let Some(first) =
            self.behind.first().filter(|first| next.is_none_or(|next| first.score > next.score)).copied()
        {
            self.behind.remove(0);
            return Some(first);
        }
        self.next += 1;
        next
    }

    /// Inserts a hit after another one.
    pub(crate) fn put_behind(&mut self, hit: Hit, other: &Hit) {
        let hit = Hit { score: other.score.next_down(), ..hit };
        let at = self.behind.partition_point(|before| before.score >= hit.score);
        self.behind.insert(at, hit);
    }

    /// The best of the turns of a transcript, up to one.
    pub(crate) fn best_turn(&mut self, file: u64, until: u32) -> Option<Hit> {
        let hits = &self.found.hits;
        let is_better = |hit: &Hit, best: &Hit| (hit.score, best.turn) > (best.score, hit.turn);
        let best = self.best.get_or_insert_with(|| {
            let mut best: HashMap<u64, Hit, BuildHasherDefault<IdentityHasher>> = HashMap::default();
            for hit in hits.iter().filter(|hit| hit.turn > 0) {
                let known = best.entry(hit.file).or_insert(*hit);
                if is_better(hit, known) {
                    *known = *hit;
                }
            }
            best
        });
        let best = *best.get(&file)?;
        if best.turn <= until {
            return Some(best);
        }
        let order = |a: &&Hit, b: &&Hit| a.score.total_cmp(&b.score).then(b.turn.cmp(&a.turn));
        let is_held = |hit: &&Hit| hit.file == file && (1..=until).contains(&hit.turn);
        *self.earlier.entry((file, until)).or_insert_with(|| hits.iter().filter(is_held).max_by(order).copied())
    }

    /// The best of the turns that a transcript shares with those that it is a fork of.
    pub(crate) fn best_shared(&mut self, look: &OpenIndex, sessions: &Sessions, mut file: u64) -> Option<Hit> {
        let (mut best, mut until): (Option<Hit>, u32) = (None, u32::MAX);
        for _ in 0..GENERATIONS {
            let Some(source) = sessions.inherited(look, file, until) else { break };
            (file, until) = source;
            let turn = self.best_turn(file, until);
            best = turn.filter(|turn| best.is_none_or(|best| best.score < turn.score)).or(best);
        }
        best
    }
}
