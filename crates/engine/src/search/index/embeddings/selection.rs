//! Selects the text to embed: prompts and answers, in chunks, if the model supports the language.
//!
//! Embedding a chunk takes 10 ms of CPU time, and a year of conversations has hundreds of thousands of chunks. So the
//! gist of a session (titles, prompts and the last answer of each turn) comes first, then only the longest of the other
//! messages. Very long messages are represented by their beginning and end, unsupported text is skipped, and chunks
//! that differ in no word share a vector.

use meaning::{can_read, chunks};
use transcript::seed::is_seed;
use transcript::text::prefix;
use transcript::{Block, BlockKind, secrets};

/// Of a longer message, this many chunks from its beginning (about 1,500 tokens)
const FIRST: usize = 24;
/// and this many from its end are embedded: users put their question before or after what they paste.
const LAST: usize = 8;

/// Messages between prompt and answer are embedded if they have this many words: `Now I run the tests.` only announces
/// the next step.
const LEAST_WORDS: usize = 12;
/// The number of such messages per turn, the longest ones. An agent that works for an hour writes hundreds.
const MOST_BETWEEN: usize = 16;
/// Each of them is represented by its first bytes: about 300 tokens.
const BEGINNING: usize = 1_200;

/// The prose of a block. Thinking and summaries only repeat it.
pub(crate) fn prose_of(kind: &BlockKind) -> &str {
    match kind {
        BlockKind::Prompt { text, .. } if is_seed(text) => "",
        BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. } => text,
        BlockKind::Subagent { description, .. } => description.as_deref().unwrap_or_default(),
        _ => "",
    }
}

/// The chunks of a text. A single word such as `continue` is not worth finding.
pub(crate) fn each_chunk(text: &str, mut take: impl FnMut(&str)) {
    if text.is_empty() {
        return;
    }
    let text = secrets::mask(text).0;
    let ranges: Vec<_> = chunks(&text).collect();
    let is_left_out = |place: usize| place >= FIRST && place + LAST < ranges.len();
    for (_, range) in ranges.iter().enumerate().filter(|(place, _)| !is_left_out(*place)) {
        let chunk = &text[range.clone()];
        if chunk.split_whitespace().nth(1).is_some() && can_read(chunk) {
            take(chunk);
        }
    }
}

/// Equal for chunks that differ only in numbers, punctuation and case: reports, templates, copied histories.
pub(crate) fn template_hash(chunk: &str) -> u64 {
    let mut words = String::with_capacity(chunk.len());
    for c in chunk.chars() {
        match c {
            c if c.is_numeric() && words.ends_with("0 ") => _ = words.pop(),
            c if c.is_numeric() && !words.ends_with('0') => words.push('0'),
            c if c.is_numeric() => {}
            c if c.is_alphabetic() => words.extend(c.to_lowercase()),
            _ if !words.ends_with(' ') => words.push(' '),
            _ => {}
        }
    }
    xxhash_rust::xxh3::xxh3_64(words.trim().as_bytes())
}

/// How much of a session is embedded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Coverage {
    /// Its title, the prompts, and the last answer of each turn.
    Gist,
    /// Also the messages in between and those of subagents.
    Whole,
}

/// Selects what to embed while the blocks of a session are read.
pub(crate) struct ChunkChoice {
    coverage: Coverage,
    turn: u32,
    /// The last answer in the current turn.
    answer: Option<String>,
    between: Vec<String>,
    /// Whether there was text that isn't part of the gist.
    pub leaves_out: bool,
}

impl ChunkChoice {
    pub(crate) fn new(coverage: Coverage) -> ChunkChoice {
        ChunkChoice { coverage, turn: 0, answer: None, between: Vec::new(), leaves_out: false }
    }

    /// Takes the next block, which belongs to `turn`, and returns what has been selected since, with its turn.
    pub(crate) fn next(&mut self, turn: u32, block: &Block) -> Vec<(u32, String)> {
        let mut chosen = if turn == self.turn { Vec::new() } else { self.end() };
        self.turn = turn;
        let text = prose_of(&block.kind);
        match &block.kind {
            _ if text.is_empty() => {}
            BlockKind::Prompt { .. } if block.depth == 0 => chosen.push((turn, text.to_owned())),
            BlockKind::Answer { .. } if block.depth == 0 => {
                if let Some(earlier) = self.answer.replace(text.to_owned()) {
                    self.put_between(&earlier);
                }
            }
            _ => self.put_between(text),
        }
        chosen
    }

