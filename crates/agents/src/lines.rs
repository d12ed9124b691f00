//! Reading a transcript line by line in bounded memory.
//!
//! Lines keep their byte offset, because tine refers to everything in a transcript by offset. A line of
//! [`LineReader::LONGEST`] or more is returned only by its position; callers stream the fields that they need.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use memchr::memchr;

/// One line of a file, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where it starts in the file.
    pub offset: u64,
    /// How long it is, without the line break.
    pub len: u64,
    /// Its bytes; `None` if it is too long.
    pub bytes: Option<&'a [u8]>,
    /// Whether a line break follows; a last line without one is still being written, or is incomplete.
    pub terminated: bool,
}

impl Line<'_> {
    /// Whether there is nothing but white space on it.
    pub fn is_blank(&self) -> bool {
        self.bytes.is_some_and(|bytes| bytes.iter().all(u8::is_ascii_whitespace))
    }
}

const CHUNK: usize = 256 << 10;
/// How much is read first by who begins in the middle of a file: often one turn is all that is wanted.
const FIRST: usize = 16 << 10;
/// See [`LineReader::LONGEST`].
pub(crate) const LONGEST: usize = 16 << 20;

thread_local! {
    /// The buffer of the last reader of this thread. A listing opens thousands of small files, and clearing a fresh
    /// buffer for each would cost more than reading them.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads lines from anything that can be read, counting offsets from a given start.
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The unread part of `buffer`.
    start: usize,
    end: usize,
    /// The file offset of `buffer[start]`.
    offset: u64,
    /// No byte at or after this offset is read.
    limit: u64,
    longest: usize,
    /// How much is read at a time; it grows.
    step: usize,
    ended: bool,
}

impl LineReader<File> {
    /// Opens `path` and reads from `from` up to `to`.
    pub fn open(path: &Path, from: u64, to: Option<u64>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if from > 0 {
            file.seek(SeekFrom::Start(from))?;
        }
        Ok(LineReader::new(file, from, to))
    }
}

impl<R> Drop for LineReader<R> {
    fn drop(&mut self) {
        // A buffer that grew for one long line is not kept.
        if self.buffer.len() <= 4 * CHUNK {
            SPARE.set(std::mem::take(&mut self.buffer));
        }
    }
}

impl<R: Read> LineReader<R> {
    /// Lines shorter than this are held in memory. Agents write pictures into lines, so some are megabytes long.
    pub const LONGEST: usize = LONGEST;

    /// Reads lines from `source`, whose first byte has the offset `from`, up to the offset `to`.
    pub fn new(source: R, from: u64, to: Option<u64>) -> Self {
        LineReader {
            source,
            buffer: SPARE.take(),
            start: 0,
            end: 0,
            offset: from,
            limit: to.unwrap_or(u64::MAX),
            longest: LONGEST,
            step: if from > 0 { FIRST } else { CHUNK },
            ended: false,
        }
    }

    /// The same with another bound for the length of a line.
    pub(crate) fn with_longest(self, longest: usize) -> Self {
        let mut reader = self;
        reader.longest = longest;
        reader
    }

