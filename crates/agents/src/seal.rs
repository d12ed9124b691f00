//! Shows that a copy contains the records of its source, unchanged and in order.
//!
//! Copier and checker both split a record into copied spans and replaced values. The spans are hashed on both sides,
//! when the source is read and when the copy is read back; a changed byte or a lost, duplicated or moved record gives a
//! different seal. The replaced values are compared one by one with the expected ones. 64 bits are enough against
//! accidents, which is what a copy is checked for; a forger wouldn't need to forge a hash.

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

    /// Ends a record, so that spans of two records can't be mistaken for those of one.
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
