//! A transcript that is read: the pages around what is on the screen, and no others.

use std::collections::VecDeque;

use engine::{Extent, Session};
use ratatui::text::Line;
use transcript::{Block, BlockKind};

use super::page::{Folds, Page, PageLayout};

/// How many lines are kept ready above and below the screen, in screens.
const READY: usize = 2;

/// How much memory the pages take before those far from the screen are dropped.
const WEIGHT: usize = 8 << 20;

/// A transcript that is read.
pub(crate) struct Reader {
    pub session: Session,
    /// The pages that are loaded, in order, without gaps; `None` before the first one is read.
    pub pages: Option<VecDeque<Page>>,
    /// The first line on the screen, counted over the loaded pages.
    pub top: usize,
    pub folds: Folds,
    /// The requested turn, until the user scrolls away from it.
    pub chosen: Option<u32>,
    /// The selected block, by its first line.
    pub cursor: Option<usize>,
    /// The search text in it, and whether it is being typed.
    pub find: Option<(String, bool)>,
    /// The line that was found.
    pub found: Option<usize>,
    /// The turn that it was opened for.
    pub wanted: Option<u32>,
    /// Words to highlight, in lower case.
    pub words: Vec<String>,
    pub ticket: u64,
    /// The pages that are being read.
    pub asked: PendingPages,
    /// What happens when the next page arrives.
    pub goal: Option<Goal>,
}

/// The pages that are being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PendingPages {
    pub before: bool,
    pub after: bool,
}

/// What happens when the next page arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The turn before or after the current one is shown.
    Jump {
        /// Whether it is the one after.
        forward: bool,
    },
    /// The search goes on in it.
    Find {
        /// The direction.
        forward: bool,
    },
}

/// Which page is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageRequest {
    /// The last one.
    Last,
    /// The first one.
    First,
    /// The one in which a turn begins.
    Turn(u32),
    /// The same part again.
    Again(Extent),
    /// The last page, which may have grown.
    Tail(Extent),
    /// What precedes a part.
    Before(Extent),
    /// What follows a part.
    After(Extent),
}

impl Reader {
    /// A transcript that is not read yet.
    pub(crate) fn new(session: Session, chosen: Option<u32>, ticket: u64) -> Self {
        Reader {
            session,
            pages: None,
            top: 0,
            folds: Folds::default(),
            chosen,
            cursor: None,
            find: None,
            found: None,
            wanted: chosen,
            words: Vec::new(),
            ticket,
            asked: PendingPages::default(),
            goal: None,
        }
    }

    fn loaded(&self) -> impl Iterator<Item = &Page> {
        self.pages.iter().flatten()
    }

    /// The number of loaded lines.
    pub(crate) fn length(&self) -> usize {
        self.loaded().map(|page| page.layout.document.lines.len()).sum()
    }

    /// The lines from one on, with their numbers.
    pub(crate) fn lines_from(&self, first: usize) -> impl Iterator<Item = (usize, &Line<'static>)> {
        let mut start = 0;
        let with_start = self.loaded().map(move |page| {
            let own = start;
            start += page.layout.document.lines.len();
            (own, page)
        });
        with_start.flat_map(move |(start, page)| {
            let lines = &page.layout.document.lines;
            let skipped = first.saturating_sub(start).min(lines.len());
            lines[skipped..].iter().enumerate().map(move |(place, line)| (start + skipped + place, line))
        })
    }

    /// The page with a line, and the number of its first line.
    fn page_at(&self, line: usize) -> Option<(usize, &Page)> {
        let mut start = 0;
        for page in self.loaded() {
            let length = page.layout.document.lines.len();
            if line < start + length {
                return Some((start, page));
            }
            start += length;
        }
        None
    }

    /// The part at the top of the screen.
    pub(crate) fn extent_at_top(&self) -> Option<Extent> {
        self.page_at(self.top).map(|(_, page)| page.extent)
    }

    /// The turn at a line.
    pub(crate) fn turn_at(&self, line: usize) -> Option<u32> {
        let (start, page) = self.page_at(line)?;
        // A page may begin in the middle of a turn.
        let before = || match page.extent {
            Extent::Bytes { turn, .. } => Some(turn).filter(|turn| *turn > 0),
            Extent::Turns { .. } => None,
        };
        page.layout.document.turn_at(line - start).or_else(before)
    }

