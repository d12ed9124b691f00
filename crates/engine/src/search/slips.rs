//! Words that somebody may have meant: those that are a slip or two away.
//!
//! It is asked by the walk through tantivy's dictionary, which leaves out every branch that cannot become such a word.

use tantivy_fst::Automaton;

/// Longer words are not typed.
const LONGEST: usize = 40;

/// Counts letters that are wrong, missing, too many or swapped.
#[derive(Debug)]
pub(super) struct Slips {
    word: Vec<u8>,
    most: u8,
}

/// How far the beginning of a word is from every beginning of the one that was asked: this, and one letter before.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    row: [u8; LONGEST + 1],
    before: [u8; LONGEST + 1],
    last: u8,
    begun: bool,
}

impl Slips {
    /// For a word that is neither too short to be mistaken nor too long to be one.
    pub(super) fn of(word: &str) -> Option<Slips> {
        let most = match word.chars().count() {
            0..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        (word.len() <= LONGEST).then(|| Slips { word: word.as_bytes().to_vec(), most })
    }

    /// How many slips are between the two; nothing where it is more than people make.
    pub(super) fn count(&self, word: &[u8]) -> Option<usize> {
        let end = word.iter().fold(self.start(), |state, byte| self.accept(&state, *byte));
        self.is_match(&end).then(|| usize::from(end.row[self.word.len()]))
    }
}

impl Automaton for Slips {
    type State = State;

    fn start(&self) -> State {
        let mut row = [u8::MAX; LONGEST + 1];
        for (place, cell) in (0..).zip(row.iter_mut()).take(self.word.len() + 1) {
            *cell = place;
        }
        State { row, before: row, last: 0, begun: false }
    }

    fn is_match(&self, state: &State) -> bool {
        state.row[self.word.len()] <= self.most
    }

    fn can_match(&self, state: &State) -> bool {
        state.row[..=self.word.len()].iter().any(|count| *count <= self.most)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_as_people_make_them() {
        let check = |asked: &str, word: &str, expected: Option<usize>| {
            let count = Slips::of(asked).and_then(|slips| slips.count(word.as_bytes()));
            assert_eq!(count, expected, "{asked} {word}");
        };
        check("redirect", "redirect", Some(0));
        check("redirct", "redirect", Some(1));
        check("rediretc", "redirect", Some(1));
        check("erdirect", "redirect", Some(1));
        check("redirecting", "redirect", None);
        check("größere", "größer", Some(1));
        check("login", "logout", None);
        check("logni", "login", Some(1));
        check("logn", "lgin", None);
        check("abc", "abcd", None);
    }

    #[test]
    fn what_cannot_become_the_word_is_given_up() {
        let slips = Slips::of("redirect").unwrap();
        let walk = |word: &str| word.bytes().fold(slips.start(), |state, byte| slips.accept(&state, byte));
        assert!(slips.can_match(&walk("redir")) && slips.can_match(&walk("erd")));
        assert!(!slips.can_match(&walk("table")));
    }
}
