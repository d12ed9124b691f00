//! Points in a session: `SESSION@N` is the point after turn N is complete, `SESSION@-1` leaves out the last turn.

use std::fmt;

/// A place in a session's history at which it can be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After everything.
    End,
    /// After turn N is complete, counted from 1.
    Turn(u32),
    /// Without the last N turns.
    BeforeLast(u32),
}

/// A point that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// What stands behind the `@` is not a number.
    #[error("`@{}` is not a turn", crate::text::one_line(.0))]
    NotATurn(String),
    /// The session has fewer turns than that.
    #[error("there is no turn {asked}")]
    OutOfRange {
        /// What was asked for, as it was written.
        asked: String,
        /// How many turns there are.
        turns: u32,
    },
}

impl At {
    /// How many turns are kept of a session that has `turns`.
    pub fn resolve(self, turns: u32) -> Result<u32, PointError> {
        let kept = match self {
            At::End => Some(turns),
            At::Turn(number) => (1..=turns).contains(&number).then_some(number),
            At::BeforeLast(count) => turns.checked_sub(count).filter(|kept| *kept > 0),
        };
        kept.ok_or_else(|| PointError::OutOfRange { asked: self.to_string(), turns })
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::End => f.write_str("end"),
            At::Turn(number) => write!(f, "{number}"),
            At::BeforeLast(count) => write!(f, "-{count}"),
        }
    }
}

/// Splits `SESSION[@TURN]` into its two parts.
///
/// The last `@` counts, and only if something that looks like a number follows it, so that a path with an `@` in
/// it stays a path.
pub fn parse_spec(spec: &str) -> Result<(&str, At), PointError> {
    let Some((session, turn)) = spec.rsplit_once('@') else {
        return Ok((spec, At::End));
    };
    let digits = turn.strip_prefix('-').unwrap_or(turn);
    let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !numeric {
        // A path may hold an `@`; a name or an id cannot, so there it is a mistyped turn.
        return if spec.contains('/') { Ok((spec, At::End)) } else { Err(PointError::NotATurn(turn.to_owned())) };
    }
    let number: u32 = digits.parse().map_err(|_| PointError::NotATurn(turn.to_owned()))?;
    let at = if turn.starts_with('-') { At::BeforeLast(number) } else { At::Turn(number) };
    Ok((session, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_split_at_the_turn() {
        let check = |spec: &str, session: &str, at: At| assert_eq!(parse_spec(spec), Ok((session, at)), "{spec}");
        check("auth", "auth", At::End);
        check("auth@3", "auth", At::Turn(3));
        check("auth@-1", "auth", At::BeforeLast(1));
        check(".@2", ".", At::Turn(2));
        check("-@-2", "-", At::BeforeLast(2));
        check("/home/a@b/x.jsonl", "/home/a@b/x.jsonl", At::End);
        check("/home/a@b/x.jsonl@7", "/home/a@b/x.jsonl", At::Turn(7));
        for bad in ["auth@", "auth@x", "auth@1.5", "auth@99999999999"] {
            assert!(parse_spec(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn points_outside_the_session_are_refused() {
        let check = |at: At, turns: u32, kept: Option<u32>| assert_eq!(at.resolve(turns).ok(), kept, "{at} of {turns}");
        check(At::End, 0, Some(0));
        check(At::End, 5, Some(5));
        check(At::Turn(5), 5, Some(5));
        check(At::Turn(6), 5, None);
        check(At::Turn(0), 5, None);
        check(At::BeforeLast(1), 5, Some(4));
        check(At::BeforeLast(5), 5, None);
        check(At::BeforeLast(9), 5, None);
    }
}
