//! Text by the yard: prose as people and agents write it, and output as tools print it.

use super::random::Random;

/// Words of the trade, the common ones first: a word's place decides how often it is used.
const VOCABULARY: &str = "the a to of in and it is for that with this on as be we file test code function error line \
    should when from not are if so use value name type call add fix run return build path read write list change \
    check case state data string module default option struct request response server client index search cache \
    query parser token stream buffer thread lock queue retry timeout config branch commit merge session turn fork \
    agent prompt answer window pane cursor layout colour theme font render frame event handler signal socket port \
    proxy header cookie login user password role permission policy audit metric counter histogram latency budget \
    deadline schedule timer clock date zone locale unicode grapheme escape quote newline delimiter column row table \
    schema migration transaction rollback snapshot replica shard partition leader election consensus quorum ledger \
    invoice currency rounding tax refund cart checkout coupon inventory warehouse shipment tracking label barcode \
    sensor voltage firmware bootloader flash register interrupt driver kernel syscall page segment allocator arena \
    garbage collector reference lifetime borrow trait generic macro attribute derive iterator closure future pin \
    waker executor runtime channel mutex atomic fence barrier epoch hazard pointer linked tree graph vertex edge \
    heap trie bloom filter sketch hash salt digest signature certificate cipher nonce entropy key vault secret";

/// A source of text. It holds a pool of ready output, so that big texts cost no more than copying.
#[derive(Debug, Clone)]
pub struct Words {
    random: Random,
    vocabulary: Vec<String>,
    is_wide: bool,
    pool: String,
}

/// How much ready output is kept.
const POOL: usize = 1 << 20;
/// The same where words are to be rare: a word that it has once is in a handful of sessions.
const WIDE_POOL: usize = 64 << 20;

impl Words {
    /// The source of a seed.
    pub fn new(seed: u64) -> Self {
        Self::of(seed, VOCABULARY.split_whitespace().map(str::to_owned).collect(), false)
    }

    /// A source with this many made-up words besides the usual ones, as rare as words are in people's text. See [`made_up`].
    pub fn wide(seed: u64, count: usize) -> Self {
        let known = VOCABULARY.split_whitespace().map(str::to_owned);
        Self::of(seed, known.chain((0..count).map(made_up)).collect(), true)
    }

    fn of(seed: u64, vocabulary: Vec<String>, is_wide: bool) -> Self {
        let size = if is_wide { WIDE_POOL } else { POOL };
        let random = Random::new(seed ^ 0x7769_7264);
        let mut words = Self { random, vocabulary, is_wide, pool: String::with_capacity(size + 256) };
        let mut number = 0;
        while words.pool.len() < size {
            number += 1;
            let line = words.output_line(number);
            words.pool.push_str(&line);
        }
        words
    }

    /// Whether most words are rare.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// One word, common ones more often.
    pub fn word(&mut self) -> &str {
        let (fraction, count) = (self.random.fraction(), self.vocabulary.len() as f64);
        // The square makes small places likelier: a rough version of Zipf's law. With many words, the law itself is used: the
        // word at place n is said one nth as often as the first.
        let place = if self.is_wide { count.powf(fraction) } else { fraction * fraction * count };
        &self.vocabulary[(place as usize).min(self.vocabulary.len() - 1)]
    }

    /// Sentences of about so many bytes.
    pub fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 32);
        while text.len() < bytes {
            let words = 5 + self.random.below(12);
            for place in 0..words {
                let word = self.word();
                match place {
                    0 => {
                        text.push_str(&word[..1].to_uppercase());
                        text.push_str(&word[1..]);
                    }
                    _ => {
                        text.push(' ');
                        text.push_str(word);
                    }
                }
            }
            text.push_str(". ");
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Output of a tool of exactly so many bytes: listings, code and logs, with what needs escaping in JSON.
    pub fn output(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes);
        while text.len() < bytes {
            let from = self.random.below(self.pool.len());
            let wanted = bytes - text.len();
            let slice = &self.pool.as_bytes()[from..(from + wanted).min(self.pool.len())];
            // The pool is ASCII, so that it can be cut anywhere.
            text.push_str(std::str::from_utf8(slice).expect("an ASCII pool"));
        }
        text
    }

    fn output_line(&mut self, number: usize) -> String {
        let [one, two, three] = std::array::from_fn(|_| self.word().to_owned());
        match self.random.below(5) {
            0 => format!(
                "-rw-r--r-- 1 user user {:>7} Nov  3 10:{:02} src/{one}/{two}.rs\n",
                self.random.below(90_000),
                number % 60
            ),
            1 => format!("{number:>6}\t    let {one} = self.{two}(\"{three}\")?;\n"),
            2 => {
                format!("src/{one}/{two}.rs:{}:    fn {three}(&self) -> Result<(), Error> {{\n", self.random.below(900))
            }
            3 => format!(
                "2026-11-03T10:{:02}:{:02}.{:03}Z INFO {one}: {two} {three} took {} ms\n",
                number % 60,
                number % 59,
                number % 997,
                number % 331
            ),
            _ => format!("test {one}::{two}::{three}_{number} ... ok\n"),
        }
    }
}

/// The made-up word with this number, made of syllables.
pub fn made_up(number: usize) -> String {
    const SYLLABLES: [&str; 32] = [
        "ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "dan", "fel", "gor", "hin", "jul", "kap", "lom",
        "mer", "nis", "pol", "qua", "rud", "sal", "tem", "ulf", "vin", "wex", "xan", "yor", "zeb", "cho", "tri",
    ];
    // Mixed, so that neighbours don't look alike. Four syllables make a million words.
    let mixed = (number.wrapping_mul(0x9_E377) ^ 0x5_A5A5) & 0xF_FFFF;
    (0..4).map(|place| SYLLABLES[mixed >> (5 * place) & 31]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_exactly_the_length_that_was_asked_for() {
        let mut words = Words::new(1);
        for bytes in [0, 1, 100, POOL + 17] {
            assert_eq!(words.output(bytes).len(), bytes);
        }
    }

    #[test]
    fn the_same_seed_says_the_same() {
        assert_eq!(Words::new(3).prose(500), Words::new(3).prose(500));
        assert_ne!(Words::new(3).prose(500), Words::new(4).prose(500));
    }
}