    /// The turn that begins at a line.
    pub(crate) fn turn_beginning_at(&self, line: usize) -> Option<u32> {
        let (start, page) = self.page_at(line)?;
        let is_middle = |turn: u32| matches!(page.extent, Extent::Bytes { turn: before, .. } if turn == before);
        let found = page.layout.document.turns.iter().find(|(_, own)| start + own == line);
        found.map(|(turn, _)| *turn).filter(|turn| !is_middle(*turn))
    }

    /// Whether a block begins at a line.
    pub(crate) fn begins_block(&self, line: usize) -> bool {
        self.page_at(line).is_some_and(|(start, page)| {
            page.layout.places.binary_search_by_key(&(line - start), |(_, own)| *own).is_ok()
        })
    }

    /// The line where a turn begins.
    pub(crate) fn line_of(&self, turn: u32) -> Option<usize> {
        let mut start = 0;
        for page in self.loaded() {
            if let Some(line) = page.layout.document.line_of(turn) {
                return Some(start + line);
            }
            start += page.layout.document.lines.len();
        }
        None
    }

    /// The block at a line, with the line where it begins and its page's extent.
    fn block_at(&self, line: usize) -> Option<(usize, Extent, usize, &Block)> {
        let (start, page) = self.page_at(line)?;
        let place = page.layout.block_at(line - start)?;
        Some((start + page.layout.line_of_block(place), page.extent, place, page.blocks.get(place)?))
    }

    /// The selected block, or else the first one on the screen that can be folded.
    fn selected(&self, height: usize) -> Option<(Extent, usize, &Block)> {
        if let Some(line) = self.cursor {
            return self.block_at(line).map(|(_, extent, place, block)| (extent, place, block));
        }
        let mut line = self.top;
        while line < (self.top + height).min(self.length()) {
            if let Some((start, extent, place, block)) = self.block_at(line)
                && start >= self.top
                && Folds::key(&extent, place, block).is_some()
            {
                return Some((extent, place, block));
            }
            line += 1;
        }
        None
    }

    /// Selects the next block, or the one before.
    pub(crate) fn select_block(&mut self, forward: bool, height: usize) {
        let mut start = 0;
        let mut places = Vec::new();
        for page in self.loaded() {
            places.extend(page.layout.places.iter().map(|(_, line)| start + line));
            start += page.layout.document.lines.len();
        }
        let now = self.cursor.unwrap_or(if forward { self.top.wrapping_sub(1) } else { self.top + height });
        let found = match forward {
            true => places
                .into_iter()
                .find(|line| self.cursor.is_none() && *line >= self.top || *line > now && self.cursor.is_some()),
            false => places.into_iter().rev().find(|line| *line < now),
        };
        let Some(line) = found else { return };
        self.cursor = Some(line);
        if line < self.top {
            self.top = line;
        } else if line >= self.top + height {
            self.top = line.saturating_sub(height / 2);
        }
        self.chosen = self.turn_at(line);
    }

    /// Selects the block at a line. Returns whether it was selected before.
    pub(crate) fn select_at(&mut self, line: usize) -> bool {
        let Some((first, ..)) = self.block_at(line) else { return false };
        let was_selected = self.cursor == Some(first);
        self.cursor = Some(first);
        self.chosen = self.turn_at(first);
        was_selected
    }

    /// Folds or opens the selected block. Returns whether there is one.
    pub(crate) fn toggle(&mut self, height: usize) -> bool {
        let key = self.selected(height).and_then(|(extent, place, block)| Folds::key(&extent, place, block));
        let Some(key) = key else { return false };
        if !self.folds.flipped.remove(&key) {
            self.folds.flipped.insert(key);
        }
        true
    }

    /// The source text of the selected block.
    pub(crate) fn source(&self) -> Option<String> {
        let (_, _, _, block) = self.block_at(self.cursor?)?;
        // An output belongs to its call, which is what is folded.
        Some(super::page::source(block))
    }

    /// The source text of a turn, if all of it is loaded.
    pub(crate) fn source_of(&self, turn: u32) -> Option<String> {
        let mut parts = Vec::new();
        let is_complete = self.line_of(turn).is_some()
            && (self.line_of(turn + 1).is_some() || self.loaded().last().is_some_and(|page| page.is_last));
        for block in self.loaded().flat_map(|page| page.blocks.iter()).filter(|block| block.turn == turn) {
            if let (0, BlockKind::Prompt { text, .. } | BlockKind::Answer { text, .. }) = (block.depth, &block.kind) {
                parts.push(transcript::text::clean(text));
            }
        }
        is_complete.then(|| parts.join("\n\n"))
    }

    /// Whether the end of the transcript is on the screen.
    pub(crate) fn is_at_end(&self, height: usize) -> bool {
        self.top + height >= self.length() && self.loaded().last().is_none_or(|page| page.is_last)
    }

