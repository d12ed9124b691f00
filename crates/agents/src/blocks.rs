//! Reading a file in blocks of whole lines, so that one thread can read what another looks at.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;

use memchr::{memchr, memrchr};

use crate::lines::{LONGEST, Line, LineReader};

/// From which size on a file is worth a second thread.
const MANY: u64 = 32 << 20;
/// Beyond these the reading itself is what takes the time.
const MOST_THREADS: usize = 4;

/// How many blocks wait to be seen.
const AHEAD: usize = 2;

/// How a file is read: on how many threads, and in blocks of which size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadOptions {
    pub threads: usize,
    /// How many bytes to read at a time.
    pub block: usize,
    /// A line of this length or longer is handed out by its place alone.
    pub longest: usize,
}

impl ReadOptions {
    /// What is right for a file of `size` bytes.
    pub(crate) fn for_size(size: u64) -> Self {
        let threads = match size {
            0..MANY => 1,
            _ => thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS)),
        };
        // A block should stay in a core's own cache until it has been processed.
        ReadOptions { threads, block: 256 << 10, longest: LONGEST }
    }
}

/// Shows `see` all lines of `source` up to the offset `limit`, until it has seen enough. A long file is read by another
/// thread meanwhile, a few blocks ahead: copying it out of the page cache takes a good part of the time.
pub(crate) fn read_ahead<R: Read + Send>(
    source: R,
    limit: u64,
    means: ReadOptions,
    mut see: impl FnMut(&Line<'_>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    if means.threads < 2 {
        let mut lines = LineReader::new(source, 0, Some(limit)).with_longest(means.longest);
        while let Some(line) = lines.next_line()? {
            if see(&line)?.is_break() {
                break;
            }
        }
        return Ok(());
    }
    let mut reader = BlockReader::new(source, limit, means);
    thread::scope(|scope| {
        let (to_see, blocks) = mpsc::sync_channel::<Block>(AHEAD);
        let (to_read, seen) = mpsc::sync_channel::<Block>(AHEAD + 1);
        let reading = scope.spawn(move || {
            let mut free: Vec<Block> = (0..=AHEAD).map(|_| Block::default()).collect();
            while let Some(mut block) = free.pop().or_else(|| seen.recv().ok()) {
                if !reader.next(&mut block) {
                    return reader.error();
                }
                let is_large = reader.is_large(&block);
                if to_see.send(block).is_err() {
                    break;
                }
                while is_large && free.len() <= AHEAD {
                    let Ok(mut block) = seen.recv() else {
                        return Ok(());
                    };
                    reader.recycle(&mut block);
                    free.push(block);
                }
            }
            Ok(())
        });
        for block in blocks {
            for line in block.lines() {
                if see(&line)?.is_break() {
                    return Ok(());
                }
            }
            // If the channel is closed, the end has been read.
            let _ = to_read.send(block);
        }
        reading.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread ended early")))
    })
}

/// Some whole lines of a file, one after the other, or the place of a line that is too long to be held.
#[derive(Debug, Default)]
pub(crate) struct Block {
    offset: u64,
    buffer: Vec<u8>,
    /// How much of the buffer is filled.
    filled: usize,
    long: Option<Line<'static>>,
}

impl Block {
    /// The lines, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let mut at = 0;
        let held = std::iter::from_fn(move || {
            let rest = &self.buffer[at..self.filled];
            if rest.is_empty() {
                return None;
            }
            let end = memchr(b'\n', rest);
            let len = end.unwrap_or(rest.len());
            let offset = self.offset + at as u64;
            at += len + usize::from(end.is_some());
            Some(Line { offset, len: len as u64, bytes: Some(&rest[..len]), terminated: end.is_some() })
        });
        self.long.into_iter().chain(held)
    }
}

