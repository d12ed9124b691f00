//! Changes some values of a JSON line and keeps every other byte.
//!
//! A copy of a session contains records that tine does not know. They are never parsed and reserialized: only the
//! values that must change are replaced. The spans between them are copied and sealed ([`Seal`]). When the copy is read
//! back, the same code splits its records at the same places: the copied spans must give the same seal, and the
//! replaced values must be the expected ones.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use memchr::memmem::Finder;
use xxhash_rust::xxh3::Xxh3Default;

use crate::fields::Raw;
use crate::seal::Seal;

/// How much of a long line is processed at once.
const BLOCK: usize = 32 << 10;
/// How much is gathered before it is written.
const GATHERED: usize = crate::follow::BLOCK;

/// One line, held or too long for that.
pub(crate) enum Text<'a> {
    Held(&'a [u8]),
    Long {
        len: u64,
        /// Opens the part of the line between two offsets.
        open: &'a dyn Fn(u64, u64) -> io::Result<Box<dyn Read + 'a>>,
    },
}

/// A value that is another one in the copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Where the value begins and ends in its line.
    pub start: u64,
    pub end: u64,
    /// How many bytes before it belong to it: a field that may be missing counts from its comma.
    pub lead: u64,
    /// Which of the new values takes its place.
    pub new: usize,
    /// Whether the new value is sealed, because a reader can't know what it should be.
    pub sealed: bool,
}

/// Writes a copy, or reads one back.
pub(crate) struct Rewrite<'a> {
    /// The copy's own values, as JSON.
    pub values: Vec<Vec<u8>>,
    /// What changes in the next record, in any order; it must not overlap.
    pub changes: Vec<Change>,
    pub seal: Seal,
    /// Which value was not what it should be when the copy was read back.
    pub wrong: Option<usize>,
    out: Option<&'a mut dyn Write>,
    block: Vec<u8>,
    written: u64,
    mark: Option<Replacement>,
}

/// A text that is replaced everywhere.
struct Replacement {
    finder: Finder<'static>,
    new: Vec<u8>,
}

impl<'a> Rewrite<'a> {
    /// Writes to `out`. Each occurrence of the first text of `mark` in the source is replaced by the second.
    pub(crate) fn to(out: &'a mut dyn Write, values: Vec<Vec<u8>>, mark: Option<(Vec<u8>, Vec<u8>)>) -> Self {
        let mark = mark.map(|(old, new)| Replacement { finder: Finder::new(&old).into_owned(), new });
        Rewrite { out: Some(out), mark, ..Rewrite::checking(values, None) }
    }

    /// Reads back what [`Rewrite::to`] wrote.
    pub(crate) fn checking(values: Vec<Vec<u8>>, mark: Option<(Vec<u8>, Vec<u8>)>) -> Self {
        let mark = mark.map(|(_, new)| Replacement { finder: Finder::new(&new).into_owned(), new });
        Rewrite {
            values,
            changes: Vec::new(),
            seal: Seal::default(),
            wrong: None,
            out: None,
            block: Vec::new(),
            written: 0,
            mark,
        }
    }

    /// Marks `value`, a part of `line`, for replacement.
    pub(crate) fn replace(&mut self, line: &[u8], value: Raw<'_>, new: usize) {
        let start = value.0.as_ptr().addr() - line.as_ptr().addr();
        debug_assert!(start + value.0.len() <= line.len());
        self.changes.push(Change {
            start: start as u64,
            end: (start + value.0.len()) as u64,
            new,
            ..Change::default()
        });
    }

    /// Writes a line that is the copy's own and no record of its source.
    pub(crate) fn own_line(&mut self, line: &[u8]) {
        self.block.extend_from_slice(line);
        self.block.push(b'\n');
    }

