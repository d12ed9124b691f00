//! Finds words that the user may have meant: those one or two typos away.
//!
//! It is asked by the walk through tantivy's dictionary, which leaves out every branch that cannot become such a word.

use tantivy_fst::Automaton;

/// Longer words are not typed.
const LONGEST: usize = 40;

/// Counts letters that are wrong, missing, too many or swapped.
#[derive(Debug)]
pub(crate) struct TypoAutomaton {
    word: Vec<u8>,
    letters: Vec<char>,
    /// The most slips,
    most: usize,
    /// and the most bytes that are other ones then.
    bytes: u8,
}

/// How far the beginning of a word is from every beginning of the one that was asked: this, and one letter before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    row: [u8; LONGEST + 1],
    before: [u8; LONGEST + 1],
    last: u8,
    begun: bool,
}

impl TypoAutomaton {
    /// For a word that is neither too short to be mistaken nor too long to be one.
    pub(crate) fn of(word: &str) -> Option<TypoAutomaton> {
        // A number is never the intended word.
        if word.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let most = match word.chars().count() {
            0..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        let letters: Vec<char> = word.chars().collect();
        let widest = letters.iter().map(|letter| letter.len_utf8()).max().unwrap_or(1);
        let bytes = u8::try_from(most * widest).unwrap_or(u8::MAX);
        (word.len() <= LONGEST).then(|| TypoAutomaton { word: word.as_bytes().to_vec(), letters, most, bytes })
    }

    /// The number of typos between the two; `None` if there are too many.
    pub(crate) fn count(&self, word: &[u8]) -> Option<usize> {
        let other: Vec<char> = std::str::from_utf8(word).ok()?.chars().collect();
        let count = between(&self.letters, &other);
        (count <= self.most).then_some(count)
    }
}

impl Automaton for TypoAutomaton {
    type State = State;

    fn start(&self) -> State {
        let mut row = [u8::MAX; LONGEST + 1];
        for (place, cell) in (0..).zip(row.iter_mut()).take(self.word.len() + 1) {
            *cell = place;
        }
        State { row, before: row, last: 0, begun: false }
    }

    fn is_match(&self, state: &State) -> bool {
        state.row[self.word.len()] <= self.bytes
    }

    fn can_match(&self, state: &State) -> bool {
        state.row[..=self.word.len()].iter().any(|count| *count <= self.bytes)
    }

    fn accept(&self, state: &State, byte: u8) -> State {
        let mut row = [u8::MAX; LONGEST + 1];
        row[0] = state.row[0].saturating_add(1);
        for (index, letter) in self.word.iter().enumerate() {
            let place = index + 1;
            let other = state.row[index].saturating_add(u8::from(*letter != byte));
            let more = state.row[place].saturating_add(1).min(row[index].saturating_add(1));
            row[place] = other.min(more);
            if state.begun && index > 0 && self.word[index - 1] == byte && *letter == state.last {
                row[place] = row[place].min(state.before[index - 1].saturating_add(1));
            }
        }
        State { row, before: state.row, last: byte, begun: true }
    }
}

/// How many letters are wrong, missing, too many or swapped.
fn between(asked: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=asked.len()).collect();
    for (line, letter) in other.iter().enumerate() {
        let mut next = vec![line + 1];
        for (index, wanted) in asked.iter().enumerate() {
            let changed = row[index] + usize::from(wanted != letter);
            let mut least = changed.min(row[index + 1] + 1).min(next[index] + 1);
            if line > 0 && index > 0 && asked[index - 1] == *letter && other[line - 1] == *wanted {
                least = least.min(before[index - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[asked.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_as_people_make_them() {
        let check = |asked: &str, word: &str, expected: Option<usize>| {
            let count = TypoAutomaton::of(asked).and_then(|slips| slips.count(word.as_bytes()));
            assert_eq!(count, expected, "{asked} {word}");
        };
        check("redirect", "redirect", Some(0));
        check("redirct", "redirect", Some(1));
        check("rediretc", "redirect", Some(1));
        check("erdirect", "redirect", Some(1));
        check("redirecting", "redirect", None);
        check("größere", "größer", Some(1));
        check("login", "logout", None);
        check("ошбка", "ошибка", Some(1));
        check("заказ", "заказа", Some(1));
        check("кот", "кит", None);
        check("logni", "login", Some(1));
        check("logn", "lgin", None);
        check("abc", "abcd", None);
    }

    #[test]
    fn what_cannot_become_the_word_is_given_up() {
        let slips = TypoAutomaton::of("redirect").unwrap();
        let walk = |word: &str| word.bytes().fold(slips.start(), |state, byte| slips.accept(&state, byte));
        assert!(slips.can_match(&walk("redir")) && slips.can_match(&walk("erd")));
        assert!(!slips.can_match(&walk("table")));
    }
}
