//! Parts of a transcript, for a reader that begins at the end and moves from there.
//!
//! A transcript whose records are all active and in order is read from any line, so a page costs its own bytes, however
//! large the file is. The number of its turns is known, so turns are counted from the end. Other transcripts are read in
//! pages of turns; each of those costs a pass over the file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use agents::{Blocks, PlainScan, TurnStart};
use diagnostics::OrLog;
use transcript::BlockKind;

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::sessions::Result;
use crate::sessions::marks::Marked;
use crate::sessions::session::Session;
use crate::sessions::survey;

/// How many bytes a page has, unless its last turn is longer.
const PAGE: u64 = 512 << 10;

/// How many turns a page has in a transcript that is always read from its beginning.
const TURNS: u32 = 50;

/// A part of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// A range of bytes.
    Bytes {
        /// Where it begins.
        from: u64,
        /// Where it ends.
        until: u64,
        /// The number of turns that begin before it.
        turn: u32,
        /// The number of turns that begin in it. Without any, it is the middle of a long turn.
        turns: u32,
    },
    /// Some turns.
    Turns {
        /// The first one; 0 for what precedes the first prompt.
        from: u32,
        /// The last one.
        until: u32,
    },
}

impl Extent {
    /// Whether nothing precedes it.
    pub fn is_first(&self) -> bool {
        matches!(self, Extent::Bytes { from: 0, .. } | Extent::Turns { from: 0, .. })
    }

    /// Whether a turn begins in it.
    fn has(&self, turn: u32) -> bool {
        match *self {
            Extent::Bytes { turn: before, turns, .. } => (before + 1..=before + turns).contains(&turn),
            Extent::Turns { from, until } => (from..=until).contains(&turn),
        }
    }
}

/// A transcript in pages.
pub struct Pages<'a> {
    ctx: &'a Ctx,
    session: Session,
    /// Where it can be read from any line: the size, and what saves a scan.
    known: Option<PlainScan>,
    /// Its size now. The agent may have added to it since the scan.
    size: u64,
}

impl<'a> Pages<'a> {
    pub(crate) fn of(ctx: &'a Ctx, session: &Session) -> Self {
        let details = &session.details;
        let is_compressed = session.view.path.extension().is_some_and(|extension| extension == "zst");
        let is_plain = details.tip.is_none() && !session.view.unstarted && !is_compressed;
        let known = details.known.clone().filter(|_| is_plain);
        let scanned = known.as_ref().map_or(0, |known| known.size);
        let now = std::fs::metadata(&session.view.path).map(|file| file.len()).or_log("look at a transcript");
        let size = now.unwrap_or(scanned).max(scanned);
        let pages = Pages { ctx, session: session.clone(), known, size };
        // A transcript from before the agent recorded where turns begin says nothing about its own middle.
        match pages.counts_turns() {
            true => pages,
            false => Pages { known: None, ..pages },
        }
    }

    /// Whether the beginnings of turns are found from the middle: the last page has some, or there is just one page.
    fn counts_turns(&self) -> bool {
        let Some(Extent::Bytes { from, until, turns, .. }) = self.known.as_ref().map(|known| self.bytes(known.size))
        else {
            return false;
        };
        let Some(prompts) = self.count_prompts(from, until).or_log("count the prompts of a page") else { return false };
        prompts == turns && (from > 0 || turns == self.session.view.turns)
    }

    /// The number of turns, as it was when the session was read.
    fn turns(&self) -> u32 {
        self.session.view.turns
    }

    /// The end of the transcript.
    pub fn last(&self) -> Extent {
        match &self.known {
            Some(known) => {
                let mut last = self.bytes(known.size);
                while let Some(after) = self.after(&last) {
                    last = after;
                }
                last
            }
            None => Extent::Turns { from: self.turns().saturating_sub(TURNS), until: u32::MAX },
        }
    }

    /// The end of the transcript, as it was when the session was read.
    pub(crate) fn end_when_read(&self) -> Extent {
        match &self.known {
            Some(known) => self.bytes(known.size),
            None => self.last(),
        }
    }

