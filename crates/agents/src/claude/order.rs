//! Bringing records into the order of the history while they stream by in the order of the file.
//!
//! Only files in which the two differ need it, and there by a few lines: a record that comes too early is held until
//! its turn.

use std::collections::{BTreeMap, VecDeque};

/// The most bytes that are held. A file that needs more is damaged; its records are then handed out as they come.
const MOST: usize = 32 << 20;

/// Records that wait for others, in any representation.
pub(super) struct Order<P> {
    /// What is still to come, in the order of the history. Empty: the order of the file will do.
    spans: VecDeque<(u32, u32)>,
    /// With the memory that each takes.
    held: BTreeMap<u32, (P, usize)>,
    bytes: usize,
}

impl<P> Order<P> {
    pub(super) fn new(spans: &[(u32, u32)]) -> Self {
        Order { spans: spans.iter().copied().collect(), held: BTreeMap::new(), bytes: 0 }
    }

    /// Whether another record has to come before this one.
    pub(super) fn waits(&self, index: u32) -> bool {
        self.spans.front().is_some_and(|(next, _)| *next != index)
    }

    /// Keeps a record of this size until its turn comes.
    pub(super) fn hold(&mut self, index: u32, piece: P, bytes: usize) {
        self.bytes += bytes;
        self.held.insert(index, (piece, bytes));
        if self.bytes > MOST {
            self.spans.clear();
        }
    }

    /// Notes that a record was handed out.
    pub(super) fn passed(&mut self, index: u32) {
        if let Some((next, last)) = self.spans.front_mut()
            && *next == index
        {
            if *next == *last {
                self.spans.pop_front();
            } else {
                *next += 1;
            }
        }
    }

    /// The record whose turn it is, if it is held.
    pub(super) fn next_held(&mut self) -> Option<(u32, P)> {
        let index = match self.spans.front() {
            Some((next, _)) => *next,
            None => *self.held.keys().next()?,
        };
        let (piece, bytes) = self.held.remove(&index)?;
        self.bytes -= bytes;
        Some((index, piece))
    }

    /// Stops waiting; false if nothing waits.
    pub(super) fn give_up(&mut self) -> bool {
        self.spans.clear();
        !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_in_the_order_of_the_history() {
        let check = |spans: &[(u32, u32)], file: &[u32], expected: &[u32]| {
            let mut order = Order::new(spans);
            let mut out = Vec::new();
            for index in file {
                if order.waits(*index) {
                    order.hold(*index, (), 1);
                    continue;
                }
                order.passed(*index);
                out.push(*index);
                while let Some((index, _)) = order.next_held() {
                    order.passed(index);
                    out.push(index);
                }
            }
            assert_eq!(out, expected);
        };
        check(&[], &[0, 1, 2], &[0, 1, 2]);
        check(&[(2, 4), (0, 1), (5, 6)], &[0, 1, 2, 3, 4, 5, 6], &[2, 3, 4, 0, 1, 5, 6]);
        check(&[(3, 3), (1, 1), (0, 0)], &[0, 1, 3], &[3, 1, 0]);
    }
}
