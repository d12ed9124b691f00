//! What a session did to files, in one form for all agents: what was written, what was seen, and which commands ran.
//!
//! The acts are those of the history that is read, in the order in which the agent recorded them, its subagents' included.
//! An agent that records nothing of the kind has none. Whether acts add up to a file is not decided here.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use jiff::Timestamp;

/// Something that a session did to a file, or that may have changed any file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAct {
    /// The turn during which it was recorded.
    pub turn: u32,
    /// 0 in the session itself, 1 in a subagent. A subagent's acts follow those of the session, whenever they happened.
    pub depth: u8,
    /// When it was done.
    pub at: Option<Timestamp>,
    /// The directory that relative paths start from.
    pub directory: Option<PathBuf>,
    /// What it was.
    pub act: Act,
}

/// What a session did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It saw or changed a file.
    Touch(Touch),
    /// It ran a command that may have changed files.
    Ran(Ran),
}

/// What happened to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The file.
    pub path: PathBuf,
    /// What it held before.
    pub before: Option<Sight>,
    /// What was done with it.
    pub change: FileEdit,
    /// Where it was moved to.
    pub moved_to: Option<PathBuf>,
}

/// What an agent recorded of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// There was no such file.
    Absent,
    /// Its text. The agent may have replaced its line ends by `\n` and dropped a byte order mark.
    Text(String),
    /// Its text without the final line break, if it had one.
    Unended(String),
    /// A copy of the file that the agent keeps.
    Copy(PathBuf),
}

/// What was done with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEdit {
    /// Nothing: it was read.
    Nothing,
    /// This became its text. `keeps_ends`: the agent gave it the line ends that the file had before.
    Whole {
        /// The text.
        text: String,
        /// Whether the agent gave it the line ends that the file had before.
        keeps_ends: bool,
    },
    /// Pieces of text were replaced, one after the other.
    Replaced(Vec<ReplacedText>),
    /// Lines were replaced.
    Hunks(Vec<Hunk>),
    /// It was deleted.
    Deleted,
    /// It was changed, and how is not recorded.
    Unknown,
}

/// A piece of text that was replaced by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedText {
    /// What was there.
    pub old: String,
    /// What took its place.
    pub new: String,
    /// Whether every occurrence was replaced.
    pub all: bool,
}

/// A part of a file before and after, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The first line before the change, counted from 1; 0 if there was none.
    pub start: usize,
    /// The lines that were there, each with its line break.
    pub old: Vec<String>,
    /// The lines that took their place.
    pub new: Vec<String>,
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The command line, or the name of a tool with its arguments.
    pub command: String,
    /// Whether the agent recorded all changes in the working tree that the command made.
    pub is_reported: bool,
}

/// The acts that a reader and the readers of its subagents have come across, if they were requested.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActSink(Option<Rc<RefCell<Vec<FileAct>>>>);

impl ActSink {
    pub(crate) fn new(is_wanted: bool) -> Self {
        ActSink(is_wanted.then(Rc::default))
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn push(&self, act: FileAct) {
        if let Some(acts) = &self.0 {
            acts.borrow_mut().push(act);
        }
    }

    pub(crate) fn take(&self) -> Vec<FileAct> {
        self.0.as_ref().map(|acts| acts.take()).unwrap_or_default()
    }
}

impl Touch {
    /// A file with something done to it.
    pub(crate) fn new(path: PathBuf, change: FileEdit) -> Self {
        Touch { path, before: None, change, moved_to: None }
    }