    /// Takes the next record, with its changes.
    pub(crate) fn record(&mut self, text: &Text<'_>) -> io::Result<()> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_unstable_by_key(|change| change.start);
        let mut at = 0;
        for change in &changes {
            self.carry(text, at, change.start - change.lead)?;
            match &mut self.out {
                Some(_) => {
                    self.lead(text, change)?;
                    self.block.extend_from_slice(&self.values[change.new]);
                    if change.sealed {
                        self.seal.stretch(&self.values[change.new]);
                    }
                }
                None if change.sealed => {
                    let value = value_of(text, change, u64::MAX)?;
                    self.seal.stretch(&value);
                }
                None if !is_equal(text, change, &self.values[change.new])? => {
                    self.wrong.get_or_insert(change.new);
                }
                None => {}
            }
            at = change.end;
        }
        let len = match text {
            Text::Held(bytes) => bytes.len() as u64,
            Text::Long { len, .. } => *len,
        };
        self.carry(text, at, len)?;
        self.seal.end_record();
        changes.clear();
        self.changes = changes;
        if self.out.is_some() {
            self.block.push(b'\n');
            self.write_blocks()?;
        }
        Ok(())
    }

    /// Writes the rest and returns the total number of bytes.
    pub(crate) fn finish(&mut self) -> io::Result<u64> {
        if let Some(out) = &mut self.out {
            out.write_all(&self.block)?;
            self.written += self.block.len() as u64;
            self.block.clear();
        }
        Ok(self.written)
    }

    /// Writes whole blocks of what was gathered. The rest stays, so that blocks lie at multiples of their size.
    fn write_blocks(&mut self) -> io::Result<()> {
        let whole = self.block.len() - self.block.len() % GATHERED;
        if let Some(out) = self.out.as_mut().filter(|_| whole > 0) {
            out.write_all(&self.block[..whole])?;
            self.written += whole as u64;
            self.block.drain(..whole);
        }
        Ok(())
    }

    fn lead(&mut self, text: &Text<'_>, change: &Change) -> io::Result<()> {
        let (from, to) = (change.start - change.lead, change.start);
        match text {
            Text::Held(bytes) => self.block.extend_from_slice(&bytes[from as usize..to as usize]),
            Text::Long { open, .. } => {
                open(from, to)?.read_to_end(&mut self.block)?;
            }
        }
        Ok(())
    }

    /// Copies the span between two changes.
    fn carry(&mut self, text: &Text<'_>, from: u64, to: u64) -> io::Result<()> {
        match text {
            Text::Held(bytes) => self.carry_held(&bytes[from as usize..to as usize]),
            Text::Long { open, .. } => return self.carry_long(open(from, to)?),
        }
        Ok(())
    }

    fn carry_held(&mut self, mut bytes: &[u8]) {
        if let Some(mark) = &self.mark {
            while let Some(found) = mark.finder.find(bytes) {
                self.seal.stretch(&bytes[..found]);
                if self.out.is_some() {
                    self.block.extend_from_slice(&bytes[..found]);
                    self.block.extend_from_slice(&mark.new);
                }
                bytes = &bytes[found + mark.finder.needle().len()..];
            }
        }
        self.seal.stretch(bytes);
        if self.out.is_some() {
            self.block.extend_from_slice(bytes);
        }
    }

    fn carry_long(&mut self, mut reader: impl Read) -> io::Result<()> {
        let mut stretch = Xxh3Default::new();
        // A mark may lie across two reads, so its length is kept back from each.
        let kept_back = self.mark.as_ref().map_or(0, |mark| mark.finder.needle().len() - 1);
        let mut window: Vec<u8> = Vec::with_capacity(BLOCK + kept_back);
        loop {
            let before = window.len();
            (&mut reader).take(BLOCK as u64).read_to_end(&mut window)?;
            let ended = window.len() == before;
            let mut done = 0;
            while let Some(mark) = &self.mark
                && let Some(found) = mark.finder.find(&window[done..])
            {
                stretch.update(&window[done..done + found]);
                self.seal.digest(stretch.digest());
                stretch.reset();
                if self.out.is_some() {
                    self.block.extend_from_slice(&window[done..done + found]);
                    self.block.extend_from_slice(&mark.new);
                }
                done += found + mark.finder.needle().len();
            }
            let safe = if ended { window.len() } else { window.len().saturating_sub(kept_back).max(done) };
            stretch.update(&window[done..safe]);
            if self.out.is_some() {
                self.block.extend_from_slice(&window[done..safe]);
                self.write_blocks()?;
            }
            window.drain(..safe);
            if ended {
                self.seal.digest(stretch.digest());
                return Ok(());
            }
        }
    }
}