    /// The last part, with what was added to the transcript meanwhile. If that is much, the rest comes after it.
    pub fn grown(&self, last: &Extent) -> Extent {
        match *last {
            Extent::Bytes { from, turn, .. } if self.known.is_some() => self.after_offset(from, turn, self.size),
            _ => self.last(),
        }
    }

    /// The beginning of the transcript.
    pub fn first(&self) -> Extent {
        match &self.known {
            Some(_) => self.after_offset(0, 0, self.size),
            None => Extent::Turns { from: 0, until: TURNS },
        }
    }

    /// What precedes a part.
    pub fn before(&self, extent: &Extent) -> Option<Extent> {
        if extent.is_first() {
            return None;
        }
        Some(match *extent {
            Extent::Bytes { from, turn, .. } => self.ending_at(from, turn),
            Extent::Turns { from, .. } => Extent::Turns { from: from.saturating_sub(TURNS), until: from - 1 },
        })
    }

    /// What follows a part.
    pub fn after(&self, extent: &Extent) -> Option<Extent> {
        match *extent {
            Extent::Bytes { until, turn, turns, .. } => {
                (until < self.size).then(|| self.after_offset(until, turn + turns, self.size))
            }
            Extent::Turns { until, .. } if until < self.turns() => {
                let last = until + TURNS;
                Some(Extent::Turns { from: until + 1, until: if last >= self.turns() { u32::MAX } else { last } })
            }
            Extent::Turns { .. } => None,
        }
    }

    /// A part with the beginning of a turn. In a large transcript, finding it takes a pass over most of the file.
    pub fn with_turn(&self, turn: u32) -> Extent {
        let mut extent = self.last();
        if extent.has(turn) || turn > self.turns() {
            return extent;
        }
        match &self.known {
            None => {
                let from = turn.saturating_sub(TURNS / 2);
                let until = turn + TURNS / 2;
                Extent::Turns { from, until: if until >= self.turns() { u32::MAX } else { until } }
            }
            // From the end that is nearer.
            Some(_) if turn < self.turns() / 2 => {
                extent = self.first();
                while !extent.has(turn)
                    && let Some(next) = self.after(&extent)
                {
                    extent = next;
                }
                extent
            }
            Some(_) => {
                while !extent.has(turn)
                    && let Some(next) = self.before(&extent)
                {
                    extent = next;
                }
                extent
            }
        }
    }

