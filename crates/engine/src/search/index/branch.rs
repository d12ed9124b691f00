//! How the index numbers the turns of a session's other branches: beyond those of its history.

/// Set in the number of such a turn.
const MARK: u32 = 1 << 31;
/// The number of bits for the turn. The others are for the branch.
const TURN_BITS: u32 = 20;
/// How many branches of a session are in the index at most, the latest first.
pub(crate) const MOST: usize = 1 << (31 - TURN_BITS);

/// The number of a turn on another branch; `None` if it is too large to encode.
pub(crate) fn number(branch: usize, turn: u32) -> Option<u32> {
    let branch = u32::try_from(branch).ok().filter(|_| branch < MOST)?;
    (turn < 1 << TURN_BITS).then_some(MARK | branch << TURN_BITS | turn)
}

/// The branch and turn in a number; `None` for a turn of the main history.
pub(crate) fn split(number: u32) -> Option<(usize, u32)> {
    let rest = (number & MARK != 0).then_some(number & !MARK)?;
    Some(((rest >> TURN_BITS) as usize, rest & ((1 << TURN_BITS) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_split_as_they_were_made() {
        for (branch, turn) in [(0, 1), (3, 7), (MOST - 1, (1 << TURN_BITS) - 1)] {
            assert_eq!(split(number(branch, turn).unwrap()), Some((branch, turn)));
        }
        assert_eq!((number(MOST, 1), number(0, 1 << TURN_BITS), split(17)), (None, None, None));
    }
}
