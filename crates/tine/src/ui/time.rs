//! Times as people say them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
pub(crate) use transcript::text::short_age;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How long ago, in words, with the time itself.
pub(crate) fn ago(time: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let seconds = now.as_second() - time.as_second();
    let exact = time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M");
    let many = |number: i64, word: &str| super::count(number.unsigned_abs(), word);
    let relative = match seconds {
        ..MINUTE => return format!("just now ({exact})"),
        MINUTE..HOUR => many(seconds / MINUTE, "minute"),
        HOUR..DAY => many(seconds / HOUR, "hour"),
        _ if seconds < 60 * DAY => many(seconds / DAY, "day"),
        _ => return exact.to_string(),
    };
    format!("{relative} ago ({exact})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let check = |time: &str, expected: &str| {
            assert_eq!(short_age(time.parse().unwrap(), now, &TimeZone::UTC), expected, "{time}");
        };
        check("2026-11-15T12:00:30Z", "now");
        check("2026-11-15T11:59:30Z", "now");
        check("2026-11-15T11:58:00Z", "2m");
        check("2026-11-15T09:10:00Z", "2h");
        check("2026-11-13T12:00:00Z", "2d");
        check("2026-01-02T00:00:00Z", "2026-01-02");
        let long = ago("2026-11-15T11:59:00Z".parse().unwrap(), now, &TimeZone::UTC);
        assert_eq!(long, "1 minute ago (2026-11-15 11:59)");
    }
}