    /// Whether the beginning of the transcript is loaded.
    pub(crate) fn has_first(&self) -> bool {
        self.loaded().next().is_some_and(|page| page.extent.is_first())
    }

    /// Scrolls by lines, and stays within what is loaded.
    pub(crate) fn scroll(&mut self, lines: isize, height: usize) {
        let length = self.length();
        self.top = self.top.saturating_add_signed(lines).min(length.saturating_sub(height));
        self.cursor = self.cursor.filter(|line| (self.top..self.top + height).contains(line));
        // At the end, the last turn counts, though it may begin below the top.
        self.chosen = match self.is_at_end(height) && lines > 0 {
            true => length.checked_sub(1).and_then(|last| self.turn_at(last)),
            false => None,
        };
    }

    /// Goes to the next turn, or to the one before. Returns whether it is loaded.
    pub(crate) fn jump(&mut self, forward: bool, height: usize) -> bool {
        let Some(now) = self.turn() else { return false };
        let turns = self.loaded().flat_map(|page| page.layout.document.turns.iter()).map(|(turn, _)| *turn);
        let found =
            if forward { turns.filter(|turn| *turn > now).min() } else { turns.filter(|turn| *turn < now).max() };
        match found {
            Some(turn) => {
                self.show(turn, height);
                true
            }
            None => false,
        }
    }

    /// Brings a turn to the top, or as near to it as the end allows.
    pub(crate) fn show(&mut self, turn: u32, height: usize) {
        let line = self.line_of(turn).unwrap_or(0);
        self.top = line.min(self.length().saturating_sub(height));
        self.chosen = Some(turn);
    }

    /// Goes to the next line that contains the search text, or to the previous one. `wraps` at the end of what is loaded.
    pub(crate) fn find(&mut self, forward: bool, height: usize, wraps: bool) -> bool {
        let Some((text, _)) = &self.find else { return false };
        let text = text.to_lowercase();
        let count = self.length();
        if text.is_empty() || count == 0 {
            return false;
        }
        let fits: Vec<usize> = self
            .lines_from(0)
            .filter(|(_, line)| line.to_string().to_lowercase().contains(&text))
            .map(|(number, _)| number)
            .collect();
        let start = self.found.map_or(self.top as isize - 1, |line| line as isize);
        let found = match forward {
            true => fits.iter().find(|line| **line as isize > start).or(fits.first().filter(|_| wraps)),
            false => fits.iter().rev().find(|line| (**line as isize) < start).or(fits.last().filter(|_| wraps)),
        };
        let Some(line) = found.copied() else { return false };
        self.found = Some(line);
        self.top = line.saturating_sub(height / 2).min(count.saturating_sub(height));
        self.chosen = self.turn_at(line);
        true
    }

    /// The current turn: the requested one, or the one at the top of the screen.
    pub(crate) fn turn(&self) -> Option<u32> {
        self.chosen.or_else(|| self.turn_at(self.top))
    }

    /// The number of turns, which may have grown since the session was listed.
    pub(crate) fn turns(&self) -> u32 {
        let last = self.loaded().last().filter(|page| page.is_last).map(|page| page.extent);
        match last {
            Some(Extent::Bytes { turn, turns, .. }) => turn + turns,
            _ => self.session.view.turns,
        }
    }

    /// The pages that have to be read for scrolling to be smooth.
    pub(crate) fn wishes(&mut self, height: usize) -> Vec<PageRequest> {
        let mut wishes = Vec::new();
        let Some(pages) = &self.pages else { return wishes };
        let (Some(first), Some(last)) = (pages.front(), pages.back()) else { return wishes };
        let wants_more = |forward| match self.goal {
            Some(Goal::Jump { forward: own } | Goal::Find { forward: own }) => own == forward,
            None => false,
        };
        let near_begin = self.top < READY * height || wants_more(false);
        let near_end = self.top + (READY + 1) * height > self.length() || wants_more(true);
        if near_begin && !first.extent.is_first() && !self.asked.before {
            wishes.push(PageRequest::Before(first.extent));
        }
        if near_end && !last.is_last && !self.asked.after {
            wishes.push(PageRequest::After(last.extent));
        }
        self.asked.before |= wishes.iter().any(|wish| matches!(wish, PageRequest::Before(_)));
        self.asked.after |= wishes.iter().any(|wish| matches!(wish, PageRequest::After(_)));
        wishes
    }