    /// The blocks of a part.
    pub fn read(&self, extent: &Extent) -> Result<Box<dyn Blocks + '_>> {
        match *extent {
            Extent::Bytes { from, until, turn, turns } => {
                let blocks = self.blocks(from, until, turn, false)?;
                let blocks = Box::new(Marked::new(blocks, self.session.view.cwd.as_deref()));
                let blocks = survey::folded(self.ctx, &self.session, blocks)?;
                Ok(Box::new(BlocksWithin { blocks, turn, last: turn + turns }))
            }
            Extent::Turns { from, until } => {
                let until = Some(until).filter(|until| *until < self.turns());
                let blocks = survey::read(self.ctx, &self.session, until, survey::SeedText::Folded)?;
                Ok(Box::new(BlocksFrom { blocks, turn: from }))
            }
        }
    }

    /// The last part of a transcript that is read until `size`.
    fn bytes(&self, size: u64) -> Extent {
        self.ending_at(size, self.turns())
    }

    /// The part that ends at an offset before which `turns` turns begin.
    fn ending_at(&self, until: u64, turns: u32) -> Extent {
        let path = &self.session.view.path;
        let near = until.saturating_sub(PAGE);
        let from = line_start(path, near).or_log("find the beginning of a line").unwrap_or(0);
        let starts = self.starts(from, until);
        let count = u32::try_from(starts.len()).unwrap_or(u32::MAX);
        let from = match starts.first() {
            // The rest of the turn before comes with the pages before.
            Some(first) if from > 0 => first.offset,
            _ => from,
        };
        Extent::Bytes { from, until, turn: turns.saturating_sub(count), turns: count }
    }

    /// The part that begins at an offset before which `turn` turns begin.
    fn after_offset(&self, from: u64, turn: u32, size: u64) -> Extent {
        let path = &self.session.view.path;
        let end = from + PAGE;
        let until = match size - from {
            ..=PAGE => size,
            _ => {
                let before = line_start(path, end).or_log("find the beginning of a line").filter(|line| *line > from);
                let until = before.or_else(|| next_line(path, end).or_log("find the end of a line"));
                until.unwrap_or(size).min(size)
            }
        };
        let starts = self.starts(from, until);
        let count = u32::try_from(starts.len()).unwrap_or(u32::MAX);
        match starts.last() {
            // The next part begins with a turn.
            Some(last) if until < size && last.offset > from => {
                Extent::Bytes { from, until: last.offset, turn, turns: count - 1 }
            }
            _ => Extent::Bytes { from, until, turn, turns: count },
        }
    }

    /// The turns that begin in a range.
    fn starts(&self, from: u64, until: u64) -> Vec<TurnStart> {
        let Some(mut blocks) = self.blocks(from, until, 0, true).or_log("look for turns") else { return Vec::new() };
        let mut starts: Vec<TurnStart> = Vec::new();
        loop {
            let is_over = blocks.next_block().is_none();
            if let Some(start) = blocks.turn_began()
                && start.offset >= from
                && starts.last().is_none_or(|last| last.offset < start.offset)
            {
                starts.push(start);
            }
            if is_over {
                return starts;
            }
        }
    }

    /// The prompts in a range.
    fn count_prompts(&self, from: u64, until: u64) -> Result<u32> {
        let mut blocks = self.blocks(from, until, 0, true)?;
        let mut count = 0;
        while let Some(block) = blocks.next_block() {
            let is_prompt = matches!(block.kind, BlockKind::Prompt { steer: false, .. });
            count += u32::from(is_prompt && block.depth == 0);
        }
        Ok(count)
    }

    fn blocks(&self, from: u64, until: u64, turn: u32, prose_only: bool) -> Result<Box<dyn Blocks>> {
        let path = &self.session.view.path;
        let known = self.known.as_ref().map(|known| PlainScan { size: until, ..known.clone() });
        let start = (from > 0).then_some(TurnStart { turn: turn + 1, offset: from });
        let part = agents::Part { from: start, prose_only, acts: !prose_only, ..agents::Part::default() };
        let adapter = self.ctx.adapter(self.session.view.agent);
        let blocks = adapter.read_part(path, &part, known.as_ref());
        Ok(blocks.map_err(|source| FileError::Read { path: path.clone(), source })?)
    }
}

/// Blocks of a part that is read on its own: none of them belongs to a turn outside.
struct BlocksWithin {
    blocks: Box<dyn Blocks>,
    turn: u32,
    last: u32,
}

/// Blocks from a turn on.
struct BlocksFrom {
    blocks: Box<dyn Blocks>,
    turn: u32,
}

impl Blocks for BlocksWithin {
    fn next_block(&mut self) -> Option<transcript::Block> {
        let mut block = self.blocks.next_block()?;
        block.turn = block.turn.clamp(self.turn, self.last);
        Some(block)
    }

    fn tokens(&self) -> Option<transcript::TokenUse> {
        self.blocks.tokens()
    }

    fn defects(&self) -> &transcript::Defects {
        self.blocks.defects()
    }
}

impl Blocks for BlocksFrom {
    fn next_block(&mut self) -> Option<transcript::Block> {
        loop {
            let block = self.blocks.next_block()?;
            if block.turn >= self.turn {
                return Some(block);
            }
        }
    }

    fn tokens(&self) -> Option<transcript::TokenUse> {
        self.blocks.tokens()
    }

    fn defects(&self) -> &transcript::Defects {
        self.blocks.defects()
    }
}

/// How much is read at a time to find the ends of lines.
const STEP: usize = 64 << 10;

