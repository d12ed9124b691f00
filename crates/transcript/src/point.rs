//! Points in a session: `SESSION@N` is the point after turn N is complete, `SESSION@-1` leaves out the last turn. `SESSION@ID`
//! is another branch of the session, named by hexadecimal digits and dashes, usually the beginning of the id of its last record,
//! and `SESSION@ID@N` a point in it.

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
    /// The text after the `@` is not a number.
    #[error("`@{}` is not a turn", crate::text::one_line(.0))]
    NotATurn(String),
    /// The session has fewer turns than that.
    #[error("turn {asked} not found")]
    OutOfRange {
        /// The turn, as written.
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

/// A session, perhaps another branch of it, and a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec<'a> {
    /// The session.
    pub session: &'a str,
    /// The beginning of the branch's name.
    pub branch: Option<&'a str>,
    /// The point.
    pub at: At,
}

/// Splits `SESSION[@BRANCH][@TURN]` into its parts.
pub fn parse_spec(spec: &str) -> Result<Spec<'_>, PointError> {
    if let Some((session, branch)) = split_branch(spec) {
        return Ok(Spec { session, branch: Some(branch), at: At::End });
    }
    let (session, at) = parse_turn(spec)?;
    match split_branch(session).filter(|_| at != At::End) {
        Some((session, branch)) => Ok(Spec { session, branch: Some(branch), at }),
        None => Ok(Spec { session, branch: None, at }),
    }
}

/// Splits off a branch: at least four digits and dashes of a UUID, which are not all decimal digits, as those of a turn.
fn split_branch(spec: &str) -> Option<(&str, &str)> {
    let (session, branch) = spec.rsplit_once('@')?;
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let digits = branch.trim_start_matches('-');
    let is_branch = branch.len() >= 4
        && branch.bytes().all(is_hex)
        && branch.starts_with(|first: char| first.is_ascii_hexdigit())
        && !digits.bytes().all(|byte| byte.is_ascii_digit());
    // A path may hold an `@`.
    let is_session = !session.contains('/') || session.ends_with(".jsonl");
    (is_branch && is_session).then_some((session, branch))
}

/// Splits `SESSION[@TURN]` into its two parts.
///
/// The last `@` counts, and only if something that looks like a number follows it, so that a path with an `@` in
/// it stays a path.
fn parse_turn(spec: &str) -> Result<(&str, At), PointError> {
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
        let check = |spec: &str, session: &str, at: At| {
            assert_eq!(parse_spec(spec), Ok(Spec { session, branch: None, at }), "{spec}");
        };
        let on_branch = |spec: &str, session: &str, branch: &str, at: At| {
            assert_eq!(parse_spec(spec), Ok(Spec { session, branch: Some(branch), at }), "{spec}");
        };
        on_branch("auth@1f3a", "auth", "1f3a", At::End);
        on_branch("auth@1f3a5b6c-0000@2", "auth", "1f3a5b6c-0000", At::Turn(2));
        on_branch("auth@12345678-@-1", "auth", "12345678-", At::BeforeLast(1));
        on_branch("/home/a@b/x.jsonl@beef", "/home/a@b/x.jsonl", "beef", At::End);
        check("/home/a@beef", "/home/a@beef", At::End);
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