    /// How many lines it added and removed.
    pub fn lines(&self) -> (usize, usize) {
        let count = |text: &str| text.lines().count();
        match &self.change {
            FileEdit::Nothing | FileEdit::Unknown => (0, 0),
            FileEdit::Hunks(hunks) => hunks.iter().fold((0, 0), |(added, removed), hunk| {
                let (new, old) = hunk.changed();
                (added + new, removed + old)
            }),
            FileEdit::Replaced(replaced) => {
                let before = match &self.before {
                    Some(Sight::Text(text)) => text.as_str(),
                    _ => "",
                };
                replaced.iter().fold((0, 0), |(added, removed), piece| {
                    let times = if piece.all { before.matches(piece.old.as_str()).count().max(1) } else { 1 };
                    let (new, old) = changed_lines(&piece.old, &piece.new);
                    (added + times * new, removed + times * old)
                })
            }
            FileEdit::Whole { text, .. } => match &self.before {
                Some(Sight::Text(before)) => changed_lines(before, text),
                _ => (count(text), 0),
            },
            FileEdit::Deleted => match &self.before {
                Some(Sight::Text(before)) => (0, count(before)),
                _ => (0, 0),
            },
        }
    }
}

impl Hunk {
    /// A hunk from the lines of a patch, which begin with a blank, `-` or `+`.
    pub(crate) fn of_lines<'a>(start: usize, lines: impl Iterator<Item = &'a str>) -> Self {
        let mut hunk = Hunk { start, ..Hunk::default() };
        let mut last = [false, false];
        for line in lines {
            let (mark, text) = (line.as_bytes().first().copied(), line.get(1..).unwrap_or_default());
            if mark == Some(b'\\') {
                // `\ No newline at end of file` is about the line before it.
                for (side, is_last) in [&mut hunk.old, &mut hunk.new].into_iter().zip(last) {
                    if let Some(line) = side.last_mut().filter(|_| is_last) {
                        line.truncate(line.len() - 1);
                    }
                }
                continue;
            }
            last = [mark != Some(b'+'), mark != Some(b'-')];
            if last[0] {
                hunk.old.push(format!("{text}\n"));
            }
            if last[1] {
                hunk.new.push(format!("{text}\n"));
            }
        }
        hunk
    }

    /// How many of its lines are new, and how many were removed.
    pub fn changed(&self) -> (usize, usize) {
        let same = common(&self.old, &self.new);
        (self.new.len() - same, self.old.len() - same)
    }
}

/// How many lines differ, apart from what both texts begin and end with.
fn changed_lines(old: &str, new: &str) -> (usize, usize) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = common(&old, &new);
    (new.len() - same, old.len() - same)
}

/// How many elements two lists have in common, exactly for short ones and at both ends for long ones.
fn common<T: PartialEq>(old: &[T], new: &[T]) -> usize {
    const SHORT: usize = 1 << 20;
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    if old.is_empty() || new.is_empty() || old.len().saturating_mul(new.len()) > SHORT {
        return start + end;
    }
    // The longest common subsequence, row by row.
    let mut row = vec![0usize; new.len() + 1];
    for line in old {
        let mut diagonal = 0;
        for (at, other) in new.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if line == other { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    start + end + row[new.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_counted_as_in_a_diff() {
        let check = |old: &str, new: &str, expected: (usize, usize)| {
            assert_eq!(changed_lines(old, new), expected, "{old:?} {new:?}");
        };
        check("", "a\nb\n", (2, 0));
        check("a\nb\nc\n", "a\nB\nc\n", (1, 1));
        check("a\nb\nc\n", "x\na\nb\ny\nc\n", (2, 0));
        check("a\nb\nc\nd\n", "a\nd\n", (0, 2));
        check("same", "same", (0, 0));
        let whole = FileEdit::Whole { text: "1\n2\n".into(), keeps_ends: false };
        assert_eq!(Touch::new("x".into(), whole).lines(), (2, 0));
        let replaced = FileEdit::Replaced(vec![ReplacedText { old: "a".into(), new: "b\nc".into(), all: true }]);
        let touch = Touch { before: Some(Sight::Text("a\na\n".into())), ..Touch::new("x".into(), replaced) };
        assert_eq!(touch.lines(), (4, 2));
    }
}