/// Where the line begins that contains an offset.
fn line_start(path: &Path, offset: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; STEP];
    let mut end = offset;
    while end > 0 {
        let start = end.saturating_sub(STEP as u64);
        let part = &mut buffer[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(found) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + found as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Where the line after the one that contains an offset begins.
fn next_line(path: &Path, offset: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut buffer = vec![0; STEP];
    let mut at = offset;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(at);
        }
        if let Some(found) = buffer[..count].iter().position(|byte| *byte == b'\n') {
            return Ok(at + found as u64 + 1);
        }
        at += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use testkit::build::ClaudeSession;
    use transcript::{Block, BlockKind};

    use super::*;
    use crate::sessions::catalog::Quiet;
    use crate::test_world::World;

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    fn blocks(mut blocks: Box<dyn Blocks + '_>) -> Vec<Block> {
        std::iter::from_fn(move || blocks.next_block()).collect()
    }

    /// Whatever the direction, the pages together are the transcript, with the same numbers of turns.
    fn check(world: &World) {
        let tine = world.tine();
        let session = tine.resolve(ID, &Quiet).expect("a session").session;
        let pages = Pages::of(&tine.ctx, &session);
        let whole = blocks(tine.read(&session, None, survey::SeedText::Folded).expect("blocks"));
        let read = |extent: &Extent| blocks(pages.read(extent).expect("a page"));
        let mut upwards = vec![pages.last()];
        while let Some(before) = pages.before(upwards.last().expect("a page")) {
            upwards.push(before);
        }
        let mut downwards = vec![pages.first()];
        while let Some(after) = pages.after(downwards.last().expect("a page")) {
            downwards.push(after);
        }
        upwards.reverse();
        for order in [&upwards, &downwards] {
            let all: Vec<Block> = order.iter().flat_map(read).collect();
            assert_eq!(all.len(), whole.len(), "{order:?}");
            for (one, other) in all.iter().zip(&whole) {
                assert_eq!((one.turn, one.kind.as_str()), (other.turn, other.kind.as_str()), "{order:?}");
            }
            for extent in order {
                if let Extent::Bytes { from, until, .. } = extent {
                    assert!(until - from < 3 * PAGE, "{extent:?}");
                }
            }
        }
        for turn in 1..=session.view.turns {
            let extent = pages.with_turn(turn);
            let is_it = |block: &Block| block.turn == turn && matches!(block.kind, BlockKind::Prompt { .. });
            assert!(read(&extent).iter().any(is_it), "turn {turn}: {extent:?}");
        }
    }

    /// A session whose turns have answers of these sizes, in many records.
    fn session(sizes: &[usize]) -> World {
        let world = World::new();
        let mut session = ClaudeSession::new(ID).cwd(&world.repository);
        for (number, size) in sizes.iter().enumerate() {
            session = session.turn(|mut turn| {
                turn = turn.prompt(format!("prompt {number}"));
                let mut written = 0;
                while written < *size {
                    let mut text = String::new();
                    write!(text, "{number} {written} {}", "word ".repeat(2000)).expect("a string");
                    written += text.len();
                    turn = turn.text(text);
                }
                turn.text("done")
            });
        }
        session.write(&world.claude_home());
        world
    }

    #[test]
    fn pages_are_the_transcript_in_both_directions() {
        let kilobytes = |sizes: &[usize]| sizes.iter().map(|size| size << 10).collect::<Vec<_>>();
        check(&session(&[0]));
        check(&session(&kilobytes(&[1, 2, 3])));
        check(&session(&kilobytes(&[100; 30])));
        // A turn that is longer than a page, at the beginning, in the middle and at the end.
        check(&session(&kilobytes(&[2000, 1, 1, 300])));
        check(&session(&kilobytes(&[10, 1800, 10])));
        check(&session(&kilobytes(&[10, 10, 3000])));
    }

    #[test]
    fn lines_are_found_from_any_offset() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "one\ntwo\n\nfour").expect("written");
        let starts: Vec<u64> = (0..13).map(|at| line_start(file.path(), at).expect("a line")).collect();
        assert_eq!(starts, [0, 0, 0, 0, 4, 4, 4, 4, 8, 9, 9, 9, 9]);
        let nexts: Vec<u64> = [0, 3, 4, 8, 10].map(|at| next_line(file.path(), at).expect("a line")).to_vec();
        assert_eq!(nexts, [4, 4, 8, 9, 13]);
    }
}
