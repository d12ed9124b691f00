//! Which turns a query of tantivy finds: the best of each segment, with what is needed to show them.

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::find::Hit;
use crate::search::index::schema::NO_OFFSET;
use crate::search::query::Limits;

/// Collects the best turns that match, with what is needed to show them.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// How many of each segment.
    pub most: usize,
}

pub(crate) struct SegmentTurns {
    segment: SegmentOrdinal,
    file: Column<u64>,
    turn: Column<u64>,
    offset: Column<u64>,
    at: Column<i64>,
    range: (i64, i64),
    most: usize,
    /// Of tens of thousands of turns with a word, only the best are worth more than computing their score.
    found: Vec<(Score, DocId)>,
}

impl Turns {
    pub(crate) fn within(limits: &Limits) -> Turns {
        let (since, until) = (limits.since.map(|t| t.as_second()), limits.until.map(|t| t.as_second()));
        Turns { since, until, most: usize::MAX }
    }
}

impl Collector for Turns {
    type Fruit = Vec<Hit>;
    type Child = SegmentTurns;

    fn for_segment(&self, segment_ord: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentTurns> {
        let fast = segment.fast_fields();
        Ok(SegmentTurns {
            segment: segment_ord,
            file: fast.u64("file")?,
            turn: fast.u64("turn")?,
            offset: fast.u64("offset")?,
            at: fast.i64("at")?,
            range: (self.since.unwrap_or(i64::MIN), self.until.unwrap_or(i64::MAX)),
            most: self.most,
            found: Vec::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, mut found: Vec<Vec<Hit>>) -> tantivy::Result<Vec<Hit>> {
        // A word that is everywhere is found in tens of thousands of turns, most of them in one segment.
        found.sort_by_key(|hits| std::cmp::Reverse(hits.len()));
        let mut found = found.into_iter();
        let mut all = found.next().unwrap_or_default();
        found.for_each(|hits| all.extend(hits));
        Ok(all)
    }
}

impl SegmentCollector for SegmentTurns {
    type Fruit = Vec<Hit>;

    fn collect(&mut self, doc: DocId, score: Score) {
        if self.range != EVER {
            let at = self.at.first(doc).unwrap_or(0);
            if at < self.range.0 || at >= self.range.1 {
                return;
            }
        }
        self.found.push((score, doc));
        if self.found.len() == self.most.saturating_mul(4) {
            self.keep_best();
        }
    }

    fn harvest(mut self) -> Vec<Hit> {
        self.keep_best();
        let hit = |(score, doc): &(Score, DocId)| Hit {
            score: *score,
            file: self.file.first(*doc).unwrap_or(0),
            turn: u32::try_from(self.turn.first(*doc).unwrap_or(0)).unwrap_or(0),
            offset: self.offset.first(*doc).unwrap_or(NO_OFFSET),
            at: self.at.first(*doc).unwrap_or(0),
            part: None,
            address: DocAddress { segment_ord: self.segment, doc_id: *doc },
        };
        self.found.iter().map(hit).collect()
    }
}

/// Any time.
const EVER: (i64, i64) = (i64::MIN, i64::MAX);

impl SegmentTurns {
    /// Drops all but the best hits. Of equal ones, it keeps the newest, which are more likely to be shown.
    fn keep_best(&mut self) {
        if self.found.len() > self.most {
            let order = |a: &(Score, DocId), b: &(Score, DocId)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
            self.found.select_nth_unstable_by(self.most, order);
            self.found.truncate(self.most);
        }
    }
}
