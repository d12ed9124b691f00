//! What tells that a copy holds the records of its source, each unchanged and all in their order.
//!
//! Copier and checker both take a record apart into stretches that are carried and values that are replaced. The stretches
//! are hashed on both sides, over the source's bytes when the copy is written and over the copy's when it is read
//! back; a byte that was changed, a record that was lost, doubled or moved gives another seal. The replaced values are
//! compared one by one with what they should be. 64 bits are enough against accidents, which is what a copy is
//! checked for; nobody who could forge a hash needs to.

use xxhash_rust::xxh3::xxh3_64;

/// The number of records and a hash over all that was carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seal {
    records: u64,
    hash: u64,
}

impl Seal {
    /// How many records were sealed.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds a stretch of a record.
    pub(crate) fn stretch(&mut self, bytes: &[u8]) {
        self.mix(xxh3_64(bytes));
    }

    /// Adds a stretch that was hashed piece by piece, because it is too long to be held.
    pub(crate) fn digest(&mut self, digest: u64) {
        self.mix(digest);
    }

    /// Ends a record, so that stretches of two records are not taken for those of one.
    pub(crate) fn end_record(&mut self) {
        self.records += 1;
        self.mix(self.records);
    }

    fn mix(&mut self, value: u64) {
        // The order counts: a product with an odd number is different for every place in the row.
        self.hash = (self.hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_borders_and_bytes_count() {
        let seal = |records: &[&[&str]]| {
            let mut seal = Seal::default();
            for record in records {
                record.iter().for_each(|stretch| seal.stretch(stretch.as_bytes()));
                seal.end_record();
            }
            seal
        };
        let whole = seal(&[&["a", "b"], &["c"]]);
        let others: [&[&[&str]]; 5] = [
            &[&["a"], &["b", "c"]],
            &[&["c"], &["a", "b"]],
            &[&["a", "b"]],
            &[&["a", "B"], &["c"]],
            &[&["a", "b"], &["c"], &["c"]],
        ];
        for other in others {
            assert_ne!(seal(other), whole, "{other:?}");
        }
    }
}