    /// Ends the turn and returns the selected text.
    pub(crate) fn end(&mut self) -> Vec<(u32, String)> {
        self.between.drain(..).chain(self.answer.take()).map(|text| (self.turn, text)).collect()
    }

    fn put_between(&mut self, text: &str) {
        if text.split_whitespace().nth(LEAST_WORDS - 1).is_none() {
            return;
        }
        self.leaves_out |= self.coverage == Coverage::Gist;
        if self.coverage == Coverage::Gist {
            return;
        }
        self.between.push(prefix(text, BEGINNING).to_owned());
        if self.between.len() > MOST_BETWEEN {
            let shortest = (0..self.between.len()).min_by_key(|at| self.between[*at].len());
            self.between.remove(shortest.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_known_by_its_beginning_and_its_end() {
        let text: String = (0..400)
            .map(|number| format!("The {number} plums of the orchard were counted by hand before it rained again. "))
            .collect();
        let mut kept = Vec::new();
        each_chunk(&text, |chunk| kept.push(chunk.to_owned()));
        assert_eq!(kept.len(), FIRST + LAST);
        assert!(kept[0].contains("The 0 plums") && kept[FIRST + LAST - 1].contains("The 399 plums"), "{kept:?}");
    }

    #[test]
    fn the_gist_is_what_was_asked_and_how_it_ended() {
        let block = |depth: u8, kind: BlockKind| Block { turn: 0, depth, at: None, message: None, kind };
        let prompt = |text: &str| block(0, BlockKind::Prompt { text: text.into(), steer: false });
        let answer = |depth: u8, text: &str| block(depth, BlockKind::Answer { text: text.into(), model: None });
        let long = |number: usize| format!("number {number} {}", "of many words ".repeat(4 + number));
        let mut blocks = vec![(1, prompt("ask")), (1, answer(0, "Now I look.")), (1, answer(1, &long(90)))];
        blocks.extend((0..20).map(|number| (1, answer(0, &long(number)))));
        blocks.extend([(1, answer(0, "end")), (2, prompt("again")), (2, answer(0, "done"))]);
        let chosen = |coverage: Coverage| {
            let mut choice = ChunkChoice::new(coverage);
            let mut chosen: Vec<(u32, String)> =
                blocks.iter().flat_map(|(turn, block)| choice.next(*turn, block)).collect();
            chosen.extend(choice.end());
            (chosen, choice.leaves_out)
        };
        let pair = |turn: u32, text: &str| (turn, text.to_owned());
        let gist = vec![pair(1, "ask"), pair(1, "end"), pair(2, "again"), pair(2, "done")];
        assert_eq!(chosen(Coverage::Gist), (gist, true));
        // The longest of what was said in between, in its order.
        let between = std::iter::once(90).chain(5..20).map(|number| (1, prefix(&long(number), BEGINNING).to_owned()));
        let whole: Vec<_> = std::iter::once(pair(1, "ask")).chain(between).collect();
        let whole = [whole, vec![pair(1, "end"), pair(2, "again"), pair(2, "done")]].concat();
        assert_eq!(chosen(Coverage::Whole), (whole, false));
    }

    #[test]
    fn what_the_model_cannot_read_gets_no_vector() {
        let check = |text: &str, expected: usize| {
            let mut count = 0;
            each_chunk(text, |_| count += 1);
            assert_eq!(count, expected, "{text}");
        };
        check("the login page redirects", 1);
        check("los avisos se envían de noche", 1);
        check("로그인 페이지가 계속 새로고침됩니다 원인을 찾아 주세요", 0);
        check("старые клиенты не могут подключиться", 0);
        check("| 12.4 | 99.1 | 3 | 0 | 17 |\n| 88.0 | 4.2 | 9 | 1 | 20 |", 0);
        check("continue", 0);
    }

    #[test]
    fn chunks_that_differ_in_numbers_and_signs_only_are_alike() {
        let same = |a: &str, b: &str| template_hash(a) == template_hash(b);
        assert!(same("Ran 12 tests: all passed.", "ran 1,340 tests — all passed"));
        assert!(!same("Ran 12 tests: all passed.", "Ran 12 tests: one failed."));
    }
}
