//! Records the layout of every line during a scan, so that a copy right after it does not have to parse the lines
//! again.
//!
//! A dozen bytes per line, never stored on disk. If a line does not end where recorded, the file has changed since the
//! scan, and its lines are parsed after all; the written copy is checked against its own lines.

use std::io::{self, Read};
use std::ops::Range;

use super::record::Record;
use crate::lines::{Line, LineReader};

/// The maximum size of a layout. Lines after that must be parsed.
const MOST: usize = 8 << 20;
/// By how much its buffer grows.
const MORE: usize = 1 << 20;

/// How a copy treats a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineUse {
    /// It is not copied.
    LeftOut,
    /// It must be parsed.
    Unknown,
    /// It is copied. These are the positions of the values to replace.
    Carried { session: Option<Range<usize>>, chain: Option<Chain> },
}

/// More about a record of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub uuid: Range<usize>,
    pub cwd: Option<Range<usize>>,
    pub branch: Option<Range<usize>>,
    /// Whether a turn starts with it.
    pub is_prompt: bool,
}

const UNKNOWN: u8 = 1;
const CARRIED: u8 = 2;
const CHAIN: u8 = 4;
const PROMPT: u8 = 8;
const SESSION: u8 = 16;
const CWD: u8 = 32;
const BRANCH: u8 = 64;

/// The layout as variable-length numbers of seven bits per byte: the length of the line, its kind, and its positions,
/// each by its distance from the end of the line and its length.
#[derive(Debug, Default)]
pub(super) struct Layout {
    noted: Vec<u8>,
    is_full: bool,
}

impl Layout {
    /// A line that is not copied.
    pub(super) fn left_out(&mut self, len: u64) {
        self.number(len);
        self.noted.push(0);
    }

    /// A line that must be parsed.
    pub(super) fn unknown(&mut self, len: u64) {
        self.number(len);
        self.noted.push(UNKNOWN);
    }

    /// A line that is copied; `is_prompt` if a turn starts with it.
    pub(super) fn carried(&mut self, line: &[u8], record: &Record<'_>, is_prompt: bool) {
        // Handmade records may repeat values or have them elsewhere.
        if record.repeated || record.forked_from.is_some() || line.last() != Some(&b'}') {
            return self.unknown(line.len() as u64);
        }
        let is_chain = record.is_chain();
        let places = match is_chain {
            true => [(record.session, SESSION), (record.cwd, CWD), (record.branch, BRANCH)],
            false => [(record.session, SESSION), (None, CWD), (None, BRANCH)],
        };
        let mut kind = CARRIED | if is_chain { CHAIN } else { 0 } | if is_prompt { PROMPT } else { 0 };
        for (value, mark) in &places {
            kind |= if value.is_some() { *mark } else { 0 };
        }
        self.number(line.len() as u64);
        self.noted.push(kind);
        let uuid = record.id.filter(|_| is_chain);
        for value in places.iter().map(|(value, _)| *value).chain([uuid]).flatten() {
            self.number((line.as_ptr().addr() + line.len() - value.0.as_ptr().addr()) as u64);
            self.number(value.0.len() as u64);
        }
    }

    /// Appends the layout of the following lines.
    pub(super) fn append(&mut self, next: &Layout) {
        self.is_full |= self.noted.len() + next.noted.len() > MOST;
        if self.is_full {
            return;
        }
        if self.noted.capacity() - self.noted.len() < next.noted.len() {
            self.noted.reserve_exact(if self.noted.is_empty() { next.noted.len() } else { next.noted.len().max(MORE) });
        }
        self.noted.extend_from_slice(&next.noted);
    }

    /// The complete layout.
    pub(super) fn finish(self) -> Vec<u8> {
        self.noted
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.noted.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.noted.push(number as u8);
    }
}

/// The recorded lines, in order, each with its length.
pub(super) struct Parts<'a>(pub &'a [u8]);

impl Parts<'_> {
    /// The next line and its kind; unknown if nothing was recorded.
    pub(super) fn next_line<'a, R: Read>(
        &mut self,
        lines: &'a mut LineReader<R>,
    ) -> io::Result<Option<(Line<'a>, LineUse)>> {
        match self.next() {
            Some((len, part)) if lines.may_end_at(len)? => return Ok(Some((lines.line_of(len), part))),
            Some((_, LineUse::Unknown)) | None => {}
            Some(_) => self.0 = &[],
        }
        Ok(lines.next_line()?.map(|line| (line, LineUse::Unknown)))
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= usize::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn place(&mut self, len: usize) -> Option<Range<usize>> {
        let start = len.checked_sub(self.number()?)?;
        let end = start + self.number()?;
        (end <= len).then_some(start..end)
    }
}

impl Iterator for Parts<'_> {
    type Item = (usize, LineUse);

    fn next(&mut self) -> Option<Self::Item> {
        let len = self.number()?;
        let (kind, rest) = self.0.split_first()?;
        self.0 = rest;
        let mut place = |mark: u8| if kind & mark == 0 { Some(None) } else { self.place(len).map(Some) };
        let part = match kind & (CARRIED | UNKNOWN) {
            0 => LineUse::LeftOut,
            UNKNOWN => LineUse::Unknown,
            _ => {
                let (session, cwd, branch) = (place(SESSION)?, place(CWD)?, place(BRANCH)?);
                let uuid = place(CHAIN)?;
                let is_prompt = kind & PROMPT != 0;
                LineUse::Carried { session, chain: uuid.map(|uuid| Chain { uuid, cwd, branch, is_prompt }) }
            }
        };
        Some((len, part))
    }
}