    /// Takes a page that was read. `None` if it does not exist.
    pub(crate) fn take(&mut self, wish: PageRequest, page: Option<Page>, height: usize) {
        match wish {
            PageRequest::Before(_) => self.asked.before = false,
            PageRequest::After(_) => self.asked.after = false,
            _ => self.asked = PendingPages::default(),
        }
        let was_at_end = self.is_at_end(height);
        match (wish, page) {
            (PageRequest::Before(next), Some(page)) => {
                let Some(pages) = &mut self.pages else { return };
                // What it was asked for may have been dropped meanwhile.
                if pages.front().is_none_or(|first| first.extent != next) {
                    return;
                }
                let more = page.layout.document.lines.len();
                pages.push_front(page);
                self.move_by(more as isize);
                self.drop_far(height, false);
            }
            (PageRequest::After(before), page) => {
                let Some(pages) = &mut self.pages else { return };
                let Some(last) = pages.back_mut().filter(|last| last.extent == before) else { return };
                match page {
                    Some(page) => pages.push_back(page),
                    None => last.is_last = true,
                }
                self.drop_far(height, true);
            }
            (PageRequest::Tail(old), Some(page)) => {
                let Some(pages) = &mut self.pages else { return };
                let Some(last) = pages.back_mut().filter(|last| last.extent == old) else { return };
                *last = page;
                if was_at_end {
                    self.scroll(isize::MAX, height);
                }
            }
            (PageRequest::Before(_) | PageRequest::Tail(_), None) | (_, None) => {
                self.pages.get_or_insert_default();
            }
            (_, Some(page)) => {
                self.pages = Some(VecDeque::from([page]));
                (self.cursor, self.found) = (None, None);
                let last = self.length().checked_sub(1).and_then(|last| self.turn_at(last));
                match (wish, self.chosen) {
                    (PageRequest::First, _) => (self.top, self.chosen) = (0, None),
                    (PageRequest::Last, None) => {
                        // The last turn from its beginning, if it fits.
                        if let Some(turn) = last {
                            self.show(turn, height);
                        }
                    }
                    (_, Some(turn)) => self.show(turn, height),
                    (_, None) => self.top = self.top.min(self.length().saturating_sub(height)),
                }
            }
        }
    }

    /// Takes new lines for loaded pages, and keeps what is on the screen there.
    pub(crate) fn take_layouts(&mut self, layouts: Vec<(Extent, PageLayout)>, height: usize) {
        let top = self.place_of(self.top);
        let cursor = self.cursor.and_then(|line| self.place_of(line));
        for (extent, layout) in layouts {
            if let Some(page) = self.pages.iter_mut().flatten().find(|page| page.extent == extent) {
                page.layout = layout;
            }
        }
        self.found = None;
        self.cursor = cursor.map(|(page, block, _)| self.line_at(page, block));
        if let Some((page, block, offset)) = top {
            self.top = (self.line_at(page, block) + offset).min(self.length().saturating_sub(height));
        }
        // The selected block stays on the screen.
        if let Some(line) = self.cursor.filter(|line| !(self.top..self.top + height).contains(line)) {
            self.top = line;
        }
    }

    /// A line as a page, a block, and the lines after its first one.
    fn place_of(&self, line: usize) -> Option<(Extent, usize, usize)> {
        let (start, extent, place, _) = self.block_at(line)?;
        Some((extent, place, line - start.min(line)))
    }

    fn line_at(&self, extent: Extent, block: usize) -> usize {
        let mut start = 0;
        for page in self.loaded() {
            if page.extent == extent {
                return start + page.layout.line_of_block(block);
            }
            start += page.layout.document.lines.len();
        }
        0
    }

    fn move_by(&mut self, lines: isize) {
        let moved = |line: usize| line.saturating_add_signed(lines);
        self.cursor = self.cursor.map(moved);
        self.found = self.found.map(moved);
        self.top = moved(self.top);
    }

    /// Drops pages that are far from the screen while there are too many.
    fn drop_far(&mut self, height: usize, from_front: bool) {
        while self.loaded().map(|page| page.weight).sum::<usize>() > WEIGHT {
            let length = self.length();
            let Some(pages) = &mut self.pages else { return };
            let end = if from_front { pages.front() } else { pages.back() };
            let Some(lines) = end.map(|page| page.layout.document.lines.len()).filter(|_| pages.len() > 1) else {
                return;
            };
            match from_front {
                true if self.top > lines + READY * height => {
                    pages.pop_front();
                    self.move_by(-(lines as isize));
                }
                false if self.top + (READY + 1) * height < length - lines => {
                    pages.pop_back();
                }
                _ => return,
            }
        }
    }
}
