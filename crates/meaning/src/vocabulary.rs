//! The model's words and pieces of words, and how a word is split into them (WordPiece).

use std::sync::OnceLock;

static WORDS: &str = include_str!("../model/vocab.txt");

/// Stands for a word that cannot be put together from known pieces.
pub(crate) const UNKNOWN: u32 = 100;
/// The start of every text.
pub(crate) const BEGIN: u32 = 101;
/// The end of every text.
pub(crate) const END: u32 = 102;

/// The longest entry, in bytes.
const LONGEST: usize = 18;
/// Twice the number of entries, rounded up to a power of two.
const SLOTS: usize = 1 << 16;
/// No id is that high.
const FREE: u16 = u16::MAX;

/// A hash table over the embedded file. Entries that continue a word keep their `##`.
pub(crate) struct Vocabulary {
    /// Where each entry begins in `WORDS`; one more at the end.
    starts: Vec<u32>,
    /// Ids at the place of their hash, or after it.
    slots: Vec<u16>,
}

/// Whether a word of lower-case letters is an entry, checked without comparing it with others.
pub(crate) fn lists(word: &str) -> bool {
    WORDS.contains(&format!("\n{word}\n"))
}

impl Vocabulary {
    /// The one vocabulary. The first call takes well under a millisecond to build the table.
    pub(crate) fn get() -> &'static Vocabulary {
        static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
        VOCABULARY.get_or_init(Vocabulary::build)
    }

    fn build() -> Vocabulary {
        let mut vocabulary = Vocabulary { starts: vec![0], slots: vec![FREE; SLOTS] };
        for (id, word) in (0u16..).zip(WORDS.lines()) {
            let mut slot = place(hash(OUTSET, word.as_bytes()));
            while vocabulary.slots[slot] != FREE {
                slot = (slot + 1) % SLOTS;
            }
            vocabulary.slots[slot] = id;
            let end = vocabulary.starts[usize::from(id)] + word.len() as u32 + 1;
            vocabulary.starts.push(end);
        }
        vocabulary
    }

    /// Gives the ids of a word's pieces, always the longest that fits. A word that does not come out even is unknown as a
    /// whole, as the model was taught.
    pub(crate) fn pieces(&self, word: &str, ids: &mut Vec<u32>) {
        let before = ids.len();
        let mut rest = word.as_bytes();
        while !rest.is_empty() {
            let lead = if ids.len() == before { "" } else { "##" };
            let Some((id, length)) = self.longest(lead, rest) else {
                ids.truncate(before);
                ids.push(UNKNOWN);
                return;
            };
            ids.push(id);
            rest = &rest[length..];
        }
    }

    /// The longest entry that `rest` begins with, and its length without the lead. Entries are whole characters, so the
    /// cut is between characters too.
    fn longest(&self, lead: &str, rest: &[u8]) -> Option<(u32, usize)> {
        let mut hashes = [0; LONGEST + 1];
        hashes[0] = hash(OUTSET, lead.as_bytes());
        let reach = rest.len().min(LONGEST - lead.len());
        for (index, byte) in rest[..reach].iter().enumerate() {
            hashes[index + 1] = hash(hashes[index], &[*byte]);
        }
        (1..=reach).rev().find_map(|length| Some((self.find(hashes[length], lead, &rest[..length])?, length)))
    }

    fn find(&self, hash: u64, lead: &str, word: &[u8]) -> Option<u32> {
        let mut slot = place(hash);
        loop {
            let id = self.slots[slot];
            if id == FREE {
                return None;
            }
            if self.entry(id).strip_prefix(lead.as_bytes()) == Some(word) {
                return Some(u32::from(id));
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn entry(&self, id: u16) -> &'static [u8] {
        let [start, end] = [self.starts[usize::from(id)], self.starts[usize::from(id) + 1] - 1];
        &WORDS.as_bytes()[start as usize..end as usize]
    }
}

const OUTSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, because it can be carried on from a prefix byte by byte.
fn hash(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn place(hash: u64) -> usize {
    ((hash ^ (hash >> 32)) as usize) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_fit_the_file() {
        let words: Vec<&str> = WORDS.lines().collect();
        assert_eq!(words.len(), 30_522);
        assert_eq!(words[UNKNOWN as usize], "[UNK]");
        assert_eq!(words[BEGIN as usize], "[CLS]");
        assert_eq!(words[END as usize], "[SEP]");
        assert_eq!(words.iter().map(|word| word.len()).max(), Some(LONGEST));
    }

    #[test]
    fn every_entry_is_found_by_itself() {
        let vocabulary = Vocabulary::get();
        for (id, word) in (0..).zip(WORDS.lines()) {
            assert_eq!(vocabulary.find(hash(OUTSET, word.as_bytes()), "", word.as_bytes()), Some(id), "{word}");
        }
    }

    #[test]
    fn words_are_listed_as_a_whole() {
        let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(WORDS.lines().filter(is_plain).all(lists));
        for piece in ["ation", "colection", "forkx", "x y"] {
            assert!(!lists(piece), "{piece}");
        }
    }

    #[test]
    fn a_word_is_taken_apart_or_unknown_as_a_whole() {
        for (word, expected) in [
            ("fork", &[9292][..]),
            ("tokenization", &[19204, 3989]),
            ("\u{1f980}", &[UNKNOWN]),
            ("fork\u{1f980}", &[UNKNOWN]),
            ("", &[]),
        ] {
            let mut ids = Vec::new();
            Vocabulary::get().pieces(word, &mut ids);
            assert_eq!(ids, expected, "{word}");
        }
    }
}
