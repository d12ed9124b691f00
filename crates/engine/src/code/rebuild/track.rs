//! One file through a session: what was recorded of it up to the end of a turn, and what bears that out later.
//!
//! What people do to a file is not recorded, so a content counts as known only between two records that agree: what the file
//! held last before the end of the turn, and what it held when it was next seen, at the latest now.

use agents::{FileEdit, Sight, Touch};

use super::content::Content;

/// How a content is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Basis {
    /// The file was seen or written as a whole.
    Seen,
    /// The commit has it.
    Committed,
    /// It follows from earlier contents by edits that applied cleanly.
    Computed,
}

/// What became of the question whether the content at the end of the turn is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// Nothing has been recorded of the file since.
    Open,
    /// A later record agrees.
    Agreed,
    /// A later record disagrees; then the file held this.
    Disagreed(Content),
    /// The file was overwritten, and what it held before is not recorded.
    Lost,
}

/// A file at the end of a turn.
#[derive(Debug, Clone)]
pub(super) struct AtEnd {
    pub content: Content,
    pub basis: Basis,
    /// When that was known, as a position among all events.
    pub since: usize,
    /// The turn in which that was.
    pub turn: u32,
    pub answer: Confirmation,
    /// When it was answered.
    pub answered: Option<usize>,
    /// What the file should hold now.
    pub expected: Content,
    /// Whether that is computed.
    pub is_computed: bool,
    /// Changes since, where the content is not known.
    later: Vec<FileEdit>,
}

/// A file, event by event.
#[derive(Debug, Clone)]
pub(super) struct Track {
    content: Content,
    basis: Basis,
    since: usize,
    turn: u32,
    /// Whether the session did anything with it up to the end of the turn.
    pub is_touched: bool,
    end: Option<AtEnd>,
}

impl Track {
    /// A file as it was committed, before anything was recorded of it.
    pub(super) fn committed(content: Content) -> Self {
        Track { content, basis: Basis::Committed, since: 0, turn: 0, is_touched: false, end: None }
    }

    /// The end of the turn has come.
    pub(super) fn end_turn(&mut self) {
        self.end = Some(AtEnd {
            content: self.content.clone(),
            basis: self.basis,
            since: self.since,
            turn: self.turn,
            answer: Confirmation::Open,
            answered: None,
            expected: self.content.clone(),
            is_computed: self.basis == Basis::Computed,
            later: Vec::new(),
        });
    }

    /// What it was at the end of the turn; the end must have come.
    pub(super) fn at_end(mut self) -> AtEnd {
        if self.end.is_none() {
            self.end_turn();
        }
        self.end.expect("the turn has ended")
    }

    /// The file was seen or changed.
    pub(super) fn touch(&mut self, touch: &Touch, at: usize, turn: u32) {
        if let Some(end) = &mut self.end {
            end.touch(touch, at);
            return;
        }
        self.is_touched |= touch.change != FileEdit::Nothing;
        if let Some(sight) = &touch.before {
            self.see(sight, at, turn);
        }
        if touch.change == FileEdit::Nothing {
            return;
        }
        self.content = self.content.changed(&touch.change);
        (self.since, self.turn) = (at, turn);
        self.basis = match (&touch.change, &touch.before) {
            (FileEdit::Whole { .. } | FileEdit::Deleted, _) | (_, Some(_)) => Basis::Seen,
            _ => Basis::Computed,
        };
    }

    /// It was moved here from a file with this content.
    pub(super) fn receive(&mut self, content: Content, basis: Basis, at: usize, turn: u32) {
        match &mut self.end {
            Some(end) => end.lose(at),
            None => {
                (self.content, self.basis, self.since, self.turn) = (content, basis, at, turn);
                self.is_touched = true;
            }
        }
    }

    /// What it is believed to hold at this point of the session.
    pub(super) fn now(&self) -> (Content, Basis) {
        match &self.end {
            Some(end) => (end.expected.clone(), Basis::Computed),
            None => (self.content.clone(), self.basis),
        }
    }

    fn see(&mut self, sight: &Sight, at: usize, turn: u32) {
        if self.content.agrees(sight) != Some(true) {
            self.content = self.content.seen(sight);
        } else if let Sight::Copy(_) = sight {
            self.content = self.content.seen(sight);
        }
        self.basis = if self.content == Content::Unknown { Basis::Computed } else { Basis::Seen };
        (self.since, self.turn) = (at, turn);
    }
}

