//! The filters of a query, and the times in them.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use transcript::Agent;

use super::Query;
use crate::ctx::Ctx;

/// Filters on sessions and turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Only sessions of this agent.
    pub agent: Option<Agent>,
    /// Only sessions of the project that contains this directory.
    pub directory: Option<PathBuf>,
    /// Only turns at or after this time.
    pub since: Option<Timestamp>,
    /// Only turns before this time.
    pub until: Option<Timestamp>,
    /// Only sessions on this branch.
    pub branch: Option<String>,
    /// Only turns that touched this file: the end of a path.
    pub file: Option<String>,
    /// Only turns that used this tool.
    pub tool: Option<String>,
}

impl Limits {
    /// These filters, and `other` for those that are missing.
    pub fn or(self, other: Limits) -> Limits {
        Limits {
            agent: self.agent.or(other.agent),
            directory: self.directory.or(other.directory),
            since: self.since.or(other.since),
            until: self.until.or(other.until),
            branch: self.branch.or(other.branch),
            file: self.file.or(other.file),
            tool: self.tool.or(other.tool),
        }
    }

    /// Whether any filter is set.
    pub(crate) fn is_any_set(&self) -> bool {
        let Limits { agent, directory, since, until, branch, file, tool } = self;
        agent.is_some()
            || directory.is_some()
            || since.is_some()
            || until.is_some()
            || branch.is_some()
            || file.is_some()
            || tool.is_some()
    }

    /// Whether a filter needs the index.
    pub(crate) fn narrow_turns(&self) -> bool {
        self.file.is_some() || self.tool.is_some()
    }
}

/// The reference for times in a query.
#[derive(Debug, Clone)]
pub struct Now {
    /// The time.
    pub time: Timestamp,
    /// The user's time zone.
    pub zone: TimeZone,
}

/// The filters of the query and of the options. A directory in a query is relative to the user's directory, and `~` is
/// their home.
pub(crate) fn resolved(ctx: &Ctx, query: &Query, given: &Limits) -> Limits {
    let mut limits = query.limits.clone();
    let context = ctx.context();
    limits.directory = limits.directory.map(|directory| match directory.strip_prefix("~") {
        Ok(inside) => context.surroundings.home.join(inside),
        Err(_) => context.cwd.join(directory),
    });
    limits.or(given.clone())
}

/// Parses a time: `2w` ago, a date, or a date and a time.
pub fn time(value: &str, now: &Now) -> std::result::Result<Timestamp, String> {
    let wrong = || format!("invalid time `{value}`; use `3d`, `2w`, `12h` or `2026-11-01`");
    let zoned = now.time.to_zoned(now.zone.clone());
    let start_of = |date: jiff::civil::Date| {
        let day = date.to_zoned(now.zone.clone()).map_err(|_| wrong())?;
        Ok(day.timestamp())
    };
    match value {
        "today" => return start_of(zoned.date()),
        "yesterday" => return start_of(zoned.date().yesterday().map_err(|_| wrong())?),
        _ => {}
    }
    if let Ok(time) = value.parse::<Timestamp>() {
        return Ok(time);
    }
    if value.contains(['T', ' '])
        && let Ok(time) = value.parse::<jiff::civil::DateTime>()
    {
        return time.to_zoned(now.zone.clone()).map(|time| time.timestamp()).map_err(|_| wrong());
    }
    if let Ok(date) = value.parse::<jiff::civil::Date>() {
        return start_of(date);
    }
    let split = value.len() - value.chars().next_back().map_or(0, char::len_utf8);
    let (number, unit) = value.split_at(split);
    let number: i64 = number.parse().map_err(|_| wrong())?;
    if !(0..=10_000).contains(&number) {
        return Err(wrong());
    }
    let span = match unit {
        "m" => number.minutes(),
        "h" => number.hours(),
        "d" => number.days(),
        "w" => number.weeks(),
        "y" => (number * 365).days(),
        _ => return Err(wrong()),
    };
    zoned.checked_sub(span).map(|time| time.timestamp()).map_err(|_| wrong())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn now() -> Now {
        Now { time: "2026-11-15T12:00:00Z".parse().unwrap(), zone: TimeZone::UTC }
    }

    #[test]
    fn times_are_read_as_people_say_them() {
        let check = |value: &str, expected: &str| assert_eq!(time(value, &now()).unwrap().to_string(), expected);
        check("3d", "2026-11-12T12:00:00Z");
        check("12h", "2026-11-15T00:00:00Z");
        check("2026-11-01", "2026-11-01T00:00:00Z");
        check("yesterday", "2026-11-14T00:00:00Z");
        check("2026-11-01T10:00:00Z", "2026-11-01T10:00:00Z");
        check("2026-11-10T23:00", "2026-11-10T23:00:00Z");
        for wrong in ["", "x", "5", "d", "-3d", "9999999d", "2026-13-01", "3é"] {
            assert!(time(wrong, &now()).is_err(), "{wrong}");
        }
    }
}
