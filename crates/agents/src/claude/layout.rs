//! What a scan notes of every line, so that a copy that follows at once need not take the lines apart again.
//!
//! A dozen bytes for each line, never stored. Where a line does not end as noted, the file is not the one that was scanned,
//! and its lines are taken apart after all; and what was written is checked against what its lines themselves say.

use std::io::{self, Read};
use std::ops::Range;

use super::record::Record;
use crate::lines::{Line, LineReader};

/// How much is noted of a file at most. The lines behind that have to be taken apart.
const MOST: usize = 8 << 20;
/// By how much the room for it grows.
const MORE: usize = 1 << 20;

/// What a line is to a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// It is not copied.
    LeftOut,
    /// It has to be taken apart.
    Unknown,
    /// It is carried. These are the places of the values that become others.
    Carried { session: Option<Range<usize>>, chain: Option<Chain> },
}

/// More of a record of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub uuid: Range<usize>,
    pub cwd: Option<Range<usize>>,
    pub branch: Option<Range<usize>>,
    /// Whether a turn begins with it.
    pub is_prompt: bool,
}

const UNKNOWN: u8 = 1;
const CARRIED: u8 = 2;
const CHAIN: u8 = 4;
const PROMPT: u8 = 8;
const SESSION: u8 = 16;
const CWD: u8 = 32;
const BRANCH: u8 = 64;

/// What is noted, as numbers of seven bits a byte: the length of the line, what it is, and its places, each by how far
/// from the end of the line it begins, and its length.
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

    /// A line that has to be taken apart.
    pub(super) fn unknown(&mut self, len: u64) {
        self.number(len);
        self.noted.push(UNKNOWN);
    }

    /// A line that is carried; `is_prompt` where a turn begins with it.
    pub(super) fn carried(&mut self, line: &[u8], record: &Record<'_>, is_prompt: bool) {
        // What a person or another program wrote by hand may say things twice, or elsewhere.
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

    /// Goes on with what was noted of the next lines.
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

    /// All that was noted.
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

/// The lines that were noted, in order, each with its length.
pub(super) struct Parts<'a>(pub &'a [u8]);

impl Parts<'_> {
    /// The next line and what it is; where nothing was noted, nothing is known of it.
    pub(super) fn next_line<'a, R: Read>(
        &mut self,
        lines: &'a mut LineReader<R>,
    ) -> io::Result<Option<(Line<'a>, Part)>> {
        match self.next() {
            Some((len, part)) if lines.may_end_at(len)? => return Ok(Some((lines.line_of(len), part))),
            Some((_, Part::Unknown)) | None => {}
            Some(_) => self.0 = &[],
        }
        Ok(lines.next_line()?.map(|line| (line, Part::Unknown)))
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
    type Item = (usize, Part);

    fn next(&mut self) -> Option<Self::Item> {
        let len = self.number()?;
        let (kind, rest) = self.0.split_first()?;
        self.0 = rest;
        let mut place = |mark: u8| if kind & mark == 0 { Some(None) } else { self.place(len).map(Some) };
        let part = match kind & (CARRIED | UNKNOWN) {
            0 => Part::LeftOut,
            UNKNOWN => Part::Unknown,
            _ => {
                let (session, cwd, branch) = (place(SESSION)?, place(CWD)?, place(BRANCH)?);
                let uuid = place(CHAIN)?;
                let is_prompt = kind & PROMPT != 0;
                Part::Carried { session, chain: uuid.map(|uuid| Chain { uuid, cwd, branch, is_prompt }) }
            }
        };
        Some((len, part))
    }
}
