//! Ids as OpenCode makes them: a prefix, twelve hexadecimal digits with the time, and fourteen random characters.
//!
//! The digits are the low 48 bits of the time in milliseconds times 4096 plus a counter. Those of sessions are inverted, so
//! that the newest one sorts first.

use jiff::Timestamp;
use transcript::SessionId;
use xxhash_rust::xxh3::xxh3_128_with_seed;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM: usize = 14;

/// The id of a new session.
pub(super) fn new_session(now: Timestamp) -> SessionId {
    let time = u64::try_from(now.as_millisecond()).unwrap_or(0).wrapping_mul(4096).wrapping_add(1);
    let random = uuid::Uuid::new_v4().as_u128();
    let id = format!("ses_{:012x}{}", !time & 0xffff_ffff_ffff, tail(random));
    SessionId::new(id).expect("a legal id")
}

/// The id of a message or a part that is written for a session: ids of later times and of higher numbers follow.
pub(super) fn in_order(prefix: &str, milliseconds: i64, number: u64, session: &SessionId) -> String {
    let time = u64::try_from(milliseconds).unwrap_or(0).wrapping_mul(4096).wrapping_add(number);
    let random = xxh3_128_with_seed(session.as_str().as_bytes(), number);
    format!("{prefix}_{:012x}{}", time & 0xffff_ffff_ffff, tail(random))
}

/// The id of a copied message or part: with the time of the original, so that the order stays, and the same each time for
/// the same copy.
pub(super) fn of_copy(old: &str, copy: &SessionId) -> String {
    // An id of another shape is kept in front; ids are compared as text.
    let kept = match old.split_once('_') {
        Some((prefix, rest)) if rest.len() >= 12 && rest.is_char_boundary(12) => &old[..prefix.len() + 13],
        _ => old,
    };
    let seed = xxhash_rust::xxh3::xxh3_64(copy.as_str().as_bytes());
    format!("{kept}{}", tail(xxh3_128_with_seed(old.as_bytes(), seed)))
}

fn tail(mut number: u128) -> String {
    let mut letters = String::with_capacity(RANDOM);
    for _ in 0..RANDOM {
        letters.push(char::from(LETTERS[(number % 62) as usize]));
        number /= 62;
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_sessions_sort_first_and_copies_keep_the_order() {
        let at = |time| new_session(Timestamp::from_millisecond(time).unwrap());
        let (old, new) = (at(1_763_000_000_000), at(1_763_000_000_001));
        assert!(new < old, "{new} {old}");
        assert_eq!(old.as_str().len(), 30);
        let copied = [of_copy("msg_0123456789abXXXXXXXXXXXXXX", &old), of_copy("msg_0123456789acAAAAAAAAAAAAAA", &old)];
        assert!(copied[0] < copied[1] && copied[0].starts_with("msg_0123456789ab") && copied[0].len() == 30);
        assert_eq!(of_copy("msg_0123456789abXXXXXXXXXXXXXX", &old), copied[0]);
        assert_ne!(of_copy("msg_0123456789abXXXXXXXXXXXXXX", &new), copied[0]);
        assert_ne!(of_copy("odd", &old), of_copy("odder", &old));
    }
}
