//! Which records of a source become part of a copy, in which order, and which links between them are mended.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::history::Broken;
use super::layout::Chain;
use super::order::Order;
use super::record::{Kind, Record, UserPart, key_of};
use super::scan::{Scan, scan};
use super::sidechains::Sidechains;
use crate::PlainScan;
use crate::copy::CopyRequest;
use crate::fields::Raw;
use crate::lines::Line;

/// Which records of the source are copied.
pub(super) struct Kept {
    /// Nothing after this offset is read.
    pub end: u64,
    pub turn_keys: Vec<u64>,
    rule: Rule,
    /// Whether the first record after the cut was seen; later records outside the chain belong to later turns.
    past_cut: bool,
    /// The last chain record that was read.
    pub last: u32,
    pub links: Links,
    elsewhere: OtherBranchCalls,
}

/// The sidechains inside the file that calls on other branches started.
#[derive(Default)]
struct OtherBranchCalls {
    calls: Sidechains,
    /// Their records.
    records: HashSet<u64>,
}

impl OtherBranchCalls {
    /// Notes a record of a sidechain; whether it is of such a one.
    fn pass(&mut self, record: &Record<'_>) -> bool {
        let begins = self.calls.pass(record, 0);
        let is_elsewhere = begins || record.parent.is_some_and(|parent| self.records.contains(&parent));
        if is_elsewhere {
            self.records.extend(record.uuid);
        }
        is_elsewhere
    }
}

/// The links that are mended.
#[derive(Default)]
pub(super) struct Links {
    /// The records whose parent is missing, and which one takes its place.
    broken: HashMap<u32, Option<u32>>,
    /// The ids of those that take a parent's place, as they are written, once they were passed.
    ids: HashMap<u32, Option<Vec<u8>>>,
}

impl Links {
    fn of(broken: &[Broken]) -> Self {
        let broken: HashMap<u32, Option<u32>> =
            broken.iter().filter(|broken| !broken.is_boundary).map(|broken| (broken.child, broken.parent)).collect();
        let ids = broken.values().flatten().map(|parent| (*parent, None)).collect();
        Links { broken, ids }
    }

    /// Records a copied record, and returns its new parent.
    pub(super) fn pass(&mut self, index: u32, record: &Record<'_>) -> Option<Vec<u8>> {
        if self.broken.is_empty() || !record.is_chain() {
            return None;
        }
        if let (Some(known), Some(id)) = (self.ids.get_mut(&index), record.id) {
            *known = Some(id.0.to_vec());
        }
        match self.broken.get(&index)? {
            Some(parent) => self.ids.get(parent)?.clone(),
            None => Some(b"null".to_vec()),
        }
    }
}

enum Rule {
    /// The file is in history order, so the cut is at the next prompt.
    Plain { turns: Option<u32> },
    /// The history defines what is active, and in which order.
    Scanned { scan: Box<Scan>, cut: Option<u64>, index: u32, order: Order<Place> },
}

/// The position of a record in the source.
pub(super) struct Place {
    pub offset: u64,
    pub len: u64,
}

pub(super) enum Inclusion {
    Yes,
    /// When those before it are there.
    Later,
    No,
    NothingMore,
}

impl Kept {
    pub(super) fn of(source: &Path, order: &CopyRequest, known: Option<&PlainScan>) -> Self {
        if let Some(known) = known.filter(|_| order.tip.is_none()) {
            let rule = Rule::Plain { turns: order.turns };
            return Kept {
                end: known.size,
                turn_keys: Vec::new(),
                rule,
                past_cut: false,
                last: 0,
                links: Links::default(),
                elsewhere: OtherBranchCalls::default(),
            };
        }
        let scan = scan(source, order.source_id.clone(), order.tip);
        let turns = order.turns.map_or(usize::MAX, |turns| turns as usize);
        let cut = scan.prompts.get(turns).map(|next| scan.history.rank(*next));
        let turn_keys = scan.summary.turn_keys.iter().copied().take(turns).collect();
        let end = scan.size;
        let links = if order.relink { Links::of(&scan.broken) } else { Links::default() };
        let order = Order::new(scan.history.spans());
        let rule = Rule::Scanned { scan: Box::new(scan), cut, index: 0, order };
        Kept { end, turn_keys, rule, past_cut: false, last: 0, links, elsewhere: OtherBranchCalls::default() }
    }