/// Cuts a file into blocks.
pub(crate) struct BlockReader<R> {
    source: R,
    means: ReadOptions,
    /// The buffer of the last large block.
    large: Vec<u8>,
    /// The beginning of a line whose end was not read yet.
    carry: Vec<u8>,
    /// Where in the file that is.
    offset: u64,
    /// How much was read, and the limit.
    read: u64,
    limit: u64,
    ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> BlockReader<R> {
    /// Reads `source` from its beginning up to the offset `limit`.
    pub(crate) fn new(source: R, limit: u64, means: ReadOptions) -> Self {
        BlockReader {
            source,
            means,
            large: Vec::new(),
            carry: Vec::new(),
            offset: 0,
            read: 0,
            limit,
            ended: false,
            error: None,
        }
    }

    /// What kept it from reading on.
    pub(crate) fn error(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    /// Whether a block is so large that only one of its kind should exist: nothing more is read before it is returned.
    pub(crate) fn is_large(&self, block: &Block) -> bool {
        block.buffer.len() > 4 * self.means.block
    }

    /// Recycles a processed block.
    pub(crate) fn recycle(&mut self, block: &mut Block) {
        if self.is_large(block) {
            self.large = std::mem::take(&mut block.buffer);
        }
        // An empty block has no lines.
        (block.filled, block.long) = (0, None);
    }

    /// Reads the next block; false at the end.
    pub(crate) fn next(&mut self, block: &mut Block) -> bool {
        block.offset = self.offset;
        block.long = None;
        block.filled = self.carry.len();
        if block.buffer.len() < self.means.block.max(block.filled) {
            block.buffer.resize(self.means.block.max(block.filled), 0);
        }
        block.buffer[..block.filled].copy_from_slice(&self.carry);
        self.carry.clear();
        let mut searched = 0;
        loop {
            if let Some(last) = memrchr(b'\n', &block.buffer[searched..block.filled]) {
                let end = searched + last + 1;
                self.carry.extend_from_slice(&block.buffer[end..block.filled]);
                block.filled = end;
                self.offset += end as u64;
                return true;
            }
            searched = block.filled;
            if searched >= self.means.longest {
                return self.pass_over(block);
            }
            if searched == block.buffer.len() {
                self.grow(block);
            }
            // Step by step, so that little of what follows a long line is read with it and must be moved.
            let room = block.buffer.len().min(self.means.longest).min(searched + self.means.block);
            if !self.read(block, room) {
                // What follows the last line break is the last line, unless it could not be read to its end.
                if self.error.is_some() {
                    block.filled = 0;
                }
                self.offset += block.filled as u64;
                return block.filled > 0;
            }
        }
    }

    /// Makes room for a long line.
    fn grow(&mut self, block: &mut Block) {
        if self.large.len() > block.buffer.len() {
            self.large[..block.filled].copy_from_slice(&block.buffer[..block.filled]);
            block.buffer = std::mem::take(&mut self.large);
        } else {
            let wanted = (2 * block.buffer.len()).min(self.means.longest);
            block.buffer.resize(wanted, 0);
        }
    }

    /// Goes to the end of a line that is too long to be held.
    fn pass_over(&mut self, block: &mut Block) -> bool {
        let mut len = block.filled as u64;
        let terminated = loop {
            block.filled = 0;
            if !self.read(block, self.means.block) {
                break false;
            }
            if let Some(end) = memchr(b'\n', &block.buffer[..block.filled]) {
                self.carry.extend_from_slice(&block.buffer[end + 1..block.filled]);
                len += end as u64;
                break true;
            }
            len += block.filled as u64;
        };
        block.filled = 0;
        if self.error.is_some() {
            return false;
        }
        block.long = Some(Line { offset: self.offset, len, bytes: None, terminated });
        self.offset += len + u64::from(terminated);
        true
    }

    /// Reads more into the buffer, but does not fill it beyond `room`; false at the end.
    fn read(&mut self, block: &mut Block, room: usize) -> bool {
        let unread = usize::try_from(self.limit.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let room = room.min(block.filled.saturating_add(unread));
        while !self.ended {
            match self.source.read(&mut block.buffer[block.filled..room]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    block.filled += count;
                    self.read += count as u64;
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::map_in_parallel;
    use proptest::prelude::*;

    type LineFacts = (u64, u64, Option<Vec<u8>>, bool);

    fn line_facts(line: Line<'_>) -> LineFacts {
        (line.offset, line.len, line.bytes.map(<[u8]>::to_vec), line.terminated)
    }

    fn one_by_one(bytes: &[u8], limit: u64, longest: usize) -> Vec<LineFacts> {
        let mut lines = LineReader::new(bytes, 0, Some(limit)).with_longest(longest);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(line_facts(line));
        }
        all
    }

    /// All lines, by whom they may be read.
    fn in_blocks<R: Read + Send>(
        source: impl Fn() -> R,
        limit: u64,
        means: ReadOptions,
    ) -> [(Vec<LineFacts>, io::Result<()>); 2] {
        let mut shared = Vec::new();
        let look = |block: &Block| block.lines().map(line_facts).collect::<Vec<_>>();
        let shared_result = map_in_parallel(source(), limit, means, look, |lines| shared.extend(lines));
        let mut ahead = Vec::new();
        let ahead_result = read_ahead(source(), limit, means, |line| {
            ahead.push(line_facts(*line));
            Ok(ControlFlow::Continue(()))
        });
        [(shared, shared_result), (ahead, ahead_result)]
    }

    #[test]
    fn every_boundary_gives_the_same_lines() {
        let text = b"one\n\n\r\ntwo\r\na line that is longer than the others\nx\n\nand the last";
        for end in 0..=text.len() {
            for block in 1..=end + 1 {
                for (threads, longest) in [(1, 1000), (3, 1000), (2, block), (2, block + 3)] {
                    let means = ReadOptions { threads, block, longest };
                    for (lines, result) in in_blocks(|| &text[..], end as u64, means) {
                        assert_eq!(lines, one_by_one(text, end as u64, longest), "{means:?} up to {end}");
                        result.unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn who_has_seen_enough_is_shown_no_more() {
        let text = b"line\n".repeat(1000);
        for threads in [1, 2] {
            for (block, longest) in [(7, 9), (7, 3)] {
                let mut seen = 0;
                let see = |_: &Line<'_>| {
                    seen += 1;
                    match seen {
                        10 => Ok(ControlFlow::Break(())),
                        _ => Ok(ControlFlow::Continue(())),
                    }
                };
                read_ahead(&text[..], u64::MAX, ReadOptions { threads, block, longest }, see).unwrap();
                assert_eq!(seen, 10);
                let failing = |_: &Line<'_>| Err(io::Error::other("full"));
                read_ahead(&text[..], u64::MAX, ReadOptions { threads, block, longest }, failing).unwrap_err();
            }
        }
    }

    /// Gives a few bytes at a time and then an error.
    struct Breaks<'a>(&'a [u8]);

    impl Read for Breaks<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(buffer.len()).min(5);
            if count == 0 {
                return Err(io::Error::other("broken"));
            }
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn what_was_read_before_an_error_is_looked_at() {
        for threads in [1, 2] {
            let means = ReadOptions { threads, block: 8, longest: 20 };
            let check = |text: &[u8], whole: &[u8]| {
                for (lines, result) in in_blocks(|| Breaks(text), u64::MAX, means) {
                    assert_eq!(lines, one_by_one(whole, u64::MAX, 20));
                    result.unwrap_err();
                }
            };
            check(b"first\nsecond\nthe rest", b"first\nsecond\n");
            check(b"first\nlonger than a line may be", b"first\n");
        }
    }

    proptest! {
        #[test]
        fn blocks_put_together_are_the_file(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..2000),
            threads in 1..4usize,
            block in 1..300usize,
            more in 0..100usize,
        ) {
            let longest = block + more;
            let expected = one_by_one(&bytes, u64::MAX, longest);
            for (lines, result) in in_blocks(|| &bytes[..], u64::MAX, ReadOptions { threads, block, longest }) {
                prop_assert!(result.is_ok());
                prop_assert_eq!(&lines, &expected);
            }
        }
    }
}