    /// The next line, or nothing at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let len = searched + found;
                return Ok(Some(self.take(len, true)));
            }
            searched = self.end - self.start;
            if searched >= self.longest {
                return self.skip_long_line().map(Some);
            }
            if self.ended || !self.fill()? {
                return Ok(if searched == 0 { None } else { Some(self.take(searched, false)) });
            }
        }
    }

    /// Whether a line may end `len` bytes from here, without searching: a known one does.
    pub(crate) fn may_end_at(&mut self, len: usize) -> io::Result<bool> {
        while self.end - self.start <= len && len < self.longest && !self.ended {
            self.fill()?;
        }
        let held = &self.buffer[self.start..self.end];
        Ok(len < self.longest && held.get(len).map_or(held.len() == len && len > 0, |byte| *byte == b'\n'))
    }

    /// The line that [`LineReader::may_end_at`] confirmed.
    pub(crate) fn line_of(&mut self, len: usize) -> Line<'_> {
        let terminated = self.start + len < self.end;
        self.take(len, terminated)
    }

    fn take(&mut self, len: usize, terminated: bool) -> Line<'_> {
        let (start, offset) = (self.start, self.offset);
        let consumed = len + usize::from(terminated);
        self.start += consumed;
        self.offset += consumed as u64;
        // Whether a line is too long must not depend on how much of it was read together.
        let bytes = (len < Self::LONGEST).then(|| &self.buffer[start..start + len]);
        Line { offset, len: len as u64, bytes, terminated }
    }

    fn skip_long_line(&mut self) -> io::Result<Line<'static>> {
        let offset = self.offset;
        let mut len = 0u64;
        loop {
            if let Some(found) = memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += found + 1;
                self.offset += found as u64 + 1;
                return Ok(Line { offset, len: len + found as u64, bytes: None, terminated: true });
            }
            let dropped = (self.end - self.start) as u64;
            len += dropped;
            self.offset += dropped;
            (self.start, self.end) = (0, 0);
            if self.ended || !self.fill()? {
                return Ok(Line { offset, len, bytes: None, terminated: false });
            }
        }
    }

    /// Reads more into the buffer; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 && self.buffer.len() < self.longest.max(CHUNK) {
            // Grow by doubling, so that one long line costs no more than twice its length.
            let wanted = (self.buffer.len() * 2).clamp(CHUNK, self.longest.max(CHUNK));
            self.buffer.resize(wanted, 0);
        }
        let unread = self.limit.saturating_sub(self.offset + self.end as u64);
        // No more than the longest line, so that it depends on nothing but its length whether a line is held.
        let room = self.buffer.len().min(self.longest) - self.end;
        let room = room.min(usize::try_from(unread).unwrap_or(usize::MAX));
        if room == 0 {
            self.ended = true;
            return Ok(false);
        }
        let room = room.min(self.step);
        self.step = if self.step < CHUNK { 4 * self.step } else { usize::MAX };
        loop {
            match self.source.read(&mut self.buffer[self.end..self.end + room]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], from: u64, to: Option<u64>) -> Vec<(u64, u64, bool, bool)> {
        let mut reader = LineReader::new(bytes, from, to);
        let mut seen = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            seen.push((line.offset, line.len, line.bytes.is_some(), line.terminated));
        }
        seen
    }

    #[test]
    fn a_missing_last_line_break_is_told() {
        assert_eq!(all(b"", 0, None), []);
        assert_eq!(all(b"ab\n\nc", 0, None), [(0, 2, true, true), (3, 0, true, true), (4, 1, true, false)]);
        assert_eq!(all(b"ab\ncd\n", 10, Some(13)), [(10, 2, true, true)]);
    }

    #[test]
    fn a_line_too_long_for_memory_is_passed_over_and_the_next_is_read() {
        let long = LineReader::<&[u8]>::LONGEST + 12_345;
        let mut bytes = b"first\n".to_vec();
        bytes.resize(6 + long, b'x');
        bytes.extend(b"\nlast\n");
        let expected = [(0, 5, true, true), (6, long as u64, false, true), (7 + long as u64, 4, true, true)];
        assert_eq!(all(&bytes, 0, None), expected);
        bytes.truncate(6 + long);
        assert_eq!(all(&bytes, 0, None)[1..], [(6, long as u64, false, false)]);
    }

    proptest! {
        #[test]
        fn lines_put_together_are_the_file(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..2000)) {
            let mut reader = LineReader::new(&bytes[..], 0, None);
            let mut joined = Vec::new();
            while let Some(line) = reader.next_line().unwrap() {
                prop_assert_eq!(line.offset, joined.len() as u64);
                joined.extend_from_slice(line.bytes.unwrap());
                if line.terminated {
                    joined.push(b'\n');
                }
            }
            drop(reader);
            prop_assert_eq!(joined, bytes);
        }
    }
}
