//! Session ids as the agents make them: UUIDs, random or with the time in front.

use jiff::Timestamp;
use transcript::SessionId;
use uuid::{NoContext, Uuid};

/// A random id (UUID version 4).
pub(crate) fn random_id() -> SessionId {
    id_of(Uuid::new_v4())
}

/// An id that begins with the time (UUID version 7).
pub(crate) fn timed_id(now: Timestamp) -> SessionId {
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
    id_of(Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos)))
}

/// The time in an id that carries one, in nanoseconds since 1970. Listings ask for every session, so it doesn't allocate.
pub fn time_in_id(id: &SessionId) -> Option<i64> {
    let id = id.as_str();
    if id.len() != 36 || id.as_bytes()[14] != b'7' {
        return None;
    }
    let part = |range: std::ops::Range<usize>| i64::from_str_radix(id.get(range)?, 16).ok();
    let milliseconds = (part(0..8)? << 16) | part(9..13)?;
    milliseconds.checked_mul(1_000_000)
}

fn id_of(uuid: Uuid) -> SessionId {
    SessionId::new(uuid.to_string()).expect("a UUID is a legal id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_begin_with_the_time_tell_it() {
        let now = Timestamp::from_millisecond(1_763_000_000_123).unwrap();
        assert_eq!(time_in_id(&timed_id(now)), Some(1_763_000_000_123_000_000));
        assert_eq!(time_in_id(&random_id()), None);
        assert_eq!(time_in_id(&SessionId::new("short").unwrap()), None);
        assert_eq!(time_in_id(&SessionId::new("zzzzzzzz-zzzz-7zzz-zzzz-zzzzzzzzzzzz").unwrap()), None);
    }
}