fn is_equal(text: &Text<'_>, change: &Change, expected: &[u8]) -> io::Result<bool> {
    Ok(*value_of(text, change, expected.len() as u64 + 1)? == *expected)
}

/// The value at the position of a change, or the first part of a long one.
fn value_of<'a>(text: &Text<'a>, change: &Change, most: u64) -> io::Result<Cow<'a, [u8]>> {
    match text {
        Text::Held(bytes) => Ok(Cow::Borrowed(&bytes[change.start as usize..change.end as usize])),
        Text::Long { open, .. } => {
            let mut found = Vec::new();
            open(change.start, change.end)?.take(most).read_to_end(&mut found)?;
            Ok(Cow::Owned(found))
        }
    }
}

/// A JSON string.
pub(crate) fn string(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] =
        br#"{ "a": {"sessionId":"old"}, "sessionId" :"old","p":"/s/old/x /s/old/ /s/older/","n":1.50 }"#;

    /// Rewrites the line, held or long, and returns what was written and its seal.
    fn rewritten(long: bool) -> (String, Seal) {
        let mut out = Vec::new();
        let mark = Some((b"/s/old/".to_vec(), b"/s/newer/".to_vec()));
        let mut rewrite = Rewrite::to(&mut out, vec![string("new \"id\"")], mark);
        rewrite.replace(LINE, Raw(LINE).get(b"sessionId").unwrap(), 0);
        take(&mut rewrite, LINE, long);
        rewrite.finish().unwrap();
        let seal = rewrite.seal;
        (String::from_utf8(out).unwrap(), seal)
    }

    fn take(rewrite: &mut Rewrite<'_>, line: &[u8], long: bool) {
        let open =
            |from: u64, to: u64| -> io::Result<Box<dyn Read + '_>> { Ok(Box::new(&line[from as usize..to as usize])) };
        let text = if long { Text::Long { len: line.len() as u64, open: &open } } else { Text::Held(line) };
        rewrite.record(&text).unwrap();
    }

    #[test]
    fn only_the_named_values_change() {
        let expected =
            r#"{ "a": {"sessionId":"old"}, "sessionId" :"new \"id\"","p":"/s/newer/x /s/newer/ /s/older/","n":1.50 }"#;
        let (held, seal) = rewritten(false);
        assert_eq!(held, format!("{expected}\n"));
        assert_eq!(rewritten(true), (held, seal));
    }

    #[test]
    fn what_was_written_is_recognised() {
        let (copy, seal) = rewritten(false);
        let read = |copy: &str, long: bool| {
            let line = copy.trim_end().as_bytes();
            let mark = Some((b"/s/old/".to_vec(), b"/s/newer/".to_vec()));
            let mut rewrite = Rewrite::checking(vec![string("new \"id\"")], mark);
            rewrite.replace(line, Raw(line).get(b"sessionId").unwrap(), 0);
            take(&mut rewrite, line, long);
            (rewrite.seal == seal, rewrite.wrong)
        };
        for long in [false, true] {
            assert_eq!(read(&copy, long), (true, None));
            assert_eq!(read(&copy.replace("1.50", "1.51"), long), (false, None));
            assert_eq!(read(&copy.replace("/s/newer/x", "/s/old/x"), long), (false, None));
            assert_eq!(read(&copy.replace("new \\\"id\\\"", "old"), long), (true, Some(0)));
        }
    }
}
