//! The commit that was checked out at a time, from the repository's own log of that.

use std::fs;
use std::path::Path;

use agents::Adapter;
use jiff::Timestamp;

use crate::workspace::git::Git;

/// What was checked out when, in one working tree.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// From when on, and the commit before and after, oldest first.
    moves: Vec<(i64, String, String)>,
    /// The commit that the session names.
    named: Option<String>,
    /// The commit that is checked out now.
    now: Option<String>,
}

impl Heads {
    /// Reads the log of the working tree around `directory`. A session names the commit that it began at.
    pub(super) fn read(git: &Git, directory: &Path, adapter: &dyn Adapter, transcript: &Path) -> Self {
        let log = git.head_log(directory).and_then(|path| fs::read(path).ok()).unwrap_or_default();
        let moves = log.split(|byte| *byte == b'\n').filter_map(parse).collect();
        let named = adapter.starting_commits(transcript).into_iter();
        let named = named.rev().find(|commit| git.has_commits(directory, std::slice::from_ref(commit)));
        Heads { moves, named, now: git.head(directory).ok() }
    }

    /// The commit at a time, and the one before it, if that was still checked out in the same second.
    pub(super) fn around(&self, time: Option<Timestamp>) -> (Option<&str>, Option<&str>) {
        let same = |since: i64| time.is_some_and(|time| time.as_second() == since);
        let first = self.moves.iter().find(|(since, ..)| same(*since));
        (self.at(time), first.map(|(_, before, _)| before.as_str()).filter(|before| is_some(before)))
    }

    /// The commit at a time.
    pub(super) fn at(&self, time: Option<Timestamp>) -> Option<&str> {
        let Some(time) = time.map(Timestamp::as_second) else { return self.named.as_deref().or(self.now.as_deref()) };
        match self.moves.iter().rev().find(|(since, ..)| *since <= time) {
            Some((_, _, commit)) => Some(commit.as_str()).filter(|commit| is_some(commit)),
            None => match self.moves.first() {
                Some((_, before, _)) if is_some(before) => Some(before.as_str()),
                // The repository was cloned later, or had no commit.
                Some(_) => self.named.as_deref(),
                None => self.named.as_deref().or(self.now.as_deref()),
            },
        }
    }
}

fn is_some(commit: &str) -> bool {
    commit.bytes().any(|digit| digit != b'0')
}

fn parse(line: &[u8]) -> Option<(i64, String, String)> {
    let line = String::from_utf8_lossy(line);
    let (head, _) = line.split_once('\t').unwrap_or((&line, ""));
    let (before, rest) = head.split_once(' ')?;
    let (after, who) = rest.split_once(' ')?;
    let seconds = who.rsplit_once("> ")?.1.split(' ').next()?;
    Some((seconds.parse().ok()?, before.to_owned(), after.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_what_was_checked_out() {
        let line = |from: &str, to: &str, time: i64| format!("{from} {to} A <a@x> {time} +0100\tcommit: > x");
        let zero = "0".repeat(40);
        let heads = |lines: &[String]| Heads {
            moves: lines.iter().filter_map(|line| parse(line.as_bytes())).collect(),
            named: None,
            now: Some("other".into()),
        };
        let check = |heads: &Heads, time: i64, expected: Option<&str>| {
            assert_eq!(heads.at(Timestamp::from_second(time).ok()), expected, "{time}");
        };
        let whole = heads(&[line(&zero, "a", 10), line("a", "b", 20), "damaged".into(), line("b", "c", 20)]);
        check(&whole, 5, None);
        check(&whole, 15, Some("a"));
        check(&whole, 20, Some("c"));
        let cut = heads(&[line("a", "b", 20)]);
        check(&cut, 5, Some("a"));
        check(&heads(&[]), 5, Some("other"));
        assert_eq!(cut.at(None), Some("other"));
    }
}