impl AtEnd {
    fn touch(&mut self, touch: &Touch, at: usize) {
        if self.answer != Confirmation::Open {
            return;
        }
        if let Some(sight) = &touch.before {
            match self.expected.agrees(sight) {
                Some(true) => return self.settle(Confirmation::Agreed, at),
                Some(false) => {
                    let seen = self.expected.seen(sight);
                    return self.settle(Confirmation::Disagreed(seen), at);
                }
                None if self.expected == Content::Unknown => {
                    // Back from what was seen to what it was.
                    let seen = self.expected.seen(sight);
                    let back = self.later.iter().rev().fold(seen, |content, change| content.before(change));
                    return self.settle(Confirmation::Disagreed(back), at);
                }
                None => {}
            }
        }
        match &touch.change {
            FileEdit::Nothing => {}
            FileEdit::Whole { .. } | FileEdit::Deleted | FileEdit::Unknown => self.lose(at),
            change if self.expected == Content::Unknown => self.later.push(change.clone()),
            change => {
                let next = self.expected.changed(change);
                if next == Content::Unknown {
                    // The file was not what it should have been.
                    return self.settle(Confirmation::Disagreed(Content::Unknown), at);
                }
                self.later.push(change.clone());
                self.expected = next;
                self.is_computed = true;
            }
        }
    }

    fn lose(&mut self, at: usize) {
        if self.answer == Confirmation::Open {
            self.settle(Confirmation::Lost, at);
        }
    }

    fn settle(&mut self, answer: Confirmation, at: usize) {
        self.answer = answer;
        self.answered = Some(at);
    }

    /// The file as it is now bears the content out, or not.
    pub(super) fn compare_with_present(&mut self, present: &Content) {
        if self.answer != Confirmation::Open {
            return;
        }
        self.answer = match (&self.expected, present) {
            (_, Content::Unknown) => Confirmation::Lost,
            (Content::Unknown, present) => {
                let back = self.later.iter().rev().fold(present.clone(), |content, change| content.before(change));
                Confirmation::Disagreed(back)
            }
            (expected, present) if expected == present => Confirmation::Agreed,
            (_, present) if self.later.is_empty() => Confirmation::Disagreed(present.clone()),
            _ => Confirmation::Disagreed(Content::Unknown),
        };
    }
}

#[cfg(test)]
mod tests {
    use agents::Hunk;

    use super::*;

    fn text(text: &str) -> Content {
        Content::of(text.as_bytes().to_vec())
    }

    fn write(before: Option<&str>, after: &str) -> Touch {
        touch(before, FileEdit::Whole { text: after.into(), keeps_ends: false })
    }

    fn touch(before: Option<&str>, change: FileEdit) -> Touch {
        let before = before.map(|before| Sight::Text(before.into()));
        Touch { path: "a".into(), before, change, moved_to: None }
    }

    fn hunk(old: &str, new: &str) -> FileEdit {
        FileEdit::Hunks(vec![Hunk { start: 1, old: vec![old.into()], new: vec![new.into()] }])
    }

    /// The content, how it is known, and what became of it, with events before and after the end of the turn.
    fn check(before: &[Touch], after: &[Touch], present: &str, expected: (&str, Basis, Confirmation)) {
        let mut track = Track::committed(text("0\n"));
        before.iter().enumerate().for_each(|(at, touch)| track.touch(touch, at + 1, 1));
        track.end_turn();
        after.iter().enumerate().for_each(|(at, touch)| track.touch(touch, at + 10, 2));
        let mut end = track.at_end();
        end.compare_with_present(&text(present));
        assert_eq!(
            (end.content, end.basis, end.answer),
            (text(expected.0), expected.1, expected.2),
            "{before:?} {after:?}"
        );
    }

    #[test]
    fn what_was_written_is_borne_out_by_what_is_seen_next() {
        use Basis::{Committed, Computed, Seen};
        use Confirmation::{Agreed, Disagreed, Lost};
        check(&[], &[], "0\n", ("0\n", Committed, Agreed));
        check(&[], &[write(Some("0\n"), "1\n")], "x", ("0\n", Committed, Agreed));
        check(&[write(Some("0\n"), "1\n")], &[], "1\n", ("1\n", Seen, Agreed));
        check(&[write(Some("0\n"), "1\n")], &[], "2\n", ("1\n", Seen, Disagreed(text("2\n"))));
        check(&[write(Some("0\n"), "1\n")], &[write(Some("1\n"), "2\n")], "9", ("1\n", Seen, Agreed));
        check(
            &[write(Some("0\n"), "1\n")],
            &[write(Some("person\n"), "2\n")],
            "2\n",
            ("1\n", Seen, Disagreed(text("person\n"))),
        );
        // Edits of which only the difference is known.
        check(&[touch(None, hunk("0\n", "1\n"))], &[touch(None, hunk("1\n", "2\n"))], "2\n", ("1\n", Computed, Agreed));
        check(
            &[touch(None, hunk("0\n", "1\n"))],
            &[touch(None, hunk("x\n", "2\n"))],
            "2\n",
            ("1\n", Computed, Disagreed(Content::Unknown)),
        );
        check(&[touch(None, hunk("0\n", "1\n"))], &[write(None, "2\n")], "2\n", ("1\n", Computed, Lost));
    }
}