    /// The next record that had to wait and need not any longer.
    pub(super) fn next_held(&mut self) -> Option<(u32, Place)> {
        let Rule::Scanned { order, .. } = &mut self.rule else { return None };
        let (index, place) = order.next_held()?;
        order.passed(index);
        Some((index, place))
    }

    /// What waits for records that never came.
    pub(super) fn all_held(&mut self) -> Vec<(u32, Place)> {
        if let Rule::Scanned { order, .. } = &mut self.rule {
            order.give_up();
        }
        std::iter::from_fn(|| self.next_held()).collect()
    }

    /// Whether a line that is laid out, and so belongs to a plain file, is taken; if not, nothing more is.
    pub(super) fn takes_part(&mut self, chain: Option<&Chain>, line: &[u8]) -> bool {
        match chain.filter(|chain| chain.is_prompt) {
            Some(chain) => self.begins_turn(Raw(&line[chain.uuid.clone()]).plain().map(key_of)),
            None => true,
        }
    }

    /// Notes that a turn begins, unless there are enough of them.
    fn begins_turn(&mut self, key: Option<u64>) -> bool {
        let Rule::Plain { turns } = self.rule else { return true };
        let is_kept = turns.is_none_or(|turns| self.turn_keys.len() < turns as usize);
        if is_kept {
            self.turn_keys.push(key.unwrap_or_default());
        }
        is_kept
    }

    pub(super) fn takes(&mut self, record: &Record<'_>, line: &Line<'_>) -> Inclusion {
        if !record.is_chain() {
            if record.sidechain && self.elsewhere.pass(record) {
                return Inclusion::No;
            }
            return if self.past_cut || is_of_the_source(record) { Inclusion::No } else { Inclusion::Yes };
        }
        match &mut self.rule {
            Rule::Plain { .. } => {
                let is_user = line.bytes.is_some() && record.kind == Kind::User;
                let begins = is_user && record.user_part() == UserPart::Prompt;
                match begins && !self.begins_turn(record.uuid) {
                    true => Inclusion::NothingMore,
                    false => Inclusion::Yes,
                }
            }
            Rule::Scanned { scan, cut, index, order } => {
                let own = *index;
                *index += 1;
                self.last = own;
                if !scan.history.is_active(own) {
                    if record.kind == Kind::Assistant {
                        self.elsewhere.calls.call_elsewhere(record);
                    }
                    return Inclusion::No;
                }
                let is_kept = cut.is_none_or(|cut| scan.history.rank(own) < cut);
                self.past_cut |= !is_kept;
                match is_kept {
                    false => Inclusion::No,
                    // The client looks for parents among what it has read (2.1.197), so they come first.
                    true if order.waits(own) => {
                        order.hold(own, Place { offset: line.offset, len: line.len }, 0);
                        Inclusion::Later
                    }
                    true => {
                        order.passed(own);
                        Inclusion::Yes
                    }
                }
            }
        }
    }
}

/// Whether a side record describes the running source and not the conversation.
pub(super) fn is_of_the_source(record: &Record<'_>) -> bool {
    const LEFT_OUT: [&[u8]; 7] = [
        b"worktree-state",
        b"queue-operation",
        b"last-prompt",
        b"custom-title",
        b"agent-name",
        b"relocated",
        b"session-owner",
    ];
    let kind = record.word.and_then(Raw::plain).unwrap_or_default();
    LEFT_OUT.contains(&kind) || kind.starts_with(b"api-request")
}
